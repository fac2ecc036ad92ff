//! The installation's signing key, and the public key by which others check its checkpoints.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use model::{Digest, SecretBytes};
use secrecy::ExposeSecret;
use uuid::Uuid;

/// The key that signs checkpoints. Kept as a named secret of the store, never shown; zeroed when dropped.
pub(crate) struct LedgerKey(SigningKey);

/// The public half: written as `ed25519:` and 43 characters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// A text that is no public key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is no public key; write `ed25519:` and the 43 characters that `tollhouse audit key` shows"
)]
pub struct PublicKeyFault {
    /// The first 80 characters of what was written.
    pub found: String,
}

/// What a checkpoint signs: that this chain has this hash at this place.
fn statement(chain: Uuid, seq: u64, head: &Digest) -> Vec<u8> {
    let mut bytes = b"tollhouse/checkpoint/v1\0".to_vec();
    // Canonical: three plain members in order.
    bytes
        .extend_from_slice(format!("{{\"chain\":\"{chain}\",\"head\":\"{head}\",\"seq\":{seq}}}").as_bytes());
    bytes
}

impl LedgerKey {
    /// The length of the secret, in bytes.
    pub(crate) const BYTES: usize = 32;

    /// `None` where the secret has another length.
    pub(crate) fn new(secret: &SecretBytes) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = secret.expose_secret().as_slice().try_into().ok()?;
        Some(Self(SigningKey::from_bytes(bytes)))
    }

    pub(crate) fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs the head of a chain. In base64url.
    pub(crate) fn sign(&self, chain: Uuid, seq: u64, head: &Digest) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(&statement(chain, seq, head)).to_bytes())
    }
}

impl PublicKey {
    /// Whether `signature` is this key's, over this head of this chain.
    #[must_use]
    pub(crate) fn signed(&self, signature: &str, chain: Uuid, seq: u64, head: &Digest) -> bool {
        let mut bytes = [0; 64];
        // Strict on both layers: one signature has one spelling, and a weak key signs nothing.
        matches!(URL_SAFE_NO_PAD.decode_slice(signature, &mut bytes), Ok(64))
            && self
                .0
                .verify_strict(&statement(chain, seq, head), &Signature::from_bytes(&bytes))
                .is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", URL_SAFE_NO_PAD.encode(self.0.as_bytes()))
    }
}

impl FromStr for PublicKey {
    type Err = PublicKeyFault;
    fn from_str(text: &str) -> Result<Self, PublicKeyFault> {
        let fault = || PublicKeyFault {
            found: text.chars().take(80).collect(),
        };
        let digits = text.strip_prefix("ed25519:").ok_or_else(fault)?;
        let bytes: [u8; 32] = URL_SAFE_NO_PAD
            .decode(digits)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(fault)?;
        VerifyingKey::from_bytes(&bytes).map(Self).map_err(|_| fault())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> LedgerKey {
        LedgerKey::new(&SecretBytes::new(Box::new(vec![byte; 32]))).unwrap()
    }

    #[test]
    fn a_signature_holds_for_exactly_what_was_signed() {
        let (chain, head) = (Uuid::from_u128(1), Digest::of("t", &[b"x"]));
        let signature = key(1).sign(chain, 7, &head);
        let public = key(1).public();
        assert!(public.signed(&signature, chain, 7, &head));
        assert!(!public.signed(&signature, chain, 8, &head));
        assert!(!public.signed(&signature, Uuid::from_u128(2), 7, &head));
        assert!(!public.signed(&signature, chain, 7, &Digest::ZERO));
        assert!(!key(2).public().signed(&signature, chain, 7, &head));
        for other in [
            "",
            "AAAA",
            &signature[1..],
            &format!("{signature}="),
            &format!("{signature}A"),
        ] {
            assert!(!public.signed(other, chain, 7, &head), "{other}");
        }
    }

    #[test]
    fn a_public_key_is_read_back_and_nothing_else_is_one() {
        let public = key(1).public();
        assert_eq!(public.to_string().parse(), Ok(public));
        for text in [
            "",
            "ed25519:",
            "ed25519:AAAA",
            &public.to_string()[8..],
            &format!("{public}="),
        ] {
            assert!(text.parse::<PublicKey>().is_err(), "{text}");
        }
    }
}
