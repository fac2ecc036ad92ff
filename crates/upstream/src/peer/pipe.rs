//! The two ends of a stream each way, whatever carries it: the pipes of a child, or HTTP+SSE of 2024-11-05.

use bytes::Bytes;
use tokio::time::Instant;

use crate::old_sse::{OldSseReceiver, OldSseSender};
use crate::peer::fault::PeerFault;

/// The end that is spoken into. Cheap to clone; messages leave whole and in order.
#[derive(Debug, Clone)]
pub(crate) enum Mouth {
    /// POSTs to the place that the stream named.
    OldSse(OldSseSender),
}

/// The end that is listened to. Dropping it ends the conversation at the far side.
#[derive(Debug)]
pub(crate) enum Ear {
    /// The event stream.
    OldSse(Box<OldSseReceiver>),
}

impl Mouth {
    /// Sends one message.
    ///
    /// # Errors
    /// [`PeerFault`]; [`PeerFault::sent`] says whether the server may have acted.
    pub(crate) async fn send(&self, message: Bytes, deadline: Instant) -> Result<(), PeerFault> {
        match self {
            Self::OldSse(sender) => sender.send(message, deadline).await.map_err(PeerFault::Link),
        }
    }
}

impl Ear {
    /// The next message. Dropping the future loses none.
    ///
    /// # Errors
    /// Why nothing more comes.
    pub(crate) async fn next(&mut self) -> Result<Bytes, PeerFault> {
        match self {
            Self::OldSse(receiver) => match receiver.next().await {
                Ok(Some(message)) => Ok(message),
                Ok(None) => Err(PeerFault::Ended { sent: true }),
                Err(fault) => Err(PeerFault::Link(fault)),
            },
        }
    }

    /// Ends the far side in order.
    pub(crate) async fn close(self) {
        match self {
            Self::OldSse(receiver) => drop(receiver),
        }
    }
}
