//! The official conformance suite with the gate as the client under test: `tollhouse connect` in front of the suite's servers, as a
//! developer starts it, driven by the official SDK. What OAuth asks of clients is not among it.

use std::fmt::Write as _;

use e2e::binary::tollhouse;
use e2e::driver::{self, HOW};
use e2e::peer;
use tempfile::TempDir;

use crate::conformance::{assert_document, run_client};

/// What each revision requires of clients, aside from OAuth, and one that it does not require.
const SCENARIOS: [(&str, &str); 12] = [
    ("2025-11-25", "initialize"),
    ("2025-11-25", "tools_call"),
    ("2025-11-25", "elicitation-sep1034-client-defaults"),
    ("2025-11-25", "sse-retry"),
    ("2026-07-28", "tools_call"),
    ("2026-07-28", "request-metadata"),
    ("2026-07-28", "sep-2322-client-request-state"),
    ("2026-07-28", "http-standard-headers"),
    ("2026-07-28", "http-custom-headers"),
    ("2026-07-28", "http-invalid-tool-headers"),
    ("2026-07-28", "json-schema-ref-no-deref"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
];

/// The check and why it does not pass.
const OTHER: [(&str, &str); 1] = [(
    "sep-2243-client-omit-null",
    "The suite calls its tool with `null` for an argument that its schema says is a boolean. The gate refuses arguments that do not \
     fit.",
)];

const HEAD: &str = "\
# Conformance as a client

The official conformance suite of MCP with the gate as the client under test: `tollhouse connect` stands in front of each of the suite's
servers as a developer starts it, and the official TypeScript SDK (generation 2) calls it over standard input and output. This page is
written by `cargo xtask conformance`, and a test compares it with each run of the suite. All scenarios are there that a revision requires of clients
(`json-schema-2020-12-preservation` is one that it does not), but those of OAuth: towards servers the gate gets no tokens for people.

| suite | scenario | pass | other |
| --- | --- | --- | --- |
";

#[tokio::test]
async fn what_is_required_of_clients_is_done_by_the_gate() {
    let Some(line) = driver::line_of("client-conformance.mjs") else {
        peer::missing("Node.js", HOW);
        return;
    };
    let mut page = String::from(HEAD);
    let mut reasons = Vec::new();
    for (revision, scenario) in SCENARIOS {
        let state = TempDir::new().unwrap();
        let arguments = ["--scenario", scenario, "--spec-version", revision];
        let report = run_client(&line, &arguments, |suite| {
            suite
                .env("TOLLHOUSE", tollhouse())
                .env("STATE", state.path())
                .current_dir(driver::peers().join("node"));
        })
        .await;
        let Some(report) = report else { return };
        let found = &report[scenario];
        assert!(found.passed > 0, "{revision} {scenario}: {:?}", found.other);
        let mut other = Vec::new();
        for (check, message) in &found.other {
            // What the suite itself leaves out, as of another era, is neither.
            if message.starts_with("SKIPPED") {
                continue;
            }
            let why = OTHER.iter().position(|(known, _)| known == check);
            let why = why.unwrap_or_else(|| panic!("{revision} {scenario}: {check}: {message}"));
            reasons.push(why);
            other.push(format!("`{check}`"));
        }
        let _ = writeln!(
            page,
            "| {revision} | {scenario} | {} | {} |",
            found.passed,
            other.join(", ")
        );
    }
    page.push('\n');
    for (number, (check, why)) in OTHER.iter().enumerate() {
        assert!(
            reasons.contains(&number),
            "{check} passes; take it out of the list"
        );
        let _ = writeln!(page, "`{check}`: {why}");
    }
    assert_document("docs/conformance-client.md", &page);
}
