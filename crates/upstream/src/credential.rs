//! The credential of an upstream: attached last, shown nowhere, and known again when an answer repeats it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use config::CredentialSetting;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use memchr::memmem::Finder;
use model::SecretText;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::ExposeSecret as _;

/// Everything outside RFC 3986 unreserved.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Below this many bytes a secret is too short to be looked for: it would be found in honest answers.
const NEEDLE_BYTES_MIN: usize = 6;

/// How requests of one upstream identify themselves.
pub struct Credential {
    place: Place,
    /// The secret in every spelling that an answer could repeat.
    needles: Vec<Finder<'static>>,
}

enum Place {
    Nowhere,
    Header(HeaderName, HeaderValue),
    Query { name: String, value: SecretText },
}

/// Why a credential cannot be used. Names no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialFault {
    /// It has a character that a header cannot hold.
    #[error("the credential has a character that a header cannot hold; check what `env:` or `file:` gives")]
    Value,
    /// The name of the header is none.
    #[error("`{0}` is not the name of a header")]
    HeaderName(String),
}

impl Credential {
    /// Makes a credential of a setting.
    ///
    /// # Errors
    /// [`CredentialFault`].
    pub fn new(setting: Option<&CredentialSetting>) -> Result<Self, CredentialFault> {
        let Some(setting) = setting else {
            return Ok(Self {
                place: Place::Nowhere,
                needles: Vec::new(),
            });
        };
        match setting {
            CredentialSetting::Bearer(token) => {
                let token = token.expose_secret();
                let value = sensitive(&format!("Bearer {token}"))?;
                Ok(Self {
                    place: Place::Header(header::AUTHORIZATION, value),
                    needles: needles(&[token]),
                })
            }
            CredentialSetting::Basic { username, password } => {
                let password = password.expose_secret();
                let pair = STANDARD.encode(format!("{username}:{password}"));
                let value = sensitive(&format!("Basic {pair}"))?;
                Ok(Self {
                    place: Place::Header(header::AUTHORIZATION, value),
                    needles: needles(&[password, &pair]),
                })
            }
            CredentialSetting::KeyHeader { header, value } => {
                let name = HeaderName::from_bytes(header.as_bytes())
                    .map_err(|_| CredentialFault::HeaderName(header.clone()))?;
                let value = value.expose_secret();
                Ok(Self {
                    place: Place::Header(name, sensitive(value)?),
                    needles: needles(&[value]),
                })
            }
            CredentialSetting::KeyQuery { parameter, value } => Ok(Self {
                needles: needles(&[value.expose_secret()]),
                place: Place::Query {
                    name: parameter.clone(),
                    value: value.clone(),
                },
            }),
        }
    }

    /// Puts the credential into a request: the last thing that is done to it.
    pub(crate) fn attach(&self, path_and_query: &mut String, headers: &mut HeaderMap) {
        match &self.place {
            Place::Nowhere => {}
            Place::Header(name, value) => {
                headers.insert(name.clone(), value.clone());
            }
            Place::Query { name, value } => {
                let separator = if path_and_query.contains('?') { '&' } else { '?' };
                path_and_query.push(separator);
                path_and_query.extend(utf8_percent_encode(name, STRICT));
                path_and_query.push('=');
                path_and_query.extend(utf8_percent_encode(value.expose_secret(), STRICT));
            }
        }
    }

    /// Where the credential goes, for people: `header authorization`. Never what it is.
    pub(crate) fn place(&self) -> Option<String> {
        match &self.place {
            Place::Nowhere => None,
            Place::Header(name, _) => Some(format!("header {name}")),
            Place::Query { name, .. } => Some(format!("query {name}")),
        }
    }

    /// Whether bytes from outside repeat the credential: as it is, percent-encoded, in hexadecimal, or in Base64, also as
    /// a part of something longer.
    ///
    /// A credential shorter than six bytes is not looked for. Nothing finds one that a service hides on purpose.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.needles.iter().any(|needle| needle.find(bytes).is_some())
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

fn sensitive(text: &str) -> Result<HeaderValue, CredentialFault> {
    let mut value = HeaderValue::from_str(text).map_err(|_| CredentialFault::Value)?;
    value.set_sensitive(true);
    Ok(value)
}

fn needles(secrets: &[&str]) -> Vec<Finder<'static>> {
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
    texts.retain(|text| text.len() >= NEEDLE_BYTES_MIN);
    texts.sort_unstable();
    texts.dedup();
    texts
        .iter()
        .map(|text| Finder::new(text.as_bytes()).into_owned())
        .collect()
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

    fn bearer() -> Credential {
        Credential::new(Some(&CredentialSetting::Bearer(SecretText::from(
            "canary/77+x".to_owned(),
        ))))
        .unwrap()
    }

    fn attached(setting: &CredentialSetting, target: &str) -> (String, HeaderMap) {
        let mut target = target.to_owned();
        let mut headers = HeaderMap::new();
        Credential::new(Some(setting))
            .unwrap()
            .attach(&mut target, &mut headers);
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
        assert!(!Credential::new(Some(&setting)).unwrap().is_in(b"abc12"));
    }

    #[test]
    fn a_secret_that_would_split_a_header_is_refused() {
        let setting = CredentialSetting::Bearer(SecretText::from("a\r\nX-Evil: 1".to_owned()));
        let fault = Credential::new(Some(&setting)).unwrap_err();
        assert_eq!(fault, CredentialFault::Value);
        assert!(!fault.to_string().contains("Evil"));
    }
}
