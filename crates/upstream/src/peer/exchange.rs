//! A conversation in exchanges: each request is a POST whose own response carries the answer and what belongs to it. The
//! calling task reads it; no task and no channel stands between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use egress::EgressFault;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::client::{self, Heard, Say, Told, messages};
use wire::{Id, Revision};

use crate::inquiries::Inquiries;
use crate::link_fault::LinkFault;
use crate::old_sse::{OldSseReceiver, OldSseSender};
use crate::outgoing::Trip;
use crate::peer::asking::{Asking, Bounds, IsCancelled};
use crate::peer::fault::PeerFault;
use crate::peer::mailbox::{Mailbox, Outcome, Ticket};
use crate::peer::overheard::{Overheard, ServerAsk, aside, soon};
use crate::progress::Progress;
use crate::relay::Relay;
use crate::streamable::{Hearing, Post, Streamable};
use crate::transport::{self, Reached};

/// How long the listening stream of a session may take to open.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Exchanges of one session, or of none.
#[derive(Debug)]
pub(crate) struct Exchange {
    link: Streamable,
    session: Option<String>,
    mailbox: Arc<Mailbox>,
    lost: Arc<AtomicBool>,
    /// Whether the stream has ended on which the server says what nobody asked for.
    deaf: Arc<AtomicBool>,
    /// Ends the task that listens.
    _listening: Option<DropGuard>,
}

impl Exchange {
    pub(crate) fn new(link: Streamable, session: Option<String>) -> Self {
        Self {
            link,
            session,
            mailbox: Arc::default(),
            lost: Arc::default(),
            deaf: Arc::default(),
            _listening: None,
        }
    }

    /// Sends a request; gives its answer and the session that came with it.
    pub(crate) async fn ask(
        &self,
        asking: &Asking<'_>,
        cancels: IsCancelled,
        overheard: &Arc<Overheard>,
        bounds: &Bounds,
    ) -> Result<(Outcome, Option<String>), PeerFault> {
        let mut hearing = self.hearing(asking, overheard, bounds)?;
        let counted;
        let trip = if asking.say.is_for_a_caller() {
            asking.trip
        } else {
            counted = Trip::new(asking.trip.deadline, None);
            &counted
        };
        // Closing the response is the cancellation of the stateless era (HM-09); in the other it has to be said (HL-07).
        let mut abandoned = Given {
            exchange: Some(self).filter(|_| cancels == IsCancelled::Yes && asking.revision.has_sessions()),
            revision: asking.revision,
            id: hearing.id,
        };
        let post = self.post(asking, hearing.id);
        let exchanged = self
            .link
            .exchange(post, trip, |_, bytes| hearing.hear(&bytes))
            .await;
        match (exchanged, hearing.answered) {
            (Ok(exchanged), Some(outcome)) => {
                abandoned.exchange = None;
                Ok((outcome, exchanged.session))
            }
            (Ok(_), None) => Err(PeerFault::Ended { sent: true }),
            (Err(fault), _) => {
                // What has ended by itself needs no cancellation; what was late does.
                if !matches!(&fault, LinkFault::Egress(EgressFault::Timeout { .. })) {
                    abandoned.exchange = None;
                }
                Err(PeerFault::Link(fault))
            }
        }
    }

    /// Sends the first message of a conversation, also to a server that may speak the transport of 2024-11-05 alone.
    pub(crate) async fn reach(
        &self,
        asking: &Asking<'_>,
        overheard: &Arc<Overheard>,
        bounds: &Bounds,
        patience: Duration,
    ) -> Result<Greeted, PeerFault> {
        let mut hearing = self.hearing(asking, overheard, bounds)?;
        let post = self.post(asking, hearing.id);
        let reached = transport::reach(&self.link, post, asking.trip, patience, |_, bytes| {
            hearing.hear(&bytes)
        })
        .await
        .map_err(PeerFault::Link)?;
        match (reached, hearing.answered) {
            (Reached::Streamable(exchanged), Some(outcome)) => Ok(Greeted::Here(outcome, exchanged.session)),
            (Reached::Streamable(_), None) => Err(PeerFault::Ended { sent: true }),
            (Reached::OldSse(sender, receiver), _) => Ok(Greeted::There(sender, receiver)),
        }
    }

    fn hearing<'a>(
        &'a self,
        asking: &Asking<'a>,
        overheard: &'a Arc<Overheard>,
        bounds: &'a Bounds,
    ) -> Result<ExchangeHearing<'a>, PeerFault> {
        let id = self.mailbox.mint();
        Ok(ExchangeHearing {
            exchange: self,
            overheard,
            bounds,
            revision: asking.revision,
            id,
            _ticket: self
                .mailbox
                .wait(id, asking.progress.cloned(), asking.inquiries.cloned())?,
            inquiries: asking.inquiries.cloned(),
            progress: asking.progress.cloned(),
            hearer: asking.hearer.cloned(),
            answered: None,
        })
    }

    fn post<'a>(&'a self, asking: &Asking<'a>, id: i64) -> Post<'a> {
        let has_sessions = asking.revision.has_sessions();
        let opens = matches!(asking.say, Say::Open(_));
        Post {
            body: asking.message(id),
            version: (!opens).then(|| asking.revision.as_str()),
            session: self.session.as_deref(),
            method: (!has_sessions).then(|| asking.say.method()),
            name: asking.say.name().filter(|_| !has_sessions),
            params: if has_sessions { &[] } else { asking.params },
            traceparent: asking.trip.traceparent.as_deref(),
            resumes: has_sessions,
        }
    }

    /// Whether the server has lost its session.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether the stream has ended on which the server says what nobody asked for.
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Acquire)
    }

    /// Notes that the server has lost its session.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    /// Ends the session, where there is one (HL-15). The server may not hear of it.
    pub(crate) async fn end(&self, revision: Revision) {
        if let Some(session) = &self.session {
            self.link.end(session, Some(revision.as_str()), soon()).await;
        }
    }

    /// Says something that has no answer.
    pub(crate) async fn tell(
        &self,
        message: Bytes,
        revision: Revision,
        deadline: Instant,
    ) -> Result<(), PeerFault> {
        let post = unanswered(message, revision, self.session.as_deref());
        self.link
            .notify(post, None, deadline)
            .await
            .map_err(PeerFault::Link)
    }

    /// The same link, with the task that listens to what the server says unasked.
    pub(crate) fn listening(
        mut self,
        revision: Revision,
        overheard: &Arc<Overheard>,
        bounds: Bounds,
    ) -> Self {
        let stop = CancellationToken::new();
        let listening = Listening {
            link: self.link.clone(),
            session: self.session.clone(),
            revision,
            overheard: Arc::clone(overheard),
            mailbox: Arc::clone(&self.mailbox),
            bounds,
            lost: Arc::clone(&self.lost),
            deaf: Arc::clone(&self.deaf),
        };
        tokio::spawn(listening.run(stop.clone()));
        self._listening = Some(stop.drop_guard());
        self
    }
}

/// What the first message of a conversation met.
pub(crate) enum Greeted {
    /// An answer, with the session that came with it.
    Here(Outcome, Option<String>),
    /// The transport of 2024-11-05; the message is still to be sent there.
    There(OldSseSender, Box<OldSseReceiver>),
}

/// What is heard while one request is on its way.
struct ExchangeHearing<'a> {
    exchange: &'a Exchange,
    overheard: &'a Arc<Overheard>,
    bounds: &'a Bounds,
    revision: Revision,
    id: i64,
    /// Progress finds its way by it.
    _ticket: Ticket,
    /// Whom its server may ask: a request on the response to a request belongs to it (C3).
    inquiries: Option<Arc<Inquiries>>,
    /// Where what it logs goes.
    progress: Option<Arc<Progress>>,
    hearer: Option<Arc<Relay>>,
    answered: Option<Outcome>,
}

impl ExchangeHearing<'_> {
    fn hear(&mut self, bytes: &Bytes) -> Hearing {
        let has_batches = self.revision.has_batches();
        match messages(bytes, has_batches, self.bounds.batch_max, self.bounds.json) {
            Ok(parts) => parts.iter().for_each(|part| self.hear_one(part)),
            Err(fault) => tracing::warn!(%fault, "a server said something that cannot be read"),
        }
        if self.answered.is_some() {
            Hearing::Answered
        } else {
            Hearing::GoOn
        }
    }

    fn hear_one(&mut self, part: &Bytes) {
        match Heard::read(part, self.bounds.json) {
            // An error without an id can only be about the one message that was sent.
            Ok(Heard::Answer { id, outcome })
                if id == Some(Id::Integer(self.id)) || id.is_none() && outcome.is_err() =>
            {
                self.answered = Some(outcome);
            }
            Ok(Heard::Answer { .. }) => tracing::debug!("an answer that nobody waits for"),
            Ok(Heard::Ask { id, method, params }) if self.revision.has_sessions() => {
                let (link, session) = (self.exchange.link.clone(), self.exchange.session.clone());
                let way = (link, session, self.revision);
                let ask = ServerAsk { id, method, params };
                let whose = self.inquiries.clone();
                answer_by(way, self.overheard, ask, whose, self.bounds);
            }
            // HM-08: a server of the stateless era sends no requests.
            Ok(Heard::Ask { .. }) => {}
            Ok(Heard::Notice(Told::Log(message))) if let Some(progress) = &self.progress => {
                self.overheard
                    .log(message, progress.relay(), self.hearer.as_ref());
            }
            Ok(Heard::Notice(told)) => self.overheard.hear(told, &self.exchange.mailbox),
            Err(fault) => tracing::warn!(%fault, "a server said something that cannot be read"),
        }
    }
}

/// Answers a request of a server of the legacy era, by a POST of its own (HL-19).
fn answer_by(
    (link, session, revision): (Streamable, Option<String>, Revision),
    overheard: &Arc<Overheard>,
    ask: ServerAsk,
    whose: Option<Arc<Inquiries>>,
    bounds: &Bounds,
) {
    overheard.answer(ask, whose, bounds.json, move |answer| async move {
        let post = unanswered(answer, revision, session.as_deref());
        let _ = link.notify(post, None, soon()).await;
    });
}

/// A message of a session that has no answer.
fn unanswered(body: Bytes, revision: Revision, session: Option<&str>) -> Post<'_> {
    Post {
        body,
        version: Some(revision.as_str()),
        session,
        ..Post::default()
    }
}

/// A request of the legacy era that nobody waits for any more, unless it is disarmed.
struct Given<'e> {
    exchange: Option<&'e Exchange>,
    revision: Revision,
    id: i64,
}

impl Drop for Given<'_> {
    fn drop(&mut self) {
        let Some(exchange) = self.exchange.take() else {
            return;
        };
        let (link, session) = (exchange.link.clone(), exchange.session.clone());
        let body = client::cancelled(self.id, "the caller no longer waits");
        let revision = self.revision;
        aside(async move {
            let post = unanswered(body, revision, session.as_deref());
            let _ = link.notify(post, None, soon()).await;
        });
    }
}

/// The task that hears what a server of the legacy era says unasked (HL-08).
struct Listening {
    link: Streamable,
    session: Option<String>,
    revision: Revision,
    overheard: Arc<Overheard>,
    mailbox: Arc<Mailbox>,
    bounds: Bounds,
    /// Set where the server says that the session is gone.
    lost: Arc<AtomicBool>,
    /// Set when nothing more is heard.
    deaf: Arc<AtomicBool>,
}

impl Listening {
    async fn run(self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            has_listened = self.listen() => if has_listened {
                self.deaf.store(true, Ordering::Release);
                let audience = self.overheard.audience();
                // A session in which nothing is heard is of no use to whoever follows something in it.
                if !audience.followed().is_empty() {
                    self.lost.store(true, Ordering::Release);
                    audience.lost();
                }
            }
        }
    }

    /// Hears until nothing more comes. Whether anything could have come: a server may have no such stream.
    async fn listen(&self) -> bool {
        let version = self.revision.as_str();
        let opened = self
            .link
            .listen(self.session.as_deref(), Some(version), LISTEN_TIMEOUT)
            .await;
        let mut listening = match opened {
            Ok(Some(listening)) => listening,
            Ok(None) => return false,
            Err(fault) => {
                tracing::debug!(%fault, "a server's listening stream could not be opened");
                return false;
            }
        };
        let mut heard = 0_usize;
        let mut since = Instant::now();
        loop {
            let bytes = match listening.next().await {
                Ok(bytes) => bytes,
                Err(fault) => {
                    if matches!(fault, LinkFault::SessionLost) {
                        self.lost.store(true, Ordering::Release);
                    }
                    return true;
                }
            };
            // So many within a minute are a flood; nothing of it is needed.
            if since.elapsed() > Duration::from_secs(60) {
                (heard, since) = (0, Instant::now());
            }
            heard += 1;
            if heard > self.bounds.unasked_max {
                tracing::warn!("a server said more unasked than is read; nobody listens to it any more");
                return true;
            }
            let has_batches = self.revision.has_batches();
            let parts =
                messages(&bytes, has_batches, self.bounds.batch_max, self.bounds.json).unwrap_or_default();
            for part in parts {
                match Heard::read(&part, self.bounds.json) {
                    Ok(Heard::Notice(told)) => self.overheard.hear(told, &self.mailbox),
                    Ok(Heard::Ask { id, method, params }) => {
                        let way = (self.link.clone(), self.session.clone(), self.revision);
                        let ask = ServerAsk { id, method, params };
                        let whose = self.mailbox.only_call();
                        answer_by(way, &self.overheard, ask, whose, &self.bounds);
                    }
                    Ok(Heard::Answer { .. }) | Err(_) => {}
                }
            }
        }
    }
}
