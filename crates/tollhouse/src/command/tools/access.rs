//! `tollhouse tools --access`: for every operation, what the document asks for, which of the upstream's credentials is
//! attached, and what the gate checks of the caller. It shows no credential.

use catalog::{Access, Needed, in_words};
use model::{RuleId, ToolName, UpstreamName};
use openapi::{AccessFlag, Document, DocumentLimits, Requirement};
use serde::Serialize;
use serde_json::json;

use crate::house::Reviewed;
use crate::print::{self, say};

/// One operation.
#[derive(Debug, Serialize)]
struct Row {
    upstream: UpstreamName,
    operation: String,
    /// The tool that it is; `None`: it is held.
    tool: Option<ToolName>,
    /// The rules that can let a caller through. Without a tool there are none, and nobody passes.
    rules: Vec<RuleId>,
    /// Whether the operation says itself what it asks for, or the document for all.
    is_own: bool,
    /// The alternatives of the document; all of one hold together.
    requires: Vec<Vec<Requirement>>,
    /// The same in words.
    asks: String,
    /// What is attached; `None`: it cannot be asked.
    attaches: Option<Vec<Needed>>,
    /// Why it cannot be asked.
    blocked: Option<String>,
    /// What a reviewer should look at.
    flags: Vec<AccessFlag>,
}

pub(super) fn say(reviewed: &Reviewed, json: bool) {
    let rows = rows(reviewed);
    if json {
        print::json(&json!({ "access": rows }));
        return;
    }
    let lines = rows.iter().map(|row| {
        vec![
            row.upstream.to_string(),
            row.operation.clone(),
            row.tool
                .as_ref()
                .map_or_else(|| "held".to_owned(), ToString::to_string),
            if row.tool.is_none() {
                "nobody passes".to_owned()
            } else if row.rules.is_empty() {
                "no rule: nobody passes".to_owned()
            } else {
                words(row.rules.iter().map(ToString::to_string))
            },
            row.asks.clone(),
            match (&row.attaches, &row.blocked) {
                (Some(needed), _) if needed.is_empty() => "nothing".to_owned(),
                (Some(needed), _) => words(needed.iter().map(attached)),
                (None, why) => format!("blocked: {}", why.as_deref().unwrap_or_default()),
            },
            words(row.flags.iter().map(|flag| flag.as_str().to_owned())),
        ]
    });
    print::table(
        &[
            "upstream",
            "operation",
            "tool",
            "rules for the caller",
            "the document asks for",
            "attached",
            "look at",
        ],
        lines.collect(),
    );
    say!(
        "\nevery caller is identified first; scopes of the document are asked of the token endpoint, not of the caller"
    );
}

fn rows(reviewed: &Reviewed) -> Vec<Row> {
    let settings = &reviewed.settings;
    let limits = DocumentLimits::from(&settings.limits);
    let mut rows = Vec::new();
    for upstream in &settings.upstreams {
        // It was read before; what cannot be read now has no rows.
        let Ok(document) = Document::read(&upstream.openapi.bytes, &limits) else {
            continue;
        };
        for row in document.access() {
            let operation = row.operation.to_string();
            let tools: Vec<_> = reviewed
                .catalog
                .tools()
                .filter(|tool| *tool.upstream() == upstream.name && tool.origin() == operation)
                .collect();
            let chosen = Access::choose(&upstream.name, &row.security, &upstream.credentials);
            let (attaches, blocked) = match chosen {
                Ok(access) => (Some(access.needed().to_vec()), None),
                Err(fault) => (None, Some(fault.to_string())),
            };
            let one = |tool: Option<&catalog::Tool>| Row {
                upstream: upstream.name.clone(),
                operation: operation.clone(),
                tool: tool.map(|tool| tool.name().clone()),
                rules: tool.map_or_else(Vec::new, |tool| {
                    let rules = reviewed.policy.rules_for(tool.name());
                    rules.iter().map(|rule| rule.id.clone()).collect()
                }),
                is_own: row.security.is_own,
                requires: row.security.alternatives.clone(),
                asks: in_words(&row.security),
                attaches: attaches.clone(),
                blocked: blocked.clone(),
                flags: row.flags.clone(),
            };
            if tools.is_empty() {
                rows.push(one(None));
            }
            rows.extend(tools.into_iter().map(|tool| one(Some(tool))));
        }
    }
    rows
}

fn attached(needed: &Needed) -> String {
    let scopes = if needed.scopes.is_empty() || needed.kind != "oauth2" {
        String::new()
    } else {
        format!(" ({})", needed.scopes.join(" "))
    };
    match &needed.scheme {
        None => format!("credential: {}{scopes}", needed.kind),
        Some(scheme) => format!("{scheme}: {}{scopes}", needed.kind),
    }
}

fn words(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
