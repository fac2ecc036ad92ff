//! Sessions of the legacy era: whose they are, how they end, and the event streams in them that a client may resume.

use e2e::client::{Answer, Events, LEGACY, MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan};
use e2e::house::Gate;
use e2e::issuer::Issuer;
use e2e::schema::{assert_answer, assert_message};
use http::Method;
use serde_json::{Value, json};

/// The revisions of Streamable HTTP whose streams can be resumed, and whether they are primed (HL-06).
const RESUMABLE: [(&str, bool); 3] = [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)];

fn look(client: &Mcp, id: impl Into<Value>) -> Value {
    client.request(
        id,
        "tools/call",
        json!({"name":"desk_look","arguments":{"id":"a"}}),
    )
}

/// A call whose answer comes as events.
fn slow(client: &Mcp, id: impl Into<Value>) -> Value {
    let params = json!({"name":"desk_look","arguments":{"id":"a"},"_meta":{"progressToken":"p"}});
    client.request(id, "tools/call", params)
}

/// What a stranger to a session gets to see, whole: to be compared byte for byte.
fn face(answer: &Answer) -> String {
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| *name != "date")
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    format!("{}\n{}\n{}", answer.status, headers.join("\n"), answer.text())
}

async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Everything that a stream still says, as messages that were held against the schema.
async fn rest(client: &Mcp, mut events: Events) -> Vec<Value> {
    let mut messages = Vec::new();
    while let Some(message) = events.message().await {
        assert_message(&client.revision, &message);
        messages.push(message);
    }
    messages
}

// === whose it is ===

#[tokio::test]
async fn hl_12_hl_13_hl_14_a_session_is_named_once_and_needed_ever_after() {
    let (desk, gate) = Plan::new().serve().await;
    for revision in LEGACY {
        let nobody = Mcp {
            revision: revision.to_owned(),
            ..desk.modern(&gate, "ada")
        };
        let opened = nobody.post(&opening(revision)).await;
        let id = opened.header("mcp-session-id").unwrap().to_owned();
        assert!(
            id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7E).contains(&byte)),
            "{id}"
        );
        let client = Mcp {
            session: Some(id.clone()),
            ..nobody.clone()
        };
        for message in [look(&client, 1), client.request(2, "ping", json!({}))] {
            let answer = client.post(&message).await;
            assert_eq!(answer.status, 200);
            assert_answer(revision, message["method"].as_str().unwrap(), &answer.json());
            assert!(
                answer.header("mcp-session-id").is_none(),
                "only `initialize` names it"
            );
            let missing = nobody.post(&message).await;
            assert_eq!(missing.status, 400, "{revision}");
            assert_message("2025-11-25", &missing.json());
        }
        // A second `initialize` in it opens nothing.
        let again = client.post(&opening(revision)).await;
        assert_eq!(again.status, 400, "{revision}");
        assert!(again.header("mcp-session-id").is_none());
        assert_eq!(client.end().await.status, 204, "HL-15");
        assert_eq!(
            client.post(&opening(revision)).await.status,
            404,
            "HL-14: start over without the id"
        );
    }
    close(gate).await;
}

#[tokio::test]
async fn sec_05_hl_14_unknown_ended_and_foreign_sessions_read_the_same() {
    let (desk, gate) = Plan::new().with("bob").serve().await;
    let ada = desk.legacy(&gate, "ada", "2025-11-25").await;
    let ended = desk.legacy(&gate, "bob", "2025-11-25").await;
    assert_eq!(ended.end().await.status, 204);
    let as_bob = |session: &str| Mcp {
        session: Some(session.to_owned()),
        ..ended.clone()
    };
    let strangers = [
        as_bob(&"A".repeat(43)),
        as_bob("nonsense"),
        as_bob(ended.session.as_deref().unwrap()),
        // Ada's own session, shown by somebody whose credential holds.
        as_bob(ada.session.as_deref().unwrap()),
    ];
    for message in [
        look(&ada, 1),
        opening("2025-11-25"),
        json!({"jsonrpc":"2.0","method":"notifications/x"}),
    ] {
        let mut faces = Vec::new();
        for stranger in &strangers {
            let answer = stranger.post(&message).await;
            assert_eq!(answer.status, 404);
            faces.push(face(&answer));
        }
        assert!(faces.windows(2).all(|pair| pair[0] == pair[1]), "{faces:#?}");
    }
    for method in [Method::GET, Method::DELETE] {
        let mut faces = Vec::new();
        for stranger in &strangers {
            let change = [("accept", Some("text/event-stream"))];
            let answer = stranger.send(method.clone(), &Value::Null, &change, "").await;
            faces.push(face(&answer.whole().await));
        }
        assert!(faces[0].starts_with("404"), "{}", faces[0]);
        assert!(faces.windows(2).all(|pair| pair[0] == pair[1]), "{faces:#?}");
    }
    assert_eq!(
        desk.service.count(),
        0,
        "nothing was carried out in somebody else's session"
    );
    assert_eq!(
        ada.call("desk_look", json!({"id":"a"})).await["structuredContent"]["id"],
        "a"
    );
    close(gate).await;
}

#[tokio::test]
async fn sec_05_a_session_follows_its_caller_and_not_the_callers_roles() {
    let issuer = Issuer::start().await;
    let desk = Plan::new().set_up().await;
    let config = std::fs::read_to_string(desk.house.path("tollhouse.toml")).unwrap();
    desk.house
        .write("tollhouse.toml", format!("{config}{}", issuer.config("corp")));
    let gate = desk.house.serve().await;
    let token = |subject: &str, tenant: &str, roles: &[&str]| {
        issuer.token(json!({"aud":gate.url,"sub":subject,"org_id":tenant,"roles":roles}))
    };
    let client = Mcp::legacy(&gate.url, &token("eve", "north", &["member"]), "2025-06-18").await;
    assert_eq!(client.tools().await, ["desk_look"]);
    let as_token = |token: String| Mcp {
        token: Some(token),
        ..client.clone()
    };
    // A new token with another role: the same session, and what the role allows.
    let promoted = as_token(token("eve", "north", &["member", "clerk"]));
    assert_eq!(promoted.tools().await, ["desk_drop", "desk_look", "desk_make"]);
    let dismissed = as_token(token("eve", "north", &[]));
    assert_eq!(dismissed.tools().await, [""; 0]);
    // Another subject, or the same one of another organisation, is somebody else.
    for (subject, tenant) in [("mallory", "north"), ("eve", "south")] {
        let other = as_token(token(subject, tenant, &["member"]));
        assert_eq!(
            other.post(&look(&other, 1)).await.status,
            404,
            "{subject} of {tenant}"
        );
    }
    close(gate).await;
}

#[tokio::test]
async fn hl_16_hl_17_the_session_is_the_truth_about_the_version() {
    let (desk, gate) = Plan::new().serve().await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        let ping = client.request(1, "ping", json!({}));
        for (version, status) in [
            // HM-13: one that is missing is no fault, because old clients send none.
            (None, 200),
            (Some(revision), 200),
            (Some("2025-01-01"), 400),
            (Some("banana"), 400),
            (Some(""), 400),
        ] {
            let answer = client
                .post_with(&ping, &[("mcp-protocol-version", version)])
                .await;
            assert_eq!(answer.status, status, "{revision} {version:?}");
            assert_message(revision, &answer.json());
        }
        let other = LEGACY.into_iter().find(|other| *other != revision).unwrap();
        let answer = client
            .post_with(&ping, &[("mcp-protocol-version", Some(other))])
            .await;
        assert_eq!(answer.status, 400, "{revision} {other}");
        // The modern version makes it a modern request, which lacks its metadata (C1).
        let answer = client
            .post_with(&ping, &[("mcp-protocol-version", Some(MODERN))])
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (400, Some(-32602)),
            "{revision}"
        );
    }
    close(gate).await;
}

// === how it ends ===

#[tokio::test]
async fn hl_15_delete_ends_a_session_and_what_runs_in_it() {
    let (desk, gate) = Plan::new().with("bob").serve().await;
    let ada = desk.legacy(&gate, "ada", "2025-11-25").await;
    let other = desk.legacy(&gate, "ada", "2025-11-25").await;
    desk.service.hold();
    let (cut_off, goes_on) = (slow(&ada, 7), slow(&other, 7));
    let mut cut_off = ada.stream(&cut_off).await;
    let goes_on = other.stream(&goes_on).await;
    let mut listening = ada.listen(None).await;
    assert!(listening.next().await.unwrap().id.is_some(), "it is open");
    assert!(cut_off.next().await.unwrap().id.is_some(), "it is open");
    desk.service.until(2).await;
    assert_eq!(ada.end().await.status, 204);
    desk.service.until_left(1).await;
    assert!(
        cut_off.message().await.is_none(),
        "CAN-01: no answer comes any more"
    );
    assert!(listening.next().await.is_none(), "its streams end with it");
    for answer in [ada.end().await, ada.post(&look(&ada, 8)).await] {
        assert_eq!(answer.status, 404);
    }
    assert_eq!(ada.listen(None).await.status, 404);
    desk.service.let_go();
    let answers = rest(&other, goes_on).await;
    assert_eq!(
        answers.last().unwrap()["result"]["structuredContent"]["id"],
        "a",
        "only that session ended"
    );
    close(gate).await;
    let ledger = desk.house.ledger().await;
    let outcomes: Vec<_> = ledger
        .of_kind("outcome")
        .iter()
        .map(|outcome| (outcome["state"].clone(), outcome["refusal"].clone()))
        .collect();
    assert_eq!(
        outcomes,
        [
            (json!("unknown"), json!("cancelled")),
            (json!("done"), Value::Null)
        ],
        "what was cut off may have been done"
    );
}

#[tokio::test]
async fn an_idle_session_ends_with_its_streams_and_one_in_which_a_call_runs_does_not() {
    let (desk, gate) = Plan::new().limit("session_idle_timeout", "\"1s\"").serve().await;
    let busy = desk.legacy(&gate, "ada", "2025-11-25").await;
    desk.service.hold();
    let call = slow(&busy, 1);
    let call = busy.stream(&call).await;
    desk.service.until(1).await;
    let idle = desk.legacy(&gate, "ada", "2025-11-25").await;
    let mut listening = idle.listen(None).await;
    assert!(listening.next().await.is_some(), "it is open");
    // Nothing is done now: the end of the stream is the end of the time.
    assert!(listening.next().await.is_none());
    assert_eq!(idle.post(&look(&idle, 1)).await.status, 404);
    assert_eq!(busy.post(&busy.request(2, "ping", json!({}))).await.status, 200);
    desk.service.let_go();
    assert!(rest(&busy, call).await.last().unwrap()["result"].is_object());
    close(gate).await;
}

#[tokio::test]
async fn sessions_open_up_to_each_limit_and_not_one_past_it() {
    let (desk, gate) = Plan::new()
        .limit("sessions_max", 3)
        .limit("sessions_per_caller_max", 2)
        .with("bob")
        .serve()
        .await;
    let open = async |caller: &str| {
        let client = Mcp {
            revision: "2025-11-25".to_owned(),
            ..desk.modern(&gate, caller)
        };
        let answer = client.post(&opening("2025-11-25")).await;
        assert_answer("2025-11-25", "initialize", &answer.json());
        (
            answer.status.as_u16(),
            answer.code(),
            answer.header("mcp-session-id").map(str::to_owned),
        )
    };
    let one = open("ada").await.2.unwrap();
    assert_eq!(open("ada").await.0, 200);
    assert_eq!(open("ada").await, (503, Some(-32603), None), "one caller's");
    assert_eq!(open("bob").await.0, 200);
    assert_eq!(open("bob").await, (503, Some(-32603), None), "everybody's");
    let ended = Mcp {
        session: Some(one),
        revision: "2025-11-25".to_owned(),
        ..desk.modern(&gate, "ada")
    };
    assert_eq!(ended.end().await.status, 204);
    assert_eq!(open("bob").await.0, 200, "one that ended makes room");
    close(gate).await;
}

// === streams ===

#[tokio::test]
async fn hl_06_hl_08_a_listening_stream_is_primed_where_that_exists_and_kept_alive() {
    let (desk, gate) = Plan::new()
        .limit("keep_alive_interval", "\"50ms\"")
        .limit("streams_per_session_max", 2)
        .serve()
        .await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        let mut stream = client.listen(None).await;
        assert_eq!(stream.status, 200, "{revision}");
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        assert_eq!(stream.header("cache-control"), Some("no-store"));
        let mut text = String::new();
        while text.matches(": keep-alive\n\n").count() < 2 {
            text.push_str(std::str::from_utf8(&stream.bytes().await.unwrap()).unwrap());
        }
        let primed = text.starts_with("id: 0-0\nretry: 1000\ndata: \n\n");
        assert_eq!(primed, revision == "2025-11-25", "{revision}: {text:?}");
        assert_eq!(
            text.contains("data:"),
            primed,
            "{revision}: nothing else is said, {text:?}"
        );
        // At the limit and one past it; a stream that is closed makes room.
        let second = client.listen(None).await;
        assert_eq!(second.status, 200);
        let third = client.listen(None).await.whole().await;
        assert_eq!(third.status, 429, "{revision}");
        drop(second);
        loop {
            // The gate notices a closed connection in its own time.
            if client.listen(None).await.status == 200 {
                break;
            }
        }
        assert_eq!(client.end().await.status, 204);
        while stream.bytes().await.is_some() {}
    }
    close(gate).await;
}

#[tokio::test]
async fn hl_09_hl_10_a_listening_stream_hears_nothing_of_the_answers_to_others() {
    let (desk, gate) = Plan::new()
        .limit("progress_interval", "\"20ms\"")
        .limit("keep_alive_interval", "\"50ms\"")
        .serve()
        .await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        let mut listening = client.listen(None).await;
        assert_eq!(listening.status, 200);
        let before = desk.service.count();
        assert_answer(
            revision,
            "tools/call",
            &client.post(&look(&client, 1)).await.json(),
        );
        desk.service.hold();
        let mut stream = client.stream(&slow(&client, 2)).await;
        desk.service.until(before + 2).await;
        assert!(
            stream.message().await.unwrap().get("method").is_some(),
            "a report"
        );
        desk.service.let_go();
        let messages = rest(&client, stream).await;
        assert_eq!(messages.last().unwrap()["id"], 2);
        // All that it was told, up to the end of the session, has no data.
        assert_eq!(client.end().await.status, 204);
        assert!(listening.message().await.is_none(), "{revision}");
    }
    close(gate).await;
}

#[tokio::test]
async fn hl_07_hl_11_d14_d24_an_answer_that_broke_off_is_had_again_from_the_first_event() {
    let (desk, gate) = Plan::new().serve().await;
    let client = desk.legacy(&gate, "ada", "2025-11-25").await;
    desk.service.hold();
    let mut stream = client.stream(&slow(&client, "call")).await;
    let priming = stream.next().await.unwrap();
    assert_eq!(
        (&*priming.data, priming.retry_ms),
        (&b""[..], Some(1_000)),
        "HL-06"
    );
    let cursor = priming.id.unwrap();
    desk.service.until(1).await;
    drop(stream);
    // The connection is gone, the call goes on.
    desk.service.let_go();
    for _ in 0..2 {
        let messages = rest(&client, client.listen(Some(&cursor)).await).await;
        assert_eq!(messages.len(), 1, "exactly once: {messages:#?}");
        assert_answer("2025-11-25", "tools/call", &messages[0]);
        assert_eq!((&messages[0]["id"], desk.service.count()), (&json!("call"), 1));
    }
    // Behind the last event nothing is left, and the stream says so by ending.
    let mut again = client.listen(Some(&cursor)).await;
    let last = again.next().await.unwrap().id.unwrap();
    assert!(rest(&client, client.listen(Some(&last)).await).await.is_empty());
    assert_eq!(desk.service.left(), 0);
    close(gate).await;
    let ledger = desk.house.ledger().await;
    let outcomes = ledger.of_kind("outcome");
    assert_eq!((outcomes.len(), &outcomes[0]["state"]), (1, &json!("done")));
}

#[tokio::test]
async fn hl_11_a_stream_goes_on_behind_the_event_that_came_last_without_loss_or_repetition() {
    let (desk, gate) = Plan::new().limit("progress_interval", "\"20ms\"").serve().await;
    for (revision, primed) in RESUMABLE {
        let client = desk.legacy(&gate, "ada", revision).await;
        let arrived = desk.service.count();
        desk.service.hold();
        let mut stream = client.stream(&slow(&client, 1)).await;
        let mut ids = Vec::new();
        let mut progress = Vec::new();
        // Broken off and resumed three times, each time after two reports.
        for round in 0..3 {
            while progress.len() < 2 * (round + 1) {
                let event = stream.next().await.unwrap();
                ids.push(event.id.expect("HL-11: every event has an id"));
                if !event.data.is_empty() {
                    let message: Value = serde_json::from_slice(&event.data).unwrap();
                    assert_message(revision, &message);
                    progress.push(message["params"]["progress"].as_u64().unwrap());
                }
            }
            drop(stream);
            stream = client.listen(Some(ids.last().unwrap())).await;
        }
        desk.service.let_go();
        let mut answers = Vec::new();
        while let Some(event) = stream.next().await {
            ids.push(event.id.unwrap());
            let message: Value = serde_json::from_slice(&event.data).unwrap();
            match message["params"]["progress"].as_u64() {
                Some(count) => progress.push(count),
                None => answers.push(message),
            }
        }
        assert_eq!(answers.len(), 1, "{revision}");
        assert_answer(revision, "tools/call", &answers[0]);
        let expected: Vec<u64> = (1..).take(progress.len()).collect();
        assert_eq!(progress, expected, "{revision}");
        let count = progress.len() + 1 + usize::from(primed);
        let expected: Vec<String> = (0..count).map(|event| format!("0-{event}")).collect();
        assert_eq!(ids, expected, "{revision}");
        assert_eq!(
            desk.service.count() - arrived,
            1,
            "one call, however often it is read"
        );
    }
    close(gate).await;
}

#[tokio::test]
async fn hl_10_a_stream_that_is_resumed_leaves_its_old_connection() {
    let (desk, gate) = Plan::new()
        .limit("streams_per_session_max", 1)
        .limit("keep_alive_interval", "\"50ms\"")
        .serve()
        .await;
    let client = desk.legacy(&gate, "ada", "2025-11-25").await;
    // An answer.
    desk.service.hold();
    let mut old = client.stream(&slow(&client, 1)).await;
    let cursor = old.next().await.unwrap().id.unwrap();
    desk.service.until(1).await;
    let new = client.listen(Some(&cursor)).await;
    assert!(
        old.message().await.is_none(),
        "the old connection ends without the answer"
    );
    desk.service.let_go();
    assert_eq!(rest(&client, new).await.len(), 1);
    // A listening stream, for which there is one place.
    let mut old = client.listen(None).await;
    let cursor = old.next().await.unwrap().id.unwrap();
    let mut new = client.listen(Some(&cursor)).await;
    assert_eq!(new.status, 200);
    assert!(old.next().await.is_none(), "taken over");
    assert_eq!(client.listen(None).await.status, 429, "the place is still taken");
    assert_eq!(
        new.bytes().await.unwrap(),
        ": keep-alive\n\n",
        "and the new one goes on"
    );
    drop(new);
    // One that broke off is waited for, and goes on too, instead of ending at once again and again.
    let mut again = loop {
        let stream = client.listen(Some(&cursor)).await;
        if stream.status == 200 {
            break stream;
        }
    };
    assert_eq!(again.bytes().await.unwrap(), ": keep-alive\n\n");
    close(gate).await;
}

#[tokio::test]
async fn hl_11_a_cursor_of_nothing_or_of_another_session_gives_nothing() {
    let (desk, gate) = Plan::new().serve().await;
    let (one, two) = (
        desk.legacy(&gate, "ada", "2025-11-25").await,
        desk.legacy(&gate, "ada", "2025-11-25").await,
    );
    let events_only = [("accept", Some("text/event-stream"))];
    let mut cursor = String::new();
    for id in 0..3 {
        let message = look(&one, id);
        let mut stream = one
            .send(Method::POST, &message, &events_only, message.to_string())
            .await;
        cursor = stream.next().await.unwrap().id.unwrap();
        assert_eq!(rest(&one, stream).await.len(), 1);
    }
    assert_eq!(one.listen(Some(&cursor)).await.status, 200);
    assert_eq!(
        two.listen(Some(&cursor)).await.status,
        400,
        "another session's: {cursor}"
    );
    for text in [
        "",
        "nonsense",
        "0",
        "0-99",
        "99-0",
        "-1-0",
        "0-0-0",
        "18446744073709551616-0",
    ] {
        let answer = one.listen(Some(text)).await.whole().await;
        assert_eq!(answer.status, 400, "{text}");
        assert_message(MODERN, &answer.json());
    }
    // The cursor names a place in a session, not a right: without the session it is nothing.
    let stranger = Mcp {
        session: Some("nonsense".to_owned()),
        ..one.clone()
    };
    assert_eq!(stranger.listen(Some(&cursor)).await.status, 404);
    close(gate).await;
}

#[tokio::test]
async fn events_are_kept_up_to_the_limit_and_a_hole_is_never_read_over() {
    let (desk, gate) = Plan::new()
        .limit("progress_interval", "\"20ms\"")
        .limit("replay_events_max", 4)
        .serve()
        .await;
    let client = desk.legacy(&gate, "ada", "2025-06-18").await;
    desk.service.hold();
    let mut stream = client.stream(&slow(&client, 1)).await;
    let mut ids = Vec::new();
    // Whoever keeps reading misses nothing, however little is kept.
    for _ in 0..12 {
        ids.push(stream.next().await.unwrap().id.unwrap());
    }
    desk.service.let_go();
    while let Some(event) = stream.next().await {
        ids.push(event.id.unwrap());
    }
    let expected: Vec<String> = (0..ids.len()).map(|event| format!("0-{event}")).collect();
    assert_eq!(ids, expected);
    // The newest four are there: so one can go on behind the fifth newest, and not behind the sixth.
    let behind = |back: usize| ids[ids.len() - back].clone();
    assert_eq!(
        rest(&client, client.listen(Some(&behind(5))).await).await.len(),
        4
    );
    assert_eq!(client.listen(Some(&behind(6))).await.status, 400);
    assert_eq!(client.listen(Some(&ids[0])).await.status, 400);
    close(gate).await;
    drop::<Desk>(desk);
}
