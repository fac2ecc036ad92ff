//! Keyed digests: they show that two calls named the same thing, and to whoever has no key nothing else.
//!
//! Plain digests would not do: an id has few possible values, and whoever has a list of them has the digests.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use model::SecretBytes;
use secrecy::ExposeSecret;
use sha2::Sha256;

/// The key of all keyed digests of one installation. Kept as a named secret of the store, never shown.
pub(crate) struct DigestKey(
    /// With the key already taken in; each digest starts from a copy.
    Hmac<Sha256>,
);

/// Of what a digest is. It is part of what is digested, so that no digest of one kind equals one of another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DigestKind<'a> {
    /// The canonical arguments of a call.
    Arguments,
    /// The id of a target, with its type.
    Target(&'a str),
    /// The bytes of a result.
    Result,
}

/// HMAC-SHA-256, written as `hmac-sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyedDigest([u8; 32]);

impl DigestKey {
    /// The length of the secret, in bytes.
    pub(crate) const BYTES: usize = 32;

    /// `None` where the secret has another length.
    pub(crate) fn new(secret: &SecretBytes) -> Option<Self> {
        let secret = secret.expose_secret();
        if secret.len() != Self::BYTES {
            return None;
        }
        Hmac::new_from_slice(secret).ok().map(Self)
    }

    pub(crate) fn digest(&self, kind: DigestKind<'_>, bytes: &[u8]) -> KeyedDigest {
        let mut mac = self.0.clone();
        // None of these words has a zero byte, so that they and what follows cannot be read differently.
        match kind {
            DigestKind::Arguments => mac.update(b"tollhouse/arguments/v1\0"),
            DigestKind::Target(target) => {
                mac.update(b"tollhouse/target/v1\0");
                mac.update(target.as_bytes());
                mac.update(b"\0");
            }
            DigestKind::Result => mac.update(b"tollhouse/result/v1\0"),
        }
        mac.update(bytes);
        KeyedDigest(mac.finalize().into_bytes().into())
    }
}

impl fmt::Display for KeyedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        hex::encode_to_slice(self.0, &mut digits).map_err(|_| fmt::Error)?;
        f.write_str("hmac-sha256:")?;
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> DigestKey {
        DigestKey::new(&SecretBytes::new(Box::new(vec![byte; 32]))).unwrap()
    }

    #[test]
    fn a_digest_can_be_recomputed_with_openssl() {
        // printf 'tollhouse/arguments/v1\0{}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:$(printf '07%.0s' {1..32})
        assert_eq!(
            key(7).digest(DigestKind::Arguments, b"{}").to_string(),
            "hmac-sha256:8ed8a4e67362dc4bf06abe9a6243a324bb6607200641ffe6892ccd3236dc15b4"
        );
    }

    #[test]
    fn the_same_thing_has_the_same_digest_and_anything_else_another() {
        let digest = |kind, bytes: &[u8]| key(1).digest(kind, bytes).to_string();
        let all = [
            digest(DigestKind::Arguments, b"x"),
            digest(DigestKind::Result, b"x"),
            digest(DigestKind::Target("Invoice"), b"x"),
            digest(DigestKind::Target("Invoic"), b"ex"),
            digest(DigestKind::Target("Order"), b"x"),
            digest(DigestKind::Arguments, b"y"),
            key(2).digest(DigestKind::Arguments, b"x").to_string(),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{index}");
        }
        assert_eq!(digest(DigestKind::Arguments, b"x"), all[0]);
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        for length in [0, 31, 33] {
            assert!(DigestKey::new(&SecretBytes::new(Box::new(vec![1; length]))).is_none());
        }
    }
}
