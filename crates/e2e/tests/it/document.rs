//! The examples of the documents are run as they stand, one after the other, and answer as they say.
//!
//! A line that begins with `$ ` is given to a shell; what follows is what comes, on both outputs. Times, ids, digests,
//! keys, ports and durations stand there as somebody once saw them, and are compared by their form. A line `…` stands
//! for any number of lines.

use std::fmt::Write as _;

use e2e::example::Example;
use e2e::house::House;
use e2e::said::{run, shell};

/// One command of a document and what it answers.
struct Step {
    number: usize,
    command: String,
    answer: Vec<String>,
}

/// The commands in the blocks that are marked as `console`.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    // Whether the command goes on in the next line: behind a backslash, and up to the end of a text that it is given.
    let goes_on = |command: &str| {
        command.ends_with("\\\n") || (command.contains("<<'END'\n") && !command.ends_with("\nEND\n"))
    };
    for (index, line) in document.lines().enumerate() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            _ => match (line.strip_prefix("$ "), steps.last_mut()) {
                (_, Some(step)) if goes_on(&step.command) => step.command += &format!("{line}\n"),
                (Some(command), _) => steps.push(Step {
                    number: index + 1,
                    command: format!("{command}\n"),
                    answer: Vec::new(),
                }),
                (None, Some(step)) => step.answer.push(line.to_owned()),
                (None, None) => panic!("line {}: a block begins with a command", index + 1),
            },
        }
    }
    steps
}

/// A line with everything that differs from run to run replaced by its form.
fn form(line: &str) -> String {
    let mut out = String::new();
    let separates = |c: char| c.is_whitespace() || "\"',(){}[]`;/=".contains(c);
    for piece in line.split_inclusive(separates) {
        let word = piece.trim_end_matches(separates);
        let rest = &piece[word.len()..];
        let _ = write!(out, "{}{rest}", word_form(word));
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn word_form(word: &str) -> String {
    let end = word.trim_end_matches(['.', ':']);
    let tail = &word[end.len()..];
    let hex = |text: &str| text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let form = if end.parse::<jiff::Timestamp>().is_ok() {
        "TIME"
    } else if end.parse::<jiff::civil::Date>().is_ok() {
        "DATE"
    } else if uuid::Uuid::parse_str(end).is_ok() {
        "UUID"
    } else if end.starts_with("th_") && end.len() > 40 {
        "KEY"
    } else if ["sha256:", "hmac-sha256:", "ed25519:"]
        .iter()
        .any(|start| end.starts_with(start))
    {
        "DIGEST"
    } else if hex(end) {
        "HEX"
    } else if end.starts_with("127.0.0.1:") {
        "ADDRESS"
    } else if end.starts_with(|c: char| c.is_ascii_digit()) && (end.ends_with("ms") || end.ends_with("µs")) {
        "DURATION"
    } else if end.len() >= 4 && end.bytes().all(|byte| byte.is_ascii_digit()) {
        "NUMBER"
    } else {
        end
    };
    format!("{form}{tail}")
}

/// Whether lines are as a document says, where `…` stands for any number of them.
fn matches(said: &[String], written: &[String]) -> bool {
    match written.split_first() {
        None => said.is_empty(),
        Some((first, rest)) if first.trim() == "…" => (0..=said.len()).any(|at| matches(&said[at..], rest)),
        Some((first, rest)) => said
            .split_first()
            .is_some_and(|(line, others)| form(line) == form(first) && matches(others, rest)),
    }
}

async fn walk(house: &House, document: &str) {
    let steps = steps(document);
    assert!(!steps.is_empty());
    for step in steps {
        let said = shell(house, &format!("{{\n{}}} 2>&1", step.command)).await;
        let lines: Vec<String> = said.out.lines().map(str::to_owned).collect();
        assert!(
            matches(&lines, &step.answer),
            "line {}: $ {}it says:\n{}\nthe document says:\n{}\n",
            step.number,
            step.command,
            said.out,
            step.answer.join("\n")
        );
    }
}

#[tokio::test]
async fn the_reference_of_commands_says_what_happens() {
    let example = Example::start().await;
    walk(&example.house, include_str!("../../../../docs/cli.md")).await;
}

#[tokio::test]
async fn the_guide_to_rules_says_what_happens() {
    let example = Example::start().await;
    walk(
        &example.house,
        include_str!("../../../../docs/guides/policies.md"),
    )
    .await;
}

#[tokio::test]
async fn the_first_steps_can_be_walked() {
    let example = Example::start().await;
    // What the guide takes from the reader: a service with its document, a directory, a credential.
    let house = House::new()
        .with_file("billing.yaml", invoices::OPENAPI)
        .with_variable("API_TOKEN", e2e::example::CREDENTIAL)
        .with_variable("BILLING_URL", example.service.url())
        .with_variable(
            "DIRECTORY_URL",
            format!("sqlite:{}", example.service.database_path().display()),
        );
    walk(&house, include_str!("../../../../docs/guides/first-steps.md")).await;
}

/// Every flag of every command has a place in the reference, so that a new one cannot be forgotten.
#[tokio::test]
async fn the_reference_names_every_command_and_every_flag() {
    let document = include_str!("../../../../docs/cli.md");
    let house = House::new();
    let help = run(&house, ["--help"]).await.ended(0).out;
    let listed = |help: &str| -> Vec<String> {
        let (_, rest) = help.split_once("Commands:\n").unwrap_or_default();
        let lines = rest.lines().take_while(|line| !line.is_empty());
        lines
            .filter(|line| !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .filter(|name| name != "help")
            .collect()
    };
    let mut commands = Vec::new();
    for command in listed(&help) {
        let help = run(&house, [command.as_str(), "--help"]).await.ended(0).out;
        let under = listed(&help);
        if under.is_empty() {
            commands.push((command, help));
            continue;
        }
        for name in under {
            let help = run(&house, [command.as_str(), &name, "--help"])
                .await
                .ended(0)
                .out;
            commands.push((format!("{command} {name}"), help));
        }
    }
    assert_eq!(commands.len(), 26);
    for (command, help) in commands {
        let heading = format!("\n## `tollhouse {command}`");
        let (_, section) = document
            .split_once(&heading)
            .unwrap_or_else(|| panic!("docs/cli.md has no section on `{command}`"));
        let section = section.split("\n## ").next().unwrap();
        let flags = help
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|word| word.starts_with("--") && word.len() > 2);
        for flag in flags.filter(|flag| !["--help", "--config"].contains(flag)) {
            assert!(section.contains(flag), "docs/cli.md: `{command}` has no {flag}");
        }
    }
}

#[test]
fn forms_are_equal_where_only_the_run_differs() {
    for (one, other) in [
        (
            "2026-11-30T15:10:29.867757Z stop",
            "2026-12-01T00:00:00.000001Z stop",
        ),
        (
            "call 01a22d01-ea11-7162-8e10-966aa8916dfa,",
            "call 019ee0dc-8a86-7c02-9b63-1df9b9d0a3f4,",
        ),
        (
            "reached, http://127.0.0.1:7310 answered 401",
            "reached, http://127.0.0.1:40001 answered 401",
        ),
        ("1 sent in 14.207ms, call", "1 sent in 902.1µs, call"),
        ("a   b", "a b"),
    ] {
        assert_eq!(form(one), form(other));
    }
    for (one, other) in [
        ("answered 401", "answered 200"),
        ("5 tools are enabled", "4 tools are enabled"),
        ("refused: held", "refused: unknown-tool"),
    ] {
        assert_ne!(form(one), form(other));
    }
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&lines("a\nb\nc"), &lines("a\n…\nc")));
    assert!(matches(&lines("a\nc"), &lines("a\n…\nc")));
    assert!(!matches(&lines("a\nb"), &lines("a\n…\nc")));
    assert!(!matches(&lines("a\nb"), &lines("a")));
}
