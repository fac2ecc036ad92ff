//! `tollhouse audit`: the ledger, to read, to take away and to check, from the terminal.

use std::process::Stdio;

use e2e::example::Example;
use e2e::house::{House, PATIENCE};
use e2e::said::{run, run_with_input, shell};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// An example with one call that was made and one that was refused.
async fn used() -> Example {
    let example = Example::start().await;
    let status = "billing_getInvoiceStatus";
    let own = r#"{"invoice_id":"inv-1001"}"#;
    run(&example.house, ["call", "--as", "ada", status, own])
        .await
        .ended(0);
    let foreign = r#"{"invoice_id":"inv-2001"}"#;
    run(&example.house, ["call", "--as", "ada", status, foreign])
        .await
        .ended(1);
    example
}

async fn entries(house: &House, count: &str) -> Vec<Value> {
    let said = run(house, ["audit", "tail", "-n", count, "--json"])
        .await
        .ended(0);
    said.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn the_newest_entries_are_shown_oldest_first() {
    let Example { house, .. } = used().await;
    let all = entries(&house, "100").await;
    let kinds: Vec<&str> = all.iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    for kind in ["start", "intent", "outcome", "refusal", "stop", "checkpoint"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert_eq!(entries(&house, "3").await, all[all.len() - 3..]);
    let text = run(&house, ["audit", "tail"]).await.ended(0);
    assert_eq!(text.out.lines().count(), all.len());
    text.printed("refusal    billing_getInvoiceStatus read not-permitted 0 sent");
}

#[tokio::test]
async fn one_call_is_shown_with_everything_about_it() {
    let Example { house, .. } = used().await;
    let all = entries(&house, "100").await;
    let call = all.iter().find(|entry| entry["kind"] == "intent").unwrap()["call"]
        .as_str()
        .unwrap();
    let shown = run(&house, ["audit", "show", call, "--json"])
        .await
        .ended(0)
        .json();
    let kinds: Vec<&Value> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["kind"])
        .collect();
    assert_eq!(kinds, ["intent", "outcome"]);
    run(&house, ["audit", "show", call])
        .await
        .ended(0)
        .printed("status-of-own-invoice");
    for (id, expected) in [
        ("x", "`x` is no id of a call"),
        (
            "019ee0dc-8a86-7c02-9b63-1df9b9d0a3f4",
            "the ledger has no call `019ee0dc-8a86-7c02-9b63-1df9b9d0a3f4`",
        ),
    ] {
        run(&house, ["audit", "show", id]).await.ended(66).told(expected);
    }
}

#[tokio::test]
async fn an_export_proves_itself_and_a_changed_one_does_not() {
    let Example { house, .. } = used().await;
    let printed = run(&house, ["audit", "export"]).await.ended(0);
    run(&house, ["audit", "export", "--out", "ledger.jsonl"])
        .await
        .ended(0);
    let file = std::fs::read_to_string(house.path("ledger.jsonl")).unwrap();
    assert_eq!(file, printed.out);

    // From the file, from standard input, from the store: the same answer.
    let report = run(&house, ["audit", "verify", "ledger.jsonl", "--json"])
        .await
        .ended(0)
        .json();
    assert_eq!(report["sound"], true);
    assert_eq!(
        (&report["calls"], &report["refused"]),
        (&Value::from(1), &Value::from(1))
    );
    let piped = run_with_input(&house, ["audit", "verify", "-", "--json"], file.as_bytes()).await;
    assert_eq!(piped.ended(0).json(), report);
    assert_eq!(
        run(&house, ["audit", "verify", "--json"]).await.ended(0).json(),
        report
    );
    // It needs nothing but the export: no configuration, no store.
    let elsewhere = House::new().with_file("ledger.jsonl", &file);
    run(&elsewhere, ["audit", "verify", "ledger.jsonl"])
        .await
        .ended(0)
        .printed("the ledger is sound");

    let key = report["keys"][0].as_str().unwrap();
    run(&elsewhere, ["audit", "verify", "ledger.jsonl", "--key", key])
        .await
        .ended(0);
    let other = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    run(&elsewhere, ["audit", "verify", "ledger.jsonl", "--key", other])
        .await
        .ended(65);
    run(&elsewhere, ["audit", "verify", "ledger.jsonl", "--key", "x"])
        .await
        .ended(66)
        .told("`--key`: ");
    run(&elsewhere, ["audit", "verify", "nowhere.jsonl"])
        .await
        .ended(66)
        .told("`nowhere.jsonl` cannot be read: ");

    elsewhere.write(
        "changed.jsonl",
        file.replacen("not-permitted", "consent-missing", 1),
    );
    let changed = run(&elsewhere, ["audit", "verify", "changed.jsonl"])
        .await
        .ended(65);
    assert!(!changed.out.contains("is sound"), "{changed:?}");
    changed.told("the ledger is NOT sound");
    // A file of another kind is not answered with one line per line of it.
    elsewhere.write("other.toml", "line\n".repeat(1_000));
    let other = run(&elsewhere, ["audit", "verify", "other.toml"]).await.ended(65);
    assert!(other.err.lines().count() < 30, "{}", other.err);
}

#[tokio::test]
async fn an_export_can_begin_later_and_says_so_when_it_is_checked() {
    let Example { house, .. } = used().await;
    let all = entries(&house, "100").await;
    let refusal = all.iter().find(|entry| entry["kind"] == "refusal").unwrap()["time"]
        .as_str()
        .unwrap();
    let line = format!("tollhouse audit export --since {refusal} > part.jsonl");
    shell(&house, &line).await.ended(0);
    let part = std::fs::read_to_string(house.path("part.jsonl")).unwrap();
    assert!(part.lines().count() > 0 && part.lines().count() < all.len());
    assert!(part.contains("not-permitted") && !part.contains("\"intent\""));
    run(&house, ["audit", "verify", "part.jsonl", "--partial"])
        .await
        .ended(0);
    run(&house, ["audit", "verify", "part.jsonl"]).await.ended(65);
}

#[tokio::test]
async fn following_shows_what_comes_and_ends_on_a_signal() {
    let Example {
        house,
        service: _service,
        _database: _folder,
    } = used().await;
    let mut child = house
        .command(["audit", "tail", "-n", "1", "--follow"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = async |needle: &str| loop {
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("a line comes").unwrap().expect("it goes on");
        if line.contains(needle) {
            return;
        }
    };
    until("checkpoint").await;
    run(&house, ["call", "--as", "ada", "billing_nonsense"])
        .await
        .ended(1);
    until("unknown-tool").await;
    let id = child.id().unwrap().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
    assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
}
