//! The JSON-RPC envelope of one message, read in one pass, with the parameters that we look at kept as raw spans.
//!
//! What is passed over is still held to the rules of `model::parse` (no duplicate keys, no large integers), so that no
//! two readers can see two messages. Whether the message is served, and in which revision, is decided elsewhere.

use std::borrow::Cow;
use std::fmt;

use model::{JsonFault, JsonFaultKind, JsonLimits, Keys, Object, Scan, Value, read_with};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::id::{Id, IdFault};

/// One message, taken apart as far as every revision agrees.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) params: Params<'a>,
}

/// What a message is (BASE-04, BASE-05).
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Request {
        id: Id,
        method: Cow<'a, str>,
    },
    Notification {
        method: Cow<'a, str>,
    },
    Response {
        /// Absent or null in an error that answers what could not be read (BASE-06).
        id: Option<Id>,
        /// The result, or the error object.
        outcome: Result<Value, Value>,
    },
}

/// The parameters that any method of ours looks at, as they stand in the text.
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    /// Whether there are parameters, and whether they are an object.
    pub(crate) shape: ParamsShape,
    pub(crate) name: Option<&'a RawValue>,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) meta: Option<&'a RawValue>,
    pub(crate) cursor: Option<&'a RawValue>,
    pub(crate) level: Option<&'a RawValue>,
    pub(crate) uri: Option<&'a RawValue>,
    pub(crate) notifications: Option<&'a RawValue>,
    pub(crate) reference: Option<&'a RawValue>,
    pub(crate) argument: Option<&'a RawValue>,
    pub(crate) context: Option<&'a RawValue>,
    pub(crate) request_id: Option<&'a RawValue>,
    pub(crate) protocol_version: Option<&'a RawValue>,
    pub(crate) capabilities: Option<&'a RawValue>,
    pub(crate) client_info: Option<&'a RawValue>,
    pub(crate) request_state: Option<&'a RawValue>,
    pub(crate) input_responses: Option<&'a RawValue>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamsShape {
    #[default]
    Absent,
    Object,
    Other,
}

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeFault {
    /// Not JSON (JSON-RPC: -32700).
    #[error("{0}")]
    Syntax(JsonFault),
    /// JSON that two readers could understand differently, or that is too large or too deep (-32600). The id is
    /// there where it could be read beyond doubt.
    #[error("{fault}")]
    Unsafe { fault: JsonFault, id: Option<Id> },
    /// JSON, but no JSON-RPC message (-32600).
    #[error("{text}")]
    Shape { text: String, id: Option<Id> },
}

impl<'a> Envelope<'a> {
    pub(crate) fn read(bytes: &'a [u8], limits: JsonLimits) -> Result<Self, EnvelopeFault> {
        let parts = read_with(
            bytes,
            limits,
            PartsSeed {
                depth: limits.depth_max,
            },
        )
        .map_err(|fault| EnvelopeFault::of(fault, bytes, limits))?;
        parts.judge(JsonLimits {
            depth_max: limits.depth_max.saturating_sub(1),
            ..limits
        })
    }

    /// The id, where the message is a request.
    pub(crate) fn request_id(&self) -> Option<&Id> {
        match &self.kind {
            Kind::Request { id, .. } => Some(id),
            Kind::Notification { .. } | Kind::Response { .. } => None,
        }
    }
}

impl EnvelopeFault {
    fn of(fault: JsonFault, bytes: &[u8], limits: JsonLimits) -> Self {
        match fault.kind {
            JsonFaultKind::Syntax(ref text) => match text.strip_prefix(SHAPE) {
                Some(text) => Self::Shape {
                    text: text.to_owned(),
                    id: None,
                },
                None => Self::Syntax(fault),
            },
            JsonFaultKind::DuplicateKey(_)
            | JsonFaultKind::Integer(_)
            | JsonFaultKind::Depth(_)
            | JsonFaultKind::Size { .. } => Self::Unsafe {
                id: lone_id(bytes, limits),
                fault,
            },
        }
    }

    pub(crate) fn id(&self) -> Option<&Id> {
        match self {
            Self::Syntax(_) => None,
            Self::Unsafe { id, .. } | Self::Shape { id, .. } => id.as_ref(),
        }
    }
}

/// The id of a message that failed the strict reading further in: taken only if it stands once, so that a client can
/// match the refusal to its request.
fn lone_id(bytes: &[u8], limits: JsonLimits) -> Option<Id> {
    #[derive(serde::Deserialize)]
    struct Loose<'a> {
        // The derive refuses a second `id`.
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    if bytes.len() > limits.bytes_max {
        return None;
    }
    let loose: Loose<'_> = serde_json::from_slice(bytes).ok()?;
    Id::read(loose.id?.get()).ok()
}

// === the parts, before they are judged ===

#[derive(Default)]
struct Parts<'a> {
    jsonrpc: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Params<'a>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'a> Parts<'a> {
    fn judge(self, inner: JsonLimits) -> Result<Envelope<'a>, EnvelopeFault> {
        let id = self.id.map(|raw| Id::read(raw.get()));
        let (id, id_fault) = match id {
            None => (None, None),
            Some(Ok(id)) => (Some(id), None),
            Some(Err(fault)) => (None, Some(fault)),
        };
        let shape = |text: String, id: Option<Id>| Err(EnvelopeFault::Shape { text, id });
        match self.jsonrpc.as_deref() {
            Some("2.0") => {}
            Some(other) => {
                let text = format!(
                    "`jsonrpc` is \"2.0\"; found {:?}",
                    other.chars().take(20).collect::<String>()
                );
                return shape(text, id);
            }
            None => return shape("`jsonrpc` is missing; it is \"2.0\"".to_owned(), id),
        }
        if self.result.is_some() || self.error.is_some() {
            let read = |raw: &RawValue| {
                model::parse(raw.get().as_bytes(), inner).map_err(|fault| EnvelopeFault::Unsafe {
                    fault,
                    id: id.clone(),
                })
            };
            let (result, error) = (
                self.result.map(read).transpose()?,
                self.error.map(read).transpose()?,
            );
            let has_result = result.is_some();
            let both = has_result && error.is_some();
            let outcome = result.ok_or_else(|| error.unwrap_or_default());
            return match (self.method, both, id_fault) {
                (Some(_), _, _) => shape("a message is a request or a response, not both".to_owned(), id),
                (None, true, _) => shape("a response has either a result or an error".to_owned(), id),
                // An error may lack an id (BASE-06) or, in plain JSON-RPC, hold null.
                (None, false, Some(IdFault::Kind("null"))) if !has_result => Ok(Envelope {
                    kind: Kind::Response { id: None, outcome },
                    params: self.params,
                }),
                (None, false, Some(fault)) => shape(fault.to_string(), None),
                (None, false, None) if id.is_none() && has_result => {
                    shape("a result has the id of its request".to_owned(), None)
                }
                (None, false, None) => Ok(Envelope {
                    kind: Kind::Response { id, outcome },
                    params: self.params,
                }),
            };
        }
        if let Some(fault) = id_fault {
            return shape(fault.to_string(), None);
        }
        match (self.method, id) {
            (None, id) => shape("`method` is missing".to_owned(), id),
            (Some(method), Some(id)) => Ok(Envelope {
                kind: Kind::Request { id, method },
                params: self.params,
            }),
            (Some(method), None) => Ok(Envelope {
                kind: Kind::Notification { method },
                params: self.params,
            }),
        }
    }
}

/// Marks an error text as ours, not serde's.
const SHAPE: &str = "\u{1}shape ";

struct PartsSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for PartsSeed {
    type Value = Parts<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parts<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartsSeed {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parts<'de>, A::Error> {
        let inner = self.depth.saturating_sub(1);
        let mut parts = Parts::default();
        let mut keys = Keys::default();
        while let Some(key) = keys.next(&mut entries)? {
            match key {
                "jsonrpc" => parts.jsonrpc = Some(entries.next_value_seed(TextSeed("jsonrpc"))?),
                "id" => parts.id = Some(entries.next_value()?),
                "method" => parts.method = Some(entries.next_value_seed(TextSeed("method"))?),
                "params" => parts.params = entries.next_value_seed(ParamsSeed { depth: inner })?,
                "result" => parts.result = Some(entries.next_value()?),
                "error" => parts.error = Some(entries.next_value()?),
                _ => entries.next_value_seed(Scan::new(inner))?,
            }
        }
        Ok(parts)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parts<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Err(A::Error::custom(format_args!(
            "{SHAPE}one message at a time; found an array"
        )))
    }
    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Parts<'de>, E> {
        Err(not_an_object("a boolean"))
    }
    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Parts<'de>, E> {
        Err(not_an_object("a number"))
    }
    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Parts<'de>, E> {
        Err(not_an_object("a number"))
    }
    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Parts<'de>, E> {
        Err(not_an_object("a number"))
    }
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Parts<'de>, E> {
        Err(not_an_object("a string"))
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<Parts<'de>, E> {
        Err(not_an_object("null"))
    }
}

fn not_an_object<E: serde::de::Error>(found: &str) -> E {
    E::custom(format_args!("{SHAPE}a message is an object; found {found}"))
}

struct ParamsSeed {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for ParamsSeed {
    type Value = Params<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Params<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParamsSeed {
    type Value = Params<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Params<'de>, A::Error> {
        let inner = self.depth.saturating_sub(1);
        let mut params = Params {
            shape: ParamsShape::Object,
            ..Params::default()
        };
        let mut keys = Keys::default();
        while let Some(key) = keys.next(&mut entries)? {
            let slot = match key {
                "name" => &mut params.name,
                "arguments" => &mut params.arguments,
                "_meta" => &mut params.meta,
                "cursor" => &mut params.cursor,
                "level" => &mut params.level,
                "uri" => &mut params.uri,
                "notifications" => &mut params.notifications,
                "ref" => &mut params.reference,
                "argument" => &mut params.argument,
                "context" => &mut params.context,
                "requestId" => &mut params.request_id,
                "protocolVersion" => &mut params.protocol_version,
                "capabilities" => &mut params.capabilities,
                "clientInfo" => &mut params.client_info,
                "requestState" => &mut params.request_state,
                "inputResponses" => &mut params.input_responses,
                _ => {
                    entries.next_value_seed(Scan::new(inner))?;
                    continue;
                }
            };
            // Raw spans are held to the strict rules when they are read; see `object_of` and `text_of`.
            *slot = Some(entries.next_value()?);
        }
        Ok(params)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Params<'de>, A::Error> {
        let inner = Scan::new(self.depth.saturating_sub(1));
        while items.next_element_seed(inner)?.is_some() {}
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_bool<E>(self, _: bool) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_i64<E>(self, _: i64) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_u64<E>(self, _: u64) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_f64<E>(self, _: f64) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_str<E>(self, _: &str) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
    fn visit_unit<E>(self) -> Result<Params<'de>, E> {
        Ok(Params {
            shape: ParamsShape::Other,
            ..Params::default()
        })
    }
}

/// A string member, borrowed where it holds no escape.
struct TextSeed(&'static str);

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        let raw: &RawValue = serde::Deserialize::deserialize(deserializer)?;
        let text = raw.get();
        if !text.starts_with('"') {
            return Err(D::Error::custom(format_args!("{SHAPE}`{}` is a string", self.0)));
        }
        serde_json::from_str::<&str>(text)
            .map(Cow::Borrowed)
            .or_else(|_| serde_json::from_str::<String>(text).map(Cow::Owned))
            .map_err(|_| D::Error::custom(format_args!("{SHAPE}`{}` is no valid string", self.0)))
    }
}

// === raw spans ===

/// Reads a raw span as an object, under the strict rules.
pub(crate) fn object_of(raw: &RawValue, what: &str, limits: JsonLimits) -> Result<Object, String> {
    match model::parse(raw.get().as_bytes(), limits) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(format!("`{what}` is an object")),
        Err(fault) => Err(format!("`{what}`: {}", fault.kind)),
    }
}

/// Reads a raw span as a text.
pub(crate) fn text_of(raw: &RawValue, what: &str) -> Result<String, String> {
    serde_json::from_str::<String>(raw.get()).map_err(|_| format!("`{what}` is a string"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 10_000,
        depth_max: 16,
    };

    fn fault(text: &str) -> EnvelopeFault {
        match Envelope::read(text.as_bytes(), LIMITS) {
            Err(fault) => fault,
            Ok(envelope) => panic!("{text} was read as {envelope:?}"),
        }
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        let kind = |text: &str| match Envelope::read(text.as_bytes(), LIMITS).unwrap().kind {
            Kind::Request { id, method } => format!("request {id} {method}"),
            Kind::Notification { method } => format!("notification {method}"),
            Kind::Response { .. } => "response".to_owned(),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1 ping"),
            (
                r#"{"jsonrpc":"2.0","id":"1","method":"ping","extra":[1]}"#,
                "request \"1\" ping",
            ),
            (
                r#"{"method":"p\u0069ng","id":0,"jsonrpc":"2.0"}"#,
                "request 0 ping",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "notification notifications/initialized",
            ),
            (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, "response"),
            (
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#,
                "response",
            ),
            (
                r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
                "response",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#,
                "response",
            ),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn base_01_base_05_what_is_no_message_is_refused_with_the_id_where_it_is_certain() {
        for (text, id) in [
            (r#"{"id":1,"method":"ping"}"#, Some(Id::Integer(1))),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                Some(Id::Integer(1)),
            ),
            (r#"{"jsonrpc":"2.0","id":1}"#, Some(Id::Integer(1))),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
                Some(Id::Integer(1)),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
                Some(Id::Integer(1)),
            ),
            (r#"{"jsonrpc":"2.0","result":{}}"#, None),
            (r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, None),
            ("[]", None),
            ("\"x\"", None),
            ("null", None),
            ("7", None),
            ("true", None),
        ] {
            let found = fault(text);
            assert!(matches!(found, EnvelopeFault::Shape { .. }), "{text}: {found:?}");
            assert_eq!(found.id(), id.as_ref(), "{text}");
        }
    }

    #[test]
    fn two_readings_are_no_reading() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, Some(1)),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}"#,
                Some(1),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, None),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"x","name":"y"}}"#,
                Some(1),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"other":{"k":1,"k":2}}}"#,
                Some(1),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","x":9007199254740993}"#,
                Some(1),
            ),
        ] {
            let found = fault(text);
            assert!(matches!(found, EnvelopeFault::Unsafe { .. }), "{text}: {found:?}");
            assert_eq!(found.id(), id.map(Id::Integer).as_ref(), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_a_syntax_fault_without_an_id() {
        for text in [
            "",
            "{",
            r#"{"jsonrpc":"2.0","id":1,"method":"x""#,
            "{\"id\":1}{",
            "\u{FEFF}{}",
            "{\"a\":\"\\ud800\"}",
        ] {
            assert!(
                matches!(fault(text), EnvelopeFault::Syntax(_)),
                "{text:?}: {:?}",
                fault(text)
            );
        }
    }

    #[test]
    fn parameters_are_told_apart_by_shape() {
        for (params, shape) in [
            (r#","params":{}"#, ParamsShape::Object),
            ("", ParamsShape::Absent),
            (r#","params":[1]"#, ParamsShape::Other),
            (r#","params":null"#, ParamsShape::Other),
            (r#","params":"x""#, ParamsShape::Other),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x"{params}}}"#);
            assert_eq!(
                Envelope::read(text.as_bytes(), LIMITS).unwrap().params.shape,
                shape,
                "{text}"
            );
        }
    }
}
