//! The ledger in the hands of somebody who would like it to say something else, and exports that are checked elsewhere.
//! How people read it at a terminal is in `audit.rs`.

use std::path::PathBuf;
use std::process::Stdio;

use e2e::client::Mcp;
use e2e::house::{House, text};
use e2e::orders;
use e2e::service::Service;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::io::AsyncWriteExt as _;

/// A ledger of two chains, both of which ended in good order: done, failed and refused calls.
async fn written() -> (Service, House) {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let key = house.key("ada").await;
    for _ in 0..2 {
        let gate = house.serve().await;
        let ada = Mcp::modern(&gate.url, &key);
        for _ in 0..3 {
            ada.call("orders_read", json!({"id":"o-1"})).await;
            ada.call("orders_read", json!({"id":"o-2"})).await;
            ada.call("orders_note", json!({"id":"o-1","text":"x"})).await;
        }
        gate.close().await;
    }
    (service, house)
}

/// The same house again, with a copy of its store.
fn copy(of: &House) -> House {
    let house = orders::house("http://127.0.0.1:1");
    for name in ["tollhouse.db", "tollhouse.db-wal"] {
        // The log is gone when the last one who had the store open closed it.
        let _ = std::fs::copy(of.path(name), house.path(name));
    }
    house
}

async fn change(house: &House, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(house.path("tollhouse.db"));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let done = sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    assert!(done.rows_affected() > 0, "{sql}");
    connection.close().await.unwrap();
}

/// The kinds of faults that `audit verify` finds, and its exit code.
async fn verify(house: &House, arguments: &[&str]) -> (Option<i32>, Vec<String>, Value) {
    let output = house
        .run([&["audit", "verify", "--json"], arguments].concat())
        .await;
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let kinds = report["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["kind"].as_str().unwrap().to_owned())
        .collect();
    (output.status.code(), kinds, report)
}

#[tokio::test]
async fn whatever_is_changed_in_the_database_is_found() {
    let (_service, house) = written().await;
    let (code, kinds, report) = verify(&copy(&house), &[]).await;
    assert_eq!((code, kinds.len()), (Some(0), 0), "{report}");
    assert_eq!((&report["calls"], &report["refused"]), (&json!(12), &json!(6)));
    for (what, sql, kind) in [
        (
            "who it was",
            "UPDATE ledger SET body = replace(body, '\"subject\":\"ada\"', '\"subject\":\"bob\"') \
             WHERE position = (SELECT min(position) FROM ledger WHERE kind = 'intent')",
            "altered",
        ),
        (
            "how it ended",
            "UPDATE ledger SET body = replace(body, '\"state\":\"done\"', '\"state\":\"failed\"') \
             WHERE position = (SELECT max(position) FROM ledger WHERE kind = 'outcome')",
            "altered",
        ),
        (
            "why it was refused",
            "UPDATE ledger SET body = replace(body, 'not-permitted', 'owner-unknown') WHERE kind = 'refusal'",
            "altered",
        ),
        (
            "white space in an entry",
            "UPDATE ledger SET body = replace(body, ',\"kind\"', ', \"kind\"') WHERE kind = 'intent'",
            "altered",
        ),
        (
            "the hash of an entry",
            "UPDATE ledger SET hash = zeroblob(32) WHERE kind = 'refusal'",
            "altered",
        ),
        (
            "the link to the entry before",
            "UPDATE ledger SET prev = zeroblob(32) WHERE kind = 'outcome'",
            "broken-link",
        ),
        (
            "an entry is taken out",
            "DELETE FROM ledger WHERE position = (SELECT min(position) FROM ledger WHERE kind = 'refusal')",
            "gap",
        ),
        (
            "an intent is taken out",
            "DELETE FROM ledger WHERE position = (SELECT min(position) FROM ledger WHERE kind = 'intent')",
            "outcome-without-intent",
        ),
        (
            "the end of an older chain is cut off",
            "DELETE FROM ledger WHERE position IN (SELECT position FROM ledger WHERE position < 2199023255552 \
             ORDER BY position DESC LIMIT 5)",
            "truncated",
        ),
        (
            "a whole older chain is gone",
            "DELETE FROM ledger WHERE position < 2199023255552",
            "missing-chain",
        ),
        (
            "a call is put in twice",
            "INSERT INTO ledger SELECT (SELECT max(position) FROM ledger) + 1, time, kind, call, body, prev, hash \
             FROM ledger WHERE kind = 'intent' ORDER BY position LIMIT 1",
            "duplicate-intent",
        ),
        (
            "two entries change places",
            "UPDATE ledger SET body = CASE kind WHEN 'intent' THEN (SELECT body FROM ledger WHERE kind = 'refusal' LIMIT 1) \
             ELSE (SELECT body FROM ledger WHERE kind = 'intent' LIMIT 1) END WHERE position IN \
             ((SELECT min(position) FROM ledger WHERE kind = 'intent'), (SELECT min(position) FROM ledger WHERE kind = 'refusal'))",
            "order",
        ),
        (
            "a checkpoint is signed by somebody else",
            "UPDATE ledger SET body = replace(body, '\"signature\":\"', '\"signature\":\"A') WHERE kind = 'checkpoint'",
            "altered",
        ),
        // By these, entries are found; who changes them hides a call from whoever asks for it.
        (
            "the call that it is filed under",
            "UPDATE ledger SET call = zeroblob(16) WHERE position = (SELECT min(position) FROM ledger WHERE kind = 'intent')",
            "misfiled",
        ),
        (
            "the time that it is filed under",
            "UPDATE ledger SET time = time - 86400000000 WHERE kind = 'refusal'",
            "misfiled",
        ),
        (
            "the kind that it is filed under",
            "UPDATE ledger SET kind = 'stop' WHERE kind = 'refusal'",
            "misfiled",
        ),
    ] {
        let copy = copy(&house);
        change(&copy, sql).await;
        let (code, kinds, report) = verify(&copy, &[]).await;
        assert_eq!(code, Some(65), "{what}: {report}");
        assert_eq!(report["sound"], false, "{what}");
        assert!(kinds.iter().any(|found| found == kind), "{what}: {report:#}");
        // A person reads it too.
        let output = copy.run(["audit", "verify"]).await;
        assert_eq!(output.status.code(), Some(65), "{what}");
        assert!(
            text(&output.stderr).contains(kind),
            "{what}: {}",
            text(&output.stderr)
        );
    }
}

#[tokio::test]
async fn an_export_is_checked_without_the_house_that_it_came_from() {
    let (_service, house) = written().await;
    let exported = house.run(["audit", "export", "--out", "ledger.jsonl"]).await;
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let export = std::fs::read_to_string(house.path("ledger.jsonl")).unwrap();

    // A folder with nothing in it but the export.
    let desk = House::new().with_file("ledger.jsonl", &export);
    let (code, _, report) = verify(&desk, &["ledger.jsonl"]).await;
    assert_eq!((code, &report["calls"]), (Some(0), &json!(12)), "{report}");
    let key = report["keys"][0].as_str().unwrap();
    assert_eq!(verify(&desk, &["ledger.jsonl", "--key", key]).await.0, Some(0));

    // The key of another house signs nothing here.
    let (_, other) = written().await;
    let foreign = verify(&other, &[]).await.2["keys"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, kinds, report) = verify(&desk, &["ledger.jsonl", "--key", &foreign]).await;
    assert_eq!(code, Some(65), "{report}");
    assert!(kinds.contains(&"foreign-key".to_owned()), "{report}");
    let bad = desk
        .run(["audit", "verify", "ledger.jsonl", "--key", "nonsense"])
        .await;
    assert_eq!(bad.status.code(), Some(66), "{}", text(&bad.stderr));

    // From standard input, whole and changed.
    for (what, input, expected) in [
        ("whole", export.clone(), 0),
        (
            "changed",
            export.replacen("\"subject\":\"ada\"", "\"subject\":\"bob\"", 1),
            65,
        ),
        ("without its last byte", export[..export.len() - 1].to_owned(), 65),
        (
            "without a line",
            export.lines().skip(1).map(|line| format!("{line}\n")).collect(),
            65,
        ),
    ] {
        let mut child = desk
            .command(["audit", "verify", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{what}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    for (what, file) in [("no such file", "elsewhere.jsonl"), ("a folder", ".")] {
        let output = desk.run(["audit", "verify", file]).await;
        assert_eq!(output.status.code(), Some(66), "{what}: {}", text(&output.stderr));
    }
}

#[tokio::test]
async fn an_export_is_there_as_a_whole_or_not_at_all() {
    let (_service, house) = written().await;
    house.write("out/ledger.jsonl", "what was there before");
    let files = || -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(house.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    };
    // The store breaks.
    let store = std::fs::read(house.path("tollhouse.db")).unwrap();
    house.write(
        "tollhouse.db",
        [&store[..4_096], &vec![0xff; store.len() - 4_096]].concat(),
    );
    let output = house.run(["audit", "export", "--out", "out/ledger.jsonl"]).await;
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    assert_eq!(
        std::fs::read_to_string(house.path("out/ledger.jsonl")).unwrap(),
        "what was there before"
    );
    assert_eq!(
        files(),
        [house.path("out/ledger.jsonl")],
        "nothing is left lying about"
    );
    // It is whole again.
    house.write("tollhouse.db", store);
    let output = house.run(["audit", "export", "--out", "out/ledger.jsonl"]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = house.run(["audit", "export"]).await;
    assert_eq!(
        std::fs::read(house.path("out/ledger.jsonl")).unwrap(),
        printed.stdout
    );
    assert_eq!(files(), [house.path("out/ledger.jsonl")]);
    let output = house
        .run(["audit", "export", "--out", "nowhere/ledger.jsonl"])
        .await;
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
}
