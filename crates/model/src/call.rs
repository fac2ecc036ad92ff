//! One call of a tool, on its way from a caller to an upstream. The words of the request, without any permission.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::json::{JsonFault, JsonLimits, Object, Value, canonical, parse};
use crate::{ToolName, UpstreamName};

/// The id of one call: in the ledger, in logs, and on the request to the upstream. Time-ordered (UUID version 7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(Uuid);

impl CallId {
    /// A new id.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the time in an id only keeps ids in order; nothing is decided by it"
    )]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for CallId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallId({})", self.0)
    }
}

impl std::str::FromStr for CallId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The arguments of a call.
///
/// Invariant: an I-JSON object (no duplicate keys, no integer beyond 2^53 - 1, bounded depth and length).
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments(Value);

/// Why a text is not the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsFault {
    /// Not JSON that may pass.
    #[error("{0}")]
    Json(#[from] JsonFault),
    /// JSON, but not an object.
    #[error("arguments are an object; found {0}")]
    Kind(&'static str),
}

impl Arguments {
    /// Parses the text of an arguments object.
    ///
    /// # Errors
    /// [`ArgumentsFault`].
    pub fn parse(bytes: &[u8], limits: JsonLimits) -> Result<Self, ArgumentsFault> {
        match parse(bytes, limits)? {
            object @ Value::Object(_) => Ok(Self(object)),
            Value::Null => Err(ArgumentsFault::Kind("null")),
            Value::Bool(_) => Err(ArgumentsFault::Kind("a boolean")),
            Value::Number(_) => Err(ArgumentsFault::Kind("a number")),
            Value::String(_) => Err(ArgumentsFault::Kind("a string")),
            Value::Array(_) => Err(ArgumentsFault::Kind("an array")),
        }
    }

    /// No arguments.
    #[must_use]
    pub fn none() -> Self {
        Self(Value::Object(Object::new()))
    }

    /// An object of texts, as values that were parsed already. `None`: something in it is no text.
    #[must_use]
    pub fn of_texts(value: &Value) -> Option<Self> {
        let object = value.as_object()?;
        let are_texts = object.values().all(Value::is_string);
        are_texts.then(|| Self(Value::Object(object.clone())))
    }

    /// The object.
    #[must_use]
    pub fn object(&self) -> &Object {
        static NONE: LazyLock<Object> = LazyLock::new(Object::new);
        match &self.0 {
            Value::Object(object) => object,
            // The invariant rules this out; no arguments is the harmless reading.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => &NONE,
        }
    }

    /// The object as a value, as schemas are checked against.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.0
    }

    /// The canonical bytes, for keyed digests (ADR 0007).
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        canonical(&self.0)
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::none()
    }
}

/// One call: which tool, of which upstream, with what.
///
/// It is built once, after the tool was found and the arguments fit its schema, and then not changed: a verdict on
/// a call is a verdict on exactly these bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The id under which it is recorded.
    pub id: CallId,
    /// The public name of the tool.
    pub tool: ToolName,
    /// The upstream that serves it.
    pub upstream: UpstreamName,
    /// What the caller sent. Shared, so that the record of a call can hold it beside the call.
    pub arguments: Arc<Arguments>,
    /// What the operator adds and no caller can set: fixed arguments and the caller's scope.
    pub injected: Object,
    /// What is wanted of it.
    pub aim: Aim,
}

/// What a call wants of what it names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Aim {
    /// To have it carried out, got or read.
    #[default]
    Use,
    /// Values that one of its arguments may have. The arguments of the call are those that are there already.
    Complete {
        /// The argument.
        argument: String,
        /// What of its value is there already.
        value: String,
    },
    /// To be told when it changes.
    Follow,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 1_000,
        depth_max: 8,
    };

    #[test]
    fn arguments_are_an_object_and_nothing_else() {
        assert!(Arguments::parse(b"{\"a\":1}", LIMITS).is_ok());
        for (text, kind) in [
            ("[1]", "an array"),
            ("null", "null"),
            ("\"x\"", "a string"),
            ("1", "a number"),
            ("true", "a boolean"),
        ] {
            assert_eq!(
                Arguments::parse(text.as_bytes(), LIMITS),
                Err(ArgumentsFault::Kind(kind))
            );
        }
        assert!(matches!(
            Arguments::parse(b"{\"a\":1,\"a\":2}", LIMITS),
            Err(ArgumentsFault::Json(_))
        ));
    }

    #[test]
    fn texts_are_arguments_and_nothing_else_is() {
        let parsed = |text: &str| Arguments::of_texts(&serde_json::from_str(text).unwrap());
        assert!(parsed(r#"{"a":"x"}"#).is_some());
        for text in [r#"{"a":1}"#, r#"{"a":{"b":"x"}}"#, r#"["a"]"#, "null"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn equal_arguments_have_equal_canonical_bytes() {
        let one = Arguments::parse(br#"{"b":1.0,"a":"x"}"#, LIMITS).unwrap();
        let two = Arguments::parse(br#"{ "a":"x", "b":1 }"#, LIMITS).unwrap();
        assert_eq!(one.canonical(), two.canonical());
        assert_eq!(one.canonical(), br#"{"a":"x","b":1}"#);
    }

    #[test]
    fn call_ids_are_unique_and_read_back() {
        let (one, two) = (CallId::new(), CallId::new());
        assert_ne!(one, two);
        assert_eq!(one.to_string().parse::<CallId>().unwrap(), one);
    }
}
