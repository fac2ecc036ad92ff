//! Who comes in: tokens, key sets and API keys as an attacker would try them, over the wire of the running gate.
//!
//! Whatever is refused here makes no request at the service, which counts them itself.

mod api_keys;
mod door;
mod key_sets;
mod tokens;

use e2e::client::{Answer, Mcp};
use e2e::house::{Gate, House};
use e2e::issuer::Issuer;
use e2e::orders;
use e2e::service::Service;
use http::Method;
use serde_json::{Value, json};

/// What tokens are made for, here.
const AUDIENCE: &str = "https://gate.example/mcp";

/// A gate that trusts one issuer.
struct Post {
    service: Service,
    issuer: Issuer,
    house: House,
    gate: Gate,
}

impl Post {
    async fn build() -> Self {
        Self::with(|config| config).await
    }

    /// `change`: of the whole configuration.
    async fn with(change: impl FnOnce(String) -> String) -> Self {
        let service = Service::start(orders::usual).await;
        let issuer = Issuer::start().await;
        let house = orders::house(&service.url());
        house.write("tollhouse.toml", change(config(&issuer)));
        let gate = house.serve().await;
        Self {
            service,
            issuer,
            house,
            gate,
        }
    }

    /// A token of ada, with these claims over the usual ones.
    fn token(&self, claims: Value) -> String {
        self.issuer.token(over(claims))
    }

    fn good(&self) -> String {
        self.token(json!({}))
    }

    /// Calls a tool with exactly these `Authorization` headers, and gives the whole answer.
    async fn call(&self, authorization: &[&str]) -> Answer {
        call(&self.gate.url, authorization).await
    }

    async fn bearer(&self, token: &str) -> Answer {
        self.call(&[&format!("Bearer {token}")]).await
    }

    async fn close(self) {
        let (code, log) = self.gate.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

/// The configuration of the orders, with an issuer.
fn config(issuer: &Issuer) -> String {
    let issuer = issuer
        .config("corp")
        .replace("key_set =", &format!("audience = \"{AUDIENCE}\"\nkey_set ="));
    format!("{}{issuer}", orders::CONFIG)
}

/// The claims of ada, changed.
fn over(claims: Value) -> Value {
    let mut all = json!({"aud":AUDIENCE,"sub":"ada","org_id":"north","roles":["member"]});
    all.as_object_mut()
        .unwrap()
        .extend(claims.as_object().unwrap().clone());
    all
}

async fn call(url: &str, authorization: &[&str]) -> Answer {
    let client = Mcp {
        token: None,
        ..Mcp::modern(url, "")
    };
    let message = client.request(
        1,
        "tools/call",
        json!({"name":"orders_read","arguments":{"id":"o-1"}}),
    );
    let headers = client.headers(&message);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(authorization.iter().map(|value| ("authorization", *value)))
        .collect();
    client
        .http
        .send(Method::POST, url, &headers, message.to_string())
        .await
}

fn assert_served(what: &str, answer: &Answer) {
    assert_eq!(answer.status, 200, "{what}: {}", answer.text());
    let message = answer.json();
    assert_eq!(
        message["result"]["structuredContent"],
        orders::order(),
        "{what}: {message}"
    );
}

/// A refusal with a challenge; `description` is what the caller reads, `None` where no error is named.
fn assert_turned_away(what: &str, answer: &Answer, description: Option<&str>) {
    assert_eq!(answer.status, 401, "{what}: {}", answer.text());
    let challenge = answer
        .header("www-authenticate")
        .unwrap_or_else(|| panic!("{what}: no challenge"));
    assert!(challenge.starts_with("Bearer "), "{what}: {challenge}");
    assert!(
        challenge.contains("/.well-known/oauth-protected-resource/mcp\""),
        "{what}: {challenge}"
    );
    match description {
        None => assert!(!challenge.contains("error"), "{what}: {challenge}"),
        Some(description) => {
            assert!(
                challenge.contains("error=\"invalid_token\""),
                "{what}: {challenge}"
            );
            assert!(challenge.contains(description), "{what}: {challenge}");
            assert_eq!(answer.json()["error"], "invalid_token", "{what}");
        }
    }
    // Neither the challenge nor the body tells what there is behind the door, or what of the token was read.
    let told = challenge.replace("resource_metadata=", "") + &answer.text();
    for word in ["order", "corp", "ada", "kid", "north", "south"] {
        assert!(!told.contains(word), "{what}: {word} in {told}");
    }
}

const EXPIRED: &str = "the credential has expired";

const MALFORMED: &str = "the credential is malformed";

const REFUSED: &str = "the credential is not accepted";
