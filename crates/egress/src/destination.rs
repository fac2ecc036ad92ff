//! A base URL from the configuration, and request targets below it that nothing can lead out of it.
//!
//! The text is read strictly and by hand: URL readers repair what they are given (backslashes, tabs, odd numbers), and
//! a repaired URL is not the one that a reviewer read. Addresses are judged later, in `network`.

use std::str::FromStr;

use http::uri::{Authority, PathAndQuery, Scheme};

use crate::host::{Host, HostFault};

/// The longest base URL that is read, in bytes.
const TEXT_MAX: usize = 2_048;

/// Where requests of one upstream go: scheme, host, port and a base path.
///
/// ```
/// use egress::Destination;
/// let billing = Destination::parse("https://billing.internal:8443/v2/").unwrap();
/// assert_eq!(billing.origin(), "https://billing.internal:8443");
/// assert_eq!(billing.base_path(), "/v2");
/// assert_eq!(billing.uri("/invoices/7?full=1").unwrap(), "https://billing.internal:8443/v2/invoices/7?full=1");
/// assert!(billing.uri("/../admin").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    scheme: Scheme,
    /// Invariant: one spelling per host and port, the scheme's own port left out.
    authority: Authority,
    host: Host,
    port: u16,
    /// Invariant: empty, or `/` and non-empty segments without a slash at the end.
    base_path: String,
}

/// Why a text is no destination. No variant holds more of the text than what is wrong, because the rest may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationFault {
    /// Too long.
    #[error("the destination has {length} bytes; at most {max} are read")]
    Long {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Neither `http://` nor `https://`.
    #[error(
        "the destination does not start with `https://` or `http://`; write https://HOST or https://HOST:PORT/PATH"
    )]
    Scheme,
    /// User name or password in front of the host.
    #[error("the destination holds a user name or password; configure a `credential` instead")]
    Userinfo,
    /// A query.
    #[error("the destination has a query (`?`); a base URL has none")]
    Query,
    /// A fragment.
    #[error("the destination has a fragment (`#`); a base URL has none")]
    Fragment,
    /// The host cannot be used.
    #[error("the host `{host}` of the destination cannot be used: {why}")]
    Host {
        /// The host, made safe to print.
        host: String,
        /// Why.
        why: HostFault,
    },
    /// The port cannot be used.
    #[error("the port `{port}` of the destination is no number from 1 to 65535")]
    Port {
        /// What stands there, made safe to print.
        port: String,
    },
    /// The path cannot be used.
    #[error("the path of the destination cannot be used: {0}")]
    Path(#[from] UriFault),
}

/// Why a path and query are not appended to a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UriFault {
    /// It does not begin as a path or query does.
    #[error("it starts with something else than `/` or `?`")]
    Start,
    /// A character that must be encoded.
    #[error("the character {character:?} at byte {at} must be percent-encoded")]
    Character {
        /// The character.
        character: char,
        /// Its byte offset.
        at: usize,
    },
    /// A percent sign without two hexadecimal digits.
    #[error("the percent sign at byte {at} is not followed by two hexadecimal digits")]
    Encoding {
        /// Its byte offset.
        at: usize,
    },
    /// A segment that leads up, in whatever spelling: `..`, `%2e%2e`, `..%2f`, `..;x`.
    #[error("it has a dot segment, which would lead out of the base path")]
    DotSegment,
    /// Nothing between two slashes.
    #[error("it has an empty segment (`//`)")]
    EmptySegment,
    /// Longer than a request target may be.
    #[error("it is too long for a request target")]
    Long,
    /// The result is not below the base path. A fault of this room.
    #[error("the result is not below the base path")]
    Escaped,
}

impl Destination {
    /// Reads a base URL: `http` or `https`, a host, perhaps a port and a path; no user, no query, no fragment.
    ///
    /// # Errors
    /// [`DestinationFault`]. Odd spellings of IPv4 addresses are refused, not read.
    pub fn parse(text: &str) -> Result<Self, DestinationFault> {
        if text.len() > TEXT_MAX {
            return Err(DestinationFault::Long {
                length: text.len(),
                max: TEXT_MAX,
            });
        }
        let (scheme, rest) = text.split_once("://").ok_or(DestinationFault::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::HTTPS,
            "http" => Scheme::HTTP,
            _ => return Err(DestinationFault::Scheme),
        };
        let (authority, path) = match rest.find(['/', '?', '#', '\\']) {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        // First, so that no other fault can show a password.
        if authority.contains('@') {
            return Err(DestinationFault::Userinfo);
        }
        if path.contains('#') {
            return Err(DestinationFault::Fragment);
        }
        if path.contains('?') {
            return Err(DestinationFault::Query);
        }
        let (host, port) = split_port(authority);
        let host = Host::parse(host).map_err(|why| DestinationFault::Host {
            host: printable(host),
            why,
        })?;
        let own_port = port_of(&scheme);
        let port = match port {
            None => own_port,
            Some(digits) => read_port(digits).ok_or_else(|| DestinationFault::Port {
                port: printable(digits),
            })?,
        };
        let shown = if port == own_port {
            host.to_string()
        } else {
            format!("{host}:{port}")
        };
        let authority = Authority::from_str(&shown).map_err(|_| DestinationFault::Host {
            host: shown,
            why: HostFault::Name,
        })?;
        let base_path = path.strip_suffix('/').unwrap_or(path);
        check_path(base_path)?;
        if base_path.contains("//") || base_path.ends_with('/') {
            return Err(UriFault::EmptySegment.into());
        }
        Ok(Self {
            scheme,
            authority,
            host,
            port,
            base_path: base_path.to_owned(),
        })
    }

    /// Host and port as a `Host` header has them: the scheme's own port is left out.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The path that all requests are below; empty, or `/…` without a slash at the end.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Scheme, host and port, as `https://billing.internal:8443`.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The host: a name in lower case or an address, IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The URI of a request below this destination.
    ///
    /// `path_and_query`: `/…` with or without a query, `?…`, or nothing; every byte outside RFC 3986's path and query
    /// characters percent-encoded. Scheme, host and port are those of the destination whatever it holds, and no
    /// spelling of a dot segment can lead out of the base path.
    ///
    /// # Errors
    /// [`UriFault`].
    pub fn uri(&self, path_and_query: &str) -> Result<http::Uri, UriFault> {
        if !path_and_query.is_empty() && !path_and_query.starts_with(['/', '?']) {
            return Err(UriFault::Start);
        }
        let (path, query) = match path_and_query.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path_and_query, None),
        };
        check_path(path)?;
        if path.starts_with("//") {
            return Err(UriFault::EmptySegment);
        }
        if let Some(query) = query {
            // Offsets count from the beginning of the whole text.
            check_characters(query, path.len() + 1, b"/?")?;
        }
        let mut target = String::with_capacity(self.base_path.len() + path_and_query.len() + 1);
        target.push_str(&self.base_path);
        if path.is_empty() && self.base_path.is_empty() {
            target.push('/');
        }
        target.push_str(path_and_query);

        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_maybe_shared(target).map_err(|_| UriFault::Long)?);
        let uri = http::Uri::from_parts(parts).map_err(|_| UriFault::Long)?;

        // What was just built is looked at once more, because a mistake here would be a hole and not a fault.
        let below = uri.path().strip_prefix(self.base_path.as_str());
        let same_origin = uri.scheme() == Some(&self.scheme)
            && uri.authority().map(Authority::as_str) == Some(self.authority());
        if same_origin && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            Ok(uri)
        } else {
            Err(UriFault::Escaped)
        }
    }
}

/// The destination as it was meant: `https://billing.internal:8443/v2`.
impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.base_path)
    }
}

// === shared with the connector, which reads the same things out of a request ===

/// Host and port of an authority; the colons inside brackets are no port.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

/// A port in decimal digits, not 0.
pub(crate) fn read_port(digits: &str) -> Option<u16> {
    // `parse` would take a plus sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

pub(crate) fn port_of(scheme: &Scheme) -> u16 {
    if *scheme == Scheme::HTTPS { 443 } else { 80 }
}

// === paths ===

/// A path of RFC 3986 without any dot segment, as it stands or as a server might decode it.
fn check_path(path: &str) -> Result<(), UriFault> {
    check_characters(path, 0, b"/")?;
    // Servers and proxies decode before they resolve dots, cut `;parameters` off, and take `\` for a slash.
    let decoded = path
        .to_ascii_lowercase()
        .replace("%2f", "/")
        .replace("%5c", "/")
        .replace("%2e", ".")
        .replace("%3b", ";");
    let is_dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or(segment);
        matches!(name, "." | "..")
    };
    if decoded.split('/').any(is_dots) {
        return Err(UriFault::DotSegment);
    }
    Ok(())
}

/// Only the characters of RFC 3986's `pchar` and `more`.
fn check_characters(text: &str, offset: usize, more: &[u8]) -> Result<(), UriFault> {
    let mut bytes = text.char_indices();
    while let Some((at, character)) = bytes.next() {
        let at = at + offset;
        if character == '%' {
            let mut digit = || bytes.next().is_some_and(|(_, digit)| digit.is_ascii_hexdigit());
            if !(digit() && digit()) {
                return Err(UriFault::Encoding { at });
            }
            continue;
        }
        let fits = character.is_ascii_alphanumeric()
            || "-._~!$&'()*+,;=:@".contains(character)
            || u8::try_from(character).is_ok_and(|byte| more.contains(&byte));
        if !fits {
            return Err(UriFault::Character { character, at });
        }
    }
    Ok(())
}

fn printable(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_destination_is_read_into_its_parts() {
        for (text, shown, port, base) in [
            (
                "https://billing.internal:8443",
                "https://billing.internal:8443",
                8443,
                "",
            ),
            ("https://billing.internal/", "https://billing.internal", 443, ""),
            (
                "HTTPS://Billing.INTERNAL:443/v2/",
                "https://billing.internal/v2",
                443,
                "/v2",
            ),
            ("http://127.0.0.1:80/a/b", "http://127.0.0.1/a/b", 80, "/a/b"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x", 8080, "/x"),
            ("http://[::1]", "http://[::1]", 80, ""),
            (
                "https://h:80/%7Eme/a;v=1",
                "https://h:80/%7Eme/a;v=1",
                80,
                "/%7Eme/a;v=1",
            ),
            ("https://h/...", "https://h/...", 443, "/..."),
        ] {
            let destination = Destination::parse(text).unwrap();
            assert_eq!(destination.to_string(), shown, "{text}");
            assert_eq!(destination.port(), port, "{text}");
            assert_eq!(destination.base_path(), base, "{text}");
            assert_eq!(destination.is_https(), shown.starts_with("https:"), "{text}");
            assert_eq!(
                format!("{}{}", destination.origin(), destination.base_path()),
                shown
            );
            // The usual reader understands the same.
            let url = url::Url::parse(text).unwrap();
            assert_eq!(url.host_str(), Some(destination.host().as_str()), "{text}");
            assert_eq!(url.port_or_known_default(), Some(destination.port()), "{text}");
            assert_eq!(
                url.path().trim_end_matches('/'),
                destination.base_path(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_plain_base_url_is_refused_with_its_reason() {
        let host = |host: &str, why| DestinationFault::Host {
            host: host.to_owned(),
            why,
        };
        let port = |port: &str| DestinationFault::Port {
            port: port.to_owned(),
        };
        let path = DestinationFault::Path;
        for (text, fault) in [
            ("", DestinationFault::Scheme),
            ("billing.internal", DestinationFault::Scheme),
            ("//billing.internal", DestinationFault::Scheme),
            ("ftp://billing.internal", DestinationFault::Scheme),
            ("file:///etc/passwd", DestinationFault::Scheme),
            (" https://h", DestinationFault::Scheme),
            ("https:/h", DestinationFault::Scheme),
            ("https:\\\\h", DestinationFault::Scheme),
            ("https://user@h", DestinationFault::Userinfo),
            ("https://user:secret@h/x", DestinationFault::Userinfo),
            ("https://good.example@evil.example", DestinationFault::Userinfo),
            ("https://h?x=1", DestinationFault::Query),
            ("https://h/a?", DestinationFault::Query),
            ("https://h#x", DestinationFault::Fragment),
            ("https://h/a#", DestinationFault::Fragment),
            ("https://", host("", HostFault::Empty)),
            ("https:///x", host("", HostFault::Empty)),
            ("https://:443", host("", HostFault::Empty)),
            ("https://0x7f.1", host("0x7f.1", HostFault::OddAddress)),
            ("https://2130706433/", host("2130706433", HostFault::OddAddress)),
            ("https://127.0.0.1./", host("127.0.0.1.", HostFault::TrailingDot)),
            ("https://%6c/", host("%6c", HostFault::Encoded)),
            ("https://a b/", host("a b", HostFault::Name)),
            ("https://a\tb/", host("a\\tb", HostFault::Name)),
            ("https://::1/", host(":", HostFault::Name)),
            ("https://h:", port("")),
            ("https://h:0", port("0")),
            ("https://h:65536", port("65536")),
            ("https://h:+80", port("+80")),
            ("https://h:8o", port("8o")),
            ("https://[::1]:x", port("x")),
            (
                "https://h\\x",
                path(UriFault::Character {
                    character: '\\',
                    at: 0,
                }),
            ),
            (
                "https://h/a b",
                path(UriFault::Character {
                    character: ' ',
                    at: 2,
                }),
            ),
            (
                "https://h/\u{fc}",
                path(UriFault::Character {
                    character: '\u{fc}',
                    at: 1,
                }),
            ),
            ("https://h/a%2", path(UriFault::Encoding { at: 2 })),
            ("https://h/a/../b", path(UriFault::DotSegment)),
            ("https://h/a/%2E%2e/", path(UriFault::DotSegment)),
            ("https://h/.", path(UriFault::DotSegment)),
            ("https://h//", path(UriFault::EmptySegment)),
            ("https://h/a//b", path(UriFault::EmptySegment)),
        ] {
            assert_eq!(Destination::parse(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn no_fault_shows_a_password() {
        for text in [
            "https://user:hunter2@h",
            "https://user:hunter2@0x7f.1:99999",
            "https://user:hunter2@h?q#f",
            "ftp://user:hunter2@h",
            "user:hunter2@h",
        ] {
            let fault = Destination::parse(text).unwrap_err();
            assert!(!format!("{fault} {fault:?}").contains("hunter2"), "{fault}");
        }
    }

    #[test]
    fn a_destination_is_read_at_its_greatest_length_and_not_one_byte_past_it() {
        let text = format!("https://h/{}", "a".repeat(TEXT_MAX - 10));
        assert_eq!(text.len(), TEXT_MAX);
        assert!(Destination::parse(&text).is_ok());
        assert!(matches!(
            Destination::parse(&format!("{text}a")),
            Err(DestinationFault::Long {
                length: 2_049,
                max: 2_048
            })
        ));
    }

    #[test]
    fn a_path_is_appended_to_the_base_path() {
        let with_base = Destination::parse("https://h:8443/v2").unwrap();
        let without = Destination::parse("https://h").unwrap();
        for (path, below_base, below_root) in [
            ("", "https://h:8443/v2", "https://h/"),
            ("/", "https://h:8443/v2/", "https://h/"),
            ("/a/b", "https://h:8443/v2/a/b", "https://h/a/b"),
            (
                "/a?x=/..&y=a/b?c",
                "https://h:8443/v2/a?x=/..&y=a/b?c",
                "https://h/a?x=/..&y=a/b?c",
            ),
            ("?x=1", "https://h:8443/v2?x=1", "https://h/?x=1"),
            ("/a%2Fb/...", "https://h:8443/v2/a%2Fb/...", "https://h/a%2Fb/..."),
            ("/a//b", "https://h:8443/v2/a//b", "https://h/a//b"),
            (
                "/http://evil/",
                "https://h:8443/v2/http://evil/",
                "https://h/http://evil/",
            ),
        ] {
            assert_eq!(with_base.uri(path).unwrap().to_string(), below_base, "{path}");
            assert_eq!(without.uri(path).unwrap().to_string(), below_root, "{path}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_base_path() {
        let destination = Destination::parse("https://h/v2").unwrap();
        for path in [
            "/..",
            "/../admin",
            "/a/../../admin",
            "/./a",
            "/a/.",
            "/%2e%2e/admin",
            "/%2E./admin",
            "/.%2e",
            "/..%2fadmin",
            "/a%2F..%2F..%2Fadmin",
            "/..%5cadmin",
            "/..;x=1/admin",
            "/..%3bx/admin",
            "/%2e%2e;/admin",
        ] {
            assert_eq!(destination.uri(path), Err(UriFault::DotSegment), "{path}");
        }
        for (path, fault) in [
            ("admin", UriFault::Start),
            ("@evil.example/", UriFault::Start),
            (":80/", UriFault::Start),
            ("#x", UriFault::Start),
            ("//evil.example/", UriFault::EmptySegment),
            (
                "/a#b",
                UriFault::Character {
                    character: '#',
                    at: 2,
                },
            ),
            (
                "/a b",
                UriFault::Character {
                    character: ' ',
                    at: 2,
                },
            ),
            (
                "/a\r\nX: y",
                UriFault::Character {
                    character: '\r',
                    at: 2,
                },
            ),
            (
                "/a\\..\\b",
                UriFault::Character {
                    character: '\\',
                    at: 2,
                },
            ),
            (
                "/\u{fc}",
                UriFault::Character {
                    character: '\u{fc}',
                    at: 1,
                },
            ),
            (
                "/a?b c",
                UriFault::Character {
                    character: ' ',
                    at: 4,
                },
            ),
            (
                "/a?b#c",
                UriFault::Character {
                    character: '#',
                    at: 4,
                },
            ),
            (
                "/a?x=[1]",
                UriFault::Character {
                    character: '[',
                    at: 5,
                },
            ),
            ("/%", UriFault::Encoding { at: 1 }),
            ("/%2", UriFault::Encoding { at: 1 }),
            ("/%zz", UriFault::Encoding { at: 1 }),
            ("/a?%2", UriFault::Encoding { at: 3 }),
        ] {
            assert_eq!(destination.uri(path), Err(fault), "{path:?}");
        }
        let long = format!("/{}", "a".repeat(70_000));
        assert_eq!(destination.uri(&long), Err(UriFault::Long));
    }

    proptest! {
        #[test]
        fn a_path_of_any_text_keeps_origin_and_base(path in r"[/?#@:%.;\\a-fA-F0-9 \u{e4}-]{0,24}") {
            let destination = Destination::parse("https://h:8443/v2/api").unwrap();
            if let Ok(uri) = destination.uri(&path) {
                prop_assert_eq!(uri.scheme_str(), Some("https"));
                prop_assert_eq!(uri.authority().unwrap().as_str(), "h:8443");
                // The reader that repairs most comes to the same place.
                let url = url::Url::parse(&uri.to_string()).unwrap();
                prop_assert_eq!(url.host_str(), Some("h"));
                prop_assert_eq!(url.port(), Some(8443));
                let rest = url.path().strip_prefix("/v2/api").unwrap();
                prop_assert!(rest.is_empty() || rest.starts_with('/'));
                prop_assert_eq!(url.path(), uri.path());
            }
        }

        #[test]
        fn a_destination_of_any_text_means_the_same_to_the_usual_reader(
            text in r"https?://[a-z0-9.:@%\[\]x\\\u{ff11}-]{0,16}(/[a-z.%2e;]{0,6}){0,3}"
        ) {
            if let Ok(destination) = Destination::parse(&text) {
                let url = url::Url::parse(&text).unwrap();
                prop_assert_eq!(url.host_str().unwrap(), destination.host());
                prop_assert_eq!(url.port_or_known_default(), Some(destination.port()));
                prop_assert_eq!(url.username(), "");
                prop_assert_eq!(url.path().trim_end_matches('/'), destination.base_path());
            }
        }
    }
}
