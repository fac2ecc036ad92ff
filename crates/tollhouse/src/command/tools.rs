//! `tollhouse tools`: what is enabled, or what one caller sees.

mod access;

use catalog::Operation;
use gateway::{Gateway, Mount};
use model::Value;
use serde_json::json;
use wire::Revision;

use super::{Looking, held};
use crate::cli::Tools;
use crate::failure::Failure;
use crate::house::servers;
use crate::log;
use crate::print::{self, say};

pub(crate) async fn tools(args: Tools) -> Result<(), Failure> {
    log::start_quiet();
    if args.held {
        held::say(&super::review(&args.path).await?, args.format.json);
        return Ok(());
    }
    if args.access {
        access::say(&super::review(&args.path).await?, args.format.json);
        return Ok(());
    }
    let looking = Looking::open(&args.path).await?;
    let said = say(&args, &looking);
    looking.close().await;
    said
}

fn say(args: &Tools, looking: &Looking) -> Result<(), Failure> {
    let Looking {
        settings, gateway, ..
    } = looking;
    match &args.caller {
        None => all(gateway, args.format.json),
        Some(name) => {
            let principal = super::principal(settings, name)?;
            let mut tools = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let page = gateway
                    .list(&principal, &Mount::All, cursor.as_deref())
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
                    "kind": servers::word(tool.surface()),
                    "upstream": tool.upstream(),
                    "operation": tool.origin(),
                    "class": tool.class(),
                    "pin": tool.pin(),
                    "rules": rules,
                    "notes": tool.operation().map(Operation::notes).unwrap_or_default(),
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
                servers::word(tool.surface()).to_owned(),
                tool.class().to_string(),
                tool.origin().to_owned(),
                tool.pin().short(),
                rules.join(", "),
            ]
        })
        .collect();
    print::table(&["tool", "kind", "class", "operation", "pin", "rules"], rows);
    let held = print::counted(
        gateway.catalog().held(),
        "operation is held",
        "operations are held",
    );
    say!("\n{held}; `tollhouse tools --held` tells which");
}
