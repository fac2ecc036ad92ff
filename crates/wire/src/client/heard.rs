//! One message of a server: an answer, a request of its own, or something that it tells.
//!
//! A result is not read here; it is cut out of the message as it stands, and held to the rules of I-JSON by whoever reads
//! it. Members of the message that no revision has are passed over.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use model::{JsonFault, JsonLimits, Keys, Object, Value, parse_foreign, read_with};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::id::Id;
use crate::inquiry::{Inquiry, InquiryKind, Profile};
use crate::log::{LogLevel, LogMessage};
use crate::revision::Revision;
use crate::surface::Surface;

/// The longest text of an error that is kept, in characters.
const TEXT_MAX: usize = 4_096;

/// The code of an error that wants pages to be opened first.
const PAGES_FIRST: i64 = -32_042;
/// The code of an error that wants something of the client which it did not declare.
const CAPABILITY_MISSING: i64 = -32_021;

/// A message of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An answer to a request of ours.
    Answer {
        /// The id of the request; absent or null where the server could not read it (BASE-06).
        id: Option<Id>,
        /// The result as it stands in the message, not yet read, or the error.
        outcome: Result<Bytes, ServerError>,
    },
    /// A request of the server: it waits for an answer.
    Ask {
        /// Its id, in the server's own space (HOP-01).
        id: Id,
        /// Its method.
        method: String,
        /// Its parameters as they stand in the message, where it has some.
        params: Option<Bytes>,
    },
    /// A notification.
    Notice(Told),
}

/// An error, as the answer to a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("error {code}: {text}")]
pub struct ServerError {
    /// Its code.
    pub code: i64,
    /// Its text, cut at 4,096 characters. Untrusted.
    pub text: String,
    /// Its data, where it has some. Untrusted.
    pub data: Option<Value>,
}

/// What a server tells, without waiting for an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// `notifications/progress`.
    Progress {
        /// The token, ours.
        token: Id,
        /// How much is done. Finite.
        done: f64,
        /// Of how much, where it says. Finite.
        total: Option<f64>,
        /// What it says of it. Untrusted.
        message: Option<String>,
    },
    /// One of the lists has changed.
    ListChanged(Surface),
    /// `notifications/cancelled`: a request of the server is no longer wanted.
    Cancelled(Id),
    /// `notifications/resources/updated`: a resource has changed.
    Updated(String),
    /// `notifications/subscriptions/acknowledged`: the resources of whose changes the server tells (SUB-02).
    Acknowledged(Vec<String>),
    /// `notifications/message`: something for a log.
    Log(LogMessage),
    /// Any other notification, by its method.
    Other(String),
}

/// Why bytes are no message of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeardFault {
    /// Not JSON that may pass.
    #[error("the message is not JSON that may pass: {0}")]
    Json(JsonFault),
    /// JSON, but no JSON-RPC message.
    #[error("the message is no JSON-RPC: {0}")]
    Shape(&'static str),
}

impl Heard {
    /// Reads one message.
    ///
    /// # Errors
    /// [`HeardFault`]. Whoever waits for an answer goes on waiting: a message that cannot be read answers nothing.
    pub fn read(bytes: &Bytes, limits: JsonLimits) -> Result<Self, HeardFault> {
        let parts = read_with(bytes, limits, PartsSeed).map_err(HeardFault::Json)?;
        // Spans are held to the rules of I-JSON by whoever reads them; nobody passes one on unread.
        let span = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        if parts.jsonrpc.as_deref() != Some("2.0") {
            return Err(HeardFault::Shape("`jsonrpc` is not \"2.0\""));
        }
        let id = match parts.id.map(RawValue::get) {
            None => None,
            Some("null") => None,
            Some(text) => {
                Some(Id::read(text).map_err(|_| HeardFault::Shape("the id is neither text nor an integer"))?)
            }
        };
        match (parts.method, parts.result, parts.error) {
            (Some(method), None, None) => {
                let params = parts.params.map(span);
                match (parts.id, id) {
                    (Some(_), Some(id)) => Ok(Self::Ask {
                        id,
                        method: method.into_owned(),
                        params,
                    }),
                    (Some(_), None) => Err(HeardFault::Shape("a request has an id that is not null")),
                    (None, _) => Ok(Self::Notice(Told::notice(&method, params.as_ref(), limits))),
                }
            }
            (None, Some(result), None) => {
                if id.is_none() {
                    return Err(HeardFault::Shape("a result has the id of its request"));
                }
                Ok(Self::Answer {
                    id,
                    outcome: Ok(span(result)),
                })
            }
            (None, None, Some(error)) => Ok(Self::Answer {
                id,
                outcome: Err(ServerError::read(error, limits)?),
            }),
            (None, None, None) => Err(HeardFault::Shape("there is no method, no result and no error")),
            (_, _, _) => Err(HeardFault::Shape(
                "a message is a request or one answer, not both",
            )),
        }
    }
}

impl ServerError {
    fn read(raw: &RawValue, limits: JsonLimits) -> Result<Self, HeardFault> {
        let Ok(Value::Object(mut error)) = parse_foreign(raw.get().as_bytes(), limits) else {
            return Err(HeardFault::Shape("`error` is an object"));
        };
        let Some(code) = error.get("code").and_then(Value::as_i64) else {
            return Err(HeardFault::Shape("`error.code` is an integer"));
        };
        let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
        Ok(Self {
            code,
            text: text.chars().take(TEXT_MAX).collect(),
            data: error.shift_remove("data"),
        })
    }
}

impl ServerError {
    /// The pages that a person has to open before the same request can succeed (ELIC-07, D12), where this error says that.
    /// Only one revision has it.
    #[must_use]
    pub fn pages(&self, revision: Revision) -> Option<Vec<Inquiry>> {
        if self.code != PAGES_FIRST || !revision.has_sessions() || !revision.has_modes_of_elicitation() {
            return None;
        }
        let entries = self.data.as_ref()?.get("elicitations")?.as_array()?;
        let pages: Option<Vec<Inquiry>> = entries
            .iter()
            .map(|entry| {
                let page = Inquiry::of("elicitation/create", entry.as_object()?.clone()).ok()?;
                (page.kind() == InquiryKind::Url).then_some(page)
            })
            .collect();
        pages.filter(|pages| !pages.is_empty())
    }

    /// What the client would have to be able to do, where this error says that (BASE-18).
    #[must_use]
    pub fn required(&self, revision: Revision) -> Option<Profile> {
        if self.code != CAPABILITY_MISSING || revision.has_sessions() {
            return None;
        }
        let required = self.data.as_ref()?.get("requiredCapabilities")?.as_object()?;
        Some(Profile::declared(required, revision)).filter(|profile| !profile.is_empty())
    }
}

impl Told {
    /// What is odd in a notification makes it one that means nothing to us; nobody could be told.
    fn notice(method: &str, params: Option<&Bytes>, limits: JsonLimits) -> Self {
        let params = match params.map(|raw| parse_foreign(raw, limits)) {
            Some(Ok(Value::Object(params))) => params,
            _ => Object::new(),
        };
        let told = match method {
            "notifications/progress" => Self::progress(&params),
            "notifications/tools/list_changed" => Some(Self::ListChanged(Surface::Tools)),
            "notifications/prompts/list_changed" => Some(Self::ListChanged(Surface::Prompts)),
            "notifications/resources/list_changed" => Some(Self::ListChanged(Surface::Resources)),
            "notifications/cancelled" => params
                .get("requestId")
                .and_then(|id| Id::of(id).ok())
                .map(Self::Cancelled),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str);
                uri.map(|uri| Self::Updated(uri.to_owned()))
            }
            "notifications/subscriptions/acknowledged" => {
                let honoured = params.get("notifications");
                let uris = honoured.and_then(|honoured| honoured.get("resourceSubscriptions"));
                let uris = uris.and_then(Value::as_array).into_iter().flatten();
                Some(Self::Acknowledged(
                    uris.filter_map(Value::as_str).map(str::to_owned).collect(),
                ))
            }
            "notifications/message" => {
                let level = params.get("level").and_then(Value::as_str);
                level.and_then(LogLevel::parse).map(|level| {
                    Self::Log(LogMessage {
                        level,
                        logger: text(&params, "logger"),
                        data: params.get("data").cloned().unwrap_or_default(),
                    })
                })
            }
            _ => None,
        };
        told.unwrap_or_else(|| Self::Other(method.chars().take(128).collect()))
    }

    fn progress(params: &Object) -> Option<Self> {
        let number = |key: &str| params.get(key).and_then(Value::as_f64).filter(|n| n.is_finite());
        Some(Self::Progress {
            token: Id::of(params.get("progressToken")?).ok()?,
            done: number("progress")?,
            total: number("total"),
            message: text(params, "message"),
        })
    }
}

/// The messages in what came at once: one, or those of an array where the revision has batches (BASE-07).
///
/// # Errors
/// [`HeardFault`] for an array where there are none, and for one that is empty or has more than `messages_max`.
pub fn messages(
    bytes: &Bytes,
    has_batches: bool,
    messages_max: usize,
    limits: JsonLimits,
) -> Result<Vec<Bytes>, HeardFault> {
    let is_array = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if !is_array {
        return Ok(vec![bytes.clone()]);
    }
    if !has_batches {
        return Err(HeardFault::Shape("an array, in a revision without batches"));
    }
    if bytes.len() > limits.bytes_max {
        return Err(HeardFault::Shape("a batch that is too long"));
    }
    let items: Vec<&RawValue> =
        serde_json::from_slice(bytes).map_err(|_| HeardFault::Shape("a broken array"))?;
    if items.is_empty() || items.len() > messages_max {
        return Err(HeardFault::Shape(
            "a batch that is empty or has too many messages",
        ));
    }
    Ok(items
        .into_iter()
        .map(|item| bytes.slice_ref(item.get().as_bytes()))
        .collect())
}

fn text(params: &Object, key: &str) -> Option<String> {
    params
        .get(key)
        .and_then(Value::as_str)
        .map(|text| text.chars().take(TEXT_MAX).collect())
}

#[derive(Default)]
struct Parts<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

struct PartsSeed;

impl<'de> DeserializeSeed<'de> for PartsSeed {
    type Value = Parts<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parts<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PartsSeed {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parts<'de>, A::Error> {
        let mut parts = Parts::default();
        let mut keys = Keys::default();
        while let Some(key) = keys.next(&mut entries)? {
            match key {
                "jsonrpc" => parts.jsonrpc = text_of(entries.next_value()?),
                "method" => parts.method = text_of(entries.next_value()?),
                "id" => parts.id = Some(entries.next_value()?),
                "params" => parts.params = Some(entries.next_value()?),
                "result" => parts.result = Some(entries.next_value()?),
                "error" => parts.error = Some(entries.next_value()?),
                _ => {
                    let _passed_over: IgnoredAny = entries.next_value()?;
                }
            }
        }
        Ok(parts)
    }
}

fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let borrowed: Result<&str, _> = <&str>::deserialize(&mut serde_json::Deserializer::from_str(text));
    borrowed
        .map(Cow::Borrowed)
        .or_else(|_| serde_json::from_str::<String>(text).map(Cow::Owned))
        .ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 4_096,
        depth_max: 16,
    };

    fn heard(text: &str) -> Result<Heard, HeardFault> {
        Heard::read(&Bytes::copy_from_slice(text.as_bytes()), LIMITS)
    }

    #[test]
    fn a_result_is_cut_out_as_it_stands() {
        let found = heard(r#"{"jsonrpc":"2.0","id":1,"result": {"a" : 1.10, "vendor":[1,2 ]} }"#).unwrap();
        let Heard::Answer { id, outcome } = found else {
            panic!("{found:?}")
        };
        assert_eq!(id, Some(Id::Integer(1)));
        assert_eq!(outcome.unwrap().as_ref(), br#"{"a" : 1.10, "vendor":[1,2 ]}"#);
    }

    #[test]
    fn base_05_a_message_is_one_thing_only() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#,
            "[]",
            "1",
            "",
        ] {
            assert!(heard(text).is_err(), "{text}");
        }
    }

    #[test]
    fn base_06_an_error_may_lack_its_id() {
        for id in ["", r#""id":null,"#] {
            let found = heard(&format!(
                r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"no","data":[1]}}}}"#
            ))
            .unwrap();
            let error = ServerError {
                code: -32_700,
                text: "no".to_owned(),
                data: Some(json!([1])),
            };
            assert_eq!(
                found,
                Heard::Answer {
                    id: None,
                    outcome: Err(error)
                }
            );
        }
    }

    #[test]
    fn what_a_server_tells_is_known_by_its_method_and_its_parameters() {
        let told = |text: &str| match heard(text).unwrap() {
            Heard::Notice(told) => told,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            told(
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1,"total":4,"message":"a"}}"#
            ),
            Told::Progress {
                token: Id::Integer(3),
                done: 1.0,
                total: Some(4.0),
                message: Some("a".to_owned())
            }
        );
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Told::ListChanged(Surface::Tools)
        );
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#),
            Told::Other("notifications/progress".to_owned())
        );
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#),
            Told::Other("tools/call".to_owned())
        );
    }

    #[test]
    fn base_07_an_array_is_taken_apart_where_there_are_batches_and_nowhere_else() {
        let array = Bytes::from_static(
            br#" [{"jsonrpc":"2.0","id":1,"result":{}}, {"jsonrpc":"2.0","id":2,"result":{}}]"#,
        );
        assert_eq!(messages(&array, true, 2, LIMITS).unwrap().len(), 2);
        assert!(messages(&array, true, 1, LIMITS).is_err());
        assert!(messages(&array, false, 2, LIMITS).is_err());
        assert!(messages(&Bytes::from_static(b"[]"), true, 2, LIMITS).is_err());
        let one = Bytes::from_static(b"{}");
        assert_eq!(messages(&one, false, 1, LIMITS).unwrap(), [one]);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            let _ = Heard::read(&bytes, LIMITS);
            let _ = messages(&bytes, true, 3, LIMITS);
        }

        #[test]
        fn what_we_say_reads_back_as_what_it_is(id in any::<i32>(), text in ".{0,20}") {
            let id = Id::Integer(i64::from(id));
            let found = Heard::read(&crate::client::answer(&id, &json!({ "t": text })), LIMITS).unwrap();
            let Heard::Answer { id: Some(found), outcome: Ok(result) } = found else { panic!() };
            prop_assert_eq!(found, id);
            prop_assert_eq!(serde_json::from_slice::<Value>(&result).unwrap(), json!({ "t": text }));
        }
    }
}
