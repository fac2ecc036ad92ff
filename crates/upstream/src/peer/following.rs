//! How resources are followed at a server: by a subscription for each in the legacy era, by one listening request for all of
//! them in the other.
//!
//! Who follows what is the audience's; here the server is made to tell it. A conversation that ends takes nothing with it:
//! what is followed is asked for again in the next one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::client::Say;

use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::peer::Peer;
use crate::peer::conversation::{Beside, Conversation};
use crate::peer::fault::PeerFault;
use crate::peer::mailbox::Outcome;
use crate::peer::overheard::{aside, soon};
use crate::relay::Relay;

/// How long the acknowledgement of a listening request may take.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// A listening request is made anew after this, whatever happens on it.
const LISTEN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The listening request that is open.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    asked: HashSet<String>,
    honoured: HashSet<String>,
    _open: Option<DropGuard>,
}

impl Conversation {
    /// Makes the server tell when a resource changes. Whoever is to hear of it stands in the audience already.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        uri: &str,
        trip: &Trip,
        beside: Beside<'_>,
    ) -> Result<Outcome, PeerFault> {
        if self.give_up_if_deaf() {
            // The call is made again in another session, where it is heard what comes of it.
            return Err(PeerFault::Link(LinkFault::SessionLost));
        }
        if !self.opened().is_stateless() {
            return self.call(&Say::Subscribe { uri }, &[], trip, beside).await;
        }
        trip.leaving();
        let honoured = self.listen(trip.deadline).await?;
        if honoured.contains(uri) {
            return Ok(Ok(Bytes::from_static(b"{}")));
        }
        Err(PeerFault::Surface(
            "does not tell when this resource changes".to_owned(),
        ))
    }

    /// Makes the server tell again what is followed, in a conversation that is new.
    pub(crate) async fn follow_again(self: &Arc<Self>, deadline: Instant) {
        let followed = self.audience().followed();
        if followed.is_empty() {
            return;
        }
        if self.opened().is_stateless() {
            if let Err(fault) = self.listen(deadline).await {
                tracing::warn!(%fault, "a server was not asked again to tell which resources change");
            }
            return;
        }
        for uri in followed {
            let trip = Trip::new(deadline, None);
            match self.ask(&Say::Subscribe { uri: &uri }, &[], &trip, None).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(
                    code = error.code,
                    "a server no longer tells when a resource changes"
                ),
                Err(fault) => {
                    return tracing::warn!(%fault, "a server was not asked again to tell which resources change");
                }
            }
        }
    }

    /// Makes the server tell no more of a resource that nobody follows.
    async fn unfollow(self: &Arc<Self>, uri: &str) {
        if self.opened().is_stateless() {
            let _ = self.listen(soon()).await;
            return;
        }
        let trip = Trip::new(soon(), None);
        // A server that tells of it all the same is not heard.
        let _ = self.ask(&Say::Unsubscribe { uri }, &[], &trip, None).await;
    }

    /// Opens a listening request for all that is followed, and then closes the one before (SUB-05): nothing is lost between
    /// them. Gives what the server honours.
    async fn listen(self: &Arc<Self>, deadline: Instant) -> Result<HashSet<String>, PeerFault> {
        let mut listening = self.listening().lock().await;
        let uris = self.audience().followed();
        if uris.is_empty() {
            *listening = Listening::default();
            return Ok(uris);
        }
        if uris == listening.asked && !self.audience().is_unheard() {
            return Ok(listening.honoured.clone());
        }
        let acknowledged = self.audience().acknowledged();
        let stop = CancellationToken::new();
        let wanted: Vec<String> = uris.iter().cloned().collect();
        tokio::spawn(heed(Arc::downgrade(self), wanted, stop.clone()));
        let open = stop.drop_guard();
        let until = deadline.min(Instant::now() + ACKNOWLEDGED_WITHIN);
        let honoured = tokio::time::timeout_at(until, acknowledged).await;
        let Ok(Ok(honoured)) = honoured else {
            return Err(PeerFault::Late {
                after: None,
                sent: true,
            });
        };
        let honoured: HashSet<String> = honoured.into_iter().collect();
        *listening = Listening {
            asked: uris,
            honoured: honoured.clone(),
            _open: Some(open),
        };
        Ok(honoured)
    }
}

/// Keeps one listening request open until it is stopped or the server ends it.
async fn heed(conversation: std::sync::Weak<Conversation>, uris: Vec<String>, stop: CancellationToken) {
    let Some(conversation) = conversation.upgrade() else {
        return;
    };
    let trip = Trip::new(Instant::now() + LISTEN_MAX, None);
    let say = Say::Listen { uris: &uris };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ended = conversation.ask(&say, &[], &trip, None) => {
            tracing::debug!(is_answered = ended.is_ok(), "a server ended a listening request");
            conversation.audience().is_over();
        }
    }
}

impl Peer {
    /// Tells somebody of a resource no more; the server is told when nobody follows it.
    pub fn unfollow(self: &Arc<Self>, uri: &str, hearer: &Arc<Relay>) {
        for (_, slot) in self.lanes.all() {
            if !slot.audience.unfollow(uri, hearer) {
                continue;
            }
            let uri = uri.to_owned();
            aside(async move {
                let open = slot.open.lock().await.clone();
                if let Some(conversation) = open.filter(|conversation| conversation.is_open()) {
                    conversation.unfollow(&uri).await;
                }
            });
        }
    }

    /// Whether something is followed of which nothing would be heard: its conversation has ended and is not open again yet.
    #[must_use]
    pub fn misses_followed(&self) -> bool {
        self.lanes.all().iter().any(|(_, slot)| {
            // Whoever holds it is opening it.
            let is_open = slot.open.try_lock().is_ok_and(|open| {
                let open = open.as_ref().filter(|conversation| conversation.is_open());
                open.is_some_and(|conversation| {
                    !conversation.opened().is_stateless() || !slot.audience.is_unheard()
                })
            });
            !is_open && !slot.audience.followed().is_empty()
        })
    }

    /// Opens again what has ended while something was followed in it.
    pub async fn follow_again(self: &Arc<Self>, catalog: &catalog::Catalog, deadline: Instant) {
        for (key, slot) in self.lanes.all() {
            if slot.audience.followed().is_empty() {
                continue;
            }
            let Ok(open) = slot.open.try_lock().map(|open| open.clone()) else {
                continue;
            };
            match open.filter(|conversation| conversation.is_open()) {
                Some(conversation) if conversation.opened().is_stateless() => {
                    conversation.follow_again(deadline).await;
                }
                Some(_) => {}
                None => {
                    if let Err(fault) = self.ready(&key, deadline, catalog).await {
                        tracing::warn!(upstream = %self.name, %fault, "a server whose resources are followed cannot be reached");
                    }
                }
            }
        }
    }
}
