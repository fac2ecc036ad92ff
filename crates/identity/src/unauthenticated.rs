//! Every way to fail to say who one is: a text for the operator, and static words for the caller.
//!
//! No variant holds any part of a token or key beyond what names it: a key's id, a token's issuer or `kid`.

use jiff::Timestamp;
use model::{CallerName, IssuerName, KeyId};

use crate::algorithm::Algorithm;

/// Why a caller was not authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unauthenticated {
    /// The request holds no credential.
    Missing,
    /// The request holds a credential of another scheme than `Bearer`.
    OtherScheme,
    /// What should be a token or key is none.
    Malformed {
        /// What it should have been.
        what: &'static str,
    },
    /// Longer than is read.
    TooLong {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The token's `iss` is none of the configured issuers.
    UnknownIssuer {
        /// What the token says, made safe to print and cut to 128 characters.
        iss: String,
    },
    /// No key set of this issuer was ever fetched.
    NoKeySet {
        /// The issuer.
        issuer: IssuerName,
    },
    /// The issuer's key set has no key for this token. Fetching the set again, once, may help.
    UnknownKey {
        /// The issuer.
        issuer: IssuerName,
        /// The `kid` of the token, made safe to print and cut to 128 characters; `None` where it has none.
        kid: Option<String>,
    },
    /// The algorithm is unknown, not allowed, or not one that the named key can be used with.
    AlgorithmRefused {
        /// What the token says, made safe to print and cut to 128 characters.
        alg: String,
        /// What would be allowed; empty where the issuer is not known yet.
        allowed: Vec<Algorithm>,
    },
    /// The signature does not fit the key.
    BadSignature {
        /// The issuer.
        issuer: IssuerName,
    },
    /// The token has ended.
    Expired {
        /// The issuer.
        issuer: IssuerName,
        /// When it ended.
        at: Timestamp,
    },
    /// The token begins in the future (`nbf`), or says it was issued there (`iat`).
    NotYetValid {
        /// The issuer.
        issuer: IssuerName,
        /// When it begins.
        at: Timestamp,
    },
    /// The token is for somebody else.
    WrongAudience {
        /// The issuer.
        issuer: IssuerName,
        /// The audiences of this server, of which the token names none.
        expected: Vec<String>,
    },
    /// The `typ` of the token is not that of an access token.
    WrongType {
        /// What the token says, made safe to print and cut to 128 characters.
        typ: String,
    },
    /// The header asks for something that is not understood here (`crit`, `b64`).
    Critical {
        /// The header parameter.
        parameter: &'static str,
    },
    /// A claim is missing or of the wrong type.
    ClaimInvalid {
        /// The claim, as the operator or the RFC names it.
        claim: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The token is good and lacks a scope.
    ScopeMissing {
        /// All scopes that are required, so that the client can ask for them at once.
        scopes: Vec<String>,
    },
    /// No such API key.
    KeyUnknown {
        /// Its id.
        key: KeyId,
    },
    /// The id is known and the secret is wrong.
    KeyMismatch {
        /// Its id.
        key: KeyId,
    },
    /// The key was revoked.
    KeyRevoked {
        /// Its id.
        key: KeyId,
        /// When.
        at: Timestamp,
    },
    /// The key has ended.
    KeyExpired {
        /// Its id.
        key: KeyId,
        /// When.
        at: Timestamp,
    },
    /// The directory of keys could not be refreshed, so that a revoked key could not be told from a good one.
    DirectoryStale,
    /// The key stands for a caller whom the configuration does not have.
    CallerUnknown {
        /// The key.
        key: KeyId,
        /// The caller.
        caller: CallerName,
    },
}

impl Unauthenticated {
    /// The HTTP status of the answer.
    ///
    /// 403 where the token is good and lacks a scope; 503 where this server cannot tell good from bad just now, so
    /// that a client does not throw a good credential away; else 401.
    ///
    /// Source: RFC 6750 section 3.1; MCP 2026-07-28, basic/authorization (AUTH-06, AUTH-17).
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::ScopeMissing { .. } => 403,
            Self::NoKeySet { .. } | Self::DirectoryStale => 503,
            Self::Missing
            | Self::OtherScheme
            | Self::Malformed { .. }
            | Self::TooLong { .. }
            | Self::UnknownIssuer { .. }
            | Self::UnknownKey { .. }
            | Self::AlgorithmRefused { .. }
            | Self::BadSignature { .. }
            | Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::WrongAudience { .. }
            | Self::WrongType { .. }
            | Self::Critical { .. }
            | Self::ClaimInvalid { .. }
            | Self::KeyUnknown { .. }
            | Self::KeyMismatch { .. }
            | Self::KeyRevoked { .. }
            | Self::KeyExpired { .. }
            | Self::CallerUnknown { .. } => 401,
        }
    }

    /// The RFC 6750 pair `error`, `error_description`, for the challenge and the body of the answer.
    ///
    /// `None` where no usable credential was presented at all, and where the fault is this server's: the client then
    /// has nothing to correct. Both texts are static, so that nothing of a token or of the configuration leaks.
    #[must_use]
    pub const fn for_caller(&self) -> Option<(&'static str, &'static str)> {
        const INVALID: &str = "invalid_token";
        match self {
            Self::Missing | Self::OtherScheme | Self::NoKeySet { .. } | Self::DirectoryStale => None,
            Self::ScopeMissing { .. } => Some((
                "insufficient_scope",
                "the access token lacks a scope that is needed here",
            )),
            Self::Expired { .. } | Self::KeyExpired { .. } => Some((INVALID, "the credential has expired")),
            Self::NotYetValid { .. } => Some((INVALID, "the access token is not valid yet")),
            Self::WrongAudience { .. } => Some((INVALID, "the access token is not for this server")),
            Self::WrongType { .. } => Some((INVALID, "the token is not an access token")),
            Self::Malformed { .. } | Self::TooLong { .. } => Some((INVALID, "the credential is malformed")),
            // One text for everything that would tell a stranger which issuers, keys and claims are known here.
            Self::UnknownIssuer { .. }
            | Self::UnknownKey { .. }
            | Self::AlgorithmRefused { .. }
            | Self::BadSignature { .. }
            | Self::Critical { .. }
            | Self::ClaimInvalid { .. }
            | Self::KeyUnknown { .. }
            | Self::KeyMismatch { .. }
            | Self::KeyRevoked { .. }
            | Self::CallerUnknown { .. } => Some((INVALID, "the credential is not accepted")),
        }
    }

    /// What the operator reads. May name an issuer, a `kid`, a claim, a key's id; never a part of a secret.
    #[must_use]
    pub fn for_operator(&self) -> String {
        match self {
            Self::Missing => "no credential; send `Authorization: Bearer` with a token or an API key".to_owned(),
            Self::OtherScheme => {
                "the `Authorization` header is not of the scheme `Bearer`; no other is understood".to_owned()
            }
            Self::Malformed { what } => format!("malformed credential: {what}"),
            Self::TooLong { length, max } => {
                format!("the credential has {length} bytes; at most {max} are read")
            }
            Self::UnknownIssuer { iss } => {
                format!(
                    "the token's issuer `{iss}` is not configured; `issuer` must be the same text, to the last slash"
                )
            }
            Self::NoKeySet { issuer } => {
                format!("there is no key set of issuer `{issuer}` yet; look for why it could not be fetched")
            }
            Self::UnknownKey {
                issuer,
                kid: Some(kid),
            } => {
                format!("issuer `{issuer}` has no usable key with the kid `{kid}`")
            }
            Self::UnknownKey { issuer, kid: None } => {
                format!(
                    "the token of issuer `{issuer}` names no kid, and there is not exactly one key that could be meant"
                )
            }
            Self::AlgorithmRefused { alg, allowed } if allowed.is_empty() => {
                format!("the token is signed with `{alg}`, which no issuer allows")
            }
            Self::AlgorithmRefused { alg, allowed } => {
                let allowed: Vec<_> = allowed.iter().map(|algorithm| algorithm.as_str()).collect();
                format!(
                    "the token is signed with `{alg}`, which does not go with its issuer or key; allowed: {}",
                    allowed.join(", ")
                )
            }
            Self::BadSignature { issuer } => {
                format!("the signature of the token does not fit the key of issuer `{issuer}`")
            }
            Self::Expired { issuer, at } => format!("the token of issuer `{issuer}` ended at {at}"),
            Self::NotYetValid { issuer, at } => {
                format!("the token of issuer `{issuer}` begins at {at}; compare the clocks")
            }
            Self::WrongAudience { issuer, expected } => format!(
                "the token of issuer `{issuer}` is not for this server; its `aud` must hold `{}`",
                expected.join("` or `")
            ),
            Self::WrongType { typ } => {
                format!("the token's `typ` is `{typ}`; only `at+jwt` and `JWT` are access tokens")
            }
            Self::Critical { parameter } => {
                format!("the token's header has `{parameter}`, which is not understood here")
            }
            Self::ClaimInvalid { claim, expected } => {
                format!("the claim `{claim}` is missing or wrong; expected {expected}")
            }
            Self::ScopeMissing { scopes } => {
                format!(
                    "the token lacks a required scope; it needs all of `{}`",
                    scopes.join(" ")
                )
            }
            Self::KeyUnknown { key } => format!("there is no API key `{key}`"),
            Self::KeyMismatch { key } => format!("the secret of API key `{key}` is wrong"),
            Self::KeyRevoked { key, at } => format!("API key `{key}` was revoked at {at}"),
            Self::KeyExpired { key, at } => format!("API key `{key}` expired at {at}"),
            Self::DirectoryStale => {
                "the API keys could not be read again in time, so none is accepted; look for why the store does not answer"
                    .to_owned()
            }
            Self::CallerUnknown { key, caller } => {
                format!("API key `{key}` stands for the caller `{caller}`, whom the configuration does not have")
            }
        }
    }
}

impl std::fmt::Display for Unauthenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.for_operator())
    }
}

impl std::error::Error for Unauthenticated {}

/// A text from a token as it may be printed: cut, and without characters that could forge a log line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(128).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_a_token_cannot_forge_a_log_line() {
        assert_eq!(printable("a\nb\u{1b}[2J\u{202E}"), "a\\nb\\u{1b}[2J\\u{202e}");
        assert_eq!(printable(&"x".repeat(1_000)).len(), 128);
    }
}
