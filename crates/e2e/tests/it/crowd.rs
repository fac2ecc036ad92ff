//! A thousand sessions at once that all use the same ids and the same progress tokens: nothing of one reaches another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use e2e::client::{MODERN, Mcp};
use e2e::far::FarServer;
use e2e::house::close;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::asks::house;

/// How many clients of each era there are.
const EACH: usize = 500;
/// Files that the test and the gate need open each: connections of clients, and of the gate to the server.
const FILES: u64 = 6_000;

const LIMITS: &str = "[limits]\n\
    connections_max = 4000\n\
    sessions_per_caller_max = 4000\n\
    calls_max = 4000\n\
    calls_per_caller_max = 4000\n\
    call_timeout = \"4m\"\n\
    upstream_connect_timeout = \"1m\"\n\
    keys_refresh_interval = \"1m\"\n";

/// Lets this process, and the gate that it starts, have enough files open.
fn many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < FILES) {
        limit.current = limit.maximum.map(|most| most.min(FILES)).or(Some(FILES));
        setrlimit(Resource::Nofile, limit).unwrap();
    }
}

/// A server that answers no call before all are there, and then each with its own word: as progress, and as the result.
async fn far(revision: &str, all: usize) -> FarServer {
    let far = FarServer::start(&[revision]).await;
    let arrived = Arc::new(AtomicUsize::new(0));
    let (open, opened) = watch::channel(false);
    let open = Arc::new(open);
    far.talk("echo", move |asked, talk| {
        let (arrived, open, mut opened) = (Arc::clone(&arrived), Arc::clone(&open), opened.clone());
        Box::pin(async move {
            if arrived.fetch_add(1, Ordering::AcqRel) + 1 == all {
                open.send_replace(true);
            }
            opened.wait_for(|open| *open).await.unwrap();
            let word = &asked.params["arguments"]["text"];
            let token = &asked.params["_meta"]["progressToken"];
            talk.tell(&json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": token, "progress": 1, "message": word },
            }));
            json!({ "resultType": "complete", "content": [{ "type": "text", "text": word }] })
        })
    });
    far
}

/// Makes the one call that every client makes, and gives everything that came back for it.
async fn call(client: &Mcp, word: &str) -> Vec<Value> {
    let params = json!({
        "name": "far_echo", "arguments": { "text": word }, "_meta": { "progressToken": "the same" },
    });
    let mut stream = client.stream(&client.request(1, "tools/call", params)).await;
    if stream.header("content-type") != Some("text/event-stream") {
        let answer = stream.whole().await;
        panic!("{word}: {} {}", answer.status, answer.text());
    }
    let mut heard = Vec::new();
    while let Some(message) = stream.message().await {
        let is_last = message.get("id").is_some();
        heard.push(message);
        if is_last {
            break;
        }
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hop_01_hop_02_a_thousand_sessions_with_the_same_ids_and_tokens_hear_each_its_own() {
    many_files();
    for far_revision in ["2025-11-25", MODERN] {
        let far = far(far_revision, 2 * EACH).await;
        let house = house(&far, "sharing = \"shared\"", LIMITS).await;
        let keys = [house.key("ada").await, house.key("bob").await];
        let gate = house.serve().await;
        let mut clients = Vec::new();
        for number in 0..EACH {
            let key = &keys[number % 2];
            clients.push(Mcp::legacy(&gate.url, key, "2025-11-25").await);
            clients.push(Mcp::modern(&gate.url, key));
        }
        let sessions: BTreeSet<_> = clients
            .iter()
            .filter_map(|client| client.session.clone())
            .collect();
        assert_eq!(sessions.len(), EACH, "all of them are open");
        let mut calling = tokio::task::JoinSet::new();
        for (number, client) in clients.into_iter().enumerate() {
            let word = format!("the word of client {number}");
            calling.spawn(async move {
                let heard = call(&client, &word).await;
                (word, heard)
            });
        }
        while let Some(one) = calling.join_next().await {
            let (word, heard) = one.unwrap();
            let [progress, result] = heard.as_slice() else {
                panic!("{word}: {heard:?}")
            };
            assert_eq!(progress["params"]["progressToken"], "the same", "{word}");
            assert_eq!(progress["params"]["message"], word, "{far_revision}");
            assert_eq!(result["id"], 1, "{word}");
            assert_eq!(result["result"]["content"][0]["text"], word, "{far_revision}");
        }
        // On the way on every one of them has an id and a token of its own.
        let calls = far.asked_for("tools/call");
        let distinct =
            |of: fn(&e2e::far::Asked) -> String| calls.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(|asked| asked.id.to_string()), 2 * EACH);
        assert_eq!(
            distinct(|asked| asked.params["_meta"]["progressToken"].to_string()),
            2 * EACH
        );
        let conversations: BTreeSet<_> = calls.iter().map(|asked| asked.session.clone()).collect();
        assert_eq!(conversations.len(), 1, "all of them in one conversation");
        close(gate).await;
    }
}
