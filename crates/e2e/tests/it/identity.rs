//! Who comes in: tokens, key sets and API keys as an attacker would try them, over the wire of the running gate.
//!
//! Whatever is refused here makes no request at the service, which counts them itself.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use e2e::client::{Answer, Http, Mcp};
use e2e::house::{Gate, House, text, until};
use e2e::issuer::{Issuer, unsigned};
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use e2e::service::Service;
use http::Method;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

/// What tokens are made for, here.
const AUDIENCE: &str = "https://gate.example/mcp";
/// An origin whose pages may call, where a test says so.
const PAGE: &str = "https://app.example";

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
const EARLY: &str = "the access token is not valid yet";
const ELSEWHERE: &str = "the access token is not for this server";
const MALFORMED: &str = "the credential is malformed";
const REFUSED: &str = "the credential is not accepted";
const OTHER_TYPE: &str = "the token is not an access token";

#[tokio::test]
async fn auth_06_a_token_that_does_not_hold_is_refused_and_the_service_is_not_asked() {
    let post = Post::build().await;
    let now = Timestamp::now().as_second();
    for (what, claims) in [
        ("good", json!({})),
        (
            "one of several audiences",
            json!({"aud":["https://else.example",AUDIENCE]}),
        ),
        ("just ended, within the leeway", json!({"exp":now - 1})),
        (
            "about to begin, within the leeway",
            json!({"nbf":now + 5,"iat":now + 5}),
        ),
        ("a fraction of a second", json!({"exp":now as f64 + 60.5})),
        ("no roles", json!({"roles":null})),
    ] {
        assert_served(what, &post.bearer(&post.token(claims)).await);
    }
    let served = post.service.count();
    assert_eq!(served, 6);

    let cases = [
        ("expired", json!({"exp":now - 3_600}), EXPIRED),
        ("expired, just past the leeway", json!({"exp":now - 40}), EXPIRED),
        ("not yet", json!({"nbf":now + 3_600}), EARLY),
        ("issued in the future", json!({"iat":now + 3_600}), EARLY),
        ("without end", json!({"exp":null}), REFUSED),
        (
            "an end that is a text",
            json!({"exp":(now + 60).to_string()}),
            REFUSED,
        ),
        (
            "an end that no clock shows",
            json!({"exp":9_007_199_254_740_991_i64}),
            REFUSED,
        ),
        ("an end beyond all bounds", json!({"exp":1e300}), MALFORMED),
        ("a beginning that is a text", json!({"nbf":"now"}), REFUSED),
        (
            "another audience",
            json!({"aud":"https://other.example/mcp"}),
            ELSEWHERE,
        ),
        (
            "a slash behind the audience",
            json!({"aud":format!("{AUDIENCE}/")}),
            ELSEWHERE,
        ),
        (
            "an audience without its path",
            json!({"aud":"https://gate.example"}),
            ELSEWHERE,
        ),
        (
            "a longer audience",
            json!({"aud":format!("{AUDIENCE}2")}),
            ELSEWHERE,
        ),
        (
            "the audience in capitals",
            json!({"aud":AUDIENCE.to_uppercase()}),
            ELSEWHERE,
        ),
        (
            "the audience without TLS",
            json!({"aud":AUDIENCE.replace("https", "http")}),
            ELSEWHERE,
        ),
        (
            "the audience with a port",
            json!({"aud":"https://gate.example:443/mcp"}),
            ELSEWHERE,
        ),
        (
            "the audience with a space",
            json!({"aud":format!(" {AUDIENCE}")}),
            ELSEWHERE,
        ),
        (
            "the address that it listens on",
            json!({"aud":post.gate.url}),
            ELSEWHERE,
        ),
        (
            "several other audiences",
            json!({"aud":["https://a.example","https://b.example"]}),
            ELSEWHERE,
        ),
        ("no audience in a list", json!({"aud":[]}), ELSEWHERE),
        ("no audience", json!({"aud":null}), REFUSED),
        (
            "an audience that is no text",
            json!({"aud":{"is":AUDIENCE}}),
            REFUSED,
        ),
        (
            "a number among the audiences",
            json!({"aud":[AUDIENCE, 7]}),
            REFUSED,
        ),
        ("another issuer", json!({"iss":"https://other.example"}), REFUSED),
        (
            "a slash behind the issuer",
            json!({"iss":format!("{}/", post.issuer.url)}),
            REFUSED,
        ),
        ("no issuer", json!({"iss":null}), REFUSED),
        (
            "an issuer that is a list",
            json!({"iss":[post.issuer.url]}),
            REFUSED,
        ),
        (
            "the issuer of configured callers",
            json!({"iss":"configuration"}),
            REFUSED,
        ),
        ("no subject", json!({"sub":null}), REFUSED),
        ("an empty subject", json!({"sub":""}), REFUSED),
        ("a subject that is a number", json!({"sub":7}), REFUSED),
        ("a subject with a line break", json!({"sub":"ada\nbob"}), REFUSED),
        (
            "a subject with a hidden character",
            json!({"sub":"ada\u{200b}"}),
            REFUSED,
        ),
        ("a tenant that is a number", json!({"org_id":7}), REFUSED),
        ("a tenant that is a list", json!({"org_id":["north"]}), REFUSED),
        ("a tenant with a space", json!({"org_id":"north south"}), REFUSED),
        ("roles that are a number", json!({"roles":7}), REFUSED),
        ("a role that is a number", json!({"roles":["member", 7]}), REFUSED),
        (
            "a claim of the operator's that is an object",
            json!({"accounts":{"o-1":true}}),
            REFUSED,
        ),
    ];
    for (what, claims, description) in cases {
        assert_turned_away(what, &post.bearer(&post.token(claims)).await, Some(description));
    }
    assert_eq!(post.service.count(), served);
    let ledger = post.house.ledger().await;
    assert_eq!(ledger.of_kind("intent").len(), served);
    assert!(ledger.refusals().iter().all(|code| *code == "unauthenticated"));
    post.close().await;
}

#[tokio::test]
async fn auth_06_a_token_that_the_issuers_key_did_not_sign_as_it_must_is_refused() {
    let post = Post::build().await;
    let other = Issuer::start().await;
    let kid = post.issuer.kid();
    let claims = post.issuer.claims(over(json!({})));
    let header = |more: Value| {
        let mut header = json!({"alg":"ES256","typ":"JWT","kid":kid});
        let object = header.as_object_mut().unwrap();
        object.extend(more.as_object().unwrap().clone());
        object.retain(|_, value| !value.is_null());
        header
    };
    let sign = |more: Value| post.issuer.signed(&header(more), &claims);
    for more in [
        json!({}),
        json!({"typ":"at+jwt"}),
        json!({"typ":"application/at+jwt"}),
        json!({"typ":null}),
        json!({"kid":null}),
        // Where keys are said to be is never looked at.
        json!({"jku":format!("{}/jwks.json", other.url)}),
    ] {
        assert_served(&more.to_string(), &post.bearer(&sign(more.clone())).await);
    }
    let served = post.service.count();

    // What an attacker knows is the public key; with it as a shared secret, anybody could sign.
    let (pem, point) = post.issuer.public_key();
    let with_secret = |alg: &str, algorithm, secret: &[u8]| {
        let message = unsigned(&header(json!({"alg":alg})).to_string(), &claims.to_string());
        let key = EncodingKey::from_secret(secret).unwrap();
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &key, algorithm).unwrap();
        format!("{message}.{signature}")
    };
    let good = sign(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let foreign = other.signed(&header(json!({})), &claims);
    let foreign_signature = foreign.rsplit('.').next().unwrap();
    let payload = |claims: &Value| {
        unsigned("", &claims.to_string())
            .trim_start_matches('.')
            .to_owned()
    };
    let mallory = payload(&post.issuer.claims(over(json!({"org_id":"south"}))));
    let none = |alg: &str| unsigned(&header(json!({"alg":alg})).to_string(), &claims.to_string());
    let twice = claims.to_string().replacen('{', "{\"org_id\":\"south\",", 1);
    let attackers_key = other.signed(
        &header(json!({"jwk":{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},"jku":format!("{}/jwks.json", other.url),"kid":"theirs"})),
        &claims,
    );
    let cases = [
        ("no signature, alg none", format!("{}.", none("none")), REFUSED),
        ("no signature, alg None", format!("{}.", none("None")), REFUSED),
        (
            "a signature, alg none",
            format!("{}.{}", none("none"), parts[2]),
            REFUSED,
        ),
        (
            "HS256 with the public key as PEM",
            with_secret("HS256", Algorithm::HS256, pem.as_bytes()),
            REFUSED,
        ),
        (
            "HS256 with the point of the public key",
            with_secret("HS256", Algorithm::HS256, &point),
            REFUSED,
        ),
        (
            "HS512 with the public key as PEM",
            with_secret("HS512", Algorithm::HS512, pem.as_bytes()),
            REFUSED,
        ),
        (
            "ES256 by name, HS256 in fact",
            with_secret("ES256", Algorithm::HS256, pem.as_bytes()),
            REFUSED,
        ),
        ("RS256 by name", sign(json!({"alg":"RS256"})), REFUSED),
        ("ES384 by name", sign(json!({"alg":"ES384"})), REFUSED),
        ("an unknown algorithm", sign(json!({"alg":"XX999"})), REFUSED),
        ("no algorithm", sign(json!({"alg":null})), MALFORMED),
        (
            "an algorithm that is no text",
            sign(json!({"alg":["ES256"]})),
            MALFORMED,
        ),
        ("an unknown key", sign(json!({"kid":"nobody"})), REFUSED),
        ("a key id that is no text", sign(json!({"kid":7})), MALFORMED),
        ("something critical", sign(json!({"crit":["exp"]})), REFUSED),
        ("an unencoded payload", sign(json!({"b64":false})), REFUSED),
        (
            "a proof of possession",
            sign(json!({"typ":"dpop+jwt"})),
            OTHER_TYPE,
        ),
        (
            "an id assertion",
            sign(json!({"typ":"oauth-id-jag+jwt"})),
            OTHER_TYPE,
        ),
        ("the key of another issuer", foreign.clone(), REFUSED),
        ("a key that the token brings along", attackers_key, REFUSED),
        (
            "another signature",
            format!("{}.{}.{foreign_signature}", parts[0], parts[1]),
            REFUSED,
        ),
        ("no signature", format!("{}.{}.", parts[0], parts[1]), REFUSED),
        (
            "half a signature",
            format!("{}.{}.{}", parts[0], parts[1], &parts[2][..40]),
            REFUSED,
        ),
        (
            "an altered payload",
            format!("{}.{mallory}.{}", parts[0], parts[2]),
            REFUSED,
        ),
        (
            "a claim that stands twice",
            post.issuer.signed_text(&header(json!({})).to_string(), &twice),
            MALFORMED,
        ),
        ("two parts", format!("{}.{}", parts[0], parts[1]), MALFORMED),
        ("four parts", format!("{good}.{}", parts[2]), MALFORMED),
        (
            "a payload that is a list",
            post.issuer.signed_text(&header(json!({})).to_string(), "[]"),
            MALFORMED,
        ),
        ("nonsense", "nonsense".to_owned(), MALFORMED),
        ("the header alone", parts[0].to_owned(), MALFORMED),
        ("padding", format!("{good}="), MALFORMED),
    ];
    for (what, token, description) in cases {
        assert_turned_away(what, &post.bearer(&token).await, Some(description));
    }
    assert_eq!(post.service.count(), served);
    assert_eq!(other.fetches(), 0, "nobody asks where a token says that keys are");
    // A refusal does not poison what is remembered of good tokens.
    assert_served("good again", &post.bearer(&good).await);
    post.close().await;
}

#[tokio::test]
async fn auth_01_a_credential_comes_in_one_header_of_one_scheme_and_not_in_the_query() {
    let post = Post::build().await;
    let good = post.good();
    let bearer = format!("Bearer {good}");
    for spelling in [&bearer, &format!("bearer {good}"), &format!("BEARER  {good}")] {
        assert_served(spelling, &post.call(&[spelling]).await);
    }
    let served = post.service.count();
    assert_turned_away("nothing", &post.call(&[]).await, None);
    for (what, headers, description) in [
        ("the same twice", vec![bearer.as_str(), &bearer], Some(MALFORMED)),
        ("another one first", vec!["Bearer x", &bearer], Some(MALFORMED)),
        ("basic first", vec!["Basic YWRhOng=", &bearer], Some(MALFORMED)),
        ("basic", vec!["Basic YWRhOng="], None),
        (
            "another scheme with a good token",
            vec![&*format!("Token {good}")],
            None,
        ),
        ("no scheme", vec![good.as_str()], None),
        ("no token", vec!["Bearer"], Some(MALFORMED)),
        ("an empty token", vec!["Bearer "], Some(MALFORMED)),
        (
            "two tokens",
            vec![&*format!("Bearer {good} {good}")],
            Some(MALFORMED),
        ),
        (
            "two in a list",
            vec![&*format!("Bearer {good},{good}")],
            Some(MALFORMED),
        ),
        ("in quotes", vec![&*format!("Bearer \"{good}\"")], Some(MALFORMED)),
        ("a tab between", vec![&*format!("Bearer\t{good}")], None),
    ] {
        assert_turned_away(what, &post.call(&headers).await, description);
    }
    for name in ["access_token", "token", "authorization", "api_key"] {
        let url = format!("{}?{name}={good}", post.gate.url);
        assert_turned_away(name, &call(&url, &[]).await, None);
    }
    assert_eq!(post.service.count(), served);
    post.close().await;
}

#[tokio::test]
async fn a_token_is_read_at_its_longest_and_not_one_byte_past_it() {
    // The claims are padded until the token has a length that can grow by exactly one byte.
    let issuer = Issuer::start().await;
    let padded = |length: usize| issuer.token(over(json!({"pad":"x".repeat(length)})));
    let (max, over) = (1_500..1_520)
        .map(|length| (padded(length), padded(length + 1)))
        .find(|(one, next)| next.len() == one.len() + 1)
        .unwrap();
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let limits = format!("{}\n[limits]\ntoken_bytes_max = {}\n", config(&issuer), max.len());
    house.write("tollhouse.toml", limits);
    let gate = house.serve().await;
    assert_served(
        "at the limit",
        &call(&gate.url, &[&format!("Bearer {max}")]).await,
    );
    let answer = call(&gate.url, &[&format!("Bearer {over}")]).await;
    assert_turned_away("one past it", &answer, Some(MALFORMED));
    gate.logged(&format!(
        "the credential has {} bytes; at most {} are read",
        over.len(),
        max.len()
    ))
    .await;
    assert_eq!(service.count(), 1);
    gate.close().await;
}

#[tokio::test]
async fn auth_02_sec_12_the_metadata_says_where_tokens_come_from_to_whoever_may_ask() {
    let post = Post::with(|config| {
        format!("public_url = \"https://gate.example\"\nallowed_origins = [\"{PAGE}\"]\n{config}")
    })
    .await;
    let http = Http::new();
    let base = post.gate.base();
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ] {
        let url = format!("{base}{path}");
        let answer = http.send(Method::GET, &url, &[], "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let metadata = answer.json();
        assert_eq!(metadata["resource"], AUDIENCE, "{path}");
        assert_eq!(
            metadata["authorization_servers"],
            json!([post.issuer.url]),
            "{path}"
        );
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]), "{path}");
        // A page of an origin that may call reads it, also when it has to ask first: clients send their revision along.
        let answer = http.send(Method::GET, &url, &[("origin", PAGE)], "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{path}");
        assert!(answer.header("vary").unwrap().contains("Origin"), "{path}");
        let asks = |origin| {
            [
                ("origin", origin),
                ("access-control-request-method", "GET"),
                ("access-control-request-headers", "mcp-protocol-version"),
            ]
        };
        let answer = http.send(Method::OPTIONS, &url, &asks(PAGE), "").await;
        assert_eq!(answer.status, 204, "{path}: {}", answer.text());
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{path}");
        let allowed = answer.header("access-control-allow-headers").unwrap_or_default();
        assert!(
            allowed.to_ascii_lowercase().contains("mcp-protocol-version"),
            "{path}: {allowed}"
        );
        // Pages of any other origin learn nothing of a gate that runs beside them (HL-18).
        for origin in ["https://evil.example", "null", "https://app.example.evil.example"] {
            for method in [Method::GET, Method::OPTIONS] {
                let answer = http.send(method.clone(), &url, &asks(origin), "").await;
                assert_eq!(answer.status, 403, "{method} {path} {origin}");
                assert_eq!(
                    answer.header("access-control-allow-origin"),
                    None,
                    "{method} {path} {origin}"
                );
                assert!(
                    !answer.text().contains("gate.example"),
                    "{method} {path} {origin}"
                );
            }
        }
        // But nobody whose name for this server is not one of ours.
        let answer = http
            .send(Method::GET, &url, &[("host", "evil.example")], "")
            .await;
        assert_eq!(answer.status, 403, "{path}");
        let answer = http.send(Method::POST, &url, &[], "").await;
        assert_eq!(answer.status, 405, "{path}");
    }
    // The challenge points there, under the name that agents know.
    let answer = post.call(&[]).await;
    assert_eq!(
        answer.header("www-authenticate"),
        Some("Bearer resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp\"")
    );
    post.close().await;
}

#[tokio::test]
async fn many_who_come_at_once_cause_one_fetch_of_the_key_set() {
    let service = Service::start(orders::usual).await;
    let issuer = Issuer::start().await;
    issuer.hold();
    let house = orders::house(&service.url());
    house.write("tollhouse.toml", config(&issuer));
    let gate = house.serve().await;
    let bearer = format!("Bearer {}", issuer.token(over(json!({}))));
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (url, bearer) = (gate.url.clone(), bearer.clone());
        waiting.spawn(async move { call(&url, &[&bearer]).await });
    }
    // While the issuer is silent, they come in and wait. How many have come in cannot be seen from outside; some round
    // trips give them the time.
    until("the first fetch", async || issuer.fetches() > 0).await;
    for _ in 0..50 {
        let health = format!("{}/healthz", gate.base());
        assert_eq!(Http::new().send(Method::GET, &health, &[], "").await.status, 200);
    }
    issuer.let_go();
    while let Some(answer) = waiting.join_next().await {
        assert_served("one of many", &answer.unwrap());
    }
    assert_eq!(issuer.fetches(), 1);
    assert_eq!(service.count(), 50);
    gate.close().await;
}

#[tokio::test]
async fn a_new_key_is_found_without_a_restart_and_the_old_one_ends_with_its_set() {
    let post = Post::build().await;
    let old = post.good();
    assert_served("the first key", &post.bearer(&old).await);
    assert_eq!(post.issuer.fetches(), 1);
    post.issuer.rotate("two");
    let new = post.good();
    let began = std::time::Instant::now();
    until("the new key is found", async || {
        post.bearer(&new).await.status == 200
    })
    .await;
    // The pause between two fetches is 10 s: no matter how often somebody asked meanwhile, there was one more.
    assert_eq!(post.issuer.fetches(), 2, "after {:?}", began.elapsed());
    assert_turned_away("the key that is gone", &post.bearer(&old).await, Some(REFUSED));
    post.close().await;
}

#[tokio::test]
async fn a_flood_of_unknown_keys_does_not_reach_the_issuer() {
    let post = Post::build().await;
    assert_served("good", &post.bearer(&post.good()).await);
    let began = std::time::Instant::now();
    let mut flood = tokio::task::JoinSet::new();
    for number in 0..300 {
        let header = json!({"alg":"ES256","kid":format!("made-up-{number}")});
        let token = post.issuer.signed(&header, &post.issuer.claims(over(json!({}))));
        let url = post.gate.url.clone();
        flood.spawn(async move { call(&url, &[&format!("Bearer {token}")]).await.status });
    }
    while let Some(status) = flood.join_next().await {
        assert_eq!(status.unwrap(), 401);
    }
    let allowed = 2 + began.elapsed().as_secs() / 10;
    assert!(
        post.issuer.fetches() <= allowed,
        "{} fetches in {:?}",
        post.issuer.fetches(),
        began.elapsed()
    );
    // Nor does it fill the ledger: strangers are written down within a bound.
    let ledger = post.house.ledger().await;
    let written = ledger.refusals().len();
    assert!(
        (1..=33 + usize::try_from(began.elapsed().as_secs()).unwrap()).contains(&written),
        "{written} of 300"
    );
    assert_served("good all the same", &post.bearer(&post.good()).await);
    assert_eq!(post.service.count(), 2);
    post.close().await;
}

#[tokio::test]
async fn while_the_issuer_is_down_nobody_is_let_in_and_afterwards_everybody_is() {
    let service = Service::start(orders::usual).await;
    let issuer = Issuer::start().await;
    issuer.script(|| status(503));
    let house = orders::house(&service.url());
    house.write("tollhouse.toml", config(&issuer));
    let gate = house.serve().await;
    let bearer = format!("Bearer {}", issuer.token(over(json!({}))));
    let answer = call(&gate.url, &[&bearer]).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    assert!(
        answer.header("www-authenticate").is_none(),
        "the token may be good"
    );
    assert_eq!(answer.json()["error"], "temporarily_unavailable");
    assert_eq!(service.count(), 0);
    gate.logged("the issuer answered 503").await;
    issuer.recover();
    until("the issuer is asked again", async || {
        call(&gate.url, &[&bearer]).await.status == 200
    })
    .await;
    assert_eq!(service.count(), 1);
    gate.close().await;
}

/// A key set that is not one: the gate stays shut, and its log says why.
async fn check_key_set(script: impl Fn() -> Response + Send + Sync + 'static, logged: &str, fetches: u64) {
    let service = Service::start(orders::usual).await;
    let issuer = Issuer::start().await;
    issuer.script(script);
    let house = orders::house(&service.url());
    let limits = format!("{}\n[limits]\nkey_set_bytes_max = \"1KiB\"\n", config(&issuer));
    house.write("tollhouse.toml", limits);
    let gate = house.serve().await;
    let bearer = format!("Bearer {}", issuer.token(over(json!({}))));
    assert_eq!(call(&gate.url, &[&bearer]).await.status, 503, "{logged}");
    gate.logged(logged).await;
    assert_eq!((issuer.fetches(), service.count()), (fetches, 0), "{logged}");
    gate.close().await;
}

fn status(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

fn set(text: impl Into<String>) -> Response {
    Response::new(Body::from(text.into()))
}

#[tokio::test]
async fn a_key_set_that_is_too_large_or_none_or_elsewhere_opens_nothing() {
    let long = || set(format!("{{\"keys\":[]}}{}", " ".repeat(1_014)));
    let endless = || {
        let chunk = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 65_536]));
        Response::new(Body::from_stream(chunk))
    };
    let redirect = || {
        Response::builder()
            .status(302)
            .header("location", "/moved.json")
            .body(Body::empty())
            .unwrap()
    };
    tokio::join!(
        check_key_set(long, "larger than 1024 bytes", 1),
        check_key_set(endless, "larger than 1024 bytes", 1),
        // One more request would be one to wherever the issuer points.
        check_key_set(redirect, "the issuer answered 302", 1),
        check_key_set(|| set("[]"), "the key set could not be fetched", 1),
        check_key_set(|| set("not JSON"), "the key set could not be fetched", 1),
        check_key_set(
            || set(r#"{"keys":[{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}"#),
            "the key set could not be fetched",
            1
        ),
        check_key_set(|| status(404), "the issuer answered 404", 1),
    );
}

#[tokio::test]
async fn a_key_set_in_a_private_network_is_not_fetched_unless_the_operator_says_so() {
    for host in ["127.0.0.1", "localhost"] {
        let service = Service::start(orders::usual).await;
        let issuer = Issuer::start().await;
        let raw = Raw::start(|_| Act::SayAndClose(answer("200 OK", "", "{\"keys\":[]}"))).await;
        let port = raw.address.port();
        let config = config(&issuer)
            .replace(
                &format!("key_set = \"{}/jwks.json\"", issuer.url),
                &format!("key_set = \"http://{host}:{port}/jwks.json\""),
            )
            .replace("network = { allow = [\"127.0.0.1/32\"] }\n", "");
        // The upstream keeps its own.
        let config = config.replace(
            "destination = \"env:ORDERS_URL\"\n",
            "destination = \"env:ORDERS_URL\"\nnetwork = { allow = [\"127.0.0.1/32\"] }\n",
        );
        let house = orders::house(&service.url());
        house.write("tollhouse.toml", config);
        let gate = house.serve().await;
        let bearer = format!("Bearer {}", issuer.token(over(json!({}))));
        assert_eq!(call(&gate.url, &[&bearer]).await.status, 503, "{host}");
        gate.logged("is this machine").await;
        assert_eq!((raw.connections(), service.count()), (0, 0), "{host}");
        // `check` says it before anybody has to wait for it.
        let checked = house.run(["check"]).await;
        assert_eq!(checked.status.code(), Some(69), "{host}");
        assert_eq!(raw.connections(), 0, "{host}");
        let said = text(&checked.stdout) + &text(&checked.stderr);
        assert!(said.contains("issuer `corp`"), "{host}: {said}");
        gate.close().await;
    }
}

#[tokio::test]
async fn claims_mean_what_the_operator_says_they_mean() {
    let post = Post::with(|config| {
        config.replace(
            "claims = { subject = \"sub\", tenant = \"org_id\", roles = \"roles\", client = \"azp\", extra = [\"accounts\"] }",
            "claims = { subject = \"sub\", tenant = \"org.id\", roles = \"realm_access.roles\", client = \"azp\" }",
        )
    })
    .await;
    for (roles, expected) in [
        (json!(["member", "auditor"]), json!(["auditor", "member"])),
        (json!("member auditor"), json!(["auditor", "member"])),
        (json!("member"), json!(["member"])),
    ] {
        let token = post.token(json!({
            "org":{"id":"north"}, "realm_access":{"roles":roles}, "azp":"ide",
            // What the operator did not name means nothing.
            "org_id":"south", "roles":["admin"], "tenant":"south",
        }));
        assert_served("claims", &post.bearer(&token).await);
        let ledger = post.house.ledger().await;
        let actor = &ledger.of_kind("intent").last().unwrap()["actor"];
        assert_eq!(
            *actor,
            json!({"client":"ide","issuer":"corp","roles":expected,"subject":"ada","tenant":"north"})
        );
    }
    // Without a tenant there is no owner who could be the same, so that for this caller there is no such tool.
    let answer = post
        .bearer(&post.token(json!({"realm_access":{"roles":["member"]}})))
        .await;
    assert_eq!(
        answer.json()["error"]["message"],
        "unknown tool `orders_read`",
        "{}",
        answer.text()
    );
    assert_eq!(post.house.ledger().await.refusals(), ["not-permitted"]);
    // A path through something that is no object is a fault, not an absence.
    let answer = post.bearer(&post.token(json!({"org":"north"}))).await;
    assert_turned_away("a text on the way", &answer, Some(REFUSED));
    assert_eq!(post.service.count(), 3);
    post.close().await;
}

#[tokio::test]
async fn auth_17_a_token_that_lacks_a_scope_is_told_which() {
    let post = Post::with(|config| {
        config.replace("key_set =", "scopes_required = [\"tickets\", \"mcp\"]\nkey_set =")
    })
    .await;
    for scopes in [
        json!({"scope":"mcp tickets other"}),
        json!({"scp":["tickets","mcp"]}),
    ] {
        assert_served(
            &scopes.to_string(),
            &post.bearer(&post.token(scopes.clone())).await,
        );
    }
    for scopes in [
        json!({}),
        json!({"scope":"tickets"}),
        json!({"scope":"tickets-mcp"}),
        json!({"scope":"TICKETS MCP"}),
        json!({"scp":["tickets mcp"]}),
    ] {
        let answer = post.bearer(&post.token(scopes.clone())).await;
        assert_eq!(answer.status, 403, "{scopes}: {}", answer.text());
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Bearer error=\"insufficient_scope\"")
                && challenge.contains("scope=\"tickets mcp\"")
                && challenge.contains("resource_metadata="),
            "{scopes}: {challenge}"
        );
        assert_eq!(answer.json()["error"], "insufficient_scope", "{scopes}");
    }
    // Whoever has no token learns what to ask for, and a bad token is not told that it lacks a scope.
    let answer = post.call(&[]).await;
    assert!(
        answer
            .header("www-authenticate")
            .unwrap()
            .contains("scope=\"tickets mcp\"")
    );
    let answer = post
        .bearer(&post.token(json!({"aud":"https://other.example"})))
        .await;
    assert_turned_away("another audience", &answer, Some(ELSEWHERE));
    assert_eq!(post.service.count(), 2);
    post.close().await;
}

/// A gate with API keys that looks at them often.
async fn keyed() -> (Service, House) {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let config = format!(
        "{}\n[limits]\nkeys_refresh_interval = \"100ms\"\n",
        orders::CONFIG
    );
    house.write("tollhouse.toml", config);
    (service, house)
}

async fn keys_of(house: &House) -> Vec<(String, String)> {
    let output = house.run(["keys", "list", "--json"]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let keys: Value = serde_json::from_slice(&output.stdout).unwrap();
    keys.as_array()
        .unwrap()
        .iter()
        .map(|key| {
            (
                key["caller"].as_str().unwrap().to_owned(),
                key["state"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

fn id_of(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

#[tokio::test]
async fn a_key_opens_and_closes_on_a_running_gate() {
    let (service, house) = keyed().await;
    let gate = house.serve().await;
    let present = async |key: &str| call(&gate.url, &[&format!("Bearer {key}")]).await;
    let key = house.key("ada").await;
    until("the new key is read", async || present(&key).await.status == 200).await;
    let other = house.key("ada").await;
    until("the other key is read", async || {
        present(&other).await.status == 200
    })
    .await;
    let revoked = house.run(["keys", "revoke", id_of(&key)]).await;
    assert!(revoked.status.success(), "{}", text(&revoked.stderr));
    until("the key ends", async || present(&key).await.status == 401).await;
    let served = service.count();
    for _ in 0..3 {
        assert_turned_away("revoked", &present(&key).await, Some(REFUSED));
    }
    assert_eq!(service.count(), served);
    assert_served("the other one goes on", &present(&other).await);
    assert_eq!(
        keys_of(&house).await,
        [
            ("ada".to_owned(), "revoked".to_owned()),
            ("ada".to_owned(), "good".to_owned())
        ]
    );
    let again = house.run(["keys", "revoke", id_of(&key)]).await;
    assert_eq!(again.status.code(), Some(66));
    gate.close().await;
}

#[tokio::test]
async fn a_key_ends_by_itself() {
    let (service, house) = keyed().await;
    let gate = house.serve().await;
    let ends = Timestamp::now() + Duration::from_secs(15);
    let output = house
        .run(["keys", "add", "ada", "--expires", &ends.to_string()])
        .await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let bearer = format!("Bearer {}", text(&output.stdout).trim());
    let mut served = false;
    until("the key ends", async || {
        let answer = call(&gate.url, &[&bearer]).await;
        served |= answer.status == 200;
        answer.text().contains(EXPIRED)
    })
    .await;
    assert!(served, "it worked before");
    assert!(Timestamp::now() >= ends, "and not until its end");
    let count = service.count();
    assert_turned_away("expired", &call(&gate.url, &[&bearer]).await, Some(EXPIRED));
    assert_eq!(service.count(), count);
    assert_eq!(keys_of(&house).await, [("ada".to_owned(), "expired".to_owned())]);
    gate.close().await;
    let past = house
        .run(["keys", "add", "ada", "--expires", "2020-01-01T00:00:00Z"])
        .await;
    assert_eq!(past.status.code(), Some(66), "{}", text(&past.stderr));
}

#[tokio::test]
async fn a_key_is_good_for_one_store_one_secret_and_a_caller_who_is_there() {
    let (service, house) = keyed().await;
    let (_, elsewhere) = keyed().await;
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let foreign = elsewhere.key("ada").await;
    let gate = house.serve().await;
    let secret = |key: &str| key.rsplit_once(&format!("{}_", id_of(key))).unwrap().1.to_owned();
    assert_served("ada", &call(&gate.url, &[&format!("Bearer {ada}")]).await);
    let mut last = ada.clone();
    let end = if last.ends_with('A') { 'B' } else { 'A' };
    last.pop();
    last.push(end);
    for (what, key, description) in [
        ("a key of another store", foreign.clone(), REFUSED),
        (
            "ada's id with bob's secret",
            format!("th_{}_{}", id_of(&ada), secret(&bob)),
            REFUSED,
        ),
        (
            "ada's id with a foreign secret",
            format!("th_{}_{}", id_of(&ada), secret(&foreign)),
            REFUSED,
        ),
        (
            "an unknown id with ada's secret",
            format!("th_0123456789abcdef_{}", secret(&ada)),
            REFUSED,
        ),
        ("the id alone", format!("th_{}", id_of(&ada)), MALFORMED),
        ("the secret alone", format!("th__{}", secret(&ada)), MALFORMED),
        ("capitals", ada.to_uppercase().replace("TH_", "th_"), MALFORMED),
        ("one more character", format!("{ada}A"), MALFORMED),
        ("one less", ada[..ada.len() - 1].to_owned(), MALFORMED),
    ] {
        let answer = call(&gate.url, &[&format!("Bearer {key}")]).await;
        assert_eq!(answer.status, 401, "{what}");
        if what != "capitals" {
            assert_turned_away(what, &answer, Some(description));
        }
    }
    assert_eq!(
        call(&gate.url, &[&format!("Bearer {last}")]).await.status,
        401,
        "another last character"
    );
    assert_eq!(service.count(), 1);
    gate.close().await;

    // Bob goes, his key stays behind.
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    house.write(
        "tollhouse.toml",
        config.replace("[caller.bob]\ntenant = \"south\"\nroles = [\"member\"]\n", ""),
    );
    let gate = house.serve().await;
    let answer = call(&gate.url, &[&format!("Bearer {bob}")]).await;
    assert_turned_away("nobody's key", &answer, Some(REFUSED));
    gate.logged("bob").await;
    assert_served("ada", &call(&gate.url, &[&format!("Bearer {ada}")]).await);
    assert_eq!(
        keys_of(&house).await,
        [
            ("ada".to_owned(), "good".to_owned()),
            ("bob".to_owned(), "no such caller".to_owned())
        ]
    );
    gate.close().await;

    // Keys are switched off altogether.
    let config = std::fs::read_to_string(house.path("tollhouse.toml")).unwrap();
    let issuer = Issuer::start().await;
    house.write(
        "tollhouse.toml",
        format!(
            "{config}\n[identity]\napi_keys = false\n{}",
            issuer.config("corp")
        ),
    );
    let gate = house.serve().await;
    let answer = call(&gate.url, &[&format!("Bearer {ada}")]).await;
    assert_turned_away("switched off", &answer, Some(MALFORMED));
    gate.close().await;
    assert_eq!(service.count(), 2);
}

#[tokio::test]
async fn on_stdio_the_caller_is_the_one_of_the_configuration_whatever_the_client_says() {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let call = |id: &str| {
        json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"orders_read","arguments":{"id":id},
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},
                "io.modelcontextprotocol/clientInfo":{"name":"bob","version":"1"},"authorization":"Bearer x","tenant":"south"}}})
    };
    let mut pipe = house.stdio();
    let own = pipe.ask(&call("o-1")).await;
    assert_eq!(own["result"]["structuredContent"], orders::order(), "{own}");
    let others = pipe.ask(&call("o-2")).await;
    assert_eq!(others["result"]["isError"], true, "{others}");
    pipe.close().await;
    assert_eq!(service.count(), 1);
    let ledger = house.ledger().await;
    let intent = ledger.of_kind("intent")[0].clone();
    assert_eq!(intent["credential"], "configured:ada");
    assert_eq!(intent["actor"]["tenant"], "north");

    // Without a caller for it, that way in is closed.
    let house = house.with_change("tollhouse.toml", "[stdio]\ncaller = \"ada\"\n", "");
    let output = house.run(["serve", "--stdio"]).await;
    assert_eq!(output.status.code(), Some(78));
    assert!(
        text(&output.stderr).contains("[stdio]"),
        "{}",
        text(&output.stderr)
    );
}
