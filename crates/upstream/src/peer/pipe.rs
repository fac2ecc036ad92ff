//! The two ends of a stream each way, whatever carries it: the pipes of a child, or HTTP+SSE of 2024-11-05.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::child::Child;
use crate::duplex;
use crate::old_sse::{OldSseReceiver, OldSseSender};
use crate::peer::fault::PeerFault;

/// The end that is spoken into. Cheap to clone; messages leave whole and in order.
#[derive(Debug, Clone)]
pub(crate) enum Mouth {
    /// Lines into a child.
    Child(duplex::Sender),
    /// POSTs to the place that the stream named.
    OldSse(OldSseSender),
}

/// The end that is listened to. Dropping it ends the conversation at the far side.
#[derive(Debug)]
pub(crate) enum Ear {
    /// Lines out of a child, which is stopped when nobody has it any more.
    Child(duplex::Receiver, Arc<Child>),
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
            Self::Child(sender) => sender
                .send(message, deadline)
                .await
                .map_err(|fault| PeerFault::Child {
                    sent: fault.sent(),
                    text: fault.to_string(),
                }),
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
            Self::Child(receiver, _) => loop {
                match receiver.next().await {
                    duplex::Heard::Message(message) => return Ok(message),
                    // Whoever waits for it goes on waiting, until the deadline.
                    duplex::Heard::Broken(fault) => {
                        tracing::warn!(%fault, "a server said something that is no message")
                    }
                    duplex::Heard::Ended(end) => {
                        return Err(PeerFault::Child {
                            text: end.to_string(),
                            sent: true,
                        });
                    }
                }
            },
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
            Self::Child(receiver, child) => drop((receiver, child)),
            Self::OldSse(receiver) => drop(receiver),
        }
    }
}
