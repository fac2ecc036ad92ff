//! The third reader of the table of keys: a JSON Schema, for editors and for other programs.
//!
//! The schema says what the check says of one key at a time. What several keys mean together only `load` knows.

use model::{Object, Value};
use serde_json::json;

use crate::amount;
use crate::form::{Form, Indirect};
use crate::key::{Choice, Key, Kind, Need, Section};
use crate::raw::{self, read_value};
use crate::table::ROOT;

/// A JSON Schema (2020-12) of the configuration, for editors and other programs.
///
/// Every example of the table of keys fits it; every key that is not known, missing or of another type does not.
#[must_use]
pub fn schema() -> Value {
    let mut root = section(&ROOT);
    let definitions: Object = ROOT
        .tree()
        .iter()
        .skip(1)
        .map(|below| (name(below), Value::Object(section(below))))
        .collect();
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!("The configuration of Tollhouse"));
    root.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(root)
}

/// The name of a section among the definitions: `upstream.tool.resource`.
pub(crate) fn name(section: &Section) -> String {
    // A section in which every key has the same keys below it is told apart by its last word.
    match section.at.strip_suffix(".<approved>") {
        Some(parent) => format!("{}.each", parent.replace(".<name>", "")),
        None => section
            .at
            .replace(".<name>", "")
            .replace(' ', ".")
            .replace('`', ""),
    }
}

fn section(section: &Section) -> Object {
    let properties: Object = section
        .keys()
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required: Vec<&str> = section
        .keys()
        .iter()
        .filter(|key| matches!(key.need, Need::Required))
        .map(|key| key.name)
        .collect();
    let mut schema = Object::new();
    schema.insert("description".to_owned(), json!(section.doc));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    let mut choices: Vec<Value> = section
        .choices
        .iter()
        .map(|Choice { keys, required }| {
            let one = keys.iter().map(|key| json!({ "required": [key] }));
            let none = json!({ "not": { "anyOf": one.clone().collect::<Vec<_>>() } });
            one.chain((!required).then_some(none)).collect()
        })
        .collect();
    if choices.len() > 1 {
        // A keyword stands once in an object.
        let each: Vec<Value> = choices
            .into_iter()
            .map(|choice| json!({ "oneOf": choice }))
            .collect();
        schema.insert("allOf".to_owned(), Value::Array(each));
    } else if let Some(choice) = choices.pop() {
        schema.insert("oneOf".to_owned(), choice);
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = kind(&key.kind);
    schema.insert("description".to_owned(), json!(key.doc));
    if let Need::Default(text) = key.need
        && let Some(value) = json_of(text)
    {
        schema.insert("default".to_owned(), value);
    }
    if let Some(value) = json_of(key.example) {
        schema.insert("examples".to_owned(), json!([value]));
    }
    Value::Object(schema)
}

fn kind(kind: &Kind) -> Object {
    object(match kind {
        Kind::Text(form) => text(form),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Size { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": amount::SIZE_PATTERN },
        ] }),
        Kind::Span { .. } => json!({ "type": "string", "pattern": amount::SPAN_PATTERN }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Datum { lists: false } => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Datum { lists: true } => json!({ "anyOf": [
            { "type": ["string", "number", "boolean"] },
            { "type": "array", "items": { "type": ["string", "number", "boolean"] } },
        ] }),
        Kind::Word { words, .. } => json!({ "type": "string", "enum": words }),
        Kind::List { of, min, max } => {
            json!({ "type": "array", "items": self::kind(of), "minItems": min, "maxItems": max })
        }
        Kind::OneOrMany { of, max } => json!({ "anyOf": [
            text(of),
            { "type": "array", "items": text(of), "minItems": 1, "maxItems": max },
        ] }),
        Kind::Table(section) => json!({ "$ref": format!("#/$defs/{}", name(section)) }),
        Kind::Cases(cases) => {
            let each = cases
                .iter()
                .map(|case| json!({ "$ref": format!("#/$defs/{}", name(case.section)) }));
            json!({ "oneOf": each.collect::<Vec<_>>() })
        }
        Kind::Named { name, of, min, max } => json!({
            "type": "object",
            "propertyNames": text(name),
            "additionalProperties": self::kind(of),
            "minProperties": min,
            "maxProperties": max,
        }),
    })
}

fn text(form: &Form) -> Value {
    let mut here = object(json!({ "minLength": 1 }));
    if let Some(pattern) = form.pattern {
        here.insert("pattern".to_owned(), json!(pattern));
    }
    let variable = json!({ "pattern": "^env:[A-Za-z0-9_]{1,256}$" });
    let file = json!({ "pattern": "^file:.+$" });
    match form.indirect {
        Indirect::No => {
            here.insert("type".to_owned(), json!("string"));
            Value::Object(here)
        }
        Indirect::Variable => json!({ "type": "string", "anyOf": [here, variable] }),
        Indirect::VariableOrFile => json!({ "type": "string", "anyOf": [here, variable, file] }),
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// A value of the table of keys as JSON.
pub(crate) fn json_of(text: &str) -> Option<Value> {
    read_value(text).map(|node| convert(&node.value))
}

fn convert(value: &raw::Value) -> Value {
    match value {
        raw::Value::Text(text) | raw::Value::Time(text) => json!(text),
        raw::Value::Integer(number, _) => json!(number),
        raw::Value::Float(text) => text.parse::<f64>().map_or(Value::Null, |number| json!(number)),
        raw::Value::Truth(truth) => json!(truth),
        raw::Value::List(items) => items.iter().map(|item| convert(&item.value)).collect(),
        raw::Value::Table(table) => table
            .entries
            .iter()
            .map(|entry| (entry.name.clone(), convert(&entry.node.value)))
            .collect(),
        raw::Value::Deep => Value::Null,
    }
}
