//! The official shape of each message, for the tests of what we emit.

use serde_json::{Value, json};
use wire::Revision;

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the schema beside it; the room reads nothing"
)]
/// A validator for one definition of one revision's schema.
pub(crate) fn validator(revision: Revision, definition: &str) -> jsonschema::Validator {
    let path = format!("{}/tests/schema/{revision}.json", env!("CARGO_MANIFEST_DIR"));
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let section = if schema.get("definitions").is_some() {
        "definitions"
    } else {
        "$defs"
    };
    assert!(
        schema[section].get(definition).is_some(),
        "{revision} has no {definition}"
    );
    schema["$ref"] = json!(format!("#/{section}/{definition}"));
    jsonschema::validator_for(&schema).unwrap()
}

/// Fails with every fault that the schema finds.
pub(crate) fn assert_valid(revision: Revision, definition: &str, message: &Value) {
    let validator = validator(revision, definition);
    let faults: Vec<String> = validator
        .iter_errors(message)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{revision} {definition}\n{message:#}\n{faults:#?}"
    );
}

/// The definition of a successful response: the envelope is one, the result another in the older revisions.
pub(crate) fn assert_result(revision: Revision, definition: &str, message: &Value) {
    let envelope = match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 | Revision::V2025_06_18 => "JSONRPCResponse",
        Revision::V2025_11_25 | Revision::V2026_07_28 => "JSONRPCResultResponse",
    };
    assert_valid(revision, envelope, message);
    assert_valid(revision, definition, &message["result"]);
}

#[test]
fn the_schema_of_each_revision_refuses_what_is_wrong() {
    for revision in Revision::ALL {
        let tools = validator(revision, "ListToolsResult");
        assert!(!tools.is_valid(&json!({})), "{revision}");
        assert!(!tools.is_valid(&json!({"tools":[{"name":"x"}]})), "{revision}");
        assert!(
            !validator(revision, "CallToolResult").is_valid(&json!({"content":[{"type":"nonsense"}]})),
            "{revision}"
        );
    }
}
