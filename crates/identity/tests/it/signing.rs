//! An issuer for the tests: real keys, real signatures, and headers and claims as one likes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::{Algorithm, ClaimMap, Issuer, KeySet, KeySets, Principal, Tokens, Unauthenticated};
use jiff::Timestamp;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm as Jose, EncodingKey};
use model::{IssuerName, Limits};
use serde_json::{Value, json};

pub(crate) const ISS: &str = "https://idp.example.com/realms/corp";
pub(crate) const AUD: &str = "https://mcp.example.com/mcp";
/// The time of the tests, in seconds since 1970.
pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const LEEWAY: i64 = 30;

pub(crate) const RSA: &[u8] = include_bytes!("keys/rsa.pem");
pub(crate) const RSA_OTHER: &[u8] = include_bytes!("keys/rsa_other.pem");
pub(crate) const P256: &[u8] = include_bytes!("keys/p256.pem");
pub(crate) const P384: &[u8] = include_bytes!("keys/p384.pem");
pub(crate) const ED25519: &[u8] = include_bytes!("keys/ed25519.pem");

pub(crate) fn at(offset: i64) -> Timestamp {
    Timestamp::from_second(NOW + offset).unwrap()
}

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A signing key and the name that its algorithm has.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) jose: Jose,
    pub(crate) key: EncodingKey,
}

impl Signer {
    pub(crate) fn new(jose: Jose) -> Self {
        let key = match jose {
            Jose::ES256 => EncodingKey::from_ec_pem(P256),
            Jose::ES384 => EncodingKey::from_ec_pem(P384),
            Jose::EdDSA => EncodingKey::from_ed_pem(ED25519),
            Jose::HS256 | Jose::HS384 | Jose::HS512 => EncodingKey::from_secret(&[7; 64]),
            _ => EncodingKey::from_rsa_pem(RSA),
        };
        Self {
            jose,
            key: key.unwrap(),
        }
    }

    pub(crate) fn other() -> Self {
        Self {
            jose: Jose::RS256,
            key: EncodingKey::from_rsa_pem(RSA_OTHER).unwrap(),
        }
    }

    /// The public key as an entry of a key set.
    pub(crate) fn jwk(&self, kid: Option<&str>) -> Value {
        if let Jose::HS256 | Jose::HS384 | Jose::HS512 = self.jose {
            return json!({"kty": "oct", "k": encoded([7; 64]), "kid": kid.unwrap()});
        }
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.jose).unwrap()).unwrap();
        // The crate writes the algorithm in; most issuers do, some do not.
        let entry = jwk.as_object_mut().unwrap();
        entry.remove("alg");
        match kid {
            Some(kid) => entry.insert("kid".to_owned(), json!(kid)),
            None => entry.remove("kid"),
        };
        jwk
    }

    /// Signs exactly this header and these claims.
    pub(crate) fn sign(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.jose).unwrap();
        format!("{message}.{signature}")
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.sign(
            &json!({"alg": format!("{:?}", self.jose), "kid": "k1", "typ": "at+jwt"}).to_string(),
            &claims.to_string(),
        )
    }
}

/// Good claims, with some replaced; `null` takes one out.
pub(crate) fn claims(changes: Value) -> Value {
    let mut claims = json!({
        "iss": ISS,
        "aud": AUD,
        "sub": "ada",
        "iat": NOW - 10,
        "nbf": NOW - 10,
        "exp": NOW + 300,
        "org": "north",
        "groups": ["member", "on call"],
        "azp": "ide",
        "realm_access": {"roles": ["nested"]},
    });
    let object = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
    claims
}

pub(crate) fn issuer() -> Issuer {
    Issuer {
        name: IssuerName::parse("corp").unwrap(),
        issuer: ISS.to_owned(),
        audience: vec![AUD.to_owned(), "second-name".to_owned()],
        algorithms: vec![
            Algorithm::Rs256,
            Algorithm::Ps256,
            Algorithm::Es256,
            Algorithm::EdDsa,
        ],
        claims: ClaimMap {
            subject: "sub".to_owned(),
            tenant: Some("org".to_owned()),
            roles: Some("groups".to_owned()),
            client: Some("azp".to_owned()),
            extra: Vec::new(),
        },
        leeway: Duration::from_secs(LEEWAY.try_into().unwrap()),
        scopes_required: Vec::new(),
    }
}

/// Key sets in a map that a test can change.
#[derive(Default)]
pub(crate) struct Sets(Mutex<HashMap<String, Arc<KeySet>>>);

impl Sets {
    pub(crate) fn of(issuer: &str, keys: &[Value]) -> Self {
        let sets = Self::default();
        sets.put(issuer, keys);
        sets
    }

    pub(crate) fn put(&self, issuer: &str, keys: &[Value]) {
        let json = json!({ "keys": keys }).to_string();
        let set = KeySet::parse_file(json.as_bytes(), &Limits::default()).unwrap();
        self.0.lock().unwrap().insert(issuer.to_owned(), Arc::new(set));
    }

    pub(crate) fn remove(&self, issuer: &str) {
        self.0.lock().unwrap().remove(issuer);
    }
}

impl KeySets for Sets {
    fn key_set(&self, issuer: &IssuerName) -> Option<Arc<KeySet>> {
        self.0.lock().unwrap().get(issuer.as_str()).cloned()
    }
}

/// One issuer with the RSA key `k1`, and its judge.
pub(crate) struct Desk {
    pub(crate) signer: Signer,
    pub(crate) sets: Sets,
    pub(crate) tokens: Tokens,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with(issuer())
    }

    pub(crate) fn with(issuer: Issuer) -> Self {
        let signer = Signer::new(Jose::RS256);
        Self {
            sets: Sets::of(issuer.name.as_str(), &[signer.jwk(Some("k1"))]),
            signer,
            tokens: Tokens::new(vec![issuer], &Limits::default()),
        }
    }

    pub(crate) fn verify(&self, token: &str) -> Result<Principal, Unauthenticated> {
        self.tokens.verify(token, &self.sets, at(0))
    }

    /// The verdict on a well-signed token with these changes to good claims.
    pub(crate) fn on(&self, changes: Value) -> Result<Principal, Unauthenticated> {
        self.verify(&self.signer.token(&claims(changes)))
    }

    /// The verdict on a well-signed token with this header.
    pub(crate) fn on_header(&self, header: &Value) -> Result<Principal, Unauthenticated> {
        self.verify(
            &self
                .signer
                .sign(&header.to_string(), &claims(json!({})).to_string()),
        )
    }
}
