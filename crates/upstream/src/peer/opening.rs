//! How a conversation is opened: which era the server is of, by a probe that changes nothing, and what it says of itself.
//!
//! The order is that of rules LIFE-D05 to LIFE-D10: `server/discover` first, `initialize` where nothing shows the stateless
//! era, the transport of 2024-11-05 where the URL knows no other. A refused credential or a failing server is no evidence.

use std::sync::Arc;
use std::time::Duration;

use config::Transport;
use tokio::time::Instant;
use wire::client::{self, Answered, Opened, OpeningFault, Probed, Say, Speaker, probed};
use wire::{Profile, Revision};

use crate::link_fault::LinkFault;
use crate::old_sse::{self, OldSseReceiver, OldSseSender};
use crate::outgoing::Trip;
use crate::peer::asking::{Asking, Bounds, IsCancelled};
use crate::peer::audience::Audience;
use crate::peer::conversation::{Conversation, Link};
use crate::peer::exchange::{Exchange, Greeted};
use crate::peer::fault::PeerFault;
use crate::peer::overheard::{Asks, Guard, Overheard};
use crate::peer::pipe::{Ear, Mouth};
use crate::peer::stream::Stream;
use crate::streamable::Streamable;
use crate::transport::says_another_transport;

/// Which revision is to be spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Whatever the server is found to speak.
    Any,
    /// This one and no other: the operator says so.
    Only(Revision),
}

/// Opens conversations.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) speaker: Arc<Speaker>,
    pub(crate) wanted: Wanted,
    pub(crate) bounds: Bounds,
    pub(crate) guard: Guard,
    /// What the server is told that it may ask.
    pub(crate) asks: Asks,
    /// Who hears what the server says on its own account.
    pub(crate) audience: Arc<Audience>,
    /// Whether several callers use the conversation.
    pub(crate) is_shared: bool,
    /// How long a server may leave the probe unanswered before it is taken for an old one that ignores it.
    pub(crate) probe_timeout: Duration,
}

/// What became of opening a conversation on a stream.
pub(crate) enum OnStream {
    /// It is open.
    Open(Box<Conversation>),
    /// The probe got no answer, or ended the stream: an old server, to be spoken to on a new stream (LIFE-D09).
    Old,
}

impl Opener {
    /// The same, for conversations in which a server may ask what is in this profile (HOP-09), and with others who hear it.
    pub(crate) fn with(&self, profile: Profile, (audience, is_shared): (&Arc<Audience>, bool)) -> Self {
        let speaker = Speaker {
            identity: self.speaker.identity.clone(),
            capabilities: profile.capabilities(),
        };
        Self {
            speaker: Arc::new(speaker),
            asks: Asks {
                upstream: self.asks.upstream.clone(),
                profile,
            },
            audience: Arc::clone(audience),
            is_shared,
            ..self.clone()
        }
    }

    /// What is tried first on a stream: nothing that is known, or what was found the last time.
    pub(crate) fn first(&self, known: Option<Revision>) -> Wanted {
        match (self.wanted, known) {
            (Wanted::Any, Some(known)) if known.has_sessions() => {
                Wanted::Only(Revision::NEWEST_WITH_SESSIONS)
            }
            (wanted, _) => wanted,
        }
    }

    /// Opens a conversation on a stream.
    ///
    /// # Errors
    /// [`PeerFault`].
    pub(crate) async fn on_stream(
        &self,
        (mouth, ear): (Mouth, Ear),
        first: Wanted,
        deadline: Instant,
    ) -> Result<OnStream, PeerFault> {
        let overheard = Arc::new(Overheard::new(&self.guard, &self.asks, &self.audience));
        let stream = Stream::start(mouth, ear, &overheard, self.bounds);
        let opened = match first {
            Wanted::Only(revision) if revision.has_sessions() => {
                self.initialize_on(&stream, revision, deadline).await?
            }
            Wanted::Only(_) | Wanted::Any => {
                let until = deadline.min(Instant::now() + self.probe_timeout);
                let trip = Trip::new(until, None);
                let answered = stream
                    .ask(&self.asking(&Say::Discover, &trip), IsCancelled::No)
                    .await;
                let found = match &answered {
                    Ok(Ok(result)) => probed(&Answered::Result(result), self.bounds.json),
                    Ok(Err(error)) => probed(&Answered::Error(error), self.bounds.json),
                    // Whether it was silent or ended: LIFE-D05, LIFE-D09.
                    Err(fault) if first == Wanted::Any && fault.sent() => return Ok(OnStream::Old),
                    Err(fault) => return Err(fault.clone()),
                }
                .map_err(PeerFault::Opening)?;
                match (found, first) {
                    (Probed::Modern(opened), _) => opened,
                    (Probed::Legacy, Wanted::Any) if !stream.is_closed() => {
                        self.initialize_on(&stream, Revision::NEWEST_WITH_SESSIONS, deadline)
                            .await?
                    }
                    (Probed::Legacy, Wanted::Any) => return Ok(OnStream::Old),
                    (Probed::Legacy, Wanted::Only(_)) => return Err(not_stateless()),
                    (Probed::Other(found), _) => return Err(others(&found)),
                }
            }
        };
        overheard.speaks(opened.revision);
        let conversation = Conversation::new(
            Link::Stream(stream),
            opened,
            Arc::clone(&self.speaker),
            overheard,
            (self.bounds, self.is_shared),
        );
        Ok(OnStream::Open(Box::new(conversation)))
    }

    async fn initialize_on(
        &self,
        stream: &Stream,
        revision: Revision,
        deadline: Instant,
    ) -> Result<Opened, PeerFault> {
        let trip = Trip::new(deadline, None);
        let say = Say::Open(revision);
        let asking = Asking {
            revision,
            ..self.asking(&say, &trip)
        };
        let outcome = stream
            .ask(&asking, IsCancelled::No)
            .await
            .map_err(PeerFault::unsent)?;
        let opened = self.agreed(outcome)?;
        stream.tell(client::initialized(), deadline).await?;
        Ok(opened)
    }

    /// Opens a conversation at a URL.
    ///
    /// # Errors
    /// [`PeerFault`].
    pub(crate) async fn at_url(
        &self,
        link: &Streamable,
        transport: Transport,
        known: Option<Revision>,
        deadline: Instant,
    ) -> Result<Conversation, PeerFault> {
        if transport == Transport::Sse {
            return self.by_old_transport(link, deadline).await;
        }
        let overheard = Arc::new(Overheard::new(&self.guard, &self.asks, &self.audience));
        let probes = match self.first(known) {
            Wanted::Any => true,
            Wanted::Only(revision) => !revision.has_sessions(),
        };
        if probes && let Some(opened) = self.discover_at(link, &overheard, deadline).await? {
            let exchange = Exchange::new(link.clone(), None);
            return Ok(self.conversation(exchange, opened, overheard));
        }
        let revision = match self.wanted {
            Wanted::Only(revision) => revision,
            Wanted::Any => Revision::NEWEST_WITH_SESSIONS,
        };
        let (opened, session) = match self
            .initialize_at((link, transport), revision, &overheard, deadline)
            .await?
        {
            Greeted::Here(outcome, session) => (self.agreed(outcome)?, session),
            Greeted::There(sender, receiver) => {
                return self.on_old_transport(sender, receiver, deadline).await;
            }
        };
        let revision = opened.revision;
        let exchange = Exchange::new(link.clone(), session);
        exchange.tell(client::initialized(), revision, deadline).await?;
        overheard.speaks(revision);
        let exchange = exchange.listening(revision, &overheard, self.bounds);
        Ok(self.conversation(exchange, opened, overheard))
    }

    /// Probes a URL. `None`: nothing shows the stateless era.
    async fn discover_at(
        &self,
        link: &Streamable,
        overheard: &Arc<Overheard>,
        deadline: Instant,
    ) -> Result<Option<Opened>, PeerFault> {
        let exchange = Exchange::new(link.clone(), None);
        let trip = Trip::new(deadline, None);
        let asking = self.asking(&Say::Discover, &trip);
        let answered = exchange
            .ask(&asking, IsCancelled::No, overheard, &self.bounds)
            .await;
        let may_be_old = self.wanted == Wanted::Any;
        let found = match &answered {
            Ok((Ok(result), _)) => probed(&Answered::Result(result), self.bounds.json),
            Ok((Err(error), _)) => probed(&Answered::Error(error), self.bounds.json),
            // LIFE-D08: neither a refused credential nor a failing server is evidence.
            Err(PeerFault::Link(fault)) if may_be_old && says_another_transport(fault) => return Ok(None),
            Err(PeerFault::Link(LinkFault::NotMcp { .. } | LinkFault::Cut { .. })) if may_be_old => {
                return Ok(None);
            }
            Err(fault) => return Err(fault.clone().unsent()),
        };
        match found.map_err(PeerFault::Opening)? {
            Probed::Modern(opened) => Ok(Some(opened)),
            Probed::Legacy if may_be_old => Ok(None),
            Probed::Legacy => Err(not_stateless()),
            Probed::Other(found) => Err(others(&found)),
        }
    }

    async fn initialize_at(
        &self,
        (link, transport): (&Streamable, Transport),
        revision: Revision,
        overheard: &Arc<Overheard>,
        deadline: Instant,
    ) -> Result<Greeted, PeerFault> {
        let exchange = Exchange::new(link.clone(), None);
        let trip = Trip::new(deadline, None);
        let say = Say::Open(revision);
        let asking = Asking {
            revision,
            ..self.asking(&say, &trip)
        };
        if transport == Transport::Auto {
            return exchange
                .reach(&asking, overheard, &self.bounds, self.probe_timeout)
                .await;
        }
        let asked = exchange.ask(&asking, IsCancelled::No, overheard, &self.bounds);
        asked
            .await
            .map(|(outcome, session)| Greeted::Here(outcome, session))
    }

    async fn by_old_transport(
        &self,
        link: &Streamable,
        deadline: Instant,
    ) -> Result<Conversation, PeerFault> {
        let (sender, receiver) = old_sse::open(link.endpoint(), deadline)
            .await
            .map_err(PeerFault::Link)?;
        self.on_old_transport(sender, Box::new(receiver), deadline).await
    }

    async fn on_old_transport(
        &self,
        sender: OldSseSender,
        receiver: Box<OldSseReceiver>,
        deadline: Instant,
    ) -> Result<Conversation, PeerFault> {
        let first = match self.wanted {
            Wanted::Any => Wanted::Only(Revision::NEWEST_WITH_SESSIONS),
            only @ Wanted::Only(_) => only,
        };
        let pipe = (Mouth::OldSse(sender), Ear::OldSse(receiver));
        match self.on_stream(pipe, first, deadline).await? {
            OnStream::Open(conversation) => Ok(*conversation),
            OnStream::Old => Err(PeerFault::Ended { sent: false }),
        }
    }

    /// What `initialize` agreed on.
    fn agreed(&self, outcome: crate::peer::mailbox::Outcome) -> Result<Opened, PeerFault> {
        let result = outcome.map_err(PeerFault::Refused)?;
        let opened = Opened::initialized(&result, self.bounds.json).map_err(PeerFault::Opening)?;
        match self.wanted {
            Wanted::Only(revision) if revision != opened.revision => Err(others(&[opened.revision])),
            Wanted::Only(_) | Wanted::Any => Ok(opened),
        }
    }

    fn conversation(&self, exchange: Exchange, opened: Opened, overheard: Arc<Overheard>) -> Conversation {
        Conversation::new(
            Link::Exchange(exchange),
            opened,
            Arc::clone(&self.speaker),
            overheard,
            (self.bounds, self.is_shared),
        )
    }

    fn asking<'a>(&'a self, say: &'a Say<'a>, trip: &'a Trip) -> Asking<'a> {
        Asking {
            say,
            revision: Revision::NEWEST_STATELESS,
            speaker: &self.speaker,
            trip,
            progress: None,
            inquiries: None,
            hearer: None,
            answers: None,
            params: &[],
        }
    }
}

fn not_stateless() -> PeerFault {
    PeerFault::Opening(OpeningFault::Form {
        method: "server/discover",
        what: "does not show a server of the revision that `revision` demands".to_owned(),
    })
}

fn others(found: &[Revision]) -> PeerFault {
    PeerFault::Opening(OpeningFault::Versions(
        found
            .iter()
            .map(|revision| revision.as_str().to_owned())
            .collect(),
    ))
}
