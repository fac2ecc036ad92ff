//! Sessions over a server that is started for each of them, opened and abandoned in every way there is: what the gate had
//! taken for them it gives back.
//!
//! One run is short and part of every test; `cargo xtask leak` makes the long one, whose outcome stands in
//! `docs/performance.md`.

use std::fmt;
use std::time::Duration;

use e2e::binary;
use e2e::client::{MODERN, Mcp};
use e2e::house::{Gate, House, close, text, until};
use serde_json::json;

/// What a gate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Its children, and everything that has their mark.
    processes: usize,
    files: usize,
    /// Its memory that is not pages of a file, in KiB.
    memory: u64,
}

impl Held {
    fn by(gate: &Gate, mark: &str) -> Self {
        let process = gate.id();
        let children = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            // Behind the name in brackets: the state, and the parent.
            let stat = read("stat");
            let behind = stat.rsplit(')').next().unwrap_or_default();
            let parent = behind.split_whitespace().nth(1);
            parent == Some(process.to_string().as_str())
                || read("cmdline").split('\0').any(|word| word == mark)
        });
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let memory = memory.unwrap().trim().trim_end_matches(" kB");
        Self {
            processes: children.count(),
            files: std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count(),
            memory: memory.parse().unwrap(),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} processes, {} files, {} KiB",
            self.processes, self.files, self.memory
        )
    }
}

async fn house(mark: &str) -> House {
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n\
         [limits]\nsession_idle_timeout = \"1s\"\nsessions_per_caller_max = 5000\nchildren_max = 2000\ncalls_per_caller_max = 500\n\
         [upstream.toy]\ncommand = [{}, \"mcp\", \"polite\", \"{mark}\"]\nsharing = \"per-session\"\nidle_stop = \"1s\"\n\
         children_max = 2000\nchildren_per_caller_max = 2000\n\
         [upstream.toy.tool.say]\nclass = \"read\"\n[upstream.toy.tool.sleep]\nclass = \"read\"\ntimeout = \"500ms\"\n",
        json!(binary::path("toy"))
    );
    let house = House::new()
        .with_file("tollhouse.toml", config)
        .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
    for command in [&["approve", "toy"][..], &["pins", "approve", "toy", "--all"]] {
        let output = house.run(command).await;
        assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    }
    house
}

/// Opens a session, has a process started for it, and goes away in one of several ways.
async fn abandon(gate: &Gate, key: &str, number: usize) {
    let client = Mcp::legacy(&gate.url, key, "2025-11-25").await;
    let said = client.call("toy_say", json!({ "text": "a" })).await;
    let log = gate.log();
    let last: Vec<&str> = log.lines().rev().take(5).collect();
    assert_eq!(said["content"][0]["text"], "a", "{said} {last:#?}");
    let sleep = json!({ "name": "toy_sleep", "arguments": {}, "_meta": { "progressToken": 1 } });
    match number % 4 {
        // In the middle of a call.
        0 => drop(client.stream(&client.request(2, "tools/call", sleep)).await),
        // With a stream open.
        1 => drop(client.listen(None).await),
        // In the middle of a call of the other era.
        2 => {
            let alone = Mcp {
                revision: MODERN.to_owned(),
                session: None,
                ..client.clone()
            };
            drop(alone.stream(&alone.request(3, "tools/call", sleep)).await);
        }
        // Without a word.
        _ => {}
    }
}

async fn abandon_all(gate: &Gate, key: &str, sessions: usize, at_once: usize) {
    let mut number = 0;
    while number < sessions {
        let some = (number..sessions.min(number + at_once)).map(|number| abandon(gate, key, number));
        futures_util::future::join_all(some).await;
        number += at_once;
    }
}

/// Runs it after as many sessions as `first`, and gives what was held before, at the end of them, and after everything had
/// its time to end and `rest` had passed.
async fn run(mark: &str, first: usize, sessions: usize, rest: Duration) -> [Held; 3] {
    let house = house(mark).await;
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let is_back = async |files: usize| {
        until("children and files are given back", async || {
            let held = Held::by(&gate, mark);
            held.processes == 0 && held.files <= files
        })
        .await;
    };
    let new = Held::by(&gate, mark);
    // What is taken once and kept, such as the pages of an allocator, is not what this is about.
    abandon_all(&gate, &key, first, 8).await;
    is_back(new.files).await;
    let before = Held::by(&gate, mark);
    abandon_all(&gate, &key, sessions, 8).await;
    let most = Held::by(&gate, mark);
    is_back(before.files).await;
    tokio::time::sleep(rest).await;
    let after = Held::by(&gate, mark);
    let listed = Mcp::modern(&gate.url, &key).tools().await;
    assert_eq!(listed, ["toy_say", "toy_sleep"], "it serves as before");
    close(gate).await;
    [before, most, after]
}

#[tokio::test]
async fn what_was_taken_for_sessions_that_were_abandoned_is_given_back() {
    let [before, most, after] = run("mark-leak", 40, 100, Duration::ZERO).await;
    assert!(most.processes > 20, "there was something to give back: {most}");
    assert_eq!(after.processes, 0, "{after}");
    assert!(after.files <= before.files, "{before} and then {after}");
    assert!(
        after.memory <= before.memory + 8 * 1_024,
        "{before} and then {after}"
    );
}

#[tokio::test]
#[ignore = "takes minutes; `cargo xtask leak` runs it"]
#[expect(clippy::print_stdout, reason = "the outcome is for people")]
async fn a_thousand_sessions_leave_nothing_behind() {
    let [before, most, after] = run("mark-leak-long", 1_000, 1_000, Duration::from_secs(300)).await;
    println!("before: {before}\nat the end of a thousand sessions: {most}\nfive minutes later: {after}");
    assert_eq!(after.processes, 0, "{after}");
    assert!(after.files <= before.files, "{before} and then {after}");
    assert!(
        after.memory <= before.memory + 2 * 1_024,
        "{before} and then {after}"
    );
}
