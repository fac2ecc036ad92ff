//! What a pin covers: the definition that clients see, the operation behind it, and the bounds that were reviewed.
//!
//! The texts of the configuration are not hashed as written, so that a comment or another order of keys changes no pin.

use config::{
    ArgumentSettings, Bind, Given, NestingRule, OwnerSettings, PagesBy, ResourceBy, ResourceSettings, Scope,
    ToolSettings,
};
use model::{Digest, Object, UpstreamName, Value, canonical};
use serde_json::json;
use wire::{Definition, Revision, Surface};

use crate::access::Access;

/// The version of this form. Another form gets another tag, so that no pin changes its meaning in silence.
const TAG: &str = "tollhouse/tool/v1";
const SERVER_TAG: &str = "tollhouse/server-tool/v1";
const DEFINITION_TAG: &str = "tollhouse/definition/v1";

pub(crate) fn of(
    upstream: &UpstreamName,
    bounds: &ToolSettings,
    (definition, base_path): (&Definition, &str),
    operation: Digest,
    access: &Access,
    long_running: Option<Value>,
) -> Digest {
    let mut whole = json!({
        "upstream": upstream,
        "operation": operation,
        "definition": exact(Value::Object(definition.write(Revision::NEWEST_STATELESS))),
        "class": bounds.class,
        "resource": bounds.resource.as_ref().map(resource),
        "owner": bounds.owner.as_ref().map(owner),
        "scope_argument": bounds.scope_argument,
        "rows": bounds.rows.as_ref().map(|rows| json!({ "items": rows.items, "owner": rows.owner })),
        "facts": facts(bounds),
        "returns": bounds.returns,
        "access": access,
        "long_running": long_running,
        "retry": bounds.retry.as_ref().map(|retry| json!({ "attempts": retry.attempts, "on": retry.on })),
    });
    // What is not set is not there, so that a pin of before there was such a setting still holds.
    if let Some(whole) = whole.as_object_mut() {
        further(whole, bounds, base_path);
    }
    Digest::of(TAG, &[&canonical(&whole)])
}

/// The pin of a tool of an MCP server: the whole definition that was approved, and what was reviewed on our side.
pub(crate) fn of_server(
    upstream: &UpstreamName,
    bounds: &ToolSettings,
    (surface, definition): (Surface, &Definition),
    approved: Digest,
) -> Digest {
    let what = match surface {
        Surface::Tools => "tool",
        Surface::Prompts => "prompt",
        Surface::Resources => "resource",
        Surface::Templates => "template",
    };
    let whole = json!({
        "upstream": upstream,
        (what): bounds.operation,
        "approved": approved,
        "definition": exact(Value::Object(definition.write(Revision::NEWEST_STATELESS))),
        "class": bounds.class,
        "resource": bounds.resource.as_ref().map(resource),
        "owner": bounds.owner.as_ref().map(owner),
        "facts": facts(bounds),
        "returns": bounds.returns,
    });
    Digest::of(SERVER_TAG, &[&canonical(&whole)])
}

/// The digest of a whole definition as a server gives it, known members or not, without Unicode normalisation. The order of
/// members says nothing in JSON and is not part of it; nor are the length of a resource and the time of its last change,
/// which say what it holds and not what it is.
pub(crate) fn definition(surface: Surface, whole: &Object) -> Digest {
    let mut whole = whole.clone();
    if surface == Surface::Resources {
        whole.shift_remove("size");
        if let Some(annotations) = whole.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove("lastModified");
        }
    }
    Digest::of(DEFINITION_TAG, &[&canonical(&exact(Value::Object(whole)))])
}

fn resource(resource: &ResourceSettings) -> Value {
    json!({
        "type": resource.kind,
        "by": match &resource.by {
            ResourceBy::Argument(name) => json!({ "argument": name }),
            ResourceBy::Scope(scope) => json!({ "scope": scope_word(*scope) }),
        },
    })
}

fn facts(bounds: &ToolSettings) -> Value {
    bounds
        .facts
        .iter()
        .map(|fact| {
            json!({
                "name": fact.name,
                "source": fact.source,
                "query": fact.query,
                "bind": binds(&fact.bind),
                "type": format!("{:?}", fact.kind).to_lowercase(),
            })
        })
        .collect()
}

/// What most tools do not set.
fn further(whole: &mut Object, bounds: &ToolSettings, base_path: &str) {
    let mut add = |name: &str, value: Value| whole.insert(name.to_owned(), exact(value));
    if !bounds.arguments.is_empty() {
        add("arguments", bounds.arguments.iter().map(argument).collect());
    }
    if bounds.nesting != NestingRule::Refuse {
        add("nesting", json!(format!("{:?}", bounds.nesting).to_lowercase()));
    }
    if bounds.allow_reserved {
        add("allow_reserved", json!(true));
    }
    if let Some(media_type) = &bounds.media_type {
        add("media_type", json!(media_type));
    }
    if let Some(accept) = &bounds.accept {
        add("accept", json!(accept));
    }
    if !base_path.is_empty() {
        add("base_path", json!(base_path));
    }
    if let Some(pages) = &bounds.pages {
        add(
            "pages",
            json!({
                "argument": pages.argument,
                "asked": pages.asked,
                "items": pages.items,
                "max": pages.pages_max,
                "by": match &pages.by {
                    PagesBy::Cursor(path) => json!({ "next": path }),
                    PagesBy::Link => json!("link"),
                    PagesBy::Number(first) => json!({ "first": first }),
                },
            }),
        );
    }
    if !bounds.errors.is_empty() {
        add("errors", json!(bounds.errors));
    }
}

/// The definition shows what callers read of an argument; this says what becomes of it.
fn argument(argument: &ArgumentSettings) -> Value {
    json!({
        "name": argument.name,
        "rename": argument.rename,
        "hide": argument.hide,
        "given": argument.given.as_ref().map(|given| match given {
            Given::Fixed(value) => json!({ "fixed": value }),
            Given::Tenant => json!({ "from": "principal.tenant" }),
            Given::Subject => json!({ "from": "principal.subject" }),
            Given::Client => json!({ "from": "principal.client" }),
            Given::Issuer => json!({ "from": "principal.issuer" }),
            Given::Claim(name) => json!({ "from": format!("claims.{name}") }),
            Given::CallId => json!({ "from": "call.id" }),
        }),
    })
}

const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Tenant => "tenant",
        Scope::Subject => "subject",
    }
}

fn owner(owner: &OwnerSettings) -> Value {
    match owner {
        OwnerSettings::Sql { source, query, bind } => {
            json!({ "kind": "sql", "source": source, "query": query, "bind": binds(bind) })
        }
        OwnerSettings::File { source } => json!({ "kind": "file", "source": source }),
        OwnerSettings::Claims { claim } => json!({ "kind": "claims", "claim": claim }),
    }
}

fn binds(binds: &[Bind]) -> Vec<String> {
    binds
        .iter()
        .map(|bind| match bind {
            Bind::ResourceId => "resource.id".to_owned(),
            Bind::PrincipalSubject => "principal.subject".to_owned(),
            Bind::PrincipalTenant => "principal.tenant".to_owned(),
            Bind::PrincipalClient => "principal.client".to_owned(),
            Bind::PrincipalIssuer => "principal.issuer".to_owned(),
            Bind::Argument(name) => format!("arguments.{name}"),
        })
        .collect()
}

/// Canonical JSON holds numbers as doubles, so two large integers could share a digest. Such a number goes in as its
/// digits behind a key that no schema has (ADR 0007).
fn exact(value: Value) -> Value {
    const LARGEST: u64 = (1 << 53) - 1;
    match value {
        Value::Number(number) => {
            let large = number.as_u64().is_some_and(|n| n > LARGEST)
                || number.as_i64().is_some_and(|n| n.unsigned_abs() > LARGEST);
            if large {
                json!({ "\u{0}integer": number.to_string() })
            } else {
                Value::Number(number)
            }
        }
        Value::Array(items) => items.into_iter().map(exact).collect(),
        Value::Object(object) => Value::Object(
            object
                .into_iter()
                .map(|(key, value)| (key, exact(value)))
                .collect::<Object>(),
        ),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_in_a_schema_are_told_apart() {
        let one = exact(json!({"maximum": 9_007_199_254_740_993_u64}));
        let two = exact(json!({"maximum": 9_007_199_254_740_992_u64}));
        assert_ne!(canonical(&one), canonical(&two));
        assert_eq!(
            exact(json!([1, -1, 0.5, "x", null])),
            json!([1, -1, 0.5, "x", null])
        );
    }
}
