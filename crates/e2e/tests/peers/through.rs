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

/// Why something does not pass, and the checks.
const LOST: [(&str, &[(&str, &str)]); 0] = [];

const TOOLS: [&str; 7] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
];
const PROMPTS: [&str; 4] = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
];
const RESOURCES: [(&str, &str, &str); 3] = [
    ("text", "uri", "test://static-text"),
    ("binary", "uri", "test://static-binary"),
    ("template", "template", "test://template/{id}/data"),
];

fn config(server: &str, porter: &str, revision: &str) -> String {
    let mut config = format!(
        "listen = \"127.0.0.1:0\"\npublic_url = \"{porter}\"\n[caller.suite]\n[policy]\nfolder = \"policy\"\n\
         [identity]\napi_keys = true\n\
         [upstream.test]\nurl = \"{server}\"\nrevision = \"{revision}\"\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\n"
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
of the suite. The test also holds that every check that passes at the server passes through the gate, in the same era and across.

The server has the tools, prompts, resources and completion that the suite calls by names of its own. It asks its client for
nothing and logs nothing, so the scenarios for that fail on both sides alike. More passes through the gate than directly where the
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
    let known: BTreeSet<(&str, &str)> = LOST
        .iter()
        .flat_map(|(_, checks)| checks.iter().copied())
        .collect();
    let unexplained: Vec<_> = lost
        .iter()
        .filter(|(_, name, check, _)| !known.contains(&(name.as_str(), check.as_str())))
        .collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    for (name, check) in known {
        assert!(
            lost.iter()
                .any(|(_, lost_name, lost_check, _)| lost_name == name && lost_check == check),
            "{name} {check} passes; take it out of the list"
        );
    }
    assert_document("docs/conformance-servers.md", &page);
}
