//! What we say to a server: requests, the two notifications that a client needs, and answers to its own requests.

use bytes::Bytes;
use model::{Object, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::client::input::InputResponses;
use crate::context::{CLIENT_CAPABILITIES, CLIENT_INFO, Identity, LOG_LEVEL, PROTOCOL_VERSION};
use crate::id::Id;
use crate::log::LogLevel;
use crate::revision::{Era, Revision};
use crate::surface::Surface;

/// Who speaks, and what it can be asked for.
#[derive(Debug, Clone)]
pub struct Speaker {
    /// Name and version of this program.
    pub identity: Identity,
    /// The capabilities that are declared on this hop: what can be carried for the caller behind it, and no more (HOP-06).
    pub capabilities: Object,
}

/// A request to a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Say<'a> {
    /// `initialize`: opens a conversation of the legacy era, at best in this revision.
    Open(Revision),
    /// `server/discover`.
    Discover,
    /// `ping`.
    Ping,
    /// One page of a list.
    List {
        /// Of what.
        surface: Surface,
        /// What the last page gave. An empty text is a cursor like any other (PAG-02).
        cursor: Option<&'a str>,
    },
    /// `tools/call`.
    Call {
        /// The server's own name of the tool.
        name: &'a str,
        /// The arguments.
        arguments: &'a Object,
    },
    /// `prompts/get`.
    Get {
        /// The server's own name of the prompt.
        name: &'a str,
        /// The arguments; all of them are texts.
        arguments: &'a Object,
    },
    /// `resources/read`.
    Read {
        /// The server's own URI.
        uri: &'a str,
    },
    /// `resources/subscribe`: to be told when a resource changes.
    Subscribe {
        /// The server's own URI.
        uri: &'a str,
    },
    /// `resources/unsubscribe`: to be told of it no more.
    Unsubscribe {
        /// The server's own URI.
        uri: &'a str,
    },
    /// `subscriptions/listen`: to be told when these resources change.
    Listen {
        /// The server's own URIs.
        uris: &'a [String],
    },
    /// `logging/setLevel`: what to log in this conversation.
    SetLevel(LogLevel),
    /// `completion/complete`.
    Complete {
        /// [`Surface::Prompts`] or [`Surface::Templates`].
        surface: Surface,
        /// The server's own name of the prompt, or the template.
        of: &'a str,
        /// The argument, and what of its value is there already.
        argument: (&'a str, &'a str),
        /// The other arguments, as far as they are there.
        others: &'a Object,
    },
}

/// What goes with a request beside what it asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Around<'a> {
    /// Where progress may go. Ours, and not used by another running request (HOP-02).
    pub progress: Option<i64>,
    /// The W3C trace context, re-parented to our own span.
    pub traceparent: Option<&'a str>,
    /// What a server of the stateless era wanted before it goes on (MRTR-04).
    pub answers: Option<&'a InputResponses>,
    /// From which level on a server of the stateless era may log to this request (LOG-03).
    pub log_level: Option<LogLevel>,
}

impl Say<'_> {
    /// The method, as it stands in the message and in `Mcp-Method` (HM-03).
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Open(_) => "initialize",
            Self::Discover => "server/discover",
            Self::Ping => "ping",
            Self::List { surface, .. } => surface.method(),
            Self::Call { .. } => "tools/call",
            Self::Get { .. } => "prompts/get",
            Self::Read { .. } => "resources/read",
            Self::Complete { .. } => "completion/complete",
            Self::Subscribe { .. } => "resources/subscribe",
            Self::Unsubscribe { .. } => "resources/unsubscribe",
            Self::Listen { .. } => "subscriptions/listen",
            Self::SetLevel(_) => "logging/setLevel",
        }
    }

    /// Whether it is asked for a caller, and not to open or to list for ourselves.
    #[must_use]
    pub const fn is_for_a_caller(&self) -> bool {
        match self {
            Self::Call { .. }
            | Self::Get { .. }
            | Self::Read { .. }
            | Self::Complete { .. }
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. } => true,
            Self::Open(_)
            | Self::Discover
            | Self::Ping
            | Self::List { .. }
            | Self::Listen { .. }
            | Self::SetLevel(_) => false,
        }
    }

    /// What stands in `Mcp-Name`, before it is escaped (HM-03).
    #[must_use]
    pub const fn name(&self) -> Option<&str> {
        match self {
            Self::Call { name, .. } | Self::Get { name, .. } => Some(name),
            Self::Read { uri } => Some(uri),
            Self::Open(_)
            | Self::Discover
            | Self::Ping
            | Self::List { .. }
            | Self::Complete { .. }
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::Listen { .. }
            | Self::SetLevel(_) => None,
        }
    }

    /// The request as one message, without a line end.
    ///
    /// In the stateless era it describes itself (BASE-13, BASE-14); else only what is its own is said.
    #[must_use]
    pub fn request(&self, revision: Revision, speaker: &Speaker, id: i64, around: Around<'_>) -> Bytes {
        message(&Request {
            jsonrpc: "2.0",
            id,
            method: self.method(),
            params: Params {
                say: self,
                revision,
                speaker,
                around,
            },
        })
    }
}

/// `notifications/initialized` (LIFE-L01).
#[must_use]
pub const fn initialized() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

/// `notifications/cancelled` for a request of ours (CAN-01).
#[must_use]
pub fn cancelled(id: i64, reason: &str) -> Bytes {
    message(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": reason },
    }))
}

/// The answer to a request of the server.
#[must_use]
pub fn answer(id: &Id, result: &Value) -> Bytes {
    message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// An error as the answer to a request of the server.
#[must_use]
pub fn refuse(id: &Id, code: i32, text: &str) -> Bytes {
    message(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } }))
}

fn message(value: &impl Serialize) -> Bytes {
    // Serialising our own shapes into memory cannot fail: keys are strings, floats are finite, nothing is fallible.
    Bytes::from(serde_json::to_vec(value).unwrap_or_default())
}

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: i64,
    method: &'static str,
    params: Params<'a>,
}

struct Params<'a> {
    say: &'a Say<'a>,
    revision: Revision,
    speaker: &'a Speaker,
    around: Around<'a>,
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.say {
            Say::Open(revision) => {
                map.serialize_entry("protocolVersion", revision.as_str())?;
                map.serialize_entry("capabilities", &self.speaker.capabilities)?;
                map.serialize_entry("clientInfo", &implementation(&self.speaker.identity))?;
                return map.end();
            }
            Say::Discover | Say::Ping => {}
            Say::List { cursor, .. } => {
                if let Some(cursor) = cursor {
                    map.serialize_entry("cursor", cursor)?;
                }
            }
            Say::Call { name, arguments } | Say::Get { name, arguments } => {
                map.serialize_entry("name", name)?;
                map.serialize_entry("arguments", arguments)?;
            }
            Say::Read { uri } | Say::Subscribe { uri } | Say::Unsubscribe { uri } => {
                map.serialize_entry("uri", uri)?;
            }
            Say::Listen { uris } => {
                map.serialize_entry("notifications", &json!({ "resourceSubscriptions": uris }))?;
            }
            Say::SetLevel(level) => map.serialize_entry("level", level.as_str())?,
            Say::Complete {
                surface,
                of,
                argument: (name, value),
                others,
            } => {
                let reference = match surface {
                    Surface::Prompts => json!({ "type": "ref/prompt", "name": of }),
                    Surface::Tools | Surface::Resources | Surface::Templates => {
                        json!({ "type": "ref/resource", "uri": of })
                    }
                };
                map.serialize_entry("ref", &reference)?;
                map.serialize_entry("argument", &json!({ "name": name, "value": value }))?;
                // C4: revisions before 2025-06-18 do not know the other arguments.
                if !others.is_empty() && self.revision.has_completion_context() {
                    map.serialize_entry("context", &json!({ "arguments": others }))?;
                }
            }
        }
        if let Some(answers) = self.around.answers {
            map.serialize_entry("inputResponses", &answers.responses)?;
            if let Some(state) = &answers.state {
                map.serialize_entry("requestState", state)?;
            }
        }
        let meta = Meta(self);
        if !meta.is_empty() {
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

struct Meta<'a>(&'a Params<'a>);

impl Meta<'_> {
    const fn is_empty(&self) -> bool {
        matches!(self.0.revision.era(), Era::Legacy)
            && self.0.around.progress.is_none()
            && self.0.around.traceparent.is_none()
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Params {
            revision,
            speaker,
            around,
            ..
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        match revision.era() {
            Era::Modern => {
                map.serialize_entry(PROTOCOL_VERSION, revision.as_str())?;
                map.serialize_entry(CLIENT_CAPABILITIES, &speaker.capabilities)?;
                map.serialize_entry(CLIENT_INFO, &implementation(&speaker.identity))?;
                if let Some(level) = around.log_level {
                    map.serialize_entry(LOG_LEVEL, level.as_str())?;
                }
            }
            Era::Legacy => {}
        }
        if let Some(token) = around.progress {
            map.serialize_entry("progressToken", &token)?;
        }
        if let Some(parent) = around.traceparent {
            map.serialize_entry("traceparent", parent)?;
        }
        map.end()
    }
}

fn implementation(identity: &Identity) -> Value {
    json!({ "name": identity.name, "version": identity.version })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker() -> Speaker {
        Speaker {
            identity: Identity {
                name: "gate".to_owned(),
                version: "1".to_owned(),
            },
            capabilities: Object::new(),
        }
    }

    fn said(say: Say<'_>, revision: Revision, around: Around<'_>) -> Value {
        serde_json::from_slice(&say.request(revision, &speaker(), 7, around)).unwrap()
    }

    #[test]
    fn base_13_a_request_of_the_stateless_era_describes_itself_and_no_other_does() {
        let arguments = Object::new();
        let call = Say::Call {
            name: "echo",
            arguments: &arguments,
        };
        for revision in Revision::ALL {
            let said = said(call, revision, Around::default());
            let meta = &said["params"]["_meta"];
            if revision.has_sessions() {
                assert!(meta.is_null(), "{revision}: {said}");
            } else {
                assert_eq!(meta[PROTOCOL_VERSION], "2026-07-28");
                assert_eq!(meta[CLIENT_CAPABILITIES], json!({}));
                assert_eq!(meta[CLIENT_INFO]["name"], "gate");
            }
            assert_eq!(said["params"]["name"], "echo");
            assert_eq!(said["params"]["arguments"], json!({}));
            assert_eq!(said["id"], 7);
        }
    }

    #[test]
    fn life_l01_initialize_says_version_capabilities_and_program() {
        let said = said(
            Say::Open(Revision::V2025_06_18),
            Revision::V2025_06_18,
            Around::default(),
        );
        assert_eq!(said["method"], "initialize");
        assert_eq!(
            said["params"],
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "gate", "version": "1" },
            })
        );
    }

    #[test]
    fn pag_02_an_empty_cursor_is_sent_like_any_other() {
        let list = |cursor| Say::List {
            surface: Surface::Tools,
            cursor,
        };
        let none = said(list(None), Revision::V2025_11_25, Around::default());
        assert_eq!(none["params"], json!({}));
        let empty = said(list(Some("")), Revision::V2025_11_25, Around::default());
        assert_eq!(empty["params"], json!({ "cursor": "" }));
    }

    #[test]
    fn prog_01_and_base_20_token_and_trace_stand_beside_what_the_era_demands() {
        let around = Around {
            progress: Some(3),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            ..Around::default()
        };
        for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
            let said = said(Say::Ping, revision, around);
            let meta = said["params"]["_meta"].as_object().unwrap();
            assert_eq!(meta["progressToken"], 3);
            assert_eq!(meta["traceparent"], around.traceparent.unwrap());
            assert_eq!(meta.len(), if revision.has_sessions() { 2 } else { 5 });
        }
    }

    #[test]
    fn log_02_log_03_a_level_is_said_in_the_way_of_the_era() {
        let around = Around {
            log_level: Some(LogLevel::Warning),
            ..Around::default()
        };
        let stateless = said(Say::Ping, Revision::V2026_07_28, around);
        assert_eq!(stateless["params"]["_meta"][LOG_LEVEL], "warning");
        let legacy = said(Say::Ping, Revision::V2025_11_25, around);
        assert!(legacy["params"]["_meta"].is_null(), "{legacy}");
        let set = said(
            Say::SetLevel(LogLevel::Debug),
            Revision::V2025_11_25,
            Around::default(),
        );
        assert_eq!(set["method"], "logging/setLevel");
        assert_eq!(set["params"], json!({ "level": "debug" }));
    }

    #[test]
    fn base_01_an_answer_to_the_server_repeats_its_id_with_its_type() {
        for (id, written) in [(Id::Integer(4), json!(4)), (Id::Text("4".to_owned()), json!("4"))] {
            let said: Value = serde_json::from_slice(&answer(&id, &json!({}))).unwrap();
            assert_eq!(said["id"], written);
            let said: Value = serde_json::from_slice(&refuse(&id, -32_601, "no")).unwrap();
            assert_eq!(said["id"], written);
            assert_eq!(said["error"], json!({ "code": -32_601, "message": "no" }));
        }
    }
}
