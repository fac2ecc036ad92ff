//! What the tests share: small documents in YAML, and a look at every schema that comes out.

use std::fmt::Write as _;

use model::{Object, Value};
use openapi::{Blocker, BlockerCause, Document, DocumentLimits, Generated, NoteKind, Prepared, ToolOptions};
use serde_json::json;

/// A document: the header, then `body` as it is.
pub(crate) fn document(version: &str, body: &str) -> Document {
    let text = format!("openapi: {version}\ninfo: {{title: Test, version: '1'}}\n{body}");
    Document::read(text.as_bytes(), &DocumentLimits::default())
        .unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// The tool of one operation, with its schemas checked.
pub(crate) fn tool(document: &Document, key: &str) -> Generated {
    tool_with(document, key, &ToolOptions::default())
}

pub(crate) fn tool_with(document: &Document, key: &str, options: &ToolOptions) -> Generated {
    let operation = document.find(key).unwrap();
    let tool = document
        .tool(&operation, options)
        .unwrap_or_else(|blockers| panic!("{key}: {blockers:?}"));
    check_schema(&tool.input_schema);
    tool.output_schema.iter().for_each(check_schema);
    assert_eq!(tool.input_schema["type"], "object");
    assert_eq!(tool.input_schema["additionalProperties"], false);
    tool
}

/// What keeps an operation from being a tool.
pub(crate) fn blockers(document: &Document, key: &str) -> Vec<Blocker> {
    let operation = document.find(key).unwrap();
    document
        .tool(&operation, &ToolOptions::default())
        .map(|tool| panic!("{key} became a tool: {}", tool.input_schema))
        .unwrap_err()
}

/// The causes, and the place of the first.
pub(crate) fn causes(document: &Document, key: &str) -> (Vec<BlockerCause>, String) {
    let blockers = blockers(document, key);
    for blocker in &blockers {
        assert!(blocker.pointer.starts_with("#/"), "{blocker}");
        assert!(
            !blocker.text.is_empty() && !blocker.clears.is_empty(),
            "{blocker}"
        );
    }
    (
        blockers.iter().map(|blocker| blocker.cause).collect(),
        blockers[0].pointer.clone(),
    )
}

pub(crate) fn note_kinds(tool: &Generated) -> Vec<NoteKind> {
    tool.notes.iter().map(|note| note.kind).collect()
}

/// 2020-12 by its own meta-schema, compiled as the gateway does, every reference inside it.
pub(crate) fn check_schema(schema: &Value) {
    jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{error}\n{schema}"));
    validator(schema);
    // The flag says that the keys of an object are names of fields, not keywords.
    let mut open = vec![(schema, false)];
    while let Some((value, is_named)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, false))),
            Value::Object(object) => {
                if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                    let found = schema.pointer(reference.strip_prefix('#').unwrap());
                    assert!(found.is_some(), "{reference} names nothing in {schema}");
                }
                for (key, value) in object {
                    let is_foreign = key.starts_with("x-")
                        || ["nullable", "readOnly", "discriminator"].contains(&key.as_str());
                    assert!(is_named || !is_foreign, "{key} in {schema}");
                    open.push((
                        value,
                        !is_named && ["properties", "$defs"].contains(&key.as_str()),
                    ));
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .unwrap_or_else(|error| panic!("{error}\n{schema}"))
}

/// Whether the gateway would let these arguments through to the plan.
pub(crate) fn accepts(tool: &Generated, arguments: &Value) -> bool {
    validator(&tool.input_schema).is_valid(arguments)
}

/// The request of a call, as text: request line, headers, blank line, body.
pub(crate) fn request(tool: &Generated, arguments: Value) -> Result<String, String> {
    build(tool, arguments, json!({})).map(|request| shown(&request))
}

pub(crate) fn build(tool: &Generated, arguments: Value, injected: Value) -> Result<Prepared, String> {
    tool.plan
        .build(&object(arguments), &object(injected))
        .map_err(|fault| fault.to_string())
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn shown(request: &Prepared) -> String {
    let mut text = format!("{} {}", request.method, request.path_and_query);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "accept") {
        write!(text, "\n{name}: {value}").unwrap();
    }
    if let Some(body) = &request.body {
        let bytes = String::from_utf8(body.bytes.to_vec()).unwrap();
        write!(text, "\ncontent-type: {}\n\n{bytes}", body.content_type).unwrap();
    }
    text
}
