//! What a request asks for, in words without an era.
//!
//! A known method whose parameters do not parse is refused here; it never travels on as "something custom".

use model::{Arguments, JsonLimits, Limits, Object, Value};
use serde_json::value::RawValue;

use crate::context::{Identity, identity_of, params_are_object};
use crate::envelope::{Params, object_of, text_of};
use crate::failure::{Failure, quoted};
use crate::id::Id;
use crate::log::LogLevel;
use crate::revision::{Era, Revision};
use crate::subscription::Subscription;
use crate::surface::Surface;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// `initialize`: a conversation of the legacy era.
    Open(Opening),
    /// `server/discover`: what is served, without opening anything.
    Discover,
    /// `ping`.
    Ping,
    /// One page of a list.
    List {
        /// Of what.
        surface: Surface,
        /// Where the last page ended. An empty text is a cursor like any other (PAG-02).
        cursor: Option<String>,
    },
    /// `tools/call`.
    CallTool {
        /// The public name, as asked.
        name: String,
        /// The arguments; none is the empty object.
        arguments: Arguments,
    },
    /// `prompts/get`.
    GetPrompt {
        /// The public name, as asked.
        name: String,
        /// The arguments; all of them are texts. None is the empty object.
        arguments: Arguments,
    },
    /// `resources/read`.
    ReadResource {
        /// As asked.
        uri: String,
    },
    /// `completion/complete`.
    Complete(Completion),
    /// `resources/subscribe`: to be told when a resource changes.
    Subscribe {
        /// As asked.
        uri: String,
    },
    /// `resources/unsubscribe`: to be told of it no more.
    Unsubscribe {
        /// As asked.
        uri: String,
    },
    /// `logging/setLevel`: from which level on this session wants to have logged to it.
    SetLevel(LogLevel),
    /// `subscriptions/listen`: to be told what changes, until somebody ends it.
    Listen(Subscription),
}

/// What is to be completed.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Of what.
    pub of: Reference,
    /// The argument.
    pub argument: String,
    /// What of its value is there already.
    pub value: String,
    /// The other arguments, as far as they are there; all of them are texts.
    pub others: Arguments,
}

/// What has arguments that can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by its public name.
    Prompt(String),
    /// A template of resources, as it is listed.
    Template(String),
}

/// The first message of a conversation in the legacy era (LIFE-L01).
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// The revision that both sides will speak: the requested one, else the newest we offer (LIFE-L04).
    pub revision: Revision,
    /// The version that was asked for, as written.
    pub requested: String,
    /// What the client can do.
    pub capabilities: Object,
    /// The client program.
    pub client: Option<Identity>,
}

/// `notifications/cancelled` (CAN-01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// The request that is no longer wanted.
    pub id: Id,
}

impl Ask {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Open(_) => "initialize",
            Self::Discover => "server/discover",
            Self::Ping => "ping",
            Self::List { surface, .. } => surface.method(),
            Self::CallTool { .. } => "tools/call",
            Self::GetPrompt { .. } => "prompts/get",
            Self::ReadResource { .. } => "resources/read",
            Self::Complete(_) => "completion/complete",
            Self::Subscribe { .. } => "resources/subscribe",
            Self::Unsubscribe { .. } => "resources/unsubscribe",
            Self::SetLevel(_) => "logging/setLevel",
            Self::Listen(_) => "subscriptions/listen",
        }
    }

    /// Whether a method exists in an era, among those we serve.
    pub(crate) fn is_served(method: &str, era: Era) -> bool {
        matches!(
            (method, era),
            (
                "tools/list"
                    | "tools/call"
                    | "prompts/list"
                    | "prompts/get"
                    | "resources/list"
                    | "resources/templates/list"
                    | "resources/read"
                    | "completion/complete",
                _
            ) | (
                "initialize" | "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe",
                Era::Legacy
            ) | ("server/discover" | "subscriptions/listen", Era::Modern)
        )
    }

    pub(crate) fn read(
        method: &str,
        params: &Params<'_>,
        era: Era,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        // LIFE-D02: what the other era has is unknown in this one.
        if !Self::is_served(method, era) {
            return Err(Failure::MethodNotFound(quoted(method)));
        }
        params_are_object(params)?;
        match method {
            "initialize" => Opening::read(params, limits).map(Self::Open),
            "server/discover" => Ok(Self::Discover),
            "ping" => Ok(Self::Ping),
            "tools/call" => {
                no_state(params, era)?;
                let name = text(params.name, "name")?;
                let arguments = arguments(params.arguments, "arguments", limits)?;
                Ok(Self::CallTool { name, arguments })
            }
            "prompts/get" => {
                no_state(params, era)?;
                let name = text(params.name, "name")?;
                let arguments = texts(params.arguments, "arguments", limits)?;
                Ok(Self::GetPrompt { name, arguments })
            }
            "resources/read" => {
                no_state(params, era)?;
                let uri = text(params.uri, "uri")?;
                Ok(Self::ReadResource { uri })
            }
            "resources/subscribe" => {
                let uri = text(params.uri, "uri")?;
                Ok(Self::Subscribe { uri })
            }
            "resources/unsubscribe" => {
                let uri = text(params.uri, "uri")?;
                Ok(Self::Unsubscribe { uri })
            }
            "logging/setLevel" => {
                let level = text(params.level, "level")?;
                let known = LogLevel::parse(&level).map(Self::SetLevel);
                known
                    .ok_or_else(|| Failure::InvalidParams(format!("`level` is one of {}", LogLevel::names())))
            }
            "subscriptions/listen" => Subscription::read(params, limits).map(Self::Listen),
            "completion/complete" => Completion::read(params, limits).map(Self::Complete),
            _ => match Surface::of(method) {
                Some(surface) => {
                    let cursor = params.cursor.map(|raw| text_of(raw, "cursor")).transpose();
                    let cursor = cursor.map_err(Failure::InvalidParams)?;
                    Ok(Self::List { surface, cursor })
                }
                None => Err(Failure::MethodNotFound(quoted(method))),
            },
        }
    }
}

/// MRTR-06: no state is handed out in the legacy era, so that any is hostile, whatever it says.
fn no_state(params: &Params<'_>, era: Era) -> Result<(), Failure> {
    match (params.request_state, era) {
        (None, _) | (Some(_), Era::Modern) => Ok(()),
        (Some(_), Era::Legacy) => Err(Failure::InvalidParams(
            "`requestState` is not one that was given out here".to_owned(),
        )),
    }
}

fn text(raw: Option<&RawValue>, name: &str) -> Result<String, Failure> {
    let raw = raw.ok_or_else(|| Failure::InvalidParams(format!("`{name}` is missing")))?;
    text_of(raw, name).map_err(Failure::InvalidParams)
}

fn arguments(raw: Option<&RawValue>, name: &str, limits: &Limits) -> Result<Arguments, Failure> {
    match raw {
        None => Ok(Arguments::none()),
        Some(raw) => Arguments::parse(raw.get().as_bytes(), argument_limits(limits))
            .map_err(|fault| Failure::InvalidParams(format!("`{name}`: {fault}"))),
    }
}

/// Arguments that are all texts, as those of prompts and templates are.
fn texts(raw: Option<&RawValue>, name: &str, limits: &Limits) -> Result<Arguments, Failure> {
    let arguments = arguments(raw, name, limits)?;
    match arguments.object().iter().find(|(_, value)| !value.is_string()) {
        None => Ok(arguments),
        Some((key, _)) => Err(Failure::InvalidParams(format!(
            "`{name}.{}` is a text",
            quoted(key)
        ))),
    }
}

impl Completion {
    fn read(params: &Params<'_>, limits: &Limits) -> Result<Self, Failure> {
        let json = json_limits(limits);
        let object = |raw: Option<&RawValue>, name: &str| {
            let raw = raw.ok_or_else(|| Failure::InvalidParams(format!("`{name}` is missing")))?;
            object_of(raw, name, json).map_err(Failure::InvalidParams)
        };
        let member = |object: &Object, of: &str, key: &str| {
            let text = object.get(key).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| Failure::InvalidParams(format!("`{of}.{key}` is a text")))
        };
        let reference = object(params.reference, "ref")?;
        let of = match member(&reference, "ref", "type")?.as_str() {
            "ref/prompt" => Reference::Prompt(member(&reference, "ref", "name")?),
            "ref/resource" => Reference::Template(member(&reference, "ref", "uri")?),
            other => {
                return Err(Failure::InvalidParams(format!(
                    "`ref.type` is `ref/prompt` or `ref/resource`; found `{}`",
                    quoted(other)
                )));
            }
        };
        let argument = object(params.argument, "argument")?;
        let others = match params.context {
            None => None,
            Some(raw) => {
                let context = object_of(raw, "context", json).map_err(Failure::InvalidParams)?;
                context.get("arguments").cloned()
            }
        };
        let others = match others {
            None => Arguments::none(),
            Some(others) => Arguments::of_texts(&others).ok_or_else(|| {
                Failure::InvalidParams("`context.arguments` is an object of texts".to_owned())
            })?,
        };
        Ok(Self {
            of,
            argument: member(&argument, "argument", "name")?,
            value: member(&argument, "argument", "value")?,
            others,
        })
    }
}

impl Opening {
    fn read(params: &Params<'_>, limits: &Limits) -> Result<Self, Failure> {
        let missing = |what: &str| Failure::InvalidParams(format!("`{what}` is missing"));
        let json = json_limits(limits);
        let requested = params
            .protocol_version
            .ok_or_else(|| missing("protocolVersion"))?;
        let requested = text_of(requested, "protocolVersion").map_err(Failure::InvalidParams)?;
        let capabilities = params.capabilities.ok_or_else(|| missing("capabilities"))?;
        let capabilities = object_of(capabilities, "capabilities", json).map_err(Failure::InvalidParams)?;
        let client = params.client_info.ok_or_else(|| missing("clientInfo"))?;
        let client = object_of(client, "clientInfo", json).map_err(Failure::InvalidParams)?;
        let client = identity_of(&Value::Object(client))
            .map_err(|text| Failure::InvalidParams(format!("`clientInfo`: {text}")))?;
        // LIFE-D03: a stateless revision cannot be reached through `initialize`.
        let revision = Revision::parse(&requested)
            .filter(|revision| revision.has_sessions())
            .unwrap_or(Revision::NEWEST_WITH_SESSIONS);
        Ok(Self {
            revision,
            requested: quoted(&requested),
            capabilities,
            client: Some(client),
        })
    }
}

impl Cancel {
    /// Reads the parameters; anything odd is ignored, as the receiver of a notification does (CAN-01).
    pub(crate) fn read(params: &Params<'_>) -> Option<Self> {
        Id::read(params.request_id?.get()).ok().map(|id| Self { id })
    }
}

/// How a whole message is read.
pub(crate) const fn json_limits(limits: &Limits) -> JsonLimits {
    JsonLimits {
        bytes_max: limits.body_bytes_max,
        depth_max: limits.json_depth_max,
    }
}

const fn argument_limits(limits: &Limits) -> JsonLimits {
    JsonLimits {
        bytes_max: limits.arguments_bytes_max,
        depth_max: limits.json_depth_max,
    }
}
