//! Cancelling: what ends a call and what does not, and what the ledger says of a call whose end nobody waited for.

use std::time::Duration;

use e2e::client::{LEGACY, MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan};
use e2e::house::Gate;
use e2e::schema::{assert_answer, assert_message};
use http::Method;
use serde_json::{Value, json};

fn call(client: &Mcp, id: impl Into<Value>) -> Value {
    client.request(
        id,
        "tools/call",
        json!({"name":"desk_look","arguments":{"id":"a"}}),
    )
}

fn cancel(id: impl Into<Value>) -> Value {
    json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id.into(),"reason":"enough"}})
}

async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// State, refusal and number of requests of every outcome, in order.
async fn outcomes(desk: &Desk) -> Vec<String> {
    let ledger = desk.house.ledger().await;
    assert_eq!(
        ledger.of_kind("intent").len(),
        ledger.of_kind("outcome").len(),
        "every call has an end"
    );
    ledger
        .of_kind("outcome")
        .iter()
        .map(|outcome| {
            format!(
                "{} {} {}",
                outcome["state"].as_str().unwrap(),
                outcome["refusal"].as_str().unwrap_or("-"),
                outcome["upstream_requests"]
            )
        })
        .collect()
}

#[tokio::test]
async fn can_01_a_cancelled_call_ends_at_the_service_and_gets_no_answer() {
    let (desk, gate) = Plan::new().serve().await;
    desk.service.hold();
    let mut calls = 0;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        for (id, accept) in [(json!(1), "text/event-stream"), (json!("1"), "application/json")] {
            let message = call(&client, id.clone());
            let change = [("accept", Some(accept))];
            let waiting = client.post_with(&message, &change);
            let cancelling = async {
                calls += 1;
                desk.service.until(calls).await;
                // Somebody else's ids, and this one with another type, end nothing.
                let other = if id == 1 { json!("1") } else { json!(1) };
                for id in [other, json!(99), json!("x")] {
                    assert_eq!(client.post(&cancel(id)).await.status, 202);
                }
                assert_eq!(desk.service.left(), calls - 1, "{revision}: it still runs");
                assert_eq!(client.post(&cancel(id.clone())).await.status, 202);
                desk.service.until_left(calls).await;
            };
            let (answer, ()) = tokio::join!(waiting, cancelling);
            assert!(answer.status.is_success());
            assert!(
                !answer.text().contains("result") && !answer.text().contains("error"),
                "{}",
                answer.text()
            );
            // The id is free again.
            assert_eq!(
                client.post(&cancel(id)).await.status,
                202,
                "one that is over is ignored"
            );
        }
    }
    desk.service.let_go();
    let client = desk.legacy(&gate, "ada", "2025-11-25").await;
    let answer = client.post(&call(&client, 1)).await;
    assert_answer("2025-11-25", "tools/call", &answer.json());
    // It ended before the cancellation came; so did the handshake (LIFE-L08).
    assert_eq!(client.post(&cancel(0)).await.status, 202);
    assert_eq!(client.post(&cancel(1)).await.status, 202);
    assert!(client.ask("ping", json!({})).await["result"].is_object());
    close(gate).await;
    let mut expected = vec!["unknown cancelled 1".to_owned(); calls];
    expected.push("done - 1".to_owned());
    assert_eq!(outcomes(&desk).await, expected);
}

#[tokio::test]
async fn can_01_only_the_session_that_asked_can_cancel() {
    let (desk, gate) = Plan::new().with("bob").serve().await;
    let ada = desk.legacy(&gate, "ada", "2025-11-25").await;
    let own_other = desk.legacy(&gate, "ada", "2025-11-25").await;
    let bob = desk.legacy(&gate, "bob", "2025-11-25").await;
    desk.service.hold();
    let message = call(&ada, 1);
    let waiting = ada.post(&message);
    let others = async {
        desk.service.until(1).await;
        for client in [&own_other, &bob] {
            assert_eq!(client.post(&cancel(1)).await.status, 202);
        }
        // In the stateless era a notification names nothing (CAN-02).
        let modern = desk.modern(&gate, "ada");
        assert_eq!(modern.post(&cancel(1)).await.status, 202);
        let foreign = Mcp {
            session: ada.session.clone(),
            ..bob.clone()
        };
        assert_eq!(foreign.post(&cancel(1)).await.status, 404);
        desk.service.let_go();
    };
    let (answer, ()) = tokio::join!(waiting, others);
    assert_answer("2025-11-25", "tools/call", &answer.json());
    assert_eq!(desk.service.left(), 0);
    close(gate).await;
    assert_eq!(outcomes(&desk).await, ["done - 1"]);
}

#[tokio::test]
async fn hm_09_d14_closing_the_connection_cancels_a_call_that_stands_alone() {
    let (desk, gate) = Plan::new().limit("progress_interval", "\"20ms\"").serve().await;
    let client = desk.modern(&gate, "ada");
    desk.service.hold();
    // A JSON answer, of which nothing has come yet.
    let message = call(&client, 1);
    let waiting = tokio::spawn({
        let (client, message) = (client.clone(), message.clone());
        async move { client.post(&message).await }
    });
    desk.service.until(1).await;
    waiting.abort();
    desk.service.until_left(1).await;
    // A stream that has begun, and one on which nothing was said.
    for (calls, token) in [(2, Some("p")), (3, None)] {
        let mut message = call(&client, 1);
        if let Some(token) = token {
            message["params"]["_meta"]["progressToken"] = json!(token);
        }
        let change = [("accept", Some("text/event-stream"))];
        let mut stream = client
            .send(Method::POST, &message, &change, message.to_string())
            .await;
        desk.service.until(calls).await;
        if token.is_some() {
            assert_message(MODERN, &stream.message().await.unwrap());
        }
        drop(stream);
        desk.service.until_left(calls).await;
    }
    // HTTP/2 has streams of its own: closing one of them is enough.
    let two = Mcp {
        http: e2e::client::Http::two(),
        ..client.clone()
    };
    let stays = {
        let two = two.clone();
        tokio::spawn(async move { two.call("desk_look", json!({"id":"stays"})).await })
    };
    desk.service.until(4).await;
    let goes = {
        let (two, message) = (two.clone(), message.clone());
        tokio::spawn(async move { two.post(&message).await })
    };
    desk.service.until(5).await;
    goes.abort();
    desk.service.until_left(4).await;
    desk.service.let_go();
    assert_eq!(stays.await.unwrap()["structuredContent"]["id"], "stays");
    assert_eq!(desk.service.left(), 4, "only the one that was closed");
    close(gate).await;
    let mut expected = vec!["unknown cancelled 1"; 4];
    expected.push("done - 1");
    let mut found = outcomes(&desk).await;
    found.sort_by_key(|outcome| !outcome.starts_with("unknown"));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn hl_07_d14_closing_the_connection_cancels_nothing_in_a_session() {
    let (desk, gate) = Plan::new().serve().await;
    desk.service.hold();
    let mut calls = 0;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        for accept in ["application/json", "text/event-stream"] {
            let message = call(&client, format!("{revision} {accept}"));
            let waiting = tokio::spawn({
                let client = client.clone();
                async move { client.post_with(&message, &[("accept", Some(accept))]).await }
            });
            calls += 1;
            desk.service.until(calls).await;
            waiting.abort();
        }
    }
    // Had a closed connection been a cancellation, it would have been one by now: these calls came after.
    let modern = desk.modern(&gate, "ada");
    let message = call(&modern, 1);
    let waiting = tokio::spawn(async move { modern.post(&message).await });
    desk.service.until(calls + 1).await;
    waiting.abort();
    desk.service.until_left(1).await;
    assert_eq!(desk.service.left(), 1, "only the call of the other era");
    desk.service.let_go();
    close(gate).await;
    let found = outcomes(&desk).await;
    assert_eq!(
        found.iter().filter(|outcome| *outcome == "done - 1").count(),
        calls,
        "{found:?}"
    );
    assert_eq!(desk.service.left(), 1);
}

#[tokio::test]
async fn base_02_base_03_an_id_in_use_is_not_used_twice_at_once() {
    let (desk, gate) = Plan::new().serve().await;
    let client = desk.legacy(&gate, "ada", "2025-06-18").await;
    desk.service.hold();
    let message = call(&client, 1);
    let waiting = client.post(&message);
    let second = async {
        desk.service.until(1).await;
        let answer = client.post(&message).await;
        assert_message("2025-06-18", &answer.json());
        assert_eq!((answer.status.as_u16(), answer.code()), (400, Some(-32600)));
        assert_eq!(answer.json()["id"], 1);
        desk.service.let_go();
    };
    let (answer, ()) = tokio::join!(waiting, second);
    assert_answer("2025-06-18", "tools/call", &answer.json());
    // Over, so it may come again; and in the stateless era requests do not know of each other at all (BASE-17).
    assert_answer("2025-06-18", "tools/call", &client.post(&message).await.json());
    let modern = desk.modern(&gate, "ada");
    desk.service.hold();
    let message = call(&modern, 1);
    let both = async { tokio::join!(modern.post(&message), modern.post(&message)) };
    let go = async {
        desk.service.until(4).await;
        desk.service.let_go();
    };
    let ((one, two), ()) = tokio::join!(both, go);
    for answer in [one, two] {
        assert_answer(MODERN, "tools/call", &answer.json());
        assert_eq!(answer.status, 200);
    }
    close(gate).await;
}

#[tokio::test]
async fn can_01_stdio_06_on_a_pipe_the_notification_cancels_in_both_eras() {
    for revision in [None, Some("2024-11-05"), Some("2025-11-25")] {
        let (desk, mut pipe) = Plan::new().stdio().await;
        let spoken = revision.unwrap_or(MODERN);
        if let Some(revision) = revision {
            let opened = pipe.ask(&opening(revision)).await;
            assert_answer(revision, "initialize", &opened);
        }
        let client = Mcp {
            revision: spoken.to_owned(),
            ..Mcp::modern("", "")
        };
        desk.service.hold();
        pipe.send(&call(&client, "stays").to_string()).await;
        pipe.send(&call(&client, 5).to_string()).await;
        desk.service.until(2).await;
        for id in [json!("5"), json!("nothing"), json!(6)] {
            pipe.send(&cancel(id).to_string()).await;
        }
        // The id is still in use, so the ones before did not end it.
        let refused = pipe.ask(&call(&client, 5)).await;
        assert_message(spoken, &refused);
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&json!(5), &json!(-32600))
        );
        pipe.send(&cancel(5).to_string()).await;
        desk.service.until_left(1).await;
        desk.service.let_go();
        let answer = pipe.message().await;
        assert_answer(spoken, "tools/call", &answer);
        assert_eq!(answer["id"], "stays", "the cancelled one is not answered");
        drop(pipe.input.take());
        assert!(pipe.line().await.is_none(), "and never will be");
        assert_eq!(pipe.close().await.0, Some(0));
        let mut found = outcomes(&desk).await;
        found.sort();
        assert_eq!(found, ["done - 1", "unknown cancelled 1"]);
    }
}

#[tokio::test]
async fn can_05_a_call_ends_at_its_deadline_whoever_waits_and_its_outcome_is_unknown() {
    let (desk, gate) = Plan::new()
        .tools("[upstream.desk.tool.look]\noperation = \"getThing\"\nclass = \"read\"\ntimeout = \"300ms\"\n")
        .serve()
        .await;
    let client = desk.modern(&gate, "ada");
    desk.service.hold();
    let result = tokio::time::timeout(
        Duration::from_secs(30),
        client.call("desk_look", json!({"id":"a"})),
    )
    .await
    .expect("long before anybody loses patience");
    assert_eq!(result["isError"], true);
    desk.service.until_left(1).await;
    close(gate).await;
    assert_eq!(outcomes(&desk).await, ["unknown upstream-timeout 1"]);
}
