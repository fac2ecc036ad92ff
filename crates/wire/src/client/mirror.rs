//! Arguments that a tool wants mirrored into headers (HM-14, HM-18), towards servers and from clients.
//!
//! Only the annotations of the approved definition count. One that is not valid mirrors nothing, and is not published.

use model::{Object, Value};

use crate::header::{Field, Fields, PARAM, decode};

/// The keyword.
const KEYWORD: &str = "x-mcp-header";
/// The largest integer that a header may carry (HM-18).
const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Headers that one tool may ask for.
const HEADERS_MAX: usize = 32;
/// How deep an annotated property may stand.
const DEPTH_MAX: usize = 8;

/// A property that wants to be a header as well.
#[derive(Debug, PartialEq)]
struct Annotation<'s> {
    /// The keys on the way to it, from the root.
    path: Vec<&'s str>,
    /// What stands behind `Mcp-Param-`.
    name: &'s str,
    property: &'s Value,
}

/// The names behind `Mcp-Param-` and the values, not yet escaped, for these arguments. Absent and null mirror nothing.
#[must_use]
pub fn mirrored(schema: &Value, arguments: &Object) -> Vec<(String, String)> {
    let found = annotations(schema).into_iter();
    found
        .filter_map(|annotation| {
            let text = text_of(annotation.property, annotation.value(arguments)?)?;
            Some((annotation.name.to_owned(), text))
        })
        .collect()
}

/// Whether a schema has an annotation that counts.
#[must_use]
pub fn mirrors(schema: &Value) -> bool {
    !annotations(schema).is_empty()
}

/// Holds the headers of a request against its arguments: an annotated argument that is there stands in its header, and one
/// that is not there in none (HM-16, HM-17).
///
/// # Errors
/// What is wrong, in words; a header is named, no value is.
pub(crate) fn agrees(schema: &Value, arguments: &Object, fields: &impl Fields) -> Result<(), String> {
    for annotation in annotations(schema) {
        let name = annotation.name;
        let expected = annotation.value(arguments).filter(|value| !value.is_null());
        match (
            expected,
            fields.field(&format!("{PARAM}{}", name.to_ascii_lowercase())),
        ) {
            (None, Field::Absent) => {}
            (None, Field::One(_) | Field::Many) => {
                return Err(format!(
                    "the header Mcp-Param-{name} repeats an argument that is not there"
                ));
            }
            (Some(_), Field::Absent) => return Err(format!("the header Mcp-Param-{name} is missing")),
            (Some(_), Field::Many) => return Err(format!("the header Mcp-Param-{name} stands twice")),
            (Some(value), Field::One(said)) => {
                let said =
                    decode(said).ok_or_else(|| format!("the header Mcp-Param-{name} is not readable"))?;
                if !says(annotation.property, value, &said) {
                    return Err(format!("the header Mcp-Param-{name} is not what the body says"));
                }
            }
        }
    }
    Ok(())
}

/// The schema as it may be published: without annotations that are not valid, for which clients would drop the tool (HM-19).
#[must_use]
pub fn published(schema: &Value) -> Value {
    let valid: Vec<Vec<&str>> = annotations(schema)
        .into_iter()
        .map(|annotation| annotation.path)
        .collect();
    let mut published = schema.clone();
    strip(&mut published, &mut Vec::new(), true, &valid);
    published
}

impl Annotation<'_> {
    fn value<'a>(&self, arguments: &'a Object) -> Option<&'a Value> {
        let (first, rest) = self.path.split_first()?;
        rest.iter()
            .try_fold(arguments.get(*first)?, |value, key| value.get(*key))
    }
}

/// The annotations that are valid, in their order.
fn annotations(schema: &Value) -> Vec<Annotation<'_>> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found);
    // Unique whatever the case of letters; which of two would count is not for us to say.
    let twice = |name: &str| {
        let same = |annotation: &&Annotation<'_>| annotation.name.eq_ignore_ascii_case(name);
        found.iter().filter(same).count() > 1
    };
    let doubled: Vec<bool> = found.iter().map(|annotation| twice(annotation.name)).collect();
    let mut doubled = doubled.into_iter();
    found.retain(|_| doubled.next() == Some(false));
    found.truncate(HEADERS_MAX);
    found
}

fn walk<'s>(schema: &'s Value, path: &mut Vec<&'s str>, found: &mut Vec<Annotation<'s>>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (key, property) in properties {
        path.push(key);
        match property.get(KEYWORD) {
            Some(Value::String(name)) if is_token(name) && has_header(property) => found.push(Annotation {
                path: path.clone(),
                name,
                property,
            }),
            Some(_) => {}
            None if path.len() <= DEPTH_MAX => walk(property, path, found),
            None => {}
        }
        path.pop();
    }
}

/// Takes the annotations out that are not at a place in `valid`. `path` is where the schema stands, while `reachable`.
fn strip(schema: &mut Value, path: &mut Vec<String>, reachable: bool, valid: &[Vec<&str>]) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let is_valid = reachable && valid.iter().any(|place| place.iter().copied().eq(path.iter()));
    if !is_valid {
        object.shift_remove(KEYWORD);
    }
    for (keyword, part) in object {
        match (keyword.as_str(), part) {
            ("properties", Value::Object(properties)) => {
                for (key, property) in properties {
                    path.push(key.clone());
                    strip(property, path, reachable, valid);
                    path.pop();
                }
            }
            ("$defs" | "definitions" | "patternProperties" | "dependentSchemas", Value::Object(parts)) => {
                parts
                    .values_mut()
                    .for_each(|part| strip(part, path, false, valid));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| strip(part, path, false, valid));
            }
            (
                "items"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "contains"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
                part,
            ) => strip(part, path, false, valid),
            // Values of other keywords are no schemas: a word in them is a word.
            (_, _) => {}
        }
    }
}

/// Whether values of this property can stand in a header (HM-18).
fn has_header(property: &Value) -> bool {
    matches!(
        property.get("type").and_then(Value::as_str),
        Some("string" | "boolean" | "integer")
    )
}

/// Whether a header says what an argument says; numbers are compared as numbers (HM-16).
fn says(property: &Value, value: &Value, said: &str) -> bool {
    match (property.get("type").and_then(Value::as_str), value.as_f64()) {
        (Some("integer"), Some(number)) => said.parse::<f64>().is_ok_and(|said| said == number),
        (_, _) => text_of(property, value).is_some_and(|text| text == said),
    }
}

/// HM-15: a text as it is, an integer in decimal, a truth value as a word; no other type has a header (HM-18).
fn text_of(property: &Value, value: &Value) -> Option<String> {
    match (property.get("type").and_then(Value::as_str)?, value) {
        ("string", Value::String(text)) => Some(text.clone()),
        ("boolean", Value::Bool(truth)) => Some(truth.to_string()),
        ("integer", Value::Number(number)) => {
            let number = number.as_i64()?;
            (number.unsigned_abs() <= INTEGER_MAX).then(|| number.to_string())
        }
        _ => None,
    }
}

/// A token of RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(properties: Value, arguments: Value) -> Vec<(String, String)> {
        let Value::Object(arguments) = arguments else {
            panic!()
        };
        mirrored(&json!({ "type": "object", "properties": properties }), &arguments)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn hm_14_annotated_arguments_are_mirrored_where_they_stand_exactly() {
        let properties = json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "Method" },
            "inner": { "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "Inner" } } },
            "plain": { "type": "string" },
        });
        let arguments =
            json!({ "region": "eu west", "count": 3, "dry": true, "inner": { "a": "b" }, "plain": "x" });
        assert_eq!(
            of(properties.clone(), arguments),
            [
                pair("Region", "eu west"),
                pair("Count", "3"),
                pair("Method", "true"),
                pair("Inner", "b")
            ]
        );
        assert_eq!(of(properties, json!({ "region": null })), []);
    }

    #[test]
    fn hm_18_an_annotation_that_is_not_valid_mirrors_nothing() {
        for (property, value) in [
            (json!({ "type": "number", "x-mcp-header": "A" }), json!(1.5)),
            (json!({ "type": "string", "x-mcp-header": "" }), json!("a")),
            (json!({ "type": "string", "x-mcp-header": "A B" }), json!("a")),
            (json!({ "type": "string", "x-mcp-header": "A\r\nB" }), json!("a")),
            (
                json!({ "type": "integer", "x-mcp-header": "A" }),
                json!(9_007_199_254_740_992_u64),
            ),
            (
                json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "A" } }),
                json!(["a"]),
            ),
        ] {
            assert_eq!(
                of(json!({ "p": property }), json!({ "p": value })),
                [],
                "{property}"
            );
        }
        let twice = json!({
            "a": { "type": "string", "x-mcp-header": "One" },
            "b": { "type": "string", "x-mcp-header": "oNE" },
        });
        assert_eq!(of(twice, json!({ "a": "1", "b": "2" })), []);
    }

    #[test]
    fn hm_19_what_is_published_has_no_annotation_that_is_not_valid_and_is_otherwise_as_it_was() {
        let schema = json!({
            "type": "object",
            "properties": {
                "x-mcp-header": { "type": "string", "x-mcp-header": "Good" },
                "number": { "type": "number", "x-mcp-header": "Number", "default": { "x-mcp-header": "a word" } },
                "list": { "type": "array", "items": { "type": "string", "x-mcp-header": "Item" } },
                "inner": { "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "Inner" } } },
                "either": { "anyOf": [{ "type": "string", "x-mcp-header": "Either" }] },
                "one": { "type": "string", "x-mcp-header": "Twice" },
                "two": { "type": "string", "x-mcp-header": "twice" },
            },
            "$defs": { "inner": { "properties": { "a": { "type": "string", "x-mcp-header": "Def" } } } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "x-mcp-header": { "type": "string", "x-mcp-header": "Good" },
                "number": { "type": "number", "default": { "x-mcp-header": "a word" } },
                "list": { "type": "array", "items": { "type": "string" } },
                "inner": { "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "Inner" } } },
                "either": { "anyOf": [{ "type": "string" }] },
                "one": { "type": "string" },
                "two": { "type": "string" },
            },
            "$defs": { "inner": { "properties": { "a": { "type": "string" } } } },
        });
        assert_eq!(published(&schema).to_string(), expected.to_string());
        assert_eq!(published(&expected), expected);
        assert!(mirrors(&schema) && !mirrors(&json!({ "type": "object" })));
    }
}
