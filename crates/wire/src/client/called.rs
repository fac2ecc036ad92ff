//! The result of `tools/call`, as the server gave it: blocks whole, what it says of itself, and whether it is the end.
//!
//! Nothing is checked here beyond its form. What stands in it is untrusted data.

use bytes::Bytes;
use model::{JsonLimits, Object, Value};

use crate::client::input::InputRequired;
use crate::client::kind::Kind;
use crate::revision::Revision;

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// Its blocks, in order; each has a `type`.
    pub content: Vec<Object>,
    /// Its structured content.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed (TOOL-08).
    pub is_error: bool,
    /// Its `_meta`, without what belongs to one hop (HOP-03).
    pub meta: Object,
    /// Members that no revision has, as they are.
    pub others: Object,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// With a result.
    Complete(Box<Called>),
    /// The server wants something of the client first (MRTR-02).
    InputRequired(InputRequired),
    /// With something that we have not asked for (BASE-12).
    Other(String),
}

/// Why a result is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the result of the call {0}")]
pub struct CalledFault(String);

/// Keys of `_meta` that belong to one hop (HOP-03).
const OF_THIS_HOP: [&str; 8] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/serverInfo",
    "io.modelcontextprotocol/related-task",
];

impl Called {
    /// Reads the result of a call.
    ///
    /// # Errors
    /// [`CalledFault`]: no JSON that may pass, or blocks without a type.
    pub fn read(revision: Revision, result: &Bytes, limits: JsonLimits) -> Result<Ended, CalledFault> {
        let mut object = match Kind::read(revision, result, limits).map_err(CalledFault)? {
            Kind::Complete(object) => object,
            Kind::InputRequired(required) => return Ok(Ended::InputRequired(required)),
            Kind::Other(kind) => return Ok(Ended::Other(kind)),
        };
        let content = match object.shift_remove("content") {
            // Servers leave it out beside structured content, although no revision lets them.
            None => Vec::new(),
            Some(Value::Array(blocks)) => blocks
                .into_iter()
                .map(|block| match block {
                    Value::Object(block) if block.get("type").is_some_and(Value::is_string) => Ok(block),
                    _ => Err(CalledFault("has a block without a type".to_owned())),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(CalledFault("has `content` that is no array".to_owned())),
        };
        let is_error = match object.shift_remove("isError") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(is_error)) => is_error,
            Some(_) => return Err(CalledFault("has an `isError` that is no truth value".to_owned())),
        };
        let mut meta = match object.shift_remove("_meta") {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(meta)) => meta,
            Some(_) => return Err(CalledFault("has a `_meta` that is no object".to_owned())),
        };
        meta = without_this_hop(meta);
        Ok(Ended::Complete(Box::new(Self {
            content,
            structured: object.shift_remove("structuredContent"),
            is_error,
            meta,
            others: object,
        })))
    }
}

/// `_meta` without what belongs to one hop (HOP-03).
pub(crate) fn without_this_hop(mut meta: Object) -> Object {
    meta.retain(|key, _| !OF_THIS_HOP.contains(&key.as_str()));
    meta
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 4_096,
        depth_max: 16,
    };

    fn read(revision: Revision, value: &Value) -> Result<Ended, CalledFault> {
        Called::read(revision, &Bytes::from(value.to_string()), LIMITS)
    }

    #[test]
    fn hop_03_what_belongs_to_one_hop_stays_on_it_and_all_else_is_kept() {
        let value = json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": "a", "vendor": 1 }],
            "structuredContent": [1],
            "isError": true,
            "_meta": { "com.example/x": 1, "io.modelcontextprotocol/serverInfo": {}, "progressToken": 1 },
            "vendor": { "b": 1, "a": 2 },
        });
        let Ok(Ended::Complete(called)) = read(Revision::V2026_07_28, &value) else {
            panic!()
        };
        assert_eq!(called.content[0]["vendor"], 1);
        assert_eq!(called.structured, Some(json!([1])));
        assert!(called.is_error);
        assert_eq!(Value::Object(called.meta), json!({ "com.example/x": 1 }));
        assert_eq!(
            serde_json::to_string(&called.others).unwrap(),
            r#"{"vendor":{"b":1,"a":2}}"#
        );
    }

    #[test]
    fn base_12_a_result_of_another_kind_is_no_result_in_the_stateless_era() {
        let value = |kind: &str| json!({ "resultType": kind, "content": [] });
        let of = |revision, kind| read(revision, &value(kind)).unwrap();
        assert!(
            read(Revision::V2026_07_28, &value("input_required")).is_err(),
            "MRTR-02: with neither requests nor a state"
        );
        let asks = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "a": { "method": "roots/list" } } });
        let Ok(Ended::InputRequired(asks)) = read(Revision::V2026_07_28, &asks) else {
            panic!()
        };
        assert_eq!(asks.state.as_deref(), Some("s"));
        assert_eq!(asks.inquiries().unwrap().len(), 1);
        assert_eq!(of(Revision::V2026_07_28, "task"), Ended::Other("task".to_owned()));
        assert!(matches!(
            of(Revision::V2026_07_28, "complete"),
            Ended::Complete(_)
        ));
        // C3: a legacy server's field of this name means nothing.
        assert!(matches!(of(Revision::V2025_11_25, "task"), Ended::Complete(_)));
        assert!(matches!(
            read(Revision::V2026_07_28, &json!({ "content": [] })),
            Ok(Ended::Complete(_))
        ));
    }

    #[test]
    fn a_form_that_no_revision_has_is_a_fault() {
        for value in [
            json!([]),
            json!({ "content": {} }),
            json!({ "content": ["a"] }),
            json!({ "content": [{ "text": "a" }] }),
            json!({ "content": [], "isError": "no" }),
            json!({ "content": [], "_meta": 1 }),
        ] {
            for revision in Revision::ALL {
                assert!(read(revision, &value).is_err(), "{value}");
            }
        }
    }
}
