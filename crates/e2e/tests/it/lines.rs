//! Standard input and output of the built binary: one message a line, both eras on one pipe, nothing else on the output, an
//! orderly end. Every line that comes is held against its revision's schema.

use std::process::Stdio;
use std::time::Duration;

use e2e::client::{LEGACY, MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan};
use e2e::house::{PATIENCE, Pipe, text};
use e2e::schema::{assert_answer, assert_message};
use e2e::service::json as answer;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// A client that only makes messages.
fn speaker(revision: &str) -> Mcp {
    Mcp {
        revision: revision.to_owned(),
        ..Mcp::modern("", "")
    }
}

fn look(revision: &str, id: impl Into<Value>) -> Value {
    let params = json!({"name":"desk_look","arguments":{"id":"a"}});
    speaker(revision).request(id, "tools/call", params)
}

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc":"2.0","id":id.into(),"method":"ping"})
}

/// Opens a conversation in a revision with sessions.
async fn open(pipe: &mut Pipe, revision: &str) {
    let opened = pipe.ask(&opening(revision)).await;
    assert_answer(revision, "initialize", &opened);
    assert_eq!(opened["result"]["protocolVersion"], revision);
    pipe.send(&json!({"jsonrpc":"2.0","method":"notifications/initialized"}).to_string())
        .await;
}

/// Reads the next line, which is an error.
async fn error(pipe: &mut Pipe, revision: &str, id: Value, code: i64) {
    let message = pipe.message().await;
    assert_message(revision, &message);
    assert_eq!(
        (
            message.get("id").unwrap_or(&Value::Null),
            &message["error"]["code"]
        ),
        (&id, &json!(code)),
        "{message}"
    );
}

async fn end(pipe: Pipe) -> String {
    let (code, log) = pipe.close().await;
    assert_eq!(code, Some(0), "{log}");
    log
}

/// State and refusal of every outcome, sorted.
async fn outcomes(desk: &Desk) -> Vec<String> {
    let ledger = desk.house.ledger().await;
    let mut found: Vec<String> = ledger
        .of_kind("outcome")
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

/// The ledger is whole: an export of it is verified by the command itself.
async fn verify(desk: &Desk) {
    let export = desk.house.run(["audit", "export"]).await;
    desk.house.write("export.jsonl", &export.stdout);
    let verified = desk.house.run(["audit", "verify", "export.jsonl"]).await;
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

// === both eras ===

#[tokio::test]
async fn life_d01_base_17_both_eras_are_spoken_on_one_pipe_whichever_comes_first() {
    for revision in LEGACY {
        let (desk, mut pipe) = Plan::new().stdio().await;
        let modern = speaker(MODERN);
        let discover = modern.request(1, "server/discover", json!({}));
        let list = modern.request("l", "tools/list", json!({}));
        assert_answer(MODERN, "server/discover", &pipe.ask(&discover).await);
        assert_answer(MODERN, "tools/list", &pipe.ask(&list).await);
        // A request of the stateless era opens nothing for the other one.
        pipe.send(&look(revision, 2).to_string()).await;
        error(&mut pipe, "2025-11-25", json!(2), -32600).await;
        open(&mut pipe, revision).await;
        for _ in 0..2 {
            let called = pipe.ask(&look(revision, 3)).await;
            assert_answer(revision, "tools/call", &called);
            assert!(called["result"].get("resultType").is_none(), "BASE-11, D7");
            let called = pipe.ask(&look(MODERN, 3)).await;
            assert_answer(MODERN, "tools/call", &called);
            assert_eq!(called["result"]["resultType"], "complete");
        }
        // What a request says of itself is not remembered for the next one.
        let bare = json!({"jsonrpc":"2.0","id":4,"method":"server/discover"});
        pipe.send(&bare.to_string()).await;
        error(&mut pipe, MODERN, json!(4), -32602).await;
        assert_eq!(desk.service.count(), 4);
        end(pipe).await;
    }
}

#[tokio::test]
async fn life_l01_life_l02_nothing_but_a_ping_comes_before_initialize() {
    let (desk, mut pipe) = Plan::new().stdio().await;
    let first = "2025-11-25";
    assert_answer(first, "ping", &pipe.ask(&ping(1)).await);
    for message in [
        look(first, 2),
        json!({"jsonrpc":"2.0","id":2,"method":"tools/list"}),
        json!({"jsonrpc":"2.0","id":2,"method":"resources/list"}),
    ] {
        pipe.send(&message.to_string()).await;
        error(&mut pipe, first, json!(2), -32600).await;
    }
    // Without an id it is a notification, and without an answer.
    let mut silent = look(first, 0);
    silent.as_object_mut().unwrap().remove("id");
    pipe.send(&silent.to_string()).await;
    assert_eq!(pipe.ask(&ping("after")).await["id"], "after");
    assert_eq!(desk.service.count(), 0, "LIFE-D10: nothing of it was carried out");
    end(pipe).await;
}

#[tokio::test]
async fn d1_d2_life_d02_life_d03_life_l04_initialize_is_the_handshake_only_where_it_exists() {
    let modern = speaker(MODERN);
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        (MODERN, "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let (_desk, mut pipe) = Plan::new().stdio().await;
        for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
            let message = modern.request(1, method, json!({}));
            pipe.send(&message.to_string()).await;
            error(&mut pipe, MODERN, json!(1), -32601).await;
        }
        let opened = pipe.ask(&opening(asked)).await;
        assert_answer(agreed, "initialize", &opened);
        assert_eq!(opened["result"]["protocolVersion"], agreed, "{asked}");
        pipe.send(&opening(asked).to_string()).await;
        error(&mut pipe, agreed, json!(0), -32600).await;
        end(pipe).await;
    }
    let (_desk, mut pipe) = Plan::new().stdio().await;
    let version = "io.modelcontextprotocol/protocolVersion";
    let mut message = modern.request(1, "tools/list", json!({}));
    for (claim, code) in [("2031-01-01", -32022), ("2025-11-25", -32022), ("", -32022)] {
        message["params"]["_meta"][version] = json!(claim);
        let refused = pipe.ask(&message).await;
        assert_message(MODERN, &refused);
        assert_eq!(refused["error"]["code"], code, "{claim}");
        assert_eq!(refused["error"]["data"]["requested"], claim);
        let supported = refused["error"]["data"]["supported"].as_array().unwrap();
        assert!(supported.contains(&json!(MODERN)), "LIFE-M02, LIFE-M04");
    }
    message["params"]["_meta"][version] = json!(7);
    pipe.send(&message.to_string()).await;
    error(&mut pipe, MODERN, json!(1), -32602).await;
    message["params"]["_meta"] = json!({version:MODERN});
    pipe.send(&message.to_string()).await;
    error(&mut pipe, MODERN, json!(1), -32602).await;
    end(pipe).await;
}

#[tokio::test]
async fn base_11_life_l09_every_method_is_answered_in_the_form_of_its_revision() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let (_desk, mut pipe) = Plan::new().stdio().await;
        let client = speaker(revision);
        let first = match revision {
            MODERN => "server/discover",
            _ => {
                open(&mut pipe, revision).await;
                "ping"
            }
        };
        for id in [
            json!(0),
            json!("0"),
            json!(-5),
            json!(""),
            json!(9_007_199_254_740_991_i64),
        ] {
            for method in [first, "tools/list"] {
                let answer = pipe.ask(&client.request(id.clone(), method, json!({}))).await;
                assert_answer(revision, method, &answer);
                assert_eq!(answer["id"], id, "BASE-01, HOP-01");
            }
            let answer = pipe.ask(&look(revision, id.clone())).await;
            assert_answer(revision, "tools/call", &answer);
            assert_eq!(answer["id"], id);
            // What could not be done comes back with the id too.
            let unknown = client.request(id.clone(), "prompts/list", json!({}));
            pipe.send(&unknown.to_string()).await;
            error(&mut pipe, revision, id.clone(), -32601).await;
            let params = json!({"name":"nothing","arguments":{}});
            let unknown = client.request(id.clone(), "tools/call", params);
            pipe.send(&unknown.to_string()).await;
            error(&mut pipe, revision, id.clone(), -32602).await;
        }
        end(pipe).await;
    }
}

// === lines ===

#[tokio::test]
async fn stdio_01_an_answer_is_one_line_whatever_is_in_it() {
    let (desk, mut pipe) = Plan::new().stdio().await;
    let odd = "one\ntwo\r\nthree\u{2028}four\u{0000}\u{feff}\"\\";
    desk.service.script(move |_| answer(200, &json!({"id":odd})));
    let mut read = pipe.ask(&look(MODERN, "a\nb")).await;
    assert_answer(MODERN, "tools/call", &read);
    assert_eq!(read["result"]["structuredContent"]["id"], odd);
    assert_eq!(read["id"], "a\nb");
    // The line of a caller may end as on another system, have blanks around it, or be empty.
    let list = speaker(MODERN).request(1, "tools/list", json!({}));
    for line in [
        format!("{list}\r"),
        format!(" \t{list} "),
        format!("\n\r\n  \n{list}"),
    ] {
        pipe.send(&line).await;
        read = pipe.message().await;
        assert_answer(MODERN, "tools/list", &read);
    }
    // One that is written in pieces is one line.
    let whole = list.to_string();
    let (left, right) = whole.split_at(20);
    let input = pipe.input.as_mut().unwrap();
    input.write_all(left.as_bytes()).await.unwrap();
    input.flush().await.unwrap();
    pipe.send(right).await;
    assert_answer(MODERN, "tools/list", &pipe.message().await);
    // And two lines that are written at once are two.
    pipe.send(&format!("{list}\n{list}")).await;
    for _ in 0..2 {
        assert_answer(MODERN, "tools/list", &pipe.message().await);
    }
    end(pipe).await;
}

#[tokio::test]
async fn base_06_stdio_01_what_is_no_message_is_told_where_that_can_be_told_and_the_next_line_works() {
    for revision in [
        Some("2024-11-05"),
        Some("2025-03-26"),
        Some("2025-06-18"),
        Some("2025-11-25"),
        None,
    ] {
        let (desk, mut pipe) = Plan::new().limit("json_depth_max", 8).stdio().await;
        let spoken = revision.unwrap_or(MODERN);
        if let Some(revision) = revision {
            open(&mut pipe, revision).await;
        }
        let list = speaker(spoken).request("next", "tools/list", json!({}));
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}{}}}",
            "[".repeat(9),
            "]".repeat(9)
        );
        let bytes: [(&[u8], i64); 11] = [
            (b"{", -32700),
            (b"x", -32700),
            (b"\xff\xfe", -32700),
            (b"\xef\xbb\xbf{}", -32700),
            (b"{}{}", -32700),
            (b"\"text\"", -32600),
            (b"7", -32600),
            (b"null", -32600),
            (b"{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
        ];
        for (line, code) in bytes {
            let input = pipe.input.as_mut().unwrap();
            input.write_all(line).await.unwrap();
            pipe.send("").await;
            // Three revisions have no error without an id, so nothing is said there; it is never an answer to null.
            if spoken >= "2025-11-25" {
                error(&mut pipe, spoken, Value::Null, code).await;
            }
            assert_eq!(pipe.ask(&list).await["id"], "next", "{spoken} {line:?}");
        }
        // Where the id can be read, everybody is told.
        let with_id = [
            deep.as_str(),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1]}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"desk_look\",\"arguments\":{\"id\":\"a\",\"id\":\"b\"}}}",
        ];
        for line in with_id {
            pipe.send(line).await;
            pipe.send(&list.to_string()).await;
            let mut message = pipe.message().await;
            if message["id"] != "next" {
                assert_message(spoken, &message);
                assert!(message["error"]["code"].is_i64(), "{spoken} {line} {message}");
                message = pipe.message().await;
            } else {
                assert!(spoken < "2025-11-25", "{line} is not told of");
            }
            assert_eq!(message["id"], "next", "{spoken} {line}");
        }
        assert_eq!(desk.service.count(), 0);
        end(pipe).await;
    }
}

#[tokio::test]
async fn a_line_passes_at_its_limit_and_one_byte_more_is_an_error_after_which_the_next_line_works() {
    let max = 2_000;
    for revision in [Some("2025-06-18"), Some("2025-11-25"), None] {
        let (_desk, mut pipe) = Plan::new().limit("body_bytes_max", max).stdio().await;
        let spoken = revision.unwrap_or(MODERN);
        if let Some(revision) = revision {
            open(&mut pipe, revision).await;
        }
        let list = speaker(spoken).request(1, "tools/list", json!({"pad":""}));
        let line = |length: usize| {
            let short = list.to_string();
            let pad = "x".repeat(length - short.len());
            short.replace("\"pad\":\"\"", &format!("\"pad\":\"{pad}\""))
        };
        assert_eq!(line(max).len(), max);
        pipe.send(&line(max)).await;
        assert_answer(spoken, "tools/list", &pipe.message().await);
        for length in [max + 1, max * 100] {
            pipe.send(&line(length)).await;
            if spoken >= "2025-11-25" {
                error(&mut pipe, spoken, Value::Null, -32600).await;
            }
            pipe.send(&line(max)).await;
            assert_answer(spoken, "tools/list", &pipe.message().await);
        }
        let log = end(pipe).await;
        assert!(log.contains("body_bytes_max"), "the operator hears of it: {log}");
    }
}

#[tokio::test]
async fn what_is_answered_at_once_is_answered_in_the_order_of_the_lines() {
    let (_desk, mut pipe) = Plan::new().stdio().await;
    let mut input = pipe.input.take().unwrap();
    let count = 20_000;
    // More than all buffers between the two hold: whoever writes without reading is held back, and loses nothing.
    let mut writing = tokio::spawn(async move {
        let list = speaker(MODERN).request(0, "server/discover", json!({}));
        for number in 0..count {
            let mut message = list.clone();
            message["id"] = json!(number);
            let line = format!("{message}\n");
            input.write_all(line.as_bytes()).await.unwrap();
        }
        input.flush().await.unwrap();
    });
    let held_back = tokio::time::timeout(Duration::from_millis(300), &mut writing).await;
    assert!(
        held_back.is_err(),
        "the answers of {count} requests are held in memory"
    );
    for number in 0..count {
        let message = pipe.message().await;
        assert_eq!(message["id"], number);
        if number % 1_000 == 0 {
            assert_answer(MODERN, "server/discover", &message);
        }
    }
    writing.await.unwrap();
    assert!(pipe.line().await.is_none());
    end(pipe).await;
}

#[tokio::test]
async fn a_slow_call_holds_nobody_up_and_is_answered_when_it_ends() {
    let (desk, mut pipe) = Plan::new().stdio().await;
    open(&mut pipe, "2025-06-18").await;
    desk.service.hold();
    pipe.send(&look("2025-06-18", "slow").to_string()).await;
    desk.service.until(1).await;
    for number in 0..3 {
        assert_eq!(pipe.ask(&ping(number)).await["id"], number);
    }
    desk.service.let_go();
    let answer = pipe.message().await;
    assert_answer("2025-06-18", "tools/call", &answer);
    assert_eq!(answer["id"], "slow");
    end(pipe).await;
}

// === batches ===

#[tokio::test]
async fn d23_base_07_base_09_base_10_a_batch_is_one_line_in_one_revision_and_an_error_in_all_others() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"]
        .into_iter()
        .map(Some)
        .chain([None])
    {
        let (desk, mut pipe) = Plan::new().stdio().await;
        let spoken = revision.unwrap_or(MODERN);
        if let Some(revision) = revision {
            open(&mut pipe, revision).await;
        }
        for line in [
            json!([look(spoken, 1)]),
            json!([]),
            json!([opening("2025-03-26")]),
        ] {
            pipe.send(&line.to_string()).await;
            if spoken >= "2025-11-25" {
                error(&mut pipe, spoken, Value::Null, -32600).await;
            }
        }
        let next = pipe.ask(&look(spoken, "next")).await;
        assert_answer(spoken, "tools/call", &next);
        assert_eq!((&next["id"], desk.service.count()), (&json!("next"), 1));
        end(pipe).await;
    }
    let revision = "2025-03-26";
    let (desk, mut pipe) = Plan::new().limit("batch_messages_max", 6).stdio().await;
    open(&mut pipe, revision).await;
    let mixed = json!([
        look(revision, 1),
        {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}},
        ping("two"),
        {"jsonrpc":"2.0","id":3,"method":"nonsense"},
        {"jsonrpc":"2.0","id":4},
        look(revision, 5),
    ]);
    let answers = pipe.ask(&mixed).await;
    assert_message(revision, &answers);
    let found: Vec<(&Value, bool)> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (&answer["id"], answer.get("error").is_some()))
        .collect();
    assert_eq!(
        found,
        [
            (&json!(1), false),
            (&json!("two"), false),
            (&json!(3), true),
            (&json!(4), true),
            (&json!(5), false)
        ]
    );
    assert_eq!(desk.service.count(), 2);
    // Nothing to answer, too many, none at all, and a handshake: no line comes back, and nothing is carried out.
    let notice = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}});
    for line in [
        json!([notice, notice]),
        json!([{"jsonrpc":"2.0","id":1,"result":{}}, {"jsonrpc":"2.0","id":2,"result":{}}]),
        Value::Array((0..7).map(|id| look(revision, id)).collect()),
        json!([]),
        json!([look(revision, 1), opening(revision)]),
    ] {
        pipe.send(&line.to_string()).await;
        assert_eq!(pipe.ask(&ping("next")).await["id"], "next", "{line}");
    }
    assert_eq!(desk.service.count(), 2);
    end(pipe).await;
}

// === what a line may refer to ===

#[tokio::test]
async fn can_01_base_03_a_cancellation_on_the_very_next_line_finds_its_call() {
    for revision in [MODERN, "2025-03-26"] {
        let (desk, mut pipe) = Plan::new().stdio().await;
        if revision != MODERN {
            open(&mut pipe, revision).await;
        }
        desk.service.hold();
        // One write, so that both lines are there before the call has begun.
        let count = 40;
        for id in 0..count {
            let cancel =
                json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}});
            pipe.send(&format!("{}\n{cancel}", look(revision, id))).await;
        }
        if revision == "2025-03-26" {
            let cancel =
                json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b"}});
            pipe.send(&json!([look(revision, "b"), cancel]).to_string()).await;
            let cancel =
                json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}});
            pipe.send(&format!("{}\n{cancel}", json!([look(revision, "c")])))
                .await;
        }
        // An id that comes twice on two lines is in use at the second.
        pipe.send(&format!("{0}\n{0}", look(revision, "twice"))).await;
        error(&mut pipe, revision, json!("twice"), -32600).await;
        drop(pipe.input.take());
        desk.service.let_go();
        let answer = pipe.message().await;
        assert_answer(revision, "tools/call", &answer);
        assert_eq!(answer["id"], "twice");
        assert!(pipe.line().await.is_none(), "no cancelled call is answered");
        end(pipe).await;
    }
}

// === what is written ===

#[tokio::test]
async fn stdio_02_stdio_03_stdio_05_the_output_holds_messages_only_and_everything_else_goes_elsewhere() {
    let (desk, mut pipe) = Plan::new().line("log = { level = \"trace\" }").stdio().await;
    open(&mut pipe, "2025-06-18").await;
    desk.service.script(|_| answer(500, &json!({"detail":"broken"})));
    let failed = pipe.ask(&look("2025-06-18", 1)).await;
    assert_answer("2025-06-18", "tools/call", &failed);
    assert_eq!(failed["result"]["isError"], true);
    for line in ["{", "[1]", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"] {
        pipe.send(line).await;
    }
    pipe.send(&ping("last").to_string()).await;
    drop(pipe.input.take());
    let mut lines = Vec::new();
    while let Some(line) = pipe.line().await {
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_message("2025-06-18", &message);
        // STDIO-05, CAN-03: nothing that waits for an answer, and nothing that cancels.
        assert!(message.get("method").is_none(), "{message}");
        lines.push(message);
    }
    assert_eq!(lines.last().unwrap()["id"], "last");
    let log = end(pipe).await;
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "{log}");
}

#[tokio::test]
async fn stdio_09_the_caller_is_whom_the_configuration_names_and_without_a_name_the_way_is_closed() {
    let (desk, mut pipe) = Plan::new().stdio().await;
    let mut message = look(MODERN, 1);
    message["params"]["_meta"]["authorization"] = json!("Bearer of nothing");
    assert_answer(MODERN, "tools/call", &pipe.ask(&message).await);
    end(pipe).await;
    let ledger = desk.house.ledger().await;
    let intent = ledger.of_kind("intent")[0].to_string();
    assert!(
        intent.contains("\"ada\"") && intent.contains("\"stdio\""),
        "{intent}"
    );

    let house = desk
        .house
        .with_change("tollhouse.toml", "[stdio]\ncaller = \"ada\"\n", "");
    let output = house.run(["serve", "--stdio"]).await;
    assert_eq!(output.status.code(), Some(78));
    assert!(output.stdout.is_empty(), "not a word on the output");
    assert!(
        text(&output.stderr).contains("[stdio]"),
        "{}",
        text(&output.stderr)
    );
}

// === the end ===

#[tokio::test]
async fn stdio_04_at_the_end_of_the_input_what_was_asked_is_still_answered() {
    for revision in [MODERN, "2025-03-26"] {
        let (desk, mut pipe) = Plan::new().stdio().await;
        if revision != MODERN {
            open(&mut pipe, revision).await;
        }
        desk.service.hold();
        for id in 0..3 {
            pipe.send(&look(revision, id).to_string()).await;
        }
        // The last line needs no end.
        let list = speaker(revision).request("list", "tools/list", json!({}));
        let mut input = pipe.input.take().unwrap();
        input.write_all(list.to_string().as_bytes()).await.unwrap();
        input.flush().await.unwrap();
        drop(input);
        let answer = pipe.message().await;
        assert_answer(revision, "tools/list", &answer);
        desk.service.until(3).await;
        desk.service.let_go();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let answer = pipe.message().await;
            assert_answer(revision, "tools/call", &answer);
            ids.push(answer["id"].as_u64().unwrap());
        }
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2]);
        assert!(pipe.line().await.is_none());
        end(pipe).await;
        assert_eq!(outcomes(&desk).await, ["done -"; 3]);
        verify(&desk).await;
    }
}

#[tokio::test]
async fn stdio_04_a_signal_closes_in_order_while_the_input_is_open() {
    // Nothing runs.
    let (desk, mut pipe) = Plan::new().stdio().await;
    open(&mut pipe, "2025-11-25").await;
    pipe.interrupt();
    assert!(pipe.line().await.is_none(), "the output ends");
    let (code, log) = pipe.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(desk.house.ledger().await.of_kind("stop").len(), 1);

    // A call runs, and is answered.
    let (desk, mut pipe) = Plan::new().stdio().await;
    desk.service.hold();
    pipe.send(&look(MODERN, 1).to_string()).await;
    desk.service.until(1).await;
    pipe.interrupt();
    pipe.logged("closing").await;
    desk.service.let_go();
    assert_answer(MODERN, "tools/call", &pipe.message().await);
    assert!(pipe.line().await.is_none());
    let (code, log) = pipe.ended().await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(outcomes(&desk).await, ["done -"]);
    verify(&desk).await;
}

#[tokio::test]
async fn a_call_that_does_not_end_in_time_is_cut_off_and_told_that_its_outcome_is_unknown() {
    for by_signal in [true, false] {
        let (desk, mut pipe) = Plan::new().limit("drain_timeout", "\"200ms\"").stdio().await;
        desk.service.hold();
        pipe.send(&look(MODERN, 1).to_string()).await;
        desk.service.until(1).await;
        if by_signal {
            pipe.interrupt();
        } else {
            drop(pipe.input.take());
        }
        desk.service.until_left(1).await;
        // The client did not cancel it, so it would wait for ever.
        let told = pipe.message().await;
        assert_message(MODERN, &told);
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!(1), &json!(-32603)));
        let text = told["error"]["message"].as_str().unwrap();
        assert!(text.contains("whether it acted is unknown"), "{text}");
        assert!(pipe.line().await.is_none());
        let (code, log) = pipe.ended().await;
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(outcomes(&desk).await, ["unknown cancelled"]);
        assert_eq!(desk.house.ledger().await.of_kind("stop").len(), 1);
        verify(&desk).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_keep_the_gate_from_closing() {
    let (desk, mut pipe) = Plan::new()
        .limit("drain_timeout", "\"200ms\"")
        .limit("ledger_timeout", "\"500ms\"")
        .stdio()
        .await;
    let list = speaker(MODERN).request(1, "tools/list", json!({}));
    assert_answer(MODERN, "tools/list", &pipe.ask(&list).await);
    let mut input = pipe.input.take().unwrap();
    let mut writing = tokio::spawn(async move {
        // It ends with the gate.
        while input.write_all(format!("{list}\n").as_bytes()).await.is_ok() {}
    });
    let held_back = tokio::time::timeout(Duration::from_millis(500), &mut writing).await;
    assert!(held_back.is_err(), "it goes on for ever");
    pipe.interrupt();
    let (code, log) = pipe.ended().await;
    // Answers were lost, which is said; unless the machine was too slow to get that far.
    assert!(matches!(code, Some(69 | 0)), "{code:?} {log}");
    writing.await.unwrap();
    assert_eq!(desk.house.ledger().await.of_kind("stop").len(), 1);
    verify(&desk).await;
}

#[tokio::test]
async fn a_client_that_no_longer_reads_gets_nothing_carried_out() {
    let desk = Plan::new().set_up().await;
    let mut child = desk
        .house
        .command(["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    drop(child.stdout.take());
    // The first answer finds nobody; from then on nothing is read.
    let list = speaker(MODERN).request(1, "tools/list", json!({}));
    input.write_all(format!("{list}\n").as_bytes()).await.unwrap();
    let status = tokio::time::timeout(PATIENCE, child.wait())
        .await
        .expect("the gate ends, though its input is open")
        .unwrap();
    assert_eq!(status.code(), Some(69));
    drop(input);
    assert_eq!(desk.service.count(), 0);
    assert_eq!(desk.house.ledger().await.of_kind("stop").len(), 1);
    verify(&desk).await;
}
