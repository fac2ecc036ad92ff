//! Whether bytes of a request may have left: the one fact that decides if it may be sent again.
//!
//! HTTP cannot write the head of a request before it knows whether and how a body follows. So the body is asked first,
//! and a body that was never asked anything belongs to a request of which no byte was written.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

/// The record of one request, shared between the request's body and whoever waits for the answer.
pub(crate) struct Departure {
    left: AtomicBool,
    /// All requests of the client that may have left.
    requests: Arc<AtomicU64>,
}

/// A request body that notes when it is asked for.
pub(crate) struct Outgoing {
    body: Full<Bytes>,
    departure: Arc<Departure>,
}

impl Departure {
    pub(crate) fn new(requests: &Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicBool::new(false),
            requests: Arc::clone(requests),
        })
    }

    /// Notes that bytes may have left; counts the request once.
    pub(crate) fn mark(&self) {
        // The plain load keeps the common case, a body that is asked several times, free of a locked instruction.
        if !self.left.load(Ordering::Relaxed) && !self.left.swap(true, Ordering::AcqRel) {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether bytes may have left, asked after the request's future is gone.
    ///
    /// If the body is gone too, the record is final. If it still waits in a connection's queue, it may be written at
    /// any moment and counts as sent.
    pub(crate) fn is_final_and_sent(self: Arc<Self>) -> bool {
        match Arc::try_unwrap(self) {
            Ok(departure) => departure.left.into_inner(),
            Err(shared) => {
                shared.mark();
                true
            }
        }
    }
}

impl Outgoing {
    pub(crate) const fn new(body: Full<Bytes>, departure: Arc<Departure>) -> Self {
        Self { body, departure }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.departure.mark();
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.departure.mark();
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.departure.mark();
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> (Outgoing, Arc<Departure>, Arc<AtomicU64>) {
        let requests = Arc::new(AtomicU64::new(0));
        let departure = Departure::new(&requests);
        let body = Outgoing::new(Full::new(Bytes::from_static(b"x")), Arc::clone(&departure));
        (body, departure, requests)
    }

    #[test]
    fn a_body_that_nobody_asked_anything_did_not_leave() {
        let (body, departure, requests) = request();
        drop(body);
        assert!(!departure.is_final_and_sent());
        assert_eq!(requests.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn any_question_to_the_body_counts_as_leaving_once() {
        let (body, departure, requests) = request();
        let _ = body.is_end_stream();
        let _ = body.size_hint();
        drop(body);
        assert!(departure.is_final_and_sent());
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_body_that_is_still_somewhere_counts_as_sent_and_is_counted_once() {
        let (body, departure, requests) = request();
        assert!(departure.is_final_and_sent());
        let _ = body.size_hint();
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }
}
