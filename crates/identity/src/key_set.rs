//! The public keys of an issuer, read from a JSON Web Key Set. Reading only: fetching and refreshing is not done here.
//!
//! Keys that cannot be used to verify a token here are skipped and counted, because a set may serve other purposes;
//! a set that cannot be read at all is a fault.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use model::{IssuerName, JsonFault, JsonLimits, Limits, Object, Value};

use crate::algorithm::{Algorithm, KeyKind};
use crate::unauthenticated::printable;

/// The smallest and largest RSA keys, in bits (RFC 7518 section 3.3; the verifying library's upper bound).
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Where the key sets of issuers are looked up. The server keeps one that fetches them in the background.
pub trait KeySets: Send + Sync {
    /// The newest key set of this issuer, or `None` if none was ever read. Answers from memory: called on each request.
    ///
    /// A set that did not change is the same `Arc`: another one makes cached tokens be verified afresh.
    fn key_set(&self, issuer: &IssuerName) -> Option<Arc<KeySet>>;
}

/// The keys of one issuer that can verify its tokens.
#[derive(Debug)]
pub struct KeySet {
    /// Invariant: no two keys of one `kid` that would both fit an algorithm.
    keys: Vec<Key>,
    skipped: Vec<SkippedKey>,
}

/// A key of a set that is not used, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedKey {
    /// Its `kid`, made safe to print and cut to 128 characters.
    pub kid: Option<String>,
    /// Why it is not used.
    pub why: &'static str,
}

/// Why a text is no key set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeySetFault {
    /// Not JSON that may pass.
    #[error("the key set is not JSON: {0}")]
    Json(#[from] JsonFault),
    /// JSON of another shape.
    #[error("the key set is no object with an array `keys`; give the URL or file of a JSON Web Key Set")]
    Shape,
    /// Nothing in it can be used.
    #[error("none of the {} keys of the set can verify a token: {}", skipped.len(), reasons(skipped))]
    Empty {
        /// The keys and why each is not used.
        skipped: Vec<SkippedKey>,
    },
}

fn reasons(skipped: &[SkippedKey]) -> String {
    let mut reasons: Vec<_> = skipped.iter().map(|key| key.why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons.join("; ")
}

struct Key {
    kid: Option<String>,
    /// The one algorithm that the key is meant for, where the set says so.
    algorithm: Option<Algorithm>,
    kind: KeyKind,
    decoding: DecodingKey,
}

/// What a set has for a token.
pub(crate) enum Selection<'a> {
    /// The key to verify with.
    Key(&'a DecodingKey),
    /// The named key exists and cannot be used with this algorithm.
    Unfit,
    /// No such key, or more than one that could be meant.
    Unknown,
}

// === impl KeySet ===

impl KeySet {
    /// Reads a key set that was fetched from an issuer. Shared secrets (`oct`) in it are skipped: what is published
    /// is no secret.
    ///
    /// `json`: at most `limits.key_set_bytes_max`, as `{"keys":[{"kty":"RSA","kid":"a","n":"…","e":"AQAB"}]}`.
    ///
    /// # Errors
    /// [`KeySetFault`]; also where no key of the set can be used.
    ///
    /// Source: RFC 7517.
    pub fn parse(json: &[u8], limits: &Limits) -> Result<Self, KeySetFault> {
        Self::read(json, limits, false)
    }

    /// Reads a key set from a file of the operator's, in which shared secrets may stand.
    ///
    /// # Errors
    /// As [`KeySet::parse`].
    pub fn parse_file(json: &[u8], limits: &Limits) -> Result<Self, KeySetFault> {
        Self::read(json, limits, true)
    }

    /// The `kid`s of the keys in use; a key without one is left out.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|key| key.kid.as_deref())
    }

    /// How many keys are in use.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key is in use. Never so for a set that was parsed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys that are not used, and why.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedKey] {
        &self.skipped
    }

    fn read(json: &[u8], limits: &Limits, secrets: bool) -> Result<Self, KeySetFault> {
        let limits = JsonLimits {
            bytes_max: limits.key_set_bytes_max,
            depth_max: limits.json_depth_max,
        };
        let value = model::parse(json, limits)?;
        let entries = value
            .get("keys")
            .and_then(Value::as_array)
            .ok_or(KeySetFault::Shape)?;
        let mut set = Self {
            keys: Vec::new(),
            skipped: Vec::new(),
        };
        for entry in entries {
            match Key::read(entry, secrets).and_then(|key| set.admit(key)) {
                Ok(()) => {}
                Err(why) => set.skipped.push(SkippedKey {
                    kid: entry.get("kid").and_then(Value::as_str).map(printable),
                    why,
                }),
            }
        }
        if set.keys.is_empty() {
            return Err(KeySetFault::Empty { skipped: set.skipped });
        }
        Ok(set)
    }

    fn admit(&mut self, key: Key) -> Result<(), &'static str> {
        if key.kid.is_some() && self.keys.iter().any(|other| other.clashes(&key)) {
            return Err("another key of this kind has the same kid");
        }
        self.keys.push(key);
        Ok(())
    }

    /// The key for a token.
    ///
    /// A `kid` names the key. Where the token has none, or the set's key has none, the key must be the only one of the
    /// set that fits the algorithm: trying several would let whoever holds the weakest one sign for all.
    pub(crate) fn select(&self, kid: Option<&str>, algorithm: Algorithm) -> Selection<'_> {
        if let Some(kid) = kid {
            let mut named = self.keys.iter().filter(|key| key.kid.as_deref() == Some(kid));
            if let Some(first) = named.next() {
                return std::iter::once(first)
                    .chain(named)
                    .find(|key| key.fits(algorithm))
                    .map_or(Selection::Unfit, |key| Selection::Key(&key.decoding));
            }
        }
        let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(only), None) if kid.is_none() || only.kid.is_none() => Selection::Key(&only.decoding),
            _ => Selection::Unknown,
        }
    }
}

// === impl Key ===

impl Key {
    fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|own| own == algorithm) && algorithm.fits(self.kind)
    }

    fn clashes(&self, other: &Self) -> bool {
        self.kid == other.kid && Algorithm::ALL.iter().any(|a| self.fits(*a) && other.fits(*a))
    }

    fn read(entry: &Value, secrets: bool) -> Result<Self, &'static str> {
        let entry = entry.as_object().ok_or("not an object")?;
        let kid = match entry.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err("`kid` is no text"),
        };
        for_signatures(entry)?;
        let algorithm = match entry.get("alg") {
            None => None,
            Some(Value::String(text)) => Some(text.parse().map_err(|_| "`alg` is not known here")?),
            Some(_) => return Err("`alg` is no text"),
        };
        let (kind, decoding) = match text(entry, "kty")? {
            "RSA" => rsa(entry)?,
            "EC" => elliptic(entry)?,
            "OKP" => edwards(entry)?,
            "oct" if secrets => secret(entry)?,
            "oct" => return Err("a shared secret (`oct`) is taken from a file only"),
            _ => return Err("`kty` is not known here"),
        };
        let key = Self {
            kid,
            algorithm,
            kind,
            decoding,
        };
        if Algorithm::ALL.iter().any(|algorithm| key.fits(*algorithm)) {
            Ok(key)
        } else {
            Err("the key does not go with its own `alg`, or is too short")
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key itself: an `oct` key is a secret.
        f.debug_struct("Key")
            .field("kid", &self.kid)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

/// `use` and `key_ops` say what a key is for; where they say something else, it is not taken for signatures.
fn for_signatures(entry: &Object) -> Result<(), &'static str> {
    match entry.get("use") {
        None => {}
        Some(Value::String(purpose)) if purpose == "sig" => {}
        Some(_) => return Err("`use` is not `sig`"),
    }
    match entry.get("key_ops") {
        None => Ok(()),
        Some(Value::Array(operations)) if operations.iter().any(|operation| operation == "verify") => Ok(()),
        Some(_) => Err("`key_ops` does not hold `verify`"),
    }
}

fn rsa(entry: &Object) -> Result<(KeyKind, DecodingKey), &'static str> {
    public(entry)?;
    let modulus = bytes(entry, "n")?;
    let exponent = bytes(entry, "e")?;
    if !RSA_BITS.contains(&bits(&modulus)) {
        return Err("an RSA key has 2048 to 8192 bits");
    }
    // An exponent of 1 would make every text its own signature.
    if bits(&exponent) < 2 || exponent.last().is_none_or(|byte| byte % 2 == 0) {
        return Err("`e` is no exponent of an RSA key");
    }
    Ok((
        KeyKind::Rsa,
        DecodingKey::from_rsa_raw_components(&modulus, &exponent),
    ))
}

fn elliptic(entry: &Object) -> Result<(KeyKind, DecodingKey), &'static str> {
    public(entry)?;
    let (kind, length) = match text(entry, "crv")? {
        "P-256" => (KeyKind::P256, 32),
        "P-384" => (KeyKind::P384, 48),
        _ => return Err("`crv` is not known here"),
    };
    let (x, y) = (bytes(entry, "x")?, bytes(entry, "y")?);
    if x.len() != length || y.len() != length {
        return Err("`x` or `y` has the wrong length");
    }
    // The uncompressed point of SEC 1 section 2.3.3.
    let mut point = Vec::with_capacity(1 + 2 * length);
    point.push(4);
    point.extend_from_slice(&x);
    point.extend_from_slice(&y);
    Ok((kind, DecodingKey::from_ec_der(&point)))
}

fn edwards(entry: &Object) -> Result<(KeyKind, DecodingKey), &'static str> {
    public(entry)?;
    if text(entry, "crv")? != "Ed25519" {
        return Err("`crv` is not known here");
    }
    let x = bytes(entry, "x")?;
    if x.len() != 32 {
        return Err("`x` has the wrong length");
    }
    Ok((KeyKind::Ed25519, DecodingKey::from_ed_der(&x)))
}

fn secret(entry: &Object) -> Result<(KeyKind, DecodingKey), &'static str> {
    let secret = secrecy::zeroize::Zeroizing::new(bytes(entry, "k")?);
    let decoding = DecodingKey::from_secret(&secret).map_err(|_| "`k` is empty")?;
    Ok((KeyKind::Secret(secret.len()), decoding))
}

/// A published private key is no key any more: whoever reads the set can sign with it.
fn public(entry: &Object) -> Result<(), &'static str> {
    if entry.contains_key("d") {
        return Err("the private part (`d`) is published with it");
    }
    Ok(())
}

fn text<'a>(entry: &'a Object, name: &str) -> Result<&'a str, &'static str> {
    entry
        .get(name)
        .and_then(Value::as_str)
        .ok_or("a part of the key is missing or no text")
}

fn bytes(entry: &Object, name: &str) -> Result<Vec<u8>, &'static str> {
    URL_SAFE_NO_PAD
        .decode(text(entry, name)?)
        .map_err(|_| "a part of the key is not base64url")
}

/// The length of a big-endian number in bits, leading zeros left out.
fn bits(number: &[u8]) -> usize {
    let mut significant = number.iter().skip_while(|byte| **byte == 0);
    let Some(first) = significant.next() else {
        return 0;
    };
    let leading: usize = first.leading_zeros().try_into().unwrap_or(8);
    8 - leading + 8 * significant.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn rsa_json(bits: usize, more: &str) -> String {
        let mut modulus = vec![0xff; bits / 8];
        if !bits.is_multiple_of(8) {
            modulus.insert(0, (1 << (bits % 8)) - 1);
        }
        format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"{more}}}"#, encoded(&modulus))
    }

    fn okp_json(seed: u8, more: &str) -> String {
        format!(
            r#"{{"kty":"OKP","crv":"Ed25519","x":"{}"{more}}}"#,
            encoded(&[seed; 32])
        )
    }

    fn parse(keys: &[String]) -> Result<KeySet, KeySetFault> {
        KeySet::parse(
            format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes(),
            &Limits::default(),
        )
    }

    fn why(key: &str) -> &'static str {
        match parse(&[key.to_owned()]) {
            Err(KeySetFault::Empty { skipped }) => skipped[0].why,
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn rsa_keys_are_taken_at_2048_to_8192_bits_and_not_one_bit_off() {
        for bits in [2048, 3072, 4096, 8192] {
            assert!(parse(&[rsa_json(bits, "")]).is_ok(), "{bits}");
        }
        for bits in [512, 1024, 2047, 8193] {
            assert_eq!(
                why(&rsa_json(bits, "")),
                "an RSA key has 2048 to 8192 bits",
                "{bits}"
            );
        }
    }

    #[test]
    fn leading_zeros_do_not_make_a_short_rsa_key_long() {
        let mut modulus = vec![0; 128];
        modulus.extend_from_slice(&[0xff; 128]);
        let key = format!(r#"{{"kty":"RSA","n":"{}","e":"AQAB"}}"#, encoded(&modulus));
        assert_eq!(why(&key), "an RSA key has 2048 to 8192 bits");
    }

    #[test]
    fn keys_that_are_for_something_else_are_skipped_and_counted() {
        let good = okp_json(1, r#","kid":"good","use":"sig","key_ops":["verify"]"#);
        let point = encoded(&[1; 32]);
        let cases = [
            (okp_json(2, r#","use":"enc""#), "`use` is not `sig`"),
            (okp_json(2, r#","use":7"#), "`use` is not `sig`"),
            (
                okp_json(2, r#","key_ops":["encrypt"]"#),
                "`key_ops` does not hold `verify`",
            ),
            (
                okp_json(2, r#","key_ops":"verify""#),
                "`key_ops` does not hold `verify`",
            ),
            (okp_json(2, r#","alg":"RSA-OAEP""#), "`alg` is not known here"),
            (okp_json(2, r#","alg":"none""#), "`alg` is not known here"),
            (
                okp_json(2, r#","alg":"RS256""#),
                "the key does not go with its own `alg`, or is too short",
            ),
            (okp_json(2, r#","kid":7"#), "`kid` is no text"),
            (
                okp_json(2, r#","d":"x""#),
                "the private part (`d`) is published with it",
            ),
            (
                rsa_json(2048, r#","d":"AQ""#),
                "the private part (`d`) is published with it",
            ),
            (
                format!(r#"{{"kty":"EC","crv":"P-521","x":"{point}","y":"{point}"}}"#),
                "`crv` is not known here",
            ),
            (
                format!(r#"{{"kty":"EC","crv":"P-384","x":"{point}","y":"{point}"}}"#),
                "`x` or `y` has the wrong length",
            ),
            (
                format!(r#"{{"kty":"OKP","crv":"X25519","x":"{point}"}}"#),
                "`crv` is not known here",
            ),
            (
                r#"{"kty":"OKP","crv":"Ed25519","x":"AQ"}"#.to_owned(),
                "`x` has the wrong length",
            ),
            (
                r#"{"kty":"OKP","crv":"Ed25519","x":"!"}"#.to_owned(),
                "a part of the key is not base64url",
            ),
            (
                r#"{"kty":"OKP","crv":"Ed25519"}"#.to_owned(),
                "a part of the key is missing or no text",
            ),
            (r#"{"kty":"AKP"}"#.to_owned(), "`kty` is not known here"),
            (r"{}".to_owned(), "a part of the key is missing or no text"),
            ("7".to_owned(), "not an object"),
        ];
        for (key, expected) in &cases {
            assert_eq!(why(key), *expected, "{key}");
            let set = parse(&[key.clone(), good.clone()]).unwrap();
            assert_eq!((set.len(), set.skipped().len()), (1, 1), "{key}");
            assert_eq!(set.key_ids().collect::<Vec<_>>(), ["good"]);
        }
    }

    #[test]
    fn an_exponent_that_verifies_anything_is_refused() {
        let modulus = encoded(&[0xff; 256]);
        for exponent in [&[1_u8][..], &[0], &[], &[1, 0, 0], &[2]] {
            let key = format!(r#"{{"kty":"RSA","n":"{modulus}","e":"{}"}}"#, encoded(exponent));
            assert_eq!(why(&key), "`e` is no exponent of an RSA key", "{exponent:?}");
        }
    }

    #[test]
    fn shared_secrets_are_taken_from_a_file_only_and_only_long_ones() {
        let set = |length: usize, more: &str| {
            format!(
                r#"{{"keys":[{{"kty":"oct","k":"{}"{more}}}]}}"#,
                encoded(&vec![7; length])
            )
        };
        let limits = Limits::default();
        assert!(KeySet::parse(set(64, "").as_bytes(), &limits).is_err());
        assert!(KeySet::parse_file(set(64, "").as_bytes(), &limits).is_ok());
        assert!(KeySet::parse_file(set(32, "").as_bytes(), &limits).is_ok());
        assert!(KeySet::parse_file(set(31, "").as_bytes(), &limits).is_err());
        assert!(KeySet::parse_file(set(0, "").as_bytes(), &limits).is_err());
        assert!(KeySet::parse_file(set(32, r#","alg":"HS512""#).as_bytes(), &limits).is_err());
        assert!(KeySet::parse_file(set(64, r#","alg":"HS512""#).as_bytes(), &limits).is_ok());
    }

    #[test]
    fn a_secret_key_is_never_printed() {
        let json = format!(r#"{{"keys":[{{"kty":"oct","k":"{}"}}]}}"#, encoded(&[7; 32]));
        let set = KeySet::parse_file(json.as_bytes(), &Limits::default()).unwrap();
        let shown = format!("{set:?}");
        assert!(
            !shown.contains(&encoded(&[7; 32])) && !shown.contains("7, 7"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_no_key_set_is_a_fault_and_the_size_is_bounded() {
        let limits = Limits {
            key_set_bytes_max: 1_024,
            ..Limits::default()
        };
        for text in ["[]", "7", "{}", r#"{"keys":{}}"#, r#"{"keys":"x"}"#] {
            assert_eq!(
                KeySet::parse(text.as_bytes(), &limits).err(),
                Some(KeySetFault::Shape),
                "{text}"
            );
        }
        for text in ["", "{", r#"{"keys":[],"keys":[]}"#] {
            assert!(
                matches!(KeySet::parse(text.as_bytes(), &limits), Err(KeySetFault::Json(_))),
                "{text}"
            );
        }
        assert!(matches!(parse(&[]), Err(KeySetFault::Empty { skipped }) if skipped.is_empty()));

        let mut text = format!(r#"{{"keys":[{}]}}"#, okp_json(1, ""));
        text.push_str(&" ".repeat(1_024 - text.len()));
        assert!(KeySet::parse(text.as_bytes(), &limits).is_ok());
        text.push(' ');
        assert!(matches!(
            KeySet::parse(text.as_bytes(), &limits),
            Err(KeySetFault::Json(_))
        ));
    }

    #[test]
    fn a_key_is_selected_by_kid_and_without_one_only_if_there_is_no_choice() {
        let a = okp_json(1, r#","kid":"a""#);
        let b = okp_json(2, r#","kid":"b""#);
        let nameless = okp_json(3, "");
        let other_kind = rsa_json(2048, r#","kid":"r""#);
        let check = |keys: &[&String], kid: Option<&str>, expected: &str| {
            let set = parse(&keys.iter().map(|key| (*key).clone()).collect::<Vec<_>>()).unwrap();
            let found = match set.select(kid, Algorithm::EdDsa) {
                Selection::Key(_) => "key",
                Selection::Unfit => "unfit",
                Selection::Unknown => "unknown",
            };
            assert_eq!(found, expected, "{keys:?} {kid:?}");
        };
        check(&[&a, &b], Some("a"), "key");
        check(&[&a, &b], Some("c"), "unknown");
        check(&[&a, &b], None, "unknown");
        check(&[&a], None, "key");
        check(&[&a, &other_kind], None, "key");
        check(&[&a], Some("c"), "unknown");
        check(&[&nameless], Some("c"), "key");
        check(&[&nameless, &a], Some("c"), "unknown");
        check(&[&nameless, &a], None, "unknown");
        check(&[&nameless, &other_kind], Some("c"), "key");
        check(&[&a, &other_kind], Some("r"), "unfit");
        check(&[&other_kind], None, "unknown");
    }

    #[test]
    fn a_kid_that_stands_twice_means_its_first_key_and_the_second_is_counted() {
        let set = parse(&[
            okp_json(1, r#","kid":"a""#),
            okp_json(2, r#","kid":"a""#),
            rsa_json(2048, r#","kid":"a""#),
        ])
        .unwrap();
        assert_eq!((set.len(), set.skipped().len()), (2, 1));
        assert!(matches!(
            set.select(Some("a"), Algorithm::Rs256),
            Selection::Key(_)
        ));
    }
}
