//! Which JSON types a schema lets through: what decides how a parameter is serialised, and whether it can be.
//!
//! A reading of the raw schema that is never narrower than the schema: what is not understood lets everything through.

use model::Value;

use crate::reference::{Resolver, reference_of};

/// Steps that all looks at the raw document for one tool may take together. Each is one small schema object.
const STEPS_MAX: usize = 200_000;
/// Schemas inside each other that one look goes through.
const DEPTH_MAX: usize = 48;

/// The work that is left for one tool. A hostile document could else make small questions expensive.
#[derive(Debug)]
pub(crate) struct Work {
    left: usize,
}

impl Work {
    pub(crate) const fn new() -> Self {
        Self { left: STEPS_MAX }
    }

    /// Takes one step; `false` where none is left.
    pub(crate) fn step(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// The steps that are left.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Takes steps that were counted before. At most all but one of those that are left.
    pub(crate) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps).max(1);
    }

    /// Whether answers since then may have been cut short.
    pub(crate) const fn is_spent(&self) -> bool {
        self.left == 0
    }
}

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape(u8);

impl Shape {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    const BOOLEAN: Self = Self(2);
    const NUMBER: Self = Self(4);
    pub(crate) const STRING: Self = Self(8);
    pub(crate) const ARRAY: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    /// Everything: nothing is said about the type.
    pub(crate) const ANY: Self = Self(63);

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the sets have a type in common.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn of_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" | "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }
}

/// The types that the schema at a place lets through.
pub(crate) fn of(resolver: Resolver<'_>, work: &mut Work, schema: &Value) -> Shape {
    look(resolver, work, schema, 0)
}

fn look(resolver: Resolver<'_>, work: &mut Work, schema: &Value, depth: usize) -> Shape {
    if depth > DEPTH_MAX || !work.step() {
        return Shape::ANY;
    }
    let Some(object) = schema.as_object() else {
        return if schema == &Value::Bool(false) {
            Shape::NONE
        } else {
            Shape::ANY
        };
    };
    let mut shape = Shape::ANY;
    if let Some(target) = reference_of(schema).and_then(|reference| resolver.value(reference)) {
        shape = shape.and(look(resolver, work, target, depth + 1));
    }
    match object.get("type") {
        Some(Value::String(name)) => shape = shape.and(Shape::of_name(name)),
        Some(Value::Array(names)) => {
            let union = names
                .iter()
                .map(|name| name.as_str().map_or(Shape::ANY, Shape::of_name))
                .fold(Shape::NONE, Shape::or);
            shape = shape.and(union);
        }
        _ => {}
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        shape = shape.and(values.iter().map(Shape::of_value).fold(Shape::NONE, Shape::or));
    }
    if let Some(value) = object.get("const") {
        shape = shape.and(Shape::of_value(value));
    }
    for member in members(object, "allOf") {
        shape = shape.and(look(resolver, work, member, depth + 1));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = object.get(keyword) {
            let mut union = Shape::NONE;
            for member in members {
                union = union.or(look(resolver, work, member, depth + 1));
            }
            shape = shape.and(union);
        }
    }
    if object.get("nullable") == Some(&Value::Bool(true)) && shape != Shape::ANY {
        shape = shape.or(Shape::NULL);
    }
    shape
}

/// The types that items of an array may have, over every branch that says so. `None` where no branch does.
pub(crate) fn of_items(resolver: Resolver<'_>, work: &mut Work, schema: &Value) -> Option<Shape> {
    look_at_items(resolver, work, schema, 0)
}

fn look_at_items(resolver: Resolver<'_>, work: &mut Work, schema: &Value, depth: usize) -> Option<Shape> {
    if depth > DEPTH_MAX || !work.step() {
        return Some(Shape::ANY);
    }
    let object = schema.as_object()?;
    let mut found: Option<Shape> = None;
    let mut add = |shape: Option<Shape>| {
        if let Some(shape) = shape {
            found = Some(found.unwrap_or(Shape::NONE).or(shape));
        }
    };
    if let Some(target) = reference_of(schema).and_then(|reference| resolver.value(reference)) {
        add(look_at_items(resolver, work, target, depth + 1));
    }
    match object.get("items") {
        Some(Value::Array(items)) => {
            for item in items {
                add(Some(look(resolver, work, item, depth + 1)));
            }
        }
        Some(items) => add(Some(look(resolver, work, items, depth + 1))),
        None => {}
    }
    for keyword in ["prefixItems"] {
        for item in members(object, keyword) {
            add(Some(look(resolver, work, item, depth + 1)));
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for member in members(object, keyword) {
            add(look_at_items(resolver, work, member, depth + 1));
        }
    }
    found
}

/// The types that members of an object may have, over every branch that says so. `None` where no branch does.
pub(crate) fn of_members(resolver: Resolver<'_>, work: &mut Work, schema: &Value) -> Option<Shape> {
    look_at_members(resolver, work, schema, 0)
}

fn look_at_members(resolver: Resolver<'_>, work: &mut Work, schema: &Value, depth: usize) -> Option<Shape> {
    if depth > DEPTH_MAX || !work.step() {
        return Some(Shape::ANY);
    }
    let object = schema.as_object()?;
    let mut found: Option<Shape> = None;
    let mut add = |shape: Option<Shape>| {
        if let Some(shape) = shape {
            found = Some(found.unwrap_or(Shape::NONE).or(shape));
        }
    };
    if let Some(target) = reference_of(schema).and_then(|reference| resolver.value(reference)) {
        add(look_at_members(resolver, work, target, depth + 1));
    }
    for keyword in ["properties", "patternProperties"] {
        for member in object
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            // A member of which nothing is said is looked at when it is sent.
            let shape = look(resolver, work, member.1, depth + 1);
            add((shape != Shape::ANY).then_some(shape));
        }
    }
    if let Some(rest) = object.get("additionalProperties") {
        let shape = look(resolver, work, rest, depth + 1);
        add((shape != Shape::ANY).then_some(shape));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for member in members(object, keyword) {
            add(look_at_members(resolver, work, member, depth + 1));
        }
    }
    found
}

fn members<'v>(object: &'v model::Object, keyword: &str) -> impl Iterator<Item = &'v Value> {
    object
        .get(keyword)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Whether a schema, or one that it is made of, carries a flag such as `readOnly`.
pub(crate) fn is_flagged(resolver: Resolver<'_>, work: &mut Work, schema: &Value, flag: &str) -> bool {
    fn at(resolver: Resolver<'_>, work: &mut Work, schema: &Value, flag: &str, depth: usize) -> bool {
        if depth > 16 || !work.step() {
            return false;
        }
        let Some(object) = schema.as_object() else {
            return false;
        };
        object.get(flag) == Some(&Value::Bool(true))
            || reference_of(schema)
                .and_then(|reference| resolver.value(reference))
                .is_some_and(|target| at(resolver, work, target, flag, depth + 1))
            || members(object, "allOf").any(|member| at(resolver, work, member, flag, depth + 1))
    }
    at(resolver, work, schema, flag, 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PRIMITIVE: Shape = Shape(2 | 4 | 8);

    #[test]
    fn the_types_of_a_schema_are_those_that_it_lets_through() {
        let root = json!({"s": {"type": "string"}, "loop": {"allOf": [{"$ref": "#/loop"}, {"type": "array"}]},
            "tight": {"anyOf": [{"$ref": "#/tight"}]}});
        for (schema, expected) in [
            (json!({}), Shape::ANY),
            (json!(true), Shape::ANY),
            (json!(false), Shape::NONE),
            (json!({"type": "integer"}), Shape::NUMBER),
            (json!({"type": ["string", "null"]}), Shape::STRING.or(Shape::NULL)),
            (
                json!({"type": "string", "nullable": true}),
                Shape::STRING.or(Shape::NULL),
            ),
            (json!({"nullable": true}), Shape::ANY),
            (json!({"enum": ["a", 1]}), Shape::STRING.or(Shape::NUMBER)),
            (json!({"const": null}), Shape::NULL),
            (json!({"$ref": "#/s"}), Shape::STRING),
            (json!({"$ref": "#/nowhere"}), Shape::ANY),
            (
                json!({"allOf": [{"$ref": "#/s"}, {"maxLength": 3}]}),
                Shape::STRING,
            ),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "array"}]}),
                Shape::STRING.or(Shape::ARRAY),
            ),
            (json!({"anyOf": [{"type": "string"}, {}]}), Shape::ANY),
            (json!({"$ref": "#/loop"}), Shape::ARRAY),
            (json!({"$ref": "#/tight"}), Shape::ANY),
            (json!({"type": 7}), Shape::ANY),
        ] {
            assert_eq!(
                of(Resolver::new(&root), &mut Work::new(), &schema),
                expected,
                "{schema}"
            );
        }
        assert!(PRIMITIVE.meets(Shape::STRING) && !PRIMITIVE.meets(Shape::OBJECT));
    }

    #[test]
    fn the_types_of_items_come_from_every_branch() {
        let root = json!({"l": {"type": "array", "items": {"type": "object"}}});
        for (schema, expected) in [
            (json!({"type": "array"}), None),
            (json!({"items": {"type": "string"}}), Some(Shape::STRING)),
            (
                json!({"oneOf": [{"type": "string"}, {"items": {"type": "string"}}, {"$ref": "#/l"}]}),
                Some(Shape::STRING.or(Shape::OBJECT)),
            ),
            (
                json!({"prefixItems": [{"type": "string"}], "items": false}),
                Some(Shape::STRING),
            ),
        ] {
            assert_eq!(
                of_items(Resolver::new(&root), &mut Work::new(), &schema),
                expected,
                "{schema}"
            );
        }
    }

    #[test]
    fn a_flag_is_found_behind_references_and_in_all_of() {
        let root = json!({"id": {"type": "string", "readOnly": true}, "loop": {"$ref": "#/loop"}});
        for (schema, expected) in [
            (json!({"readOnly": true}), true),
            (json!({"readOnly": false}), false),
            (json!({"$ref": "#/id"}), true),
            (json!({"allOf": [{"$ref": "#/id"}]}), true),
            (json!({"anyOf": [{"$ref": "#/id"}]}), false),
            (json!({"$ref": "#/loop"}), false),
        ] {
            let found = is_flagged(Resolver::new(&root), &mut Work::new(), &schema, "readOnly");
            assert_eq!(found, expected, "{schema}");
        }
    }

    #[test]
    fn work_ends_however_a_document_is_knotted() {
        let members: Vec<_> = (0..40).map(|_| json!({"$ref": "#/knot"})).collect();
        let root = json!({"knot": {"allOf": members}});
        let mut work = Work::new();
        assert_eq!(of(Resolver::new(&root), &mut work, &root["knot"]), Shape::ANY);
        assert!(work.is_spent());
    }
}
