//! Which of an upstream's credentials the requests of an operation carry: what the document asks for, held against
//! what the operator configured. It knows no secret and attaches nothing; that is `upstream`.

use config::{CredentialSetting, CredentialSettings};
use model::UpstreamName;
use openapi::{Choice, Document, KeyPlace, Means, Requirement, Security};
use serde::Serialize;

/// The credentials that the requests of one operation carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Invariant: each is one that the upstream's configuration has, and no two of them go to the same place.
    needed: Vec<Needed>,
}

/// One credential of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Needed {
    /// The security scheme that it is for; `None`: it is `credential`, which is for every request.
    pub scheme: Option<String>,
    /// The scopes that a token must have.
    pub scopes: Vec<String>,
    /// What it is, for people: never a secret.
    pub kind: &'static str,
}

/// Why an operation cannot be asked with the credentials that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessFault {
    /// No alternative of the requirement is met.
    #[error(
        "no credential meets what the document asks for here: {asked}; {}",
        clearing(.upstream, .missing, *.is_single)
    )]
    Unmet {
        /// The upstream.
        upstream: UpstreamName,
        /// What the document asks for, in words.
        asked: String,
        /// The schemes that are missing, of the alternative that misses the fewest.
        missing: Vec<String>,
        /// Whether there is one `credential` for every request, and it is of another kind.
        is_single: bool,
    },
    /// Something there is no list of requirements.
    #[error("what the document says of security here is no list of requirements; correct the document")]
    Malformed,
    /// Two credentials of one alternative would go to the same place.
    #[error(
        "`{one}` and `{other}` are asked for together and both go to the same place of a request; configure only \
         what another alternative needs, or correct the document"
    )]
    Clash {
        /// A scheme.
        one: String,
        /// Another.
        other: String,
    },
}

/// Why `credentials` of an upstream do not fit its document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeFault {
    /// The document speaks of no such scheme.
    #[error("the document has no security scheme `{scheme}`; it has {}", listed(.known))]
    Unknown {
        /// The name.
        scheme: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The scheme is of another kind, or has another place.
    #[error(
        "the security scheme `{scheme}` is {means}, and this is {kind}; configure what the scheme asks for"
    )]
    Kind {
        /// The name.
        scheme: String,
        /// What the document says that it is.
        means: String,
        /// What the configuration has.
        kind: String,
    },
}

impl SchemeFault {
    /// The scheme, as the configuration names it.
    #[must_use]
    pub fn scheme(&self) -> &str {
        match self {
            Self::Unknown { scheme, .. } | Self::Kind { scheme, .. } => scheme,
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        format!("`{}`", names.join("`, `"))
    }
}

fn clearing(upstream: &UpstreamName, missing: &[String], is_single: bool) -> String {
    let missing = listed(missing);
    if is_single {
        format!(
            "`credential` is of another kind; name one for {missing} in [upstream.{upstream}.credentials] in its place"
        )
    } else {
        format!("name one for {missing} in [upstream.{upstream}.credentials]")
    }
}

// === impl Access ===

impl Access {
    /// The first alternative of a requirement that the configured credentials meet.
    ///
    /// `credential` is for every request, also for those that the document lets through without one; where the document
    /// asks for something, it has to be of that kind. Of `credentials`, only those go out that are asked for.
    ///
    /// # Errors
    /// [`AccessFault`]: the operation cannot be offered.
    pub fn choose(
        upstream: &UpstreamName,
        security: &Security,
        credentials: &CredentialSettings,
    ) -> Result<Self, AccessFault> {
        if security.is_malformed {
            return Err(AccessFault::Malformed);
        }
        let requirements = || security.alternatives.iter().flatten();
        let has = |scheme: &str| match credentials {
            CredentialSettings::None => false,
            CredentialSettings::Every(setting) => requirements()
                .filter(|requirement| requirement.scheme == scheme)
                .all(|requirement| meets(setting, &requirement.means)),
            CredentialSettings::Schemes(all) => all.iter().any(|(name, _)| name == scheme),
        };
        match (security.choose(&has), credentials) {
            (Choice::Missing(missing), _) => Err(AccessFault::Unmet {
                upstream: upstream.clone(),
                asked: in_words(security),
                missing,
                is_single: matches!(credentials, CredentialSettings::Every(_)),
            }),
            (Choice::Nothing, CredentialSettings::Every(setting)) => Ok(Self::every(setting, &[])),
            (Choice::All(all), CredentialSettings::Every(setting)) => Ok(Self::every(setting, all)),
            (Choice::All(all), CredentialSettings::Schemes(settings)) => Self::of_schemes(all, settings),
            (Choice::Nothing | Choice::All(_), _) => Ok(Self { needed: Vec::new() }),
        }
    }

    /// What every request of an upstream carries that has no document: its one `credential`.
    #[must_use]
    pub fn of_every_request(credentials: &CredentialSettings) -> Self {
        match credentials {
            CredentialSettings::Every(setting) => Self::every(setting, &[]),
            // Schemes are names of a document.
            CredentialSettings::None | CredentialSettings::Schemes(_) => Self { needed: Vec::new() },
        }
    }

    fn every(setting: &CredentialSetting, all: &[Requirement]) -> Self {
        let mut scopes: Vec<String> = all.iter().flat_map(|one| one.scopes.iter().cloned()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        Self {
            needed: vec![Needed {
                scheme: None,
                scopes,
                kind: kind(setting),
            }],
        }
    }

    fn of_schemes(
        all: &[Requirement],
        settings: &[(String, CredentialSetting)],
    ) -> Result<Self, AccessFault> {
        let mut needed: Vec<Needed> = Vec::new();
        let mut places: Vec<(Place, &str)> = Vec::new();
        for requirement in all {
            let Some((name, setting)) = settings.iter().find(|(name, _)| *name == requirement.scheme) else {
                continue;
            };
            if let Some(place) = place(setting) {
                if let Some((_, one)) = places.iter().find(|(taken, _)| *taken == place) {
                    return Err(AccessFault::Clash {
                        one: (*one).to_owned(),
                        other: name.clone(),
                    });
                }
                places.push((place, name));
            }
            needed.push(Needed {
                scheme: Some(name.clone()),
                scopes: requirement.scopes.clone(),
                kind: kind(setting),
            });
        }
        Ok(Self { needed })
    }

    /// The credentials, in the order of the document.
    #[must_use]
    pub fn needed(&self) -> &[Needed] {
        &self.needed
    }
}

/// What an operation asks for, in words: `service (a bearer token), or key (a key in the header X-Key)`.
#[must_use]
pub fn in_words(security: &Security) -> String {
    let one = |requirement: &Requirement| {
        let scopes = if requirement.scopes.is_empty() {
            String::new()
        } else {
            format!(", scopes {}", requirement.scopes.join(" "))
        };
        format!(
            "`{}` ({}{scopes})",
            requirement.scheme,
            requirement.means.in_words()
        )
    };
    let alternatives: Vec<String> = security
        .alternatives
        .iter()
        .map(|all| match all.as_slice() {
            [] => "nothing".to_owned(),
            all => all.iter().map(one).collect::<Vec<_>>().join(" with "),
        })
        .collect();
    if alternatives.is_empty() {
        "nothing".to_owned()
    } else {
        alternatives.join(", or ")
    }
}

/// Whether the names under `credentials` are those of the document, and each is of the kind of its scheme.
///
/// A scheme that the document names and does not declare, or whose type is not known here, is the operator's to judge.
#[must_use]
pub fn scheme_faults(document: &Document, credentials: &CredentialSettings) -> Vec<SchemeFault> {
    let CredentialSettings::Schemes(settings) = credentials else {
        return Vec::new();
    };
    let mut known = document.security_schemes();
    for row in document.access() {
        for requirement in row.security.alternatives.into_iter().flatten() {
            if !known.iter().any(|(name, _)| *name == requirement.scheme) && !row.security.is_malformed {
                known.push((requirement.scheme, requirement.means));
            }
        }
    }
    let fault =
        |(name, setting): &(String, CredentialSetting)| match known.iter().find(|(one, _)| one == name) {
            None => Some(SchemeFault::Unknown {
                scheme: name.clone(),
                known: known.iter().map(|(name, _)| name.clone()).collect(),
            }),
            Some((_, Means::Undeclared | Means::Unknown(_) | Means::Http(_))) => None,
            Some((_, means)) if meets(setting, means) => None,
            Some((_, means)) => Some(SchemeFault::Kind {
                scheme: name.clone(),
                means: means.in_words(),
                kind: described(setting),
            }),
        };
    settings.iter().filter_map(fault).collect()
}

/// Whether a credential is of the kind that a scheme asks for. Older documents describe what goes into `Authorization`
/// as a key in that header.
fn meets(setting: &CredentialSetting, means: &Means) -> bool {
    let authorization = matches!(means, Means::ApiKey { place: KeyPlace::Header, name } if name.eq_ignore_ascii_case("authorization"));
    match setting {
        CredentialSetting::Bearer(_) | CredentialSetting::OAuth2(_) => {
            authorization || matches!(means, Means::Bearer | Means::OAuth2(_) | Means::OpenIdConnect(_))
        }
        CredentialSetting::Basic { .. } => authorization || matches!(means, Means::Basic),
        CredentialSetting::KeyHeader { header, .. } => {
            matches!(means, Means::ApiKey { place: KeyPlace::Header, name } if name.eq_ignore_ascii_case(header))
        }
        CredentialSetting::KeyQuery { parameter, .. } => {
            matches!(means, Means::ApiKey { place: KeyPlace::Query, name } if name == parameter)
        }
        CredentialSetting::KeyCookie { cookie, .. } => {
            matches!(means, Means::ApiKey { place: KeyPlace::Cookie, name } if name == cookie)
        }
        CredentialSetting::MutualTls { .. } => matches!(means, Means::MutualTls),
        CredentialSetting::Outside { .. } => true,
    }
}

/// A place in a request.
#[derive(PartialEq, Eq)]
enum Place {
    Header(String),
    Query(String),
    Cookie(String),
    Handshake,
}

fn place(setting: &CredentialSetting) -> Option<Place> {
    match setting {
        CredentialSetting::Bearer(_) | CredentialSetting::OAuth2(_) | CredentialSetting::Basic { .. } => {
            Some(Place::Header("authorization".to_owned()))
        }
        CredentialSetting::KeyHeader { header, .. } => Some(Place::Header(header.to_ascii_lowercase())),
        CredentialSetting::KeyQuery { parameter, .. } => Some(Place::Query(parameter.clone())),
        CredentialSetting::KeyCookie { cookie, .. } => Some(Place::Cookie(cookie.clone())),
        CredentialSetting::MutualTls { .. } => Some(Place::Handshake),
        CredentialSetting::Outside { .. } => None,
    }
}

const fn kind(setting: &CredentialSetting) -> &'static str {
    match setting {
        CredentialSetting::Bearer(_) => "bearer",
        CredentialSetting::Basic { .. } => "basic",
        CredentialSetting::KeyHeader { .. } => "api-key-header",
        CredentialSetting::KeyQuery { .. } => "api-key-query",
        CredentialSetting::KeyCookie { .. } => "api-key-cookie",
        CredentialSetting::OAuth2(_) => "oauth2",
        CredentialSetting::MutualTls { .. } => "mutual-tls",
        CredentialSetting::Outside { .. } => "outside",
    }
}

fn described(setting: &CredentialSetting) -> String {
    match setting {
        CredentialSetting::Bearer(_) => "a bearer token".to_owned(),
        CredentialSetting::Basic { .. } => "a user name and a password".to_owned(),
        CredentialSetting::KeyHeader { header, .. } => format!("a key in the header `{header}`"),
        CredentialSetting::KeyQuery { parameter, .. } => format!("a key in the query `{parameter}`"),
        CredentialSetting::KeyCookie { cookie, .. } => format!("a key in the cookie `{cookie}`"),
        CredentialSetting::OAuth2(_) => "an OAuth 2.0 token".to_owned(),
        CredentialSetting::MutualTls { .. } => "a client certificate".to_owned(),
        CredentialSetting::Outside { .. } => "something outside".to_owned(),
    }
}
