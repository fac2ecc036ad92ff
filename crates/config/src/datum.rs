//! Values of arguments as the configuration writes them, as JSON: texts, numbers, truth values, and lists of these.

use model::Value as Json;
use serde_json::Number;

use crate::raw::Value;

/// Items of one list.
const ITEMS_MAX: usize = 1_000;
/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 4_096;

/// The value; `None` where it is a table, a time, too long, or a list with anything but single values.
pub(crate) fn value(from: &Value) -> Option<Json> {
    match from {
        Value::List(items) if items.len() <= ITEMS_MAX => items
            .iter()
            .map(|item| single(&item.value))
            .collect::<Option<Vec<_>>>()
            .map(Json::Array),
        other => single(other),
    }
}

/// The same without lists.
pub(crate) fn single(from: &Value) -> Option<Json> {
    match from {
        Value::Text(text) if text.len() <= TEXT_BYTES_MAX => Some(Json::from(text.as_str())),
        Value::Truth(truth) => Some(Json::Bool(*truth)),
        Value::Integer(..) | Value::Float(_) => number(from).map(Json::Number),
        Value::Text(_) | Value::Time(_) | Value::List(_) | Value::Table(_) | Value::Deep => None,
    }
}

/// The number; `None` where it is none, or none that JSON can hold.
pub(crate) fn number(from: &Value) -> Option<Number> {
    match from {
        Value::Integer(number, _) => number.map(Number::from),
        Value::Float(text) => Number::from_f64(text.replace('_', "").parse().ok()?),
        Value::Text(_)
        | Value::Truth(_)
        | Value::Time(_)
        | Value::List(_)
        | Value::Table(_)
        | Value::Deep => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::raw::read_value;

    #[test]
    fn single_values_and_lists_of_them_are_values_and_nothing_else_is() {
        for (text, expected) in [
            ("\"a\"", Some(json!("a"))),
            ("true", Some(json!(true))),
            ("-7", Some(json!(-7))),
            ("1_000.5", Some(json!(1000.5))),
            ("[\"a\", 1]", Some(json!(["a", 1]))),
            ("[]", Some(json!([]))),
            ("[[1]]", None),
            ("{ a = 1 }", None),
            ("nan", None),
            ("inf", None),
            ("2026-01-01", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(value(&read_value(text).unwrap().value), expected, "{text}");
        }
        let list = |length: usize| Value::List(vec![read_value("1").unwrap(); length]);
        assert!(value(&list(ITEMS_MAX)).is_some() && value(&list(ITEMS_MAX + 1)).is_none());
        let text = |length: usize| Value::Text("x".repeat(length));
        assert!(value(&text(TEXT_BYTES_MAX)).is_some() && value(&text(TEXT_BYTES_MAX + 1)).is_none());
    }
}
