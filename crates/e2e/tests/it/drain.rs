//! The end of a gate over HTTP: what runs may end, nothing new begins, streams end, and the ledger is closed in order. The
//! same on standard input and output is in `lines.rs`.

use e2e::client::{Events, Http, LEGACY, MODERN, Mcp};
use e2e::desk::{Desk, Plan, look};
use e2e::house::{Gate, text, until};
use e2e::schema::{assert_answer, assert_message};
use e2e::socket::Socket;
use serde_json::{Value, json};

/// The same, with reports of progress.
fn slow(client: &Mcp, id: impl Into<Value>) -> Value {
    let mut message = look(client, id);
    message["params"]["_meta"]["progressToken"] = json!("p");
    message
}

/// A call as it stands on a connection.
fn raw(gate: &Gate, token: &str, call: &Value) -> String {
    let body = call.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: desk_look\r\nContent-Length: {}\r\n\r\n{body}",
        gate.authority(),
        body.len()
    )
}

/// Waits until nobody can connect any more: from then on the gate takes no call.
async fn closed(gate: &Gate) {
    let authority = gate.authority();
    until("the door is closed", async || {
        tokio::net::TcpStream::connect(authority).await.is_err()
    })
    .await;
}

/// The messages of a stream to its end.
async fn rest(mut events: Events) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = events.message().await {
        messages.push(message);
    }
    messages
}

/// State and refusal of every outcome, sorted.
async fn outcomes(desk: &Desk) -> Vec<String> {
    let ledger = desk.house.ledger().await;
    let outcomes = ledger.of_kind("outcome");
    let mut found: Vec<String> = outcomes
        .iter()
        .map(|outcome| {
            format!(
                "{} {}",
                outcome["state"].as_str().unwrap(),
                outcome["refusal"].as_str().unwrap_or("-")
            )
        })
        .collect();
    found.sort();
    found
}

/// What `audit verify` says of an export, which must be sound.
async fn verify(desk: &Desk) -> String {
    let export = desk.house.run(["audit", "export"]).await;
    desk.house.write("export.jsonl", &export.stdout);
    let verified = desk.house.run(["audit", "verify", "export.jsonl"]).await;
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    text(&verified.stdout)
}

#[tokio::test]
async fn running_calls_are_answered_new_ones_are_refused_and_streams_end() {
    let (desk, gate) = Plan::new()
        .limit("progress_interval", "\"20ms\"")
        // An idle connection is to be there at the end, however slow everything is.
        .limit("headers_timeout", "\"5m\"")
        .with("bob")
        .serve()
        .await;
    desk.service.hold();
    let modern = desk.modern(&gate, "ada");
    let two = Mcp {
        http: Http::two(),
        ..modern.clone()
    };
    let mut sessions = Vec::new();
    for revision in LEGACY {
        sessions.push(desk.legacy(&gate, "ada", revision).await);
    }
    // A connection that was there before, with nothing on it yet.
    let mut old = Socket::open(gate.authority()).await;
    let mut listening = sessions[3].listen(None).await;
    assert!(listening.next().await.is_some(), "it is open");
    // A call in every form: JSON and events, in sessions and alone, over both HTTPs.
    let plain: Vec<_> = sessions
        .iter()
        .chain([&modern, &two])
        .map(|client| {
            let (client, message) = (client.clone(), look(client, "plain"));
            tokio::spawn(async move { (client.revision.clone(), client.post(&message).await) })
        })
        .collect();
    desk.service.until(plain.len()).await;
    let mut streams = Vec::new();
    for client in sessions.iter().chain([&modern, &two]) {
        let mut stream = client.stream(&slow(client, "slow")).await;
        assert_message(&client.revision, &stream.message().await.unwrap());
        streams.push((client.revision.clone(), stream));
    }
    let running = plain.len() + streams.len();
    desk.service.until(running).await;

    gate.interrupt();
    closed(&gate).await;
    // What comes on an old connection is answered, and carried out no more.
    old.write(raw(&gate, desk.key("bob"), &look(&modern, 1))).await;
    let refused = old.response().await.expect("an answer").json();
    assert_answer(MODERN, "tools/call", &refused);
    assert_eq!(refused["result"]["isError"], true);
    let said = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("shutting down"), "{said}");
    assert_eq!(desk.service.count(), running);

    desk.service.let_go();
    for call in plain {
        let (revision, answer) = call.await.unwrap();
        assert_answer(&revision, "tools/call", &answer.json());
        assert_eq!(answer.json()["result"]["content"][0]["type"], "text");
    }
    for (revision, stream) in streams {
        let messages = rest(stream).await;
        assert_answer(&revision, "tools/call", messages.last().expect("an answer"));
    }
    assert!(listening.next().await.is_none(), "a listening stream ends");
    let (code, log) = gate.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(outcomes(&desk).await, vec!["done -"; running]);
    let ledger = desk.house.ledger().await;
    assert_eq!(ledger.refusals(), ["draining"]);
    assert_eq!(ledger.of_kind("stop").len(), 1);
    verify(&desk).await;

    // The next gate goes on where this one stopped.
    let gate = desk.house.serve().await;
    let again = desk
        .modern(&gate, "ada")
        .call("desk_look", json!({"id":"a"}))
        .await;
    assert_eq!(again["structuredContent"]["id"], "a");
    assert_eq!(gate.close().await.0, Some(0));
    verify(&desk).await;
}

#[tokio::test]
async fn a_call_that_outlasts_drain_timeout_is_cut_off_told_of_and_recorded_as_unknown() {
    let (desk, gate) = Plan::new()
        .limit("drain_timeout", "\"300ms\"")
        .limit("progress_interval", "\"20ms\"")
        .serve()
        .await;
    desk.service.hold();
    let modern = desk.modern(&gate, "ada");
    let session = desk.legacy(&gate, "ada", "2025-11-25").await;
    let plain = [&modern, &session].map(|client| {
        let (client, message) = (client.clone(), look(client, "plain"));
        tokio::spawn(async move { client.post(&message).await })
    });
    let mut streams = Vec::new();
    for client in [&modern, &session] {
        let mut stream = client.stream(&slow(client, "slow")).await;
        assert_message(&client.revision, &stream.message().await.unwrap());
        streams.push(stream);
    }
    desk.service.until(4).await;
    gate.interrupt();
    desk.service.until_left(4).await;
    let [alone, in_session] = plain;
    // Whoever stands alone learns that nobody knows; a session ends, and with it its streams.
    let alone = alone.await.unwrap();
    assert_message(MODERN, &alone.json());
    assert_eq!((alone.status.as_u16(), alone.code()), (503, Some(-32603)));
    assert_eq!(alone.json()["id"], "plain");
    let in_session = in_session.await.unwrap();
    assert!(
        in_session.status.is_success() && in_session.body.is_empty(),
        "{in_session:?}"
    );
    let session_stream = rest(streams.pop().unwrap()).await;
    assert!(session_stream.iter().all(|message| message.get("id").is_none()));
    let alone_stream = rest(streams.pop().unwrap()).await;
    let last = alone_stream.last().unwrap();
    assert_message(MODERN, last);
    assert_eq!(
        (&last["id"], &last["error"]["code"]),
        (&json!("slow"), &json!(-32603))
    );
    let (code, log) = gate.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("drain_timeout") && log.contains("cut_off=4"),
        "{log}"
    );
    assert_eq!(outcomes(&desk).await, ["unknown cancelled"; 4]);
    assert_eq!(desk.house.ledger().await.of_kind("stop").len(), 1);
    verify(&desk).await;
}

#[tokio::test]
async fn a_gate_in_which_nothing_runs_closes_at_once() {
    // Not the time that calls would have: nobody could wait for an hour here.
    let (desk, gate) = Plan::new().limit("drain_timeout", "\"1h\"").serve().await;
    let session = desk.legacy(&gate, "ada", "2025-11-25").await;
    let mut listening = session.listen(None).await;
    assert!(listening.next().await.is_some(), "it is open");
    let idle = Socket::open(gate.authority()).await;
    let modern = desk.modern(&gate, "ada");
    assert!(modern.ask("tools/list", json!({})).await["result"].is_object());
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(listening.next().await.is_none());
    assert!(idle.end().await.is_empty());
    verify(&desk).await;
}

#[tokio::test]
async fn a_second_signal_closes_at_once_and_the_ledger_says_what_nobody_knows() {
    let (desk, gate) = Plan::new().limit("drain_timeout", "\"1h\"").serve().await;
    desk.service.hold();
    let mut socket = Socket::open(gate.authority()).await;
    let call = look(&desk.modern(&gate, "ada"), 1);
    socket.write(raw(&gate, desk.key("ada"), &call)).await;
    desk.service.until(1).await;
    gate.interrupt();
    closed(&gate).await;
    gate.interrupt();
    let (code, log) = gate.ended().await;
    assert_eq!(code, Some(130), "{log}");
    assert!(socket.end().await.is_empty(), "nobody is told anything");
    let ledger = desk.house.ledger().await;
    assert_eq!(ledger.of_kind("intent").len(), 1);
    assert_eq!(ledger.of_kind("outcome").len() + ledger.of_kind("stop").len(), 0);
    let call = ledger.of_kind("intent")[0]["call"].as_str().unwrap().to_owned();
    let report = verify(&desk).await;
    assert!(
        report.contains(&call),
        "the call is named as one that nobody knows of: {report}"
    );
}
