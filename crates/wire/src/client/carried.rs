//! The results of `prompts/get`, `resources/read` and `completion/complete`: whole, once their form is what the method demands.
//!
//! Nothing is checked here beyond the form. What stands in them is untrusted data.

use bytes::Bytes;
use model::{JsonLimits, Object, Value};

use crate::client::called::without_this_hop;
use crate::client::input::InputRequired;
use crate::client::kind::Kind;
use crate::revision::Revision;

/// How a request for a prompt, a resource or a completion ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Carried {
    /// With a result: every member but those that belong to one hop (HOP-03).
    Complete(Object),
    /// The server wants something of the client first (MRTR-02).
    InputRequired(InputRequired),
    /// With something that we have not asked for (BASE-12).
    Other(String),
}

/// Why a result is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer to `{method}` {what}")]
pub struct CarriedFault {
    /// The method.
    pub method: &'static str,
    /// What is wrong.
    pub what: String,
}

impl Carried {
    /// Reads the result of `method`.
    ///
    /// # Errors
    /// [`CarriedFault`]: no JSON that may pass, or not the form of the method.
    pub fn read(
        revision: Revision,
        method: &'static str,
        result: &Bytes,
        limits: JsonLimits,
    ) -> Result<Self, CarriedFault> {
        let fault = |what: String| CarriedFault { method, what };
        let mut object = match Kind::read(revision, result, limits).map_err(fault)? {
            Kind::Complete(object) => object,
            Kind::InputRequired(required) => return Ok(Self::InputRequired(required)),
            Kind::Other(kind) => return Ok(Self::Other(kind)),
        };
        form(method, &object).map_err(|what| fault(what.to_owned()))?;
        match object.shift_remove("_meta") {
            None | Some(Value::Null) => {}
            Some(Value::Object(meta)) => {
                let meta = without_this_hop(meta);
                if !meta.is_empty() {
                    object.insert("_meta".to_owned(), Value::Object(meta));
                }
            }
            Some(_) => return Err(fault("has a `_meta` that is no object".to_owned())),
        }
        Ok(Self::Complete(object))
    }
}

fn form(method: &str, object: &Object) -> Result<(), &'static str> {
    let items = |key: &str| object.get(key).and_then(Value::as_array);
    let is_text = |item: &Value, key: &str| item.get(key).is_some_and(Value::is_string);
    match method {
        "prompts/get" => {
            let messages = items("messages").ok_or("has no `messages`, which are an array")?;
            let is_whole = |message: &Value| {
                is_text(message, "role") && message.get("content").is_some_and(|block| is_text(block, "type"))
            };
            let are_whole = messages.iter().all(is_whole);
            are_whole
                .then_some(())
                .ok_or("has a message without a role or without a block")
        }
        "resources/read" => {
            let contents = items("contents").ok_or("has no `contents`, which are an array")?;
            let are_whole = contents.iter().all(|content| is_text(content, "uri"));
            are_whole.then_some(()).ok_or("has content without a `uri`")
        }
        "resources/subscribe" => Ok(()),
        _ => {
            let values = object
                .get("completion")
                .and_then(|completion| completion.get("values"));
            let values = values
                .and_then(Value::as_array)
                .ok_or("has no `completion.values`, which are an array")?;
            let are_texts = values.iter().all(Value::is_string);
            are_texts.then_some(()).ok_or("has a value that is no text")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 4_096,
        depth_max: 16,
    };

    fn read(revision: Revision, method: &'static str, value: &Value) -> Result<Carried, CarriedFault> {
        Carried::read(revision, method, &Bytes::from(value.to_string()), LIMITS)
    }

    #[test]
    fn hop_03_a_result_is_whole_but_for_what_belongs_to_one_hop() {
        let value = json!({
            "resultType": "complete",
            "contents": [{ "uri": "a:b", "text": "x", "vendor": { "b": 1, "a": 2 } }],
            "_meta": { "com.example/x": 1, "io.modelcontextprotocol/serverInfo": {} },
            "vendor": 1,
        });
        let Ok(Carried::Complete(object)) = read(Revision::V2026_07_28, "resources/read", &value) else {
            panic!()
        };
        assert_eq!(
            Value::Object(object),
            json!({
                "contents": [{ "uri": "a:b", "text": "x", "vendor": { "b": 1, "a": 2 } }],
                "_meta": { "com.example/x": 1 },
                "vendor": 1,
            })
        );
    }

    #[test]
    fn base_12_a_result_of_another_kind_is_no_result_in_the_stateless_era() {
        let value = |kind: &str| json!({ "resultType": kind, "messages": [] });
        let of = |revision, kind| read(revision, "prompts/get", &value(kind)).unwrap();
        assert!(
            read(Revision::V2026_07_28, "prompts/get", &value("input_required")).is_err(),
            "MRTR-02: with neither requests nor a state"
        );
        assert_eq!(
            of(Revision::V2026_07_28, "task"),
            Carried::Other("task".to_owned())
        );
        assert!(matches!(of(Revision::V2025_11_25, "task"), Carried::Complete(_)));
    }

    #[test]
    fn res_02_a_form_that_the_method_does_not_have_is_a_fault() {
        for (method, value) in [
            ("prompts/get", json!({})),
            ("prompts/get", json!({ "messages": [{ "role": "user" }] })),
            (
                "prompts/get",
                json!({ "messages": [{ "content": { "type": "text" } }] }),
            ),
            (
                "prompts/get",
                json!({ "messages": [{ "role": "user", "content": "x" }] }),
            ),
            ("resources/read", json!({ "contents": {} })),
            ("resources/read", json!({ "contents": [{ "text": "x" }] })),
            ("completion/complete", json!({ "completion": {} })),
            ("completion/complete", json!({ "completion": { "values": [1] } })),
            ("completion/complete", json!([])),
            ("resources/read", json!({ "contents": [], "_meta": 1 })),
        ] {
            for revision in Revision::ALL {
                assert!(read(revision, method, &value).is_err(), "{method} {value}");
            }
        }
    }
}
