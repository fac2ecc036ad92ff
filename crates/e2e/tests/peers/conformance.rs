//! The official conformance suite against the gate: what passes, what is not for this server and why.
//!
//! Every check that the suite makes is accounted for: it passes, or it stands in [`OUTSIDE`] with the reason. A check that
//! stands there and passes is a failure too, so that the list cannot grow old. The outcome is `docs/conformance.md`,
//! written where `TOLLHOUSE_WRITE` is set and compared otherwise.
//!
//! The suite has no way to give a token, so it goes through a porter that adds one. It calls tools by names of its own,
//! such as `test_simple_text`; the gate of this test has those that an HTTP service can stand behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use axum::body::Body;
use axum::response::Response;
use e2e::driver::{self, HOW};
use e2e::house::{House, text};
use e2e::peer;
use e2e::porter::Porter;
use e2e::service::{Service, json as answer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// The suite, and its version as `peers/package.json` has it.
const SUITE: &str = "@modelcontextprotocol/conformance";

/// How the suite is asked for what each revision requires. It has fixed lists for the two newest.
const RUNS: [(&str, &[&str]); 4] = [
    ("2025-03-26", &["--suite", "all", "--spec-version", "2025-03-26"]),
    ("2025-06-18", &["--suite", "all", "--spec-version", "2025-06-18"]),
    ("2025-11-25", &["--requirements", "2025-11-25"]),
    ("2026-07-28", &["--requirements", "2026-07-28"]),
];

/// What is not for this server: why, and the scenarios with those of their checks that do not pass.
type Outside = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const OUTSIDE: &[Outside] = &[
    (
        "The server has tools only. It does not say that it has resources, prompts, completion or logging, and answers \
         their methods with `-32601`.",
        &[
            (
                "caching",
                &[
                    "sep-2549-prompts-list-caching-hints",
                    "sep-2549-resources-list-caching-hints",
                    "sep-2549-resources-read-caching-hints",
                    "sep-2549-resources-templates-list-caching-hints",
                ],
            ),
            ("completion-complete", &["completion-complete"]),
            (
                "input-required-result-non-tool-request",
                &["sep-2322-non-tool-incomplete"],
            ),
            ("logging-set-level", &["logging-set-level"]),
            (
                "prompts-get-embedded-resource",
                &["prompts-get-embedded-resource"],
            ),
            ("prompts-get-simple", &["prompts-get-simple"]),
            ("prompts-get-with-args", &["prompts-get-with-args"]),
            ("prompts-get-with-image", &["prompts-get-with-image"]),
            ("prompts-list", &["prompts-list"]),
            ("resources-list", &["resources-list"]),
            ("resources-read-binary", &["resources-read-binary"]),
            ("resources-read-text", &["resources-read-text"]),
            ("resources-subscribe", &["resources-subscribe"]),
            ("resources-templates-read", &["resources-templates-read"]),
            ("resources-unsubscribe", &["resources-unsubscribe"]),
            (
                "sep-2164-resource-not-found",
                &["sep-2164-data-uri", "sep-2164-error-code"],
            ),
            ("server-stateless", &["sep-2575-server-no-log-without-loglevel"]),
            ("tools-call-with-logging", &["tools-call-with-logging"]),
        ],
    ),
    (
        "A tool is an operation of an HTTP service that answers with JSON or text. No image, sound or embedded resource \
         comes out of one.",
        &[
            ("tools-call-audio", &["tools-call-audio"]),
            ("tools-call-embedded-resource", &["tools-call-embedded-resource"]),
            ("tools-call-image", &["tools-call-image"]),
            ("tools-call-mixed-content", &["tools-call-mixed-content"]),
        ],
    ),
    (
        "The server never asks the client for anything: it makes no requests of its own, no result of it requires input, \
         and no tool requires a capability of the client.",
        &[
            ("elicitation-sep1034-defaults", &["elicitation-sep1034-general"]),
            ("elicitation-sep1330-enums", &["elicitation-sep1330-general"]),
            (
                "input-required-result-basic-elicitation",
                &["sep-2322-elicitation-incomplete"],
            ),
            (
                "input-required-result-basic-list-roots",
                &["sep-2322-list-roots-incomplete"],
            ),
            (
                "input-required-result-basic-sampling",
                &["sep-2322-sampling-incomplete"],
            ),
            (
                "input-required-result-capability-check",
                &["sep-2322-respect-client-capabilities"],
            ),
            (
                "input-required-result-ignore-extra-params",
                &["sep-2322-ignore-unexpected-params"],
            ),
            (
                "input-required-result-missing-input-response",
                &["sep-2322-missing-response-rerequests"],
            ),
            ("input-required-result-multi-round", &["sep-2322-multi-round-r1"]),
            (
                "input-required-result-multiple-input-requests",
                &["sep-2322-multiple-inputs-incomplete"],
            ),
            (
                "input-required-result-request-state",
                &["sep-2322-request-state-incomplete"],
            ),
            (
                "input-required-result-result-type",
                &["sep-2322-result-type-included"],
            ),
            (
                "input-required-result-tampered-state",
                &["sep-2322-reject-tampered-state"],
            ),
            (
                "server-stateless",
                &[
                    "sep-2575-http-server-no-independent-requests-on-stream",
                    "sep-2575-missing-capability-http-400",
                    "sep-2575-server-rejects-undeclared-capability",
                ],
            ),
            ("tools-call-elicitation", &["tools-call-elicitation"]),
            ("tools-call-sampling", &["tools-call-sampling"]),
        ],
    ),
    (
        "The list of tools does not change while the server runs, and the server does not say that it announces changes.",
        &[(
            "server-stateless",
            &[
                "sep-2575-server-honors-notification-filter",
                "sep-2575-server-sends-prompts-list-changed-on-subscription",
                "sep-2575-server-sends-subscription-ack",
                "sep-2575-server-sends-tools-list-changed-on-subscription",
                "sep-2575-server-tags-subscription-id",
            ],
        )],
    ),
    (
        "Input schemas are made from the service's document. None asks clients to copy an argument into a header, and \
         none is the one that the suite wants to find again word for word.",
        &[
            (
                "http-custom-header-server-validation",
                &[
                    "sep-2243-server-decode-base64",
                    "sep-2243-server-no-xmcp-tool",
                    "sep-2243-server-reject-invalid-param-chars",
                    "sep-2243-server-reject-param-mismatch",
                    "sep-2243-server-validate-param-match",
                ],
            ),
            ("json-schema-2020-12", &["json-schema-2020-12-tool-found"]),
        ],
    ),
    (
        "Tasks are an extension that the server does not have.",
        &[
            (
                "tasks-capability-negotiation",
                &[
                    "sep-2663-server-rejects-undeclared-client",
                    "sep-2663-tasks-methods-non-declaring",
                    "tasks-extension-advertised",
                    "tasks-per-request-meta-opt-in",
                ],
            ),
            (
                "tasks-dispatch-and-envelope",
                &[
                    "sep-2663-durable-create-strong-consistency",
                    "sep-2663-legacy-task-param-ignored",
                    "sep-2663-tasks-get-invalid-task-id-32602",
                    "tasks-immediate-result-shortcut",
                    "tasks-result-type-complete-on-non-task-responses",
                    "tasks-server-directed-creation-no-hint",
                ],
            ),
            (
                "tasks-lifecycle",
                &[
                    "sep-2663-cancel-ack-empty-result",
                    "sep-2663-result-type-task-on-create",
                    "sep-2663-tasks-get-status-completed",
                    "sep-2663-tasks-get-status-failed",
                    "sep-2663-tasks-get-status-working",
                    "sep-2663-tool-error-uses-completed-status",
                    "tasks-cancel-terminal-idempotent-ack",
                    "tasks-sync-tool-call",
                ],
            ),
            (
                "tasks-mrtr-composition",
                &["sep-2663-mrtr-synchronous-before-task-creation"],
            ),
            (
                "tasks-mrtr-input",
                &[
                    "sep-2663-tasks-get-status-input-required",
                    "tasks-mrtr-partial-fulfillment",
                    "tasks-mrtr-tasks-update-resumes",
                ],
            ),
            (
                "tasks-request-headers",
                &[
                    "sep-2663-routing-headers-accepted-on-tasks-get",
                    "sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get",
                    "tasks-headers-tolerate-mcp-method-on-tools-call",
                ],
            ),
            (
                "tasks-request-state-removal",
                &["tasks-request-state-removal-setup"],
            ),
            (
                "tasks-required-task-error",
                &["sep-2663-server-returns-missing-capability-when-required"],
            ),
            ("tasks-status-notifications", &["tasks-status-notifications"]),
            (
                "tasks-wire-fields",
                &[
                    "tasks-no-early-ttl-expiry",
                    "tasks-no-related-task-meta-on-inlined-result",
                    "tasks-wire-field-renames",
                ],
            ),
        ],
    ),
];

/// A scenario's checks by what came of them.
#[derive(Debug, Default)]
pub(crate) struct Scenario {
    pub(crate) passed: usize,
    pub(crate) other: BTreeMap<String, String>,
}

/// The scenarios of a revision by name.
pub(crate) type Report = BTreeMap<String, Scenario>;

const CONFIG: &str = r#"
listen = "127.0.0.1:0"
public_url = "PORTER"

[caller.suite]
tenant = "north"

[policy]
folder = "policy"

[limits]
progress_interval = "20ms"

[upstream.test]
openapi = "test.json"
destination = "SERVICE"
network = { allow = ["127.0.0.1/32"] }

[upstream.test.tool.simple_text]
operation = "text"
class = "read"

[upstream.test.tool.error_handling]
operation = "error"
class = "read"

[upstream.test.tool.tool_with_progress]
operation = "slow"
class = "read"
"#;

const POLICY: &str = r#"
@id("the-suite-may-read")
permit (principal is Caller, action in Action::"class:read", resource);
"#;

/// How long the slow operation takes, for the suite to see at least three reports of progress meanwhile.
const SLOW: std::time::Duration = std::time::Duration::from_millis(600);

fn document() -> String {
    let operation = |id: &str| {
        json!({"get":{"operationId":id,"summary":id,"description":"An operation for the suite.","responses":{"200":{
            "description":"A text.","content":{"application/json":{"schema":
                {"type":"object","properties":{"text":{"type":"string"}}}}}}}}})
    };
    json!({
        "openapi":"3.1.0",
        "info":{"title":"Test","version":"1"},
        "paths":{"/text":operation("text"),"/error":operation("error"),"/slow":operation("slow")},
    })
    .to_string()
}

/// An answer whose body takes [`SLOW`].
fn slowly(body: &Value) -> Response {
    let text = body.to_string();
    let body = futures_util::stream::once(async move {
        tokio::time::sleep(SLOW).await;
        Ok::<_, std::io::Error>(text)
    });
    answer(200, &Value::Null).map(|_| Body::from_stream(body))
}

/// Runs the suite against the endpoint; `None` where it is not installed.
pub(crate) async fn run(url: &str, arguments: &[&str]) -> Option<Report> {
    report(["server", "--url", url], arguments, |_| ()).await
}

/// What the suite says of a program that it runs as a client.
pub(crate) async fn run_client(
    command: &str,
    arguments: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> Option<Report> {
    report(["client", "--command", command], arguments, prepare).await
}

async fn report(
    [kind, key, value]: [&str; 3],
    arguments: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> Option<Report> {
    let Some(mut suite) = driver::npm(&format!("{SUITE}/dist/index.js")) else {
        peer::missing("the official conformance suite", HOW);
        return None;
    };
    let folder = TempDir::new().unwrap();
    suite
        .args([kind, key, value, "--output-dir"])
        .arg(folder.path())
        .args(arguments);
    prepare(&mut suite);
    // Its exit code only says whether every scenario passed, and not every scenario is for this server.
    let output = driver::run(suite).await;
    let mut report = Report::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // server-<scenario>-2026-11-30T15-22-47-170Z, and without the first part where a client was run.
        let name = name.strip_prefix("server-").unwrap_or(&name);
        let name = &name[..name.len() - "-2026-11-30T15-22-47-170Z".len()];
        let checks = std::fs::read(entry.path().join("checks.json")).unwrap();
        let checks: Value = serde_json::from_slice(&checks).unwrap();
        let scenario = report.entry(name.to_owned()).or_default();
        for check in checks.as_array().unwrap() {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => scenario.passed += 1,
                "INFO" => {}
                status => {
                    let id = check["id"].as_str().unwrap().to_owned();
                    let message = check["errorMessage"].as_str().unwrap_or_default();
                    scenario.other.insert(id, format!("{status} {message}"));
                }
            }
        }
    }
    assert!(
        !report.is_empty(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    Some(report)
}

/// Why a check is not for this server: the place of the reason.
fn outside(scenario: &str, check: &str) -> Option<usize> {
    OUTSIDE.iter().position(|(_, scenarios)| {
        scenarios
            .iter()
            .any(|(name, checks)| *name == scenario && checks.contains(&check))
    })
}

#[tokio::test]
async fn every_check_of_the_official_suite_passes_or_is_not_for_this_server() {
    let service = Service::start(|arrived| match arrived.target.as_str() {
        "/error" => answer(500, &json!({"text":"it failed"})),
        "/slow" => slowly(&json!({"text":"a text"})),
        _ => answer(200, &json!({"text":"a text"})),
    })
    .await;
    let porter = Porter::new().await;
    let url = format!("{}/mcp", porter.url());
    let config = CONFIG
        .replace("PORTER", &porter.url())
        .replace("SERVICE", &service.url());
    let house = House::new()
        .with_file("tollhouse.toml", config)
        .with_file("test.json", document())
        .with_file("policy/suite.cedar", POLICY);
    let key = house.key("suite").await;
    let gate = house.serve().await;
    porter.open(gate.authority(), &key);

    let mut reports = Vec::new();
    for (revision, arguments) in RUNS {
        let Some(report) = run(&url, arguments).await else {
            return;
        };
        reports.push((revision, report));
    }
    let mut unexplained = Vec::new();
    let mut seen = BTreeSet::new();
    for (revision, report) in &reports {
        for (name, scenario) in report {
            for (check, message) in &scenario.other {
                seen.insert((name.as_str(), check.as_str()));
                if outside(name, check).is_none() {
                    unexplained.push(format!("{revision} {name} {check}: {message}"));
                }
            }
        }
    }
    assert_eq!(unexplained, Vec::<String>::new(), "{}", gate.log());
    for (_, scenarios) in OUTSIDE {
        for (name, checks) in *scenarios {
            for check in *checks {
                assert!(
                    seen.contains(&(*name, *check)),
                    "{name} {check} passes or is gone; take it out of the list"
                );
            }
        }
    }
    assert_document("docs/conformance.md", &document_of(&reports));
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// The outcome as a document.
fn document_of(reports: &[(&str, Report)]) -> String {
    let mut page = String::from(HEAD);
    for (number, (why, _)) in OUTSIDE.iter().enumerate() {
        let _ = writeln!(page, "{}. {why}", number + 1);
    }
    for (revision, report) in reports {
        let passed: usize = report.values().map(|scenario| scenario.passed).sum();
        let other: usize = report.values().map(|scenario| scenario.other.len()).sum();
        let _ = write!(
            page,
            "\n## {revision}\n\n{passed} checks of {} scenarios pass, {other} are not for this server.\n\n\
             | scenario | pass | not for this server | why |\n| --- | --- | --- | --- |\n",
            report.len()
        );
        for (name, scenario) in report {
            let reasons: BTreeSet<usize> = scenario
                .other
                .keys()
                .filter_map(|check| outside(name, check))
                .collect();
            let reasons: Vec<String> = reasons.iter().map(|number| (number + 1).to_string()).collect();
            let other: Vec<String> = scenario.other.keys().map(|check| format!("`{check}`")).collect();
            let _ = writeln!(
                page,
                "| {name} | {} | {} | {} |",
                scenario.passed,
                other.join(", "),
                reasons.join(", ")
            );
        }
    }
    page
}

const HEAD: &str = "\
# Conformance

What comes of the official conformance suite of MCP against a running gate. This page is written by `cargo xtask \
conformance`, and a test compares it with each run of the suite, so it is what the suite says today.

The suite has no way to give a token. It goes through a small proxy that adds one; nothing is switched off in the gate \
for it. It calls tools by names of its own, such as `test_simple_text`; the gate of this test has those of them that an \
HTTP service can stand behind. The suite has no scenarios for 2024-11-05, and none for standard input and output.

A check passes, or it is not for this server, for one of these reasons:

";

/// Holds the document against the one in the repository, or writes that.
pub(crate) fn assert_document(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("TOLLHOUSE_WRITE").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        written, page,
        "{name} is not what the suite says; `cargo xtask conformance` writes it"
    );
}
