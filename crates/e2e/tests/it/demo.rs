//! `tollhouse demo`: what a newcomer sees first. Every line that it prints has to be true.

use std::net::TcpListener;
use std::process::Stdio;

use e2e::client::Mcp;
use e2e::example::everything_in;
use e2e::house::{House, PATIENCE};
use e2e::said::run;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

/// A demo that runs.
struct Demo {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Demo {
    async fn start(house: &House) -> (Self, String) {
        let mut child = house
            .command(["demo", "--listen", "127.0.0.1:0"])
            .env("TMPDIR", house.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut demo = Self { child, output };
        let mut introduction = String::new();
        loop {
            let line = demo.line().await;
            if line.starts_with("The ledger, as it grows") {
                return (demo, introduction);
            }
            introduction += &line;
            introduction.push('\n');
        }
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        line.expect("a line comes").unwrap().expect("the demo runs")
    }

    async fn end(mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().unwrap().to_string();
        let status = std::process::Command::new("kill")
            .args([signal, &id])
            .status()
            .unwrap();
        assert!(status.success());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.expect("the demo ends").unwrap().code()
    }
}

/// What stands on the line behind a heading.
fn behind<'a>(introduction: &'a str, heading: &str) -> &'a str {
    let mut lines = introduction.lines();
    lines
        .find(|line| line.starts_with(heading))
        .unwrap_or_else(|| panic!("no {heading} in:\n{introduction}"));
    lines.next().unwrap().trim()
}

#[tokio::test]
async fn once_runs_every_case_and_ends_with_0() {
    let house = House::new();
    // The fixed port of the demo is not needed for this, so it may be taken.
    let _taken = TcpListener::bind("127.0.0.1:7300");
    let said = run(&house, ["demo", "--once"]).await.ended(0);
    assert_eq!(said.err, "");
    assert!(
        said.out.ends_with("\nall 7 cases came out right\n"),
        "{}",
        said.out
    );
    let rows: Vec<&str> = said.out.lines().skip(1).take(7).collect();
    let allowed: Vec<&&str> = rows.iter().filter(|row| row.contains("  allowed  ")).collect();
    assert_eq!(allowed.len(), 1, "{}", said.out);
    assert!(allowed[0].contains("  1 "), "{}", said.out);
    for row in rows.iter().filter(|row| !row.contains("  allowed  ")) {
        assert!(row.contains("refused: ") && row.contains("  0 "), "{row}");
    }
    assert!(everything_in(&house).is_empty(), "nothing is left behind");
}

#[tokio::test]
async fn what_the_demo_prints_works() {
    let house = House::new();
    let (mut demo, introduction) = Demo::start(&house).await;
    let first = introduction.lines().next().unwrap();
    let endpoint = first.split_whitespace().last().unwrap();
    assert!(
        endpoint.starts_with("http://127.0.0.1:") && endpoint.ends_with("/mcp"),
        "{first}"
    );

    // Three callers, each with a key that works.
    let keys: Vec<(&str, &str)> = introduction
        .lines()
        .filter_map(|line| Some((line.split_whitespace().next()?, line.split_whitespace().last()?)))
        .filter(|(caller, key)| ["ada", "bob", "eve"].contains(caller) && key.starts_with("th_"))
        .collect();
    assert_eq!(
        keys.iter().map(|(caller, _)| *caller).collect::<Vec<_>>(),
        ["ada", "bob", "eve"]
    );
    for (caller, key) in &keys {
        assert!(!Mcp::modern(endpoint, key).tools().await.is_empty(), "{caller}");
    }
    let ada = keys[0].1;

    // The lines for clients name this endpoint and this key, in the form that each client reads.
    let bearer = format!("Bearer {ada}");
    let claude = behind(&introduction, "Claude Code");
    assert_eq!(
        claude,
        format!("claude mcp add --transport http tollhouse {endpoint} --header \"Authorization: {bearer}\"")
    );
    let cursor: Value = serde_json::from_str(behind(&introduction, "Cursor")).unwrap();
    assert_eq!(
        cursor,
        json!({"mcpServers":{"tollhouse":{"url":endpoint,"headers":{"Authorization":bearer}}}})
    );
    let code: Value = serde_json::from_str(behind(&introduction, "VS Code")).unwrap();
    assert_eq!(
        code,
        json!({"servers":{"tollhouse":{"type":"http","url":endpoint,"headers":{"Authorization":bearer}}}})
    );

    // The two calls that it proposes come out as it says, and the ledger grows while one looks.
    let client = Mcp::modern(endpoint, ada);
    let status = "billing_getInvoiceStatus";
    let own = client.call(status, json!({"invoice_id":"inv-1001"})).await;
    assert_eq!(own["structuredContent"]["status"], "open", "{own}");
    let foreign = client.call(status, json!({"invoice_id":"inv-2001"})).await;
    assert_eq!(foreign["isError"], true, "{foreign}");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let line = demo.line().await;
        if line.contains(status) {
            seen.push(line.split_whitespace().nth(1).unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["intent", "outcome", "refusal"]);
    assert_eq!(demo.end("-INT").await, Some(0));
    assert!(everything_in(&house).is_empty(), "its folder is removed");
}

#[tokio::test]
async fn a_demo_that_is_asked_to_end_ends_in_order() {
    let house = House::new();
    let (demo, _) = Demo::start(&house).await;
    assert_eq!(demo.end("-TERM").await, Some(0));
    assert!(everything_in(&house).is_empty());
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_the_way_out() {
    let house = House::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = run(&house, ["demo", "--listen", &address]).await.ended(69);
    assert_eq!(said.out, "");
    said.told(&format!("`{address}`")).told("--listen");
}
