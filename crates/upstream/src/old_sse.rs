//! The HTTP transport of 2024-11-05: one stream on which everything comes, and a place that it names, to which every
//! message is sent. Closing the stream ends the session.
//!
//! Source: MCP 2024-11-05, basic/transports; rules SSE-*.

use std::sync::Arc;

use bytes::Bytes;
use egress::EgressFault;
use egress::Phase;
use http::{HeaderMap, HeaderValue, Method, header};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::endpoint::{Endpoint, drain};
use crate::event_stream::{EventStream, Mark, Toll, message};
use crate::link_fault::LinkFault;
use crate::streamable::{is_events, not_mcp};

/// The half that is sent on. Cheap to clone; messages leave in the order in which they were given, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct OldSseSender(Arc<Sending>);

#[derive(Debug)]
struct Sending {
    target: Endpoint,
    /// Who has it may send. Not a lock around anything: it is only ever waited for, in order, and whoever is dropped
    /// while sending gives it back.
    turn: Semaphore,
}

/// The half that is read. Dropping it closes the stream, which ends the session.
#[derive(Debug)]
pub(crate) struct OldSseReceiver {
    stream: EventStream,
    mark: Mark,
    toll: Toll,
}

/// Opens a session: asks for the stream and waits for the place that messages are sent to (SSE-01).
///
/// Dropping the future closes the stream.
///
/// # Errors
/// [`LinkFault`]: `NoEndpoint` where the stream begins with something else or with nothing until the deadline,
/// `OtherOrigin` where that place is not of the origin of the stream (SSE-06).
pub(crate) async fn open(
    endpoint: &Endpoint,
    deadline: Instant,
) -> Result<(OldSseSender, OldSseReceiver), LinkFault> {
    let headers = |mut headers: HeaderMap| {
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        Ok(headers)
    };
    let answer = endpoint
        .send(Method::GET, headers, Bytes::new(), None, deadline)
        .await?;
    if !answer.status.is_success() {
        return Err(endpoint.refused(answer, deadline).await);
    }
    if !is_events(&answer) {
        return Err(not_mcp(&answer));
    }
    let mut receiver = OldSseReceiver {
        stream: EventStream::new(answer, endpoint.bounds()),
        mark: Mark::default(),
        toll: Toll::new(endpoint.bounds()),
    };
    let OldSseReceiver { stream, mark, toll } = &mut receiver;
    let first = stream.next(mark, toll, Some(deadline)).await;
    let first = match first {
        Ok(first) => first,
        Err(LinkFault::Egress(EgressFault::Timeout {
            phase: Phase::Body, ..
        })) => None,
        Err(fault) => return Err(fault),
    };
    let Some(named) = first.filter(|event| event.name == "endpoint") else {
        return Err(LinkFault::NoEndpoint);
    };
    let target = std::str::from_utf8(&named.data)
        .ok()
        .and_then(|named| endpoint.sibling(named.trim()))
        .ok_or(LinkFault::OtherOrigin)?;
    let sender = OldSseSender(Arc::new(Sending {
        target,
        turn: Semaphore::new(1),
    }));
    Ok((sender, receiver))
}

impl OldSseSender {
    /// Sends one message. Its answer comes on the stream, whatever the answer to the POST says beside its status
    /// (SSE-02, SSE-03).
    ///
    /// Dropping the future gives the message up: it may have left.
    ///
    /// # Errors
    /// [`LinkFault`]; [`LinkFault::sent`] says whether the server may have acted.
    pub(crate) async fn send(&self, message: Bytes, deadline: Instant) -> Result<(), LinkFault> {
        let late = LinkFault::Egress(EgressFault::Timeout {
            sent: false,
            phase: Phase::Connect,
        });
        let turn = tokio::time::timeout_at(deadline, self.0.turn.acquire()).await;
        // The semaphore is never closed.
        let Ok(Ok(_turn)) = turn else {
            return Err(late);
        };
        let headers = |mut headers: HeaderMap| {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(headers)
        };
        let target = &self.0.target;
        let answer = target
            .send(Method::POST, headers, message, None, deadline)
            .await?;
        if !answer.status.is_success() {
            return Err(target.refused(answer, deadline).await);
        }
        drain(answer, deadline).await;
        Ok(())
    }
}

impl OldSseReceiver {
    /// The next message, at most `upstream_body_bytes_max` bytes; `None` at the end of the stream. Nothing is read ahead.
    /// `upstream_stream_bytes_max` bytes without a message among them are too many.
    ///
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// [`LinkFault`]; the session is over.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, LinkFault> {
        loop {
            let next = self.stream.next(&mut self.mark, &mut self.toll, None).await?;
            let Some(event) = next else {
                return Ok(None);
            };
            if let Some(message) = message(event) {
                self.toll.begin();
                return Ok(Some(message));
            }
        }
    }
}
