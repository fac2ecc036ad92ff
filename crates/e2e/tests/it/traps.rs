//! The points of docs/protocol.md that are easy to get wrong, as far as servers behind the gate take part in them: what goes
//! over either hop, message by message. The others have their tests where their noun is.

use e2e::client::{MODERN, Mcp};
use e2e::far::{FarServer, echo, events, result};
use e2e::house::{close, until};
use e2e::service::json as json_answer;
use serde_json::{Value, json};

use crate::asks::{MAY_ASK, able, form, got, house, response, said};
use crate::servers::client;

const FAR: [&str; 2] = ["2025-11-25", MODERN];

/// A call whose client declares this, where its requests say so.
fn call(client: &Mcp, id: i64, capabilities: &Value, more: Value) -> Value {
    let mut params = json!({ "name": "far_echo", "arguments": { "text": "a" } });
    if client.revision == MODERN {
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    }
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    client.request(id, "tools/call", params)
}

/// The one question of an answer, with its key.
fn question(asked: &Value) -> (String, Value) {
    let requests = asked["result"]["inputRequests"].as_object();
    let requests = requests.unwrap_or_else(|| panic!("{asked}"));
    assert_eq!(requests.len(), 1, "{asked}");
    let (key, entry) = requests.iter().next().unwrap();
    (key.clone(), entry.clone())
}

/// What answers it.
fn retry(asked: &Value, answer: &Value) -> Value {
    let (key, _) = question(asked);
    json!({ "requestState": asked["result"]["requestState"], "inputResponses": { key: answer } })
}

#[tokio::test]
async fn d7_base_12_a_kind_of_result_that_nobody_knows_is_no_data_and_in_the_older_era_means_nothing() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("echo", |asked| {
            let said =
                json!({ "resultType": "streaming", "content": [{ "type": "text", "text": "partly" }] });
            json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "result": said }))
        });
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        for revision in FAR {
            let client = client(&gate, &key, revision).await;
            let result = client.call("far_echo", json!({ "text": "a" })).await;
            let is_data = result["content"][0]["text"] == "partly";
            assert_eq!(
                is_data,
                far_revision != MODERN,
                "{revision} to {far_revision}: {result}"
            );
            assert_eq!(result["isError"] == true, !is_data, "{result}");
            let kind = if revision == MODERN {
                json!("complete")
            } else {
                Value::Null
            };
            assert_eq!(
                result["resultType"], kind,
                "{revision} to {far_revision}: {result}"
            );
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn d8_mrtr_04_the_next_round_is_the_same_request_with_a_new_id_bare_answers_and_no_state_that_was_not_given()
 {
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    for revision in FAR {
        let far = FarServer::start(&[MODERN]).await;
        far.reply("echo", |asked| {
            if asked.params.get("inputResponses").is_some() {
                return result(asked, json!({ "content": [{ "type": "text", "text": "done" }] }));
            }
            let wants = json!({
                "resultType": "input_required",
                "inputRequests": { "ok": { "method": "elicitation/create", "params": form() } },
            });
            json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "result": wants }))
        });
        let house = house(&far, MAY_ASK, "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let end = if revision == MODERN {
            let client = Mcp::modern(&gate.url, &key);
            let asked = client.post(&call(&client, 1, &able(), json!({}))).await.json();
            let again = call(&client, 2, &able(), retry(&asked, &answer));
            client.post(&again).await.json()
        } else {
            let client = Mcp::able(&gate.url, &key, revision, able()).await;
            let mut stream = client.stream(&call(&client, 1, &able(), json!({}))).await;
            let asked = stream.message().await.unwrap();
            client.post(&response(&asked, answer.clone())).await;
            stream.message().await.unwrap()
        };
        assert_eq!(said(&end), "done", "{revision}");
        let calls = far.asked_for("tools/call");
        let [first, second] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        assert_ne!(first.id, second.id, "a new id");
        for same in ["name", "arguments"] {
            assert_eq!(first.params[same], second.params[same]);
        }
        assert_eq!(
            second.params["inputResponses"],
            json!({ "ok": answer }),
            "bare, by the server's own keys"
        );
        assert!(first.params.get("inputResponses").is_none());
        for call in &calls {
            assert!(
                call.params.get("requestState").is_none(),
                "none was given: {call:?}"
            );
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn d9_mrtr_01_cache_01_cache_02_input_is_wanted_where_it_may_be_and_nothing_of_it_is_kept() {
    let far = FarServer::start(&[MODERN]).await;
    far.has("resources/list", vec![json!({ "uri": "docs:///a", "name": "a" })]);
    far.has(
        "prompts/list",
        vec![json!({ "name": "ask", "arguments": [{ "name": "topic" }] })],
    );
    let asks = json!({
        "resultType": "input_required",
        "inputRequests": { "k": { "method": "elicitation/create", "params": form() } },
    });
    let wanted = asks.clone();
    far.reply("completion/complete", move |asked| {
        json_answer(
            200,
            &json!({ "jsonrpc": "2.0", "id": asked.id, "result": wanted }),
        )
    });
    far.reply("resources/read", move |asked| {
        if asked.params.get("inputResponses").is_none() {
            return json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "result": asks }));
        }
        let read = json!({ "contents": [{ "uri": "docs:///a", "text": "x" }], "ttlMs": 60_000, "cacheScope": "public" });
        result(asked, read)
    });
    let offers = "[upstream.far.prompt.ask]\n[upstream.far.resource.a]\nuri = \"docs:///a\"\n";
    let house = house(&far, MAY_ASK, offers).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let able = json!({ "io.modelcontextprotocol/clientCapabilities": able() });
    // MRTR-01: completing is answered or fails.
    let complete = json!({
        "ref": { "type": "ref/prompt", "name": "far_ask" }, "argument": { "name": "topic", "value": "a" }, "_meta": able,
    });
    let refused = client.ask("completion/complete", complete).await;
    assert_eq!(refused["error"]["code"], -32_603, "{refused}");
    for round in 1..=2 {
        let read = json!({ "uri": "docs:///a", "_meta": able });
        let asked = client
            .post(&client.request(1, "resources/read", read.clone()))
            .await
            .json();
        question(&asked);
        for hint in ["ttlMs", "cacheScope"] {
            assert!(asked["result"].get(hint).is_none(), "{asked}");
        }
        let mut again = read;
        let more = retry(
            &asked,
            &json!({ "action": "accept", "content": { "name": "Ada" } }),
        );
        for (key, value) in more.as_object().unwrap() {
            again[key] = value.clone();
        }
        let end = client
            .post(&client.request(2, "resources/read", again))
            .await
            .json();
        assert_eq!(end["result"]["contents"][0]["text"], "x", "{end}");
        assert_eq!(
            far.asked_for("resources/read").len(),
            2 * round,
            "each reading asks the server"
        );
    }
    close(gate).await;
}

/// A server of the legacy era that answers nothing before a page was opened, and knows by itself when it was.
async fn far_with_a_page() -> FarServer {
    let far = FarServer::start(&["2025-11-25"]).await;
    let opened = std::sync::atomic::AtomicBool::new(false);
    far.reply("echo", move |asked| {
        if opened.swap(true, std::sync::atomic::Ordering::AcqRel) {
            return result(asked, json!({ "content": [{ "type": "text", "text": "linked" }] }));
        }
        let page = json!({ "mode": "url", "elicitationId": "e9", "url": "https://up.example/c?e=e9", "message": "Link account" });
        let error =
            json!({ "code": -32_042, "message": "link first", "data": { "elicitations": [page] } });
        json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }))
    });
    far
}

#[tokio::test]
async fn d12_elic_05_elic_07_pages_that_a_server_wants_first_are_asked_for_in_the_words_of_each_era() {
    // The stateless era has neither the code nor the id of a page.
    let far = far_with_a_page().await;
    let house = house(&far, MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let modern = Mcp::modern(&gate.url, &key);
    let asked = modern.post(&call(&modern, 1, &able(), json!({}))).await.json();
    let (_, entry) = question(&asked);
    assert_eq!(entry["method"], "elicitation/create");
    let params = &entry["params"];
    assert_eq!(
        (&params["mode"], &params["url"], &params["message"]),
        (
            &json!("url"),
            &json!("https://up.example/c?e=e9"),
            &json!("[far] Link account")
        )
    );
    assert!(params.get("elicitationId").is_none(), "{asked}");
    assert!(!asked.to_string().contains("32042"), "{asked}");
    let again = retry(&asked, &json!({ "action": "accept" }));
    let end = modern.post(&call(&modern, 2, &able(), again)).await.json();
    assert_eq!(said(&end), "linked");
    let calls = far.asked_for("tools/call");
    assert_eq!(calls.len(), 2, "the same request again");
    assert_eq!(calls[0].params["arguments"], calls[1].params["arguments"]);
    assert!(calls[1].params.get("inputResponses").is_none());
    close(gate).await;

    // A session is asked by a request, with an id of our own, which its revision demands.
    let far = far_with_a_page().await;
    let house = self::house(&far, MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let legacy = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    let mut stream = legacy.stream(&call(&legacy, 1, &able(), json!({}))).await;
    let asked = stream.message().await.unwrap();
    e2e::schema::assert_message("2025-11-25", &asked);
    assert_eq!(asked["params"]["url"], "https://up.example/c?e=e9");
    let id = asked["params"]["elicitationId"].as_str().unwrap();
    assert_ne!(id, "e9", "{asked}");
    legacy
        .post(&response(&asked, json!({ "action": "accept" })))
        .await;
    assert_eq!(said(&stream.message().await.unwrap()), "linked");
    close(gate).await;
}

#[tokio::test]
async fn d12_mrtr_10_a_page_that_nobody_opens_ends_the_call_and_one_that_is_wanted_for_ever_too() {
    let far = FarServer::start(&["2025-11-25"]).await;
    far.reply("echo", |asked| {
        let page =
            json!({ "mode": "url", "elicitationId": "e9", "url": "https://up.example/", "message": "Link" });
        let error = json!({ "code": -32_042, "message": "link first", "data": { "elicitations": [page] } });
        json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }))
    });
    let house = house(&far, MAY_ASK, "[limits]\nask_rounds_max = 2\n").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::able(&gate.url, &key, "2025-11-25", able()).await;
    for (action, calls) in [("decline", 1), ("accept", 3)] {
        far.forget_asked();
        let mut stream = client.stream(&call(&client, 1, &able(), json!({}))).await;
        let end = loop {
            let message = stream.message().await.unwrap();
            if message.get("result").is_some() {
                break message;
            }
            client
                .post(&response(&message, json!({ "action": action })))
                .await;
        };
        assert_eq!(end["result"]["isError"], true, "{action}: {end}");
        assert_eq!(far.asked_for("tools/call").len(), calls, "{action}");
    }
    close(gate).await;
}

#[tokio::test]
async fn d13_base_18_elic_01_a_client_that_did_not_declare_what_is_needed_reads_what_it_is() {
    let needs_a_page = |asked: &e2e::far::Asked| {
        let error = if asked.revision == MODERN {
            json!({ "code": -32_021, "message": "no", "data": { "requiredCapabilities": { "elicitation": { "url": {} } } } })
        } else {
            let page =
                json!({ "mode": "url", "elicitationId": "e", "url": "https://up.example/", "message": "m" });
            json!({ "code": -32_042, "message": "no", "data": { "elicitations": [page] } })
        };
        json_answer(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }))
    };
    // A bare object is a form, and says nothing of pages.
    let form_only = json!({ "elicitation": {} });
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("echo", needs_a_page);
        let house = house(&far, MAY_ASK, "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let modern = Mcp::modern(&gate.url, &key);
        let answer = modern.post(&call(&modern, 1, &form_only, json!({}))).await;
        assert_eq!(answer.status, 400, "{far_revision}: {}", answer.text());
        let answer = answer.json();
        e2e::schema::assert_message(MODERN, &answer);
        assert_eq!(answer["error"]["code"], -32_021, "{far_revision}");
        assert_eq!(
            answer["error"]["data"],
            json!({ "requiredCapabilities": { "elicitation": { "url": {} } } }),
            "{far_revision}"
        );
        // The older era has no such code; a model reads it in words.
        let legacy = Mcp::able(&gate.url, &key, "2025-11-25", form_only.clone()).await;
        let mut stream = legacy.stream(&call(&legacy, 1, &form_only, json!({}))).await;
        let end = stream.message().await.unwrap();
        assert_eq!(end["result"]["isError"], true, "{end}");
        assert!(said(&end).contains(r#"{"elicitation":{"url":{}}}"#), "{end}");
        close(gate).await;
        // Where the operator does not let the server ask, no capability of a client would help.
        let house = self::house(&far, "may_ask = [\"roots\"]", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let modern = Mcp::modern(&gate.url, &key);
        let answer = modern.post(&call(&modern, 1, &form_only, json!({}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["result"]["isError"], true, "{}", answer.text());
        close(gate).await;
    }
}

#[tokio::test]
async fn d14_hm_09_hl_07_a_client_that_goes_away_is_gone_for_its_server_in_one_era_and_in_the_other_it_is_not()
 {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        let (came, mut calls) = tokio::sync::mpsc::unbounded_channel();
        far.talk("echo", move |_, talk| {
            let (done, end) = tokio::sync::oneshot::channel();
            came.send((talk.clone(), done)).unwrap();
            Box::pin(async move {
                let _ = end.await;
                json!({ "resultType": "complete", "content": [{ "type": "text", "text": "the end" }] })
            })
        });
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let pair = |revision: &str| format!("{revision} to {far_revision}");

        // In a session the call goes on, and its answer can be had.
        let legacy = Mcp::legacy(&gate.url, &key, "2025-11-25").await;
        let with_progress = json!({ "_meta": { "progressToken": "p" } });
        let mut stream = legacy.stream(&call(&legacy, 1, &json!({}), with_progress)).await;
        let first = stream.next().await.unwrap();
        let last = first.id.expect("HL-06");
        let (_talk, done) = calls.recv().await.unwrap();
        drop(stream);
        let mut rest = legacy.listen(Some(&last)).await;
        done.send(()).unwrap();
        let end = loop {
            let message = rest.message().await.unwrap();
            if message.get("result").is_some() {
                break message;
            }
        };
        assert_eq!(said(&end), "the end", "{}", pair("2025-11-25"));
        assert!(far.asked_for("notifications/cancelled").is_empty());

        // What stands alone is cancelled at the server, as its era does that.
        let modern = Mcp::modern(&gate.url, &key);
        let mut with_progress = call(&modern, 1, &json!({}), json!({}));
        with_progress["params"]["_meta"]["progressToken"] = json!("p");
        let stream = modern.stream(&with_progress).await;
        let (talk, _done) = calls.recv().await.unwrap();
        drop(stream);
        talk.closed().await;
        if far_revision == MODERN {
            assert!(
                far.asked_for("notifications/cancelled").is_empty(),
                "CAN-02: by closing"
            );
        } else {
            until("the server is told", async || {
                let told = far.asked_for("notifications/cancelled");
                let call = &far.asked_for("tools/call")[1];
                told.iter().any(|told| told.params["requestId"] == call.id)
            })
            .await;
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn d18_hop_04_hm_15_the_headers_of_a_hop_are_made_for_it_and_none_is_copied() {
    let far = FarServer::start(&[MODERN]).await;
    let mut named = echo();
    named["name"] = json!("wetter_k\u{f6}ln");
    far.tools(vec![named]);
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n{}\
         [upstream.far.tool.weather]\ntool = \"wetter_k\u{f6}ln\"\nclass = \"read\"\n",
        far.config("")
    );
    let house = e2e::house::House::new()
        .with_file("tollhouse.toml", config)
        .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
    crate::servers::approve(&house).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let message = client.request(
        1,
        "tools/call",
        json!({ "name": "far_weather", "arguments": { "text": "a" } }),
    );
    let origin = gate.base().to_owned();
    for (name, status) in [
        ("far_weather", 200),
        ("  far_weather ", 200),
        ("=?base64?ZmFyX3dlYXRoZXI=?=", 200),
        ("=?BASE64?ZmFyX3dlYXRoZXI=?=", 400),
        ("FAR_WEATHER", 400),
        ("wetter_koeln", 400),
    ] {
        let change = [
            ("mcp-name", Some(name)),
            ("mcp-session-id", Some("of-another-hop")),
            ("last-event-id", Some("7")),
            ("mcp-param-text", Some("of another hop")),
            ("origin", Some(origin.as_str())),
            ("cookie", Some("a=b")),
        ];
        let answer = client.post_with(&message, &change).await;
        assert_eq!(answer.status, status, "{name:?}: {}", answer.text());
    }
    let lower = [("mcp-method", Some("TOOLS/CALL"))];
    let answer = client.post_with(&message, &lower).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (400, Some(-32_020)));
    let calls = far.asked_for("tools/call");
    assert_eq!(calls.len(), 3);
    for call in &calls {
        let header = |name: &str| call.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("mcp-name"), Some("=?base64?d2V0dGVyX2vDtmxu?="));
        assert_eq!(header("mcp-method"), Some("tools/call"));
        for none in [
            "authorization",
            "mcp-session-id",
            "last-event-id",
            "mcp-param-text",
            "origin",
            "cookie",
        ] {
            assert_eq!(header(none), None, "{none}");
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn d19_hm_14_hm_16_hm_17_hm_19_arguments_that_stand_in_headers_too_do_so_on_both_hops() {
    let mut tool = echo();
    tool["inputSchema"]["properties"] = json!({
        "text": { "type": "string" },
        "place": { "type": "string", "x-mcp-header": "Place" },
        "n": { "type": "integer", "x-mcp-header": "N" },
        "weight": { "type": "number" },
    });
    let mut broken = tool.clone();
    broken["inputSchema"]["properties"]["weight"]["x-mcp-header"] = json!("Weight");
    broken["inputSchema"]["properties"]["region"] =
        json!({ "type": ["string", "null"], "x-mcp-header": "Broken" });
    for (revision, is_lost) in [("2025-11-25", false), (MODERN, true)] {
        let far = FarServer::start(&[revision]).await;
        far.tools(vec![broken.clone()]);
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::modern(&gate.url, &key);
        let called = client
            .ask(
                "tools/call",
                json!({ "name": "far_echo", "arguments": { "text": "t" } }),
            )
            .await;
        let listed = client.ask("tools/list", json!({})).await;
        if is_lost {
            // Where headers count, such a tool is not called.
            assert_eq!(called["error"]["code"], -32_602, "{called}");
            assert_eq!(listed["result"]["tools"], json!([]));
            assert_eq!(far.asked_for("tools/call").len(), 0);
        } else {
            // Where they do not, what a client would drop the tool for is not published.
            assert!(called["result"].is_object(), "{called}");
            let properties = &listed["result"]["tools"][0]["inputSchema"]["properties"];
            assert_eq!(properties["place"]["x-mcp-header"], "Place", "{listed}");
            for broken in ["region", "weight"] {
                assert!(properties[broken].get("x-mcp-header").is_none(), "{listed}");
            }
        }
        close(gate).await;
    }
    let far = FarServer::start(&[MODERN]).await;
    far.tools(vec![tool]);
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let escaped = "=?base64?ICBub3J0aA==?=";
    for (arguments, place, n, sent) in [
        (
            json!({ "place": "  north" }),
            Some(escaped),
            None,
            Some(Some(escaped)),
        ),
        (json!({ "place": "" }), Some(""), None, Some(Some(""))),
        (
            json!({ "place": "=?base64?x?=" }),
            Some("=?base64?PT9iYXNlNjQ/eD89?="),
            None,
            Some(Some("=?base64?PT9iYXNlNjQ/eD89?=")),
        ),
        (
            json!({ "place": "a", "n": 42 }),
            Some("a"),
            Some("42.0"),
            Some(Some("a")),
        ),
        (json!({}), None, None, Some(None)),
        (json!({ "weight": 1.5 }), None, None, Some(None)),
        // Missing, another value, bad base64, one for what is not there.
        (json!({ "place": "a" }), None, None, None),
        (json!({ "place": "a" }), Some("b"), None, None),
        (json!({ "place": "a" }), Some("=?base64?%%?="), None, None),
        (json!({ "n": 42 }), None, Some("43"), None),
        (json!({ "place": "a" }), Some("a"), Some("1"), None),
    ] {
        far.forget_asked();
        let mut arguments = arguments.clone();
        arguments["text"] = json!("t");
        let params = json!({ "name": "far_echo", "arguments": arguments });
        let message = client.request(1, "tools/call", params);
        let change = [("mcp-param-place", place), ("mcp-param-n", n)];
        let answer = client.post_with(&message, &change).await;
        let Some(sent) = sent else {
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (400, Some(-32_020)),
                "{arguments}"
            );
            assert!(far.asked_for("tools/call").is_empty(), "{arguments}");
            continue;
        };
        assert_eq!(answer.status, 200, "{arguments}: {}", answer.text());
        assert!(
            answer.json()["result"]["isError"].is_null(),
            "{arguments}: {}",
            answer.text()
        );
        let calls = far.asked_for("tools/call");
        let header = |name: &str| calls[0].headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("mcp-param-place"), sent, "{arguments}");
        assert_eq!(
            header("mcp-param-n"),
            n.map(|_| "42"),
            "{arguments}: made anew from the body"
        );
        for broken in ["mcp-param-weight", "mcp-param-broken"] {
            assert_eq!(header(broken), None);
        }
    }
    // To whom the tool is not there, its headers are not told.
    house.write("policy/all.cedar", "forbid (principal, action, resource);\n");
    close(gate).await;
    let gate = house.serve().await;
    let params = json!({ "name": "far_echo", "arguments": { "text": "t", "place": "a" } });
    let client = Mcp::modern(&gate.url, &key);
    let answer = client.post(&client.request(1, "tools/call", params)).await;
    assert_eq!(answer.code(), Some(-32_602), "{}", answer.text());
    close(gate).await;
}

#[tokio::test]
async fn d20_cache_04_what_a_server_lets_everybody_keep_is_one_callers_here_and_what_has_no_hint_gets_one() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.has("resources/list", vec![json!({ "uri": "docs:///a", "name": "a" })]);
        let offers = "[upstream.far.resource.a]\nuri = \"docs:///a\"\n";
        let house = house(&far, "", offers).await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::modern(&gate.url, &key);
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/read", json!({ "uri": "docs:///a" })),
        ] {
            let answer = client.ask(method, params).await;
            let result = &answer["result"];
            assert_eq!(
                result["cacheScope"], "private",
                "{far_revision} {method}: {answer}"
            );
            assert!(result["ttlMs"].is_u64(), "{far_revision} {method}: {answer}");
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn d22_tool_06_tool_07_a_result_that_is_no_object_is_whole_for_whoever_takes_it_and_text_for_all_others()
 {
    let far = FarServer::start(&[MODERN]).await;
    let mut tool = echo();
    tool["outputSchema"] = json!({ "type": "array", "items": { "type": "integer" } });
    far.tools(vec![tool]);
    far.reply("echo", |asked| {
        result(asked, json!({ "content": [], "structuredContent": [1, 2] }))
    });
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for revision in crate::servers::REVISIONS {
        let client = client(&gate, &key, revision).await;
        let listed = client.ask("tools/list", json!({})).await;
        let schema = listed["result"]["tools"][0].get("outputSchema");
        let result = client.call("far_echo", json!({ "text": "a" })).await;
        assert_eq!(schema.is_some(), revision == MODERN, "{revision}: {listed}");
        assert_eq!(
            result.get("structuredContent"),
            schema.map(|_| json!([1, 2])).as_ref(),
            "{revision}: {result}"
        );
        // The newest revision gets what the server said.
        let text = if revision == MODERN {
            Value::Null
        } else {
            json!("[1,2]")
        };
        assert_eq!(result["content"][0]["text"], text, "{revision}: {result}");
        assert!(result["isError"].is_null(), "{revision}: {result}");
    }
    close(gate).await;
}

#[tokio::test]
async fn d23_base_07_base_10_an_array_of_a_server_is_taken_apart_in_exactly_one_revision() {
    for (far_revision, is_read) in [
        ("2024-11-05", false),
        ("2025-03-26", true),
        ("2025-06-18", false),
        ("2025-11-25", false),
        (MODERN, false),
    ] {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("echo", |asked| {
            let token = &asked.params["_meta"]["progressToken"];
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } });
            let said = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "a" }] });
            events(&[json!([notice, { "jsonrpc": "2.0", "id": asked.id, "result": said }])])
        });
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let client = Mcp::modern(&gate.url, &key);
        let result = client.call("far_echo", json!({ "text": "a" })).await;
        assert_eq!(result["isError"] == true, !is_read, "{far_revision}: {result}");
        close(gate).await;
    }
}

#[tokio::test]
async fn d25_hop_07_what_a_server_refuses_the_gate_stays_on_its_hop() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        for (status, code) in [(401, 0), (403, 0), (400, -32_020), (400, -32_022)] {
            far.reply("echo", move |asked| {
                let error = json!({ "code": code, "message": "no", "data": { "supported": [MODERN], "requested": MODERN } });
                let mut answer =
                    json_answer(status, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }));
                answer.headers_mut().insert(
                    "www-authenticate",
                    "Bearer resource_metadata=\"https://up.example/meta\"".parse().unwrap(),
                );
                answer
            });
            for revision in FAR {
                let client = client(&gate, &key, revision).await;
                let message = call(&client, 1, &json!({}), json!({}));
                let answer = client.post(&message).await;
                let case = format!("{status} {code} of {far_revision} to {revision}");
                assert_eq!(answer.status, 200, "{case}: {}", answer.text());
                assert_eq!(answer.header("www-authenticate"), None, "{case}");
                assert_eq!(
                    answer.json()["result"]["isError"],
                    true,
                    "{case}: {}",
                    answer.text()
                );
                assert!(!answer.text().contains("up.example"), "{case}");
            }
        }
        close(gate).await;
    }
}

// === and a few more ===

#[tokio::test]
async fn hop_02_prog_01_a_token_comes_back_with_its_type_whatever_the_next_hop_called_it() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("echo", |asked| {
            let token = &asked.params["_meta"]["progressToken"];
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } });
            let said = json!({ "resultType": "complete", "content": [] });
            events(&[notice, json!({ "jsonrpc": "2.0", "id": asked.id, "result": said })])
        });
        let house = house(&far, "sharing = \"shared\"", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        for revision in FAR {
            let client = client(&gate, &key, revision).await;
            for token in [json!(7), json!("7")] {
                let mut message = call(&client, 1, &json!({}), json!({}));
                message["params"]["_meta"]["progressToken"] = token.clone();
                let mut stream = client.stream(&message).await;
                let told = stream.message().await.unwrap();
                assert_eq!(told["method"], "notifications/progress", "{told}");
                assert_eq!(
                    told["params"]["progressToken"], token,
                    "{revision} to {far_revision}"
                );
            }
        }
        let calls = far.asked_for("tools/call");
        let mut tokens: Vec<String> = calls
            .iter()
            .map(|call| call.params["_meta"]["progressToken"].to_string())
            .collect();
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), calls.len(), "each call has a token of its own");
        close(gate).await;
    }
}

#[tokio::test]
async fn pag_02_an_empty_cursor_of_a_server_is_not_the_end_of_its_list() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("tools/list", |asked| {
            let mut page = match asked.params["cursor"].as_str() {
                None => json!({ "tools": [], "nextCursor": "" }),
                Some("") => json!({ "tools": [echo()] }),
                Some(other) => panic!("{other}"),
            };
            if asked.revision == MODERN {
                page["ttlMs"] = json!(0);
                page["cacheScope"] = json!("private");
            }
            result(asked, page)
        });
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        assert_eq!(
            Mcp::modern(&gate.url, &key).tools().await,
            ["far_echo"],
            "{far_revision}"
        );
        close(gate).await;
    }
}

#[tokio::test]
async fn base_06_an_error_without_an_id_answers_the_one_request_that_it_can_be_about() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        far.reply("echo", |_| {
            let error = json!({ "code": -32_600, "message": "I could not read that" });
            json_answer(400, &json!({ "jsonrpc": "2.0", "error": error }))
        });
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        let result = Mcp::modern(&gate.url, &key)
            .call("far_echo", json!({ "text": "a" }))
            .await;
        assert_eq!(result["isError"], true, "{far_revision}: {result}");
        assert!(
            result.to_string().contains("I could not read that"),
            "{far_revision}: {result}"
        );
        close(gate).await;
    }
}

#[tokio::test]
async fn life_l09_a_server_that_pings_while_its_call_waits_for_a_client_gets_its_answer() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let (pinged, mut pings) = tokio::sync::mpsc::unbounded_channel();
    far.talk("echo", move |_, talk| {
        let pinged = pinged.clone();
        Box::pin(async move {
            let asked = talk.waits(&json!("form"));
            talk.tell(
                &json!({ "jsonrpc": "2.0", "id": "form", "method": "elicitation/create", "params": form() }),
            );
            pinged.send(talk.clone()).unwrap();
            json!({ "content": [{ "type": "text", "text": got(&asked.await.unwrap()) }] })
        })
    });
    let house = house(&far, MAY_ASK, "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let asked = client.post(&call(&client, 1, &able(), json!({}))).await.json();
    question(&asked);
    let talk = pings.recv().await.unwrap();
    // A space of ids of its own: our own ids are numbers, too.
    let pong = talk.ask(json!(0), "ping", json!({})).await;
    assert_eq!(pong["result"], json!({}), "{pong}");
    let again = retry(&asked, &json!({ "action": "decline" }));
    let end = client.post(&call(&client, 2, &able(), again)).await.json();
    assert_eq!(said(&end), r#"{"action":"decline"}"#);
    close(gate).await;
}

#[tokio::test]
async fn hop_03_where_a_tool_has_a_page_of_its_own_both_spellings_of_it_stay_as_they_are() {
    for far_revision in FAR {
        let far = FarServer::start(&[far_revision]).await;
        let meta = json!({
            "ui": { "resourceUri": "ui://far/page", "visibility": ["app"], "vendor": 1 }, "ui/resourceUri": "ui://far/page",
        });
        let mut tool = echo();
        tool["_meta"] = meta.clone();
        far.tools(vec![tool]);
        let house = house(&far, "", "").await;
        let key = house.key("ada").await;
        let gate = house.serve().await;
        for revision in ["2025-06-18", "2025-11-25", MODERN] {
            let client = client(&gate, &key, revision).await;
            let listed = client.ask("tools/list", json!({})).await;
            assert_eq!(
                listed["result"]["tools"][0]["_meta"], meta,
                "{revision} to {far_revision}"
            );
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn sub_03_two_subscriptions_of_a_client_hear_of_one_change_once_each() {
    let far = FarServer::start(&["2025-11-25"]).await;
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    client.call("far_echo", json!({ "text": "a" })).await;
    let mut heard = Vec::new();
    for id in ["one", "two"] {
        let wants = json!({ "notifications": { "toolsListChanged": true } });
        let mut stream = client
            .stream(&client.request(id, "subscriptions/listen", wants))
            .await;
        stream.message().await.unwrap();
        heard.push((id, stream));
    }
    far.tools(Vec::new());
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    until("somebody listens to the server", async || far.tell(&changed) > 0).await;
    for (id, stream) in &mut heard {
        let told = stream.message().await.unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
        assert_eq!(
            told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            *id
        );
    }
    gate.interrupt();
    for (id, stream) in &mut heard {
        let last = stream.message().await.unwrap();
        assert_eq!(last["id"], *id, "nothing between: {last}");
    }
    gate.ended().await;
}

#[tokio::test]
async fn life_m05_res_01_prm_01_cmp_01_what_nothing_serves_is_no_method_however_it_is_asked_for() {
    let far = FarServer::start(&[MODERN]).await;
    let house = house(&far, "", "").await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for revision in ["2025-03-26", "2025-11-25", MODERN] {
        let client = client(&gate, &key, revision).await;
        for (method, params) in [
            ("prompts/list", json!({ "cursor": 1 })),
            ("prompts/get", json!({})),
            ("prompts/get", json!({ "name": "x", "arguments": { "a": 1 } })),
            ("resources/list", json!({ "cursor": 1 })),
            ("resources/read", json!({})),
            ("resources/read", json!({ "uri": 1 })),
            ("resources/templates/list", json!({ "cursor": [] })),
            ("completion/complete", json!({ "ref": { "type": "ref/other" } })),
        ] {
            let message = client.request(1, method, params.clone());
            let answer = client.post_with(&message, &[("mcp-name", Some("another"))]).await;
            let case = format!("{revision} {method} {params}: {}", answer.text());
            assert_eq!(answer.code(), Some(-32_601), "{case}");
            assert_eq!(
                answer.status,
                if revision == MODERN { 404 } else { 200 },
                "{case}"
            );
        }
        // What is served is told what is wrong with it.
        let message = client.request(1, "tools/list", json!({ "cursor": 1 }));
        assert_eq!(client.post(&message).await.code(), Some(-32_602), "{revision}");
    }
    close(gate).await;
    let mut pipe = house.stdio();
    let modern = Mcp::modern("http://pipe", "none");
    let refused = pipe.ask(&modern.request(1, "prompts/get", json!({}))).await;
    assert_eq!(refused["error"]["code"], -32_601, "{refused}");
    pipe.ask(&e2e::client::opening("2025-11-25")).await;
    let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {} });
    assert_eq!(pipe.ask(&request).await["error"]["code"], -32_601);
    let (code, log) = pipe.close().await;
    assert_eq!(code, Some(0), "{log}");
}
