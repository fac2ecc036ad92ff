//! JSON-RPC ids and progress tokens: a string or an integer, and the two are never the same (HOP-01).

use std::fmt;

use model::JsonLimits;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The longest id or token that is taken, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// The largest integer that every JSON reader holds exactly (RFC 7493 section 2.2).
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// The id of a request, with its JSON type (BASE-01).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer.
    Integer(i64),
    /// A string.
    Text(String),
}

/// A progress token, with its JSON type (PROG-01).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token(Id);

/// Why a value is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// Neither a string nor an integer.
    #[error("an id is a string or an integer; found {0}")]
    Kind(&'static str),
    /// A number that not every reader holds exactly, so that an answer could go to another request (ADR 0007).
    #[error("an id that is a number is at most 2^53 - 1; found {0}; send it as a string")]
    Integer(i64),
    /// Too long to keep.
    #[error("an id has at most {ID_BYTES_MAX} bytes; found {0}")]
    Long(usize),
}

impl Id {
    /// Reads an id out of a JSON value.
    ///
    /// # Errors
    /// [`IdFault`]: `null`, a fraction, an integer beyond ±(2^53 - 1), another type, or a string of more than 256 bytes.
    pub fn of(value: &Value) -> Result<Self, IdFault> {
        match value {
            Value::Number(number) => match number.as_i64() {
                Some(number) if number.unsigned_abs() > INTEGER_MAX => Err(IdFault::Integer(number)),
                Some(number) => Ok(Self::Integer(number)),
                None if number.is_u64() => Err(IdFault::Kind("an integer beyond 2^53 - 1")),
                None => Err(IdFault::Kind("a fraction")),
            },
            Value::String(text) if text.len() > ID_BYTES_MAX => Err(IdFault::Long(text.len())),
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Null => Err(IdFault::Kind("null")),
            Value::Bool(_) => Err(IdFault::Kind("a boolean")),
            Value::Array(_) => Err(IdFault::Kind("an array")),
            Value::Object(_) => Err(IdFault::Kind("an object")),
        }
    }
}

impl Id {
    /// Reads an id out of its JSON text.
    ///
    /// Not by the usual reader into a `Value`: it takes an object whose first key is one of `serde_json`'s own for what
    /// stands in it as text, so that an object could pass for a number.
    pub(crate) fn read(text: &str) -> Result<Self, IdFault> {
        let limits = JsonLimits {
            bytes_max: text.len(),
            depth_max: 120,
        };
        let value = model::parse_foreign(text.as_bytes(), limits)
            .map_err(|_| IdFault::Kind("no plain JSON value"))?;
        Self::of(&value)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Token {
    /// Reads a token out of a JSON value.
    ///
    /// # Errors
    /// As [`Id::of`].
    pub fn of(value: &Value) -> Result<Self, IdFault> {
        Id::of(value).map(Self)
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base_01_an_id_keeps_its_json_type() {
        for value in [json!(1), json!("1"), json!(-7), json!(""), json!("ünï")] {
            let id = Id::of(&value).unwrap();
            assert_eq!(serde_json::to_value(&id).unwrap(), value);
        }
        assert_ne!(Id::of(&json!(1)), Id::of(&json!("1")));
    }

    #[test]
    fn base_01_null_fractions_and_other_types_are_no_ids() {
        for value in [json!(null), json!(1.5), json!(true), json!([1]), json!({})] {
            assert!(Id::of(&value).is_err(), "{value}");
        }
    }

    /// Found by the corpus of the fuzz target `jsonrpc`, `id-too-large`.
    #[test]
    fn an_integer_is_an_id_as_long_as_every_reader_holds_it() {
        let limit = (1_i64 << 53) - 1;
        for number in [limit, -limit] {
            assert_eq!(Id::of(&json!(number)), Ok(Id::Integer(number)));
        }
        for number in [limit + 1, -limit - 1, i64::MAX, i64::MIN] {
            assert_eq!(Id::of(&json!(number)), Err(IdFault::Integer(number)));
        }
        assert!(Id::of(&json!(u64::MAX)).is_err());
    }

    /// Found by the corpus of the fuzz target `json`, `raw-value-key`.
    #[test]
    fn an_object_with_a_key_of_the_json_library_is_an_object() {
        for text in [
            r#"{"$serde_json::private::RawValue":"1"}"#,
            r#"{"$serde_json::private::Number":"1"}"#,
        ] {
            assert_eq!(Id::read(text), Err(IdFault::Kind("an object")), "{text}");
        }
        assert_eq!(Id::read("1"), Ok(Id::Integer(1)));
        assert_eq!(Id::read(r#""\u0061""#), Ok(Id::Text("a".to_owned())));
        assert!(Id::read(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn an_id_is_taken_at_its_limit_and_not_one_past_it() {
        assert!(Id::of(&json!("x".repeat(ID_BYTES_MAX))).is_ok());
        assert_eq!(
            Id::of(&json!("x".repeat(ID_BYTES_MAX + 1))),
            Err(IdFault::Long(ID_BYTES_MAX + 1))
        );
    }
}
