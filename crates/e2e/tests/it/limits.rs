//! How much runs at once: each limit at its value and one past it, counted at the service. Limits of one message are in
//! `bodies.rs`, of sessions and their streams in `sessions.rs`, of lines in `lines.rs`.

use std::time::Duration;

use e2e::client::{MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan, look};
use e2e::house::close;
use e2e::schema::assert_answer;
use e2e::socket::Socket;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Begins a call that the service holds, and waits until it got there.
async fn begin(desk: &Desk, client: &Mcp, id: u64) -> JoinHandle<Value> {
    let (arrived, message) = (desk.service.count(), look(client, id));
    let client = client.clone();
    let call = tokio::spawn(async move {
        let answer = client.post(&message).await.json();
        assert_answer(&client.revision, "tools/call", &answer);
        answer
    });
    desk.service.until(arrived + 1).await;
    call
}

/// Makes a call that is one too many.
async fn refused(desk: &Desk, client: &Mcp) {
    let arrived = desk.service.count();
    let result = client.call("desk_look", json!({"id":"a"})).await;
    assert_eq!(result["isError"], true, "{result}");
    let said = result["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("too many calls are running"), "{said}");
    assert_eq!(desk.service.count(), arrived, "it makes no request");
}

#[tokio::test]
async fn tool_12_calls_run_up_to_each_limit_and_not_one_past_it_however_they_come() {
    let (desk, gate) = Plan::new()
        .limit("calls_max", 3)
        .limit("calls_per_caller_max", 2)
        .with("bob")
        .serve()
        .await;
    let ada = desk.modern(&gate, "ada");
    let session = desk.legacy(&gate, "ada", "2025-03-26").await;
    let other = desk.legacy(&gate, "ada", "2025-11-25").await;
    let bob = desk.modern(&gate, "bob");
    for _ in 0..2 {
        desk.service.hold();
        // One caller's calls are counted together, whatever connection, session and era they come in.
        let one = begin(&desk, &ada, 7).await;
        let two = begin(&desk, &session, 7).await;
        for client in [&ada, &session, &other] {
            refused(&desk, client).await;
        }
        let three = begin(&desk, &bob, 7).await;
        refused(&desk, &bob).await;
        // What is no call needs no place.
        assert!(ada.ask("tools/list", json!({})).await["result"].is_object());
        assert!(session.ask("ping", json!({})).await["result"].is_object());
        desk.service.let_go();
        for call in [one, two, three] {
            assert_ne!(call.await.unwrap()["result"]["isError"], true);
        }
        // A place is free again when its call has been answered.
    }
    // One that is cancelled, or refused for another reason, leaves its place too.
    desk.service.hold();
    for _ in 0..5 {
        let call = begin(&desk, &ada, 7).await;
        let left = desk.service.left();
        call.abort();
        desk.service.until_left(left + 1).await;
        assert_eq!(ada.call("desk_look", json!({})).await["isError"], true);
    }
    desk.service.let_go();
    close(gate).await;
    let ledger = desk.house.ledger().await;
    let refusals = ledger.refusals();
    let busy = refusals.iter().filter(|code| **code == "too-busy").count();
    assert_eq!((busy, ledger.of_kind("intent").len()), (8, 11), "{refusals:?}");
}

#[tokio::test]
async fn elements_of_a_batch_take_a_place_each() {
    let (desk, gate) = Plan::new().limit("calls_per_caller_max", 2).serve().await;
    let client = desk.legacy(&gate, "ada", "2025-03-26").await;
    desk.service.hold();
    let batch = json!([look(&client, 0), look(&client, 1), look(&client, 2)]);
    let waiting = client.post(&batch);
    let letting = async {
        desk.service.until(2).await;
        desk.service.let_go();
    };
    let (answer, ()) = tokio::join!(waiting, letting);
    let mut failed = 0;
    for answer in answer.json().as_array().unwrap() {
        assert_answer("2025-03-26", "tools/call", answer);
        failed += usize::from(answer["result"]["isError"] == true);
    }
    assert_eq!((failed, desk.service.count()), (1, 2));
    close(gate).await;
}

#[tokio::test]
async fn on_a_pipe_calls_run_up_to_the_limit_and_not_one_past_it() {
    for revision in [MODERN, "2025-06-18"] {
        let (desk, mut pipe) = Plan::new().limit("calls_per_caller_max", 2).stdio().await;
        let client = Mcp {
            revision: revision.to_owned(),
            ..Mcp::modern("", "")
        };
        if revision != MODERN {
            assert_answer(revision, "initialize", &pipe.ask(&opening(revision)).await);
        }
        desk.service.hold();
        for id in 0..2 {
            pipe.send(&look(&client, id).to_string()).await;
        }
        desk.service.until(2).await;
        let third = pipe.ask(&look(&client, 2)).await;
        assert_answer(revision, "tools/call", &third);
        assert_eq!(
            (&third["id"], &third["result"]["isError"]),
            (&json!(2), &json!(true))
        );
        assert_eq!(desk.service.count(), 2);
        desk.service.let_go();
        for _ in 0..2 {
            assert_ne!(pipe.message().await["result"]["isError"], true);
        }
        assert_ne!(pipe.ask(&look(&client, 3)).await["result"]["isError"], true);
        assert_eq!(pipe.close().await.0, Some(0));
    }
}

#[tokio::test]
async fn connections_are_served_up_to_the_limit_and_the_next_waits_for_a_place() {
    let (desk, gate) = Plan::new().limit("connections_max", 2).serve().await;
    let healthy = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", gate.authority());
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(gate.authority()).await;
        socket.write(&healthy).await;
        assert_eq!(socket.response().await.unwrap().status, 200);
        open.push(socket);
    }
    let mut third = Socket::open(gate.authority()).await;
    third.write(&healthy).await;
    assert!(
        third.is_quiet(Duration::from_millis(300)).await,
        "there is no place for it"
    );
    // Those that have one go on.
    open[0].write(&healthy).await;
    assert_eq!(open[0].response().await.unwrap().status, 200);
    drop(open.pop());
    assert_eq!(third.response().await.unwrap().status, 200);
    drop((open, third));
    close(gate).await;
    assert_eq!(desk.service.count(), 0);
}

#[tokio::test]
async fn arguments_pass_at_their_limit_and_not_one_byte_past_it() {
    let max = 1_000;
    let (desk, gate) = Plan::new()
        .limit("arguments_bytes_max", max)
        .with("cleo")
        .serve()
        .await;
    let client = desk.modern(&gate, "cleo");
    for (length, passes) in [(max, true), (max + 1, false)] {
        let empty = json!({"name":""}).to_string().len();
        let arguments = json!({"name":"x".repeat(length - empty)});
        assert_eq!(arguments.to_string().len(), length);
        let before = desk.service.count();
        let result = client.call("desk_make", arguments).await;
        assert_eq!(result.get("error").is_none(), passes, "{result}");
        assert_eq!(desk.service.count() - before, usize::from(passes));
        if !passes {
            assert_eq!(result["error"]["code"], -32602);
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn can_05_a_call_whose_tool_sets_no_deadline_has_the_one_of_all_calls() {
    let tools = "[upstream.desk.tool.look]\noperation = \"getThing\"\nclass = \"read\"\n";
    let desk = Plan::new()
        .tools(tools)
        .limit("call_timeout", "\"1s\"")
        .set_up()
        .await;
    // The upstream of a desk has a deadline of its own, which would come before the one of all calls.
    let config = std::fs::read_to_string(desk.house.path("tollhouse.toml")).unwrap();
    assert!(config.contains("timeout = \"50s\"\n"));
    desk.house
        .write("tollhouse.toml", config.replace("timeout = \"50s\"\n", ""));
    let gate = desk.house.serve().await;
    desk.service.hold();
    let result = desk
        .modern(&gate, "ada")
        .call("desk_look", json!({"id":"a"}))
        .await;
    assert_eq!(result["isError"], true);
    desk.service.until_left(1).await;
    close(gate).await;
    let ledger = desk.house.ledger().await;
    let outcome = ledger.of_kind("outcome")[0];
    assert_eq!(
        (&outcome["state"], &outcome["refusal"]),
        (&json!("unknown"), &json!("upstream-timeout"))
    );
}
