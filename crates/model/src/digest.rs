//! SHA-256 digests with a domain tag, so that a digest of one kind of thing can never pass for another's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of nothing at all; stands before the first entry of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Hashes `parts` behind a domain tag: `tag`, a zero byte, then each part as it is.
    ///
    /// The caller makes sure that the concatenation is unambiguous: canonical JSON, or fixed lengths.
    /// Source: `docs/adr/0007-canonical-json.md`.
    #[must_use]
    pub fn of(tag: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(tag.as_bytes());
        hasher.update([0]);
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// A digest that was computed elsewhere (a keyed one, or one that is read back).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hexadecimal digits, for people. Never compare these.
    #[must_use]
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text
            .strip_prefix("sha256:")
            .ok_or("a digest starts with `sha256:`")?;
        if digits.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err("a digest has lower-case hexadecimal digits");
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes)
            .map_err(|_| "a digest has 64 hexadecimal digits behind `sha256:`")?;
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_can_be_recomputed_with_coreutils() {
        // printf 'tag\0body' | sha256sum
        assert_eq!(
            Digest::of("tag", &[b"bo", b"dy"]).to_string(),
            "sha256:452fbeed47d5e243674bf44ce1fd9f116a6d4442d7ef83901ee3c59a068faf92"
        );
    }

    #[test]
    fn another_tag_gives_another_digest() {
        assert_ne!(Digest::of("a", &[b"x"]), Digest::of("b", &[b"x"]));
    }

    #[test]
    fn a_digest_is_read_back_and_a_short_or_shouted_one_is_refused() {
        let digest = Digest::of("t", &[b"x"]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in [
            "",
            "sha256:",
            "sha256:00",
            &digest.to_string().to_uppercase(),
            &digest.to_string()[7..],
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
