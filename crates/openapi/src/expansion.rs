//! What a finished schema costs a validator: how many schemas it applies to one value.
//!
//! `$defs` keep a schema small on paper, but `allOf` of twice the same, twenty levels deep, is a million checks of one
//! value; and a definition that applies itself to the same value never ends. Both are found here, before a call.

use std::collections::HashMap;

use model::{Object, Value};

/// Schemas that may apply to one value. A large real schema has a few hundred.
const APPLIED_MAX: usize = 20_000;
/// Definitions that may apply each other to one value, one inside the other.
const DEPTH_MAX: usize = 100;

/// Why a schema must not be handed to a validator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpansionFault {
    #[error("the schema `{0}` applies itself to the same value, so that checking never ends")]
    Cycle(String),
    #[error("more than {APPLIED_MAX} schemas, or {DEPTH_MAX} inside each other, apply to one value")]
    Wide,
    #[error("the reference `{0}` names no definition")]
    Dangling(String),
}

/// Checks a schema with its `$defs`.
pub(crate) fn check(schema: &Value) -> Result<(), ExpansionFault> {
    let empty = Object::new();
    let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&empty);
    let mut costs = Costs {
        definitions,
        known: HashMap::new(),
    };
    costs.every_value(schema)?;
    for definition in definitions.values() {
        costs.every_value(definition)?;
    }
    Ok(())
}

/// Keywords that apply schemas to the same value: one schema, a list, or an object of schemas.
const SAME_VALUE: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
];
/// Keywords that apply schemas to a part of the value, or to a key of it.
const OTHER_VALUE: [&str; 10] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];

struct Costs<'v> {
    definitions: &'v Object,
    /// The cost of a definition; `None` while it is being counted.
    known: HashMap<&'v str, Option<usize>>,
}

impl<'v> Costs<'v> {
    /// Counts at this value and at each part of it that the schema describes.
    fn every_value(&mut self, schema: &'v Value) -> Result<(), ExpansionFault> {
        self.count(schema, 0)?;
        self.parts(schema)
    }

    fn parts(&mut self, schema: &'v Value) -> Result<(), ExpansionFault> {
        let Some(object) = schema.as_object() else {
            return Ok(());
        };
        for (keyword, value) in object {
            if OTHER_VALUE.contains(&keyword.as_str()) {
                inside(keyword, value).try_for_each(|schema| self.every_value(schema))?;
            } else if SAME_VALUE.contains(&keyword.as_str()) {
                inside(keyword, value).try_for_each(|schema| self.parts(schema))?;
            }
        }
        Ok(())
    }

    fn count(&mut self, schema: &'v Value, depth: usize) -> Result<usize, ExpansionFault> {
        if depth > DEPTH_MAX {
            return Err(ExpansionFault::Wide);
        }
        let Some(object) = schema.as_object() else {
            return Ok(1);
        };
        let mut sum = 1_usize;
        for (keyword, value) in object {
            if SAME_VALUE.contains(&keyword.as_str()) {
                for schema in inside(keyword, value) {
                    sum = sum.saturating_add(self.count(schema, depth + 1)?);
                }
            }
        }
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            sum = sum.saturating_add(self.definition(reference, depth + 1)?);
        }
        if sum > APPLIED_MAX {
            return Err(ExpansionFault::Wide);
        }
        Ok(sum)
    }

    fn definition(&mut self, reference: &'v str, depth: usize) -> Result<usize, ExpansionFault> {
        let name = reference.strip_prefix("#/$defs/").unwrap_or(reference);
        match self.known.get(name) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(ExpansionFault::Cycle(name.to_owned())),
            None => {}
        }
        let definition = self
            .definitions
            .get(name)
            .ok_or_else(|| ExpansionFault::Dangling(name.to_owned()))?;
        self.known.insert(name, None);
        let cost = self.count(definition, depth)?;
        self.known.insert(name, Some(cost));
        Ok(cost)
    }
}

/// The schemas under a keyword, whether it holds one, a list, or an object of them.
fn inside<'v>(keyword: &str, value: &'v Value) -> impl Iterator<Item = &'v Value> + use<'v> {
    let is_map = matches!(keyword, "properties" | "patternProperties" | "dependentSchemas");
    let (list, map, one) = match value {
        Value::Array(schemas) => (Some(schemas), None, None),
        Value::Object(schemas) if is_map => (None, Some(schemas), None),
        schema => (None, None, Some(schema)),
    };
    list.into_iter()
        .flatten()
        .chain(map.into_iter().flat_map(Object::values))
        .chain(one)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cycle_through_a_part_of_the_value_is_fine_and_one_on_the_same_value_is_not() {
        let tree = json!({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"kids": {"items": {"$ref": "#/$defs/t"}}}}}});
        assert_eq!(check(&tree), Ok(()));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let knot =
                json!({"$defs": {"a": {keyword: [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}});
            assert!(matches!(check(&knot), Err(ExpansionFault::Cycle(_))), "{keyword}");
        }
        for keyword in ["not", "if", "then", "else"] {
            let knot = json!({"$defs": {"a": {keyword: {"$ref": "#/$defs/a"}}}});
            assert!(matches!(check(&knot), Err(ExpansionFault::Cycle(_))), "{keyword}");
        }
        let hidden = json!({"properties": {"x": {"allOf": [{"dependentSchemas": {"k": {"$ref": "#/$defs/a"}}}]}},
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        assert!(matches!(check(&hidden), Err(ExpansionFault::Cycle(_))));
    }

    #[test]
    fn a_schema_that_doubles_is_found_where_it_passes_the_limit() {
        let doubling = |levels: usize| {
            let mut definitions = json!({});
            for level in 0..levels {
                let below = json!({"$ref": format!("#/$defs/l{}", level + 1)});
                definitions[format!("l{level}")] = json!({"allOf": [below, below]});
            }
            definitions[format!("l{levels}")] = json!({"type": "string"});
            json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions})
        };
        assert_eq!(check(&doubling(10)), Ok(()));
        assert_eq!(check(&doubling(20)), Err(ExpansionFault::Wide));
        // The same through parts of the value needs a value as large, and is fine.
        let mut definitions = json!({});
        for level in 0..40 {
            let below = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions[format!("l{level}")] = json!({"properties": {"x": below, "y": below}});
        }
        definitions["l40"] = json!({});
        assert_eq!(
            check(&json!({"$ref": "#/$defs/l0", "$defs": definitions})),
            Ok(())
        );
    }

    #[test]
    fn definitions_inside_each_other_are_counted_up_to_a_depth() {
        let chain = |length: usize| {
            let mut definitions = json!({});
            for n in 0..length {
                definitions[format!("d{n}")] = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            }
            definitions[format!("d{length}")] = json!({});
            json!({"items": {"$ref": "#/$defs/d0"}, "$defs": definitions})
        };
        assert_eq!(check(&chain(DEPTH_MAX - 1)), Ok(()));
        assert_eq!(check(&chain(DEPTH_MAX)), Err(ExpansionFault::Wide));
        assert_eq!(check(&chain(5_000)), Err(ExpansionFault::Wide));
    }

    #[test]
    fn a_reference_to_nothing_is_found() {
        assert_eq!(
            check(&json!({"items": {"$ref": "#/$defs/x"}})),
            Err(ExpansionFault::Dangling("x".to_owned()))
        );
        // A field that is called like a keyword is a field.
        assert_eq!(
            check(&json!({"properties": {"$ref": {"type": "string"}, "not": true}})),
            Ok(())
        );
    }
}
