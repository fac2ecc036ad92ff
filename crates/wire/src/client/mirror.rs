//! Arguments that a tool wants mirrored into headers (HM-14, HM-18).
//!
//! Only the annotations of the approved definition count. One that is not valid mirrors nothing; whether such a tool is
//! offered at all is decided where definitions are approved.

use model::{Object, Value};

/// The largest integer that a header may carry (HM-18).
const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Headers that one tool may ask for.
const HEADERS_MAX: usize = 32;
/// How deep an annotated property may stand.
const DEPTH_MAX: usize = 8;

/// The names behind `Mcp-Param-` and the values, not yet escaped, for these arguments. Absent and null mirror nothing.
#[must_use]
pub fn mirrored(schema: &Value, arguments: &Object) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(schema, arguments, DEPTH_MAX, &mut found);
    // Unique whatever the case of letters; which of two would count is not for us to say.
    let twice = |name: &str, found: &[(String, String)]| {
        found
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .count()
            > 1
    };
    let unique: Vec<_> = found
        .iter()
        .filter(|(name, _)| !twice(name, &found))
        .take(HEADERS_MAX)
        .cloned()
        .collect();
    unique
}

fn walk(schema: &Value, arguments: &Object, depth: usize, found: &mut Vec<(String, String)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (key, property) in properties {
        let Some(value) = arguments.get(key) else { continue };
        if let Some(name) = property.get("x-mcp-header").and_then(Value::as_str) {
            if let Some(text) = text_of(property, value).filter(|_| is_token(name)) {
                found.push((name.to_owned(), text));
            }
        } else if let Value::Object(inner) = value
            && depth > 0
        {
            walk(property, inner, depth - 1, found);
        }
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
}
