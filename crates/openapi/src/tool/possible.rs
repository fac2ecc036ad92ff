//! Whether anything can fit an input at all: a field that must be given and must not be is found before a caller tries.
//!
//! It looks only at what every call must have, and finds the one contradiction that documents really have. It says nothing
//! of bounds that cross.

use std::collections::HashSet;

use model::{Object, Value};

/// Schemas that are looked at.
const STEPS_MAX: usize = 10_000;

/// The name of a field that every call must have and that none may have. `root`: an input schema with its `$defs`.
pub(super) fn refused(root: &Value) -> Option<String> {
    let mut look = Look {
        root,
        left: STEPS_MAX,
        on_the_way: HashSet::new(),
    };
    look.at(root)
}

struct Look<'s> {
    root: &'s Value,
    left: usize,
    /// Definitions that the look is inside of. One that needs itself is no contradiction of this kind.
    on_the_way: HashSet<&'s str>,
}

impl<'s> Look<'s> {
    fn at(&mut self, schema: &'s Value) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        let object = schema.as_object()?;
        if let Some(reference) = object.get("$ref").and_then(Value::as_str)
            && self.on_the_way.insert(reference)
        {
            let target = reference
                .strip_prefix('#')
                .and_then(|place| self.root.pointer(place));
            let found = target.and_then(|target| self.at(target));
            self.on_the_way.remove(reference);
            if found.is_some() {
                return found;
            }
        }
        let list = |keyword: &str| object.get(keyword).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            if let Some(found) = self.at(part) {
                return Some(found);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let ways = list(keyword).map(Vec::as_slice).unwrap_or_default();
            let found: Vec<String> = ways.iter().map_while(|way| self.at(way)).collect();
            if !ways.is_empty() && found.len() == ways.len() {
                return found.into_iter().next();
            }
        }
        // Only of an object does it say that something fits; null beside it fits as well.
        if object.get("type") != Some(&Value::from("object")) {
            return None;
        }
        self.fields(object)
    }

    fn fields(&mut self, object: &'s Object) -> Option<String> {
        let properties = object.get("properties").and_then(Value::as_object);
        let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false))
            && !object.contains_key("patternProperties");
        for name in object
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = name.as_str()?;
            let schema = properties.and_then(|properties| properties.get(name));
            let found = match schema {
                None if is_closed => Some(name.to_owned()),
                None => None,
                Some(Value::Bool(false)) => Some(name.to_owned()),
                Some(schema) => self.at(schema),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_required_and_refused_is_found_where_every_call_needs_it() {
        let closed = json!({"type": "object", "required": ["x"], "properties": {"y": {}}, "additionalProperties": false});
        let around = |schema: Value| {
            json!({"type": "object", "required": ["a"], "properties": {"a": schema}, "additionalProperties": false,
                "$defs": {"C": closed, "R": {"type": "object", "required": ["r"], "properties": {"r": {"$ref": "#/$defs/R"}}}}})
        };
        for (schema, expected) in [
            (closed.clone(), Some("x")),
            (json!(false), Some("a")),
            (json!({"$ref": "#/$defs/C"}), Some("x")),
            (
                json!({"allOf": [{"type": "object"}, {"$ref": "#/$defs/C"}]}),
                Some("x"),
            ),
            (json!({"oneOf": [{"$ref": "#/$defs/C"}, closed]}), Some("x")),
            (
                json!({"oneOf": [{"$ref": "#/$defs/C"}, {"type": "string"}]}),
                None,
            ),
            (
                json!({"type": ["object", "null"], "required": ["x"], "additionalProperties": false}),
                None,
            ),
            (
                json!({"type": "object", "required": ["x"], "additionalProperties": true}),
                None,
            ),
            (
                json!({"type": "object", "required": ["x"], "additionalProperties": false, "patternProperties": {"x": {}}}),
                None,
            ),
            (json!({"type": "array", "items": {"$ref": "#/$defs/C"}}), None),
            (json!({"$ref": "#/$defs/R"}), None),
        ] {
            assert_eq!(refused(&around(schema.clone())).as_deref(), expected, "{schema}");
        }
        let mut optional = around(closed.clone());
        optional["required"] = json!([]);
        assert_eq!(refused(&optional), None);
    }
}
