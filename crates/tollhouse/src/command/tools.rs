//! `tollhouse tools`: what is enabled, or what one caller sees.

mod access;

use std::collections::HashSet;

use catalog::Access;
use gateway::Gateway;
use model::{UpstreamName, Value};
use openapi::{Blocker, Document, DocumentLimits, ToolOptions};
use serde::Serialize;
use serde_json::json;
use wire::Revision;

use super::Looking;
use crate::cli::Tools;
use crate::failure::Failure;
use crate::house::Reviewed;
use crate::log;
use crate::print::{self, say};

pub(crate) async fn tools(args: Tools) -> Result<(), Failure> {
    log::start_quiet();
    if args.held {
        return held(&super::review(&args.path)?, args.format.json);
    }
    if args.access {
        access::say(&super::review(&args.path)?, args.format.json);
        return Ok(());
    }
    let looking = Looking::open(&args.path).await?;
    let said = say(&args, &looking);
    looking.close().await;
    said
}

fn say(args: &Tools, looking: &Looking) -> Result<(), Failure> {
    let Looking { settings, gateway } = looking;
    match &args.caller {
        None => all(gateway, args.format.json),
        Some(name) => {
            let principal = super::principal(settings, name)?;
            let mut tools = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let page = gateway
                    .list(&principal, cursor.as_deref())
                    .map_err(|failure| Failure::Internal(failure.to_string()))?;
                tools.extend(page.tools);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            if args.format.json {
                let tools: Vec<Value> = tools
                    .iter()
                    .map(|tool| Value::Object(tool.write(Revision::NEWEST_STATELESS)))
                    .collect();
                print::json(&json!({ "tools": tools }));
            } else {
                let rows = tools
                    .iter()
                    .map(|tool| vec![tool.name.to_string(), tool.description.clone()])
                    .collect();
                print::table(&["tool", "what the model reads"], rows);
            }
        }
    }
    Ok(())
}

/// Every enabled tool, with what the reviewer decided about it.
fn all(gateway: &Gateway, json: bool) {
    let rows = gateway.catalog().tools().map(|tool| {
        let rules: Vec<String> = gateway
            .policy()
            .rules_for(tool.name())
            .iter()
            .map(|rule| rule.id.to_string())
            .collect();
        (tool, rules)
    });
    if json {
        let tools: Vec<Value> = rows
            .map(|(tool, rules)| {
                json!({
                    "name": tool.name(),
                    "upstream": tool.upstream(),
                    "operation": tool.operation(),
                    "class": tool.class(),
                    "pin": tool.pin(),
                    "rules": rules,
                    "notes": tool.notes(),
                })
            })
            .collect();
        print::json(&json!({ "tools": tools, "held": gateway.catalog().held() }));
        return;
    }
    let rows = rows
        .map(|(tool, rules)| {
            vec![
                tool.name().to_string(),
                tool.class().to_string(),
                tool.operation().to_owned(),
                tool.pin().short(),
                rules.join(", "),
            ]
        })
        .collect();
    print::table(&["tool", "class", "operation", "pin", "rules"], rows);
    let held = print::counted(
        gateway.catalog().held(),
        "operation is held",
        "operations are held",
    );
    say!("\n{held}; `tollhouse tools --held` tells which");
}

/// An operation that is no tool.
#[derive(Debug, Serialize)]
struct Operation {
    upstream: UpstreamName,
    operation: String,
    method: String,
    path: String,
    pointer: String,
    blockers: Vec<Blocker>,
    /// Why no credential of the upstream meets what it asks for.
    credentials: Option<String>,
}

/// Every operation that is no tool. What blocks one is found by making a tool of it, as a reviewer would.
fn held(reviewed: &Reviewed, json: bool) -> Result<(), Failure> {
    let settings = &reviewed.settings;
    let mut found = Vec::new();
    for upstream in &settings.upstreams {
        let limits = DocumentLimits::from(&settings.limits);
        let document = Document::read(&upstream.openapi.bytes, &limits)
            .map_err(|fault| Failure::Internal(format!("what was read before is not readable: {fault}")))?;
        let enabled: HashSet<&str> = reviewed
            .catalog
            .tools()
            .filter(|tool| *tool.upstream() == upstream.name)
            .map(|tool| tool.operation())
            .collect();
        for operation in document.operations() {
            let key = operation.key().to_string();
            if enabled.contains(key.as_str()) {
                continue;
            }
            let made = document.tool(&operation, &ToolOptions::default());
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
    if json {
        print::json(&json!({ "held": found }));
        return Ok(());
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
    Ok(())
}
