//! What servers log to their clients, over the wire: at the level that a client wants, on the stream where it belongs, and to
//! nobody else.

use std::sync::Arc;

use e2e::client::{MODERN, Mcp};
use e2e::far::{Asked, FarServer, events, result};
use e2e::house::{House, close};
use e2e::schema::assert_message;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::asks::house;
use crate::servers::{TOOL, approve, unapproved};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn log(level: &str, data: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": level, "logger": "far", "data": data },
    })
}

/// A server whose tool logs these before it answers, on the response to the call.
async fn logging(revision: &str, levels: &'static [&'static str]) -> FarServer {
    let far = FarServer::start(&[revision]).await;
    far.logs();
    logs_at(&far, levels);
    far
}

fn logs_at(far: &FarServer, levels: &'static [&'static str]) {
    far.reply("echo", move |asked: &Asked| {
        let mut messages: Vec<Value> = levels
            .iter()
            .map(|level| log(level, json!({ "of": asked.params["arguments"]["text"] })))
            .collect();
        let mut said = json!({ "content": [] });
        if asked.revision == MODERN {
            said["resultType"] = json!("complete");
        }
        messages.push(json!({ "jsonrpc": "2.0", "id": asked.id, "result": said }));
        events(&messages)
    });
}

const ALL: &[&str] = &["debug", "info", "warning", "error"];

fn call(client: &Mcp, id: i64, level: Option<&str>) -> Value {
    let params = json!({ "name": "far_echo", "arguments": { "text": "a" } });
    let mut request = client.request(id, "tools/call", params);
    if let Some(level) = level {
        request["params"]["_meta"][LEVEL] = json!(level);
    }
    request
}

/// The levels of what came before the answer, each in the form of the revision.
async fn levels(client: &Mcp, request: &Value) -> Vec<String> {
    let mut stream = client.stream(request).await;
    if stream.header("content-type") == Some("application/json") {
        assert!(stream.whole().await.json()["result"].is_object());
        return Vec::new();
    }
    let mut levels = Vec::new();
    while let Some(message) = stream.message().await {
        if message["id"] == request["id"] {
            assert!(message["result"].is_object(), "{message}");
            return levels;
        }
        assert_message(&client.revision, &message);
        assert_eq!(message["method"], "notifications/message");
        assert_eq!(message["params"]["logger"], "far");
        assert_eq!(message["params"]["data"], json!({ "of": "a" }));
        levels.push(message["params"]["level"].as_str().unwrap().to_owned());
    }
    panic!("there was no answer");
}

#[tokio::test]
async fn d17_log_03_a_request_gets_what_it_asks_for_before_its_answer_and_silence_is_the_default() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = logging(far_revision, ALL).await;
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::modern(&gate.url, &key);
        let discovered = client.ask("server/discover", json!({})).await;
        assert_eq!(
            discovered["result"]["capabilities"]["logging"],
            json!({}),
            "LOG-01: {far_revision}"
        );
        assert_eq!(levels(&client, &call(&client, 1, None)).await, [""; 0], "D17");
        for (level, expected) in [
            ("emergency", &[][..]),
            ("warning", &["warning", "error"]),
            ("debug", ALL),
        ] {
            let heard = levels(&client, &call(&client, 2, Some(level))).await;
            assert_eq!(heard, expected, "{far_revision} {level}");
        }
        let bad = client.post(&call(&client, 3, Some("loud"))).await;
        assert_eq!(bad.code(), Some(-32_602), "{}", bad.text());
        if far_revision == MODERN {
            // C4: said with each request that wants it, and with no other.
            let said: Vec<Value> = far
                .asked_for("tools/call")
                .iter()
                .map(|asked| asked.params["_meta"][LEVEL].clone())
                .collect();
            assert_eq!(
                said,
                [json!(null), json!("emergency"), json!("warning"), json!("debug")]
            );
        } else {
            // C4: one level in the conversation, that of whoever wants most of those who share it.
            let set: Vec<Value> = far
                .asked_for("logging/setLevel")
                .iter()
                .map(|asked| asked.params["level"].clone())
                .collect();
            assert_eq!(set, [json!("emergency"), json!("warning"), json!("debug")]);
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn log_02_a_session_has_one_level_which_counts_from_its_next_request_on() {
    for (revision, far_revision) in [
        ("2024-11-05", "2025-11-25"),
        ("2025-03-26", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2025-11-25", MODERN),
    ] {
        let far = logging(far_revision, ALL).await;
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::legacy(&gate.url, &key, revision).await;
        // Before a level is set a server says what it likes: here all that it has, whatever its era.
        assert_eq!(levels(&client, &call(&client, 1, None)).await, ALL, "{revision}");
        let set = client
            .ask("logging/setLevel", json!({ "level": "warning" }))
            .await;
        assert_eq!(set["result"], json!({}), "{set}");
        let heard = levels(&client, &call(&client, 2, None)).await;
        assert_eq!(heard, ["warning", "error"], "{revision}");
        for params in [json!({ "level": "loud" }), json!({ "level": 3 }), json!({})] {
            let refused = client.ask("logging/setLevel", params.clone()).await;
            assert_eq!(refused["error"]["code"], -32_602, "{params}");
        }
        let heard = levels(&client, &call(&client, 3, None)).await;
        assert_eq!(heard, ["warning", "error"], "what was refused changes nothing");
        // Another session of the same caller has its own.
        let other = Mcp::legacy(&gate.url, &key, revision).await;
        assert_eq!(levels(&other, &call(&other, 1, None)).await, ALL);
        if far_revision == MODERN {
            let said = far.asked_for("tools/call");
            assert_eq!(said[0].params["_meta"].get(LEVEL), None);
            assert_eq!(said[1].params["_meta"][LEVEL], "warning");
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn log_02_what_belongs_to_no_call_is_heard_by_the_session_whose_conversation_it_is_and_by_no_other() {
    let far = logging("2025-11-25", &[]).await;
    let house = house(&far, "sharing = \"per-session\"", "").await;
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let of_bob = Mcp::legacy(&gate.url, &bob, "2025-11-25").await;
    let mut bob_hears = of_bob.listen(None).await;
    levels(&of_bob, &call(&of_bob, 1, None)).await;
    e2e::house::until("the gate listens for bob", async || far.is_heard_by("tools/call")).await;
    let of_ada = Mcp::legacy(&gate.url, &ada, "2025-11-25").await;
    let mut ada_hears = of_ada.listen(None).await;
    levels(&of_ada, &call(&of_ada, 1, None)).await;
    e2e::house::until("the gate listens for ada", async || far.is_heard_by("tools/call")).await;
    // The conversation in which the last call came is hers.
    far.tell_in("tools/call", &log("info", json!("for ada")));
    let told = ada_hears.message().await.unwrap();
    assert_message("2025-11-25", &told);
    assert_eq!(told["params"]["data"], "for ada");
    // He hears of nothing before what everybody is told.
    far.tell(&log("info", json!("for all")));
    assert_eq!(bob_hears.message().await.unwrap()["params"]["data"], "for all");
    close(gate).await;
}

#[tokio::test]
async fn log_03_in_a_conversation_that_is_shared_what_belongs_to_no_call_is_for_nobody() {
    let far = logging("2025-11-25", &["notice"]).await;
    let house = house(&far, "sharing = \"shared\"", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let mut hears = client.listen(None).await;
    assert_eq!(levels(&client, &call(&client, 1, None)).await, ["notice"]);
    e2e::house::until("the gate listens", async || far.is_heard_by("tools/call")).await;
    far.tell(&log("error", json!("whose?")));
    // Behind it on the same stream, and told to everybody.
    let mut other = e2e::far::echo();
    other["description"] = json!("Something else.");
    far.tools(vec![other]);
    far.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    let told = hears.message().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    close(gate).await;
}

#[tokio::test]
async fn log_01_where_no_server_logs_there_is_no_level_to_set() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let set = client.ask("logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(set["error"]["code"], -32_601, "{set}");
    let modern = Mcp::modern(&gate.url, &key);
    let discovered = modern.ask("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"].get("logging").is_none());
    let request = modern.request(1, "logging/setLevel", json!({ "level": "debug" }));
    let set = modern.post(&request).await;
    assert_eq!(set.status, 404, "LIFE-D02");
    assert_eq!(set.code(), Some(-32_601));
    close(gate).await;
}

#[tokio::test]
async fn who_reads_json_alone_gets_his_answer_and_hears_the_rest_in_his_session() {
    let far = logging("2025-11-25", &["info"]).await;
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let mut hears = client.listen(None).await;
    let headers = [("accept", Some("application/json"))];
    let answer = client.post_with(&call(&client, 1, None), &headers).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["id"], 1);
    assert_eq!(hears.message().await.unwrap()["params"]["level"], "info");
    close(gate).await;
}

#[tokio::test]
async fn log_04_a_message_that_repeats_the_credential_of_the_gate_is_told_to_nobody() {
    const CANARY: &str = "canary-7f3a";
    for place in ["data", "logger"] {
        let far = FarServer::start(&["2025-11-25"]).await;
        far.logs();
        far.reply("echo", move |asked: &Asked| {
            let mut bad = log("error", json!({ "deep": ["x"] }));
            bad["params"][place] = match place {
                "data" => json!({ "deep": [format!("got {CANARY}")] }),
                _ => json!(format!("got {CANARY}")),
            };
            let said = json!({ "jsonrpc": "2.0", "id": asked.id, "result": { "content": [] } });
            events(&[bad, log("info", json!("good")), said])
        });
        let house = unapproved(&far, "credential = { bearer = \"env:FAR_TOKEN\" }", TOOL)
            .with_variable("FAR_TOKEN", CANARY);
        approve(&house).await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
        let mut stream = client.stream(&call(&client, 1, None)).await;
        let told = stream.message().await.unwrap();
        assert_eq!(told["params"]["data"], "good", "{told}");
        assert_eq!(stream.message().await.unwrap()["id"], 1);
        let (code, log) = gate.close().await;
        assert_eq!(code, Some(0), "{log}");
        assert!(
            !log.contains(CANARY) && log.contains("logs the credential"),
            "{log}"
        );
    }
}

#[tokio::test]
async fn a_flood_of_messages_keeps_no_answer_back_and_costs_a_bounded_number() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.logs();
    far.reply("echo", |asked: &Asked| {
        let mut messages: Vec<Value> = (0..500).map(|n| log("info", json!(n))).collect();
        messages.push(json!({ "jsonrpc": "2.0", "id": asked.id, "result": { "content": [] } }));
        events(&messages)
    });
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
    let mut stream = client.stream(&call(&client, 1, None)).await;
    let mut last = -1;
    loop {
        let message = stream.message().await.unwrap();
        if message["id"] == 1 {
            break;
        }
        let number = message["params"]["data"].as_i64().unwrap();
        assert!(number > last, "in order");
        last = number;
    }
    assert_eq!(last, 499, "the newest stays");
    close(gate).await;
}

#[tokio::test]
async fn log_02_log_03_on_a_pipe_both_eras_hear_what_they_want() {
    let far = logging("2025-11-25", ALL).await;
    let house: House = house(&far, "", "").await;
    let mut pipe = house.stdio();
    let opened = pipe
        .ask(&json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
        }))
        .await;
    assert_eq!(opened["result"]["capabilities"]["logging"], json!({}), "{opened}");
    let set = pipe
        .ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": { "level": "error" } }))
        .await;
    assert_eq!(set["result"], json!({}));
    let arguments = json!({ "name": "far_echo", "arguments": { "text": "a" } });
    pipe.send(&json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": arguments }).to_string())
        .await;
    let told = pipe.message().await;
    assert_eq!(told["params"]["level"], "error", "{told}");
    assert_eq!(pipe.message().await["id"], 3);
    let mut params = arguments.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        (LEVEL): "warning",
    });
    pipe.send(&json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params }).to_string())
        .await;
    let told = [pipe.message().await, pipe.message().await].map(|told| told["params"]["level"].clone());
    assert_eq!(told, [json!("warning"), json!("error")]);
    assert_eq!(pipe.message().await["id"], 4);
    params["_meta"].as_object_mut().unwrap().remove(LEVEL);
    let quiet = pipe
        .ask(&json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params }))
        .await;
    assert_eq!(quiet["id"], 5, "D17: {quiet}");
    pipe.close().await;
}

#[tokio::test]
async fn while_a_call_is_parked_nobody_is_there_to_hear_and_its_next_request_says_anew_what_it_wants() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.logs();
    let (go, said) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (goes, says) = (Arc::clone(&go), Arc::clone(&said));
    far.talk("echo", move |_, talk| {
        let (go, said) = (Arc::clone(&goes), Arc::clone(&says));
        Box::pin(async move {
            let response = talk.waits(&json!(1));
            let asked = json!({
                "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": crate::asks::form(),
            });
            talk.tell(&asked);
            go.notified().await;
            talk.tell(&log("error", json!("meanwhile")));
            // The gate answers in order, so that it has read what stands before this.
            talk.ask(json!("p"), "ping", json!({})).await;
            said.notify_one();
            let response = response.await.unwrap();
            talk.tell(&log("error", json!("behind")));
            json!({ "content": [{ "type": "text", "text": crate::asks::got(&response) }] })
        })
    });
    let house = house(&far, crate::asks::MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let asking = |id: i64, level: Option<&str>| {
        let mut request = call(&client, id, level);
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = crate::asks::able();
        request
    };
    for (level, heard) in [(None, 0), (Some("error"), 1), (Some("alert"), 0)] {
        let mut stream = client.stream(&asking(1, Some("debug"))).await;
        let parked = stream.message().await.unwrap();
        assert_eq!(parked["result"]["resultType"], "input_required", "{parked}");
        go.notify_one();
        said.notified().await;
        let mut again = asking(2, level);
        again["params"]["requestState"] = parked["result"]["requestState"].clone();
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        let asks = parked["result"]["inputRequests"].as_object().unwrap();
        let answers: serde_json::Map<String, Value> =
            asks.keys().map(|key| (key.clone(), answer.clone())).collect();
        again["params"]["inputResponses"] = json!(answers);
        let mut told = 0;
        let mut stream = client.stream(&again).await;
        if stream.header("content-type") == Some("application/json") {
            assert_eq!(stream.whole().await.json()["id"], 2);
            assert_eq!(heard, 0);
            continue;
        }
        loop {
            let message = stream.message().await.unwrap();
            if message["id"] == 2 {
                break;
            }
            assert_eq!(message["params"]["data"], "behind");
            told += 1;
        }
        assert_eq!(told, heard, "{level:?}");
    }
    close(gate).await;
}

#[tokio::test]
async fn the_form_of_an_answer_does_not_tell_which_tools_there_are() {
    let far = logging("2025-11-25", ALL).await;
    let house = house(&far, "", "").await;
    house.write(
        "policy/all.cedar",
        "permit (principal, action, resource) when { principal.subject == \"bob\" };\n",
    );
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let of_bob = Mcp::legacy(&gate.url, &bob, "2025-11-25").await;
    assert_eq!(levels(&of_bob, &call(&of_bob, 1, None)).await, ALL);
    let of_ada = Mcp::legacy(&gate.url, &ada, "2025-11-25").await;
    let mut unknown = call(&of_ada, 1, None);
    unknown["params"]["name"] = json!("far_none");
    let unknown = of_ada.post(&unknown).await;
    let hidden = of_ada.post(&call(&of_ada, 1, None)).await;
    assert_eq!(hidden.header("content-type"), unknown.header("content-type"));
    assert_eq!(hidden.code(), unknown.code());
    close(gate).await;
}

/// Keeps the answer of a server that says nothing else apart from one that logs.
#[tokio::test]
async fn a_server_that_says_nothing_of_a_log_is_not_told_a_level_and_not_heard() {
    let far = FarServer::start(&["2025-11-25"]).await;
    logs_at(&far, ALL);
    let other = FarServer::start(&["2025-11-25"]).await;
    other.logs();
    other.reply("echo", |asked: &Asked| result(asked, json!({ "content": [] })));
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    levels(&client, &call(&client, 1, Some("debug"))).await;
    assert_eq!(far.asked_for("logging/setLevel").len(), 0);
    close(gate).await;
}
