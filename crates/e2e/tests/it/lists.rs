//! `tools/list` of the built binary: pages, order, who sees what, how long it may be kept, and what each revision is told of
//! a tool. Every answer is held against its revision's schema.

use e2e::client::{LEGACY, MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan};
use e2e::house::{Gate, close};
use e2e::schema::{assert_answer, assert_message};
use e2e::service::json as answer;
use serde_json::{Value, json};

/// Seven tools that look, in an order that is not that of their names.
fn seven() -> String {
    ["mid", "Zed", "a_b", "zoo", "a", "aB", "last"]
        .map(|name| format!("[upstream.desk.tool.{name}]\noperation = \"getThing\"\nclass = \"read\"\n"))
        .concat()
}

/// A client of each revision.
async fn everybody(desk: &Desk, gate: &Gate, caller: &str) -> Vec<Mcp> {
    let mut clients = vec![desk.modern(gate, caller)];
    for revision in LEGACY {
        clients.push(desk.legacy(gate, caller, revision).await);
    }
    clients
}

/// The pages of a list, from a place on.
async fn pages(client: &Mcp, mut cursor: Option<String>) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor":cursor}));
        let page = client.ask("tools/list", params).await["result"].clone();
        cursor = page
            .get("nextCursor")
            .map(|cursor| cursor.as_str().unwrap().to_owned());
        pages.push(page);
        if cursor.is_none() {
            return pages;
        }
    }
}

fn names(page: &Value) -> Vec<&str> {
    let tools = page["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

// === pages ===

#[tokio::test]
async fn pag_01_tool_02_all_pages_together_hold_each_tool_once_and_in_one_order() {
    let expected = [
        "desk_Zed",
        "desk_a",
        "desk_aB",
        "desk_a_b",
        "desk_last",
        "desk_mid",
        "desk_zoo",
    ];
    // A last page that is full is the last one all the same.
    for (per_page, sizes) in [
        (1, vec![1; 7]),
        (2, vec![2, 2, 2, 1]),
        (6, vec![6, 1]),
        (7, vec![7]),
        (8, vec![7]),
    ] {
        let (desk, gate) = Plan::new()
            .tools(seven())
            .limit("tools_per_page", per_page)
            .with("bob")
            .serve()
            .await;
        let mut clients = everybody(&desk, &gate, "ada").await;
        // Another connection, another caller, and the same one again after a call: the list is the same.
        clients.push(desk.modern(&gate, "bob"));
        assert!(clients[0].call("desk_a", json!({"id":"x"})).await["structuredContent"].is_object());
        clients.push(clients[0].clone());
        for client in &clients {
            let pages = pages(client, None).await;
            let found: Vec<usize> = pages.iter().map(|page| names(page).len()).collect();
            assert_eq!(found, sizes, "{per_page} {}", client.revision);
            let all: Vec<&str> = pages.iter().flat_map(names).collect();
            assert_eq!(all, expected, "{per_page} {}", client.revision);
        }
        close(gate).await;
    }
}

#[tokio::test]
async fn pag_03_a_cursor_that_was_not_given_out_is_an_error_and_never_the_first_page() {
    let (desk, gate) = Plan::new()
        .tools(seven())
        .limit("tools_per_page", 3)
        .with("bob")
        .serve()
        .await;
    for client in everybody(&desk, &gate, "ada").await {
        let first = client.ask("tools/list", json!({})).await;
        let cursor = first["result"]["nextCursor"].as_str().unwrap().to_owned();
        let cut = &cursor[..cursor.len() - 1];
        let (longer, doubled) = (format!("{cursor}x"), format!("{cursor}{cursor}"));
        let huge = "A".repeat(10_000);
        // PAG-02: an empty one is a cursor like any other.
        for cursor in [
            "", " ", "0", "x", "desk_a", "!", "ä", cut, &longer, &doubled, &huge,
        ] {
            let message = client.request(1, "tools/list", json!({"cursor":cursor}));
            let answer = client.post(&message).await;
            // One byte less can still be a place; whatever it is, it is none that skips the form.
            if cursor == cut && answer.json().get("result").is_some() {
                continue;
            }
            assert_message(&client.revision, &answer.json());
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (200, Some(-32602)),
                "{} {cursor}",
                client.revision
            );
        }
        for cursor in [json!(null), json!(1), json!(["x"]), json!({})] {
            let message = client.request(1, "tools/list", json!({"cursor":cursor}));
            let answer = client.post(&message).await;
            assert_message(&client.revision, &answer.json());
            assert_eq!(answer.code(), Some(-32602), "{} {cursor}", client.revision);
        }
        // CACHE-07: a cursor is a place and no right: in somebody else's hands it goes on in his own list.
        let bob = desk.modern(&gate, "bob");
        let rest: Vec<Value> = pages(&bob, Some(cursor.clone())).await;
        let rest: Vec<&str> = rest.iter().flat_map(names).collect();
        assert_eq!(rest, ["desk_a_b", "desk_last", "desk_mid", "desk_zoo"]);
    }
    close(gate).await;
}

// === who sees what ===

#[tokio::test]
async fn tool_01_tool_02_what_a_caller_sees_is_what_the_caller_may_call() {
    let (desk, gate) = Plan::new()
        .limit("tools_per_page", 1)
        .with("bob")
        .with("cleo")
        .with("dan")
        .serve()
        .await;
    let arguments = |name: &str| match name {
        "desk_make" => json!({"name":"n"}),
        _ => json!({"id":"x"}),
    };
    for (caller, seen) in [
        ("ada", &["desk_look"][..]),
        ("bob", &["desk_look"]),
        ("cleo", &["desk_drop", "desk_look", "desk_make"]),
        ("dan", &[]),
    ] {
        for client in everybody(&desk, &gate, caller).await {
            // Pages are those of the caller's own list: nothing of it tells that there is more.
            let pages = pages(&client, None).await;
            assert_eq!(pages.len(), seen.len().max(1), "{caller} {}", client.revision);
            let found: Vec<&str> = pages.iter().flat_map(names).collect();
            assert_eq!(found, seen, "{caller} {}", client.revision);
            for name in ["desk_drop", "desk_look", "desk_make", "desk_getTags", "nothing"] {
                let before = desk.service.count();
                let result = client.call(name, arguments(name)).await;
                let went = desk.service.count() - before;
                let (code, text) = (&result["error"]["code"], &result["error"]["message"]);
                if seen.contains(&name) {
                    assert!(
                        result["content"].is_array() && result["isError"] != true,
                        "{caller}: {result}"
                    );
                    assert_eq!(went, 1, "{caller} {name}");
                } else {
                    // The same words for what is not there and for what is not for this caller.
                    let expected = json!(format!("unknown tool `{name}`"));
                    assert_eq!((code, text), (&json!(-32602), &expected), "{caller}");
                    assert_eq!(went, 0, "{caller} {name}");
                }
            }
        }
    }
    close(gate).await;
}

// === how long it may be kept ===

#[tokio::test]
async fn cache_01_cache_05_d20_hints_stand_on_what_may_be_kept_and_on_nothing_else() {
    let (desk, gate) = Plan::new()
        .tools(seven())
        .limit("tools_per_page", 3)
        .serve()
        .await;
    let modern = desk.modern(&gate, "ada");
    let mut kept = pages(&modern, None).await;
    assert_eq!(kept.len(), 3);
    kept.push(modern.ask("server/discover", json!({})).await["result"].clone());
    for result in &kept {
        assert!(result["ttlMs"].is_u64(), "{result}");
        // Another caller may see another list, so no cache may share it (CACHE-04).
        assert_eq!(result["cacheScope"], "private", "{result}");
    }
    let called = modern.call("desk_a", json!({"id":"x"})).await;
    let failed = modern.call("desk_a", json!({})).await;
    assert_eq!(failed["isError"], true);
    let mut bare = vec![called, failed];
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        bare.extend(pages(&client, None).await);
    }
    for result in bare {
        assert!(
            result.get("ttlMs").is_none() && result.get("cacheScope").is_none(),
            "{result}"
        );
    }
    close(gate).await;
}

// === what a tool is told to be ===

const DESCRIBED: &str = r#"
[upstream.desk.tool.one]
operation = "getThing"
title = "One thing"
description = "Gives one thing of the desk."
class = "read"

[upstream.desk.tool.tags]
operation = "getTags"
title = "Tags"
class = "sensitive-read"

[upstream.desk.tool.make]
operation = "makeThing"
class = "write"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }

[upstream.desk.tool.drop]
operation = "dropThing"
title = "Drop it"
class = "destructive"
approval.mutations = { by = "the tests", because = "nothing is real here", until = "2099-12-31", for = ["everyone"] }
consent = { waived_by = "the tests", because = "nothing is real here", until = "2099-12-31" }
"#;

#[tokio::test]
async fn life_l06_tool_03_tool_05_tool_07_a_definition_holds_what_its_revision_knows_and_no_more() {
    let (desk, gate) = Plan::new().tools(DESCRIBED).with("cleo").serve().await;
    for client in everybody(&desk, &gate, "cleo").await {
        let revision = client.revision.as_str();
        let list = client.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 4);
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            assert!(
                name.len() <= 128
                    && name
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)),
                "TOOL-03: {name}"
            );
            assert!(name.starts_with("desk_"), "TOOL-04: {name}");
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "TOOL-05");
            // BASE-21: it declares no other dialect, and it is a schema of the one that is meant then.
            assert!(schema.get("$schema").is_none() && jsonschema::draft202012::new(schema).is_ok());
            // HM-17, HM-18, HM-22: the document asks for an argument in a header. That stays inside, so that no client
            // sends one and none is missed.
            assert!(!tool.to_string().contains("x-mcp-header"), "{tool}");
            // What is no object has no schema to promise in most revisions, so none is promised in any (TOOL-07, D22).
            let has_output = name != "desk_tags" && revision >= "2025-06-18";
            let mut expected = vec!["name"];
            if revision >= "2025-06-18" {
                expected.push("title");
            }
            expected.extend(["description", "inputSchema"]);
            if has_output {
                expected.push("outputSchema");
            }
            if revision >= "2025-03-26" {
                expected.push("annotations");
            }
            let keys: Vec<&String> = tool.as_object().unwrap().keys().collect();
            assert_eq!(keys, expected, "{revision} {name}");
            // TOOL-10: where definitions have no title, the hints carry it.
            assert_eq!(
                tool["annotations"].get("title").is_some(),
                revision == "2025-03-26",
                "{revision} {name}"
            );
        }
        let one = tools.iter().find(|tool| tool["name"] == "desk_one").unwrap();
        assert_eq!(one["description"], "Gives one thing of the desk.");
        if revision >= "2025-06-18" {
            assert_eq!(one["title"], "One thing");
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn tool_09_hints_come_from_the_class_that_a_person_declared() {
    // The verbs of the document would say otherwise: a GET that destroys, a DELETE that only reads.
    let tools = DESCRIBED
        .replace("operation = \"getThing\"", "operation = \"swap\"")
        .replace("operation = \"dropThing\"", "operation = \"getThing\"")
        .replace("operation = \"swap\"", "operation = \"dropThing\"");
    let (desk, gate) = Plan::new().tools(tools).with("cleo").serve().await;
    for client in everybody(&desk, &gate, "cleo").await {
        let list = client.ask("tools/list", json!({})).await;
        for tool in list["result"]["tools"].as_array().unwrap() {
            let hints = &tool["annotations"];
            if client.revision == "2024-11-05" {
                assert!(hints.is_null());
                continue;
            }
            let name = tool["name"].as_str().unwrap();
            let (read_only, destructive) = match name {
                "desk_one" | "desk_tags" => (true, false),
                "desk_make" => (false, false),
                "desk_drop" => (false, true),
                other => panic!("{other}"),
            };
            assert_eq!(hints["readOnlyHint"], read_only, "{name}");
            assert_eq!(hints["destructiveHint"], destructive, "{name}");
            // All four are there, so that no client falls back on a default of its own.
            assert!(hints["idempotentHint"].is_boolean() && hints["openWorldHint"].is_boolean());
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn tool_06_tool_07_d22_a_result_fits_the_schema_that_was_listed_and_reads_as_text_everywhere() {
    let (desk, gate) = Plan::new().tools(DESCRIBED).with("cleo").serve().await;
    desk.service.script(|arrived| match arrived.target.as_str() {
        "/things/x/tags" => answer(200, &json!(["red", "1"])),
        _ => answer(200, &json!({"id":"x"})),
    });
    for client in everybody(&desk, &gate, "cleo").await {
        let revision = client.revision.as_str();
        let list = client.ask("tools/list", json!({})).await;
        for (name, arguments, gives) in [
            ("desk_one", json!({"id":"x"}), json!({"id":"x"})),
            ("desk_tags", json!({"id":"x"}), json!(["red", "1"])),
            ("desk_make", json!({"name":"x"}), json!({"id":"x"})),
        ] {
            let tools = list["result"]["tools"].as_array().unwrap();
            let listed = tools.iter().find(|tool| tool["name"] == name).unwrap();
            let result = client.call(name, arguments).await;
            assert_ne!(result["isError"], true, "{result}");
            match listed.get("outputSchema") {
                Some(schema) => {
                    let validator = jsonschema::validator_for(schema).unwrap();
                    assert!(
                        validator.is_valid(&result["structuredContent"]),
                        "{revision} {result}"
                    );
                    assert_eq!(result["structuredContent"], gives);
                }
                None => assert!(result.get("structuredContent").is_none(), "{revision} {result}"),
            }
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), gives, "{revision}");
        }
    }
    close(gate).await;
}

// === on a pipe ===

#[tokio::test]
async fn pag_01_on_a_pipe_the_pages_are_the_same() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let (_desk, mut pipe) = Plan::new()
            .tools(seven())
            .limit("tools_per_page", 3)
            .stdio()
            .await;
        if revision != MODERN {
            assert_answer(revision, "initialize", &pipe.ask(&opening(revision)).await);
        }
        let client = Mcp {
            revision: revision.to_owned(),
            ..Mcp::modern("", "")
        };
        let (mut params, mut all) = (json!({}), Vec::new());
        loop {
            let page = pipe.ask(&client.request(1, "tools/list", params)).await;
            assert_answer(revision, "tools/list", &page);
            all.extend(names(&page["result"]).into_iter().map(str::to_owned));
            match page["result"].get("nextCursor") {
                None => break,
                Some(cursor) => params = json!({"cursor":cursor}),
            }
        }
        assert_eq!(all.len(), 7, "{revision}");
        assert!(all.is_sorted(), "{all:?}");
        let refused = pipe
            .ask(&client.request(1, "tools/list", json!({"cursor":"x"})))
            .await;
        assert_message(revision, &refused);
        assert_eq!(refused["error"]["code"], -32602);
        assert_eq!(pipe.close().await.0, Some(0));
    }
}
