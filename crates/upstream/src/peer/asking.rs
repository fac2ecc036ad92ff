//! One request on its way to a server, and the limits within which its answer is heard.

use std::sync::Arc;

use bytes::Bytes;
use model::{JsonLimits, Limits};
use wire::client::{Around, InputResponses, Say, Speaker};
use wire::{LogFilter, Revision};

use crate::inquiries::Inquiries;
use crate::outgoing::Trip;
use crate::progress::Progress;
use crate::relay::Relay;

/// One request on its way.
pub(crate) struct Asking<'a> {
    pub(crate) say: &'a Say<'a>,
    pub(crate) revision: Revision,
    pub(crate) speaker: &'a Speaker,
    pub(crate) trip: &'a Trip,
    pub(crate) progress: Option<&'a Arc<Progress>>,
    /// Who can be asked what the server asks meanwhile: the caller of this request and nobody else.
    pub(crate) inquiries: Option<&'a Arc<Inquiries>>,
    /// The session that it is for, where it is for one.
    pub(crate) hearer: Option<&'a Arc<Relay>>,
    /// What the server wanted before it goes on with this request.
    pub(crate) answers: Option<&'a InputResponses>,
    /// What is mirrored into headers, where the link has some (HM-14).
    pub(crate) params: &'a [(String, String)],
}

impl Asking<'_> {
    pub(crate) fn message(&self, id: i64) -> Bytes {
        let around = Around {
            // The token is the id: both are unique among the running requests of this hop (HOP-02).
            progress: self.progress.map(|_| id),
            traceparent: self.trip.traceparent.as_deref(),
            answers: self.answers,
            log_level: self
                .progress
                .and_then(|progress| match progress.relay().logs().get() {
                    LogFilter::From(level) => Some(level),
                    LogFilter::Nothing | LogFilter::Everything => None,
                }),
        };
        self.say.request(self.revision, self.speaker, id, around)
    }

    /// Notes in the trip that a call leaves; what opens and lists is not counted.
    pub(crate) fn leaves(&self) {
        if self.say.is_for_a_caller() {
            self.trip.leaving();
        }
    }

    pub(crate) fn stayed(&self) {
        if self.say.is_for_a_caller() {
            self.trip.stayed();
        }
    }
}

/// Whether a request that is given up is called off at the server; `initialize` must not be (LIFE-L08).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsCancelled {
    Yes,
    No,
}

/// The limits of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) json: JsonLimits,
    pub(crate) batch_max: usize,
    pub(crate) items_max: usize,
    pub(crate) unasked_max: usize,
}

impl Bounds {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            json: JsonLimits {
                bytes_max: limits.upstream_body_bytes_max,
                depth_max: limits.json_depth_max,
            },
            batch_max: limits.batch_messages_max,
            items_max: limits.tools_max,
            unasked_max: limits.upstream_stream_messages_max,
        }
    }
}
