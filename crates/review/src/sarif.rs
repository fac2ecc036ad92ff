//! The report in SARIF 2.1.0, for code scanning: one result for each group of blockers and each marked text. Source: OASIS
//! SARIF 2.1.0, sections 3.13 to 3.30.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::report::{Report, Severity};

/// The report as one SARIF log.
#[must_use]
pub fn sarif(report: &Report) -> Value {
    let location = |pointer: &str| {
        json!({
            "physicalLocation": {"artifactLocation": {"uri": uri(&report.subject.path)}},
            "logicalLocations": [{"fullyQualifiedName": pointer, "kind": "member"}],
        })
    };
    let mut results = Vec::new();
    let mut rules = BTreeSet::new();
    for group in &report.blockers {
        rules.insert(group.code.clone());
        let level = match group.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        results.push(json!({
            "ruleId": group.code,
            "level": level,
            "message": {"text": format!("{} ({} operations); {}", group.text, group.count, group.clears)},
            "properties": {"owner": group.owner, "due": group.due, "overdue": group.overdue},
            "locations": group.pointers.iter().take(10).map(|pointer| location(pointer)).collect::<Vec<_>>(),
        }));
    }
    for marked in &report.texts {
        for mark in &marked.marks {
            let rule = format!("text.{}", mark.kind);
            rules.insert(rule.clone());
            results.push(json!({
                "ruleId": rule,
                "level": "note",
                "message": {"text": format!("`{}` in: {}", mark.quote, marked.text)},
                "locations": [location(&marked.pointer)],
            }));
        }
    }
    if report.is_void() {
        rules.insert("report.void".to_owned());
        results.push(json!({
            "ruleId": "report.void",
            "level": "error",
            "message": {"text": report.verdict.reasons.join("; ")},
            "locations": [location("#")],
        }));
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tollhouse review",
                "version": report.verdict.build,
                "rules": rules.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(),
            }},
            "results": results,
            "properties": {
                "verdict": report.verdict.digest,
                "document": report.verdict.document,
                "ready": report.verdict.ready,
            },
        }],
    })
}

/// A path as a relative URI reference.
fn uri(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, PATH).to_string()
}

/// Everything that a path of a URI does not hold as it is.
const PATH: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');
