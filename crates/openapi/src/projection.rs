//! Projections: an answer cut down to the fields that a reviewer named, each by a JSONPath.
//!
//! `returns = { status = "$.status" }` gives `{"status": …}` and nothing else. A path that can match at most one value
//! gives that value, or leaves the field out where it matches none; any other path gives a list.
//! Source: RFC 9535.

use std::collections::HashSet;

use model::{Object, Value};
use serde_json::json;
use serde_json_path::JsonPath;

use crate::text::excerpt;

/// Fields of one projection.
const FIELDS_MAX: usize = 64;
/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 512;
/// Values that one path may match in one answer.
const MATCHES_MAX: usize = 10_000;
/// The largest output schema that is made, in bytes.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// The fields of an answer that are kept.
#[derive(Debug, Clone)]
pub struct Projection {
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    path: JsonPath,
    /// Whether the path matches at most one value, by its form.
    is_single: bool,
    /// The names of the members, where the path is nothing but these.
    chain: Option<Vec<String>>,
}

/// Why a projection cannot be made or applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionFault {
    /// No fields, or too many.
    #[error("a projection has from 1 to {FIELDS_MAX} fields; found {0}")]
    Count(usize),
    /// A name that cannot be a field, or stands twice.
    #[error(
        "`{0}` cannot be the name of a field here; write letters, digits, `_`, `-` and `.`, each name once"
    )]
    Name(String),
    /// A text that is no JSONPath.
    #[error("`{path}` of the field `{name}` is no JSONPath: {detail}; write it as `$.status`")]
    Path {
        /// The field.
        name: String,
        /// The path.
        path: String,
        /// What the parser says.
        detail: String,
    },
    /// A path whose matches could outgrow the answer.
    #[error("`{path}` of the field `{name}` has more than one `..`; name the members in between")]
    Descent {
        /// The field.
        name: String,
        /// The path.
        path: String,
    },
    /// A path that matches too much in this answer.
    #[error("the field `{name}` matches more than {MATCHES_MAX} values of the answer")]
    Matches {
        /// The field.
        name: String,
    },
}

impl Projection {
    /// Parses field names and their paths, in order.
    ///
    /// # Errors
    /// [`ProjectionFault`] except `Matches`.
    pub fn parse(map: &[(String, String)]) -> Result<Self, ProjectionFault> {
        if map.is_empty() || map.len() > FIELDS_MAX {
            return Err(ProjectionFault::Count(map.len()));
        }
        let mut names = HashSet::new();
        let fields = map
            .iter()
            .map(|(name, path)| {
                if !crate::name::is_legal(name) || !names.insert(name) {
                    return Err(ProjectionFault::Name(excerpt(name)));
                }
                field(name, path)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { fields })
    }

    /// The answer cut down: an object of the fields.
    ///
    /// # Errors
    /// [`ProjectionFault::Matches`].
    pub fn apply(&self, answer: &Value) -> Result<Value, ProjectionFault> {
        let mut out = Object::new();
        for field in &self.fields {
            let nodes = field.path.query(answer);
            if nodes.len() > MATCHES_MAX {
                return Err(ProjectionFault::Matches {
                    name: field.name.clone(),
                });
            }
            let mut matches = nodes.into_iter().cloned();
            if field.is_single {
                if let Some(value) = matches.next() {
                    out.insert(field.name.clone(), value);
                }
            } else {
                out.insert(field.name.clone(), matches.collect());
            }
        }
        Ok(Value::Object(out))
    }

    /// The schema of what [`Self::apply`] gives, from the schema of the answer (2020-12, references into `$defs`).
    ///
    /// A field whose path is a chain of members has the schema that stands at its end, and is required where every
    /// member on the way is. Any other field can be anything; so can all where `success` is `true`.
    /// `None` where the schema would be larger than 64 KiB.
    #[must_use]
    pub fn output_schema_of(&self, success: &Value) -> Option<Value> {
        let mut properties = Object::new();
        let mut required = Vec::new();
        for field in &self.fields {
            let schema = if field.is_single {
                let found = field.chain.as_ref().and_then(|chain| walk(success, chain));
                if found.as_ref().is_some_and(|found| found.is_required) {
                    required.push(Value::from(field.name.as_str()));
                }
                found.map_or_else(|| json!({}), |found| found.schema.clone())
            } else {
                required.push(Value::from(field.name.as_str()));
                json!({"type": "array"})
            };
            properties.insert(field.name.clone(), schema);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if let Some(object) = schema.as_object_mut() {
            if !required.is_empty() {
                object.insert("required".to_owned(), Value::Array(required));
            }
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
            let definitions = needed(object, success);
            if !definitions.is_empty() {
                object.insert("$defs".to_owned(), Value::Object(definitions));
            }
        }
        (schema.to_string().len() <= SCHEMA_BYTES_MAX).then_some(schema)
    }
}

fn field(name: &str, path: &str) -> Result<Field, ProjectionFault> {
    let fault = |detail: String| ProjectionFault::Path {
        name: name.to_owned(),
        path: excerpt(path),
        detail,
    };
    if path.len() > PATH_BYTES_MAX {
        return Err(fault(format!("it is longer than {PATH_BYTES_MAX} bytes")));
    }
    let parsed = JsonPath::parse(path).map_err(|error| fault(error.to_string()))?;
    // Two descents multiply: the matches of `$..*..*` grow with the square of the answer. A text in quotes may be
    // counted too, which costs an honest path nothing but another spelling.
    if path.matches("..").count() > 1 {
        return Err(ProjectionFault::Descent {
            name: name.to_owned(),
            path: excerpt(path),
        });
    }
    // RFC 9535 allows only a query that matches at most one node (a singular query) in a comparison.
    let is_single = JsonPath::parse(&format!("$[?{path} == 0]")).is_ok();
    Ok(Field {
        name: name.to_owned(),
        chain: if is_single { chain(path) } else { None },
        path: parsed,
        is_single,
    })
}

/// The members of a path such as `$.a['b c']["d"]`. `None` for anything else, also for escapes in quotes.
fn chain(path: &str) -> Option<Vec<String>> {
    let mut members = Vec::new();
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() {
        let quoted = [("['", "']"), ("[\"", "\"]")]
            .into_iter()
            .find_map(|(open, close)| rest.strip_prefix(open)?.split_once(close));
        if let Some((member, after)) = quoted {
            if member.contains(['\\', '\'', '"']) {
                return None;
            }
            members.push(member.to_owned());
            rest = after;
        } else {
            let tail = rest.strip_prefix('.')?;
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (member, after) = (tail.get(..end)?, tail.get(end..)?);
            let is_plain = !member.is_empty() && member.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_plain {
                return None;
            }
            members.push(member.to_owned());
            rest = after;
        }
    }
    Some(members)
}

struct Walked<'v> {
    schema: &'v Value,
    /// Whether every member on the way is required of an object.
    is_required: bool,
}

/// The schema at the end of a chain of members, where each step is a declared property of a plain object.
fn walk<'v>(success: &'v Value, chain: &[String]) -> Option<Walked<'v>> {
    let mut schema = dereferenced(success, success)?;
    let mut at = success;
    let mut is_required = true;
    for member in chain {
        let object = schema.as_object()?;
        // A composition may say more about the member than its declaration does.
        if ["allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "$ref"]
            .iter()
            .any(|keyword| object.contains_key(*keyword))
        {
            return None;
        }
        let names = object.get("required").and_then(Value::as_array);
        let is_object = object.get("type").and_then(Value::as_str) == Some("object");
        is_required &=
            is_object && names.is_some_and(|names| names.iter().any(|name| name == member.as_str()));
        at = object.get("properties")?.get(member)?;
        schema = dereferenced(success, at)?;
    }
    // The whole answer would bring its own definitions along inside.
    (!chain.is_empty()).then_some(Walked {
        schema: at,
        is_required,
    })
}

/// Follows references that stand alone.
fn dereferenced<'v>(root: &'v Value, schema: &'v Value) -> Option<&'v Value> {
    let mut here = schema;
    for _ in 0..32 {
        let object = here.as_object()?;
        let Some(reference) = object.get("$ref").and_then(Value::as_str) else {
            return Some(here);
        };
        if object
            .keys()
            .any(|key| !matches!(key.as_str(), "$ref" | "description" | "$defs"))
        {
            return Some(here);
        }
        here = root.get("$defs")?.get(reference.strip_prefix("#/$defs/")?)?;
    }
    None
}

/// The definitions that the fields reach.
fn needed(schema: &Object, success: &Value) -> Object {
    let mut definitions = Object::new();
    let Some(all) = success.get("$defs").and_then(Value::as_object) else {
        return definitions;
    };
    let mut open = Vec::new();
    references(&Value::Object(schema.clone()), &mut open);
    while let Some(name) = open.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        if let Some(definition) = all.get(&name) {
            references(definition, &mut open);
            definitions.insert(name, definition.clone());
        }
    }
    definitions
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str().and_then(|text| text.strip_prefix("#/$defs/")) {
                    Some(name) if key == "$ref" => found.push(name.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projection(fields: &[(&str, &str)]) -> Result<Projection, ProjectionFault> {
        let map: Vec<_> = fields
            .iter()
            .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
            .collect();
        Projection::parse(&map)
    }

    #[test]
    fn an_answer_is_cut_down_to_the_named_fields() {
        let answer = json!({"status": "open", "due_date": null, "lines": [{"n": 1, "secret": "x"}, {"n": 2}], "secret": "y"});
        for (fields, expected) in [
            (vec![("status", "$.status")], json!({"status": "open"})),
            (vec![("due", "$.due_date")], json!({"due": null})),
            (vec![("gone", "$.gone"), ("deep", "$.status.x")], json!({})),
            (vec![("first", "$.lines[0].n")], json!({"first": 1})),
            (vec![("n", "$.lines[*].n")], json!({"n": [1, 2]})),
            (vec![("none", "$.lines[?@.n > 9].n")], json!({"none": []})),
            (vec![("all", "$..n")], json!({"all": [1, 2]})),
            (
                vec![("b", "$['status']"), ("a", "$[\"status\"]")],
                json!({"b": "open", "a": "open"}),
            ),
        ] {
            assert_eq!(
                projection(&fields).unwrap().apply(&answer).unwrap(),
                expected,
                "{fields:?}"
            );
        }
    }

    #[test]
    fn an_answer_that_is_no_object_gives_no_field_of_one() {
        let projection = projection(&[("status", "$.status")]).unwrap();
        for answer in [json!(null), json!("x"), json!([{"status": 1}]), json!({})] {
            assert_eq!(projection.apply(&answer).unwrap(), json!({}));
        }
    }

    #[test]
    fn a_projection_that_cannot_be_is_refused() {
        assert_eq!(projection(&[]).unwrap_err(), ProjectionFault::Count(0));
        let many: Vec<(String, String)> = (0..=FIELDS_MAX)
            .map(|n| (format!("f{n}"), "$.a".to_owned()))
            .collect();
        assert!(Projection::parse(many.get(..FIELDS_MAX).unwrap()).is_ok());
        assert_eq!(
            Projection::parse(&many).unwrap_err(),
            ProjectionFault::Count(FIELDS_MAX + 1)
        );
        for name in ["", "a b", "a\n"] {
            assert!(
                matches!(projection(&[(name, "$.a")]), Err(ProjectionFault::Name(_))),
                "{name:?}"
            );
        }
        assert!(matches!(
            projection(&[("a", "$.a"), ("a", "$.b")]),
            Err(ProjectionFault::Name(_))
        ));
        for path in ["", "status", "$.", "$[", "$.a == 1 || $.b"] {
            assert!(
                matches!(projection(&[("a", path)]), Err(ProjectionFault::Path { .. })),
                "{path:?}"
            );
        }
        let long = |n: usize| format!("$.{}", "a".repeat(n - 2));
        assert!(projection(&[("a", &long(PATH_BYTES_MAX))]).is_ok());
        assert!(projection(&[("a", &long(PATH_BYTES_MAX + 1))]).is_err());
        assert!(matches!(
            projection(&[("a", "$..*..*")]),
            Err(ProjectionFault::Descent { .. })
        ));
    }

    #[test]
    fn matches_are_kept_up_to_the_limit_and_refused_past_it() {
        let projection = projection(&[("all", "$[*]")]).unwrap();
        let answer = |n: usize| Value::Array(vec![json!(1); n]);
        assert!(projection.apply(&answer(MATCHES_MAX)).is_ok());
        assert_eq!(
            projection.apply(&answer(MATCHES_MAX + 1)),
            Err(ProjectionFault::Matches {
                name: "all".to_owned()
            })
        );
    }

    #[test]
    fn the_schema_follows_chains_of_members_and_is_open_elsewhere() {
        let success = json!({
            "type": "object", "required": ["status", "owner"],
            "properties": {
                "status": {"$ref": "#/$defs/Status"},
                "owner": {"$ref": "#/$defs/Owner"},
                "note": {"type": "string"},
                "mixed": {"anyOf": [{"$ref": "#/$defs/Owner"}, {"type": "null"}]},
            },
            "$defs": {
                "Status": {"enum": ["open", "paid"]},
                "Owner": {"type": "object", "required": ["name"], "properties": {"name": {"$ref": "#/$defs/Name"}}},
                "Name": {"type": "string"},
                "Unused": {"type": "string"},
            },
        });
        let made = projection(&[
            ("status", "$.status"),
            ("who", "$.owner.name"),
            ("note", "$.note"),
            ("mixed", "$.mixed.name"),
            ("gone", "$.gone"),
            ("all", "$..name"),
            ("whole", "$"),
        ])
        .unwrap()
        .output_schema_of(&success)
        .unwrap();
        assert_eq!(
            made,
            json!({
                "type": "object",
                "properties": {
                    "status": {"$ref": "#/$defs/Status"}, "who": {"$ref": "#/$defs/Name"}, "note": {"type": "string"},
                    "mixed": {}, "gone": {}, "all": {"type": "array"}, "whole": {},
                },
                "required": ["status", "who", "all"],
                "additionalProperties": false,
                "$defs": {"Name": {"type": "string"}, "Status": {"enum": ["open", "paid"]}},
            })
        );
        let open = projection(&[("status", "$.status")])
            .unwrap()
            .output_schema_of(&json!(true));
        assert_eq!(
            open.unwrap(),
            json!({"type": "object", "properties": {"status": {}}, "additionalProperties": false})
        );
    }

    #[test]
    fn what_is_applied_fits_the_schema_that_is_promised() {
        let success = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
        let projection = projection(&[("x", "$.a"), ("y", "$.b"), ("z", "$..a")]).unwrap();
        let schema = projection.output_schema_of(&success).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for answer in [json!({"a": 1}), json!({"a": 1, "b": "x", "secret": 1})] {
            assert!(
                validator.is_valid(&projection.apply(&answer).unwrap()),
                "{answer}"
            );
        }
        assert!(!validator.is_valid(&projection.apply(&json!({"b": "x"})).unwrap()));
    }
}
