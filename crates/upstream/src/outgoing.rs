//! A request that was built for one call, and the trip that it makes.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use catalog::Access;
use model::CallId;
use openapi::Prepared;
use tokio::time::Instant;

use crate::work::Started;

/// A request, built for exactly one call, without destination and credential.
///
/// Only [`Far::prepare`](crate::Far::prepare) makes one, and only the call that it was made for can send it.
#[derive(Debug)]
pub struct Outgoing {
    pub(crate) call: CallId,
    pub(crate) prepared: Prepared,
    pub(crate) access: Access,
    /// Whether it may be sent again without asking what it does.
    pub(crate) repeatable: bool,
    pub(crate) retry: Option<Retry>,
    /// How long each request of long-running work may take, where its tool says so.
    pub(crate) timeout: Option<Duration>,
}

/// When a request is sent again. Only requests that change nothing have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) attempts: u32,
    pub(crate) on: Vec<u16>,
}

impl Retry {
    /// How long to wait before attempt `next` (counted from 1 for the first repetition), if the server does not say.
    pub(crate) fn pause(next: u32) -> Duration {
        Duration::from_millis(100).saturating_mul(1 << next.saturating_sub(1).min(6))
    }
}

/// One call's way to the far side and back. Kept by the caller, so that it can be read when the call was given up.
#[derive(Debug)]
pub struct Trip {
    /// When the call ends, whatever happens.
    pub deadline: Instant,
    /// The W3C `traceparent` to pass on.
    pub traceparent: Option<String>,
    requests: AtomicU32,
    work: OnceLock<Started>,
}

impl Trip {
    /// A trip that has not begun.
    #[must_use]
    pub const fn new(deadline: Instant, traceparent: Option<String>) -> Self {
        Self {
            deadline,
            traceparent,
            requests: AtomicU32::new(0),
            work: OnceLock::new(),
        }
    }

    /// How many requests may have left so far. A request is counted before it is tried and taken back only when
    /// provably nothing of it left, so that a call that was given up in between is counted, not missed.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Acquire)
    }

    /// Notes that work was started; a trip starts one.
    pub(crate) fn started(&self, work: Started) -> &Started {
        self.work.get_or_init(|| work)
    }

    /// The work that was started.
    pub(crate) fn work(&self) -> Option<&Started> {
        self.work.get()
    }

    pub(crate) fn leaving(&self) {
        self.requests.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn stayed(&self) {
        self.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_a_maximum() {
        let pauses: Vec<u128> = [1, 2, 3, 7, 8, 100]
            .map(|next| Retry::pause(next).as_millis())
            .into();
        assert_eq!(pauses, [100, 200, 400, 6_400, 6_400, 6_400]);
    }
}
