//! The official conformance suite against a server on the official SDK, directly and through the gate: what passes directly
//! passes through it, in the same era and across.
//!
//! What does not stands in [`LOST`] with the reason; what stands there and passes is a failure too.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use e2e::behind::Behind;
use e2e::house::{House, text};
use e2e::porter::Porter;

use crate::conformance::{assert_document, run};

/// What the suite is asked for, and the revision that the gate speaks with the server.
const CELLS: [(&str, &str); 4] = [
    ("2025-11-25", "2025-11-25"),
    ("2025-11-25", "2026-07-28"),
    ("2026-07-28", "2025-11-25"),
    ("2026-07-28", "2026-07-28"),
];

/// The cell, the check and why it does not pass.
const LOST: [(&str, &str, &str); 5] = [
    (
        "2026-07-28 to 2025-11-25",
        "sep-2322-elicitation-incomplete",
        "The server asks by a request, which has no name; the suite wants to find one of its own.",
    ),
    (
        "2026-07-28 to 2025-11-25",
        "sep-2575-server-rejects-undeclared-capability",
        "In the older era the server says that its client cannot be asked in a failed result, not in an error with this code.",
    ),
    (
        "2026-07-28 to 2025-11-25",
        "sep-2575-missing-capability-http-400",
        "The same.",
    ),
    (
        "",
        "sep-2322-ignore-unexpected-params",
        "Every question that passes through the gate has a state. Answers without one belong to nothing: the call is asked anew.",
    ),
    (
        "",
        "server-sse-disconnect-resume",
        "Pending in the suite. The server has no tool `test_reconnection`, and directly the scenario ends before it looks for it.",
    ),
];

const TOOLS: [&str; 25] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_capabilities",
    "test_streaming_elicitation",
    "test_missing_capability",
    "json_schema_2020_12_tool",
    "test_headers",
];
const PROMPTS: [&str; 5] = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
];
const RESOURCES: [(&str, &str, &str); 4] = [
    ("watched", "uri", "test://watched-resource"),
    ("text", "uri", "test://static-text"),
    ("binary", "uri", "test://static-binary"),
    ("template", "template", "test://template/{id}/data"),
];

fn config(server: &str, porter: &str, revision: &str) -> String {
    let mut config = format!(
        "listen = \"127.0.0.1:0\"\npublic_url = \"{porter}\"\n[caller.suite]\n[policy]\nfolder = \"policy\"\n\
         [identity]\napi_keys = true\n\
         [upstream.test]\nurl = \"{server}\"\nrevision = \"{revision}\"\nmay_ask = [\"elicitation\", \"sampling\", \"roots\"]\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\n"
    );
    for tool in TOOLS {
        let _ = write!(config, "[upstream.test.tool.{tool}]\nclass = \"read\"\n");
    }
    for prompt in PROMPTS {
        let _ = writeln!(config, "[upstream.test.prompt.{prompt}]");
    }
    for (name, key, uri) in RESOURCES {
        let _ = write!(config, "[upstream.test.resource.{name}]\n{key} = \"{uri}\"\n");
    }
    config
}

const HEAD: &str = "\
# Conformance of servers behind the gate

The official conformance suite of MCP against a server on the official TypeScript SDK (generation 2), directly and through the
endpoint of that one upstream, `/mcp/test`. This page is written by `cargo xtask conformance`, and a test compares it with each run
of the suite. The test also holds that every check that passes at the server passes through the gate, in the same era and across, but for
those of the second table.

The server has everything that the suite calls by names of its own, but tasks, an extension. More passes through the gate than directly where the
gate itself keeps a rule that the server leaves out, such as the check of `Origin`.

| suite | revision that the gate speaks with the server | checks that pass directly | through the gate |
| --- | --- | --- | --- |
";

#[tokio::test]
async fn what_passes_at_a_server_passes_through_the_gate() {
    let mut lost = BTreeSet::new();
    let mut page = String::from(HEAD);
    for (suite, revision) in CELLS {
        let Some(server) = Behind::for_the_suite().await else {
            return;
        };
        let arguments = ["--requirements", suite];
        let Some(direct) = run(&server.url, &arguments).await else {
            return;
        };
        let porter = Porter::new().await;
        let url = format!("{}/mcp/test", porter.url());
        let house = House::new()
            .with_file("tollhouse.toml", config(&server.url, &porter.url(), revision))
            .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
        let approved = house.run(["pins", "approve", "test", "--all"]).await;
        assert!(approved.status.success(), "{}", text(&approved.stderr));
        let key = house.key("suite").await;
        let gate = house.serve().await;
        porter.open(gate.authority(), &key);
        let through = run(&url, &arguments).await.unwrap();
        let mut passed = 0;
        for (name, scenario) in &direct {
            let there = &through[name];
            passed += there.passed;
            for (check, message) in &there.other {
                if !scenario.other.contains_key(check) {
                    lost.insert((
                        format!("{suite} to {revision}"),
                        name.clone(),
                        check.clone(),
                        message.clone(),
                    ));
                }
            }
        }
        let directly: usize = direct.values().map(|scenario| scenario.passed).sum();
        let _ = writeln!(page, "| {suite} | {revision} | {directly} | {passed} |");
        assert!(
            passed > 20,
            "{suite} to {revision}: the suite did not run: {passed}"
        );
        let (code, log) = gate.close().await;
        assert_eq!(code, Some(0), "{log}");
    }
    let is = |(cell, check, _): &(&str, &str, &str),
              (lost_cell, _, lost_check, _): &(String, String, String, String)| {
        (cell.is_empty() || *cell == lost_cell) && *check == lost_check
    };
    let unexplained: Vec<_> = lost
        .iter()
        .filter(|lost| !LOST.iter().any(|known| is(known, lost)))
        .collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    page.push_str(
        "\nWhat passes directly and not through the gate:\n\n| cell | check | why |\n| --- | --- | --- |\n",
    );
    for known in &LOST {
        assert!(
            lost.iter().any(|lost| is(known, lost)),
            "{} passes; take it out of the list",
            known.1
        );
        let cell = if known.0.is_empty() {
            "all of its suite"
        } else {
            known.0
        };
        let _ = writeln!(page, "| {cell} | `{}` | {} |", known.1, known.2);
    }
    assert_document("docs/conformance-servers.md", &page);
}
