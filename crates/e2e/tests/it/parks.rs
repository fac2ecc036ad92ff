//! Calls of the stateless era that wait until their client comes back with answers: taken up once, by whoever was asked.

use e2e::client::{MODERN, Mcp};
use e2e::far::FarServer;
use e2e::house::{Gate, House, close, until};
use e2e::schema::assert_message;
use serde_json::{Value, json};

use crate::asks::{MAY_ASK, able, asks_a_form, form, got, house, said, wants};

/// A call with these members beside name and arguments.
fn call(client: &Mcp, id: i64, text: &str, more: Value) -> Value {
    let mut params = json!({
        "name": "far_echo", "arguments": { "text": text },
        "_meta": { "io.modelcontextprotocol/clientCapabilities": able() },
    });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    client.request(id, "tools/call", params)
}

async fn round(client: &Mcp, id: i64, text: &str, more: Value) -> Value {
    let answer = client.post(&call(client, id, text, more)).await.json();
    assert_message(MODERN, &answer);
    assert_eq!(answer["id"], id);
    answer
}

fn retry(asked: &Value, responses: Value) -> Value {
    json!({ "requestState": asked["result"]["requestState"], "inputResponses": responses })
}

fn accepted() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("{answer}"))
}

async fn gate_of(far: &FarServer, limits: &str) -> (House, Gate, Mcp) {
    let house = house(far, MAY_ASK, limits).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    (house, gate, client)
}

async fn far_that_asks(revision: &str) -> FarServer {
    let far = FarServer::start(&[revision]).await;
    if revision == MODERN {
        wants(&far, "elicitation/create", form());
    } else {
        asks_a_form(&far, json!(1));
    }
    far
}

#[tokio::test]
async fn tool_11_mrtr_02_mrtr_04_a_question_ends_the_request_and_the_next_one_takes_the_call_up() {
    for far_revision in ["2025-06-18", "2025-11-25", MODERN] {
        let far = far_that_asks(far_revision).await;
        let (house, gate, client) = gate_of(&far, "").await;
        let asked = round(&client, 1, "a", json!({})).await;
        let wants = &asked["result"];
        assert_eq!(wants["resultType"], "input_required");
        let (key, entry) = wants["inputRequests"].as_object().unwrap().iter().next().unwrap();
        // A server of the stateless era has names for its questions, and they stay.
        let own = if far_revision == MODERN {
            "k \u{2603}"
        } else {
            "ask-1"
        };
        assert_eq!(key, own);
        assert_eq!(entry["method"], "elicitation/create");
        assert_eq!(entry["params"]["message"], "[far] Your name?");
        assert!(
            entry.get("id").is_none() && entry.get("jsonrpc").is_none(),
            "MRTR-03"
        );
        // MRTR-07: what was not asked is ignored.
        let responses = json!({ key: accepted(), "other": 1 });
        let end = round(&client, 2, "a", retry(&asked, responses)).await;
        assert_eq!(
            serde_json::from_str::<Value>(said(&end)).unwrap(),
            accepted(),
            "{far_revision}"
        );
        // The server was told what this client can be asked, and got one call, or one for each round.
        let calls = far.asked_for("tools/call");
        assert_eq!(calls.len(), if far_revision == MODERN { 2 } else { 1 });
        close(gate).await;
        let outcomes = house.ledger().await;
        assert_eq!(outcomes.of_kind("outcome").len(), 1, "one call");
    }
}

#[tokio::test]
async fn mrtr_02_on_a_pipe_as_well() {
    for far_revision in ["2025-11-25", MODERN] {
        let far = far_that_asks(far_revision).await;
        let house = house(&far, MAY_ASK, "").await;
        let client = Mcp::modern("http://pipe", "none");
        let mut pipe = house.stdio();
        let asked = pipe.ask(&call(&client, 1, "a", json!({}))).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let key = asked["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let again = retry(&asked, json!({ key: accepted() }));
        let end = pipe.ask(&call(&client, 2, "a", again.clone())).await;
        assert_eq!(serde_json::from_str::<Value>(said(&end)).unwrap(), accepted());
        assert_eq!(code(&pipe.ask(&call(&client, 3, "a", again)).await), -32_602);
        // One that waits when the pipe ends keeps nobody.
        let asked = pipe.ask(&call(&client, 4, "a", json!({}))).await;
        assert_eq!(asked["result"]["resultType"], "input_required");
        let (status, log) = pipe.close().await;
        assert_eq!(status, Some(0), "{log}");
    }
}

#[tokio::test]
async fn d10_mrtr_06_a_state_is_taken_from_whom_it_was_given_to_for_the_same_request_once() {
    let far = far_that_asks("2025-11-25").await;
    let house = house(&far, MAY_ASK, "").await;
    let (ada, bob) = (house.key("ada").await, house.key("bob").await);
    let gate = house.serve().await;
    let (ada, bob) = (Mcp::modern(&gate.url, &ada), Mcp::modern(&gate.url, &bob));
    let asked = round(&ada, 1, "a", json!({})).await;
    let key = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let right = retry(&asked, json!({ &key: accepted() }));
    let state = asked["result"]["requestState"].as_str().unwrap();
    // Another caller, other arguments, another endpoint, a state that is altered, and one that nobody gave out.
    assert_eq!(code(&round(&bob, 2, "a", right.clone()).await), -32_602);
    assert_eq!(code(&round(&ada, 3, "b", right.clone()).await), -32_602);
    let mut elsewhere = call(&ada, 4, "a", right.clone());
    elsewhere["params"]["name"] = json!("echo");
    let own = Mcp {
        url: format!("{}/far", gate.url),
        ..ada.clone()
    };
    assert_eq!(code(&own.post(&elsewhere).await.json()), -32_602);
    for other in [format!("{state}A"), state.replace("1.", "2."), String::new()] {
        let altered = json!({ "requestState": other, "inputResponses": { &key: accepted() } });
        assert_eq!(code(&round(&ada, 5, "a", altered).await), -32_602, "{other}");
    }
    // MRTR-07: an answer of another form, and one that the form does not ask for; the call goes on waiting.
    for wrong in [
        json!(1),
        json!({ "action": "yes" }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "name": 1 } }),
        json!({ "action": "accept", "content": { "name": "a", "more": 1 } }),
    ] {
        let malformed = retry(&asked, json!({ &key: wrong }));
        assert_eq!(code(&round(&ada, 6, "a", malformed).await), -32_602, "{wrong}");
    }
    let end = round(&ada, 8, "a", right.clone()).await;
    assert_eq!(serde_json::from_str::<Value>(said(&end)).unwrap(), accepted());
    assert_eq!(code(&round(&ada, 9, "a", right).await), -32_602, "a second time");
    assert_eq!(far.asked_for("tools/call").len(), 1);
    // MRTR-05, MRTR-07: answers without the state that they belong to answer nothing; it is a call like any other.
    let stateless = json!({ "inputResponses": { &key: accepted() } });
    let anew = round(&ada, 10, "a", stateless).await;
    assert_eq!(anew["result"]["resultType"], "input_required", "{anew}");
    assert_eq!(far.asked_for("tools/call").len(), 2);
    close(gate).await;
}

#[tokio::test]
async fn mrtr_07_what_is_missing_is_asked_again_under_another_state_and_nothing_else_is() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.talk("echo", |_, talk| {
        Box::pin(async move {
            let first = talk.waits(&json!("first"));
            talk.tell(&json!({ "jsonrpc": "2.0", "id": "first", "method": "roots/list" }));
            let second = talk.ask(json!("second"), "elicitation/create", form()).await;
            let text = format!("{} {}", got(&first.await.unwrap()), got(&second));
            json!({ "content": [{ "type": "text", "text": text }] })
        })
    });
    let (_house, gate, client) = gate_of(&far, "").await;
    let asked = round(&client, 1, "a", json!({})).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 2, "what comes together is one round: {asked}");
    let of = |method: &str| {
        requests
            .iter()
            .find(|(_, entry)| entry["method"] == method)
            .unwrap()
            .0
            .clone()
    };
    let (roots, form) = (of("roots/list"), of("elicitation/create"));
    let again = round(&client, 2, "a", retry(&asked, json!({ &roots: { "roots": [] } }))).await;
    let left = again["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), [&form]);
    assert_eq!(left[&form], requests[&form]);
    // The first state was used.
    let old = retry(&asked, json!({ &form: accepted() }));
    assert_eq!(code(&round(&client, 3, "a", old).await), -32_602);
    let end = round(
        &client,
        4,
        "a",
        retry(&again, json!({ &form: { "action": "decline" } })),
    )
    .await;
    assert_eq!(said(&end), r#"{"roots":[]} {"action":"decline"}"#);
    close(gate).await;
}

#[tokio::test]
async fn d11_mrtr_08_a_call_that_nobody_takes_up_is_given_up_and_its_server_is_told() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let (told, mut answers) = tokio::sync::mpsc::unbounded_channel();
    far.talk("echo", move |_, talk| {
        let told = told.clone();
        Box::pin(async move {
            // An id of its own space, which is answered as it is.
            let response = talk.ask(json!(0), "elicitation/create", form()).await;
            told.send(got(&response)).unwrap();
            talk.closed().await;
            json!({ "content": [] })
        })
    });
    let (house, gate, client) = gate_of(&far, "[limits]\nask_time_max = \"300ms\"\n").await;
    let asked = round(&client, 1, "a", json!({})).await;
    assert_eq!(answers.recv().await.unwrap(), r#"{"action":"cancel"}"#);
    gate.logged("a call was given up").await;
    let key = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let late = retry(&asked, json!({ key: accepted() }));
    assert_eq!(code(&round(&client, 2, "a", late).await), -32_602);
    until("the server is told", async || {
        !far.asked_for("notifications/cancelled").is_empty()
    })
    .await;
    let calls = far.asked_for("tools/call");
    assert_eq!(calls.len(), 1, "coming back late opens no other");
    let cancelled = &far.asked_for("notifications/cancelled")[0];
    assert_eq!(cancelled.params["requestId"], calls[0].id);
    close(gate).await;
    let entries = house.ledger().await;
    let outcome = &entries.of_kind("outcome")[0];
    assert!(outcome.to_string().contains("cancelled"), "{outcome}");
}

#[tokio::test]
async fn as_many_calls_wait_as_may_and_in_the_next_one_nobody_answers() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.talk("echo", |asked, talk| {
        Box::pin(async move {
            let id = asked.params["arguments"]["text"].clone();
            let response = talk.ask(id, "elicitation/create", form()).await;
            json!({ "content": [{ "type": "text", "text": got(&response) }] })
        })
    });
    for limit in ["parks_per_caller_max", "parks_max"] {
        let (_house, gate, client) = gate_of(&far, &format!("[limits]\n{limit} = 1\n")).await;
        let asked = round(&client, 1, "a", json!({})).await;
        let next = round(&client, 2, "b", json!({})).await;
        assert_eq!(said(&next), r#"{"action":"cancel"}"#, "{limit}");
        let key = asked["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let end = round(&client, 3, "a", retry(&asked, json!({ key: accepted() }))).await;
        assert_eq!(serde_json::from_str::<Value>(said(&end)).unwrap(), accepted());
        close(gate).await;
    }
}

#[tokio::test]
async fn a_gate_that_closes_does_not_wait_for_clients_that_may_come_back() {
    let far = far_that_asks("2025-11-25").await;
    let (house, gate, client) = gate_of(&far, "[limits]\ndrain_timeout = \"1h\"\n").await;
    let asked = round(&client, 1, "a", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("were given up"), "{log}");
    assert_eq!(house.ledger().await.of_kind("outcome").len(), 1);
}

#[tokio::test]
async fn samp_01_root_01_elic_05_every_kind_is_asked_of_a_client_of_the_stateless_era() {
    let url = json!({ "mode": "url", "url": "https://example.com/x", "message": "Open it.", "elicitationId": "e1" });
    for (method, params, answer) in [
        (
            "sampling/createMessage",
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 10 }),
            json!({ "role": "assistant", "content": { "type": "text", "text": "hello" }, "model": "m" }),
        ),
        (
            "roots/list",
            json!({}),
            json!({ "roots": [{ "uri": "file:///a", "name": "a" }] }),
        ),
        ("elicitation/create", url, json!({ "action": "accept" })),
    ] {
        for far_revision in ["2025-11-25", MODERN] {
            let far = FarServer::start(&[far_revision]).await;
            let mut params = params.clone();
            if far_revision == MODERN {
                // It came with the one before.
                params.as_object_mut().unwrap().remove("elicitationId");
                wants(&far, method, params);
            } else {
                far.talk("echo", move |_, talk| {
                    let params = params.clone();
                    Box::pin(async move {
                        let response = talk.ask(json!("q"), method, params).await;
                        json!({ "content": [{ "type": "text", "text": got(&response) }] })
                    })
                });
            }
            let (_house, gate, client) = gate_of(&far, "").await;
            let asked = round(&client, 1, "a", json!({})).await;
            let requests = asked["result"]["inputRequests"].as_object().unwrap();
            let (key, entry) = requests.iter().next().unwrap();
            assert_eq!(entry["method"], method, "{far_revision}: {asked}");
            assert!(entry["params"].get("elicitationId").is_none(), "C3: {asked}");
            if method != "roots/list" {
                assert_eq!(
                    entry["params"]["_meta"]["io.tollhouse/upstream"], "far",
                    "{asked}"
                );
            }
            let end = round(&client, 2, "a", retry(&asked, json!({ key: answer }))).await;
            let got: Value = serde_json::from_str(said(&end)).unwrap_or_else(|_| panic!("{method} {end}"));
            assert_eq!(got, answer, "{method} of {far_revision}");
            close(gate).await;
        }
    }
}

#[tokio::test]
async fn prm_02_res_09_prompts_and_resources_ask_as_well_and_nothing_else_does() {
    let far = FarServer::start(&[MODERN]).await;
    far.has(
        "prompts/list",
        vec![json!({ "name": "ask", "arguments": [{ "name": "topic" }] })],
    );
    far.has("resources/list", vec![json!({ "uri": "docs:///a", "name": "a" })]);
    let offers = "[upstream.far.prompt.ask]\n[upstream.far.resource.a]\nuri = \"docs:///a\"\n";
    let (_house, gate, client) = gate_of(&far, offers).await;
    for (method, params, member) in [
        (
            "prompts/get",
            json!({ "name": "far_ask", "arguments": { "topic": "x" } }),
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "x" } }] }),
        ),
        (
            "resources/read",
            json!({ "uri": "docs:///a" }),
            json!({ "contents": [{ "uri": "docs:///a", "text": "x" }] }),
        ),
    ] {
        let gives = member.clone();
        far.reply(method, move |asked| {
            if asked.params["inputResponses"].is_null() {
                let wants = json!({
                    "resultType": "input_required",
                    "inputRequests": { "k": { "method": "elicitation/create", "params": form() } },
                });
                let answer = json!({ "jsonrpc": "2.0", "id": asked.id, "result": wants });
                return e2e::service::json(200, &answer);
            }
            assert_eq!(asked.params["inputResponses"]["k"], accepted(), "MRTR-04");
            e2e::far::result(asked, gives.clone())
        });
        let ask = async |id: i64, more: Value| {
            let mut params = params.clone();
            params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able() });
            for (key, value) in more.as_object().unwrap() {
                params[key] = value.clone();
            }
            client.post(&client.request(id, method, params)).await.json()
        };
        let asked = ask(1, json!({})).await;
        assert_eq!(
            asked["result"]["resultType"], "input_required",
            "{method}: {asked}"
        );
        let key = asked["result"]["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap();
        let again = retry(&asked, json!({ key: accepted() }));
        let end = ask(2, again.clone()).await;
        for (name, value) in member.as_object().unwrap() {
            assert_eq!(end["result"][name], *value, "{method}: {end}");
        }
        assert_eq!(code(&ask(3, again).await), -32_602, "{method}: a second time");
    }
    // MRTR-01: where nothing may be asked, a state is none either.
    let listed = client
        .ask(
            "prompts/list",
            json!({ "requestState": "1.x", "inputResponses": {} }),
        )
        .await;
    assert!(listed["result"]["prompts"].is_array(), "{listed}");
    close(gate).await;
}
