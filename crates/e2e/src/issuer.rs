//! An issuer of access tokens: real keys, real signatures, its key set on a loopback port.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use serde_json::{Value, json};

/// An issuer.
#[derive(Debug)]
pub struct Issuer {
    pub url: String,
    key: Mutex<Key>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    set: Mutex<Value>,
    fetches: AtomicU64,
}

#[derive(Debug)]
struct Key {
    id: String,
    pair: KeyPair,
}

impl Key {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            pair: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
        }
    }

    fn public(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let point = self.pair.der_bytes();
        let (x, y) = point[1..].split_at(32);
        json!({"kty":"EC","crv":"P-256","use":"sig","alg":"ES256","kid":self.id,
            "x":URL_SAFE_NO_PAD.encode(x),"y":URL_SAFE_NO_PAD.encode(y)})
    }
}

impl Issuer {
    pub async fn start() -> Self {
        let key = Key::new("one");
        let shared = Arc::new(Shared {
            set: Mutex::new(json!({"keys":[key.public()]})),
            fetches: AtomicU64::new(0),
        });
        let router = Router::new()
            .route(
                "/jwks.json",
                get(async |State(shared): State<Arc<Shared>>| {
                    shared.fetches.fetch_add(1, Ordering::SeqCst);
                    shared.set.lock().unwrap().to_string()
                }),
            )
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            key: Mutex::new(key),
            shared,
        }
    }

    /// The lines that make a gate trust this issuer.
    pub fn config(&self, name: &str) -> String {
        format!(
            "\n[identity.issuer.{name}]\nissuer = \"{url}\"\nkey_set = \"{url}/jwks.json\"\n\
             claims = {{ subject = \"sub\", tenant = \"org_id\", roles = \"roles\", client = \"azp\", extra = [\"accounts\"] }}\n\
             network = {{ allow = [\"127.0.0.1/32\"] }}\n",
            url = self.url
        )
    }

    /// How often the key set was fetched.
    pub fn fetches(&self) -> u64 {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// Goes on with another key, which the set has from now on.
    pub fn rotate(&self, id: &str) {
        let key = Key::new(id);
        *self.shared.set.lock().unwrap() = json!({"keys":[key.public()]});
        *self.key.lock().unwrap() = key;
    }

    /// Signs a token with these claims, over the usual ones: `iss`, `iat`, and `exp` in an hour.
    pub fn token(&self, claims: Value) -> String {
        let key = self.key.lock().unwrap();
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some(key.id.clone());
        let now = Timestamp::now().as_second();
        let mut all = json!({"iss":self.url,"iat":now,"exp":now + 3_600});
        all.as_object_mut()
            .unwrap()
            .extend(claims.as_object().unwrap().clone());
        let pem = key.pair.serialize_pem();
        jsonwebtoken::encode(&header, &all, &EncodingKey::from_ec_pem(pem.as_bytes()).unwrap()).unwrap()
    }

    /// A token of a member, for this audience.
    pub fn member(&self, audience: &str, subject: &str, tenant: &str) -> String {
        self.token(json!({"aud":audience,"sub":subject,"org_id":tenant,"roles":["member"]}))
    }
}
