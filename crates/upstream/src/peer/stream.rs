//! A conversation on one stream each way: a child's pipes, or HTTP+SSE of 2024-11-05. All answers come on one stream, so that
//! a task reads it and gives each to whoever waits for it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::client::{self, Heard, messages};

use crate::peer::asking::{Asking, Bounds, IsCancelled};
use crate::peer::fault::PeerFault;
use crate::peer::mailbox::{Mailbox, Outcome};
use crate::peer::overheard::{Overheard, ServerAsk, aside, soon};
use crate::peer::pipe::{Ear, Mouth};

/// A stream each way.
#[derive(Debug)]
pub(crate) struct Stream {
    mouth: Mouth,
    mailbox: Arc<Mailbox>,
    /// Ends the task that reads.
    _reading: DropGuard,
}

impl Stream {
    /// A stream, and the task that reads it until it ends or the stream is dropped.
    pub(crate) fn start(mouth: Mouth, ear: Ear, overheard: &Arc<Overheard>, bounds: Bounds) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        let stop = CancellationToken::new();
        let reading = Reading {
            mouth: mouth.clone(),
            mailbox: Arc::clone(&mailbox),
            overheard: Arc::clone(overheard),
            bounds,
        };
        tokio::spawn(reading.run(ear, stop.clone()));
        Self {
            mouth,
            mailbox,
            _reading: stop.drop_guard(),
        }
    }

    pub(crate) async fn ask(&self, asking: &Asking<'_>, cancels: IsCancelled) -> Result<Outcome, PeerFault> {
        let id = self.mailbox.mint();
        let mut ticket = self
            .mailbox
            .wait(id, asking.progress.cloned(), asking.inquiries.cloned())?;
        asking.leaves();
        let sent = self.mouth.send(asking.message(id), asking.trip.deadline).await;
        if let Err(fault) = sent {
            if !fault.sent() {
                asking.stayed();
            }
            return Err(fault);
        }
        let mut abandoned = Abandoned {
            mouth: Some(self.mouth.clone()).filter(|_| cancels == IsCancelled::Yes),
            id,
        };
        let answered = tokio::time::timeout_at(asking.trip.deadline, ticket.answer()).await;
        match answered {
            Ok(answered) => {
                abandoned.mouth = None;
                answered
            }
            // CAN-05: whoever stops waiting says so.
            Err(_) => Err(PeerFault::Late {
                after: None,
                sent: true,
            }),
        }
    }

    /// Says something that has no answer.
    pub(crate) async fn tell(&self, message: Bytes, deadline: Instant) -> Result<(), PeerFault> {
        self.mouth.send(message, deadline).await
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }
}

/// A request that nobody waits for any more, unless it is disarmed: the server is told (CAN-01, STDIO-06).
struct Abandoned {
    mouth: Option<Mouth>,
    id: i64,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if let Some(mouth) = self.mouth.take() {
            let message = client::cancelled(self.id, "the caller no longer waits");
            aside(async move {
                let _ = mouth.send(message, soon()).await;
            });
        }
    }
}

/// The task that reads a stream.
struct Reading {
    mouth: Mouth,
    mailbox: Arc<Mailbox>,
    overheard: Arc<Overheard>,
    bounds: Bounds,
}

impl Reading {
    async fn run(self, mut ear: Ear, stop: CancellationToken) {
        let mut unasked = 0;
        let fault = loop {
            let heard = tokio::select! {
                biased;
                () = stop.cancelled() => break PeerFault::Ended { sent: true },
                heard = ear.next() => heard,
            };
            let bytes = match heard {
                Ok(bytes) => bytes,
                Err(fault) => break fault,
            };
            let has_batches = self.overheard.has_batches();
            let parts = match messages(&bytes, has_batches, self.bounds.batch_max, self.bounds.json) {
                Ok(parts) => parts,
                Err(fault) => {
                    tracing::warn!(%fault, "a server said something that cannot be read");
                    unasked += 1;
                    Vec::new()
                }
            };
            for part in parts {
                match self.hear(&part) {
                    Answers::Somebody => unasked = 0,
                    Answers::Nobody => unasked += 1,
                }
            }
            if unasked > self.bounds.unasked_max {
                break PeerFault::Flood {
                    max: self.bounds.unasked_max,
                };
            }
        };
        tracing::debug!(%fault, "a conversation ended");
        self.mailbox.close(&fault);
        self.overheard.audience().lost();
        ear.close().await;
    }

    fn hear(&self, part: &Bytes) -> Answers {
        match Heard::read(part, self.bounds.json) {
            Ok(Heard::Answer {
                id: Some(id),
                outcome,
            }) => {
                if self.mailbox.answer(&id, outcome) {
                    return Answers::Somebody;
                }
                tracing::debug!(%id, "an answer that nobody waits for");
            }
            Ok(Heard::Answer { id: None, outcome }) => {
                tracing::warn!(?outcome, "the server could not read a message of ours");
            }
            Ok(Heard::Ask { id, method, params }) => {
                let mouth = self.mouth.clone();
                let ask = ServerAsk { id, method, params };
                // All calls share the stream, and nothing says to which of them this belongs.
                let whose = self.mailbox.only_call();
                self.overheard
                    .answer(ask, whose, self.bounds.json, move |answer| async move {
                        let _ = mouth.send(answer, soon()).await;
                    });
            }
            Ok(Heard::Notice(told)) => self.overheard.hear(told, &self.mailbox),
            Err(fault) => tracing::warn!(%fault, "a server said something that cannot be read"),
        }
        Answers::Nobody
    }
}

enum Answers {
    Somebody,
    Nobody,
}
