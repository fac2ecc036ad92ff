//! Progress of a call that takes its time: to whoever asked for it, in the form of his revision, and no longer than the
//! call runs.

use e2e::client::{LEGACY, MODERN, Mcp};
use e2e::desk::Plan;
use e2e::house::Gate;
use e2e::schema::{assert_answer, assert_message};
use http::Method;
use serde_json::{Value, json};

fn call(client: &Mcp, token: Option<Value>) -> Value {
    let mut params = json!({"name":"desk_look","arguments":{"id":"a"}});
    if let Some(token) = token {
        params["_meta"] = json!({"progressToken":token});
    }
    client.request("c", "tools/call", params)
}

async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Holds reports against what PROG-02 says of them.
fn assert_reports(revision: &str, token: &Value, reports: &[Value]) {
    let mut before = 0.0;
    for report in reports {
        assert_message(revision, report);
        assert_eq!(report["method"], "notifications/progress");
        let params = &report["params"];
        assert_eq!(params["progressToken"], *token, "{revision}");
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > before, "{revision}: {progress} after {before}");
        before = progress;
        assert_eq!(
            params.get("message").is_some(),
            revision != "2024-11-05",
            "{revision}: {report}"
        );
    }
}

#[tokio::test]
async fn prog_01_prog_02_a_slow_call_reports_to_its_own_token_and_stops_with_its_end() {
    let (desk, gate) = Plan::new().limit("progress_interval", "\"20ms\"").serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    for client in &clients {
        for token in [json!("text"), json!(7), json!("7"), json!("")] {
            desk.service.hold();
            let mut stream = client.stream(&call(client, Some(token.clone()))).await;
            assert_eq!(stream.header("content-type"), Some("text/event-stream"));
            let mut reports = Vec::new();
            while reports.len() < 3 {
                reports.push(stream.message().await.unwrap());
            }
            desk.service.let_go();
            let answer = loop {
                let message = stream.message().await.unwrap();
                if message.get("method").is_none() {
                    break message;
                }
                reports.push(message);
            };
            assert_reports(&client.revision, &token, &reports);
            assert_answer(&client.revision, "tools/call", &answer);
            assert_eq!(answer["id"], "c");
            assert!(
                stream.next().await.is_none(),
                "HL-05, HM-08: the answer is the last event"
            );
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn prog_01_without_a_token_nothing_is_reported() {
    let (desk, gate) = Plan::new().limit("progress_interval", "\"10ms\"").serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    let events_only = [("accept", Some("text/event-stream"))];
    for client in &clients {
        // A second call with a token says when there would have been reports.
        desk.service.hold();
        let arrived = desk.service.count();
        let mut silent = call(client, None);
        if client.revision == MODERN {
            // LOG-03: a service logs nothing to a client, whatever he asks for.
            silent["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        let silent = client
            .send(Method::POST, &silent, &events_only, silent.to_string())
            .await;
        let mut witness = call(client, Some(json!("w")));
        witness["id"] = json!("witness");
        let mut witness = client.stream(&witness).await;
        desk.service.until(arrived + 2).await;
        for _ in 0..3 {
            witness.message().await.unwrap();
        }
        desk.service.let_go();
        let mut silent = silent;
        let answer = silent.message().await.unwrap();
        assert_answer(&client.revision, "tools/call", &answer);
        assert!(silent.message().await.is_none(), "{}", client.revision);
        // And as JSON there is no place for any.
        let plain = client.post(&call(client, None)).await;
        assert_eq!(plain.header("content-type"), Some("application/json"));
    }
    close(gate).await;
}

#[tokio::test]
async fn hl_04_hm_08_a_reader_of_json_alone_gets_json_though_it_asks_for_reports() {
    let (desk, gate) = Plan::new().limit("progress_interval", "\"10ms\"").serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    for client in &clients {
        for (accept, media) in [
            ("application/json", "application/json"),
            ("application/json, text/event-stream;q=0", "application/json"),
            ("application/*", "application/json"),
            ("*/*", "text/event-stream"),
        ] {
            let message = call(client, Some(json!("p")));
            let answer = client.post_with(&message, &[("accept", Some(accept))]).await;
            assert_eq!(answer.status, 200, "{accept}");
            assert_eq!(answer.header("content-type"), Some(media), "{accept}");
            assert_answer(&client.revision, "tools/call", &answer.json());
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn hm_10_an_answer_that_takes_its_time_keeps_its_stream_open_with_comments() {
    let (desk, gate) = Plan::new().limit("keep_alive_interval", "\"50ms\"").serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    let events_only = [("accept", Some("text/event-stream"))];
    for client in &clients {
        desk.service.hold();
        let message = call(client, None);
        let mut stream = client
            .send(Method::POST, &message, &events_only, message.to_string())
            .await;
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        let mut text = String::new();
        while text.matches(": keep-alive\n\n").count() < 3 {
            text.push_str(std::str::from_utf8(&stream.bytes().await.unwrap()).unwrap());
        }
        // Nobody takes a comment for a message, and only one revision says more before the answer (HL-06).
        let primed = client.revision == "2025-11-25";
        assert_eq!(text.contains("data:"), primed, "{}: {text:?}", client.revision);
        desk.service.let_go();
        let answer = stream.message().await.unwrap();
        assert_answer(&client.revision, "tools/call", &answer);
    }
    close(gate).await;
}

#[tokio::test]
async fn prog_01_a_token_that_is_none_is_refused() {
    let (desk, gate) = Plan::new().serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    for client in &clients {
        for token in [json!(null), json!(1.5), json!(true), json!([1]), json!({})] {
            let answer = client.post(&call(client, Some(token.clone()))).await;
            assert_message(&client.revision, &answer.json());
            assert_eq!(answer.code(), Some(-32602), "{} {token}", client.revision);
        }
    }
    assert_eq!(desk.service.count(), 0);
    close(gate).await;
}

#[tokio::test]
async fn prog_02_on_a_pipe_reports_come_before_the_answer_and_none_after_it() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let (desk, mut pipe) = Plan::new().limit("progress_interval", "\"20ms\"").stdio().await;
        if revision != MODERN {
            let opened = pipe.ask(&e2e::client::opening(revision)).await;
            assert_answer(revision, "initialize", &opened);
        }
        let client = Mcp {
            revision: revision.to_owned(),
            ..Mcp::modern("", "")
        };
        desk.service.hold();
        pipe.send(&call(&client, Some(json!(3))).to_string()).await;
        let mut reports = Vec::new();
        while reports.len() < 3 {
            reports.push(pipe.message().await);
        }
        desk.service.let_go();
        let answer = loop {
            let message = pipe.message().await;
            if message.get("method").is_none() {
                break message;
            }
            reports.push(message);
        };
        assert_reports(revision, &json!(3), &reports);
        assert_answer(revision, "tools/call", &answer);
        assert_eq!(pipe.close().await.0, Some(0));
    }
}
