//! One walk through everything that this room does with bytes from outside: for fuzzing and for surveys.
//!
//! Every operation becomes a tool or blockers; every tool gets arguments that are made from its own schema, and they
//! become a request or a fault. What must hold of every request is looked at again here, by other means.

use std::collections::{BTreeMap, BTreeSet};

use model::{Object, Value};
use serde_json::json;

use crate::blocker::BlockerCause;
use crate::document::{Document, DocumentLimits};
use crate::plan::Prepared;
use crate::tool::{Generated, ToolOptions};

/// What the walk met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exercise {
    /// Operations in the document.
    pub operations: usize,
    /// Operations that became tools.
    pub tools: usize,
    /// For each cause, the operations that it blocks; an operation counts once for each of its causes.
    pub blocked: BTreeMap<BlockerCause, usize>,
    /// Requests that were built.
    pub requests: usize,
    /// What should never be; each is a bug of this room.
    pub violations: Vec<String>,
}

/// Walks through a document. `None` where the bytes are no document.
#[must_use]
pub fn exercise(bytes: &[u8], limits: &DocumentLimits) -> Option<Exercise> {
    let document = Document::read(bytes, limits).ok()?;
    let mut exercise = Exercise::default();
    for operation in document.operations() {
        exercise.operations += 1;
        let tool = match document.tool(&operation, &ToolOptions::default()) {
            Ok(tool) => tool,
            Err(blockers) => {
                let causes: BTreeSet<_> = blockers.iter().map(|blocker| blocker.cause).collect();
                for cause in causes {
                    *exercise.blocked.entry(cause).or_default() += 1;
                }
                continue;
            }
        };
        exercise.tools += 1;
        if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            exercise
                .violations
                .push(format!("{}: the input is no object", tool.operation));
        }
        for variant in 0..4 {
            let arguments = sample_arguments(&tool, variant);
            if let Ok(request) = tool.plan.build(&arguments, &Object::new()) {
                exercise.requests += 1;
                exercise.violations.extend(look(&tool, &request));
            }
        }
    }
    Some(exercise)
}

/// Arguments that the schema of a tool suggests; `variant` chooses among the ways to fill it.
#[must_use]
pub fn sample_arguments(tool: &Generated, variant: usize) -> Object {
    arguments_for(&tool.input_schema, variant)
}

/// The same for the schema of an input alone.
#[must_use]
pub fn arguments_for(input_schema: &Value, variant: usize) -> Object {
    let required = input_schema.get("required").and_then(Value::as_array);
    let mut steps = 500;
    input_schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        // Odd variants give only what is required.
        .filter(|(name, _)| {
            variant.is_multiple_of(2)
                || required.is_some_and(|names| names.iter().any(|n| n == name.as_str()))
        })
        .map(|(name, schema)| (name.clone(), sample(input_schema, schema, variant, 0, &mut steps)))
        .collect()
}

/// A value that has a good chance to fit a schema.
fn sample(root: &Value, schema: &Value, variant: usize, depth: usize, steps: &mut usize) -> Value {
    const TEXTS: [&str; 4] = ["a", "a/b ?#&=%2e", "ä, \u{1F600}", ".."];
    let text = json!(TEXTS.get(variant % TEXTS.len()));
    *steps = steps.saturating_sub(1);
    let Some(object) = schema.as_object().filter(|_| depth < 6 && *steps > 0) else {
        return text;
    };
    if let Some(value) = object.get("const") {
        return value.clone();
    }
    if let Some(value) = object
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|values| values.first())
    {
        return value.clone();
    }
    let target = object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    let branch = ["allOf", "anyOf", "oneOf"]
        .iter()
        .find_map(|keyword| object.get(*keyword)?.as_array()?.first());
    if let Some(inner) = target.or(branch) {
        return sample(root, inner, variant, depth + 1, steps);
    }
    if object.get("contentEncoding").and_then(Value::as_str) == Some("base64") {
        return json!("YQ==");
    }
    let example = object.get("examples").and_then(|examples| examples.get(0));
    if let Some(example) = example.filter(|_| object.contains_key("pattern")) {
        return example.clone();
    }
    let kind = match object.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("integer") => json!(variant),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => {
            let item = object.get("items").unwrap_or(&Value::Null);
            let count = variant % 3;
            (0..count)
                .map(|_| sample(root, item, variant, depth + 1, steps))
                .collect()
        }
        Some("object") => object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), sample(root, schema, variant, depth + 1, steps)))
            .collect(),
        _ => text,
    }
}

/// What must hold of every request.
fn look(tool: &Generated, request: &Prepared) -> Vec<String> {
    let mut violations = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            violations.push(format!("{}: {what}", tool.operation));
        }
    };
    let target = &request.path_and_query;
    let path = target.split('?').next().unwrap_or_default();
    must(target.starts_with('/'), "the target does not start with `/`");
    must(
        target.bytes().all(|b| b.is_ascii_graphic()),
        "the target has a blank or control character",
    );
    must(!target.contains('#'), "the target has a fragment");
    must(target.matches('?').count() <= 1, "the target has two queries");
    must(
        Some(path.split('/').count())
            == tool
                .plan
                .template()
                .split('#')
                .next()
                .map(|path| path.split('/').count()),
        "the path has another number of segments",
    );
    let is_step = |segment: &str| {
        matches!(
            segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
            "." | ".."
        )
    };
    must(!path.split('/').any(is_step), "the path has a step");
    for (name, value) in &request.headers {
        must(
            !crate::parameter::is_reserved_header(name) || name == "accept",
            "a reserved header is set",
        );
        must(
            crate::parameter::is_token(name) && value.bytes().all(|b| (b' '..=b'~').contains(&b)),
            "a header has a character that no header has",
        );
    }
    violations
}
