//! Judging a token: a JWS in compact form, signed by a configured issuer, for this audience, now.
//!
//! The order is that of RFC 8725: algorithm, issuer, key, signature, then the claims. Key sets and the time are passed
//! in. A token that was verified lately is remembered by its digest, so that the hot path verifies no signature.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use jsonwebtoken::crypto::aws_lc;
use model::{Caller, CallerKey, JsonLimits, Limits, Object, Value};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest as _, Sha256};

use crate::algorithm::Algorithm;
use crate::claims;
use crate::issuer::Issuer;
use crate::key_set::{KeySet, KeySets, Selection};
use crate::principal::{Credential, ISSUER_OF_CONFIGURED, ISSUER_OF_KEYS, Principal};
use crate::unauthenticated::{Unauthenticated, printable};

/// How many verified tokens are remembered. An entry is a few hundred bytes; past it the longest unused goes first.
const REMEMBERED_MAX: u64 = 8_192;

/// How long a verified token is believed without looking at its signature again.
const REMEMBERED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// The issuers whose tokens are accepted, and the tokens that were verified lately.
#[derive(Debug)]
pub struct Tokens {
    issuers: Vec<Issuer>,
    json: JsonLimits,
    /// By the SHA-256 of the token: never the token itself, so that a memory dump of the cache lends nobody a token.
    remembered: Cache<[u8; 32], Arc<Verified>>,
}

/// What a verified token says.
#[derive(Debug)]
struct Verified {
    issuer: usize,
    /// The set that it was verified with. Held, so that no other set can come to lie at the same address.
    set: Arc<KeySet>,
    at: Timestamp,
    expires: Timestamp,
    caller: Arc<Caller>,
    key: CallerKey,
    claims: Arc<Object>,
}

/// A token that was taken apart and not yet believed.
struct Presented<'a> {
    /// Header and payload as they were signed.
    signed: &'a str,
    signature: Vec<u8>,
    algorithm: Algorithm,
    kid: Option<String>,
    claims: Object,
}

// === impl Tokens ===

impl Tokens {
    /// A judge for these issuers. An issuer named `key` or `configuration` is left out: its callers could not be told
    /// from those with API keys or on stdio. The configuration refuses such a name with an error of its own.
    ///
    /// `limits`: `token_bytes_max`, `json_depth_max`.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>, limits: &Limits) -> Self {
        let issuers = issuers
            .into_iter()
            .filter(|issuer| !matches!(issuer.name.as_str(), ISSUER_OF_KEYS | ISSUER_OF_CONFIGURED))
            .collect();
        Self {
            issuers,
            json: JsonLimits {
                bytes_max: limits.token_bytes_max,
                depth_max: limits.json_depth_max,
            },
            remembered: Cache::builder()
                .max_capacity(REMEMBERED_MAX)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }
    }

    /// The issuers.
    #[must_use]
    pub fn issuers(&self) -> &[Issuer] {
        &self.issuers
    }

    /// Judges a token.
    ///
    /// `token`: the text behind `Bearer`, at most `limits.token_bytes_max` bytes; a longer one is not looked at.
    /// A token that was verified with the same key set within the last 60 s and has not ended is not verified again.
    ///
    /// # Errors
    /// [`Unauthenticated`] by cause. On `UnknownKey` the caller may fetch the issuer's key set once more and try again.
    ///
    /// Source: RFC 7515, RFC 7519, RFC 8725, RFC 9068; AUTH-06, SEC-03.
    pub fn verify(
        &self,
        token: &str,
        sets: &dyn KeySets,
        now: Timestamp,
    ) -> Result<Principal, Unauthenticated> {
        if token.len() > self.json.bytes_max {
            return Err(Unauthenticated::TooLong {
                length: token.len(),
                max: self.json.bytes_max,
            });
        }
        let id: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.remembered.get(&id)
            && let Some(issuer) = self.issuers.get(known.issuer)
            && known.is_fresh(issuer, sets, now)
        {
            return Ok(known.principal(issuer));
        }
        let (issuer, verified) = self.judge(token, sets, now)?;
        let verified = Arc::new(verified);
        let principal = verified.principal(issuer);
        self.remembered.insert(id, verified);
        Ok(principal)
    }

    fn judge(
        &self,
        token: &str,
        sets: &dyn KeySets,
        now: Timestamp,
    ) -> Result<(&Issuer, Verified), Unauthenticated> {
        let presented = self.take_apart(token)?;
        let (position, issuer) = self.issuer_of(&presented)?;
        let set = sets
            .key_set(&issuer.name)
            .ok_or_else(|| Unauthenticated::NoKeySet {
                issuer: issuer.name.clone(),
            })?;
        check_signature(&presented, issuer, &set)?;
        let expires = check_times(issuer, &presented.claims, now)?;
        if !claims::audience_fits(&presented.claims, &issuer.audience)? {
            return Err(Unauthenticated::WrongAudience {
                issuer: issuer.name.clone(),
                expected: issuer.audience.clone(),
            });
        }
        let caller = claims::caller(issuer, &presented.claims)?;
        let extra = claims::extra(issuer, &presented.claims)?;
        // Last: a lack of scopes is said of a token that is good in every other way.
        check_scopes(issuer, &presented.claims)?;
        let verified = Verified {
            issuer: position,
            set,
            at: now,
            expires,
            key: caller.key(),
            caller: Arc::new(caller),
            claims: Arc::new(extra),
        };
        Ok((issuer, verified))
    }

    /// Reads header and payload. The algorithm is judged before anything else of the token is read.
    fn take_apart<'a>(&self, token: &'a str) -> Result<Presented<'a>, Unauthenticated> {
        const FORM: Unauthenticated = Unauthenticated::Malformed {
            what: "a token has three parts in base64url with dots between",
        };
        let (signed, signature) = token.rsplit_once('.').ok_or(FORM)?;
        let (header, payload) = signed.split_once('.').ok_or(FORM)?;
        let header = self.object(header)?;
        let (algorithm, kid) = self.header(&header)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| FORM)?;
        let claims = self.object(payload)?;
        Ok(Presented {
            signed,
            signature,
            algorithm,
            kid,
            claims,
        })
    }

    /// Judges the header. Keys that a header brings along or points to (`jwk`, `x5c`, `jku`, `x5u`) are never looked at.
    fn header(&self, header: &Object) -> Result<(Algorithm, Option<String>), Unauthenticated> {
        const KID: Unauthenticated = Unauthenticated::Malformed {
            what: "the `kid` of a token is a text",
        };
        let alg = header
            .get("alg")
            .and_then(Value::as_str)
            .ok_or(Unauthenticated::Malformed {
                what: "the header of a token has `alg`, a text",
            })?;
        let algorithm = alg
            .parse()
            .ok()
            .filter(|algorithm| {
                self.issuers
                    .iter()
                    .any(|issuer| issuer.algorithms.contains(algorithm))
            })
            .ok_or_else(|| Unauthenticated::AlgorithmRefused {
                alg: printable(alg),
                allowed: Vec::new(),
            })?;
        for parameter in ["crit", "b64"] {
            if header.contains_key(parameter) {
                return Err(Unauthenticated::Critical { parameter });
            }
        }
        check_type(header.get("typ"))?;
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err(KID),
        };
        Ok((algorithm, kid))
    }

    fn issuer_of(&self, presented: &Presented<'_>) -> Result<(usize, &Issuer), Unauthenticated> {
        let iss = presented
            .claims
            .get("iss")
            .and_then(Value::as_str)
            .ok_or_else(|| claims::invalid("iss", "a text"))?;
        let (position, issuer) = self
            .issuers
            .iter()
            .enumerate()
            .find(|(_, issuer)| issuer.issuer == iss)
            .ok_or_else(|| Unauthenticated::UnknownIssuer { iss: printable(iss) })?;
        // One issuer's list does not open the door for another's tokens.
        if !issuer.algorithms.contains(&presented.algorithm) {
            return Err(refused_algorithm(presented, issuer));
        }
        Ok((position, issuer))
    }

    fn object(&self, encoded: &str) -> Result<Object, Unauthenticated> {
        const JSON: Unauthenticated = Unauthenticated::Malformed {
            what: "the header and the payload of a token are JSON objects without duplicate keys, in base64url",
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| JSON)?;
        match model::parse(&bytes, self.json) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) | Err(_) => Err(JSON),
        }
    }
}

// === impl Verified ===

impl Verified {
    /// Whether what was found out then still holds: not ended, not old, and the issuer has not changed its keys since.
    fn is_fresh(&self, issuer: &Issuer, sets: &dyn KeySets, now: Timestamp) -> bool {
        let age = now.duration_since(self.at);
        now < self.expires
            // A clock that was set back makes the age negative; then nothing is known of it.
            && !age.is_negative()
            && age < REMEMBERED_FOR
            && sets
                .key_set(&issuer.name)
                .is_some_and(|set| Arc::ptr_eq(&set, &self.set))
    }

    fn principal(&self, issuer: &Issuer) -> Principal {
        Principal {
            caller: Arc::clone(&self.caller),
            key: self.key,
            claims: Arc::clone(&self.claims),
            credential: Credential::Token(issuer.name.clone()),
            expires: Some(self.expires),
        }
    }
}

// === the checks ===

/// An access token says nothing of its type, `JWT`, or `at+jwt` (RFC 9068). Everything else is meant for another
/// purpose, as `dpop+jwt` or `oauth-id-jag+jwt` (RFC 8725 section 3.11).
fn check_type(typ: Option<&Value>) -> Result<(), Unauthenticated> {
    let Some(typ) = typ else { return Ok(()) };
    let text = typ.as_str().unwrap_or("not a text");
    // RFC 7515 section 4.1.9: `application/` may be left out, and media types have no case.
    let short = match text.split_at_checked("application/".len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case("application/") => rest,
        _ => text,
    };
    if short.eq_ignore_ascii_case("JWT") || short.eq_ignore_ascii_case("at+jwt") {
        Ok(())
    } else {
        Err(Unauthenticated::WrongType { typ: printable(text) })
    }
}

fn check_signature(presented: &Presented<'_>, issuer: &Issuer, set: &KeySet) -> Result<(), Unauthenticated> {
    let key = match set.select(presented.kid.as_deref(), presented.algorithm) {
        Selection::Key(key) => key,
        Selection::Unfit => return Err(refused_algorithm(presented, issuer)),
        Selection::Unknown => {
            return Err(Unauthenticated::UnknownKey {
                issuer: issuer.name.clone(),
                kid: presented.kid.as_deref().map(printable),
            });
        }
    };
    // The provider is named here, so that no process-wide default can put another in its place.
    let verifier = (aws_lc::DEFAULT_PROVIDER.verifier_factory)(&presented.algorithm.jose(), key)
        .map_err(|_| refused_algorithm(presented, issuer))?;
    verifier
        .verify(presented.signed.as_bytes(), &presented.signature)
        .map_err(|_| Unauthenticated::BadSignature {
            issuer: issuer.name.clone(),
        })
}

/// Gives the end of the token as it says it, without leeway.
fn check_times(issuer: &Issuer, claims: &Object, now: Timestamp) -> Result<Timestamp, Unauthenticated> {
    let leeway = SignedDuration::try_from(issuer.leeway).unwrap_or(SignedDuration::MAX);
    let expires = claims::time(claims, "exp")?
        .ok_or_else(|| claims::invalid("exp", "the end of the token; one without end is not accepted"))?;
    if expires.checked_add(leeway).unwrap_or(Timestamp::MAX) <= now {
        return Err(Unauthenticated::Expired {
            issuer: issuer.name.clone(),
            at: expires,
        });
    }
    for name in ["nbf", "iat"] {
        if let Some(begins) = claims::time(claims, name)?
            && begins > now.checked_add(leeway).unwrap_or(Timestamp::MAX)
        {
            return Err(Unauthenticated::NotYetValid {
                issuer: issuer.name.clone(),
                at: begins,
            });
        }
    }
    Ok(expires)
}

fn check_scopes(issuer: &Issuer, claims: &Object) -> Result<(), Unauthenticated> {
    if issuer.scopes_required.is_empty() {
        return Ok(());
    }
    let scopes = claims::scopes(claims)?;
    if issuer
        .scopes_required
        .iter()
        .all(|scope| scopes.contains(scope.as_str()))
    {
        Ok(())
    } else {
        Err(Unauthenticated::ScopeMissing {
            scopes: issuer.scopes_required.clone(),
        })
    }
}

fn refused_algorithm(presented: &Presented<'_>, issuer: &Issuer) -> Unauthenticated {
    Unauthenticated::AlgorithmRefused {
        alg: presented.algorithm.as_str().to_owned(),
        allowed: issuer.algorithms.clone(),
    }
}
