//! An issuer of access tokens: real keys, real signatures, its key set on a loopback port.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use serde_json::{Value, json};

/// An issuer.
#[derive(Debug)]
pub struct Issuer {
    pub url: String,
    key: Mutex<Key>,
    shared: Arc<Shared>,
}

struct Shared {
    set: Mutex<Value>,
    fetches: AtomicU64,
    /// What is answered instead of the set.
    script: Mutex<Option<Script>>,
    /// When closed, answers wait.
    gate: tokio::sync::watch::Sender<bool>,
}

type Script = Arc<dyn Fn() -> Response + Send + Sync>;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("fetches", &self.fetches)
            .finish_non_exhaustive()
    }
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
            script: Mutex::new(None),
            gate: tokio::sync::watch::Sender::new(true),
        });
        let router = Router::new()
            .route("/jwks.json", get(key_set))
            // Where a redirect of a test leads.
            .route("/moved.json", get(key_set))
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

    /// The `kid` of the key that it signs with.
    pub fn kid(&self) -> String {
        self.key.lock().unwrap().id.clone()
    }

    /// The public key as PEM and as the bytes of its point: what an attacker knows.
    pub fn public_key(&self) -> (String, Vec<u8>) {
        let key = self.key.lock().unwrap();
        (key.pair.public_key_pem(), key.pair.der_bytes().to_vec())
    }

    /// Answers by a script instead of with the key set.
    pub fn script(&self, script: impl Fn() -> Response + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Some(Arc::new(script));
    }

    /// Answers with the key set again.
    pub fn recover(&self) {
        *self.shared.script.lock().unwrap() = None;
    }

    /// Lets answers wait until [`Issuer::let_go`].
    pub fn hold(&self) {
        self.shared.gate.send_replace(false);
    }

    pub fn let_go(&self) {
        self.shared.gate.send_replace(true);
    }

    /// The claims of a token, over the usual ones: `iss`, `iat`, and `exp` in an hour. A claim that is null is left out.
    pub fn claims(&self, claims: Value) -> Value {
        let now = Timestamp::now().as_second();
        let mut all = json!({"iss":self.url,"iat":now,"exp":now + 3_600});
        let object = all.as_object_mut().unwrap();
        object.extend(claims.as_object().unwrap().clone());
        object.retain(|_, value| !value.is_null());
        all
    }

    /// Signs a token with these claims over the usual ones.
    pub fn token(&self, claims: Value) -> String {
        self.signed(
            &json!({"alg":"ES256","typ":"JWT","kid":self.kid()}),
            &self.claims(claims),
        )
    }

    /// Signs exactly this header and these claims, whatever the header says.
    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        self.signed_text(&header.to_string(), &claims.to_string())
    }

    /// Signs exactly these texts, whether they are JSON or not.
    pub fn signed_text(&self, header: &str, claims: &str) -> String {
        let message = unsigned(header, claims);
        let pem = self.key.lock().unwrap().pair.serialize_pem();
        let key = EncodingKey::from_ec_pem(pem.as_bytes()).unwrap();
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, Algorithm::ES256).unwrap();
        format!("{message}.{signature}")
    }

    /// A token of a member, for this audience.
    pub fn member(&self, audience: &str, subject: &str, tenant: &str) -> String {
        self.token(json!({"aud":audience,"sub":subject,"org_id":tenant,"roles":["member"]}))
    }
}

/// Header and payload of a token, as they are signed.
pub fn unsigned(header: &str, claims: &str) -> String {
    format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    )
}

async fn key_set(State(shared): State<Arc<Shared>>) -> Response {
    shared.fetches.fetch_add(1, Ordering::SeqCst);
    let mut gate = shared.gate.subscribe();
    let _ = gate.wait_for(|open| *open).await;
    let script = shared.script.lock().unwrap().clone();
    match script {
        Some(script) => script(),
        None => shared.set.lock().unwrap().to_string().into_response(),
    }
}
