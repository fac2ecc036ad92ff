//! One MCP server behind the gate: which conversation a call uses, when one is opened, listed, and ended.
//!
//! Takes only calls that were permitted and recorded. A conversation is opened when it is needed; it lists the server's
//! tools first, so that a tool that is not the approved one is not called. Who shares a conversation is the operator's
//! word, except with servers of the stateless era, which know no conversations.

mod asking;
mod audience;
mod conversation;
mod exchange;
mod fault;
mod following;
mod lanes;
mod mailbox;
mod opening;
mod overheard;
mod pipe;
mod rounds;
mod stream;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use audit::Recorded;
use bytes::Bytes;
use catalog::{Abilities, Catalog, ServerTool, Tool};
use config::{CommandSettings, ServerSettings, Sharing, Transport, UrlSettings};
use model::{Aim, Call, JsonLimits, Limits, Object, UpstreamName, Value};
use policy::Permitted;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::client::{
    Called, Carried, Ended, InputResponses, Opened, Say, ServerError, Speaker, Surface, mirrored,
};
use wire::{Identity, Profile, Retry, Revision};

use crate::child::{Children, StartFault, Yard};
use crate::credential::Needles;
use crate::fault::SendFault;
use crate::inquiries::Inquiries;
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::preview::Preview;
use crate::progress::Progress;
use crate::service::ServiceFault;
use crate::streamable::Streamable;

use asking::Bounds;
use audience::Audience;
use conversation::{Beside, Conversation};
pub use fault::PeerFault;
pub use lanes::Lane;
use lanes::{LaneKey, Lanes};
use opening::{OnStream, Opener, Wanted};
use overheard::{Asks, Guard};
use pipe::{Ear, Mouth};
use rounds::Rounds;

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

/// What a server said to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A call of a tool ended.
    Ended(Ended),
    /// A prompt, a resource or a completion came, or did not.
    Carried(Carried),
    /// With an error instead of a result.
    Error(ServerError),
}

/// What a server is and has, as it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// What it says of itself.
    pub opened: Opened,
    /// Its tools, whole.
    pub tools: Vec<Object>,
    /// Its prompts, whole.
    pub prompts: Vec<Object>,
    /// Its resources, whole.
    pub resources: Vec<Object>,
    /// Its templates of resources, whole.
    pub templates: Vec<Object>,
}

impl Survey {
    /// Whether it says that it completes arguments. In the oldest revision there is no word for it; what completes there is
    /// found out by asking.
    fn completes(&self) -> bool {
        self.opened.capabilities.contains_key("completions") || !self.opened.revision.has_completions()
    }

    /// What it says that it does beside lists and calls.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        let capabilities = &self.opened.capabilities;
        let resources = capabilities.get("resources");
        Abilities {
            completes: self.completes(),
            logs: capabilities.contains_key("logging"),
            subscribes: resources.and_then(|resources| resources.get("subscribe"))
                == Some(&Value::Bool(true)),
        }
    }

    /// What it has of a kind.
    #[must_use]
    pub fn of(&self, surface: Surface) -> &[Object] {
        match surface {
            Surface::Tools => &self.tools,
            Surface::Prompts => &self.prompts,
            Surface::Resources => &self.resources,
            Surface::Templates => &self.templates,
        }
    }
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

    /// Makes a call that was permitted and recorded.
    ///
    /// Opens a conversation where the lane has none, reads the list of tools where it is not known or has changed, and
    /// notes in the catalogue what departs from what was approved; a tool that does is not called. A session that the
    /// server has lost is opened again once; the call is made again only if it changes nothing.
    ///
    /// Dropping the future gives the call up and tells the server so; [`Trip::requests`] says whether it left.
    ///
    /// # Errors
    /// [`SendFault`]; [`SendFault::sent`] says whether the server may have acted.
    pub async fn call(
        self: &Arc<Self>,
        call: Recorded<Permitted<Call>>,
        tool: &Tool,
        lane: &Lane,
        trip: &Trip,
        progress: &Arc<Progress>,
        catalog: &Catalog,
    ) -> Result<Said, SendFault> {
        let (call, _verdict) = call.into_inner().into_parts();
        let Some(server_tool) = tool
            .server_tool()
            .filter(|_| call.upstream == self.name && call.tool == *tool.name())
        else {
            return Err(SendFault::Request(format!(
                "call {} is not for this server",
                call.id
            )));
        };
        let arguments = merged(&call);
        let say = say(server_tool, &call, &arguments);
        let params = match say {
            Say::Call { .. } => mirrored(&tool.definition().input_schema, &arguments),
            _ => Vec::new(),
        };
        progress.is_told();
        let inquiries = &lane.inquiries;
        // Whatever ends the call, nobody is asked after it.
        let _over = Over(inquiries);
        let profile = self.may_ask.and(inquiries.profile());
        let patience = inquiries.patience();
        let near = trip.deadline.checked_sub(patience).unwrap_or(trip.deadline);
        let calling = async {
            let mut may_again = !tool.class().changes_state();
            let mut answers: Option<InputResponses> = None;
            let mut rounds = Rounds {
                upstream: &self.name,
                guard: &self.opener.guard,
                inquiries,
                profile,
                revision: Revision::NEWEST_STATELESS,
                left: self.rounds_max,
                max: self.rounds_max,
            };
            loop {
                let key = self.key(lane, profile);
                let until = if rounds.left < self.rounds_max {
                    trip.deadline
                } else {
                    near
                };
                let conversation = self.ready(&key, until, catalog).await?;
                if let Some(drift) = server_tool.drift() {
                    return Err(PeerFault::Drifted(drift).into());
                }
                self.requests.fetch_add(1, Ordering::AcqRel);
                if let Some(hearer) = &lane.hearer
                    && !key.is_shared()
                    && !conversation.opened().is_stateless()
                {
                    conversation.audience().admit(hearer);
                }
                let beside = Beside {
                    progress,
                    hearer: lane.hearer.as_ref(),
                    inquiries,
                    profile,
                    answers: answers.as_ref(),
                };
                let asked = match (&say, &lane.hearer) {
                    (Say::Subscribe { uri }, Some(hearer)) => {
                        // Before the server is asked, so that nothing is missed that it tells at once.
                        conversation.audience().follow(uri, hearer);
                        conversation.follow(uri, trip, beside).await
                    }
                    _ => conversation.call(&say, &params, trip, beside).await,
                };
                match asked {
                    Ok(Ok(result)) => {
                        let revision = conversation.opened().revision;
                        let json = self.opener.bounds.json;
                        let required = match read(&say, revision, &result, json)? {
                            Said::Ended(Ended::InputRequired(required))
                            | Said::Carried(Carried::InputRequired(required)) => required,
                            said @ (Said::Ended(_) | Said::Carried(_) | Said::Error(_)) => return Ok(said),
                        };
                        if !Retry::is_on(say.method()) {
                            let what = format!("for input on `{}`, where it may not", say.method());
                            return Err(PeerFault::Asks(what).into());
                        }
                        rounds.revision = revision;
                        answers = Some(rounds.next(required).await?);
                    }
                    Ok(Err(error)) => {
                        rounds.revision = conversation.opened().revision;
                        let Some(pages) = self.wanted_first(&say, &error, &rounds)? else {
                            return Ok(Said::Error(error));
                        };
                        // The same request again: the server knows by itself what was done meanwhile.
                        if !rounds.pages(pages).await? {
                            return Ok(Said::Error(error));
                        }
                    }
                    Err(PeerFault::Link(fault)) if may_again && may_help(&fault) => may_again = false,
                    Err(fault) => return Err(fault.into()),
                }
            }
        };
        if patience.is_zero() {
            return calling.await;
        }
        tokio::select! {
            biased;
            said = calling => said,
            () = inquiries.run_out(near) => Err(PeerFault::Late {
                after: None,
                sent: trip.requests() > 0,
            }
            .into()),
        }
    }

    /// The pages that a server wants to be opened before it answers, where its error says so and they may be asked for.
    ///
    /// # Errors
    /// [`PeerFault::Lacks`], where the operator would let it ask and the client has not declared that it can be.
    fn wanted_first(
        &self,
        say: &Say<'_>,
        error: &ServerError,
        rounds: &Rounds<'_>,
    ) -> Result<Option<Vec<wire::Inquiry>>, PeerFault> {
        if !Retry::is_on(say.method()) {
            return Ok(None);
        }
        let pages = error.pages(rounds.revision);
        let needs = match &pages {
            Some(_) => Profile::URL,
            None => error.required(rounds.revision).unwrap_or_default(),
        };
        let lacks = needs.without(rounds.profile);
        if lacks.is_empty() {
            return Ok(pages);
        }
        if self.may_ask.has(needs) {
            return Err(PeerFault::Lacks(lacks));
        }
        Ok(None)
    }

    /// Holds what the server has now against what was approved, in a conversation of our own.
    ///
    /// # Errors
    /// [`PeerFault`]; nothing is noted then.
    pub async fn check(self: &Arc<Self>, catalog: &Catalog, deadline: Instant) -> Result<(), PeerFault> {
        let conversation = self.ready(&LaneKey::Own, deadline, catalog).await?;
        self.read_lists(&conversation, deadline, catalog).await
    }

    /// Waits until the server tells, in any conversation, that a list has changed. Dropping the future loses nothing.
    pub async fn changed(&self) {
        self.opener.guard.1.notified().await;
    }

    /// What the server is and has.
    ///
    /// # Errors
    /// [`PeerFault`].
    pub async fn survey(self: &Arc<Self>, deadline: Instant) -> Result<Survey, PeerFault> {
        let conversation = self.ready(&LaneKey::Own, deadline, &Catalog::default()).await?;
        Ok(Survey {
            opened: conversation.opened().clone(),
            tools: self.list(&conversation, Surface::Tools, deadline).await?,
            prompts: self.list(&conversation, Surface::Prompts, deadline).await?,
            resources: self.list(&conversation, Surface::Resources, deadline).await?,
            templates: self.templates(&conversation, deadline).await?,
        })
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

    async fn list(
        &self,
        conversation: &Conversation,
        surface: Surface,
        deadline: Instant,
    ) -> Result<Vec<Object>, PeerFault> {
        if conversation.opened().lists(surface) {
            conversation.list(surface, deadline).await
        } else {
            Ok(Vec::new())
        }
    }

    /// Its templates. Templates have no capability of their own, and a server that has only resources may not know the
    /// method.
    async fn templates(
        &self,
        conversation: &Conversation,
        deadline: Instant,
    ) -> Result<Vec<Object>, PeerFault> {
        match self.list(conversation, Surface::Templates, deadline).await {
            Err(PeerFault::NotListed { error, .. }) if error.code == -32_601 => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Reads the lists of what was approved, and notes in the catalogue what departs from it.
    async fn read_lists(
        &self,
        conversation: &Conversation,
        deadline: Instant,
        catalog: &Catalog,
    ) -> Result<(), PeerFault> {
        let asked = Instant::now();
        for surface in Surface::ALL {
            // A list of which nothing was approved is not asked for, except that of tools: it shows that the server answers.
            if surface != Surface::Tools && !self.has_approved(surface, catalog) {
                continue;
            }
            let listed = match surface {
                Surface::Templates => self.templates(conversation, deadline).await?,
                Surface::Tools | Surface::Prompts | Surface::Resources => {
                    self.list(conversation, surface, deadline).await?
                }
            };
            // HM-17: headers count over HTTP in the stateless era.
            let has_headers = matches!(self.far, Far::Url { .. }) && conversation.opened().is_stateless();
            self.compare(surface, &listed, has_headers, catalog);
        }
        conversation.is_listed(asked);
        Ok(())
    }

    fn has_approved(&self, surface: Surface, catalog: &Catalog) -> bool {
        let mut own = catalog.tools().filter(|tool| *tool.upstream() == self.name);
        own.any(|tool| tool.surface() == surface)
    }

    fn compare(&self, surface: Surface, listed: &[Object], has_headers: bool, catalog: &Catalog) {
        let by_name: HashMap<&str, &Object> = listed
            .iter()
            .filter_map(|item| Some((item.get(surface.key()).and_then(Value::as_str)?, item)))
            .collect();
        for tool in catalog.tools().filter(|tool| *tool.upstream() == self.name) {
            if let Some(offered) = tool.server_tool()
                && offered.surface() == surface
                && offered.compare(by_name.get(offered.name()).copied(), has_headers)
            {
                heard_of(tool, offered);
                catalog.tell(tool);
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

/// What a call is in the words of the protocol.
fn say<'c>(offered: &'c ServerTool, call: &'c Call, arguments: &'c Object) -> Say<'c> {
    let name = offered.name();
    if let Aim::Complete { argument, value } = &call.aim {
        return Say::Complete {
            surface: offered.surface(),
            of: name,
            argument: (argument, value),
            others: arguments,
        };
    }
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or(name);
    if call.aim == Aim::Follow {
        return Say::Subscribe { uri };
    }
    match offered.surface() {
        Surface::Tools => Say::Call { name, arguments },
        Surface::Prompts => Say::Get { name, arguments },
        Surface::Resources | Surface::Templates => Say::Read { uri },
    }
}

/// What a server said to a call.
fn read(say: &Say<'_>, revision: Revision, result: &Bytes, json: JsonLimits) -> Result<Said, SendFault> {
    match say {
        Say::Call { .. } => Called::read(revision, result, json)
            .map(Said::Ended)
            .map_err(|fault| SendFault::Unreadable(fault.to_string())),
        _ => Carried::read(revision, say.method(), result, json)
            .map(Said::Carried)
            .map_err(|fault| SendFault::Unreadable(fault.to_string())),
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

/// The end of a call, whatever brings it.
struct Over<'a>(&'a Inquiries);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the server gets: what the caller sent, and what only the operator gives.
fn merged(call: &Call) -> Object {
    let mut arguments = call.arguments.object().clone();
    for (key, value) in &call.injected {
        arguments.insert(key.clone(), value.clone());
    }
    arguments
}

/// Whether the server refused what is gone by now: a session that it forgot, a token that ended before its time.
const fn may_help(fault: &LinkFault) -> bool {
    matches!(
        fault,
        LinkFault::SessionLost | LinkFault::Unauthorized { renews: true, .. }
    )
}

fn heard_of(tool: &Tool, server_tool: &ServerTool) {
    match server_tool.drift() {
        Some(drift) => tracing::warn!(tool = %tool.name(), %drift, "a tool is held"),
        None => tracing::info!(tool = %tool.name(), "the server says again what was approved"),
    }
}

impl From<PeerFault> for SendFault {
    fn from(fault: PeerFault) -> Self {
        Self::Peer(Box::new(fault))
    }
}
