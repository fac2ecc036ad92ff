//! Values in Cedar's words, and the check that a value has its declared type.
//!
//! Values are built with Cedar's typed constructors, never through its JSON, in which `__entity` and `__extn` would
//! mean something.

use std::fmt;

use cedar_policy::RestrictedExpression;
use jiff::Timestamp;
use model::{FactValue, Object, Value};

use crate::shape::{Record, Scalar, Shape};

pub(crate) fn text(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

/// Cedar reads dates of the years 0 to 9999 only.
pub(crate) fn instant(now: Timestamp) -> Result<RestrictedExpression, String> {
    let shown = now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    if shown.len() == "2026-01-01T00:00:00.000Z".len() {
        Ok(RestrictedExpression::new_datetime(shown))
    } else {
        Err(format!("the time `{now}` is out of range"))
    }
}

pub(crate) fn fact_value(value: &FactValue) -> RestrictedExpression {
    match value {
        FactValue::Truth(truth) => RestrictedExpression::new_bool(*truth),
        FactValue::Integer(number) => RestrictedExpression::new_long(*number),
        FactValue::Text(value) => text(value),
    }
}

/// Only what `read` names; what is not there stays away.
pub(crate) fn record(values: &Object, read: &Record) -> Option<RestrictedExpression> {
    let mut pairs = Vec::new();
    for (name, shape, _) in read.readable() {
        if let Some(value) = values.get(name) {
            let value = match shape {
                Shape::One(scalar) => one(value, *scalar)?,
                Shape::SetOf(scalar) => {
                    let items: Option<Vec<_>> =
                        value.as_array()?.iter().map(|item| one(item, *scalar)).collect();
                    RestrictedExpression::new_set(items?)
                }
                Shape::Record(read) => record(value.as_object()?, read)?,
            };
            pairs.push((name.to_owned(), value));
        }
    }
    RestrictedExpression::new_record(pairs).ok()
}

fn one(value: &Value, scalar: Scalar) -> Option<RestrictedExpression> {
    match (scalar, value) {
        (Scalar::Text, Value::String(value)) => Some(text(value)),
        (Scalar::Integer, Value::Number(number)) => integer(number).map(RestrictedExpression::new_long),
        (Scalar::Truth, Value::Bool(truth)) => Some(RestrictedExpression::new_bool(*truth)),
        (Scalar::Text | Scalar::Integer | Scalar::Truth | Scalar::Instant, _) => None,
    }
}

/// The integer that a JSON number is. `1.0` is one to JSON Schema.
fn integer(number: &serde_json::Number) -> Option<i64> {
    /// Past this, doubles skip integers (RFC 7493 section 2.2), and no argument has them.
    const BOUND: f64 = 9_007_199_254_740_991.0;
    number.as_i64().or_else(|| {
        let double = number
            .as_f64()
            .filter(|double| double.fract() == 0.0 && double.abs() <= BOUND)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and below 2^53, checked one line above"
        )]
        let integer = double as i64;
        Some(integer)
    })
}

// === the check of types ===

/// A value that does not have its declared type. Names and types, no values.
pub(crate) struct Misfit {
    /// From the inside out.
    path: Vec<String>,
    found: &'static str,
    expected: &'static str,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: Vec<_> = self.path.iter().rev().map(String::as_str).collect();
        write!(
            f,
            "the argument `{}` is {}, declared as {}",
            path.join(".").escape_debug(),
            self.found,
            self.expected
        )
    }
}

pub(crate) fn fits_record(values: &Object, declared: &Record) -> Result<(), Misfit> {
    for (name, shape, required) in declared.readable() {
        let fit = match values.get(name) {
            Some(value) => fits(value, shape),
            None if required => Err(misfit("missing", "required")),
            None => Ok(()),
        };
        fit.map_err(|mut misfit| {
            misfit.path.push(name.to_owned());
            misfit
        })?;
    }
    Ok(())
}

fn fits(value: &Value, shape: &Shape) -> Result<(), Misfit> {
    match (shape, value) {
        (Shape::One(scalar), value) if is_one(value, *scalar) => Ok(()),
        (Shape::SetOf(scalar), Value::Array(items)) if items.iter().all(|item| is_one(item, *scalar)) => {
            Ok(())
        }
        (Shape::Record(declared), Value::Object(values)) => fits_record(values, declared),
        (Shape::One(scalar), value) => Err(misfit(kind(value), scalar.cedar())),
        (Shape::SetOf(_), value) => Err(misfit(kind(value), "an array of one type")),
        (Shape::Record(_), value) => Err(misfit(kind(value), "an object")),
    }
}

fn is_one(value: &Value, scalar: Scalar) -> bool {
    match (scalar, value) {
        (Scalar::Text, Value::String(_)) | (Scalar::Truth, Value::Bool(_)) => true,
        (Scalar::Integer, Value::Number(number)) => integer(number).is_some(),
        (Scalar::Text | Scalar::Integer | Scalar::Truth | Scalar::Instant, _) => false,
    }
}

fn misfit(found: &'static str, expected: &'static str) -> Misfit {
    Misfit {
        path: Vec::new(),
        found,
        expected,
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
