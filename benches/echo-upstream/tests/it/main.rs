//! The built command on real sockets and pipes: both faces, both eras, the counters and the limits.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

struct Upstream {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

fn spawn(arguments: &[&str]) -> Upstream {
    let mut child = Command::new(env!("CARGO_BIN_EXE_echo-upstream"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Upstream { child, lines }
}

impl Upstream {
    /// Waits for the ready line and gives the URL in it.
    async fn url(&mut self) -> String {
        let line = self.lines.next_line().await.unwrap().unwrap();
        line.strip_prefix("listening on ").unwrap().to_owned()
    }
}

async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response<Bytes> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client
        .request(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap())
        .await
        .unwrap();
    let (parts, body) = response.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

fn modern(method: &str, token: Option<&str>) -> String {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(token) = token {
        meta["progressToken"] = json!(token);
    }
    json!({
        "jsonrpc": "2.0", "id": 7, "method": method,
        "params": { "_meta": meta, "name": "echo", "arguments": { "text": "t", "nonce": "n" } },
    })
    .to_string()
}

const MODERN: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

fn body(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn both_faces_answer_and_every_request_is_counted() {
    let mut upstream = spawn(&["--tools", "2"]);
    let url = upstream.url().await;
    let mcp = format!("{url}/mcp");

    let called = send("POST", &mcp, MODERN, &modern("tools/call", None)).await;
    assert_eq!(called.status(), 200);
    assert_eq!(body(&called)["result"]["structuredContent"]["nonce"], "n");

    let echoed = send(
        "POST",
        &format!("{url}/echo2"),
        &[],
        r#"{"text":"t","nonce":"n"}"#,
    )
    .await;
    assert_eq!(body(&echoed), json!({ "text": "t", "nonce": "n", "seq": 1 }));
    let item = send("GET", &format!("{url}/items/a?nonce=n"), &[], "").await;
    assert_eq!(body(&item), json!({ "id": "a", "nonce": "n" }));
    let document = send("GET", &format!("{url}/openapi.json"), &[], "").await;
    assert!(body(&document)["paths"]["/echo2"]["post"].is_object());
    assert_eq!(send("GET", &mcp, &[], "").await.status(), 405);
    assert_eq!(
        send("GET", &format!("{url}/nothing"), &[], "").await.status(),
        404
    );

    let counted = body(&send("GET", &format!("{url}/_count"), &[], "").await);
    let expected = json!({
        "echo": 1, "item": 1, "document": 1, "tool_call": 1, "tool_list": 0, "opening": 0, "other": 2,
    });
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn a_legacy_client_opens_a_session_and_calls_in_it() {
    let mut upstream = spawn(&[]);
    let mcp = format!("{}/mcp", upstream.url().await);
    let open = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
    let opened = send("POST", &mcp, &[], open).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap();
    let headers = [
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let noted = send(
        "POST",
        &mcp,
        &headers,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    )
    .await;
    assert_eq!((noted.status().as_u16(), noted.body().len()), (202, 0));
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"t","nonce":"n"}}}"#;
    let called = body(&send("POST", &mcp, &headers, call).await);
    assert_eq!(called["result"]["structuredContent"]["nonce"], "n");
    assert!(called["result"].get("resultType").is_none());
    assert_eq!(send("POST", &mcp, &[], call).await.status(), 400);
}

#[tokio::test]
async fn a_call_that_asks_for_progress_gets_so_many_events_and_then_its_result() {
    let mut upstream = spawn(&["--events", "3"]);
    let mcp = format!("{}/mcp", upstream.url().await);
    let streamed = send("POST", &mcp, MODERN, &modern("tools/call", Some("p1"))).await;
    assert_eq!(streamed.headers()["content-type"], "text/event-stream");
    let messages: Vec<Value> = std::str::from_utf8(streamed.body())
        .unwrap()
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let progress: Vec<_> = messages[..3]
        .iter()
        .map(|message| {
            assert_eq!(message["params"]["progressToken"], "p1");
            message["params"]["progress"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(progress, [1, 2, 3]);
    assert_eq!(messages[3]["id"], 7);
    assert_eq!(messages.len(), 4);

    let plain = send("POST", &mcp, MODERN, &modern("tools/call", None)).await;
    assert_eq!(plain.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn padding_and_delay_are_as_asked_for() {
    let mut upstream = spawn(&["--answer-bytes", "1000", "--delay-ms", "80"]);
    let url = upstream.url().await;
    let before = Instant::now();
    let echoed = send("POST", &format!("{url}/echo"), &[], r#"{"text":"t","nonce":"n"}"#).await;
    assert!(before.elapsed() >= Duration::from_millis(80));
    assert_eq!(body(&echoed)["padding"].as_str().unwrap().len(), 1_000);
}

#[tokio::test]
async fn standard_input_is_answered_line_by_line_until_it_ends() {
    let mut upstream = spawn(&["--stdio", "--events", "2"]);
    let mut input = upstream.child.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "",
        "not json",
        &modern("tools/call", Some("p1")),
    ] {
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    drop(input);
    let mut messages: Vec<Value> = Vec::new();
    while let Some(line) = upstream.lines.next_line().await.unwrap() {
        messages.push(serde_json::from_str(&line).unwrap());
    }
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(messages[1]["error"]["code"], -32600);
    assert_eq!(messages[2]["params"]["progress"], 1);
    assert_eq!(messages[3]["params"]["progress"], 2);
    assert_eq!(messages[4]["result"]["structuredContent"]["nonce"], "n");
    assert!(upstream.child.wait().await.unwrap().success());
}

#[tokio::test]
async fn the_printed_document_is_the_served_one_and_the_reviewed_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_echo-upstream"))
        .arg("--print-openapi")
        .output()
        .await
        .unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut upstream = spawn(&[]);
    let url = upstream.url().await;
    assert_eq!(
        body(&send("GET", &format!("{url}/openapi.json"), &[], "").await),
        printed
    );
    let reviewed: Value = serde_json::from_str(include_str!("../../gate/openapi.json")).unwrap();
    assert_eq!(
        reviewed, printed,
        "run `echo-upstream --print-openapi > gate/openapi.json` and review the difference"
    );
}

#[tokio::test]
async fn it_ends_well_when_it_is_told_to_on_a_port_and_on_standard_input() {
    for stdio in [false, true] {
        let mut upstream = spawn(if stdio { &["--stdio"] } else { &[] });
        if stdio {
            // An answer shows that it runs; its standard input stays open.
            let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
            upstream
                .child
                .stdin
                .as_mut()
                .unwrap()
                .write_all(ping)
                .await
                .unwrap();
            upstream.lines.next_line().await.unwrap().unwrap();
        } else {
            upstream.url().await;
        }
        let id = upstream.child.id().unwrap().to_string();
        Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
        let status = upstream.child.wait().await.unwrap();
        assert!(status.success(), "stdio: {stdio}, {status}");
    }
}

#[tokio::test]
async fn it_listens_on_loopback_only() {
    let output = Command::new(env!("CARGO_BIN_EXE_echo-upstream"))
        .args(["--listen", "0.0.0.0:0"])
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("`0.0.0.0:0` is not loopback")
    );
}
