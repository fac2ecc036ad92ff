//! What a request asks for, in words without an era.
//!
//! A known method whose parameters do not parse is refused here; it never travels on as "something custom".

use model::{Arguments, JsonLimits, Limits, Object, Value};

use crate::context::{Identity, identity_of, params_are_object};
use crate::envelope::{Params, object_of, text_of};
use crate::failure::{Failure, quoted};
use crate::id::Id;
use crate::revision::{Era, Revision};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// `initialize`: a conversation of the legacy era.
    Open(Opening),
    /// `server/discover`: what is served, without opening anything.
    Discover,
    /// `ping`.
    Ping,
    /// `tools/list`.
    ListTools {
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
    /// Whether a method exists in an era, among those we serve.
    pub(crate) fn is_served(method: &str, era: Era) -> bool {
        matches!(
            (method, era),
            ("tools/list" | "tools/call", _)
                | ("initialize" | "ping", Era::Legacy)
                | ("server/discover", Era::Modern)
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
            "tools/list" => {
                let cursor = params.cursor.map(|raw| text_of(raw, "cursor")).transpose();
                cursor
                    .map(|cursor| Self::ListTools { cursor })
                    .map_err(Failure::InvalidParams)
            }
            "tools/call" => Self::read_call(params, limits),
            _ => Err(Failure::MethodNotFound(quoted(method))),
        }
    }

    fn read_call(params: &Params<'_>, limits: &Limits) -> Result<Self, Failure> {
        if params.request_state.is_some() {
            // MRTR-06: state that was never handed out is hostile, whatever it says.
            return Err(Failure::InvalidParams(
                "`requestState` is not one that was given out here".to_owned(),
            ));
        }
        let Some(name) = params.name else {
            return Err(Failure::InvalidParams("`name` is missing".to_owned()));
        };
        let name = text_of(name, "name").map_err(Failure::InvalidParams)?;
        let arguments = match params.arguments {
            None => Arguments::none(),
            Some(raw) => Arguments::parse(raw.get().as_bytes(), argument_limits(limits))
                .map_err(|fault| Failure::InvalidParams(format!("`arguments`: {fault}")))?,
        };
        Ok(Self::CallTool { name, arguments })
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
