//! One message that arrived, in words: a request, a notice, an answer to us, or something that gets an error back.

use model::{Limits, Value};

use crate::ask::{Ask, Cancel, json_limits};
use crate::context::{Context, Meta};
use crate::envelope::{Envelope, EnvelopeFault, Kind, Params};
use crate::failure::Failure;
use crate::id::Id;
use crate::revision::Revision;

/// A message that arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum Inbound {
    /// It waits for an answer.
    Request(Box<Request>),
    /// It does not (BASE-04).
    Notice(Notice),
    /// An answer to a request of ours. One that answers none is ignored.
    Response(Box<Response>),
    /// It gets this error back.
    Refused {
        /// The id, where it could be read.
        id: Option<Id>,
        /// The error.
        failure: Failure,
    },
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its id, to be echoed with its type.
    pub id: Id,
    /// What it asks for.
    pub ask: Ask,
    /// What it says beside that.
    pub context: Context,
}

/// An answer to a request of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The id of the request, with its JSON type.
    pub id: Option<Id>,
    /// The result, or the error object. Untrusted.
    pub outcome: Result<Value, Value>,
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// `notifications/initialized`.
    Initialized,
    /// `notifications/cancelled`.
    Cancelled(Cancel),
    /// Any other: accepted and ignored. A request method without an id is one of these, so it is never carried out.
    Other,
}

impl Notice {
    pub(crate) fn read(method: &str, params: &Params<'_>) -> Self {
        match method {
            "notifications/initialized" => Self::Initialized,
            "notifications/cancelled" => Cancel::read(params).map_or(Self::Other, Self::Cancelled),
            _ => Self::Other,
        }
    }
}

impl Inbound {
    /// Reads a message of a conversation in the legacy era.
    pub(crate) fn legacy(envelope: Envelope<'_>, revision: Revision, limits: &Limits) -> Self {
        let Envelope { kind, params } = envelope;
        match kind {
            Kind::Response { id, outcome } => Self::Response(Box::new(Response { id, outcome })),
            Kind::Notification { method } => Self::Notice(Notice::read(&method, &params)),
            Kind::Request { id, method } => {
                let context = || Meta::read(&params, json_limits(limits))?.legacy();
                Self::request(id, &method, &params, revision, limits, context)
            }
        }
    }

    pub(crate) fn request(
        id: Id,
        method: &str,
        params: &Params<'_>,
        revision: Revision,
        limits: &Limits,
        context: impl FnOnce() -> Result<Context, Failure>,
    ) -> Self {
        let read = Ask::read(method, params, revision.era(), limits)
            .and_then(|ask| context().map(|context| (ask, context)));
        match read {
            Ok((ask, context)) => Self::Request(Box::new(Request { id, ask, context })),
            Err(failure) => Self::Refused {
                id: Some(id),
                failure: failure.of(method),
            },
        }
    }

    /// What an unreadable message gets back.
    pub(crate) fn unreadable(fault: &EnvelopeFault) -> Self {
        Self::Refused {
            id: fault.id().cloned(),
            failure: failure_of(fault),
        }
    }
}

/// The error for bytes that are no message.
pub(crate) fn failure_of(fault: &EnvelopeFault) -> Failure {
    match fault {
        EnvelopeFault::Syntax(fault) => Failure::Syntax(fault.to_string()),
        EnvelopeFault::Unsafe { fault, .. } => Failure::InvalidRequest(fault.to_string()),
        EnvelopeFault::Shape { text, .. } => Failure::InvalidRequest(text.clone()),
    }
}
