//! What rules can read of a tool's arguments: a JSON Schema, reduced to types that Cedar has.
//!
//! Only what has one certain type is readable. Everything else is left out under its name and with the reason, so
//! that a rule which names it refuses to load, instead of reading an argument as absent that is there.

use std::collections::{BTreeMap, BTreeSet};

use model::{Object, Value};

/// How deep records may stand inside each other below `context.arguments`.
pub(crate) const RECORDS_MAX: usize = 4;

/// How many properties of one tool are readable; the schema is only as large as its rules can use.
pub(crate) const PROPERTIES_MAX: usize = 1_000;

/// A type that rules can read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Shape {
    One(Scalar),
    SetOf(Scalar),
    Record(Record),
}

/// A type without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scalar {
    Text,
    Integer,
    Truth,
    /// A point in time. No argument has it: JSON has no such type, and a text may be any text.
    Instant,
}

/// Named parts, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Record {
    pub(crate) fields: BTreeMap<String, Field>,
    /// Whether a value may have parts that are not declared here. Rules cannot read them, and cannot tell that they
    /// are not there either.
    open: bool,
}

/// One part of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Field {
    /// Rules can read it.
    Readable { shape: Shape, required: bool },
    /// It may be there, and rules cannot read it.
    LeftOut(&'static str),
}

/// What a path of names leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Shape { shape: &'a Shape, required: bool },
    LeftOut(&'static str),
    Nothing,
}

// === impl Scalar ===

impl Scalar {
    /// The type's name in a Cedar schema.
    pub(crate) const fn cedar(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::Integer => "Long",
            Self::Truth => "Bool",
            Self::Instant => "datetime",
        }
    }
}

// === impl Record ===

impl Record {
    /// The arguments that a tool declares. A schema that is not of an object declares none.
    pub(crate) fn of_arguments(schema: &Value) -> Self {
        let mut left = PROPERTIES_MAX;
        match schema {
            // The gateway refuses arguments that are not declared, unless the schema asks for them by name.
            Value::Object(object) => Self {
                open: open(object),
                ..Self::of(object, RECORDS_MAX, &mut left)
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Self::default()
            }
        }
    }

    /// A record of fields that are all there, each under a name of our own.
    pub(crate) fn all_required<N: Into<String>>(fields: impl IntoIterator<Item = (N, Shape)>) -> Self {
        let field = |(name, shape): (N, Shape)| {
            let required = true;
            (name.into(), Field::Readable { shape, required })
        };
        Self {
            fields: fields.into_iter().map(field).collect(),
            open: false,
        }
    }

    /// Follows names inwards.
    pub(crate) fn find(&self, path: &[String]) -> Found<'_> {
        let Some((last, above)) = path.split_last() else {
            return Found::Nothing;
        };
        let mut record = self;
        for name in above {
            match record.fields.get(name) {
                Some(Field::Readable {
                    shape: Shape::Record(inner),
                    ..
                }) => record = inner,
                Some(Field::LeftOut(why)) => return Found::LeftOut(why),
                Some(Field::Readable {
                    shape: Shape::One(_) | Shape::SetOf(_),
                    ..
                }) => return Found::Nothing,
                None => return record.undeclared(),
            }
        }
        match record.fields.get(last) {
            Some(Field::Readable { shape, required }) => Found::Shape {
                shape,
                required: *required,
            },
            Some(Field::LeftOut(why)) => Found::LeftOut(why),
            None => record.undeclared(),
        }
    }

    fn undeclared(&self) -> Found<'_> {
        if self.open {
            Found::LeftOut("it is not declared, and the schema does not rule it out")
        } else {
            Found::Nothing
        }
    }

    /// The part of it that lies on these paths. A record at the end of a path is there, with nothing in it.
    pub(crate) fn only(&self, paths: &BTreeSet<&[String]>) -> Self {
        let mut inward: BTreeMap<&String, BTreeSet<&[String]>> = BTreeMap::new();
        for path in paths {
            if let Some((first, rest)) = path.split_first() {
                inward.entry(first).or_default().insert(rest);
            }
        }
        let fields = self.fields.iter().filter_map(|(name, field)| {
            let paths = inward.get(name)?;
            let field = match field {
                Field::Readable {
                    shape: Shape::Record(record),
                    required,
                } => Field::Readable {
                    shape: Shape::Record(record.only(paths)),
                    required: *required,
                },
                Field::Readable {
                    shape: Shape::One(_) | Shape::SetOf(_),
                    ..
                }
                | Field::LeftOut(_) => field.clone(),
            };
            Some((name.clone(), field))
        });
        Self {
            fields: fields.collect(),
            open: self.open,
        }
    }

    /// The names of the fields that rules can read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = (&str, &Shape, bool)> {
        self.fields.iter().filter_map(|(name, field)| match field {
            Field::Readable { shape, required } => Some((name.as_str(), shape, *required)),
            Field::LeftOut(_) => None,
        })
    }

    /// `left` is how many more properties may be declared readable, over the whole tool.
    fn of(schema: &Object, records: usize, left: &mut usize) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        // In the order of names, so that the same schema written in another order is cut at the same property.
        let sorted: BTreeMap<&String, &Value> = properties.into_iter().flatten().collect();
        let fields = sorted
            .into_iter()
            .map(|(name, property)| {
                let field = match shape_of(property, records, left) {
                    Ok(shape) => Field::Readable {
                        shape,
                        required: required.contains(&name.as_str()),
                    },
                    Err(why) => Field::LeftOut(why),
                };
                (name.clone(), field)
            })
            .collect();
        // Below the arguments themselves, JSON Schema admits what is not declared unless it says otherwise.
        let closed = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| schema.get(*keyword) == Some(&Value::Bool(false)));
        Self {
            fields,
            open: open(schema) || !closed,
        }
    }
}

/// Whether a schema of an object speaks of properties that do not stand in its `properties`.
fn open(schema: &Object) -> bool {
    /// Applicators that can declare further properties (JSON Schema 2020-12, sections 8.2.3 and 10).
    const APPLICATORS: [&str; 12] = [
        "$ref",
        "$dynamicRef",
        "$recursiveRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
    ];
    APPLICATORS.iter().any(|keyword| schema.contains_key(*keyword))
        || ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| {
                schema
                    .get(*keyword)
                    .is_some_and(|further| further != &Value::Bool(false))
            })
}

// === from JSON Schema ===

fn shape_of(schema: &Value, records: usize, left: &mut usize) -> Result<Shape, &'static str> {
    let Value::Object(schema) = schema else {
        return Err("its schema does not say which type it has");
    };
    *left = left
        .checked_sub(1)
        .ok_or("its tool has more properties than rules can read")?;
    match type_of(schema)? {
        Type::One(scalar) => Ok(Shape::One(scalar)),
        Type::Array => set_of(schema).map(Shape::SetOf),
        Type::Object => match records.checked_sub(1) {
            None => Err("it stands deeper inside other objects than rules can read"),
            Some(_) if !schema.get("properties").is_some_and(Value::is_object) => {
                Err("it is an object without declared properties")
            }
            Some(records) => Ok(Shape::Record(Record::of(schema, records, left))),
        },
    }
}

/// The types that JSON Schema names and that can become readable.
enum Type {
    One(Scalar),
    Array,
    Object,
}

/// `type` alone decides: every other keyword of JSON Schema can only narrow it (JSON Schema 2020-12, section 7.6),
/// except `nullable` of OpenAPI 3.0, which widens it.
fn type_of(schema: &Object) -> Result<Type, &'static str> {
    const MANY: &str = "it may have one of several types";
    if schema
        .get("nullable")
        .is_some_and(|nullable| nullable != &Value::Bool(false))
    {
        return Err("it may be null");
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => match names.as_slice() {
            [Value::String(name)] => name.as_str(),
            names if names.iter().any(|name| name == "null") => return Err("it may be null"),
            _ => return Err(MANY),
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return Err(MANY),
        None => return of_enum(schema),
    };
    match name {
        "string" => Ok(Type::One(Scalar::Text)),
        "integer" => Ok(Type::One(Scalar::Integer)),
        "boolean" => Ok(Type::One(Scalar::Truth)),
        "array" => Ok(Type::Array),
        "object" => Ok(Type::Object),
        "number" => Err("it is a number that need not be whole, which rules cannot compare"),
        "null" => Err("it is always null"),
        _ => Err("its type is not one of JSON Schema"),
    }
}

/// A schema without `type` has one nevertheless where it lists texts.
fn of_enum(schema: &Object) -> Result<Type, &'static str> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) if !values.is_empty() && values.iter().all(Value::is_string) => {
            Ok(Type::One(Scalar::Text))
        }
        (None, Some(Value::String(_))) => Ok(Type::One(Scalar::Text)),
        _ => Err("its schema does not say which type it has"),
    }
}

fn set_of(schema: &Object) -> Result<Scalar, &'static str> {
    const ITEMS: &str = "it is an array whose items are not all texts, all whole numbers or all truth values";
    if schema.contains_key("prefixItems") {
        return Err(ITEMS);
    }
    let items = schema.get("items").and_then(Value::as_object).ok_or(ITEMS)?;
    match type_of(items) {
        Ok(Type::One(scalar)) => Ok(scalar),
        Ok(Type::Array | Type::Object) | Err(_) => Err(ITEMS),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(property: &Value) -> Field {
        let schema = json!({"type": "object", "properties": {"x": property}, "required": ["x"]});
        Record::of_arguments(&schema).fields.remove("x").unwrap()
    }

    fn readable(shape: Shape) -> Field {
        Field::Readable {
            shape,
            required: true,
        }
    }

    #[test]
    fn a_property_with_one_certain_type_is_readable() {
        for (property, shape) in [
            (json!({"type": "string"}), Shape::One(Scalar::Text)),
            (json!({"type": ["string"]}), Shape::One(Scalar::Text)),
            (
                json!({"type": "string", "nullable": false}),
                Shape::One(Scalar::Text),
            ),
            (json!({"enum": ["a", "b"]}), Shape::One(Scalar::Text)),
            (json!({"const": "a"}), Shape::One(Scalar::Text)),
            (
                json!({"type": "string", "anyOf": [{"minLength": 1}]}),
                Shape::One(Scalar::Text),
            ),
            (
                json!({"type": "integer", "maximum": 3}),
                Shape::One(Scalar::Integer),
            ),
            (json!({"type": "boolean"}), Shape::One(Scalar::Truth)),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                Shape::SetOf(Scalar::Text),
            ),
            (
                json!({"type": "array", "items": {"enum": ["a"]}}),
                Shape::SetOf(Scalar::Text),
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                Shape::SetOf(Scalar::Integer),
            ),
            (
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
                Shape::Record(Record::default()),
            ),
        ] {
            assert_eq!(of(&property), readable(shape), "{property}");
        }
    }

    #[test]
    fn a_property_without_one_certain_type_is_left_out() {
        for property in [
            json!({}),
            json!(true),
            json!({"type": "number"}),
            json!({"type": "null"}),
            json!({"type": "text"}),
            json!({"type": 3}),
            json!({"type": ["string", "null"]}),
            json!({"type": ["string", "integer"]}),
            json!({"type": []}),
            json!({"type": "string", "nullable": true}),
            json!({"enum": ["a", 1]}),
            json!({"enum": []}),
            json!({"enum": [1, 2]}),
            json!({"const": 1}),
            json!({"$ref": "#/$defs/x"}),
            json!({"anyOf": [{"type": "string"}]}),
            json!({"type": "array"}),
            json!({"type": "array", "items": {}}),
            json!({"type": "array", "items": {"type": "number"}}),
            json!({"type": "array", "items": {"type": ["string", "null"]}}),
            json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
            json!({"type": "array", "items": {"type": "object", "properties": {}}}),
            json!({"type": "array", "items": {"type": "string"}, "prefixItems": [{"type": "integer"}]}),
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ] {
            assert!(
                matches!(of(&property), Field::LeftOut(_)),
                "{property}: {:?}",
                of(&property)
            );
        }
    }

    #[test]
    fn required_and_optional_are_kept_apart() {
        let record = Record::of_arguments(&json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["b", 7, "c"],
        }));
        let fields: Vec<_> = record
            .readable()
            .map(|(name, _, required)| (name, required))
            .collect();
        assert_eq!(fields, [("a", false), ("b", true)]);
    }

    #[test]
    fn records_are_readable_down_to_the_limit_and_not_one_deeper() {
        let mut schema = json!({"type": "string"});
        for _ in 0..=RECORDS_MAX {
            schema = json!({"type": "object", "properties": {"x": schema}});
        }
        let record = Record::of_arguments(&schema);
        let path = |n: usize| vec!["x".to_owned(); n];
        assert!(matches!(
            record.find(&path(RECORDS_MAX)),
            Found::Shape {
                shape: Shape::Record(_),
                ..
            }
        ));
        assert!(matches!(
            record.find(&path(RECORDS_MAX + 1)),
            Found::Shape {
                shape: Shape::One(_),
                ..
            }
        ));
        let record = Record::of_arguments(&json!({"properties": {"x": schema}}));
        assert!(matches!(
            record.find(&path(RECORDS_MAX)),
            Found::Shape {
                shape: Shape::Record(_),
                ..
            }
        ));
        assert!(matches!(record.find(&path(RECORDS_MAX + 1)), Found::LeftOut(_)));
        assert!(matches!(record.find(&path(RECORDS_MAX + 2)), Found::LeftOut(_)));
    }

    #[test]
    fn properties_are_readable_up_to_the_limit_and_left_out_past_it() {
        let schema = |n: usize| {
            let properties: Object = (0..n)
                .map(|i| (format!("p{i:05}"), json!({"type": "string"})))
                .collect();
            json!({"properties": properties})
        };
        let left_out = |n: usize| {
            let record = Record::of_arguments(&schema(n));
            record
                .fields
                .values()
                .filter(|field| matches!(field, Field::LeftOut(_)))
                .count()
        };
        assert_eq!(left_out(PROPERTIES_MAX), 0);
        assert_eq!(left_out(PROPERTIES_MAX + 1), 1);
    }

    #[test]
    fn a_name_that_is_not_declared_may_be_there_only_where_the_schema_admits_it() {
        let path = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (schema, at, possible) in [
            (json!({"properties": {}}), path(&["x"]), false),
            (
                json!({"properties": {}, "additionalProperties": false}),
                path(&["x"]),
                false,
            ),
            (
                json!({"properties": {}, "additionalProperties": true}),
                path(&["x"]),
                true,
            ),
            (
                json!({"properties": {}, "additionalProperties": {"type": "string"}}),
                path(&["x"]),
                true,
            ),
            (
                json!({"properties": {}, "allOf": [{"properties": {"x": {}}}]}),
                path(&["x"]),
                true,
            ),
            (json!({"$ref": "#/$defs/arguments"}), path(&["x"]), true),
            (json!({"patternProperties": {"^x": {}}}), path(&["x", "y"]), true),
            (
                json!({"properties": {"o": {"type": "object", "properties": {}}}}),
                path(&["o", "x"]),
                true,
            ),
            (
                json!({"properties": {"o": {"type": "object", "properties": {}, "additionalProperties": false}}}),
                path(&["o", "x"]),
                false,
            ),
        ] {
            let record = Record::of_arguments(&schema);
            assert_eq!(
                matches!(record.find(&at), Found::LeftOut(_)),
                possible,
                "{schema}"
            );
            assert_eq!(record.find(&at) == Found::Nothing, !possible, "{schema}");
        }
    }

    #[test]
    fn what_is_no_schema_of_an_object_declares_nothing() {
        for schema in [
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!({"properties": []}),
        ] {
            assert_eq!(Record::of_arguments(&schema), Record::default(), "{schema}");
        }
    }
}
