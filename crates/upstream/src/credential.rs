//! The credentials of an upstream: attached last, shown nowhere, and known again when an answer repeats one.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use catalog::Access;
use config::{CredentialSetting, CredentialSettings};
use egress::{Client, ClientCertificate, ClientOptions, EgressFault};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use memchr::memmem::Finder;
use model::{Limits, SecretText};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

use crate::token::{Token, TokenFault, TokenSource};

/// Everything outside RFC 3986 unreserved.
pub(crate) const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Below this many bytes a secret is too short to be looked for: it would be found in honest answers.
const NEEDLE_BYTES_MIN: usize = 6;

/// How requests of one upstream identify themselves.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// Under the name of its scheme; without one, it is for every request.
    all: Vec<(Option<String>, Credential)>,
}

/// One credential.
pub(crate) struct Credential {
    place: Place,
    /// The secret in every spelling that an answer could repeat.
    needles: Needles,
}

enum Place {
    Nowhere,
    Header(HeaderName, HeaderValue),
    Query {
        name: String,
        value: SecretText,
    },
    Cookie {
        name: String,
        value: SecretText,
    },
    Token(Arc<TokenSource>),
    /// In the handshake: by a client of its own.
    Handshake(Client),
}

/// What the credentials of one request need before it can be put together.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Vec<(Arc<TokenSource>, Vec<String>, Arc<Token>)>);

/// Why a credential cannot be used. Names no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// It has a character that a header cannot hold.
    #[error("the credential has a character that a header cannot hold; check what `env:` or `file:` gives")]
    Value,
    /// It has a character that a cookie cannot hold.
    #[error("the credential has a character that a cookie cannot hold; check what `env:` or `file:` gives")]
    Cookie,
    /// The caller's arguments already have something in its place. Which of the two would hold is the service's guess.
    #[error("the request already has `{0}`, which is the place of the credential; hide that argument")]
    Taken(String),
    /// The name of the header is none.
    #[error("`{0}` is not the name of a header")]
    HeaderName(String),
    /// The client that carries it cannot be made: a certificate, key or root that cannot be used.
    #[error("{0}")]
    Client(EgressFault),
}

impl Credentials {
    /// Makes credentials of the settings; the client of a certificate is made from `options`.
    ///
    /// # Errors
    /// [`CredentialFault`], with the scheme of the credential if it has one.
    pub(crate) fn new(
        settings: &CredentialSettings,
        options: &ClientOptions,
        limits: &Limits,
    ) -> Result<Self, (Option<String>, CredentialFault)> {
        let all = match settings {
            CredentialSettings::None => Vec::new(),
            CredentialSettings::Every(setting) => vec![(None, setting)],
            CredentialSettings::Schemes(all) => all
                .iter()
                .map(|(scheme, setting)| (Some(scheme.clone()), setting))
                .collect(),
        };
        let all = all.into_iter().map(
            |(scheme, setting)| match Credential::new(setting, options, limits) {
                Ok(credential) => Ok((scheme, credential)),
                Err(fault) => Err((scheme, fault)),
            },
        );
        Ok(Self {
            all: all.collect::<Result<_, _>>()?,
        })
    }

    /// The credentials of a request with this access, with the scopes that each must have.
    fn of<'c>(&'c self, access: &'c Access) -> impl Iterator<Item = (&'c Credential, &'c [String])> {
        access.needed().iter().filter_map(|needed| {
            let found = self.all.iter().find(|(scheme, _)| *scheme == needed.scheme);
            found.map(|(_, credential)| (credential, needed.scopes.as_slice()))
        })
    }

    /// The client that shows a certificate, if the request needs one.
    pub(crate) fn client<'c>(&'c self, access: &'c Access) -> Option<&'c Client> {
        self.of(access)
            .find_map(|(credential, _)| match &credential.place {
                Place::Handshake(client) => Some(client),
                Place::Nowhere
                | Place::Header(..)
                | Place::Query { .. }
                | Place::Cookie { .. }
                | Place::Token(_) => None,
            })
    }

    /// How many requests left through clients of certificates.
    pub(crate) fn requests(&self) -> u64 {
        let clients = self.all.iter().map(|(_, credential)| match &credential.place {
            Place::Handshake(client) => client.requests(),
            Place::Nowhere
            | Place::Header(..)
            | Place::Query { .. }
            | Place::Cookie { .. }
            | Place::Token(_) => 0,
        });
        clients.sum()
    }

    /// Gets the tokens that a request needs. Dropping the future gets none.
    pub(crate) async fn tokens(&self, access: &Access, deadline: Instant) -> Result<Tokens, TokenFault> {
        let mut tokens = Tokens::default();
        for (credential, scopes) in self.of(access) {
            if let Place::Token(source) = &credential.place {
                let token = source.token(scopes, deadline).await?;
                tokens.0.push((Arc::clone(source), scopes.to_vec(), token));
            }
        }
        Ok(tokens)
    }

    /// Puts the credentials into a request: the last thing that is done to it.
    pub(crate) fn attach(
        &self,
        access: &Access,
        tokens: &Tokens,
        path_and_query: &mut String,
        headers: &mut HeaderMap,
    ) -> Result<(), CredentialFault> {
        for (credential, _) in self.of(access) {
            credential.attach(path_and_query, headers)?;
        }
        for (_, _, token) in &tokens.0 {
            headers.insert(header::AUTHORIZATION, token.authorization.clone());
        }
        Ok(())
    }

    /// Where the credentials of a request go, for people: `header authorization`. Never what they are.
    pub(crate) fn places(&self, access: &Access) -> Option<String> {
        let places: Vec<String> = self
            .of(access)
            .filter_map(|(credential, _)| credential.place())
            .collect();
        (!places.is_empty()).then(|| places.join(", "))
    }

    /// Whether bytes from outside repeat one of the credentials.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        self.all.iter().any(|(_, credential)| credential.is_in(bytes))
    }
}

// === impl Tokens ===

impl Tokens {
    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }

    /// Gives up the tokens of a request that was not taken; says whether there were any.
    pub(crate) fn reject(&self) -> bool {
        for (source, scopes, token) in &self.0 {
            source.reject(scopes, token);
        }
        !self.0.is_empty()
    }
}

// === impl Credential ===

impl Credential {
    fn new(
        setting: &CredentialSetting,
        options: &ClientOptions,
        limits: &Limits,
    ) -> Result<Self, CredentialFault> {
        let (place, needles) = match setting {
            CredentialSetting::Bearer(token) => {
                let token = token.expose_secret();
                let value = sensitive(&format!("Bearer {token}"))?;
                (Place::Header(header::AUTHORIZATION, value), Needles::of(&[token]))
            }
            CredentialSetting::Basic { username, password } => {
                let password = password.expose_secret();
                let pair = STANDARD.encode(format!("{username}:{password}"));
                let value = sensitive(&format!("Basic {pair}"))?;
                (
                    Place::Header(header::AUTHORIZATION, value),
                    Needles::of(&[password, &pair]),
                )
            }
            CredentialSetting::KeyHeader { header, value } => {
                let name = HeaderName::from_bytes(header.as_bytes())
                    .map_err(|_| CredentialFault::HeaderName(header.clone()))?;
                let value = value.expose_secret();
                (Place::Header(name, sensitive(value)?), Needles::of(&[value]))
            }
            CredentialSetting::KeyQuery { parameter, value } => (
                Place::Query {
                    name: parameter.clone(),
                    value: value.clone(),
                },
                Needles::of(&[value.expose_secret()]),
            ),
            CredentialSetting::KeyCookie { cookie, value } => {
                if !value.expose_secret().bytes().all(is_cookie_octet) {
                    return Err(CredentialFault::Cookie);
                }
                (
                    Place::Cookie {
                        name: cookie.clone(),
                        value: value.clone(),
                    },
                    Needles::of(&[value.expose_secret()]),
                )
            }
            // Its source knows its secrets.
            CredentialSetting::OAuth2(settings) => {
                let source = TokenSource::new(settings, limits)?;
                (Place::Token(Arc::new(source)), Needles::default())
            }
            CredentialSetting::MutualTls { certificate, key } => {
                let mut options = options.clone();
                options.certificate = Some(ClientCertificate {
                    certificate_pem: certificate.bytes.clone(),
                    key_pem: key.clone(),
                });
                let client = Client::new(options).map_err(CredentialFault::Client)?;
                (Place::Handshake(client), Needles::of_pem(key.expose_secret()))
            }
            CredentialSetting::Outside { .. } => (Place::Nowhere, Needles::default()),
        };
        Ok(Self { place, needles })
    }

    fn attach(&self, path_and_query: &mut String, headers: &mut HeaderMap) -> Result<(), CredentialFault> {
        match &self.place {
            Place::Nowhere | Place::Token(_) | Place::Handshake(_) => {}
            Place::Header(name, value) => {
                headers.insert(name.clone(), value.clone());
            }
            Place::Query { name, value } => {
                let query = path_and_query.split_once('?').map_or("", |(_, query)| query);
                if has_pair(query, '&', &utf8_percent_encode(name, STRICT).to_string()) {
                    return Err(CredentialFault::Taken(name.clone()));
                }
                let separator = if path_and_query.contains('?') { '&' } else { '?' };
                path_and_query.push(separator);
                path_and_query.extend(utf8_percent_encode(name, STRICT));
                path_and_query.push('=');
                path_and_query.extend(utf8_percent_encode(value.expose_secret(), STRICT));
            }
            Place::Cookie { name, value } => {
                // One header holds all cookies (RFC 6265 section 5.4).
                let others = headers
                    .get(header::COOKIE)
                    .map(|others| others.as_bytes().to_vec());
                let written = others.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                if has_pair(&written, ';', name) {
                    return Err(CredentialFault::Taken(name.clone()));
                }
                let mut cookies = others.map_or_else(Vec::new, |mut others| {
                    others.extend_from_slice(b"; ");
                    others
                });
                cookies.extend_from_slice(name.as_bytes());
                cookies.push(b'=');
                cookies.extend_from_slice(value.expose_secret().as_bytes());
                let mut cookies = HeaderValue::from_bytes(&cookies).map_err(|_| CredentialFault::Cookie)?;
                cookies.set_sensitive(true);
                headers.insert(header::COOKIE, cookies);
            }
        }
        Ok(())
    }

    /// Where the credential goes, for people: `header authorization`. Never what it is.
    fn place(&self) -> Option<String> {
        match &self.place {
            Place::Nowhere => None,
            Place::Header(name, _) => Some(format!("header {name}")),
            Place::Query { name, .. } => Some(format!("query {name}")),
            Place::Cookie { name, .. } => Some(format!("cookie {name}")),
            Place::Token(_) => Some("header authorization (a token)".to_owned()),
            Place::Handshake(_) => Some("client certificate".to_owned()),
        }
    }

    /// Whether bytes from outside repeat the credential: as it is, percent-encoded, in hexadecimal, or in Base64, also as
    /// a part of something longer.
    ///
    /// A credential shorter than six bytes is not looked for. Nothing finds one that a service hides on purpose.
    fn is_in(&self, bytes: &[u8]) -> bool {
        let token = match &self.place {
            Place::Token(source) => source.is_in(bytes),
            Place::Nowhere
            | Place::Header(..)
            | Place::Query { .. }
            | Place::Cookie { .. }
            | Place::Handshake(_) => false,
        };
        token || self.needles.are_in(bytes)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Credential({})",
            self.place().unwrap_or_else(|| "none".to_owned())
        )
    }
}

/// Whether one of the pairs of a query or of cookies has this name.
fn has_pair(pairs: &str, separator: char, name: &str) -> bool {
    pairs
        .split(separator)
        .filter_map(|pair| pair.trim().split('=').next())
        .any(|found| found == name)
}

/// RFC 6265 section 4.1.1.
const fn is_cookie_octet(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x2B | 0x2D..=0x3A | 0x3C..=0x5B | 0x5D..=0x7E)
}

pub(crate) fn sensitive(text: &str) -> Result<HeaderValue, CredentialFault> {
    let mut value = HeaderValue::from_str(text).map_err(|_| CredentialFault::Value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Secrets, in every spelling that an answer could repeat.
#[derive(Default)]
pub(crate) struct Needles(Vec<Finder<'static>>);

impl Needles {
    pub(crate) fn of(secrets: &[&str]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for secret in secrets {
            texts.push((*secret).to_owned());
            texts.push(utf8_percent_encode(secret, STRICT).to_string());
            texts.push(utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string());
            for spell in [
                |byte: u8| format!("%{byte:02X}"),
                |byte| format!("{byte:02x}"),
                |byte| format!("{byte:02X}"),
            ] {
                texts.push(secret.bytes().map(spell).collect());
            }
            texts.extend(base64_parts(secret));
        }
        Self::find(texts)
    }

    /// A key in PEM is known by each of its lines, whatever stands between them.
    pub(crate) fn of_pem(pem: &str) -> Self {
        const LINES_MAX: usize = 128;
        let lines = pem
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("-----"));
        Self::find(lines.take(LINES_MAX).map(str::to_owned).collect())
    }

    fn find(mut texts: Vec<String>) -> Self {
        texts.retain(|text| text.len() >= NEEDLE_BYTES_MIN);
        texts.sort_unstable();
        texts.dedup();
        let finders = texts.iter().map(|text| Finder::new(text.as_bytes()).into_owned());
        Self(finders.collect())
    }

    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|needle| needle.find(bytes).is_some())
    }
}

/// What is certain of the Base64 of something that has the secret in it: three bytes become four characters, so that it
/// depends on where the secret begins, and its first and last characters may be shared with what stands around it.
fn base64_parts(secret: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for (before, shared) in [("", 0), ("-", 2), ("--", 3)] {
        let bytes = format!("{before}{secret}");
        // Six bits a character: those that only the secret decides.
        let certain = bytes.len() * 8 / 6;
        for encoded in [STANDARD.encode(&bytes), URL_SAFE.encode(&bytes)] {
            parts.extend(encoded.get(shared..certain).map(str::to_owned));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(setting: &CredentialSetting) -> Result<Credential, CredentialFault> {
        let options = ClientOptions::new(egress::Network::allowing(Vec::new()), &Limits::default());
        Credential::new(setting, &options, &Limits::default())
    }

    fn bearer() -> Credential {
        credential(&CredentialSetting::Bearer(SecretText::from(
            "canary/77+x".to_owned(),
        )))
        .unwrap()
    }

    fn attached(setting: &CredentialSetting, target: &str) -> (String, HeaderMap) {
        let mut target = target.to_owned();
        let mut headers = HeaderMap::new();
        headers.insert("cookie", HeaderValue::from_static("theme=dark"));
        credential(setting)
            .unwrap()
            .attach(&mut target, &mut headers)
            .unwrap();
        (target, headers)
    }

    #[test]
    fn each_kind_is_attached_in_its_place() {
        let secret = || SecretText::from("s3cret&x=1".to_owned());
        let (target, headers) = attached(&CredentialSetting::Bearer(secret()), "/a");
        assert_eq!(
            (target.as_str(), headers["authorization"].to_str().unwrap()),
            ("/a", "Bearer s3cret&x=1")
        );
        let basic = CredentialSetting::Basic {
            username: "u".into(),
            password: secret(),
        };
        assert_eq!(
            attached(&basic, "/a").1["authorization"].to_str().unwrap(),
            "Basic dTpzM2NyZXQmeD0x"
        );
        let header = CredentialSetting::KeyHeader {
            header: "X-API-Key".into(),
            value: secret(),
        };
        assert_eq!(
            attached(&header, "/a").1["x-api-key"].to_str().unwrap(),
            "s3cret&x=1"
        );
        let query = CredentialSetting::KeyQuery {
            parameter: "key".into(),
            value: secret(),
        };
        assert_eq!(attached(&query, "/a").0, "/a?key=s3cret%26x%3D1");
        assert_eq!(attached(&query, "/a?b=1").0, "/a?b=1&key=s3cret%26x%3D1");
        let cookie = CredentialSetting::KeyCookie {
            cookie: "session".into(),
            value: secret(),
        };
        assert_eq!(
            attached(&cookie, "/a").1["cookie"].to_str().unwrap(),
            "theme=dark; session=s3cret&x=1"
        );
    }

    #[test]
    fn a_place_that_an_argument_has_taken_is_not_shared() {
        let value = || SecretText::from("s3cret".to_owned());
        let query = credential(&CredentialSetting::KeyQuery {
            parameter: "key".into(),
            value: value(),
        })
        .unwrap();
        for (target, taken) in [
            ("/a?key=mine", true),
            ("/a?b=1&key=mine", true),
            ("/a?key", true),
            ("/a?monkey=1", false),
            ("/key=1?b=key", false),
        ] {
            let attached = query.attach(&mut target.to_owned(), &mut HeaderMap::new());
            assert_eq!(attached.is_err(), taken, "{target}");
        }
        let cookie = credential(&CredentialSetting::KeyCookie {
            cookie: "key".into(),
            value: value(),
        })
        .unwrap();
        for (cookies, taken) in [("a=1; key=mine", true), ("a=key; monkey=1", false)] {
            let mut headers = HeaderMap::new();
            headers.insert("cookie", HeaderValue::from_static(cookies));
            let attached = cookie.attach(&mut String::from("/"), &mut headers);
            assert_eq!(attached.is_err(), taken, "{cookies}");
        }
    }

    #[test]
    fn a_credential_is_known_again_in_every_spelling_and_never_printed() {
        let credential = bearer();
        for text in [
            "x canary/77+x y",
            "canary%2F77%2Bx",
            "%63%61%6E%61%72%79%2F%37%37%2B%78",
            "63616e6172792f37372b78",
            "63616E6172792F37372B78",
            "Y2FuYXJ5Lzc3K3g",
        ] {
            assert!(credential.is_in(text.as_bytes()), "{text}");
        }
        // Wherever in something longer it begins and ends.
        for before in ["", "a", "ab", "abc", "abcd"] {
            for after in ["", "x", "xy", "xyz"] {
                let whole = format!("{before}canary/77+x{after}");
                for text in [STANDARD.encode(&whole), URL_SAFE.encode(&whole)] {
                    assert!(credential.is_in(text.as_bytes()), "{whole}: {text}");
                }
            }
        }
        assert!(!credential.is_in(b"canary/77"));
        assert_eq!(format!("{credential:?}"), "Credential(header authorization)");
    }

    #[test]
    fn a_secret_too_short_to_look_for_is_not_found_in_honest_answers() {
        let setting = CredentialSetting::Bearer(SecretText::from("abc12".to_owned()));
        assert!(!credential(&setting).unwrap().is_in(b"abc12"));
    }

    #[test]
    fn a_secret_that_would_split_a_header_is_refused() {
        let setting = CredentialSetting::Bearer(SecretText::from("a\r\nX-Evil: 1".to_owned()));
        let fault = credential(&setting).unwrap_err();
        assert_eq!(fault, CredentialFault::Value);
        assert!(!fault.to_string().contains("Evil"));
        for value in ["a;b", "a,b", "a b", "a\"b", "a\\b", "ü"] {
            let setting = CredentialSetting::KeyCookie {
                cookie: "c".into(),
                value: SecretText::from(value.to_owned()),
            };
            assert_eq!(
                credential(&setting).unwrap_err(),
                CredentialFault::Cookie,
                "{value}"
            );
        }
    }

    #[test]
    fn a_private_key_is_known_again_by_any_of_its_lines() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIFirst\nSecondLine9x=\n-----END PRIVATE KEY-----\n";
        let needles = Needles::of_pem(pem);
        assert!(needles.are_in(b"{\"key\":\"MC4CAQAwBQYDK2VwBCIEIFirst\\nSecond\"}"));
        assert!(needles.are_in(b"SecondLine9x="));
        assert!(!needles.are_in(b"-----BEGIN PRIVATE KEY-----"));
    }
}
