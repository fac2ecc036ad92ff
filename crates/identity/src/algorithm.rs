//! Signature algorithms of tokens, by their JOSE names. `none` is no algorithm here and cannot be written.

use std::fmt;
use std::str::FromStr;

/// An algorithm that a token may be signed with.
///
/// Source: RFC 7518 section 3.1, RFC 8037, RFC 9864 (`Ed25519` as another name of [`Algorithm::EdDsa`], which here is
/// always Ed25519). ES512 is left out: the verifying crate does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// EdDSA with Ed25519.
    EdDsa,
    /// HMAC with SHA-256. Only with a key set that came from a file.
    Hs256,
    /// HMAC with SHA-384. Only with a key set that came from a file.
    Hs384,
    /// HMAC with SHA-512. Only with a key set that came from a file.
    Hs512,
}

/// A text that names no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is no signature algorithm of a token; write one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA, HS256, HS384, HS512"
)]
pub struct AlgorithmFault {
    /// What was written, at most 40 characters of it.
    pub found: String,
}

/// The kinds of key that algorithms need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
    /// A shared secret of this many bytes.
    Secret(usize),
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 12] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
        Self::Hs256,
        Self::Hs384,
        Self::Hs512,
    ];

    /// The JOSE name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
        }
    }

    /// Whether this key can verify signatures of this algorithm.
    pub(crate) fn fits(self, key: KeyKind) -> bool {
        match self {
            Self::Rs256 | Self::Rs384 | Self::Rs512 | Self::Ps256 | Self::Ps384 | Self::Ps512 => {
                key == KeyKind::Rsa
            }
            Self::Es256 => key == KeyKind::P256,
            Self::Es384 => key == KeyKind::P384,
            Self::EdDsa => key == KeyKind::Ed25519,
            // A secret shorter than the hash weakens the signature (RFC 7518 section 3.2).
            Self::Hs256 => matches!(key, KeyKind::Secret(length) if length >= 32),
            Self::Hs384 => matches!(key, KeyKind::Secret(length) if length >= 48),
            Self::Hs512 => matches!(key, KeyKind::Secret(length) if length >= 64),
        }
    }

    /// The same algorithm in the words of the verifying crate.
    pub(crate) const fn jose(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Rs384 => jsonwebtoken::Algorithm::RS384,
            Self::Rs512 => jsonwebtoken::Algorithm::RS512,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Ps384 => jsonwebtoken::Algorithm::PS384,
            Self::Ps512 => jsonwebtoken::Algorithm::PS512,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::Es384 => jsonwebtoken::Algorithm::ES384,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
            Self::Hs256 => jsonwebtoken::Algorithm::HS256,
            Self::Hs384 => jsonwebtoken::Algorithm::HS384,
            Self::Hs512 => jsonwebtoken::Algorithm::HS512,
        }
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmFault;
    fn from_str(text: &str) -> Result<Self, AlgorithmFault> {
        // RFC 9864 gave EdDSA on Ed25519 a name of its own; issuers use either.
        if text == "Ed25519" {
            return Ok(Self::EdDsa);
        }
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.as_str() == text)
            .ok_or_else(|| AlgorithmFault {
                found: text.chars().take(40).flat_map(char::escape_default).collect(),
            })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_read_back_and_none_is_no_algorithm() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.as_str().parse(), Ok(algorithm));
        }
        assert_eq!("Ed25519".parse(), Ok(Algorithm::EdDsa));
        for text in [
            "none", "None", "NONE", "", "rs256", "RS256 ", "ES512", "Ed448", "RSA-OAEP",
        ] {
            assert!(text.parse::<Algorithm>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn no_algorithm_takes_a_key_of_another_kind() {
        let kinds = [
            KeyKind::Rsa,
            KeyKind::P256,
            KeyKind::P384,
            KeyKind::Ed25519,
            KeyKind::Secret(64),
        ];
        for algorithm in Algorithm::ALL {
            let fitting = kinds.iter().filter(|kind| algorithm.fits(**kind)).count();
            assert_eq!(fitting, 1, "{algorithm}");
        }
    }

    #[test]
    fn a_secret_shorter_than_the_hash_is_refused() {
        for (algorithm, length) in [
            (Algorithm::Hs256, 32),
            (Algorithm::Hs384, 48),
            (Algorithm::Hs512, 64),
        ] {
            assert!(algorithm.fits(KeyKind::Secret(length)), "{algorithm}");
            assert!(!algorithm.fits(KeyKind::Secret(length - 1)), "{algorithm}");
        }
    }
}
