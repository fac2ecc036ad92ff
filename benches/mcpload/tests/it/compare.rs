//! `mcpload compare` and `mcpload instructions`: the processes they start, the rounds they make, what they leave behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::server::{CHILD_VARIABLE, TOKEN_VARIABLE, child_command};

/// A plan of two cells and two rounds: the upstream alone, and a gate that wants a token which is made beforehand.
fn plan(gate_is: &str) -> Value {
    json!({
        "upstream": child_command(),
        "processes": {
            "gate": {
                "command": child_command(),
                "environment": { CHILD_VARIABLE: gate_is, TOKEN_VARIABLE: "t-1", "SEEN": "{upstream} {upstream_address}" },
                "prepare": [["sh", "-c", "echo $MCPLOAD_TEST_TOKEN > {folder}/token; echo $SEEN > $SEEN_FILE"]],
            },
        },
        "subjects": [
            { "name": "direct", "process": "upstream", "face": "http-plain", "path": "/echo" },
            { "name": "gate", "process": "gate", "face": "mcp-modern", "path": "/mcp", "bearer_file": "{folder}/token" },
        ],
        "cells": [{ "concurrency": 2, "bytes": 10 }, { "concurrency": 1, "bytes": 1000, "rate": 100 }],
        "repeats": 2,
        "warm_up": "20ms",
        "measure": "200ms",
    })
}

async fn compare(folder: &Path, plan: &Value) -> Output {
    command(folder, plan).output().await.unwrap()
}

fn command(folder: &Path, plan: &Value) -> Command {
    let path = folder.join("plan.json");
    std::fs::write(&path, plan.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpload"));
    command
        .args(["compare", "--no-pin", "--plan"])
        .arg(path)
        .arg("--out")
        .arg(folder.join("out"))
        .env(CHILD_VARIABLE, "Never")
        .env("SEEN_FILE", folder.join("seen"))
        .env("TMPDIR", folder);
    command
}

#[tokio::test]
async fn a_comparison_measures_each_subject_in_each_round_and_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = compare(folder.path(), &plan("Never")).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");

    let json: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/bench.json")).unwrap()).unwrap();
    let order: Vec<String> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| format!("{} {}", run["round"], run["subject"].as_str().unwrap()))
        .collect();
    // Two cells in each round, and the order turned round in the second.
    let expected = [
        "1 direct", "1 gate", "1 direct", "1 gate", "2 gate", "2 direct", "2 gate", "2 direct",
    ];
    assert_eq!(order, expected);
    assert_eq!(json["rows"].as_array().unwrap().len(), 4);
    for run in json["runs"].as_array().unwrap() {
        assert!(run["report"]["verified"].as_u64().unwrap() > 0, "{run}");
        assert_eq!(run["report"]["watched"].as_array().unwrap().len(), 1);
    }
    let markdown = std::fs::read_to_string(folder.path().join("out/bench.md")).unwrap();
    assert!(markdown.contains("| 1x1000@100 | gate |"), "{markdown}");
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().trim_end(),
        markdown.trim_end()
    );

    let gate = json["runs"][1]["report"]["target"].as_str().unwrap();
    let address = gate.trim_start_matches("http://").trim_end_matches("/mcp");
    assert!(
        tokio::net::TcpStream::connect(address).await.is_err(),
        "{address} still listens"
    );
    let direct = json["runs"][0]["report"]["target"].as_str().unwrap();
    let upstream = direct.trim_end_matches("/echo");
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    assert_eq!(
        seen,
        format!("{upstream} {}\n", upstream.trim_start_matches("http://"))
    );
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("mcpload-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_gate_that_answers_wrongly_makes_the_comparison_fail_and_shows_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let output = compare(folder.path(), &plan("Nonce")).await;
    assert_eq!(output.status.code(), Some(1));
    let json: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/bench.json")).unwrap()).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let wrong = row["errors"].as_u64().unwrap() > 0;
        assert_eq!(wrong, row["subject"] == "gate", "{row}");
    }
}

#[tokio::test]
async fn a_gate_that_does_not_start_is_reported_with_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan("Never");
    plan["processes"]["gate"]["command"] = json!(["sh", "-c", "echo no such policy >&2; exit 1"]);
    let output = compare(folder.path(), &plan).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        said.contains("`gate` ended before it was ready") && said.contains("no such policy"),
        "{said}"
    );
}

#[tokio::test]
async fn a_comparison_that_is_told_to_end_takes_its_processes_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan("Never");
    plan["measure"] = json!("10m");
    let mut child = command(folder.path(), &plan)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // The upstream's address is written while the gate is being prepared.
    let seen = folder.path().join("seen");
    let address = loop {
        match std::fs::read_to_string(&seen) {
            Ok(text) if text.ends_with('\n') => break text.trim_end().rsplit_once(' ').unwrap().1.to_owned(),
            _ => {
                assert_eq!(child.try_wait().unwrap(), None, "it ended before it was told to");
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::net::TcpStream::connect(&address).await.unwrap();
    let id = child.id().unwrap().to_string();
    Command::new("kill").args(["-TERM", &id]).status().await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(1));
    // Its processes were killed; the system takes a moment to bury them.
    let begin = Instant::now();
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{address} still listens"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn instructions_are_the_slope_between_two_runs() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    // Stands in for valgrind: it runs the command as it is, and says of a run of N calls that it took a million
    // instructions and 70,000 for each call. N is the name of the folder that the log goes to.
    script(
        "valgrind",
        "#!/bin/sh\n\
         while :; do case $1 in\n\
           --log-file=*) log=${1#--log-file=}; shift;;\n\
           --*) shift;;\n\
           *) break;;\n\
         esac; done\n\
         calls=$(basename \"$(dirname \"$log\")\")\n\
         echo \"==1== Collected : $((1000000 + calls * 70000))\" > \"$log\"\n\
         exec \"$@\"\n",
    );
    let command = child_command();
    let upstream = script(
        "upstream",
        &format!("#!/bin/sh\nexec '{}'\n", command.join("' '")),
    );
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let count = async |kind: &str| {
        Command::new(env!("CARGO_BIN_EXE_mcpload"))
            .args([
                "instructions",
                "--calls",
                "10,30",
                "--bytes",
                "50",
                "--echo-upstream",
            ])
            .arg(&upstream)
            .args(["--env", &format!("{CHILD_VARIABLE}={kind}"), "--"])
            .args(&command)
            .env("PATH", &path)
            .env(CHILD_VARIABLE, "Never")
            .output()
            .await
            .unwrap()
    };
    let output = count("Never").await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let slope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(slope["instructions_per_call"], 70_000);
    assert_eq!(
        slope["runs"][1],
        json!({ "calls": 30, "instructions": 3_100_000 })
    );

    // A command that answers wrongly costs whatever it costs; it is not measured.
    let output = count("Nonce").await;
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("29 of 30 calls were verified"), "{said}");
}
