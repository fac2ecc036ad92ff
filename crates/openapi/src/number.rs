//! Numbers that every JSON reader holds exactly, and those that only some do.
//!
//! Schemas of real documents bound a 64-bit integer by 9223372036854775807. A tool definition goes to readers that
//! hold a double, so such a number would change on the way. Source: RFC 7493 section 2.2.

use model::Value;
use serde_json::Number;

const EXACT_MAX: u64 = (1 << 53) - 1;

/// Whether every reader holds the number exactly.
pub(crate) fn is_exact(number: &Number) -> bool {
    const BOUND: f64 = 9_007_199_254_740_991.0;
    if let Some(n) = number.as_u64() {
        return n <= EXACT_MAX;
    }
    if let Some(n) = number.as_i64() {
        return n.unsigned_abs() <= EXACT_MAX;
    }
    number
        .as_f64()
        .is_some_and(|n| n.fract() != 0.0 || n.abs() <= BOUND)
}

/// Whether every number in a value is exact.
pub(crate) fn all_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_exact(number),
        Value::Array(items) => items.iter().all(all_exact),
        Value::Object(object) => object.values().all(all_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// The value with every number that is not exact written as a marked text, for digests: canonical JSON would make
/// 2^53 and 2^53 + 1 the same.
pub(crate) fn exactly(value: &Value) -> Value {
    match value {
        Value::Number(number) if !is_exact(number) => serde_json::json!({"$wideNumber": number.to_string()}),
        Value::Array(items) => items.iter().map(exactly).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| (key.clone(), exactly(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_exact_up_to_2_53_minus_1_and_not_past_it() {
        for (value, expected) in [
            (json!(0), true),
            (json!(9_007_199_254_740_991_u64), true),
            (json!(9_007_199_254_740_992_u64), false),
            (json!(-9_007_199_254_740_991_i64), true),
            (json!(-9_007_199_254_740_992_i64), false),
            (json!(0.5), true),
            (json!(1e300), false),
            (json!([{"a": [9_223_372_036_854_775_807_u64]}]), false),
        ] {
            assert_eq!(all_exact(&value), expected, "{value}");
        }
    }

    #[test]
    fn wide_numbers_stay_different_for_a_digest() {
        let digests = |n: u64| model::canonical(&exactly(&json!({"maximum": n})));
        assert_ne!(digests(9_007_199_254_740_992), digests(9_007_199_254_740_993));
        assert_eq!(exactly(&json!({"a": [1, "x"]})), json!({"a": [1, "x"]}));
    }
}
