//! A line on stdio, sorted: the same claim test as over HTTP, without headers (LIFE-D01).
//!
//! Both eras may share one pipe. A legacy conversation starts with `initialize` and lasts as long as the pipe.

use model::{Limits, Value};

use crate::ask::{Ask, Opening, json_limits};
use crate::context::{Meta, PROTOCOL_VERSION};
use crate::envelope::{Envelope, Kind};
use crate::failure::Failure;
use crate::http::{batch, is_array, stateless};
use crate::id::Id;
use crate::message::{Inbound, Notice, Request, Response, failure_of};
use crate::retry::Retry;
use crate::revision::{Era, Revision};

/// A line that may go on, or that gets an error.
#[derive(Debug, PartialEq)]
pub enum Line {
    /// One message in the given revision.
    One {
        /// The revision to answer in.
        revision: Revision,
        /// The message.
        inbound: Inbound,
    },
    /// A batch, in a conversation that has them.
    Batch {
        /// The revision to answer in.
        revision: Revision,
        /// The messages, at least one.
        messages: Vec<Inbound>,
    },
    /// The first message of a legacy conversation.
    Opening {
        /// The id of the request.
        id: Id,
        /// What it asks for.
        opening: Opening,
    },
}

/// Sorts one line. `session` is the revision that `initialize` agreed on, if it came.
///
/// `line` is without its end and at most `limits.body_bytes_max` long. What cannot be read gives [`Line::One`] with
/// [`Inbound::Refused`]; in a revision whose errors need an id it may have to stay unanswered.
#[must_use]
pub fn sort(line: &[u8], session: Option<Revision>, limits: &Limits) -> Line {
    let fallback = session.unwrap_or(Revision::NEWEST_STATELESS);
    let refused = |revision: Revision, id: Option<Id>, failure: Failure| Line::One {
        revision,
        inbound: Inbound::Refused { id, failure },
    };
    if is_array(line) {
        return match session {
            Some(revision) if revision.has_batches() => match batch(line, revision, limits) {
                Ok(messages) => Line::Batch { revision, messages },
                Err(reject) => refused(revision, reject.id, reject.failure),
            },
            _ => refused(
                fallback,
                None,
                Failure::InvalidRequest("one message per line; found an array".to_owned()),
            ),
        };
    }
    let envelope = match Envelope::read(line, json_limits(limits)) {
        Ok(envelope) => envelope,
        Err(fault) => return refused(fallback, fault.id().cloned(), failure_of(&fault)),
    };
    let id = envelope.request_id().cloned();
    let meta = match Meta::read(&envelope.params, json_limits(limits)) {
        Ok(meta) => meta,
        Err(failure) => return refused(fallback, id, failure),
    };
    let method = match &envelope.kind {
        Kind::Request { method, .. } => method.clone(),
        Kind::Notification { method } => {
            let inbound = Inbound::Notice(Notice::read(method, &envelope.params));
            return Line::One {
                revision: fallback,
                inbound,
            };
        }
        Kind::Response { id, outcome } => {
            let response = Response {
                id: id.clone(),
                outcome: outcome.clone(),
            };
            return Line::One {
                revision: fallback,
                inbound: Inbound::Response(Box::new(response)),
            };
        }
    };
    let Some(id) = id else {
        return refused(fallback, None, Failure::Internal("the request could not be read"));
    };
    if meta.claim().is_some() || method == "server/discover" {
        return modern(id, &method, &meta, &envelope, limits);
    }
    match session {
        Some(revision) if method == "initialize" => refused(
            revision,
            Some(id),
            Failure::InvalidRequest("this conversation is already open".to_owned()),
        ),
        Some(revision) => Line::One {
            revision,
            inbound: Inbound::legacy(envelope, revision, limits),
        },
        None if method == "initialize" => match Ask::read(&method, &envelope.params, Era::Legacy, limits) {
            Ok(Ask::Open(opening)) => Line::Opening { id, opening },
            Ok(_) => refused(
                fallback,
                Some(id),
                Failure::Internal("the request could not be read"),
            ),
            Err(failure) => refused(Revision::NEWEST_WITH_SESSIONS, Some(id), failure),
        },
        // LIFE-L02: nothing but a ping may come before.
        None if method == "ping" => {
            let revision = Revision::NEWEST_WITH_SESSIONS;
            Line::One {
                revision,
                inbound: Inbound::legacy(envelope, revision, limits),
            }
        }
        None => {
            let text = format!(
                "send `initialize` first, or put `{PROTOCOL_VERSION}` and the client's capabilities into `_meta`"
            );
            refused(
                Revision::NEWEST_WITH_SESSIONS,
                Some(id),
                Failure::InvalidRequest(text),
            )
        }
    }
}

fn modern(id: Id, method: &str, meta: &Meta, envelope: &Envelope<'_>, limits: &Limits) -> Line {
    let revision = Revision::NEWEST_STATELESS;
    let read = || {
        let claim = match meta.claim() {
            Some(Value::String(claim)) => claim,
            Some(_) => return Err(Failure::MetaInvalid(format!("`{PROTOCOL_VERSION}` is a string"))),
            None => {
                return Err(Failure::MetaInvalid(format!(
                    "`_meta` has no `{PROTOCOL_VERSION}`"
                )));
            }
        };
        let revision = stateless(claim)?;
        let mut context = meta.modern()?;
        let of_method = |failure: Failure| failure.of(method);
        let retry = Retry::read(method, &envelope.params, limits).map_err(of_method)?;
        context.retry = retry.map(Box::new);
        let ask = Ask::read(method, &envelope.params, revision.era(), limits).map_err(of_method)?;
        Ok((revision, ask, context))
    };
    match read() {
        Ok((revision, ask, context)) => Line::One {
            revision,
            inbound: Inbound::Request(Box::new(Request { id, ask, context })),
        },
        Err(failure) => Line::One {
            revision,
            inbound: Inbound::Refused {
                id: Some(id),
                failure,
            },
        },
    }
}
