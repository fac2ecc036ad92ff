//! The keys of issuers: fetched once for all, again when they change, and never from somewhere else.

use axum::body::Body;
use axum::response::Response;
use e2e::client::Http;
use e2e::house::{text, until};
use e2e::issuer::Issuer;
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use e2e::service::Service;
use http::Method;
use serde_json::json;

use super::{Post, REFUSED, assert_served, assert_turned_away, call, config, over};

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
