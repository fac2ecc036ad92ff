//! Where a database is: the text of the configuration, parsed once. It opens nothing.

use std::fmt;
use std::path::{Path, PathBuf};

use model::SecretText;
use secrecy::ExposeSecret;
use url::Url;

/// Where a database is.
///
/// `Debug` and `Display` show a PostgreSQL URL without its password and without anything behind `?`.
#[derive(Clone)]
pub enum StoreUrl {
    /// A SQLite file. Invariant after [`StoreUrl::parse`]: an absolute path.
    Sqlite(PathBuf),
    /// A SQLite database in memory, gone with the last connection. For tests.
    Memory,
    /// A PostgreSQL URL with a host, and with no parameter that the driver would ignore.
    Postgres(SecretText),
}

/// Why a text is not the place of a database. Holds no part of a URL that could be a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// Neither of the two engines.
    #[error("a database is `sqlite:FILE` or `postgres://USER@HOST/NAME`; found {found}")]
    Scheme {
        /// What stands before the first colon, in backticks, or that there is none.
        found: String,
    },
    /// `sqlite:` with nothing behind it.
    #[error("`sqlite:` names no file; write it as sqlite:tollhouse.db")]
    FileMissing,
    /// `sqlite:` with something behind the file name that would be read as part of it.
    #[error(
        "`{path}` has a `{character}`, which a database file cannot have in its name; options are not written behind it"
    )]
    FileName {
        /// The path as written.
        path: String,
        /// The offending character.
        character: char,
    },
    /// The path cannot be made absolute.
    #[error("`{path}` cannot be made an absolute path: {why}")]
    Path {
        /// The path as written.
        path: String,
        /// What the system said.
        why: String,
    },
    /// Not a URL.
    #[error(
        "the PostgreSQL URL cannot be read ({why}); write postgres://USER@HOST:PORT/NAME, with `%`-encoded special characters"
    )]
    Syntax {
        /// What the parser said.
        why: String,
    },
    /// A URL that leaves the host to the environment.
    #[error(
        "the PostgreSQL URL names no host; write postgres://USER@HOST/NAME, or `?host=/run/postgresql` for a socket"
    )]
    HostMissing,
    /// A parameter that would be ignored.
    #[error("the PostgreSQL URL has the unknown parameter `{name}`; known are {}", PARAMETERS.join(", "))]
    Parameter {
        /// Its name.
        name: String,
    },
}

/// What may stand behind `?` in a PostgreSQL URL. The driver ignores others, and an ignored `sslmod=verify-full` is an
/// open connection, so that an unknown one is a fault.
const PARAMETERS: [&str; 15] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

impl StoreUrl {
    /// Reads `sqlite:FILE` (relative to `base`), `sqlite::memory:`, or `postgres://…`.
    ///
    /// A PostgreSQL URL takes libpq's parameters `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `host` (a socket's folder),
    /// `options` and `application_name`. Where it has no `sslmode`, a host that is not this machine is connected to as
    /// `verify-full`: the driver's own default would quietly fall back to an unencrypted connection. Only the public
    /// roots are known without `sslrootcert`.
    ///
    /// # Errors
    /// [`UrlFault`]; its text holds no password.
    pub fn parse(text: &str, base: &Path) -> Result<Self, UrlFault> {
        match text.split_once(':') {
            Some(("sqlite", ":memory:")) => Ok(Self::Memory),
            Some(("sqlite", rest)) => sqlite(rest, base),
            Some(("postgres" | "postgresql", _)) => postgres(text),
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_alphanumeric()) => Err(UrlFault::Scheme {
                found: format!("`{scheme}:`"),
            }),
            _ => Err(UrlFault::Scheme {
                found: "no scheme".to_owned(),
            }),
        }
    }
}

fn sqlite(rest: &str, base: &Path) -> Result<StoreUrl, UrlFault> {
    // `sqlite://x` and `sqlite:x` are the same file to everyone who writes such URLs.
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err(UrlFault::FileMissing);
    }
    // `?` and `#` begin options in SQLite's own URLs; a file that really is called so is not worth the confusion.
    if let Some(character) = path.chars().find(|c| matches!(c, '?' | '#' | '\0')) {
        return Err(UrlFault::FileName {
            path: path.to_owned(),
            character,
        });
    }
    // Absolute, because SQLite reads a relative name that starts with `file:` as a URL of its own.
    std::path::absolute(base.join(path))
        .map(StoreUrl::Sqlite)
        .map_err(|error| UrlFault::Path {
            path: path.to_owned(),
            why: error.to_string(),
        })
}

fn postgres(text: &str) -> Result<StoreUrl, UrlFault> {
    let url = Url::parse(text).map_err(|error| UrlFault::Syntax {
        why: error.to_string(),
    })?;
    let mut host = url.host_str().is_some_and(|host| !host.is_empty());
    for (name, _) in url.query_pairs() {
        let known = PARAMETERS.contains(&&*name) || name.starts_with("options[");
        if !known {
            return Err(UrlFault::Parameter {
                name: name.chars().take(40).collect(),
            });
        }
        host |= name == "host" || name == "hostaddr";
    }
    if !host {
        return Err(UrlFault::HostMissing);
    }
    Ok(StoreUrl::Postgres(SecretText::from(text.to_owned())))
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("sqlite::memory:"),
            Self::Postgres(secret) => match Url::parse(secret.expose_secret()) {
                Ok(url) => {
                    f.write_str("postgres://")?;
                    if !url.username().is_empty() {
                        write!(f, "{}@", url.username())?;
                    }
                    f.write_str(url.host_str().unwrap_or_default())?;
                    if let Some(port) = url.port() {
                        write!(f, ":{port}")?;
                    }
                    f.write_str(url.path())
                }
                Err(_) => f.write_str("postgres://…"),
            },
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, UrlFault> {
        StoreUrl::parse(text, Path::new("/srv/app")).map(|url| url.to_string())
    }

    #[test]
    fn a_file_is_found_from_the_folder_of_the_configuration() {
        for (text, expected) in [
            ("sqlite:tollhouse.db", "sqlite:/srv/app/tollhouse.db"),
            ("sqlite://tollhouse.db", "sqlite:/srv/app/tollhouse.db"),
            ("sqlite:///var/lib/t.db", "sqlite:/var/lib/t.db"),
            ("sqlite:/var/lib/t.db", "sqlite:/var/lib/t.db"),
            ("sqlite:file:x.db", "sqlite:/srv/app/file:x.db"),
            ("sqlite::memory:", "sqlite::memory:"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
        match StoreUrl::parse("sqlite:x.db", Path::new("conf")) {
            Ok(StoreUrl::Sqlite(path)) => assert!(path.is_absolute(), "{path:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in [
            "postgres://ada:canary-77@db.internal:5433/toll?sslmode=disable",
            "postgres://ada@db.internal:5433/toll?password=canary-77",
        ] {
            let url = StoreUrl::parse(text, Path::new("/")).unwrap();
            assert_eq!(url.to_string(), "postgres://ada@db.internal:5433/toll");
            assert!(!format!("{url:?} {:?}", Some(&url)).contains("canary"));
        }
        for text in [
            "mysql://ada:canary-77@db/x",
            "postgres://ada:canary-77@db:notaport/x",
            "canary-77",
            "postgres://u:canary-77@h/x?pasword=canary-77",
        ] {
            let fault = StoreUrl::parse(text, Path::new("/")).unwrap_err();
            assert!(!format!("{fault} {fault:?}").contains("canary"), "{fault:?}");
        }
    }

    #[test]
    fn what_is_no_place_of_a_database_says_why() {
        let scheme = |found: &str| UrlFault::Scheme {
            found: found.to_owned(),
        };
        for (text, expected) in [
            ("", scheme("no scheme")),
            ("tollhouse.db", scheme("no scheme")),
            ("mysql://x", scheme("`mysql:`")),
            ("sqlite:", UrlFault::FileMissing),
            ("sqlite://", UrlFault::FileMissing),
            (
                "sqlite:x.db?mode=ro",
                UrlFault::FileName {
                    path: "x.db?mode=ro".into(),
                    character: '?',
                },
            ),
            ("postgres:///toll", UrlFault::HostMissing),
            (
                "postgres://h/toll?sslmod=verify-full",
                UrlFault::Parameter {
                    name: "sslmod".into(),
                },
            ),
        ] {
            assert_eq!(shown(text), Err(expected), "{text}");
        }
        assert!(matches!(shown("postgres://[x/y"), Err(UrlFault::Syntax { .. })));
        assert!(shown("postgres:///toll?host=/run/postgresql").is_ok());
    }
}
