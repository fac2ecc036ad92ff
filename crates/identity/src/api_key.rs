//! API keys: making one, its stored record, and judging one that a caller presents.
//!
//! A key is shown once and stored as a digest. Where the records live is the directory's matter ([`KeyDirectory`]).

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use model::{CallerName, Digest, KeyId, SecretText};
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::principal::{ConfiguredCaller, Credential, Principal};
use crate::unauthenticated::Unauthenticated;

/// What every key starts with, so that secret scanners and people can tell one when they see it.
const PREFIX: &str = "th_";

/// The domain tag of the stored digest.
const TAG: &str = "tollhouse/api-key/v1";

/// How many random bytes are a key's secret: beyond guessing, so a fast hash is enough and no salt is needed.
const SECRET_BYTES: usize = 32;

/// The longest text that can be a key: prefix, id, `_`, and 32 bytes as 43 characters.
const TEXT_MAX: usize = PREFIX.len() + KeyId::BYTES_MAX + 1 + 43;

/// A key that was just made.
#[derive(Debug)]
pub struct NewKey {
    /// The key itself, `th_<id>_<43 characters>`. Show it once; it is stored nowhere.
    pub shown: SecretText,
    /// What is stored.
    pub record: KeyRecord,
}

/// What is stored of an API key.
///
/// Shape: `{"id":"9f2c…","hash":"sha256:…","caller":"ci","added":"2026-11-30T10:00:00Z","expires":null,
/// "revoked":null,"note":null}`. It holds no secret: the digest is over 32 random bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The public half, which names the key in lists and in the ledger.
    pub id: KeyId,
    /// SHA-256 over the 32 secret bytes, behind the tag `tollhouse/api-key/v1`.
    pub hash: Digest,
    /// Whom the key stands for.
    pub caller: CallerName,
    /// When it was made.
    pub added: Timestamp,
    /// When it ends by itself; from this moment on it is refused.
    pub expires: Option<Timestamp>,
    /// When it was revoked. Any value refuses the key, also one in the future.
    pub revoked: Option<Timestamp>,
    /// What the operator wrote beside it.
    pub note: Option<String>,
}

/// Where the records of API keys are looked up. The server keeps one that follows the store.
pub trait KeyDirectory: Send + Sync {
    /// The record with this id, and who it stands for. Answers from memory: called on each request.
    fn find(&self, id: &KeyId) -> Lookup;
}

/// What a key directory knows.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The record, and the caller that it stands for.
    Found(Arc<KeyEntry>),
    /// There is a record, but the configuration has no caller of its name any more.
    Orphaned(CallerName),
    /// No such key.
    Absent,
    /// The directory could not be refreshed in time, so that it may not know of a revocation: a no.
    Stale,
}

/// A stored key and who it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyEntry {
    /// What is stored.
    pub record: KeyRecord,
    /// The caller of the name that the record says.
    pub caller: Arc<ConfiguredCaller>,
}

/// Why no key was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes for an API key: {0}")]
    Random(String),
    /// The key would be dead when it is born.
    #[error("the API key would expire at `{expires}`, which is not after now, `{now}`; choose a later time")]
    Expired {
        /// The end that was asked for.
        expires: Timestamp,
        /// The time that was passed in.
        now: Timestamp,
    },
}

/// Makes a key for a caller.
///
/// # Errors
/// [`KeyFault::Random`] where the operating system gives no random bytes; [`KeyFault::Expired`] where `expires` is not
/// after `now`.
pub fn generate_key(
    caller: CallerName,
    now: Timestamp,
    expires: Option<Timestamp>,
) -> Result<NewKey, KeyFault> {
    if let Some(expires) = expires.filter(|expires| *expires <= now) {
        return Err(KeyFault::Expired { expires, now });
    }
    let mut id_bytes = [0; 8];
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    getrandom::fill(&mut id_bytes).map_err(|error| KeyFault::Random(error.to_string()))?;
    getrandom::fill(&mut *secret).map_err(|error| KeyFault::Random(error.to_string()))?;

    let mut id = String::with_capacity(2 * id_bytes.len());
    for byte in id_bytes {
        // Writing to a `String` cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    let id = KeyId::parse(&id).map_err(|fault| KeyFault::Random(fault.to_string()))?;
    let encoded = Zeroizing::new(URL_SAFE_NO_PAD.encode(*secret));
    Ok(NewKey {
        shown: SecretText::from(format!("{PREFIX}{id}_{}", *encoded)),
        record: KeyRecord {
            id,
            hash: digest(&secret),
            caller,
            added: now,
            expires,
            revoked: None,
            note: None,
        },
    })
}

/// Whether a bearer token is meant as an API key: it says nothing on whether it is one.
#[must_use]
pub fn looks_like_key(presented: &str) -> bool {
    presented.starts_with(PREFIX)
}

/// Judges an API key.
///
/// The secret is compared in constant time and before anything else of the record is looked at, so that only the
/// holder of a key can learn that it was revoked or has expired.
///
/// # Errors
/// `Malformed` or `TooLong` where the text is no key; `DirectoryStale`, `KeyUnknown`, `CallerUnknown`, `KeyMismatch`,
/// `KeyRevoked`, `KeyExpired`.
pub fn verify_key(
    presented: &str,
    directory: &dyn KeyDirectory,
    now: Timestamp,
) -> Result<Principal, Unauthenticated> {
    let (id, secret) = read(presented)?;
    // Before the lookup, so that a known id takes no longer than an unknown one.
    let hash = digest(&secret);
    let entry = match directory.find(&id) {
        Lookup::Found(entry) => entry,
        Lookup::Orphaned(caller) => return Err(Unauthenticated::CallerUnknown { key: id, caller }),
        Lookup::Absent => return Err(Unauthenticated::KeyUnknown { key: id }),
        Lookup::Stale => return Err(Unauthenticated::DirectoryStale),
    };
    let record = &entry.record;
    let same_secret = record.hash.as_bytes().ct_eq(hash.as_bytes());
    // A directory that answers with another key's record must not lend it.
    if record.id != id || !bool::from(same_secret) {
        return Err(Unauthenticated::KeyMismatch { key: id });
    }
    if let Some(at) = record.revoked {
        return Err(Unauthenticated::KeyRevoked { key: id, at });
    }
    if let Some(at) = record.expires.filter(|expires| *expires <= now) {
        return Err(Unauthenticated::KeyExpired { key: id, at });
    }
    if entry.caller.name != record.caller {
        return Err(Unauthenticated::CallerUnknown {
            key: id,
            caller: record.caller.clone(),
        });
    }
    Ok(Principal {
        caller: Arc::clone(&entry.caller.caller),
        key: entry.caller.caller.key(),
        claims: Arc::clone(&entry.caller.claims),
        credential: Credential::ApiKey(id),
        expires: record.expires,
    })
}

/// Takes a key apart. The secret may hold `_`, the id may not, so the first `_` behind the prefix ends the id.
fn read(presented: &str) -> Result<(KeyId, Zeroizing<[u8; SECRET_BYTES]>), Unauthenticated> {
    const MALFORMED: Unauthenticated = Unauthenticated::Malformed {
        what: "an API key is `th_`, its id, `_` and 43 characters",
    };
    if presented.len() > TEXT_MAX {
        return Err(Unauthenticated::TooLong {
            length: presented.len(),
            max: TEXT_MAX,
        });
    }
    let (id, encoded) = presented
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('_'))
        .ok_or(MALFORMED)?;
    let id = KeyId::parse(id).map_err(|_| MALFORMED)?;
    let mut secret = Zeroizing::new([0; SECRET_BYTES]);
    // Strict: unused bits in the last character are a fault, so that one key has one spelling.
    match URL_SAFE_NO_PAD.decode_slice(encoded, &mut *secret) {
        Ok(SECRET_BYTES) => Ok((id, secret)),
        Ok(_) | Err(_) => Err(MALFORMED),
    }
}

fn digest(secret: &[u8; SECRET_BYTES]) -> Digest {
    Digest::of(TAG, &[secret])
}
