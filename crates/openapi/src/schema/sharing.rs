//! Long lists of values that stand in one schema several times, as all countries or all kinds of shops: each stands once, in the
//! definitions. The type stays where it was, because rules and people read it there. Which values fit is the same.

use std::collections::{HashMap, HashSet};

use model::{Object, Value};

use super::fold::each_schema;
use crate::length::json_length;

/// The shortest list that is moved, in bytes of JSON: a short one is read more easily where it stands.
const LIST_BYTES_MIN: usize = 256;

/// Moves the lists. `root`: a finished schema with its `$defs`.
pub(crate) fn share(root: &mut Object) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    every(root, &mut |object| {
        if let Some(list) = movable(object) {
            *counts.entry(list).or_default() += 1;
        }
    });
    counts.retain(|_, count| *count > 1);
    if counts.is_empty() {
        return;
    }
    let taken: HashSet<String> = root
        .get("$defs")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Object::keys)
        .cloned()
        .collect();
    let mut free = (1_usize..)
        .map(|number| format!("values.{number}"))
        .filter(|name| !taken.contains(name));
    let mut names: HashMap<String, String> = HashMap::new();
    let mut moved = Object::new();
    every(root, &mut |object| {
        let Some(list) = movable(object).filter(|list| counts.contains_key(list)) else {
            return;
        };
        let Some(values) = object.shift_remove("enum") else {
            return;
        };
        let name = names
            .entry(list)
            .or_insert_with(|| free.next().unwrap_or_default());
        if !moved.contains_key(name) {
            let mut definition = Object::new();
            definition.insert("enum".to_owned(), values);
            moved.insert(name.clone(), Value::Object(definition));
        }
        object.insert("$ref".to_owned(), Value::String(format!("#/$defs/{name}")));
    });
    let definitions = root
        .entry("$defs")
        .or_insert_with(|| Value::Object(Object::new()));
    if let Some(definitions) = definitions.as_object_mut() {
        definitions.extend(moved);
    }
}

/// The list of a schema as a text, where it is long and nothing stands where its reference would.
fn movable(object: &Object) -> Option<String> {
    let list = object.get("enum").filter(|_| !object.contains_key("$ref"))?;
    (json_length(list) >= LIST_BYTES_MIN).then(|| list.to_string())
}

/// Tells of every schema, definitions included.
fn every(root: &mut Object, tell: &mut dyn FnMut(&mut Object)) {
    fn within(schema: &mut Value, tell: &mut dyn FnMut(&mut Object)) {
        if let Some(object) = schema.as_object_mut() {
            inside(object, tell);
        }
    }
    fn inside(object: &mut Object, tell: &mut dyn FnMut(&mut Object)) {
        tell(object);
        each_schema(object, &mut |schema| within(schema, tell));
    }
    if let Some(definitions) = root.get_mut("$defs").and_then(Value::as_object_mut) {
        definitions.values_mut().for_each(|schema| within(schema, tell));
    }
    inside(root, tell);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(length: usize) -> Value {
        // Two bytes for the brackets, and six for each of the values but for the last comma.
        let count = (length - 1) / 6;
        let mut values: Vec<String> = (0..count).map(|n| format!("v{:02}", n % 100)).collect();
        let missing = length - 1 - count * 6;
        values[0].push_str(&"x".repeat(missing));
        json!(values)
    }

    #[test]
    fn a_long_list_that_stands_twice_stands_once_and_types_stay() {
        let long = list(LIST_BYTES_MIN);
        assert_eq!(json_length(&long), LIST_BYTES_MIN);
        let short = list(LIST_BYTES_MIN - 1);
        let other = list(400);
        let text = |list: &Value| json!({"type": "string", "description": "d", "enum": list});
        let root = json!({
            "type": "object",
            "properties": {
                "a": text(&long), "b": {"type": "array", "items": text(&long)}, "c": text(&short), "d": text(&short),
                "once": text(&other), "enum": {"$ref": "#/$defs/A"},
                // A value is no schema.
                "e": {"const": text(&long)},
            },
            "$defs": {"A": {"anyOf": [text(&long), {"type": "null"}]}, "values.1": {"type": "integer"}},
        });
        let mut shared = root.clone();
        share(shared.as_object_mut().unwrap());
        let moved = json!({"type": "string", "description": "d", "$ref": "#/$defs/values.2"});
        assert_eq!(
            shared,
            json!({
                "type": "object",
                "properties": {
                    "a": moved, "b": {"type": "array", "items": moved}, "c": text(&short), "d": text(&short),
                    "once": text(&other), "enum": {"$ref": "#/$defs/A"}, "e": {"const": text(&long)},
                },
                "$defs": {
                    "A": {"anyOf": [moved, {"type": "null"}]}, "values.1": {"type": "integer"}, "values.2": {"enum": long},
                },
            })
        );
        let again = shared.clone();
        share(shared.as_object_mut().unwrap());
        assert_eq!(shared, again);
        let first = long[0].clone();
        for value in [
            json!({"a": first, "b": [first], "enum": first}),
            json!({"a": "z"}),
            json!({"b": ["z"]}),
        ] {
            assert_eq!(
                jsonschema::is_valid(&root, &value),
                jsonschema::is_valid(&shared, &value),
                "{value}"
            );
        }
        assert!(!jsonschema::is_valid(&shared, &json!({"a": "z"})));
    }
}
