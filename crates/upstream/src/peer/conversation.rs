//! One open conversation with an MCP server: requests go out with ids of our own, and answers come back.
//!
//! It knows messages and no policy. Which conversation a call uses, and when one is opened or ended, is `peer.rs`'s; how
//! messages travel is `stream.rs`'s and `exchange.rs`'s.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wire::client::{InputResponses, Listed, Opened, Say, Speaker, Surface};
use wire::{LogFilter, LogLevel, Profile};

use crate::child::{self, Child};
use crate::inquiries::Inquiries;
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::peer::asking::{Asking, Bounds, IsCancelled};
use crate::peer::audience::Audience;
use crate::peer::exchange::Exchange;
use crate::peer::fault::PeerFault;
use crate::peer::following::Listening;
use crate::peer::mailbox::Outcome;
use crate::peer::overheard::Overheard;
use crate::peer::stream::Stream;
use crate::progress::Progress;
use crate::relay::Relay;

/// Pages of one list that are read.
const PAGES_MAX: usize = 1_000;

/// An open conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    link: Link,
    opened: Opened,
    speaker: Arc<Speaker>,
    ear: Arc<Overheard>,
    used: Mutex<Instant>,
    /// When the list of tools was asked for the last time.
    listed: Mutex<Instant>,
    /// Calls that are running on it.
    running: AtomicUsize,
    /// The child behind it, where one was started for it: it must not be stopped while a request runs.
    child: Option<Arc<Child>>,
    bounds: Bounds,
    /// Whether several callers use it.
    is_shared: bool,
    /// The listening request that is open, in the stateless era.
    listening: tokio::sync::Mutex<Listening>,
    /// What the server was told to log at least.
    log_level: Mutex<Option<LogLevel>>,
}

/// How messages travel.
#[derive(Debug)]
pub(crate) enum Link {
    /// All of them on one stream each way.
    Stream(Stream),
    /// Each request and what belongs to it in an exchange of its own.
    Exchange(Exchange),
}

/// What goes with a call beside its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub(crate) progress: &'a Arc<Progress>,
    /// Who can be asked.
    pub(crate) inquiries: &'a Arc<Inquiries>,
    /// The session that the call came in, where it has one that is told things.
    pub(crate) hearer: Option<&'a Arc<Relay>>,
    /// What of that this server may ask.
    pub(crate) profile: Profile,
    /// What the server wanted before it goes on.
    pub(crate) answers: Option<&'a InputResponses>,
}

/// A call that runs on a conversation; the conversation is not idle while one does.
pub(crate) struct Busy<'c> {
    conversation: &'c Conversation,
    _child: Option<child::Busy>,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.conversation.running.fetch_sub(1, Ordering::AcqRel);
        self.conversation.touch();
    }
}

impl Conversation {
    pub(crate) fn new(
        link: Link,
        opened: Opened,
        speaker: Arc<Speaker>,
        ear: Arc<Overheard>,
        (bounds, is_shared): (Bounds, bool),
    ) -> Self {
        Self {
            is_shared,
            log_level: Mutex::default(),
            listening: tokio::sync::Mutex::default(),
            link,
            opened,
            speaker,
            ear,
            used: Mutex::new(Instant::now()),
            listed: Mutex::new(Instant::now()),
            running: AtomicUsize::new(0),
            child: None,
            bounds,
        }
    }

    /// The same, of a child.
    pub(crate) fn of_child(self, child: Arc<Child>) -> Self {
        Self {
            child: Some(child),
            ..self
        }
    }

    /// What the server says of itself.
    pub(crate) const fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        match &self.link {
            Link::Stream(stream) => !stream.is_closed(),
            Link::Exchange(exchange) => !exchange.is_lost(),
        }
    }

    /// Whether nobody used it since `before`, and nobody does.
    pub(crate) fn is_idle_since(&self, before: Instant) -> bool {
        self.running.load(Ordering::Acquire) == 0 && *self.used() < before
    }

    /// Notes that the list of tools was read; it was asked for then.
    pub(crate) fn is_listed(&self, asked: Instant) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    }

    /// Whether the list of tools was asked for longer ago than this.
    pub(crate) fn is_list_older_than(&self, age: Duration) -> bool {
        self.listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
            > age
    }

    /// Whether a list has changed since this was asked last.
    pub(crate) fn take_stale(&self) -> bool {
        self.ear.take_stale()
    }

    /// Notes that the list has to be read again.
    pub(crate) fn make_stale(&self) {
        self.ear.make_stale();
    }

    /// Marks it as used while the value lives.
    fn busy(&self) -> Busy<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Busy {
            conversation: self,
            _child: self.child.as_ref().map(|child| child.busy()),
        }
    }

    fn touch(&self) {
        *self.used() = Instant::now();
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a tool.
    ///
    /// Dropping the future cancels the call at the server, as its era does that.
    pub(crate) async fn call(
        &self,
        say: &Say<'_>,
        params: &[(String, String)],
        trip: &Trip,
        beside: Beside<'_>,
    ) -> Result<Outcome, PeerFault> {
        self.log_from(beside.progress.relay().logs().get(), trip.deadline)
            .await;
        self.ask(say, params, trip, Some(beside)).await
    }

    /// Lets a server of the legacy era log as much as a call wants, if it logs less until now. It is never made to log less:
    /// what one does not want another may, and each gets what he wants of it.
    async fn log_from(&self, wanted: LogFilter, deadline: Instant) {
        let LogFilter::From(wanted) = wanted else { return };
        if self.opened.is_stateless() || !self.opened.capabilities.contains_key("logging") {
            return;
        }
        // Who says nothing of a level gets what a server says by itself; that is not taken from those who share it.
        let level = match self.is_shared {
            true => wanted.min(LogLevel::Info),
            false => wanted,
        };
        {
            let mut known = self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_some_and(|known| known <= level) {
                return;
            }
            *known = Some(level);
        }
        let trip = Trip::new(deadline, None);
        // Without it the call is the same; only less is heard.
        match self.ask(&Say::SetLevel(level), &[], &trip, None).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::info!(code = error.code, "a server did not take a level for its log"),
            Err(fault) => tracing::info!(%fault, "a server did not take a level for its log"),
        }
    }

    /// The listening request that is open.
    pub(crate) const fn listening(&self) -> &tokio::sync::Mutex<Listening> {
        &self.listening
    }

    /// Who hears what belongs to no call of it.
    pub(crate) fn audience(&self) -> &Arc<Audience> {
        self.ear.audience()
    }

    /// Reads a whole list.
    pub(crate) async fn list(
        &self,
        surface: Surface,
        deadline: Instant,
    ) -> Result<Vec<model::Object>, PeerFault> {
        let trip = Trip::new(deadline, None);
        let mut items: Vec<model::Object> = Vec::new();
        let mut names = std::collections::HashSet::new();
        let mut cursor: Option<String> = None;
        for _page in 0..PAGES_MAX {
            let say = Say::List {
                surface,
                cursor: cursor.as_deref(),
            };
            let outcome = self.ask(&say, &[], &trip, None).await?;
            let result = outcome.map_err(|error| PeerFault::NotListed {
                method: surface.method(),
                error,
            })?;
            let page = Listed::read(surface, &result, self.bounds.json).map_err(PeerFault::Listing)?;
            for item in page.items {
                let name = item
                    .get(surface.key())
                    .and_then(model::Value::as_str)
                    .unwrap_or_default();
                if !names.insert(name.to_owned()) {
                    let name: String = name.chars().take(128).collect();
                    return Err(PeerFault::Surface(format!("names {name:?} twice")));
                }
                items.push(item);
                if items.len() > self.bounds.items_max {
                    return Err(PeerFault::Surface(format!(
                        "has more than {} items; `limits.tools_max` allows no more",
                        self.bounds.items_max
                    )));
                }
            }
            match page.next {
                None => return Ok(items),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    return Err(PeerFault::Surface("names the same next page again".to_owned()));
                }
                Some(next) => cursor = Some(next),
            }
        }
        Err(PeerFault::Surface(format!("has more than {PAGES_MAX} pages")))
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(
        &self,
        say: &Say<'_>,
        params: &[(String, String)],
        trip: &Trip,
        beside: Option<Beside<'_>>,
    ) -> Result<Outcome, PeerFault> {
        let revision = self.opened.revision;
        // In the stateless era each request says what may be asked meanwhile (BASE-13); in the other it was said once.
        let own = beside
            .filter(|beside| self.opened.is_stateless() && !beside.profile.is_empty())
            .map(|beside| Speaker {
                identity: self.speaker.identity.clone(),
                capabilities: beside.profile.capabilities(),
            });
        let asking = Asking {
            say,
            params,
            revision,
            speaker: own.as_ref().unwrap_or(&self.speaker),
            trip,
            progress: beside.map(|beside| beside.progress),
            inquiries: beside.map(|beside| beside.inquiries),
            hearer: beside.and_then(|beside| beside.hearer),
            answers: beside.and_then(|beside| beside.answers),
        };
        let _busy = self.busy();
        match &self.link {
            Link::Stream(stream) => stream.ask(&asking, IsCancelled::Yes).await,
            Link::Exchange(exchange) => {
                let outcome = exchange
                    .ask(&asking, IsCancelled::Yes, &self.ear, &self.bounds)
                    .await;
                if matches!(&outcome, Err(PeerFault::Link(LinkFault::SessionLost))) {
                    exchange.lose();
                }
                outcome.map(|(outcome, _)| outcome)
            }
        }
    }

    /// Gives a session up in which nothing is heard any more. Whether it was one.
    pub(crate) fn give_up_if_deaf(&self) -> bool {
        match &self.link {
            Link::Exchange(exchange) if exchange.is_deaf() => {
                exchange.lose();
                true
            }
            Link::Exchange(_) | Link::Stream(_) => false,
        }
    }

    /// Ends the session where there is one. The server may not hear of it.
    pub(crate) async fn end(&self) {
        *self.listening.lock().await = Listening::default();
        if let Link::Exchange(exchange) = &self.link
            && self.is_open()
        {
            exchange.end(self.opened.revision).await;
        }
    }
}
