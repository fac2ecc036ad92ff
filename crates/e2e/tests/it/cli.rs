//! The command line as a whole: help, exit codes, where the configuration is, pipes that close.

use std::process::Stdio;

use e2e::client::Mcp;
use e2e::example::{Example, everything_in};
use e2e::house::{Gate, House, PATIENCE, text};
use e2e::said::{Said, run, shell, shell_command};
use serde_json::json;

/// Every command.
const COMMANDS: [&str; 26] = [
    "demo",
    "serve",
    "wrap",
    "connect",
    "check",
    "review",
    "explain",
    "tools",
    "probe",
    "names",
    "pins list",
    "pins diff",
    "pins approve",
    "call",
    "audit tail",
    "audit show",
    "audit verify",
    "audit export",
    "approve",
    "keys add",
    "keys list",
    "keys revoke",
    "schema",
    "init",
    "completions",
    "man",
];

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

#[tokio::test]
async fn every_command_explains_itself() {
    let house = House::new();
    let whole = run(&house, ["--help"]).await.ended(0);
    let listed: Vec<&str> = whole
        .out
        .split_once("Commands:\n")
        .and_then(|(_, rest)| rest.split_once("\n\n"))
        .map(|(commands, _)| commands)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| words(line).next())
        .filter(|command| *command != "help")
        .collect();
    let mut expected: Vec<&str> = COMMANDS.iter().filter_map(|line| words(line).next()).collect();
    expected.dedup();
    assert_eq!(listed, expected, "COMMANDS is every command");
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let said = run(&house, words(command).chain([flag])).await.ended(0);
            assert!(said.err.is_empty(), "{said:?}");
            said.printed(&format!("Usage: tollhouse {command}"));
        }
    }
    let version = run(&house, ["--version"]).await.ended(0);
    assert_eq!(version.out, format!("tollhouse {}\n", env!("CARGO_PKG_VERSION")));
    assert!(everything_in(&house).is_empty());
}

#[tokio::test]
async fn a_wrong_command_line_ends_with_2_and_says_where() {
    let house = House::new();
    for (line, expected) in [
        ("", "Usage: tollhouse <COMMAND>"),
        ("chek", "'schema', 'check'"),
        ("tools --jsn", "--json"),
        ("tools --held --as ada", "cannot be used with"),
        ("call --as ada", "<TOOL>"),
        ("call billing_x", "--as <CALLER>"),
        ("serve --stdio --listen 127.0.0.1:0", "cannot be used with"),
        ("serve --listen localhost", "invalid socket address"),
        ("audit", "Usage: tollhouse audit <COMMAND>"),
        ("audit tail -n 0", "0 is not in 1..=10000"),
        ("audit tail -n 10001", "10001 is not in 1..=10000"),
        ("audit export --since yesterday", "yesterday"),
        ("completions fsh", "fish"),
        ("check tollhouse.toml", "unexpected argument"),
    ] {
        let said = run(&house, words(line)).await.ended(2).told(expected);
        assert!(said.out.is_empty(), "{line}: {said:?}");
    }
    assert!(everything_in(&house).is_empty());
}

#[tokio::test]
async fn a_missing_configuration_names_the_command_that_writes_one() {
    let house = House::new();
    for line in [
        "serve",
        "serve --stdio",
        "check",
        "check --offline",
        "explain --as ada billing_x",
        "tools",
        "tools --held",
        "names",
        "names --write",
        "call --as ada billing_x",
        "audit tail",
        "audit show 019ee0dc-8a86-7c02-9b63-1df9b9d0a3f4",
        "audit verify",
        "audit export",
        "keys add ada",
        "keys list",
        "keys revoke abc",
        "schema --policy",
    ] {
        let said = run(&house, words(line)).await.ended(78);
        assert_eq!(
            said.err.lines().next(),
            Some(
                "tollhouse.toml: this file is not there; check its path, or write a first one with `tollhouse init`"
            ),
            "{line}"
        );
        assert!(said.out.is_empty(), "{line}: {said:?}");
    }
    assert!(
        everything_in(&house).is_empty(),
        "nothing is started and nothing written"
    );
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_is_one_clear_fault() {
    let house = House::new()
        .with_file("latin.toml", b"listen = \"\xe4\"")
        .with_file("empty.toml", "")
        .with_file("folder.toml/file", "");
    for (file, expected) in [
        ("latin.toml", "latin.toml:1:11: this file is not UTF-8"),
        ("empty.toml", "empty.toml: upstream: this key is missing"),
        ("folder.toml", "folder.toml: this file is a folder, not a file"),
    ] {
        run(&house, ["check", "--offline", "--config", file])
            .await
            .ended(78)
            .told(expected)
            .told("; nothing was started");
    }
}

#[tokio::test]
async fn the_configuration_is_where_the_flag_says_else_where_the_variable_says() {
    let example = Example::start().await;
    let house = &example.house;
    for name in ["tollhouse.toml", "openapi.yaml", "policy/invoices.cedar"] {
        let content = std::fs::read(house.path(name)).unwrap();
        house.write(&format!("other/dir/{name}"), content);
    }
    std::fs::remove_file(house.path("tollhouse.toml")).unwrap();
    run(house, ["keys", "add", "ada"]).await.ended(78);
    run(
        house,
        ["keys", "add", "ada", "--config", "other/dir/tollhouse.toml"],
    )
    .await
    .ended(0);
    assert!(
        house.path("other/dir/tollhouse.db").is_file() && !house.path("tollhouse.db").exists(),
        "the store is relative to the configuration's folder, not to the current one"
    );
    let line = "TOLLHOUSE_CONFIG=other/dir/tollhouse.toml tollhouse keys list --json";
    let listed = shell(house, line).await.ended(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    shell(house, &format!("{line} --config nowhere.toml"))
        .await
        .ended(78)
        .told("nowhere.toml: this file is not there");
    // From another folder, by an absolute path.
    let absolute = house.path("other/dir/tollhouse.toml");
    let line = format!(
        "cd / && tollhouse keys list --json --config {}",
        absolute.display()
    );
    assert_eq!(shell(house, &line).await.ended(0).json(), listed);
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_defect() {
    let example = Example::start().await;
    run(&example.house, ["keys", "add", "ada"]).await.ended(0);
    for (line, code) in [
        ("--help", 0),
        ("schema", 0),
        ("schema --policy", 0),
        ("completions bash", 0),
        ("completions zsh", 0),
        ("tools", 0),
        ("tools --held --json", 0),
        ("names", 0),
        ("names --json", 0),
        ("tools --as ada", 0),
        ("check --offline", 0),
        ("keys list", 0),
        ("keys add ada", 0),
        ("audit tail", 0),
        ("audit export", 0),
        ("demo --once", 0),
        ("explain --as ada billing_listInvoices", 0),
        ("explain --as eve billing_listInvoices", 1),
        ("call --as ada billing_listInvoices", 0),
        ("audit verify", 0),
        ("check --config nowhere.toml", 78),
        ("call --as nobody billing_x", 66),
    ] {
        // Closed before the first byte, so that every write fails; both ends of output, one after the other.
        for whole in [false, true] {
            let mut child = example
                .house
                .command(words(line))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            drop(child.stdout.take());
            if whole {
                drop(child.stderr.take());
            }
            let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
            let output = ended.expect("the command ends").unwrap();
            let err = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{line}: {err}");
            assert!(!err.contains("panicked"), "{line}: {err}");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_result_that_does_not_arrive_is_a_failure() {
    let house = House::new();
    for line in ["schema", "completions fish"] {
        shell(&house, &format!("tollhouse {line} > /dev/full"))
            .await
            .ended(69)
            .told("tollhouse: standard output cannot be written: ");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_gate_whose_log_nobody_reads_goes_on() {
    let example = Example::start().await;
    let key = example.house.key("ada").await;
    // Every write to standard error fails, and at this level there are many.
    let line = "TOLLHOUSE_LOG=trace exec tollhouse serve --listen 127.0.0.1:0 2> /dev/full";
    let gate = Gate::start(shell_command(&example.house, line)).await;
    let ada = Mcp::modern(&gate.url, &key);
    for _ in 0..3 {
        let result = ada
            .call("billing_getInvoiceStatus", json!({"invoice_id":"inv-1001"}))
            .await;
        assert_eq!(result["structuredContent"]["status"], "open", "{result}");
    }
    let (code, _) = gate.close().await;
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn nothing_that_is_piped_is_coloured() {
    let example = Example::start().await;
    for line in [
        "--help",
        "help call",
        "chek",
        "tools",
        "tools --held",
        "check",
        "check --config nowhere.toml",
        "explain --as ada billing_listInvoices",
        "call --as ada billing_listInvoices",
        "audit tail",
        "demo --once",
    ] {
        let Said { out, err, .. } = run(&example.house, words(line)).await;
        assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{line}");
        for text in out.lines() {
            assert_eq!(text, text.trim_end(), "{line}: blanks at the end of a line");
        }
    }
}
