//! How a credential is shown, and where somebody without one is sent.

use e2e::client::Http;
use e2e::house::text;
use e2e::orders;
use e2e::service::Service;
use http::Method;
use serde_json::json;

use super::{AUDIENCE, MALFORMED, Post, assert_served, assert_turned_away, call};

/// An origin whose pages may call, where a test says so.
const PAGE: &str = "https://app.example";

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
async fn auth_02_sec_12_the_metadata_says_where_tokens_come_from_to_whoever_may_ask() {
    let post = Post::with(|config| {
        format!("public_url = \"https://gate.example\"\nallowed_origins = [\"{PAGE}\"]\n{config}")
    })
    .await;
    let http = Http::new();
    let base = post.gate.base();
    // AUTH-03: clients ask under the path first, then at the root.
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
