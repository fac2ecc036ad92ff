//! What servers ask of callers, over the wire: it reaches the caller of the call that it belongs to, or nobody.

use std::sync::Arc;

use e2e::client::{Events, MODERN, Mcp};
use e2e::far::{Asked, FarServer, result};
use e2e::house::{House, Pipe, close, text};
use e2e::service::json as json_answer;
use serde_json::{Value, json};
use tokio::sync::Barrier;

pub(crate) const MAY_ASK: &str = "may_ask = [\"elicitation\", \"sampling\", \"roots\"]";
const TOOL: &str = "[upstream.far.tool.echo]\nclass = \"read\"\n";

/// A house in front of a server, with what it has approved.
pub(crate) async fn house(far: &FarServer, lines: &str, more: &str) -> House {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n[caller.bob]\nsubject = \"bob\"\n[stdio]\ncaller = \"ada\"\n{}{TOOL}{more}",
        far.config(lines)
    );
    let house = House::new()
        .with_file("tollhouse.toml", config)
        .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
    let output = house.run(["pins", "approve", "far", "--all"]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    house
}

pub(crate) fn form() -> Value {
    json!({
        "message": "Your name?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string", "minLength": 1 } },
            "required": ["name"],
        },
    })
}

/// What clients of a revision declare that can be asked everything.
pub(crate) fn able() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": { "listChanged": true } })
}

/// A tool that asks for a form under this id, and says what it got.
pub(crate) fn asks_a_form(far: &FarServer, id: Value) {
    far.talk("echo", move |_, talk| {
        let id = id.clone();
        Box::pin(async move {
            let response = talk.ask(id, "elicitation/create", form()).await;
            json!({ "content": [{ "type": "text", "text": got(&response) }] })
        })
    });
}

/// What a server got, as text: the result, or the code of the error.
pub(crate) fn got(response: &Value) -> String {
    match response.get("result") {
        Some(result) => result.to_string(),
        None => response["error"]["code"].to_string(),
    }
}

fn call(client: &Mcp, id: i64, text: &str) -> Value {
    let params = json!({ "name": "far_echo", "arguments": { "text": text } });
    client.request(id, "tools/call", params)
}

async fn start(client: &Mcp, id: i64) -> Events {
    client.stream(&call(client, id, "a")).await
}

pub(crate) fn response(asked: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })
}

pub(crate) fn said(message: &Value) -> &str {
    message["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{message}"))
}

/// A tool of the stateless era that wants this before it says what it got, with a state that has to come back.
pub(crate) fn wants(far: &FarServer, method: &'static str, params: Value) {
    far.reply("echo", move |asked: &Asked| {
        let answers = &asked.params["inputResponses"];
        if answers.is_null() {
            assert!(asked.params.get("requestState").is_none());
            let wants = json!({
                "resultType": "input_required",
                "inputRequests": { "k \u{2603}": { "method": method, "params": params } },
                "requestState": "exact \u{2603} \" state",
            });
            return json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "result": wants }));
        }
        assert_eq!(asked.params["requestState"], "exact \u{2603} \" state", "MRTR-04");
        let text = answers["k \u{2603}"].to_string();
        result(asked, json!({ "content": [{ "type": "text", "text": text }] }))
    });
}

// === the legacy era on both sides ===

#[tokio::test]
async fn hl_19_elic_01_a_form_reaches_the_client_of_the_call_and_its_answer_the_server() {
    for (client_revision, far_revision) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-11-25"),
        ("2025-11-25", "2025-06-18"),
    ] {
        let far = FarServer::start(&[far_revision]).await;
        // HOP-01: an id of the server's own space, with its type.
        asks_a_form(&far, json!("1"));
        let house = house(&far, MAY_ASK, "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::able(&gate.url, &key, client_revision, able()).await;
        let mut stream = start(&client, 7).await;
        let asked = stream.message().await.unwrap();
        e2e::schema::assert_message(client_revision, &asked);
        assert_eq!(asked["method"], "elicitation/create");
        assert_eq!(asked["params"]["message"], "[far] Your name?");
        assert_eq!(asked["params"]["_meta"]["io.tollhouse/upstream"], "far");
        let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
        let answer = client.post(&response(&asked, accepted.clone())).await;
        assert_eq!(answer.status, 202);
        let end = stream.message().await.unwrap();
        assert_eq!(end["id"], 7);
        assert_eq!(serde_json::from_str::<Value>(said(&end)).unwrap(), accepted);
        // HOP-06: exactly what this client can be asked, as far as its revision has it.
        let opened = far.asked_for("initialize");
        let declared = &opened.last().unwrap().params["capabilities"];
        let elicitation = if client_revision == "2025-11-25" {
            json!({ "form": {}, "url": {} })
        } else {
            json!({ "form": {} })
        };
        assert_eq!(declared["elicitation"], elicitation);
        assert_eq!(declared["roots"], json!({}));
        close(gate).await;
    }
}

#[tokio::test]
async fn hop_06_what_the_operator_or_the_client_does_not_allow_is_not_declared_and_refused() {
    for (lines, capabilities, code) in [
        ("", able(), "-32601"),
        ("may_ask = [\"roots\"]", able(), "-32601"),
        (MAY_ASK, json!({}), "-32601"),
        // ELIC-10, BASE-18: the mode was not declared.
        (MAY_ASK, json!({ "elicitation": { "url": {} } }), "-32602"),
    ] {
        let far = FarServer::start(&["2025-11-25"]).await;
        asks_a_form(&far, json!(1));
        let house = house(&far, lines, "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::able(&gate.url, &key, "2025-11-25", capabilities.clone()).await;
        let mut stream = start(&client, 1).await;
        let end = if stream.header("content-type") == Some("application/json") {
            stream.whole().await.json()
        } else {
            stream.message().await.unwrap()
        };
        assert_eq!(said(&end), code, "{lines} {capabilities}");
        close(gate).await;
    }
}

#[tokio::test]
async fn c3_a_request_on_a_pipe_reaches_the_client_of_the_call() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = FarServer::start(&[far_revision]).await;
        if far_revision == MODERN {
            wants(&far, "elicitation/create", form());
        } else {
            asks_a_form(&far, json!(1));
        }
        let house = house(&far, MAY_ASK, "").await;
        let mut pipe = house.stdio();
        open(&mut pipe).await;
        let params = json!({ "name": "far_echo", "arguments": { "text": "a" } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        pipe.send(&call.to_string()).await;
        let asked = pipe.message().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        // What answers nothing, and the same digits as text, are ignored.
        for id in [json!(99), json!(asked["id"].to_string())] {
            let other = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } });
            pipe.send(&other.to_string()).await;
        }
        let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
        pipe.send(&response(&asked, accepted.clone()).to_string()).await;
        let end = pipe.message().await;
        assert_eq!(serde_json::from_str::<Value>(said(&end)).unwrap(), accepted);
        let (code, log) = pipe.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
}

async fn open(pipe: &mut Pipe) {
    let mut opening = e2e::client::opening("2025-11-25");
    opening["params"]["capabilities"] = able();
    let opened = pipe.ask(&opening).await;
    assert!(opened["result"].is_object(), "{opened}");
}

#[tokio::test]
async fn samp_01_root_01_what_a_program_is_asked_is_answered_or_refused_in_its_own_words() {
    let sampling = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 5, "includeContext": "allServers" });
    let sampled = json!({ "role": "assistant", "content": { "type": "text", "text": "!" }, "model": "m" });
    let roots = json!({ "roots": [{ "uri": "file:///srv", "name": "s" }] });
    for (method, params, result) in [
        ("sampling/createMessage", sampling, sampled),
        ("roots/list", json!({}), roots),
    ] {
        for far_revision in ["2025-11-25", MODERN] {
            let far = FarServer::start(&[far_revision]).await;
            if far_revision == MODERN {
                wants(&far, method, params.clone());
            } else {
                let params = params.clone();
                far.talk("echo", move |_, talk| {
                    let params = params.clone();
                    Box::pin(async move {
                        let response = talk.ask(json!("s"), method, params).await;
                        json!({ "content": [{ "type": "text", "text": got(&response) }] })
                    })
                });
            }
            let house = house(&far, MAY_ASK, "").await;
            let key = house.key("ada").await;
            let gate = house.serve().await;
            let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
            let mut stream = start(&client, 1).await;
            let asked = stream.message().await.unwrap();
            assert_eq!(asked["method"], method);
            assert!(asked["params"].get("includeContext").is_none());
            client.post(&response(&asked, result.clone())).await;
            let end = stream.message().await.unwrap();
            assert_eq!(
                serde_json::from_str::<Value>(said(&end)).unwrap(),
                result,
                "{far_revision}"
            );
            // MRTR-09: in the stateless era there is no word for a refusal.
            let mut stream = start(&client, 2).await;
            let asked = stream.message().await.unwrap();
            let refusal = json!({ "code": -1, "message": "the user rejected it" });
            let refused = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": refusal });
            client.post(&refused).await;
            let end = stream.message().await.unwrap();
            if far_revision == MODERN {
                assert_eq!(end["result"]["isError"], true);
                assert!(said(&end).contains("got no answer"), "{end}");
            } else {
                assert_eq!(said(&end), "-1");
            }
            close(gate).await;
        }
    }
}

#[tokio::test]
async fn elic_03_a_person_who_was_not_reached_has_cancelled_and_a_content_that_does_not_fit_goes_nowhere() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = FarServer::start(&[far_revision]).await;
        if far_revision == MODERN {
            wants(&far, "elicitation/create", form());
        } else {
            asks_a_form(&far, json!(1));
        }
        let house = house(&far, MAY_ASK, "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
        for (number, member, value, expected) in [
            (
                1,
                "error",
                json!({ "code": -32603, "message": "no" }),
                r#"{"action":"cancel"}"#,
            ),
            (
                2,
                "result",
                json!({ "action": "accept", "content": { "name": "" } }),
                r#"{"action":"cancel"}"#,
            ),
            (
                3,
                "result",
                json!({ "action": "accept", "content": { "name": "a", "x": 1 } }),
                r#"{"action":"cancel"}"#,
            ),
            (
                4,
                "result",
                json!({ "action": "decline", "content": { "name": "a" } }),
                r#"{"action":"decline"}"#,
            ),
        ] {
            let mut stream = start(&client, number).await;
            let asked = stream.message().await.unwrap();
            client
                .post(&json!({ "jsonrpc": "2.0", "id": asked["id"], member: value }))
                .await;
            let end = stream.message().await.unwrap();
            assert_eq!(said(&end), expected, "{far_revision} {number}");
        }
        close(gate).await;
    }
}

// === whose question it is ===

#[tokio::test]
async fn hop_09_two_callers_at_once_are_each_asked_what_their_own_call_asks_and_nobody_answers_for_another() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.talk("echo", {
        let both = Arc::new(Barrier::new(2));
        move |asked, talk| {
            let both = Arc::clone(&both);
            Box::pin(async move {
                both.wait().await;
                let mut form = form();
                form["message"] = asked.params["arguments"]["text"].clone();
                let id = asked.params["arguments"]["text"].clone();
                let response = talk.ask(id, "elicitation/create", form).await;
                json!({ "content": [{ "type": "text", "text": response["result"]["content"]["name"] }] })
            })
        }
    });
    let house = house(&far, MAY_ASK, "").await;
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let ada = Mcp::able(&gate.url, &ada, "2025-11-25", able()).await;
    let bob = Mcp::able(&gate.url, &bob, "2025-11-25", able()).await;
    let (of_ada, of_bob) = (call(&ada, 1, "of ada"), call(&bob, 1, "of bob"));
    let (mut first, mut second) = tokio::join!(ada.stream(&of_ada), bob.stream(&of_bob));
    let (to_ada, to_bob) = (first.message().await.unwrap(), second.message().await.unwrap());
    assert_eq!(to_ada["params"]["message"], "[far] of ada");
    assert_eq!(to_bob["params"]["message"], "[far] of bob");
    let accepted = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    // Bob says what Ada was asked, in his session and in hers. A third session of hers says it, too.
    let foreign = response(&to_ada, accepted("bob"));
    let third = Mcp::able(&gate.url, ada.token.as_deref().unwrap(), "2025-11-25", able()).await;
    third.post(&foreign).await;
    let stolen = Mcp {
        session: ada.session.clone(),
        ..bob.clone()
    };
    assert_eq!(stolen.post(&foreign).await.status, 404);
    let mut other = foreign.clone();
    other["id"] = json!(foreign["id"].as_i64().unwrap() + 1);
    bob.post(&other).await;
    ada.post(&response(&to_ada, accepted("Ada"))).await;
    assert_eq!(said(&first.message().await.unwrap()), "Ada");
    bob.post(&response(&to_bob, accepted("Bob"))).await;
    assert_eq!(said(&second.message().await.unwrap()), "Bob");
    close(gate).await;
}

#[tokio::test]
async fn hop_09_clients_that_can_be_asked_different_things_share_no_session_of_a_server() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = house(&far, &format!("{MAY_ASK}\nsharing = \"shared\""), "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for capabilities in [able(), json!({}), json!({ "roots": {} }), able()] {
        let client = Mcp::able(&gate.url, &key, "2025-11-25", capabilities).await;
        start(&client, 1).await.whole().await;
    }
    let calls = far.asked_for("tools/call");
    let sessions: Vec<_> = calls.iter().map(|call| call.session.clone().unwrap()).collect();
    assert_eq!(sessions[0], sessions[3], "the same profile");
    assert!(sessions[0] != sessions[1] && sessions[1] != sessions[2] && sessions[0] != sessions[2]);
    close(gate).await;
}

#[tokio::test]
async fn c3_a_request_that_belongs_to_no_call_is_refused() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = house(&far, MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let nothing = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    // The gate's own conversation is the first that listens.
    e2e::house::until("the gate listens", async || far.tell(&nothing) == 1).await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    start(&client, 1).await.whole().await;
    e2e::house::until("the conversation listens", async || far.tell(&nothing) == 2).await;
    let answer = far.talk_waits(&json!("late"));
    far.tell_in(
        "tools/call",
        &json!({ "jsonrpc": "2.0", "id": "late", "method": "elicitation/create", "params": form() }),
    );
    let refused = answer.await.unwrap();
    assert_eq!(got(&refused), "-32602", "a request after the call: {refused}");
    close(gate).await;
}

#[tokio::test]
async fn can_01_what_a_server_takes_back_is_taken_back_from_the_client_and_so_is_what_is_open_at_the_end() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.talk("echo", |_, talk| {
        Box::pin(async move {
            for id in ["one", "two"] {
                let mut form = form();
                form["message"] = json!(id);
                talk.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": form }));
            }
            talk.ask(json!("three"), "elicitation/create", form()).await;
            talk.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "one" } }));
            talk.ask(json!("four"), "elicitation/create", form()).await;
            json!({ "content": [] })
        })
    });
    let house = house(&far, MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    let mut stream = start(&client, 1).await;
    let mut ids = std::collections::BTreeMap::new();
    let mut taken_back = Vec::new();
    let mut due = None;
    loop {
        let message = stream.message().await.unwrap();
        if message["method"] == "notifications/cancelled" {
            taken_back.push(message["params"]["requestId"].clone());
        } else if message["method"] == "elicitation/create" {
            let words = message["params"]["message"].as_str().unwrap().to_owned();
            if words.contains("name") {
                due = Some(message);
            } else {
                ids.insert(words, message["id"].clone());
            }
        } else {
            assert!(message["result"].is_object(), "{message}");
            break;
        }
        // The third is answered once the first two are there, the fourth once the first was taken back.
        if ids.len() == 2
            && let Some(asked) = due.take()
        {
            client
                .post(&response(&asked, json!({ "action": "decline" })))
                .await;
        }
    }
    assert_eq!(taken_back, [ids["[far] one"].clone(), ids["[far] two"].clone()]);
    close(gate).await;
}

#[tokio::test]
async fn life_l07_a_client_that_does_not_answer_is_waited_for_as_long_as_the_limit_says_and_no_longer() {
    let far = FarServer::start(&["2025-11-25"]).await;
    asks_a_form(&far, json!(1));
    let house = house(&far, MAY_ASK, "[limits]\nask_time_max = \"300ms\"\n").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    let mut stream = start(&client, 1).await;
    let asked = stream.message().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let taken_back = stream.message().await.unwrap();
    assert_eq!(taken_back["method"], "notifications/cancelled", "{taken_back}");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    let end = stream.message().await.unwrap();
    assert_eq!(end["id"], 1, "{end}");
    close(gate).await;
}

#[tokio::test]
async fn a_flood_of_questions_is_refused_to_the_server_at_the_limit() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.talk("echo", |_, talk| {
        Box::pin(async move {
            let first = talk.waits(&json!("first"));
            talk.tell(&json!({ "jsonrpc": "2.0", "id": "first", "method": "roots/list" }));
            let second = talk.ask(json!("second"), "roots/list", json!({})).await;
            let first = first.await.unwrap();
            let third = talk.ask(json!("third"), "roots/list", json!({})).await;
            let text = format!("{} {} {}", got(&first), got(&second), got(&third));
            json!({ "content": [{ "type": "text", "text": text }] })
        })
    });
    let limits = "[limits]\nasks_at_once_max = 1\nasks_per_call_max = 1\n";
    let house = house(&far, MAY_ASK, limits).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    let mut stream = start(&client, 1).await;
    let asked = stream.message().await.unwrap();
    client.post(&response(&asked, json!({ "roots": [] }))).await;
    let end = stream.message().await.unwrap();
    assert_eq!(said(&end), r#"{"roots":[]} -32603 -32603"#);
    close(gate).await;
}

#[tokio::test]
async fn mrtr_10_a_server_that_always_wants_more_is_stopped_at_the_limit() {
    let far = FarServer::start(&[MODERN]).await;
    far.reply("echo", |asked| {
        let wants = json!({ "resultType": "input_required", "requestState": "again" });
        json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "result": wants }))
    });
    let house = house(&far, MAY_ASK, "[limits]\nask_rounds_max = 2\n").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    let mut stream = start(&client, 1).await;
    let end = stream.message().await.unwrap();
    assert_eq!(end["result"]["isError"], true);
    assert_eq!(far.asked_for("tools/call").len(), 3);
    close(gate).await;
}
