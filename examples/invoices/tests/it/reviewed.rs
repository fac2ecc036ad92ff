//! The reviewed configuration and its rules fit the document: no name in them is left over.
//!
//! Whether a gate accepts them and decides as they say is tested where the gate is.

use std::collections::BTreeSet;

use invoices::{CONFIG, DATABASE_VARIABLE, Operation, POLICY, TOKEN_VARIABLE, URL_VARIABLE};
use toml::{Table, Value};

fn tools() -> Table {
    let config: Table = CONFIG.parse().unwrap();
    config["upstream"]["billing"]["tool"].as_table().unwrap().clone()
}

#[test]
fn every_tool_is_an_operation_of_the_document() {
    let known = Operation::ALL.map(Operation::id);
    for (name, tool) in tools() {
        let operation = tool["operation"].as_str().unwrap();
        assert!(known.contains(&operation), "{name}: {operation}");
    }
}

#[test]
fn every_rule_is_for_a_tool_and_every_tool_has_a_rule() {
    let tools: BTreeSet<_> = tools().keys().map(|name| format!("billing_{name}")).collect();
    let ruled: BTreeSet<_> = POLICY
        .split("action == Action::\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    assert_eq!(ruled, tools);
    let rules = POLICY.matches("permit (").count() + POLICY.matches("forbid (").count();
    assert_eq!(POLICY.matches("@id(").count(), rules);
}

#[test]
fn every_tool_looks_up_membership_before_it_is_called() {
    for (name, tool) in tools() {
        let member = &tool["facts"]["member"];
        assert_eq!(member["source"].as_str(), Some("directory"), "{name}");
        assert_eq!(member["type"].as_str(), Some("truth"), "{name}");
        // An owner of one invoice is looked up; a list is the caller's own scope, which it cannot set.
        let looked_up = tool.get("owner").is_some();
        let scoped = tool.get("scope").is_some();
        assert!(looked_up != scoped, "{name}");
    }
}

#[test]
fn everything_that_changes_at_run_time_and_every_secret_comes_from_the_environment() {
    let config: Table = CONFIG.parse().unwrap();
    let billing = &config["upstream"]["billing"];
    let from = |value: &Value| value.as_str().unwrap().strip_prefix("env:").map(str::to_owned);
    assert_eq!(
        from(&config["source"]["directory"]["sql"]).as_deref(),
        Some(DATABASE_VARIABLE)
    );
    assert_eq!(from(&billing["destination"]).as_deref(), Some(URL_VARIABLE));
    assert_eq!(
        from(&billing["credential"]["bearer"]).as_deref(),
        Some(TOKEN_VARIABLE)
    );
}
