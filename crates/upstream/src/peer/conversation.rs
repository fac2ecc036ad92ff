//! One open conversation with an MCP server: requests go out with ids of our own, and answers come back.
//!
//! It knows messages and no policy. Which conversation a call uses, and when one is opened or ended, is `peer.rs`'s; how
//! messages travel is `stream.rs`'s and `exchange.rs`'s.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wire::Profile;
use wire::client::{InputResponses, Listed, Opened, Say, Speaker, Surface};

use crate::child::{self, Child};
use crate::inquiries::Inquiries;
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::peer::asking::{Asking, Bounds, IsCancelled};
use crate::peer::exchange::Exchange;
use crate::peer::fault::PeerFault;
use crate::peer::mailbox::Outcome;
use crate::peer::overheard::Overheard;
use crate::peer::stream::Stream;
use crate::progress::Progress;

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
        bounds: Bounds,
    ) -> Self {
        Self {
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
        self.ask(say, params, trip, Some(beside)).await
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
    async fn ask(
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

    /// Ends the session where there is one. The server may not hear of it.
    pub(crate) async fn end(&self) {
        if let Link::Exchange(exchange) = &self.link
            && self.is_open()
        {
            exchange.end(self.opened.revision).await;
        }
    }
}
