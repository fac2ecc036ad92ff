//! A POST, sorted: which era it belongs to, whether its headers say what its body says, and what it asks for.
//!
//! The order of the checks is part of the protocol, since each has an error of its own. Sockets, `Origin`, `Host`,
//! authentication and sessions are not here: the server has done the first ones before, and looks the session up
//! between [`sort`] and [`Pending::bind`].
//!
//! Source: rules HL-*, HM-*, LIFE-D*; the order is that of `docs/protocol.md`, section "Sorting a POST".

use std::fmt;

use model::{Limits, Value};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::ask::{Ask, Opening, json_limits};
use crate::client::mirror;
use crate::context::{Meta, PROTOCOL_VERSION};
use crate::envelope::{Envelope, Kind};
use crate::failure::{Failure, quoted};
use crate::header::{self, Field, Fields, decode};
use crate::id::Id;
use crate::message::{Inbound, Notice, Request, failure_of};
use crate::retry::Retry;
use crate::revision::{Era, Revision, claims_modern};

/// A POST that may go on.
#[derive(Debug)]
pub enum Sorted<'a> {
    /// A message that stands alone.
    Stateless {
        /// The revision that it is in.
        revision: Revision,
        /// The message.
        inbound: Inbound,
    },
    /// The first message of a conversation: no session yet.
    Opening {
        /// The id of the `initialize` request.
        id: Id,
        /// What it asks for.
        opening: Opening,
    },
    /// Something for a session, which only the holder of sessions can read on.
    InSession(Pending<'a>),
}

/// A POST that is refused before anything is served.
#[derive(Debug, Clone, PartialEq)]
pub struct Reject {
    /// The HTTP status.
    pub status: u16,
    /// The id, where it could be read.
    pub id: Option<Id>,
    /// The error.
    pub failure: Failure,
}

/// A POST that waits for its session.
#[derive(Debug)]
pub struct Pending<'a> {
    version: Field<'a>,
    body: Body<'a>,
}

#[derive(Debug)]
enum Body<'a> {
    One(Box<Envelope<'a>>),
    Array(&'a [u8]),
}

/// What a session has to answer.
#[derive(Debug, PartialEq)]
pub enum Post {
    /// One message.
    One(Inbound),
    /// A batch, at least one message long; 2025-03-26 only.
    Batch(Vec<Inbound>),
}

impl Reject {
    fn new(status: u16, id: Option<Id>, failure: Failure) -> Self {
        Self { status, id, failure }
    }

    fn bad(id: Option<Id>, failure: Failure) -> Self {
        Self::new(400, id, failure)
    }
}

/// Sorts the body of a POST by era and holds its headers against it.
///
/// `body` is at most `limits.body_bytes_max` long.
///
/// # Errors
/// [`Reject`] with the status and error of the revision that the client seems to speak.
pub fn sort<'a>(fields: &'a impl Fields, body: &'a [u8], limits: &Limits) -> Result<Sorted<'a>, Reject> {
    let version = fields.field(header::PROTOCOL_VERSION);
    let modern_header = is_stateless(version);
    if is_array(body) {
        // Only one revision has arrays, and it has sessions; the session decides. A modern header already has.
        if modern_header {
            return Err(Reject::bad(
                None,
                Failure::InvalidRequest("one message per request; found an array".into()),
            ));
        }
        return Ok(Sorted::InSession(Pending {
            version,
            body: Body::Array(body),
        }));
    }
    let envelope = Envelope::read(body, json_limits(limits))
        .map_err(|fault| Reject::bad(fault.id().cloned(), failure_of(&fault)))?;
    match &envelope.kind {
        Kind::Response { .. } if modern_header => {
            // HM-02: a client of this era sends no responses.
            Err(Reject::bad(
                None,
                Failure::InvalidRequest("a response answers nothing here".into()),
            ))
        }
        Kind::Response { .. } => Ok(Sorted::InSession(Pending {
            version,
            body: Body::One(Box::new(envelope)),
        })),
        Kind::Notification { method } => {
            // HM-07: header rules for notifications are undefined, so none is applied.
            let claims = modern_header
                || Meta::read(&envelope.params, json_limits(limits)).is_ok_and(|m| m.claim().is_some());
            if claims {
                let inbound = Inbound::Notice(Notice::read(method, &envelope.params));
                return Ok(Sorted::Stateless {
                    revision: Revision::NEWEST_STATELESS,
                    inbound,
                });
            }
            Ok(Sorted::InSession(Pending {
                version,
                body: Body::One(Box::new(envelope)),
            }))
        }
        Kind::Request { .. } => sort_request(fields, version, modern_header, envelope, limits),
    }
}

fn sort_request<'a>(
    fields: &impl Fields,
    version: Field<'a>,
    modern_header: bool,
    envelope: Envelope<'a>,
    limits: &Limits,
) -> Result<Sorted<'a>, Reject> {
    let id = envelope.request_id().cloned();
    let meta = Meta::read(&envelope.params, json_limits(limits))
        .map_err(|failure| Reject::bad(id.clone(), failure))?;
    let Kind::Request { id, method } = envelope.kind else {
        return Ok(Sorted::InSession(Pending {
            version,
            body: Body::One(Box::new(envelope)),
        }));
    };
    if meta.claim().is_none() && !modern_header && method != "server/discover" {
        if method == "initialize" {
            return match Ask::read(&method, &envelope.params, Era::Legacy, limits) {
                Ok(Ask::Open(opening)) => Ok(Sorted::Opening { id, opening }),
                // The answer to bad parameters is in-band, as for every other method (G7).
                Err(failure) => Err(Reject::new(
                    failure.status(Revision::NEWEST_WITH_SESSIONS),
                    Some(id),
                    failure,
                )),
                Ok(_) => Err(Reject::bad(
                    Some(id),
                    Failure::Internal("the request could not be read"),
                )),
            };
        }
        let envelope = Envelope {
            kind: Kind::Request { id, method },
            params: envelope.params,
        };
        return Ok(Sorted::InSession(Pending {
            version,
            body: Body::One(Box::new(envelope)),
        }));
    }
    let refuse = |failure: Failure| {
        Reject::new(
            failure.status(Revision::NEWEST_STATELESS),
            Some(id.clone()),
            failure,
        )
    };
    let revision = agreed_version(&meta, version).map_err(refuse)?;
    let mut context = meta.modern().map_err(|failure| match failure {
        // Whatever is wrong in required metadata rides on 400 (BASE-15).
        Failure::InvalidParams(text) => refuse(Failure::MetaInvalid(text)),
        other => refuse(other),
    })?;
    agrees(fields, header::METHOD, "Mcp-Method", &method).map_err(refuse)?;
    if !Ask::is_served(&method, revision.era()) {
        return Err(refuse(Failure::MethodNotFound(quoted(&method))));
    }
    let of_method = |failure: Failure| refuse(failure.of(&method));
    // HM-03.
    let named = match method.as_ref() {
        "tools/call" | "prompts/get" => Some(envelope.params.name),
        "resources/read" => Some(envelope.params.uri),
        _ => None,
    };
    if let Some(named) = named {
        let name = named
            .map(RawValue::get)
            .and_then(|raw| serde_json::from_str::<String>(raw).ok());
        if let Some(name) = name {
            agrees(fields, header::NAME, "Mcp-Name", &name).map_err(of_method)?;
        }
    }
    let ask = Ask::read(&method, &envelope.params, revision.era(), limits).map_err(of_method)?;
    let retry = Retry::read(&method, &envelope.params, limits).map_err(of_method)?;
    context.retry = retry.map(Box::new);
    Ok(Sorted::Stateless {
        revision,
        inbound: Inbound::Request(Box::new(Request { id, ask, context })),
    })
}

/// The version that header and body agree on and that we serve without a session (HM-05, LIFE-M02, G11).
fn agreed_version(meta: &Meta, version: Field<'_>) -> Result<Revision, Failure> {
    let claim = match meta.claim() {
        Some(Value::String(claim)) => claim.as_str(),
        Some(_) => return Err(Failure::MetaInvalid(format!("`{PROTOCOL_VERSION}` is a string"))),
        None => {
            return Err(Failure::MetaInvalid(format!(
                "`_meta` has no `{PROTOCOL_VERSION}`"
            )));
        }
    };
    match version {
        Field::Absent => {
            return Err(Failure::HeaderMismatch(
                "the header MCP-Protocol-Version is missing".to_owned(),
            ));
        }
        Field::Many => {
            return Err(Failure::HeaderMismatch(
                "the header MCP-Protocol-Version stands twice".to_owned(),
            ));
        }
        Field::One(value) => {
            if std::str::from_utf8(value).map(str::trim) != Ok(claim) {
                let text = "the header MCP-Protocol-Version is not the version in the body".to_owned();
                return Err(Failure::HeaderMismatch(text));
            }
        }
    }
    stateless(claim)
}

/// The stateless revision with this name.
pub(crate) fn stateless(claim: &str) -> Result<Revision, Failure> {
    match Revision::parse(claim) {
        Some(revision) if !revision.has_sessions() => Ok(revision),
        // A revision with sessions is reached through `initialize`; offering it again here would send the client
        // round in a circle.
        Some(_) => Err(Failure::UnsupportedVersion {
            requested: quoted(claim),
            supported: vec![Revision::NEWEST_STATELESS],
        }),
        None => Err(Failure::UnsupportedVersion {
            requested: quoted(claim),
            supported: offered(),
        }),
    }
}

/// Every revision that we offer, newest first: the same list in `server/discover` and in errors (LIFE-M04).
pub(crate) fn offered() -> Vec<Revision> {
    Revision::ALL.into_iter().rev().collect()
}

/// Holds the headers that repeat arguments against those (HM-17). `schema` is the one that the caller was shown.
///
/// # Errors
/// [`Failure::HeaderMismatch`].
pub fn agrees_on_arguments(
    fields: &impl Fields,
    schema: &Value,
    arguments: &model::Object,
) -> Result<(), Failure> {
    mirror::agrees(schema, arguments, fields).map_err(Failure::HeaderMismatch)
}

/// A header that must equal what the body says, case and all (HM-04).
fn agrees(fields: &impl Fields, name: &str, shown: &str, expected: &str) -> Result<(), Failure> {
    let fault = match fields.field(name) {
        Field::Absent => format!("the header {shown} is missing"),
        Field::Many => format!("the header {shown} stands twice"),
        Field::One(value) => match decode(value) {
            Some(value) if value == expected => return Ok(()),
            Some(_) => format!("the header {shown} is not what the body says"),
            None => format!("the header {shown} is not readable"),
        },
    };
    Err(Failure::HeaderMismatch(fault))
}

impl Pending<'_> {
    /// Whether there is a request in it, as far as one can see without a session.
    #[must_use]
    pub fn id(&self) -> Option<&Id> {
        match &self.body {
            Body::One(envelope) => envelope.request_id(),
            Body::Array(_) => None,
        }
    }

    /// Reads on in the revision of the session, which is the truth about it (HL-16, HL-17).
    ///
    /// # Errors
    /// [`Reject`]: a version header that says something else; an array where the revision has none.
    pub fn bind(self, revision: Revision, limits: &Limits) -> Result<Post, Reject> {
        let id = self.id().cloned();
        match self.version {
            Field::Absent => {}
            Field::Many => {
                let text = "the header MCP-Protocol-Version stands twice".to_owned();
                return Err(Reject::bad(id, Failure::InvalidRequest(text)));
            }
            Field::One(value) => {
                let value = String::from_utf8_lossy(value);
                if value.trim() != revision.as_str() {
                    let text = format!(
                        "the header MCP-Protocol-Version is `{}`; this session speaks {revision}",
                        quoted(value.trim())
                    );
                    return Err(Reject::bad(id, Failure::InvalidRequest(text)));
                }
            }
        }
        match self.body {
            Body::One(envelope) => Ok(Post::One(Inbound::legacy(*envelope, revision, limits))),
            Body::Array(_) if !revision.has_batches() => {
                let text = format!("one message per request in {revision}; found an array");
                Err(Reject::bad(None, Failure::InvalidRequest(text)))
            }
            Body::Array(body) => batch(body, revision, limits).map(Post::Batch),
        }
    }
}

/// Reads a batch (BASE-07 to BASE-09).
pub(crate) fn batch(body: &[u8], revision: Revision, limits: &Limits) -> Result<Vec<Inbound>, Reject> {
    let bad = |text: String| Reject::bad(None, Failure::InvalidRequest(text));
    // The whole array first, so that its end and the text behind it are checked before any element is served.
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let items = Items {
        max: limits.batch_messages_max,
    }
    .deserialize(&mut deserializer)
    .and_then(|items| deserializer.end().map(|()| items))
    .map_err(|error| Reject::bad(None, Failure::Syntax(error.to_string())))?;
    let Some(items) = items else {
        return Err(bad(format!(
            "a batch holds at most {} messages",
            limits.batch_messages_max
        )));
    };
    if items.is_empty() {
        return Err(bad("a batch holds at least one message".to_owned()));
    }
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        messages.push(match Envelope::read(item.get().as_bytes(), json_limits(limits)) {
            Err(fault) => Inbound::unreadable(&fault),
            Ok(Envelope {
                kind: Kind::Request { method, .. },
                ..
            }) if method == "initialize" => {
                // BASE-08, and D23: the whole batch is refused.
                return Err(bad("`initialize` cannot be part of a batch".to_owned()));
            }
            Ok(envelope) => Inbound::legacy(envelope, revision, limits),
        });
    }
    Ok(messages)
}

/// The elements of an array as raw spans; `None` where there are more than `max`.
struct Items {
    max: usize,
}

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = elements.next_element::<&RawValue>()? {
            if items.len() == self.max {
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            items.push(item);
        }
        Ok(Some(items))
    }
}

/// Whether a version header names a revision without sessions, or claims to be newer than all that we know.
#[must_use]
pub fn is_stateless(version: Field<'_>) -> bool {
    matches!(version, Field::One(value) if std::str::from_utf8(value).is_ok_and(|value| claims_modern(value.trim())))
}

/// Whether the first byte that counts opens an array.
pub(crate) fn is_array(body: &[u8]) -> bool {
    body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
