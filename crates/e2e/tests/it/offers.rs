//! What servers offer beside tools: prompts, resources, templates and completion, on the same road as calls.

use e2e::client::{MODERN, Mcp};
use e2e::far::{FarServer, error, result};
use e2e::house::{Gate, House};
use e2e::schema::assert_answer;
use serde_json::{Value, json};

use crate::servers::{REVISIONS, TOOL, approve, client, close, house, unapproved};

const OFFERS: &str = "\
[upstream.far.prompt.ask]
[upstream.far.resource.start]
uri = \"docs:///start\"
[upstream.far.resource.page]
template = \"docs:///pages/{name}\"
";

fn offer(far: &FarServer) {
    far.has(
        "prompts/list",
        vec![
            json!({ "name": "ask", "title": "Ask", "description": "Asks.", "vendor": 1, "arguments": [
                { "name": "topic", "required": true }, { "name": "tone" },
            ] }),
            json!({ "name": "other" }),
        ],
    );
    far.has(
        "resources/list",
        vec![
            json!({ "uri": "docs:///start", "name": "start", "mimeType": "text/plain", "size": 7, "vendor": { "b": 1, "a": 2 } }),
            json!({ "uri": "docs:///other", "name": "other" }),
        ],
    );
    far.has(
        "resources/templates/list",
        vec![
            json!({ "uriTemplate": "docs:///pages/{name}", "name": "page" }),
            json!({ "uriTemplate": "docs:///others/{name}", "name": "others" }),
        ],
    );
}

struct Offering {
    far: FarServer,
    house: House,
    gate: Gate,
    key: String,
}

async fn offering(revisions: &[&str]) -> Offering {
    let far = FarServer::start(revisions).await;
    offer(&far);
    let house = house(&far, "", &format!("{TOOL}{OFFERS}")).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    Offering {
        far,
        house,
        gate,
        key,
    }
}

/// Asks, and holds the answer against the schema of the revision.
async fn ask(client: &Mcp, revision: &str, method: &str, params: Value) -> Value {
    let answer = client.ask(method, params).await;
    assert_answer(revision, method, &answer);
    answer
}

#[tokio::test]
async fn cmp_02_every_client_gets_what_every_server_offers_and_nothing_unknown_is_lost() {
    for far_revision in REVISIONS {
        let Offering {
            far,
            house,
            gate,
            key,
        } = offering(&[far_revision]).await;
        for revision in REVISIONS {
            let client = client(&gate, &key, revision).await;
            let pair = format!("{revision} to {far_revision}");
            let ask = async |method: &str, params: Value| ask(&client, revision, method, params).await;

            let prompts = ask("prompts/list", json!({})).await;
            let prompts = prompts["result"]["prompts"].as_array().unwrap();
            assert_eq!(prompts.len(), 1, "{pair}: what nobody named is not there");
            assert_eq!(
                (&prompts[0]["name"], &prompts[0]["vendor"]),
                (&json!("far_ask"), &json!(1)),
                "{pair}"
            );
            assert_eq!(
                prompts[0]["arguments"][0],
                json!({ "name": "topic", "required": true })
            );
            let got = ask(
                "prompts/get",
                json!({ "name": "far_ask", "arguments": { "topic": "é" } }),
            )
            .await;
            let text = &got["result"]["messages"][0]["content"]["text"];
            assert_eq!(text, r#"{"topic":"é"}"#, "{pair}: {got}");
            assert_eq!(got["result"]["vendor"].to_string(), r#"{"b":1,"a":2}"#, "{pair}");

            let resources = ask("resources/list", json!({})).await;
            let resources = resources["result"]["resources"].as_array().unwrap();
            assert_eq!(resources.len(), 1, "{pair}");
            assert_eq!(
                resources[0]["uri"], "docs:///start",
                "{pair}: a URI is the same everywhere"
            );
            assert_eq!(resources[0]["vendor"].to_string(), r#"{"b":1,"a":2}"#, "{pair}");
            let templates = ask("resources/templates/list", json!({})).await;
            let templates = &templates["result"]["resourceTemplates"];
            assert_eq!(
                *templates,
                json!([{ "uriTemplate": "docs:///pages/{name}", "name": "page" }]),
                "{pair}"
            );
            for uri in ["docs:///start", "docs:///pages/a%20b"] {
                let read = ask("resources/read", json!({ "uri": uri })).await;
                let content = &read["result"]["contents"][0];
                assert_eq!(
                    (&content["uri"], &content["text"]),
                    (&json!(uri), &json!(uri)),
                    "{pair}: {read}"
                );
                assert_eq!(content["vendor"], json!([1.5]), "{pair}");
                // C3: what an older server does not say is not made up, and nothing is for everybody.
                if revision == MODERN {
                    let ttl = if far_revision == MODERN { 700 } else { 0 };
                    assert_eq!(read["result"]["ttlMs"], ttl, "{pair}");
                    assert_eq!(read["result"]["cacheScope"], "private", "{pair}");
                }
            }

            for of in [
                json!({ "type": "ref/prompt", "name": "far_ask" }),
                json!({ "type": "ref/resource", "uri": "docs:///pages/{name}" }),
            ] {
                let (argument, others) = if of["type"] == "ref/prompt" {
                    ("tone", json!({ "topic": "x" }))
                } else {
                    ("name", json!({}))
                };
                let params = json!({
                    "ref": of, "argument": { "name": argument, "value": "v" }, "context": { "arguments": others },
                });
                let completed = ask("completion/complete", params).await;
                let values = &completed["result"]["completion"]["values"];
                // C4: revisions before 2025-06-18 have no words for the other arguments.
                let context = far_revision >= "2025-06-18" && argument == "tone";
                let context = if context { r#"{"topic":"x"}"# } else { "null" };
                assert_eq!(*values, json!(["v", context]), "{pair}: {completed}");
            }
        }
        let read = far.asked_for("resources/read");
        assert_eq!(read.len(), 2 * REVISIONS.len());
        assert!(read.iter().all(|read| read.revision == far_revision));
        for asked in far.asked_for("prompts/get") {
            assert_eq!(asked.params["name"], "ask", "the server's own name");
        }
        close(gate).await;
        let entries = house.ledger().await;
        let methods: Vec<Value> = entries
            .of_kind("intent")
            .iter()
            .map(|entry| entry["method"].clone())
            .collect();
        for (method, count) in [
            ("prompts/get", 1),
            ("resources/read", 2),
            ("completion/complete", 2),
        ] {
            let found = methods.iter().filter(|found| **found == method).count();
            assert_eq!(found, count * REVISIONS.len(), "{method}");
        }
        assert_eq!(entries.of_kind("outcome").len(), 5 * REVISIONS.len());
    }
}

#[tokio::test]
async fn what_nobody_named_or_approved_is_not_found_and_reaches_no_server() {
    let far = FarServer::start(&REVISIONS).await;
    offer(&far);
    let house = unapproved(&far, "", &format!("{TOOL}{OFFERS}"));
    let approved = house
        .run([
            "pins",
            "approve",
            "far",
            "echo",
            "prompt:ask",
            "resource:docs:///start",
        ])
        .await;
    assert!(approved.status.success(), "{approved:?}");
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for revision in ["2025-11-25", MODERN] {
        let client = client(&gate, &key, revision).await;
        let code = if revision == MODERN { -32_602 } else { -32_002 };
        for uri in [
            "docs:///other",
            "docs:///pages/a",
            "docs:///others/a",
            "file:///etc/passwd",
            "",
            "x",
        ] {
            let answer = client.ask("resources/read", json!({ "uri": uri })).await;
            assert_eq!(answer["error"]["code"], code, "RES-03, RES-04: {answer}");
            assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
        }
        for name in ["far_other", "ask", "far_echo", "far_start", ""] {
            let answer = client.ask("prompts/get", json!({ "name": name })).await;
            assert_eq!(answer["error"]["code"], -32_602, "PRM-01: {answer}");
            assert_eq!(answer["error"]["message"], format!("unknown prompt `{name}`"));
        }
        // A prompt is no tool.
        let answer = client
            .ask(
                "tools/call",
                json!({ "name": "far_ask", "arguments": { "topic": "x" } }),
            )
            .await;
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    }
    for method in ["resources/read", "prompts/get", "tools/call"] {
        assert!(far.asked_for(method).is_empty(), "{method}");
    }
    close(gate).await;
    assert_eq!(house.ledger().await.of_kind("intent").len(), 0);
    assert_eq!(
        house.ledger().await.of_kind("refusal").len(),
        2 * 12,
        "each no is written down"
    );
}

#[tokio::test]
async fn prm_01_cmp_03_arguments_are_texts_that_are_declared_and_none_that_is_needed_is_missing() {
    let Offering { far, gate, key, .. } = offering(&[MODERN]).await;
    for revision in ["2025-06-18", MODERN] {
        let client = client(&gate, &key, revision).await;
        for arguments in [
            json!({}),
            json!({ "topic": 1 }),
            json!({ "topic": "x", "more": "y" }),
            json!({ "topic": { "deep": "x" } }),
            json!({ "tone": "x" }),
        ] {
            let answer = client
                .ask(
                    "prompts/get",
                    json!({ "name": "far_ask", "arguments": arguments }),
                )
                .await;
            assert_eq!(answer["error"]["code"], -32_602, "{arguments}: {answer}");
        }
        for (of, argument, others) in [
            (
                json!({ "type": "ref/prompt", "name": "far_ask" }),
                "nothing",
                json!({}),
            ),
            (
                json!({ "type": "ref/prompt", "name": "far_ask" }),
                "tone",
                json!({ "nothing": "x" }),
            ),
            (
                json!({ "type": "ref/prompt", "name": "far_ask" }),
                "tone",
                json!({ "topic": 1 }),
            ),
            (
                json!({ "type": "ref/prompt", "name": "far_nothing" }),
                "tone",
                json!({}),
            ),
            (
                json!({ "type": "ref/resource", "uri": "docs:///start" }),
                "uri",
                json!({}),
            ),
            (
                json!({ "type": "ref/tool", "name": "far_echo" }),
                "text",
                json!({}),
            ),
        ] {
            let answer = client
                .ask(
                    "completion/complete",
                    json!({ "ref": of, "argument": { "name": argument, "value": "" }, "context": { "arguments": others } }),
                )
                .await;
            let code = &answer["error"]["code"];
            assert!(
                *code == -32_602 || *code == -32_002,
                "{of} {argument} {others}: {answer}"
            );
        }
    }
    assert!(far.asked_for("prompts/get").is_empty());
    assert!(far.asked_for("completion/complete").is_empty());
    close(gate).await;
}

#[tokio::test]
async fn res_07_no_uri_leads_out_of_the_place_that_a_template_gives_it() {
    let Offering { far, gate, key, .. } = offering(&["2025-06-18"]).await;
    let client = client(&gate, &key, MODERN).await;
    for name in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc",
        "a/b",
        "a%2Fb",
        "a%252fb",
        "a%5Cb",
        "%2e%2e%5c",
        "a%00",
        "a?x=1",
        "a#x",
        "",
    ] {
        let uri = format!("docs:///pages/{name}");
        let answer = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], -32_602, "{uri}: {answer}");
    }
    assert!(far.asked_for("resources/read").is_empty());
    close(gate).await;
}

#[tokio::test]
async fn rules_decide_about_prompts_and_resources_by_their_names_and_arguments() {
    let far = FarServer::start(&[MODERN]).await;
    offer(&far);
    let house = house(&far, "", &format!("{TOOL}{OFFERS}")).await;
    house.write(
        "policy/all.cedar",
        "permit (principal, action == Action::\"far_ask\", resource) when { context.arguments.topic == \"weather\" };\n\
         permit (principal, action == Action::\"far_page\", resource) when { context.arguments.name == \"open\" };\n",
    );
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = client(&gate, &key, MODERN).await;
    let resources = client.ask("resources/list", json!({})).await;
    assert_eq!(
        resources["result"]["resources"],
        json!([]),
        "no rule lets her read it"
    );
    let get = async |topic: &str| {
        client
            .ask(
                "prompts/get",
                json!({ "name": "far_ask", "arguments": { "topic": topic } }),
            )
            .await
    };
    assert!(get("weather").await["result"].is_object());
    assert_eq!(
        get("money").await["error"]["message"],
        "not permitted: no rule allows this call"
    );
    let read = async |uri: &str| client.ask("resources/read", json!({ "uri": uri })).await;
    assert!(read("docs:///pages/open").await["result"].is_object());
    assert!(read("docs:///pages/closed").await["error"].is_object());
    // What she may not use in any way reads as not there.
    assert_eq!(
        read("docs:///start").await["error"]["message"],
        "resource not found: `docs:///start`"
    );
    assert_eq!(far.asked_for("resources/read").len(), 1);
    assert_eq!(far.asked_for("prompts/get").len(), 1);
    close(gate).await;
}

#[tokio::test]
async fn a_prompt_or_a_resource_that_is_not_the_approved_one_is_held_before_it_is_used() {
    let changes: [(&str, Value); 3] = [
        (
            "prompts/list",
            json!({ "name": "ask", "description": "Asks, and sends it on.", "arguments": [{ "name": "topic" }] }),
        ),
        (
            "resources/list",
            json!({ "uri": "docs:///start", "name": "start", "mimeType": "text/html" }),
        ),
        (
            "resources/templates/list",
            json!({ "uriTemplate": "docs:///pages/{name}", "name": "page", "description": "x" }),
        ),
    ];
    for (method, changed) in changes {
        let Offering { far, gate, key, .. } = offering(&["2025-11-25"]).await;
        let client = client(&gate, &key, MODERN).await;
        far.has(method, vec![changed]);
        let (asked, params, member) = match method {
            "prompts/list" => (
                "prompts/get",
                json!({ "name": "far_ask", "arguments": { "topic": "x" } }),
                "prompts",
            ),
            "resources/list" => ("resources/read", json!({ "uri": "docs:///start" }), "resources"),
            _ => (
                "resources/read",
                json!({ "uri": "docs:///pages/a" }),
                "resourceTemplates",
            ),
        };
        // The first conversation of a caller lists before it asks.
        let answer = client.ask(asked, params).await;
        assert!(answer["error"].is_object(), "{method}: {answer}");
        assert!(far.asked_for(asked).is_empty(), "{method}");
        let listed = client.ask(method, json!({})).await;
        assert_eq!(listed["result"][member], json!([]), "{method}");
        close(gate).await;
    }
}

#[tokio::test]
async fn how_long_a_resource_is_and_when_it_changed_is_no_change_of_what_it_is() {
    let Offering { far, gate, key, .. } = offering(&["2025-11-25"]).await;
    far.has(
        "resources/list",
        vec![json!({
            "uri": "docs:///start", "name": "start", "mimeType": "text/plain", "size": 8, "vendor": { "a": 2, "b": 1 },
            "annotations": { "lastModified": "2026-01-01T00:00:00Z" },
        })],
    );
    // An empty `annotations` is not none: somebody said something.
    let client = client(&gate, &key, MODERN).await;
    let read = client
        .ask("resources/read", json!({ "uri": "docs:///start" }))
        .await;
    assert!(read["error"].is_object(), "{read}");
    far.has(
        "resources/list",
        vec![json!({
            "uri": "docs:///start", "name": "start", "mimeType": "text/plain", "size": 9, "vendor": { "a": 2, "b": 1 },
        })],
    );
    far.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/resources/list_changed" }));
    e2e::house::until("the resource is as it was", async || {
        let read = client
            .ask("resources/read", json!({ "uri": "docs:///start" }))
            .await;
        read["result"].is_object()
    })
    .await;
    close(gate).await;
}

#[tokio::test]
async fn d21_res_03_res_04_c9_errors_of_servers_have_the_code_of_the_reader_and_no_secret_in_them() {
    for far_revision in ["2025-11-25", MODERN] {
        let Offering { far, gate, key, .. } = offering(&[far_revision]).await;
        for revision in ["2025-06-18", MODERN] {
            let client = client(&gate, &key, revision).await;
            let missing = if revision == MODERN { -32_602 } else { -32_002 };
            for (said, expected) in [
                (-32_002, missing),
                (-32_602, -32_602),
                (-32_603, -32_603),
                (-32_050, -32_603),
                (7, -32_603),
            ] {
                far.reply("resources/read", move |asked| {
                    error(asked, said, "the server's words")
                });
                let answer = client
                    .ask("resources/read", json!({ "uri": "docs:///start" }))
                    .await;
                assert_eq!(
                    answer["error"]["code"], expected,
                    "{said} of {far_revision} to {revision}: {answer}"
                );
                if said == -32_002 {
                    let data = json!({ "uri": "docs:///start" });
                    assert_eq!(answer["error"]["data"], data, "{revision}");
                }
            }
            // A server of the newer era says it with the code of parameters, and the URI.
            far.reply("resources/read", |asked| {
                let data = json!({ "uri": "docs:///start" });
                let error = json!({ "code": -32_602, "message": "Resource not found", "data": data });
                e2e::service::json(200, &json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }))
            });
            let answer = client
                .ask("resources/read", json!({ "uri": "docs:///start" }))
                .await;
            assert_eq!(answer["error"]["code"], missing, "{far_revision} to {revision}");
            assert_eq!(answer["error"]["data"]["uri"], "docs:///start");
            far.reply("prompts/get", |asked| error(asked, -32_602, "no such topic"));
            let answer = client
                .ask(
                    "prompts/get",
                    json!({ "name": "far_ask", "arguments": { "topic": "x" } }),
                )
                .await;
            assert_eq!(
                answer["error"],
                json!({ "code": -32_602, "message": "no such topic" })
            );
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn a_result_without_the_form_of_its_method_is_withheld_and_so_is_one_that_is_too_long() {
    let far = FarServer::start(&[MODERN]).await;
    offer(&far);
    let house = house(
        &far,
        "",
        &format!("{TOOL}{OFFERS}[limits]\nresult_bytes_max = 2000\n"),
    )
    .await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = client(&gate, &key, MODERN).await;
    for bad in [
        json!({}),
        json!({ "contents": [{ "text": "x" }] }),
        json!({ "contents": [{ "uri": "docs:///start", "text": "x".repeat(2_000) }] }),
    ] {
        far.reply("resources/read", move |asked| result(asked, bad.clone()));
        let answer = client
            .ask("resources/read", json!({ "uri": "docs:///start" }))
            .await;
        assert_eq!(answer["error"]["code"], -32_603, "{answer}");
    }
    far.reply("resources/read", |asked| {
        result(
            asked,
            json!({ "contents": [{ "uri": "docs:///start", "text": "x".repeat(1_900) }] }),
        )
    });
    let answer = client
        .ask("resources/read", json!({ "uri": "docs:///start" }))
        .await;
    assert!(answer["result"].is_object(), "{answer}");
    close(gate).await;
}

#[tokio::test]
async fn res_01_cmp_01_no_more_is_said_to_be_there_than_there_is_for_this_caller() {
    let Offering { house, gate, key, .. } = offering(&[MODERN]).await;
    let discover = async |gate: &Gate| {
        let answer = Mcp::modern(&gate.url, &key)
            .ask("server/discover", json!({}))
            .await;
        answer["result"]["capabilities"].clone()
    };
    let changes = json!({ "listChanged": true });
    let all = json!({ "tools": changes, "prompts": changes, "resources": changes, "completions": {} });
    assert_eq!(discover(&gate).await, all);
    close(gate).await;
    house.write(
        "policy/all.cedar",
        "permit (principal, action == Action::\"far_start\", resource);\n",
    );
    let gate = house.serve().await;
    assert_eq!(
        discover(&gate).await,
        json!({ "tools": changes, "resources": changes })
    );
    close(gate).await;
}

#[tokio::test]
async fn a_uri_that_two_servers_have_is_read_on_the_endpoint_of_one_of_them_only() {
    let (one, other) = (
        FarServer::start(&[MODERN]).await,
        FarServer::start(&[MODERN]).await,
    );
    offer(&one);
    offer(&other);
    let second = other.config("").replace("upstream.far", "upstream.also");
    let house = unapproved(
        &one,
        "",
        &format!(
            "{TOOL}{OFFERS}{second}{}",
            OFFERS.replace("upstream.far", "upstream.also")
        ),
    );
    approve(&house).await;
    let approved = house.run(["pins", "approve", "also", "--all"]).await;
    assert!(approved.status.success(), "{approved:?}");
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for uri in ["docs:///start", "docs:///pages/a"] {
        let read = async |url: &str| {
            Mcp::modern(url, &key)
                .ask("resources/read", json!({ "uri": uri }))
                .await
        };
        let answer = read(&gate.url).await;
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
        assert!(one.asked_for("resources/read").is_empty() && other.asked_for("resources/read").is_empty());
        assert!(read(&format!("{}/also", gate.url)).await["result"].is_object());
        assert_eq!(other.asked_for("resources/read").len(), 1);
        other.forget_asked();
    }
    close(gate).await;
}

#[tokio::test]
async fn on_the_endpoint_of_one_server_prompts_have_its_own_names() {
    let Offering { gate, key, .. } = offering(&[MODERN]).await;
    let client = Mcp::modern(&format!("{}/far", gate.url), &key);
    let listed = client.ask("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"][0]["name"], "ask");
    let got = client
        .ask(
            "prompts/get",
            json!({ "name": "ask", "arguments": { "topic": "x" } }),
        )
        .await;
    assert!(got["result"].is_object(), "{got}");
    let completed = client
        .ask(
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "ask" }, "argument": { "name": "tone", "value": "v" } }),
        )
        .await;
    assert!(completed["result"].is_object(), "{completed}");
    close(gate).await;
}

#[tokio::test]
async fn a_server_that_repeats_our_credential_is_withheld_in_everything_that_it_gives() {
    use base64::Engine as _;
    const SECRET: &str = "far-side-canary-7a2c9e";
    let far = FarServer::start(&[MODERN]).await;
    offer(&far);
    let line = "credential = { bearer = \"env:FAR_TOKEN\" }";
    let house = unapproved(&far, line, &format!("{TOOL}{OFFERS}")).with_variable("FAR_TOKEN", SECRET);
    approve(&house).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let client = Mcp::modern(&gate.url, &key);
    let read = ("resources/read", json!({ "uri": "docs:///start" }));
    let get = (
        "prompts/get",
        json!({ "name": "far_ask", "arguments": { "topic": "x" } }),
    );
    let complete = (
        "completion/complete",
        json!({ "ref": { "type": "ref/prompt", "name": "far_ask" }, "argument": { "name": "tone", "value": "v" } }),
    );
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("xx{SECRET}yy"));
    let message = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    for ((method, params), leak) in [
        (
            &read,
            json!({ "contents": [{ "uri": "docs:///start", "text": format!("a {SECRET}") }] }),
        ),
        (
            &read,
            json!({ "contents": [{ "uri": "docs:///start", "blob": encoded }] }),
        ),
        (
            &read,
            json!({ "contents": [{ "uri": format!("docs:///{SECRET}"), "text": "a" }] }),
        ),
        (
            &read,
            json!({ "contents": [], "_meta": { "com.example/x": SECRET } }),
        ),
        (&read, json!({ "contents": [], "vendor": { SECRET: 1 } })),
        (&get, message(json!({ "type": "text", "text": SECRET }))),
        (&get, json!({ "messages": [], "description": SECRET })),
        (&complete, json!({ "completion": { "values": [SECRET] } })),
    ] {
        let answer = leak.clone();
        far.reply(method, move |asked| result(asked, answer.clone()));
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -32_603, "{leak}: {answer}");
        assert!(
            !answer.to_string().contains(SECRET) && !answer.to_string().contains(&encoded),
            "{answer}"
        );
    }
    for (method, params) in [&read, &get, &complete] {
        far.reply(method, |asked| error(asked, -32_000, SECRET));
        let answer = client.ask(method, params.clone()).await;
        assert!(
            answer["error"].is_object() && !answer.to_string().contains(SECRET),
            "{answer}"
        );
    }
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(SECRET), "{log}");
    let ledger = house.run(["audit", "export"]).await;
    assert!(!e2e::house::text(&ledger.stdout).contains(SECRET));
}
