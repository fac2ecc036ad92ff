//! The credentials of the gate towards a service: each operation gets what it asks for and nothing else; a token is got
//! once, kept, renewed; without one nothing is sent. What arrives is read by the service itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use e2e::client::Mcp;
use e2e::house::{Gate, House, close, until};
use e2e::said::run;
use e2e::service::{Arrived, Service, json as answer};
use e2e::tls::Authority;
use serde_json::{Value, json};

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Desk, version: "1" }
security: [{ bearer: [] }]
paths:
  /inherited: { get: { operationId: inherited, responses: { "200": { description: x } } } }
  /free: { get: { operationId: free, security: [], responses: { "200": { description: x } } } }
  /maybe: { get: { operationId: maybe, security: [{}, { bearer: [] }], responses: { "200": { description: x } } } }
  /both: { get: { operationId: both, security: [{ key: [], app: [] }], responses: { "200": { description: x } } } }
  /either: { get: { operationId: either, security: [{ gone: [] }, { session: [] }], responses: { "200": { description: x } } } }
  /pass: { get: { operationId: pass, security: [{ pass: [] }], responses: { "200": { description: x } } } }
  /scoped: { get: { operationId: scoped, security: [{ oauth: [desk.read] }], responses: { "200": { description: x } } } }
  /change: { post: { operationId: change, security: [{ oauth: [desk.write, desk.read] }], responses: { "200": { description: x } } } }
  /cert: { get: { operationId: cert, security: [{ cert: [] }], responses: { "200": { description: x } } } }
components:
  securitySchemes:
    bearer: { type: http, scheme: bearer }
    key: { type: apiKey, in: header, name: X-Key }
    app: { type: apiKey, in: query, name: app }
    session: { type: apiKey, in: cookie, name: session }
    gone: { type: http, scheme: digest }
    pass: { type: http, scheme: basic }
    oauth: { type: oauth2, flows: { clientCredentials: { tokenUrl: "https://stranger.example/token", scopes: { desk.read: r, desk.write: w } } } }
    cert: { type: mutualTLS }
"#;

const ALL: [&str; 8] = [
    "inherited",
    "free",
    "maybe",
    "both",
    "either",
    "pass",
    "scoped",
    "change",
];

/// A house whose upstream `desk` has these credentials and these operations as tools.
fn house(url: &str, credentials: &str, tools: &[&str]) -> House {
    let mut config = format!(
        "store = \"sqlite:tollhouse.db\"\n[caller.ada]\n[upstream.desk]\nopenapi = \"desk.yaml\"\n\
         destination = \"{url}\"\nnetwork = {{ allow = [\"127.0.0.0/8\", \"::1\"] }}\n{credentials}\n"
    );
    for tool in tools {
        let class = if *tool == "change" { "write" } else { "read" };
        config.push_str(&format!(
            "[upstream.desk.tool.{tool}]\noperation = \"{tool}\"\nclass = \"{class}\"\n"
        ));
        if class == "write" {
            config.push_str(
                "approval.mutations = { by = \"a\", because = \"a test\", until = \"2199-12-31\", for = [\"everyone\"] }\n\
                 consent = { waived_by = \"Grace\", because = \"a test\", until = \"2199-12-31\" }\n",
            );
        }
    }
    House::new()
        .with_file("tollhouse.toml", config)
        .with_file("desk.yaml", DOCUMENT)
        .with_file(
            "policy/all.cedar",
            "@id(\"all\") permit (principal, action, resource);",
        )
        .with_variable("BEARER", "the-bearer-token")
        .with_variable("KEY", "the-key")
        .with_variable("APP", "the-app/key")
        .with_variable("SESSION", "the-session")
        .with_variable("PASSWORD", "the-password")
        .with_variable("SECRET", "the secret/of the+client")
}

/// `[upstream.desk.credentials]` with a scheme for everything, and tokens from here.
fn every_scheme(token_url: &str) -> String {
    format!(
        "[upstream.desk.credentials]\nbearer = {{ bearer = \"env:BEARER\" }}\n\
         key = {{ api_key = {{ header = \"X-Key\", value = \"env:KEY\" }} }}\n\
         app = {{ api_key = {{ query = \"app\", value = \"env:APP\" }} }}\n\
         session = {{ api_key = {{ cookie = \"session\", value = \"env:SESSION\" }} }}\n\
         pass = {{ basic = {{ username = \"gate\", password = \"env:PASSWORD\" }} }}\n{}",
        oauth(token_url, "")
    )
}

fn oauth(token_url: &str, more: &str) -> String {
    format!(
        "oauth = {{ oauth2 = {{ token_url = \"{token_url}\", client_id = \"gate keeper\", \
         client_secret = \"env:SECRET\", network = {{ allow = [\"127.0.0.0/8\"] }}{more} }} }}\n"
    )
}

fn only_oauth(token_url: &str, more: &str) -> String {
    format!("[upstream.desk.credentials]\n{}", oauth(token_url, more))
}

/// A token endpoint that gives out `token-1`, `token-2`, … for as long as it is told.
async fn tokens(life: &'static str) -> Service {
    let given = AtomicUsize::new(0);
    Service::start(move |_| {
        let number = given.fetch_add(1, Ordering::SeqCst) + 1;
        let token = json!({"access_token":format!("token-{number}"),"token_type":"Bearer"});
        let text = token.to_string().replace('}', &format!("{life}}}"));
        answer(200, &serde_json::from_str(&text).unwrap())
    })
    .await
}

fn well(_: &Arrived) -> axum::response::Response {
    answer(200, &json!({"all":"well"}))
}

async fn ada(house: &House) -> (Gate, Mcp) {
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    (gate, ada)
}

/// What of a request could be a credential.
fn shown(arrived: &Arrived) -> String {
    let header = |name: &str| {
        let values: Vec<&str> = arrived
            .headers
            .get_all(name)
            .iter()
            .map(|value| value.to_str().unwrap())
            .collect();
        (!values.is_empty()).then(|| format!(" {name}={}", values.join("|")))
    };
    let headers: String = ["authorization", "x-key", "cookie"]
        .into_iter()
        .filter_map(header)
        .collect();
    format!("{}{headers}", arrived.target)
}

async fn outcome(house: &House) -> Value {
    let ledger = house.ledger().await;
    (*ledger.of_kind("outcome").last().unwrap()).clone()
}

#[tokio::test]
async fn each_operation_gets_what_it_asks_for_and_nothing_else() {
    let (service, tokens) = (Service::start(well).await, tokens("").await);
    let house = house(&service.url(), &every_scheme(&tokens.url()), &ALL);
    let (gate, ada) = ada(&house).await;
    for (tool, expected) in [
        ("inherited", "/inherited authorization=Bearer the-bearer-token"),
        ("free", "/free"),
        // The document lets everybody through, and says so first.
        ("maybe", "/maybe"),
        ("both", "/both?app=the-app%2Fkey x-key=the-key"),
        // The first alternative that is met, not the first one.
        ("either", "/either cookie=session=the-session"),
        ("pass", "/pass authorization=Basic Z2F0ZTp0aGUtcGFzc3dvcmQ="),
        ("scoped", "/scoped authorization=Bearer token-1"),
        ("change", "/change authorization=Bearer token-2"),
    ] {
        service.forget();
        let result = ada.call(&format!("desk_{tool}"), json!({})).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let arrived: Vec<String> = service.arrived().iter().map(shown).collect();
        assert_eq!(arrived, [expected], "{tool}");
    }
    close(gate).await;
}

#[tokio::test]
async fn one_credential_is_for_every_request_and_has_to_be_of_the_kind_that_is_asked_for() {
    let service = Service::start(well).await;
    let bearer = "credential = { bearer = \"env:BEARER\" }";
    let house = house(&service.url(), bearer, &["inherited", "free", "maybe", "scoped"]);
    let (gate, ada) = ada(&house).await;
    for tool in ["inherited", "free", "maybe", "scoped"] {
        service.forget();
        ada.call(&format!("desk_{tool}"), json!({})).await;
        let expected = format!("/{tool} authorization=Bearer the-bearer-token");
        assert_eq!(shown(&service.arrived()[0]), expected);
    }
    close(gate).await;
}

#[tokio::test]
async fn an_operation_whose_requirement_is_not_met_is_a_fault_with_its_place_and_what_clears_it() {
    let url = "http://127.0.0.1:9";
    let bearer = "credential = { bearer = \"env:BEARER\" }";
    let key = "[upstream.desk.credentials]\nkey = { api_key = { header = \"X-Key\", value = \"env:KEY\" } }";
    for (credentials, tool, key_at, expected) in [
        (
            "",
            "inherited",
            "upstream.desk.tool.inherited.operation",
            "no credential meets what the document asks for here: `bearer` (a bearer token); \
             name one for `bearer` in [upstream.desk.credentials]",
        ),
        (
            bearer,
            "both",
            "upstream.desk.tool.both.operation",
            "`key` (a key in the header `X-Key`) with `app` (a key in the query `app`); `credential` is of another kind; \
             name one for `key`, `app` in [upstream.desk.credentials] in its place",
        ),
        (
            key,
            "both",
            "upstream.desk.tool.both.operation",
            "name one for `app` in [upstream.desk.credentials]",
        ),
        (
            "[upstream.desk.credentials]\nkee = { api_key = { header = \"X-Key\", value = \"env:KEY\" } }",
            "free",
            "upstream.desk.credentials.kee",
            "the document has no security scheme `kee`; it has `bearer`, `key`",
        ),
        (
            "[upstream.desk.credentials]\nkey = { api_key = { header = \"X-Other\", value = \"env:KEY\" } }",
            "free",
            "upstream.desk.credentials.key",
            "the security scheme `key` is a key in the header `X-Key`, and this is a key in the header `X-Other`",
        ),
        (
            "[upstream.desk.credentials]\noauth = { basic = { username = \"u\", password = \"env:PASSWORD\" } }",
            "free",
            "upstream.desk.credentials.oauth",
            "`oauth` is an OAuth 2.0 token, and this is a user name and a password",
        ),
        (
            "credential = { bearer = \"env:BEARER\" }\ncredentials = { key = { bearer = \"env:BEARER\" } }",
            "free",
            "upstream.desk.credentials",
            "exclude each other",
        ),
        (
            "credentials = { oauth = { oauth2 = { token_url = \"http://idp.example.com/t\", client_id = \"c\", \
             client_secret = \"env:SECRET\" } } }",
            "free",
            "upstream.desk.credentials.oauth.oauth2.token_url",
            "is not https",
        ),
    ] {
        let house = house(url, credentials, &[tool]);
        let outcome = run(&house, ["check", "--offline", "--json"])
            .await
            .ended(78)
            .json();
        let problems = outcome["problems"].as_array().unwrap();
        let found = problems
            .iter()
            .any(|one| one["key"] == key_at && one["text"].as_str().unwrap().contains(expected));
        assert!(found, "{credentials}: {outcome:#}");
        assert!(problems.iter().all(|one| one["line"].is_u64()), "{outcome:#}");
    }
    // The same operations, met.
    for (credentials, tools) in [
        ("credential = { outside = \"the mesh adds one\" }", &ALL[..]),
        (bearer, &["inherited", "free", "maybe", "scoped", "change"]),
        ("", &["free", "maybe"]),
    ] {
        let house = house(url, credentials, tools);
        run(&house, ["check", "--offline"]).await.ended(0);
    }
}

#[tokio::test]
async fn the_table_of_access_says_what_is_asked_for_and_what_is_attached() {
    let house = house(
        "http://127.0.0.1:9",
        "[upstream.desk.credentials]\nbearer = { bearer = \"env:BEARER\" }",
        &["inherited", "free"],
    );
    let said = run(&house, ["tools", "--access", "--json"]).await.ended(0).json();
    let rows = said["access"].as_array().unwrap();
    assert_eq!(rows.len(), 9, "an operation that is no tool has its row too");
    let row = |operation: &str| {
        let found = rows.iter().find(|row| row["operation"] == operation);
        found.unwrap_or_else(|| panic!("{operation}: {said:#}"))
    };
    let inherited = row("GET /inherited");
    assert_eq!(inherited["tool"], "desk_inherited");
    assert_eq!(inherited["rules"], json!(["all"]));
    assert_eq!(inherited["is_own"], false);
    assert_eq!(
        inherited["attaches"],
        json!([{"scheme":"bearer","scopes":[],"kind":"bearer"}])
    );
    assert_eq!(row("GET /free")["attaches"], json!([]));
    assert_eq!(row("GET /free")["flags"], json!(["open"]));
    let change = row("POST /change");
    assert_eq!(
        (&change["tool"], &change["attaches"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(
        change["requires"][0][0]["scopes"],
        json!(["desk.write", "desk.read"])
    );
    assert!(
        change["blocked"]
            .as_str()
            .unwrap()
            .contains("name one for `oauth`")
    );
    // Nor can a reviewer make a tool of it as things are.
    let held = run(&house, ["tools", "--held", "--json"]).await.ended(0).json();
    let change = held["held"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["operation"] == "change");
    let why = change.unwrap()["credentials"].as_str().unwrap();
    assert!(why.contains("name one for `oauth`"), "{held:#}");
    let text = run(&house, ["tools", "--access"]).await.ended(0);
    assert!(
        text.out.contains("bearer: bearer") && text.out.contains("nobody passes"),
        "{}",
        text.out
    );
    assert!(!text.out.contains("the-bearer-token"));
}

// === tokens ===

#[tokio::test]
async fn a_token_is_got_once_for_all_calls_that_wait_and_kept() {
    for (method, more) in [
        ("basic", ""),
        (
            "post",
            ", method = \"post\", parameters = { audience = \"the desk\" }",
        ),
    ] {
        let (service, tokens) = (Service::start(well).await, tokens(",\"expires_in\":3600").await);
        let house = house(
            &service.url(),
            &only_oauth(&tokens.url(), more),
            &["scoped", "change"],
        );
        let (gate, ada) = ada(&house).await;
        tokens.hold();
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let ada = ada.clone();
                tokio::spawn(async move { ada.call("desk_scoped", json!({})).await })
            })
            .collect();
        tokens.until(1).await;
        assert_eq!(service.count(), 0, "without a token nothing is sent");
        tokens.let_go();
        for call in calls {
            let result = call.await.unwrap();
            assert_ne!(result["isError"], true, "{result}");
        }
        ada.call("desk_scoped", json!({})).await;
        assert_eq!((tokens.count(), service.count()), (1, 9), "{method}");
        assert!(
            service
                .arrived()
                .iter()
                .all(|one| shown(one) == "/scoped authorization=Bearer token-1")
        );
        // Other scopes are another token.
        ada.call("desk_change", json!({})).await;
        assert_eq!(tokens.count(), 2);
        let asked: Vec<(Option<String>, String)> = tokens
            .arrived()
            .into_iter()
            .map(|one| {
                assert_eq!(one.method, "POST");
                assert_eq!(one.headers["content-type"], "application/x-www-form-urlencoded");
                let authorization = one.headers.get("authorization");
                (
                    authorization.map(|value| value.to_str().unwrap().to_owned()),
                    String::from_utf8(one.body).unwrap(),
                )
            })
            .collect();
        // RFC 6749 section 2.3.1: both parts are encoded before they are joined.
        let basic = "Basic Z2F0ZSUyMGtlZXBlcjp0aGUlMjBzZWNyZXQlMkZvZiUyMHRoZSUyQmNsaWVudA==".to_owned();
        let post =
            "&client_id=gate%20keeper&client_secret=the%20secret%2Fof%20the%2Bclient&audience=the%20desk";
        let (header, middle) = match method {
            "basic" => (Some(basic), ""),
            _ => (None, post),
        };
        for ((authorization, body), scope) in asked.iter().zip(["desk.read", "desk.write%20desk.read"]) {
            assert_eq!(*authorization, header);
            assert_eq!(
                *body,
                format!("grant_type=client_credentials{middle}&scope={scope}")
            );
        }
        assert_eq!(
            outcome(&house).await["upstream_requests"],
            1,
            "a token is no request of the call"
        );
        close(gate).await;
    }
}

#[tokio::test]
async fn a_token_that_has_expired_is_not_used_again() {
    let (service, tokens) = (Service::start(well).await, tokens(",\"expires_in\":0").await);
    let house = house(&service.url(), &only_oauth(&tokens.url(), ""), &["scoped"]);
    let (gate, ada) = ada(&house).await;
    for number in 1..=3 {
        ada.call("desk_scoped", json!({})).await;
        let last = shown(service.arrived().last().unwrap());
        assert_eq!(last, format!("/scoped authorization=Bearer token-{number}"));
    }
    close(gate).await;
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once_and_only_for_what_may_be_repeated() {
    let (service, tokens) = (Service::start(well).await, tokens(",\"expires_in\":3600").await);
    let house = house(
        &service.url(),
        &only_oauth(&tokens.url(), ""),
        &["scoped", "change"],
    );
    let (gate, ada) = ada(&house).await;
    service.script(|arrived| match shown(arrived).contains("token-1") {
        true => answer(401, &json!({"message":"expired"})),
        false => well(arrived),
    });
    let result = ada.call("desk_scoped", json!({})).await;
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!((tokens.count(), service.count()), (2, 2));
    assert_eq!(outcome(&house).await["upstream_requests"], 2);

    // One that no token opens is told after the second.
    service.script(|_| answer(401, &json!({"message":"not for you"})));
    service.forget();
    tokens.forget();
    let result = ada.call("desk_scoped", json!({})).await;
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains("401"),
        "{result}"
    );
    assert_eq!((tokens.count(), service.count()), (1, 2));

    // A change is never sent twice, but its token is not used again.
    service.forget();
    let result = ada.call("desk_change", json!({})).await;
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains("401"),
        "{result}"
    );
    assert_eq!(service.count(), 1);
    assert_eq!(outcome(&house).await["upstream_requests"], 1);
    let first = shown(&service.arrived()[0]);
    ada.call("desk_change", json!({})).await;
    assert_ne!(shown(service.arrived().last().unwrap()), first);
    assert_eq!(service.count(), 2);
    close(gate).await;
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_the_failure_is_soon_forgotten() {
    let big = json!({"access_token":"x","token_type":"Bearer","filler":"x".repeat(70_000)});
    type Script = Arc<dyn Fn() -> axum::response::Response + Send + Sync>;
    let scripts: Vec<(&str, Script)> = vec![
        (
            "refused",
            Arc::new(|| {
                answer(
                    401,
                    &json!({"error":"invalid_client","error_description":"the secret/of"}),
                )
            }),
        ),
        ("broken", Arc::new(|| answer(500, &json!({})))),
        (
            "another type",
            Arc::new(|| answer(200, &json!({"access_token":"x","token_type":"mac"}))),
        ),
        ("too large", Arc::new(move || answer(200, &big))),
        (
            "a redirect",
            Arc::new(|| {
                let response = axum::response::Response::builder()
                    .status(307)
                    .header("location", "/other");
                response.body(axum::body::Body::empty()).unwrap()
            }),
        ),
    ];
    let (service, tokens) = (Service::start(well).await, tokens("").await);
    let house = house(
        &service.url(),
        &only_oauth(&tokens.url(), ", timeout = \"300ms\""),
        &["scoped"],
    );
    let (gate, ada) = ada(&house).await;
    for (what, script) in scripts {
        tokens.script(move |_| script());
        tokens.forget();
        until("the token endpoint is asked", async || {
            ada.call("desk_scoped", json!({})).await;
            tokens.count() > 0
        })
        .await;
        tokens.forget();
        let calls = (0..4).map(|_| ada.call("desk_scoped", json!({})));
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result["isError"], true, "{what}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("could not sign in"), "{what}: {text}");
        }
        assert_eq!(service.count(), 0, "{what}");
        assert!(tokens.count() <= 1, "{what}: four calls ask at most once");
        let outcome = outcome(&house).await;
        assert_eq!(outcome["refusal"], "credential-unavailable", "{what}");
        assert_eq!(
            (&outcome["upstream_requests"], &outcome["state"]),
            (&json!(0), &json!("failed")),
            "{what}"
        );
    }
    // One that does not answer.
    tokens.hold();
    until("a silent endpoint is given up", async || {
        let result = ada.call("desk_scoped", json!({})).await;
        assert_eq!(result["isError"], true, "{result}");
        tokens.left() > 0
    })
    .await;
    assert_eq!(service.count(), 0);
    tokens.let_go();
    tokens.script(|_| answer(200, &json!({"access_token":"at-last","token_type":"Bearer"})));
    until("it works again", async || {
        ada.call("desk_scoped", json!({})).await["isError"] != true
    })
    .await;
    let (_, log) = gate.close().await;
    assert!(
        log.contains("invalid_client") && !log.contains("secret/of"),
        "{log}"
    );
}

#[tokio::test]
async fn check_gets_a_token_as_a_call_would_and_says_where_that_fails() {
    let (service, tokens) = (Service::start(well).await, tokens("").await);
    let house = house(
        &service.url(),
        &only_oauth(&tokens.url(), ""),
        &["scoped", "free"],
    );
    let said = run(&house, ["check"]).await.ended(0);
    assert!(
        said.out
            .contains("token for `desk_scoped`: reached, a token was got"),
        "{}",
        said.out
    );
    assert!(
        !said.out.contains("token-1") && !said.err.contains("token-1"),
        "{}",
        said.out
    );
    assert_eq!(tokens.count(), 1);
    tokens.script(|_| answer(400, &json!({"error":"invalid_scope"})));
    let said = run(&house, ["check"]).await.ended(69);
    let expected = "token for `desk_scoped`: NOT reached, the token endpoint answered 400 (`invalid_scope`)";
    assert!(said.out.contains(expected), "{}", said.out);
    tokens.forget();
    run(&house, ["check", "--offline"]).await.ended(0);
    assert_eq!(tokens.count(), 0);
    // Only the question whether anybody is there went to the service.
    assert!(service.arrived().iter().all(|one| one.method == "HEAD"));
}

#[tokio::test]
async fn the_token_endpoint_has_a_network_rule_of_its_own() {
    let (service, tokens) = (Service::start(well).await, tokens("").await);
    let credentials = only_oauth(&tokens.url(), "").replace(", network = { allow = [\"127.0.0.0/8\"] }", "");
    let house = house(&service.url(), &credentials, &["scoped"]);
    let (gate, ada) = ada(&house).await;
    let result = ada.call("desk_scoped", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!((tokens.count(), service.count()), (0, 0));
    let (_, log) = gate.close().await;
    assert!(log.contains("the destination `127.0.0.1` is refused"), "{log}");
}

#[tokio::test]
async fn a_discovery_document_names_the_token_endpoint_only_where_the_operator_named_the_document() {
    let service = Service::start(well).await;
    let issuer = tokens("").await;
    let url = issuer.url();
    let own = url.clone();
    issuer.script(move |arrived| {
        if arrived.target == "/.well-known/openid-configuration" {
            answer(
                200,
                &json!({"issuer":own,"token_endpoint":format!("{own}/there")}),
            )
        } else {
            answer(
                200,
                &json!({"access_token":"found","token_type":"Bearer","expires_in":0}),
            )
        }
    });
    let discovery = format!("{url}/.well-known/openid-configuration");
    let credentials = only_oauth(&discovery, "").replace("token_url", "discovery");
    let house = house(&service.url(), &credentials, &["scoped"]);
    let (gate, ada) = ada(&house).await;
    for _ in 0..2 {
        ada.call("desk_scoped", json!({})).await;
    }
    let targets: Vec<String> = issuer.arrived().into_iter().map(|one| one.target).collect();
    assert_eq!(targets, ["/.well-known/openid-configuration", "/there", "/there"]);
    assert_eq!(shown(&service.arrived()[0]), "/scoped authorization=Bearer found");
    close(gate).await;
}

// === certificates ===

#[tokio::test]
async fn a_certificate_is_shown_for_what_asks_for_one_and_to_no_other() {
    let authority = Authority::new();
    let service = authority.server_for_clients("localhost", &json!({"all":"well"}));
    let (certificate, key) = authority.client("the gate");
    let url = format!("https://localhost:{}", service.address.port());
    let credentials = "tls = { ca = \"ca.pem\" }\n[upstream.desk.credentials]\n\
        cert = { mutual_tls = { certificate = \"gate.pem\", key = \"file:gate.key\" } }";
    let make = |certificate: &str, key: &str| {
        house(&url, credentials, &["cert", "free"])
            .with_file("ca.pem", authority.pem())
            .with_file("gate.pem", certificate)
            .with_file("gate.key", key)
    };
    let house = make(&certificate, &key);
    let (gate, ada) = ada(&house).await;
    let result = ada.call("desk_cert", json!({})).await;
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(service.requests(), 1);
    // This operation asks for nothing, so nothing is shown, and the server lets nobody through without.
    let result = ada.call("desk_free", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(service.requests(), 1);
    close(gate).await;

    // A key of another certificate, and what is no key at all, are faults before anything starts.
    let (_, other) = authority.client("another");
    for (key, expected) in [
        (other.as_str(), "the certificate of this client cannot be used"),
        (
            "-----BEGIN PRIVATE KEY-----\nbm8=\n-----END PRIVATE KEY-----\n",
            "the certificate of this client cannot be used",
        ),
        ("hunter2", "is no private key in PEM"),
    ] {
        let said = run(&make(&certificate, key), ["check", "--offline"])
            .await
            .ended(78);
        assert!(said.err.contains(expected), "{}", said.err);
        assert!(
            !said.err.contains("bm8=") && !said.err.contains("hunter2"),
            "{}",
            said.err
        );
    }
}
