//! Which of the two HTTP transports a server speaks, where nobody said it.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use crate::link_fault::LinkFault;
use crate::old_sse::{self, OldSseReceiver, OldSseSender};
use crate::outgoing::Trip;
use crate::streamable::{Exchanged, Hearing, Post, Streamable};

/// A server that was reached.
#[derive(Debug)]
pub(crate) enum Reached {
    /// By Streamable HTTP: the message was exchanged.
    Streamable(Exchanged),
    /// By the transport of 2024-11-05: its session is open, and the message is still to be sent on it.
    OldSse(OldSseSender, Box<OldSseReceiver>),
}

/// Sends an opening message by Streamable HTTP and, if the server does not know that, opens the old transport at the same
/// URL (SSE-05, LIFE-D06).
///
/// `post` is `server/discover` or `initialize` and nothing else: an old server could act on any other message (LIFE-D10).
/// `hear` is as in [`Streamable::exchange`]; where it takes the answer, the server speaks Streamable HTTP whatever the
/// status was. Only 400, 404, 405 and other statuses by which a server turns the way itself away lead to the old transport:
/// a refused credential (401, 403), too many requests and a failing server say nothing about it (LIFE-D08). The message is
/// sent once.
///
/// # Errors
/// The [`LinkFault`] of the POST, also where the old transport was tried and is not there.
pub(crate) async fn reach(
    link: &Streamable,
    post: Post<'_>,
    trip: &Trip,
    patience: Duration,
    hear: impl FnMut(StatusCode, Bytes) -> Hearing,
) -> Result<Reached, LinkFault> {
    let fault = match link.exchange(post, trip, hear).await {
        Ok(exchanged) => return Ok(Reached::Streamable(exchanged)),
        Err(fault) => fault,
    };
    if !says_another_transport(&fault) {
        return Err(fault);
    }
    let deadline = trip.deadline.min(Instant::now() + patience);
    match old_sse::open(link.endpoint(), deadline).await {
        Ok((sender, receiver)) => Ok(Reached::OldSse(sender, Box::new(receiver))),
        // That it is elsewhere is worth more than what the POST met.
        Err(other @ LinkFault::OtherOrigin) => Err(other),
        Err(other) => {
            tracing::debug!(%other, "the server does not speak the old transport either");
            Err(fault)
        }
    }
}

pub(crate) const fn says_another_transport(fault: &LinkFault) -> bool {
    matches!(
        fault,
        LinkFault::Status {
            status: 400..=499,
            ..
        }
    ) && !matches!(
        fault,
        LinkFault::Status {
            status: 407 | 408 | 421 | 425 | 429,
            ..
        }
    )
}
