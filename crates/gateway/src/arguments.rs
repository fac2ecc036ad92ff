//! Arguments against the pinned schema: what does not fit, in words that a model can act on.
//!
//! Undeclared fields are refused by the schema itself, which is closed. No value is repeated in a message; their names are
//! told to the caller who chose them and kept out of logs, because they are data as well.

use std::collections::HashMap;

use catalog::{Catalog, Tool};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use model::{Arguments, Refusal, RefusalCode, ToolName, Value};

/// How many faults of one call are told. More help nobody and cost tokens.
const FAULTS_MAX: usize = 5;
/// The longest message about one fault, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 240;

/// The compiled schemas of all tools.
#[derive(Debug)]
pub(crate) struct Schemas {
    input: HashMap<ToolName, Validator>,
    output: HashMap<ToolName, Validator>,
}

/// A schema that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {which} schema of `{tool}` cannot be used: {why}")]
pub struct SchemaFault {
    /// The tool.
    pub tool: ToolName,
    /// `input` or `output`.
    pub which: &'static str,
    /// What is wrong.
    pub why: String,
}

impl Schemas {
    /// Compiles every schema once, so that a call compiles none.
    pub(crate) fn of(catalog: &Catalog) -> Result<Self, SchemaFault> {
        let mut schemas = Self {
            input: HashMap::new(),
            output: HashMap::new(),
        };
        for tool in catalog.tools() {
            let definition = tool.definition();
            let fault = |which, why: String| SchemaFault {
                tool: tool.name().clone(),
                which,
                why,
            };
            let input = compile(tool.arguments_schema()).map_err(|why| fault("input", why))?;
            schemas.input.insert(tool.name().clone(), input);
            if let Some(schema) = &definition.output_schema {
                let output = compile(schema).map_err(|why| fault("output", why))?;
                schemas.output.insert(tool.name().clone(), output);
            }
        }
        Ok(schemas)
    }

    /// Checks the arguments of a call.
    pub(crate) fn check(&self, tool: &Tool, arguments: &Arguments) -> Result<(), Refusal> {
        let Some(validator) = self.input.get(tool.name()) else {
            return Err(Refusal::new(
                RefusalCode::ArgumentsInvalid,
                "the tool has no compiled input schema",
            ));
        };
        if validator.is_valid(arguments.value()) {
            return Ok(());
        }
        let faults = described(validator, arguments.value(), for_caller);
        let kept = described(validator, arguments.value(), for_log);
        Err(Refusal::new(RefusalCode::ArgumentsInvalid, faults.clone())
            .with_detail(faults)
            .with_log(kept))
    }

    /// Whether the input schema of a tool takes an object of arguments.
    pub(crate) fn takes(&self, tool: &Tool, arguments: &Value) -> bool {
        self.input
            .get(tool.name())
            .is_some_and(|validator| validator.is_valid(arguments))
    }

    /// Checks a structured result against the output schema of its tool, if it has one. What does not fit is told in words
    /// of the schema.
    pub(crate) fn check_result(&self, tool: &Tool, value: &Value) -> Result<(), String> {
        match self.output.get(tool.name()) {
            Some(validator) if !validator.is_valid(value) => Err(described(validator, value, for_log)),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether values can be held against a schema: it is one, in a dialect that is known, and refers to nothing outside.
///
/// # Errors
/// What is wrong with it.
pub fn usable_schema(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

/// The dialect of a schema: the one that it declares, else that of 2020-12 (BASE-21).
fn dialect(schema: &Value) -> Result<Draft, String> {
    match schema.get("$schema") {
        None => Ok(Draft::Draft202012),
        Some(Value::String(uri)) => match uri.trim_end_matches('#') {
            "https://json-schema.org/draft/2020-12/schema" => Ok(Draft::Draft202012),
            "https://json-schema.org/draft/2019-09/schema" => Ok(Draft::Draft201909),
            "http://json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
            "http://json-schema.org/draft-06/schema" => Ok(Draft::Draft6),
            "http://json-schema.org/draft-04/schema" => Ok(Draft::Draft4),
            other => Err(format!(
                "its dialect `{}` is not known here",
                other.chars().take(100).collect::<String>()
            )),
        },
        Some(_) => Err("its `$schema` is no text".to_owned()),
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(dialect(schema)?)
        // Patterns come from documents of others: an engine without backtracking runs in linear time.
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .offline()
        .build(schema)
        .map_err(|error| error.to_string())
}

/// What does not fit, without the values.
fn described(validator: &Validator, value: &Value, tell: fn(&ValidationError<'_>) -> String) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut more = false;
    for error in validator.iter_errors(value) {
        if texts.len() == FAULTS_MAX {
            more = true;
            break;
        }
        texts.push(tell(&error));
    }
    let mut text = texts.join("; ");
    if more {
        text.push_str("; and more");
    }
    text
}

/// A fault with its place in the value.
fn for_caller(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let message = masked(error);
    if place.is_empty() {
        message
    } else {
        format!("`{}`: {message}", place.trim_start_matches('/'))
    }
}

/// A fault with its place in the schema, which holds no word of whoever sent the value.
fn for_log(error: &ValidationError<'_>) -> String {
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("{} undeclared", unexpected.len())
        }
        ValidationErrorKind::PropertyNames { .. } => "a name that does not fit".to_owned(),
        _ => masked(error),
    };
    format!("{message} (`{}` of the schema)", error.schema_path())
}

fn masked(error: &ValidationError<'_>) -> String {
    let message = error.masked_with("the value").to_string();
    message.chars().take(MESSAGE_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_keeps_no_name_and_no_value_that_a_caller_chose() {
        let schema = json!({
            "type":"object", "required":["id"], "additionalProperties":false,
            "properties":{
                "id":{"type":"string","maxLength":4,"enum":["a"]},
                "labels":{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"maxLength":3}},
            },
        });
        let validator = compile(&schema).unwrap();
        for (value, told, kept) in [
            (json!({"id":"a","CANARY":1}), "CANARY", "1 undeclared"),
            (json!({"id":"CANARY"}), "`id`", "/properties/id/"),
            (
                json!({"id":"a","labels":{"CANARY":"x"}}),
                "labels",
                "a name that does not fit",
            ),
            (
                json!({"id":"a","labels":{"CAN":7}}),
                "labels/CAN",
                "/properties/labels/additionalProperties",
            ),
            (json!({}), "\"id\"", "\"id\""),
        ] {
            let caller = described(&validator, &value, for_caller);
            assert!(caller.contains(told), "{value}: {caller}");
            let log = described(&validator, &value, for_log);
            assert!(log.contains(kept) && !log.contains("CAN"), "{value}: {log}");
        }
    }
}
