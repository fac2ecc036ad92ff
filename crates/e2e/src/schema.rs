//! The official shape of MCP messages, per revision: every message that the binary emits in a test is held against it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

/// Fails with every fault that the schema of a revision finds in a message.
pub fn assert_valid(revision: &str, definition: &str, message: &Value) {
    let faults: Vec<String> = validator(revision, definition)
        .iter_errors(message)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(
        faults.is_empty(),
        "{revision} {definition}\n{message:#}\n{faults:#?}"
    );
}

/// The schema of one definition. Each is read once: a schema is large, and there are many messages.
fn validator(revision: &str, definition: &str) -> Arc<Validator> {
    static READ: Mutex<Option<HashMap<String, Arc<Validator>>>> = Mutex::new(None);
    let key = format!("{revision} {definition}");
    let mut read = READ.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let read = read.get_or_insert_with(HashMap::new);
    if let Some(validator) = read.get(&key) {
        return Arc::clone(validator);
    }
    let validator = Arc::new(compile(revision, definition));
    read.insert(key, Arc::clone(&validator));
    validator
}

fn compile(revision: &str, definition: &str) -> Validator {
    let path = format!(
        "{}/../wire/tests/schema/{revision}.json",
        env!("CARGO_MANIFEST_DIR")
    );
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

/// The definition of a message as a whole: what a server may send to a client.
pub fn assert_message(revision: &str, message: &Value) {
    let definition = match message {
        Value::Array(_) => "JSONRPCBatchResponse",
        _ if message["method"] == "notifications/progress" => "ProgressNotification",
        _ if message.get("method").is_some() => "JSONRPCNotification",
        _ if message.get("error").is_some() && revision >= "2025-11-25" => "JSONRPCErrorResponse",
        _ if message.get("error").is_some() => "JSONRPCError",
        _ if revision >= "2025-11-25" => "JSONRPCResultResponse",
        _ => "JSONRPCResponse",
    };
    assert_valid(revision, definition, message);
}

/// Holds a whole response and its result against the schema, by the method that it answers.
pub fn assert_answer(revision: &str, method: &str, message: &Value) {
    assert_message(revision, message);
    if let Some(result) = message.get("result") {
        let definition = match method {
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => "EmptyResult",
            "tools/list" => "ListToolsResult",
            "tools/call" => "CallToolResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "completion/complete" => "CompleteResult",
            other => panic!("no schema is known for the result of {other}"),
        };
        assert_valid(revision, definition, result);
    }
}
