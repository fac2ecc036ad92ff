//! The worked example, driven by the official SDKs of both generations, over HTTP and over standard input and output,
//! in each era that they speak.

use e2e::client::{Http, LEGACY, MODERN};
use e2e::desk::{Desk, Plan};
use e2e::driver::{At, Driver, Sdk};
use e2e::example::Example;
use http::Method;
use serde_json::{Value, json};

use crate::road;

/// A way in which an SDK agrees on a revision, and the revision that it has to come to.
struct Way {
    sdk: Sdk,
    mode: Value,
    revision: &'static str,
    /// Whether the client asks the server anything before it calls itself connected.
    asks: bool,
}

/// Every way that the SDKs have.
fn ways() -> Vec<Way> {
    let newest = LEGACY[3];
    [
        (Sdk::TypeScript1, Value::Null, newest, true),
        (Sdk::TypeScript2, json!("legacy"), newest, true),
        (Sdk::TypeScript2, json!("auto"), MODERN, true),
        (Sdk::TypeScript2, json!({"pin":MODERN}), MODERN, true),
        (Sdk::Python1, Value::Null, newest, true),
        (Sdk::Python2, json!("legacy"), newest, true),
        (Sdk::Python2, json!("auto"), MODERN, true),
        (Sdk::Python2, json!(MODERN), MODERN, false),
    ]
    .map(|(sdk, mode, revision, asks)| Way {
        sdk,
        mode,
        revision,
        asks,
    })
    .into()
}

impl Way {
    fn drive(&self, at: At<'_>, steps: &Value) -> Option<Driver> {
        self.sdk.drive(&self.mode, at, steps)
    }

    /// Waits until the client is connected, and gives the id of its session if it tells one.
    async fn connected(&self, client: &mut Driver) -> Option<String> {
        let told = client.step("connect").await;
        assert_eq!(told["revision"], self.revision, "{self}: {told}");
        let server = if self.asks {
            json!("tollhouse")
        } else {
            Value::Null
        };
        assert_eq!(told["server"], server, "{self}: {told}");
        told["session"].as_str().map(str::to_owned)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.sdk, self.mode)
    }
}

/// The steps of the road.
fn steps() -> Value {
    json!([
        ["tools"],
        ["call", road::STATUS, {"invoice_id":"inv-1001"}],
        ["call", road::STATUS, {"invoice_id":"inv-2001"}],
        ["call", "billing_exportInvoices", {}],
        ["ping"],
    ])
}

/// Walks the road with a client, and holds what it tells against exact values.
async fn walk(client: &mut Driver, way: &Way) {
    let tools = client.step("tools").await;
    assert_eq!(tools, json!({"names":road::TOOLS}), "{way}");
    let allowed = client.step("call").await;
    assert_eq!(allowed["error_of_tool"], false, "{way}: {allowed}");
    assert_eq!(allowed["structured"], road::answer(), "{way}: {allowed}");
    let as_text: Value = serde_json::from_str(allowed["text"].as_str().unwrap()).unwrap();
    assert_eq!(as_text, allowed["structured"], "{way}");
    let denied = client.step("call").await;
    assert_eq!(denied["error_of_tool"], true, "{way}: {denied}");
    assert_eq!(denied["text"], road::DENIED, "{way}: {denied}");
    assert!(denied["structured"].is_null(), "{way}: {denied}");
    let unknown = client.step("call").await;
    assert_eq!(unknown["error"]["code"], -32602, "{way}: {unknown}");
    let ping = client.step("ping").await;
    if way.revision == MODERN {
        assert!(
            ping["error"]["code"] == -32601
                || ping["error"]["code"] == "METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION",
            "the gate or already the client knows that there is none: {way}: {ping}"
        );
    } else {
        assert_eq!(ping, json!({"answer":{}}), "{way}");
    }
}

#[tokio::test]
async fn the_official_sdks_walk_the_road_over_http() {
    let example = Example::start().await;
    let key = example.house.key("ada").await;
    let gate = example.house.serve().await;
    let mut walked = 0;
    for way in ways() {
        let Some(mut client) = way.drive(At::Http(&gate.url, &key), &steps()) else {
            continue;
        };
        let session = way.connected(&mut client).await;
        walk(&mut client, &way).await;
        client.end().await;
        // The second Python SDK keeps its session to itself.
        let tells = way.revision != MODERN && way.sdk != Sdk::Python2;
        assert_eq!(session.is_some(), tells, "{way}: {session:?}");
        if let Some(session) = session {
            // HL-14, HL-15: what the client ended is over.
            let headers = [
                ("authorization", &*format!("Bearer {key}")),
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", way.revision),
                ("mcp-session-id", &session),
            ];
            let ping = json!({"jsonrpc":"2.0","id":1,"method":"ping"}).to_string();
            let answer = Http::new().send(Method::POST, &gate.url, &headers, ping).await;
            assert_eq!(answer.status, 404, "{way}: {}", answer.text());
        }
        walked += 1;
    }
    road::assert_carried(&example, walked, 2 * walked).await;
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn the_official_sdks_walk_the_road_over_standard_input_and_output() {
    let example = Example::start().await;
    let mut walked = 0;
    for way in ways() {
        let Some(mut client) = way.drive(At::Stdio(&example.house), &steps()) else {
            continue;
        };
        way.connected(&mut client).await;
        walk(&mut client, &way).await;
        // The gate has ended too: nobody holds its standard error any more.
        client.end().await;
        walked += 1;
    }
    road::assert_carried(&example, walked, 2 * walked).await;
}

#[tokio::test]
async fn a_client_with_a_token_that_does_not_hold_never_connects() {
    let example = Example::start().await;
    let gate = example.house.serve().await;
    let mut tried = 0;
    for way in ways() {
        let Some(mut client) = way.drive(At::Http(&gate.url, "nonsense"), &json!([["tools"]])) else {
            continue;
        };
        let step = match (way.sdk, way.asks) {
            (_, false) => {
                way.connected(&mut client).await;
                "tools"
            }
            (Sdk::TypeScript1 | Sdk::TypeScript2, true) => "connect",
            (Sdk::Python1 | Sdk::Python2, true) => "failed",
        };
        let told = client.step(step).await;
        assert!(told["error"]["message"].is_string(), "{way}: {told}");
        tried += 1;
    }
    assert_eq!(example.service.requests(), 0);
    let ledger = example.house.ledger().await;
    let refusals = ledger.refusals();
    assert!(refusals.len() >= tried, "{tried}: {refusals:?}");
    assert!(
        refusals.iter().all(|code| *code == "unauthenticated"),
        "{refusals:?}"
    );
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// PROG-01, PROG-02: lets every client make a slow call, and holds what it sees of the progress against what it may.
async fn watch(desk: &Desk, at: At<'_>) {
    let steps = json!([["watch", "desk_look", {"id":"a"}]]);
    for way in ways() {
        desk.service.hold();
        let Some(mut client) = way.drive(at, &steps) else {
            continue;
        };
        way.connected(&mut client).await;
        let mut before = 0.0;
        for _ in 0..2 {
            let report = client.step("progress").await;
            let progress = report["progress"].as_f64().unwrap();
            assert!(progress > before, "{way}: {report} after {before}");
            assert!(report["message"].is_string(), "{way}: {report}");
            before = progress;
        }
        desk.service.let_go();
        let answer = client.after("progress", "watch").await;
        assert_eq!(answer["structured"], json!({"id":"a"}), "{way}: {answer}");
        client.end().await;
        assert_eq!(desk.service.count(), 1, "{way}");
        desk.service.forget();
    }
}

fn slow() -> Plan {
    Plan::new().limit("progress_interval", "\"50ms\"")
}

#[tokio::test]
async fn the_official_sdks_see_the_progress_of_a_slow_call_over_http() {
    let (desk, gate) = slow().serve().await;
    watch(&desk, At::Http(&gate.url, desk.key("ada"))).await;
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn the_official_sdks_see_the_progress_of_a_slow_call_over_standard_input_and_output() {
    let desk = slow().set_up().await;
    watch(&desk, At::Stdio(&desk.house)).await;
}
