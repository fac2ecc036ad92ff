//! One MCP server behind the gate: which conversation a call uses, when one is opened, listed, and ended.
//!
//! Takes only calls that were permitted and recorded. A conversation is opened when it is needed; it lists the server's
//! tools first, so that a tool that is not the approved one is not called. Who shares a conversation is the operator's
//! word, except with servers of the stateless era, which know no conversations.

mod asking;
mod audience;
mod calling;
mod conversation;
mod exchange;
mod fault;
mod following;
mod lanes;
mod lists;
mod mailbox;
mod opening;
mod overheard;
mod pipe;
mod rounds;
mod stream;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use catalog::{Catalog, ServerTool};
use config::{CommandSettings, ServerSettings, Sharing, Transport, UrlSettings};
use model::{Call, Limits, Object, UpstreamName};
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::client::{Speaker, Surface};
use wire::{Identity, Profile, Revision};

use crate::child::{Children, StartFault, Yard};
use crate::credential::Needles;
use crate::fault::SendFault;
use crate::preview::Preview;
use crate::service::ServiceFault;
use crate::streamable::Streamable;

use asking::Bounds;
use audience::Audience;
pub use calling::Said;
use calling::merged;
use conversation::Conversation;
pub use fault::PeerFault;
pub use lanes::Lane;
use lanes::{LaneKey, Lanes};
pub use lists::Survey;
use opening::{OnStream, Opener, Wanted};
use overheard::{Asks, Guard};
use pipe::{Ear, Mouth};

/// An MCP server.
#[derive(Debug)]
pub struct Peer {
    name: UpstreamName,
    far: Far,
    sharing: Sharing,
    /// What the operator lets it ask.
    may_ask: Profile,
    rounds_max: usize,
    opener: Opener,
    idle_stop: Duration,
    list_age_max: Duration,
    lanes: Lanes,
    /// The revision that the server was found to speak the last time.
    known: Mutex<Option<Revision>>,
    requests: AtomicU64,
    closing: CancellationToken,
    sweeping: std::sync::Once,
}

/// How it is reached.
#[derive(Debug)]
enum Far {
    /// Children, once somebody has approved what is started.
    Command {
        yard: Yard,
        settings: Box<CommandSettings>,
        children: Box<OnceLock<Children>>,
    },
    Url {
        link: Streamable,
        transport: Transport,
        url: String,
    },
}

impl Peer {
    /// A server at a URL; connects to nothing.
    ///
    /// # Errors
    /// [`ServiceFault`], with the key of the configuration.
    pub fn at_url(
        settings: &ServerSettings,
        url: &UrlSettings,
        identity: Identity,
        limits: &Limits,
    ) -> Result<Self, ServiceFault> {
        let link = Streamable::new(&settings.name, url, limits)?;
        let endpoint = link.endpoint().clone();
        let guard = Guard(Arc::new(move |bytes| endpoint.reveals(bytes)), Arc::default());
        let far = Far::Url {
            link,
            transport: url.transport,
            url: url.url.clone(),
        };
        let idle_stop = limits.session_idle_timeout;
        Ok(Self::of(settings, (far, guard, idle_stop), identity, limits))
    }

    /// A server that is started; nothing is before [`Self::permit`] says that somebody approved it.
    #[must_use]
    pub fn started(
        settings: &ServerSettings,
        command: &CommandSettings,
        yard: &Yard,
        identity: Identity,
        limits: &Limits,
    ) -> Self {
        let secrets: Vec<&str> = command
            .env
            .iter()
            .filter(|(name, _)| command.secrets.contains(name))
            .map(|(_, value)| value.expose_secret())
            .collect();
        let needles = Needles::of(&secrets);
        let guard = Guard(Arc::new(move |bytes| needles.are_in(bytes)), Arc::default());
        let far = Far::Command {
            yard: yard.clone(),
            settings: Box::new(command.clone()),
            children: Box::default(),
        };
        Self::of(settings, (far, guard, command.idle_stop), identity, limits)
    }

    /// Lets the program of a server that is started run: somebody approved its command line.
    pub fn permit(&self, program: PathBuf) {
        if let Far::Command {
            yard,
            settings,
            children,
        } = &self.far
        {
            children.get_or_init(|| Children::new(yard, self.name.clone(), program, (**settings).clone()));
        }
    }

    fn of(
        settings: &ServerSettings,
        (far, guard, idle_stop): (Far, Guard, Duration),
        identity: Identity,
        limits: &Limits,
    ) -> Self {
        let wanted = settings
            .revision
            .as_deref()
            .and_then(Revision::parse)
            .map_or(Wanted::Any, Wanted::Only);
        Self {
            lanes: Lanes::new(limits.upstream_sessions_max, &guard.1),
            name: settings.name.clone(),
            far,
            sharing: settings.sharing,
            may_ask: may_ask(settings),
            rounds_max: limits.ask_rounds_max,
            opener: Opener {
                speaker: Arc::new(Speaker {
                    identity,
                    // Whoever asks on his own account can be asked nothing (HOP-06).
                    capabilities: Object::new(),
                }),
                wanted,
                bounds: Bounds::of(limits),
                guard,
                asks: Asks {
                    upstream: settings.name.clone(),
                    profile: Profile::NONE,
                },
                audience: Arc::default(),
                is_shared: false,
                probe_timeout: limits.upstream_probe_timeout,
            },
            idle_stop,
            list_age_max: limits.upstream_list_age_max,
            known: Mutex::default(),
            requests: AtomicU64::new(0),
            closing: CancellationToken::new(),
            sweeping: std::sync::Once::new(),
        }
    }

    /// The name of the upstream.
    #[must_use]
    pub const fn name(&self) -> &UpstreamName {
        &self.name
    }

    /// What the operator lets it ask of callers.
    #[must_use]
    pub const fn may_ask(&self) -> Profile {
        self.may_ask
    }

    /// How many calls may have left since it was set up.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Acquire)
    }

    /// Whether bytes repeat a credential of this server.
    #[must_use]
    pub fn reveals(&self, bytes: &[u8]) -> bool {
        (self.opener.guard.0)(bytes)
    }

    /// What would be sent for a call, for people.
    #[must_use]
    pub fn preview(&self, tool: &ServerTool, call: &Call) -> Preview {
        let arguments = merged(call);
        let (method_of_mcp, params) = match tool.surface() {
            Surface::Tools => (
                "tools/call",
                json!({ "name": tool.name(), "arguments": arguments }),
            ),
            Surface::Prompts => (
                "prompts/get",
                json!({ "name": tool.name(), "arguments": arguments }),
            ),
            Surface::Resources | Surface::Templates => {
                ("resources/read", json!({ "uri": arguments.get("uri") }))
            }
        };
        let (method, url) = match &self.far {
            Far::Command { settings, .. } => ("to standard input of".to_owned(), settings.command.join(" ")),
            Far::Url { url, .. } => ("POST".to_owned(), url.clone()),
        };
        Preview {
            method,
            url,
            headers: Vec::new(),
            credential: None,
            body: Some(json!({ "method": method_of_mcp, "params": params }).to_string()),
        }
    }

    /// Ends every conversation, and with them what was started; opens no more.
    pub async fn close(&self) {
        self.closing.cancel();
        for slot in self.lanes.drain() {
            if let Some(conversation) = slot.open.lock().await.take() {
                conversation.end().await;
            }
        }
    }

    fn key(&self, lane: &Lane, profile: Profile) -> LaneKey {
        let is_stateless = self.known().is_some_and(|revision| !revision.has_sessions());
        LaneKey::of(lane, self.sharing, is_stateless, profile)
    }

    /// The open conversation of a lane, with a list of tools that is neither known to have changed nor too old: servers of
    /// the stateless era do not tell when theirs changes, and others may forget to.
    async fn ready(
        self: &Arc<Self>,
        key: &LaneKey,
        deadline: Instant,
        catalog: &Catalog,
    ) -> Result<Arc<Conversation>, PeerFault> {
        if self.closing.is_cancelled() {
            return Err(PeerFault::Closing);
        }
        let slot = self.lanes.slot(key)?;
        let late = PeerFault::Late {
            after: None,
            sent: false,
        };
        let mut open = tokio::time::timeout_at(deadline, slot.open.lock())
            .await
            .map_err(|_| late)?;
        if let Some(conversation) = open.as_ref().filter(|conversation| conversation.is_open()) {
            let conversation = Arc::clone(conversation);
            if conversation.take_stale() || conversation.is_list_older_than(self.list_age_max) {
                let read = self.read_lists(&conversation, deadline, catalog).await;
                if let Err(fault) = read {
                    // What has changed and could not be read is asked again by the next call.
                    conversation.make_stale();
                    return Err(fault.unsent());
                }
            }
            return Ok(conversation);
        }
        *open = None;
        let opened = self
            .open((key, &slot.audience), deadline)
            .await
            .map_err(PeerFault::unsent);
        let conversation = match opened {
            Ok(conversation) => Arc::new(conversation),
            Err(fault) => {
                self.lanes.forget(key, &slot);
                return Err(fault);
            }
        };
        *self.known() = Some(conversation.opened().revision);
        self.read_lists(&conversation, deadline, catalog)
            .await
            .map_err(PeerFault::unsent)?;
        conversation.follow_again(deadline).await;
        *open = Some(Arc::clone(&conversation));
        if !conversation.opened().revision.has_sessions() && *key != LaneKey::Own {
            self.lanes.is_everybodys(key, &slot);
        }
        self.sweep();
        Ok(conversation)
    }

    async fn open(
        &self,
        (key, audience): (&LaneKey, &Arc<Audience>),
        deadline: Instant,
    ) -> Result<Conversation, PeerFault> {
        let known = *self.known();
        let opener = self.opener.with(key.profile(), (audience, key.is_shared()));
        match &self.far {
            Far::Command { children, .. } => match children.get() {
                Some(children) => {
                    let whose = (&opener, &*key.to_string());
                    self.open_child(children, whose, known, deadline).await
                }
                None => Err(PeerFault::Unapproved(self.name.clone())),
            },
            Far::Url { link, transport, .. } => opener.at_url(link, *transport, known, deadline).await,
        }
    }

    /// Starts a child and opens a conversation with it. An old server that does not bear the probe gets another child, to
    /// which nothing is said before `initialize` (LIFE-D09).
    async fn open_child(
        &self,
        children: &Children,
        (opener, caller): (&Opener, &str),
        known: Option<Revision>,
        deadline: Instant,
    ) -> Result<Conversation, PeerFault> {
        let mut first = opener.first(known);
        loop {
            let late = PeerFault::Late {
                after: None,
                sent: false,
            };
            // A probe may be the end of an old server; that is no failure of it, and the next child does not wait for it.
            let probes = first == Wanted::Any;
            let whose = if probes {
                format!("{caller}, probed")
            } else {
                caller.to_owned()
            };
            let started = tokio::time::timeout_at(deadline, children.start(&whose)).await;
            let mut child = match started.map_err(|_| late)? {
                Err(StartFault::Waiting { .. }) if probes => {
                    first = Wanted::Only(Revision::NEWEST_WITH_SESSIONS);
                    continue;
                }
                started => started?,
            };
            let until = deadline.min(child.start_deadline());
            let sender = child.sender();
            let Some(receiver) = child.receiver() else {
                return Err(PeerFault::Ended { sent: false });
            };
            let child = Arc::new(child);
            let pipe = (Mouth::Child(sender), Ear::Child(receiver, Arc::clone(&child)));
            match opener.on_stream(pipe, first, until).await? {
                OnStream::Open(conversation) => {
                    child.answered();
                    return Ok(conversation.of_child(child));
                }
                OnStream::Old => first = Wanted::Only(Revision::NEWEST_WITH_SESSIONS),
            }
        }
    }

    /// Starts the task that ends idle conversations, once. It ends with the peer.
    fn sweep(self: &Arc<Self>) {
        let (own, every, closing) = (Arc::downgrade(self), self.idle_stop, self.closing.clone());
        self.sweeping.call_once(|| {
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        () = closing.cancelled() => return,
                        () = tokio::time::sleep(every / 4) => {}
                    }
                    let Some(peer) = Weak::upgrade(&own) else { return };
                    peer.end_idle().await;
                }
            });
        });
    }

    async fn end_idle(&self) {
        let Some(before) = Instant::now().checked_sub(self.idle_stop) else {
            return;
        };
        for (key, slot) in self.lanes.all() {
            // Whoever holds it is opening or about to call.
            let Ok(mut open) = slot.open.try_lock() else {
                continue;
            };
            let is_over = open
                .as_ref()
                .is_none_or(|conversation| !conversation.is_open() || conversation.is_idle_since(before));
            // What is followed is use.
            let is_over = is_over && slot.audience.followed().is_empty();
            if is_over {
                let ended = open.take();
                drop(open);
                self.lanes.forget(&key, &slot);
                if let Some(conversation) = ended {
                    conversation.end().await;
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Revision>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the operator lets a server ask, with all that belongs to it.
fn may_ask(settings: &ServerSettings) -> Profile {
    let kinds = settings.may_ask.iter().map(|kind| match kind {
        config::Asks::Elicitation => Profile::FORM.or(Profile::URL),
        config::Asks::Sampling => Profile::SAMPLING.or(Profile::TOOLS),
        config::Asks::Roots => Profile::ROOTS,
    });
    kinds.fold(Profile::NONE, Profile::or)
}

impl From<PeerFault> for SendFault {
    fn from(fault: PeerFault) -> Self {
        Self::Peer(Box::new(fault))
    }
}
