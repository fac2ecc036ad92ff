//! Operations that are no tools: which ones they are, and what keeps each from becoming one.

use std::collections::HashSet;

use catalog::Access;
use model::UpstreamName;
use openapi::{Blocker, ToolOptions};
use serde::Serialize;
use serde_json::json;

use crate::house::Reviewed;
use crate::print::{self, say};

/// An operation that is no tool.
#[derive(Debug, Serialize)]
pub(crate) struct Operation {
    upstream: UpstreamName,
    operation: String,
    method: String,
    path: String,
    /// Where a person wrote it.
    pointer: String,
    blockers: Vec<Blocker>,
    /// Why no credential of the upstream meets what it asks for.
    credentials: Option<String>,
}

impl Operation {
    /// Whether it cannot be a tool as it stands.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.blockers.is_empty()
    }

    /// One line for each blocker, with the operation that it keeps from being a tool.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.blockers.iter().map(|blocker| {
            format!(
                "{} `{}` cannot be a tool: {blocker}",
                self.upstream, self.operation
            )
        })
    }
}

/// Every operation that is no tool. What blocks one is found by making a tool of it, as a reviewer would.
pub(crate) fn operations(reviewed: &Reviewed) -> Vec<Operation> {
    let mut found = Vec::new();
    for upstream in &reviewed.settings.upstreams {
        let Some(document) = reviewed.documents.get(&upstream.name) else {
            continue;
        };
        let enabled: HashSet<&str> = reviewed
            .catalog
            .tools()
            .filter(|tool| *tool.upstream() == upstream.name)
            .map(|tool| tool.origin())
            .collect();
        for operation in document.operations() {
            let key = operation.key().to_string();
            if enabled.contains(key.as_str()) {
                continue;
            }
            let options = ToolOptions {
                compile: false,
                ..ToolOptions::default()
            };
            let made = document.tool(&operation, &options);
            found.push(Operation {
                upstream: upstream.name.clone(),
                operation: operation.operation_id().map_or(key, str::to_owned),
                method: operation.method().to_owned(),
                path: operation.path().to_owned(),
                pointer: document.origin(operation.pointer()),
                blockers: made.err().unwrap_or_default(),
                credentials: Access::choose(
                    &upstream.name,
                    &document.security(&operation),
                    &upstream.credentials,
                )
                .err()
                .map(|fault| fault.to_string()),
            });
        }
    }
    found
}

/// Lists them.
pub(crate) fn say(reviewed: &Reviewed, json: bool) {
    let found = operations(reviewed);
    if json {
        print::json(&json!({ "held": found }));
        return;
    }
    let rows = found
        .iter()
        .map(|operation| {
            let blockers: Vec<String> = operation.blockers.iter().map(ToString::to_string).collect();
            let state = match (blockers.is_empty(), &operation.credentials) {
                (true, None) => "can be a tool".to_owned(),
                (true, Some(_)) => "can be a tool, once a credential meets what it asks for".to_owned(),
                (false, _) => format!("cannot be a tool: {}", blockers.join("; ")),
            };
            vec![
                operation.upstream.to_string(),
                operation.operation.clone(),
                operation.method.clone(),
                operation.path.clone(),
                state,
            ]
        })
        .collect();
    print::table(&["upstream", "operation", "method", "path", "state"], rows);
    say!("\nan operation becomes a tool by [upstream.UPSTREAM.tool.NAME] with `operation` and `class`");
}
