//! What changed from one document to another, operation by operation, and which approvals that takes away: those of a tool
//! whose operation is gone, whose class rose, whose security weakened or whose server moved.

use std::collections::BTreeMap;

use model::Value;
use openapi::{Document, Generated, OperationRef, ToolOptions};
use serde::Serialize;

use crate::report::Row;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What kind of change it is.
    pub kind: ChangeKind,
    /// Method and path.
    pub operation: String,
    /// What it was and what it is.
    pub detail: String,
    /// Approvals that no longer stand for what was approved, as `billing_pay: mutations`.
    pub revokes: Vec<String>,
}

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The operation is new.
    Added,
    /// The operation is gone.
    Removed,
    /// It has another `operationId`.
    Renamed,
    /// The document shows another class.
    Class,
    /// It takes more than before, or asks for less.
    InputWidened,
    /// It takes less than before, or asks for more.
    InputNarrowed,
    /// Its input changed in both ways, or in another.
    InputChanged,
    /// Its answer changed.
    OutputChanged,
    /// Another server is named for it.
    Server,
    /// It asks less of a caller.
    SecurityWeakened,
    /// It asks something else, or more, of a caller.
    SecurityChanged,
    /// It became blocked, or is no longer.
    Blocked,
}

impl ChangeKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
            Self::Class => "class",
            Self::InputWidened => "input-widened",
            Self::InputNarrowed => "input-narrowed",
            Self::InputChanged => "input-changed",
            Self::OutputChanged => "output-changed",
            Self::Server => "server",
            Self::SecurityWeakened => "security-weakened",
            Self::SecurityChanged => "security-changed",
            Self::Blocked => "blocked",
        }
    }
}

/// Everything that changed from `old` to `new`, in the order of the new document, then what is gone.
///
/// `rows`: the report of the new document, whose approvals can be taken away.
#[must_use]
pub fn changes(old: &Document, new: &Document, rows: &[Row]) -> Vec<Change> {
    let before: BTreeMap<String, OperationRef> = by_key(old);
    let after: BTreeMap<String, OperationRef> = by_key(new);
    let mut changes = Vec::new();
    for operation in new.operations() {
        let key = operation.key().to_string();
        let Some(earlier) = before.get(&key) else {
            changes.push(Change {
                kind: ChangeKind::Added,
                detail: operation.operation_id().unwrap_or("no operationId").to_owned(),
                operation: key,
                revokes: Vec::new(),
            });
            continue;
        };
        let approvals = rows
            .iter()
            .find(|row| row.method == operation.method() && row.path == operation.path())
            .map(approvals)
            .unwrap_or_default();
        compare(&mut changes, &approvals, (old, earlier), (new, &operation));
    }
    for (key, operation) in &before {
        if !after.contains_key(key) {
            changes.push(Change {
                kind: ChangeKind::Removed,
                operation: key.clone(),
                detail: operation.operation_id().unwrap_or("no operationId").to_owned(),
                // A tool that names it is a fault of the configuration, which makes no report.
                revokes: Vec::new(),
            });
        }
    }
    changes
}

fn by_key(document: &Document) -> BTreeMap<String, OperationRef> {
    document
        .operations()
        .map(|operation| (operation.key().to_string(), operation))
        .collect()
}

fn approvals(row: &Row) -> Vec<String> {
    row.approvals
        .iter()
        .map(|approval| format!("{}: {}", row.name, approval.what))
        .collect()
}

type Side<'d> = (&'d Document, &'d OperationRef);

fn compare(changes: &mut Vec<Change>, approvals: &[String], old: Side<'_>, new: Side<'_>) {
    let key = new.1.key().to_string();
    let mut say = |kind, detail: String, revokes: bool| {
        changes.push(Change {
            kind,
            operation: key.clone(),
            detail,
            revokes: if revokes { approvals.to_vec() } else { Vec::new() },
        });
    };
    let id = |side: Side<'_>| side.1.operation_id().unwrap_or("none").to_owned();
    if id(old) != id(new) {
        say(
            ChangeKind::Renamed,
            format!("`{}` became `{}`", id(old), id(new)),
            false,
        );
    }
    let (was, is) = (old.0.inference(old.1), new.0.inference(new.1));
    let fresh: Vec<String> = is
        .exclusions()
        .difference(&was.exclusions())
        .map(ToString::to_string)
        .collect();
    if was.class() != is.class() || !fresh.is_empty() {
        let word = |class: Option<model::Class>| class.map_or("unknown", model::Class::as_str);
        let mut detail = format!("`{}` became `{}`", word(was.class()), word(is.class()));
        if !fresh.is_empty() {
            detail.push_str(&format!(", and it is left out for {}", fresh.join(", ")));
        }
        say(
            ChangeKind::Class,
            detail,
            is.class() > was.class() || !fresh.is_empty(),
        );
    }
    let servers = |side: Side<'_>| -> Vec<String> {
        side.0
            .servers(side.1)
            .into_iter()
            .map(|server| server.url)
            .collect()
    };
    if servers(old) != servers(new) {
        let detail = format!("{} became {}", servers(old).join(", "), servers(new).join(", "));
        say(ChangeKind::Server, detail, true);
    }
    let security = |side: Side<'_>| side.0.security(side.1);
    let (was, is) = (security(old), security(new));
    if was.alternatives != is.alternatives {
        let is_weaker = is.is_open() && !was.is_open()
            || is.alternatives.iter().any(|now| {
                was.alternatives.iter().all(|before| {
                    before.iter().any(|asked| {
                        !now.iter().any(|asks| {
                            asks.scheme == asked.scheme
                                && asked.scopes.iter().all(|scope| asks.scopes.contains(scope))
                        })
                    })
                })
            });
        let show = |alternatives: &[Vec<openapi::Requirement>]| {
            let all: Vec<String> = alternatives
                .iter()
                .map(|all| {
                    let names: Vec<String> = all
                        .iter()
                        .map(|one| format!("{}[{}]", one.scheme, one.scopes.join(" ")))
                        .collect();
                    names.join(" + ")
                })
                .collect();
            if all.is_empty() {
                "nothing".to_owned()
            } else {
                all.join(" or ")
            }
        };
        let kind = if is_weaker {
            ChangeKind::SecurityWeakened
        } else {
            ChangeKind::SecurityChanged
        };
        let detail = format!("{} became {}", show(&was.alternatives), show(&is.alternatives));
        say(kind, detail, is_weaker);
    }
    let options = ToolOptions {
        compile: false,
        ..ToolOptions::default()
    };
    match (old.0.tool(old.1, &options), new.0.tool(new.1, &options)) {
        (Ok(was), Ok(is)) => {
            if let Some((kind, detail)) = inputs(&was, &is) {
                // What takes more can do more than what was approved.
                say(kind, detail, kind != ChangeKind::InputNarrowed);
            }
            if was.output_schema != is.output_schema {
                say(
                    ChangeKind::OutputChanged,
                    "the schema of the answer is another".to_owned(),
                    false,
                );
            }
        }
        (Ok(_), Err(_)) => say(
            ChangeKind::Blocked,
            "it can no longer be a tool".to_owned(),
            false,
        ),
        (Err(_), Ok(_)) => say(ChangeKind::Blocked, "it can be a tool now".to_owned(), false),
        (Err(_), Err(_)) => {}
    }
}

/// How an input changed, as far as its top level tells.
fn inputs(was: &Generated, is: &Generated) -> Option<(ChangeKind, String)> {
    if bare(&was.input_schema) == bare(&is.input_schema) {
        return None;
    }
    let required = |tool: &Generated| -> Vec<String> {
        let names = tool.input_schema.get("required").and_then(Value::as_array);
        names
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let (asked, asks) = (required(was), required(is));
    let only = |left: &[String], right: &[String]| -> Vec<String> {
        left.iter()
            .filter(|name| !right.contains(name))
            .cloned()
            .collect()
    };
    let more = only(&is.argument_names, &was.argument_names);
    let fewer = only(&was.argument_names, &is.argument_names);
    let now_required = only(&asks, &asked);
    let now_optional: Vec<String> = only(&asked, &asks)
        .into_iter()
        .filter(|name| is.argument_names.contains(name))
        .collect();
    let mut parts = Vec::new();
    for (names, what) in [
        (&more, "takes"),
        (&fewer, "no longer takes"),
        (&now_required, "requires"),
        (&now_optional, "no longer requires"),
    ] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    let same_parts = was
        .argument_names
        .iter()
        .filter(|name| is.argument_names.contains(name))
        .all(|name| property(was, name) == property(is, name));
    if !same_parts {
        parts.push("an argument has another schema".to_owned());
    }
    let widens = !more.is_empty() || !now_optional.is_empty();
    let narrows = !fewer.is_empty() || !now_required.is_empty();
    let kind = match (same_parts, widens, narrows) {
        (true, true, false) => ChangeKind::InputWidened,
        (true, false, true) => ChangeKind::InputNarrowed,
        (_, _, _) => ChangeKind::InputChanged,
    };
    Some((kind, parts.join("; ")))
}

fn property(tool: &Generated, name: &str) -> Option<Value> {
    let properties = tool.input_schema.get("properties")?;
    properties.get(name).map(bare)
}

/// A schema without its texts: other words are no other contract.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => Value::Object(
            object
                .iter()
                .filter(|(key, value)| {
                    !(matches!(key.as_str(), "description" | "title") && value.is_string()
                        || matches!(key.as_str(), "examples"))
                })
                .map(|(key, value)| (key.clone(), bare(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use openapi::DocumentLimits;

    use super::*;

    const BASE: &str = r##"openapi: 3.1.0
info: {title: T, version: '1'}
servers: [{url: 'https://a.example'}]
security: [{key: []}]
paths:
  /things:
    get:
      operationId: listThings
      parameters:
      - {name: a, in: query, schema: {type: string, description: x}}
      - {name: b, in: query, required: true, schema: {type: string}}
      responses: {'200': {description: ok}}
  /old:
    get: {operationId: old, responses: {'200': {description: ok}}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
"##;

    fn kinds(from: &str, to: &str) -> Vec<&'static str> {
        assert!(BASE.contains(from), "{from}");
        let read = |text: &str| Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap();
        let (old, new) = (read(BASE), read(&BASE.replacen(from, to, 1)));
        changes(&old, &new, &[])
            .into_iter()
            .map(|change| change.kind.as_str())
            .collect()
    }

    #[test]
    fn each_kind_of_change_is_told_and_other_words_are_none() {
        for (from, to, expected) in [
            ("/old:", "/new:", vec!["added", "removed"]),
            ("operationId: old", "operationId: older", vec!["renamed"]),
            (
                "operationId: old",
                "operationId: deleteOld",
                vec!["renamed", "class"],
            ),
            ("in: query, required: true", "in: query", vec!["input-widened"]),
            (
                "{name: a, in: query,",
                "{name: a, in: query, required: true,",
                vec!["input-narrowed"],
            ),
            ("name: a", "name: c", vec!["input-changed"]),
            ("{type: string}}", "{type: integer}}", vec!["input-changed"]),
            ("description: x", "description: y", vec![]),
            ("https://a.example", "https://b.example", vec!["server", "server"]),
            (
                "security: [{key: []}]\n",
                "",
                vec!["security-weakened", "security-weakened"],
            ),
            (
                "security: [{key: []}]",
                "security: [{key: []}, {}]",
                vec!["security-weakened", "security-weakened"],
            ),
            (
                "security: [{key: []}]",
                "security: [{key: [], more: []}]",
                vec!["security-changed", "security-changed"],
            ),
            ("title: T", "title: U", vec![]),
        ] {
            assert_eq!(kinds(from, to), expected, "{from} → {to}");
        }
    }
}
