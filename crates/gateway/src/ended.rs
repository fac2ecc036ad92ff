//! How a call ended, as the ledger writes it down: its state, what may leave, and the text that the digest of it covers.
//!
//! Nothing is checked here and nothing is written.

use std::borrow::Cow;

use audit::OutcomeState;
use model::{Content, Refusal, RefusalCode, Reply, Value};
use upstream::{Answer, Lost, SendFault, Trip};

use crate::release::{Delivery, Released};

/// How a call ended, before it is written down.
pub(crate) struct Ended {
    pub(crate) state: OutcomeState,
    pub(crate) status: Option<u16>,
    pub(crate) result: Result<Released, Refusal>,
}

impl Ended {
    pub(crate) fn given_up(trip: &Trip) -> Self {
        // What left has left: a closed connection proves nothing about the work on the far side.
        let state = if trip.requests() > 0 {
            OutcomeState::Unknown
        } else {
            OutcomeState::Failed
        };
        let refusal = Refusal::new(RefusalCode::Cancelled, "the caller cancelled");
        Self {
            state,
            status: None,
            result: Err(refusal),
        }
    }

    pub(crate) fn failed(fault: &SendFault) -> Self {
        let state = if fault.sent() {
            OutcomeState::Unknown
        } else {
            OutcomeState::Failed
        };
        Self {
            state,
            status: None,
            result: Err(fault.refusal()),
        }
    }

    /// Work that the service says has failed.
    pub(crate) fn failed_work(status: u16, result: Result<Released, Refusal>) -> Self {
        Self {
            state: OutcomeState::Failed,
            status: Some(status),
            result,
        }
    }

    /// Work that was started, and nobody knows what became of it.
    pub(crate) fn lost(answer: Option<&Answer>, why: &Lost) -> Self {
        let code = match why {
            Lost::Late(_) => RefusalCode::UpstreamTimeout,
            Lost::Nameless | Lost::Name(_) | Lost::Refused(_) | Lost::Unsaid => RefusalCode::WorkUnknown,
        };
        Self {
            state: OutcomeState::Unknown,
            status: answer.map(|answer| answer.status),
            result: Err(Refusal::new(code, why.to_string())),
        }
    }

    /// What an MCP server said, checked; with whether its tool says that it failed.
    pub(crate) fn said((is_failure, result): (bool, Result<Released, Refusal>)) -> Self {
        let state = if is_failure {
            OutcomeState::Failed
        } else {
            OutcomeState::Done
        };
        Self {
            state,
            status: None,
            result,
        }
    }

    pub(crate) fn answered(answer: &Answer, result: Result<Released, Refusal>) -> Self {
        // A withheld answer was given all the same: the far side acted.
        let state = if answer.is_success() {
            OutcomeState::Done
        } else {
            OutcomeState::Failed
        };
        Self {
            state,
            status: Some(answer.status),
            result,
        }
    }
}

/// What the digest of what leaves covers.
pub(crate) fn delivered_text(delivery: &Delivery) -> Cow<'_, str> {
    match delivery {
        Delivery::Reply(reply) => reply_text(reply),
        Delivery::Followed => Cow::Borrowed(""),
        Delivery::Prompt(object) | Delivery::Contents(object) | Delivery::Completion(object) => {
            Cow::Owned(Value::Object(object.clone()).to_string())
        }
    }
}

/// What the digest of a result covers: its text, which says all there is, or its bytes as they are sent.
fn reply_text(reply: &Reply) -> Cow<'_, str> {
    let text = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Media(media) => media.data.clone(),
        Content::Carried(block) => Value::Object(block.clone()).to_string(),
    };
    match reply.content.as_slice() {
        [] => Cow::Borrowed(""),
        [Content::Text(only)] => Cow::Borrowed(only),
        [Content::Media(only)] => Cow::Borrowed(&only.data),
        [Content::Carried(only)] if reply.structured.is_none() => {
            match only.get("text").and_then(Value::as_str) {
                Some(only_text) if only.len() == 2 => Cow::Borrowed(only_text),
                _ => Cow::Owned(Value::Object(only.clone()).to_string()),
            }
        }
        several => Cow::Owned(several.iter().map(text).collect::<Vec<_>>().join("\n")),
    }
}
