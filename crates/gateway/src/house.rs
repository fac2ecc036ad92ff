//! The gateway: everything that a call needs on its way, put together once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use audit::Ledger;
use catalog::Catalog;
use jiff::Timestamp;
use model::{Limits, ToolName, UpstreamName};
use policy::Policy;
use tokio::time::Instant;
use upstream::{Far, Inquiries, Peer};
use wire::Profile;
use wire::answer::Server;

use crate::arguments::{SchemaFault, Schemas};
use crate::facts::{FactsFault, Lookups, Sources};
use crate::mount::Mount;
use crate::news::News;
use crate::pages::Pages;
use crate::parks::Parks;
use crate::rows::Rows;
use crate::session::Sessions;
use crate::slots::Slots;
use crate::stranger::Strangers;

/// How long MCP servers may take to be looked at.
const WATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a server that departs from what was approved is looked at, at most.
const WATCH_EVERY_MIN: Duration = Duration::from_millis(100);

/// What a gateway is made of.
pub struct Parts {
    /// The reviewed tools.
    pub catalog: Catalog,
    /// The rules, loaded against exactly these tools.
    pub policy: Policy,
    /// The open ledger.
    pub ledger: Ledger,
    /// The upstreams behind the tools, by name.
    pub upstreams: HashMap<UpstreamName, Far>,
    /// The open sources of facts.
    pub sources: Sources,
    /// The limits in force.
    pub limits: Limits,
    /// Who answers.
    pub server: Server,
    /// The time. Passed in, so that a test can choose it.
    pub clock: Clock,
}

/// A source of the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The gateway.
pub struct Gateway {
    pub(crate) catalog: Catalog,
    pub(crate) policy: Policy,
    pub(crate) ledger: Ledger,
    pub(crate) upstreams: HashMap<UpstreamName, Far>,
    pub(crate) lookups: Lookups,
    pub(crate) schemas: Schemas,
    pub(crate) rows: HashMap<ToolName, Rows>,
    pub(crate) pages: HashMap<ToolName, Pages>,
    pub(crate) limits: Limits,
    pub(crate) slots: Slots,
    pub(crate) subscriptions: Slots,
    pub(crate) news: News,
    pub(crate) strangers: Strangers,
    pub(crate) clock: Clock,
    server: Server,
    sessions: Sessions,
    parks: Parks,
    /// What any of the upstreams may ask.
    may_ask: Profile,
}

/// Why parts do not make a gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayFault {
    /// A schema of a tool cannot be compiled.
    #[error("{0}")]
    Schema(#[from] SchemaFault),
    /// A look-up of a tool cannot work.
    #[error("{0}")]
    Facts(#[from] FactsFault),
    /// The path to rows, or to the owner in a row, is none.
    #[error("`{key}.rows`: {why}")]
    Rows {
        /// The tool's key in the configuration.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// The path to the rows of a page, or to the name of the next one, is none.
    #[error("`{key}.pages`: {why}")]
    Pages {
        /// The tool's key in the configuration.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A tool whose upstream is not there.
    #[error("the upstream `{upstream}` of the tool `{tool}` is not there")]
    Upstream {
        /// The tool.
        tool: ToolName,
        /// Its upstream.
        upstream: UpstreamName,
    },
}

impl Gateway {
    /// Puts the parts together; whatever can be compiled or parsed is, so that no call finds it broken.
    ///
    /// # Errors
    /// [`GatewayFault`].
    pub fn new(parts: Parts) -> Result<Self, GatewayFault> {
        let schemas = Schemas::of(&parts.catalog)?;
        let news = News::new();
        let teller = news.sender();
        // Without a listener there is nobody to tell.
        parts
            .catalog
            .on_news(move |tool| drop(teller.send(Arc::clone(tool))));
        let lookups = Lookups::of(&parts.catalog, parts.sources)?;
        let mut rows = HashMap::new();
        let mut pages = HashMap::new();
        for tool in parts.catalog.tools() {
            if !parts.upstreams.contains_key(tool.upstream()) {
                return Err(GatewayFault::Upstream {
                    tool: tool.name().clone(),
                    upstream: tool.upstream().clone(),
                });
            }
            if let Some(settings) = &tool.bounds().rows {
                let parsed = Rows::parse(settings).map_err(|fault| GatewayFault::Rows {
                    key: tool.bounds().key.clone(),
                    why: fault.to_string(),
                })?;
                rows.insert(tool.name().clone(), parsed);
            }
            if let Some(settings) = &tool.bounds().pages {
                let parsed = Pages::parse(settings).map_err(|fault| GatewayFault::Pages {
                    key: tool.bounds().key.clone(),
                    why: fault.to_string(),
                })?;
                pages.insert(tool.name().clone(), parsed);
            }
        }
        Ok(Self {
            schemas,
            lookups,
            rows,
            pages,
            slots: Slots::new(&parts.limits),
            subscriptions: Slots::of_subscriptions(&parts.limits),
            news,
            strangers: Strangers::new(),
            sessions: Sessions::new(&parts.limits),
            parks: Parks::new(&parts.limits),
            may_ask: parts
                .upstreams
                .values()
                .filter_map(Far::peer)
                .fold(Profile::NONE, |all, peer| all.or(peer.may_ask())),
            catalog: parts.catalog,
            policy: parts.policy,
            ledger: parts.ledger,
            upstreams: parts.upstreams,
            limits: parts.limits,
            server: parts.server,
            clock: parts.clock,
        })
    }

    /// The reviewed tools.
    #[must_use]
    pub const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The rules.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The open sessions.
    #[must_use]
    pub const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The calls that wait for answers of their clients.
    #[must_use]
    pub const fn parks(&self) -> &Parks {
        &self.parks
    }

    /// What the servers behind this gate can ask a caller on this endpoint, who declared this much. It is the same for
    /// every tool, so that the way of an answer does not tell which tools there are.
    #[must_use]
    pub fn inquiries(&self, mount: &Mount, declared: Profile) -> Arc<Inquiries> {
        let profile = self.may_ask.and(declared);
        Arc::new(Inquiries::of(profile, mount.shows_several(), &self.limits))
    }

    /// The limits in force.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Who answers.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// The ledger.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How many requests of an upstream may have left; `None` if there is no such upstream.
    #[must_use]
    pub fn requests(&self, upstream: &UpstreamName) -> Option<u64> {
        self.upstreams.get(upstream).map(Far::requests)
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Looks at every MCP server once, and from then on at each that tells that a list has changed, so that clients hear of it, and
    /// at those that depart from what was approved, or of which somebody follows a resource and hears nothing: nobody calls their held
    /// tools, so that nobody else would see that they are as they were. Never ends; drop it to stop.
    ///
    /// A server that cannot be reached is told in the log, and stands in nobody's way.
    pub async fn watch_servers(&self) {
        self.check_servers(|_| true).await;
        let told = self.upstreams.values().filter_map(Far::peer).map(|peer| async {
            loop {
                peer.changed().await;
                self.check_servers(|other| Arc::ptr_eq(peer, other)).await;
                // A server that tells of nothing else does not keep us at it.
                tokio::time::sleep(WATCH_EVERY_MIN).await;
            }
        });
        let by_time = async {
            loop {
                tokio::time::sleep(apart(self.limits.upstream_list_age_max.max(WATCH_EVERY_MIN))).await;
                self.check_servers(|peer| self.has_drift(peer.name()) || peer.misses_followed())
                    .await;
            }
        };
        tokio::join!(futures_util::future::join_all(told), by_time);
    }

    /// Holds what some MCP servers have now against what was approved.
    async fn check_servers(&self, which: impl Fn(&Arc<Peer>) -> bool) {
        let deadline = Instant::now() + WATCH_TIMEOUT;
        let peers = self.upstreams.values().filter_map(Far::peer);
        let checks = peers.filter(|peer| which(peer)).map(|peer| async move {
            if let Err(fault) = peer.check(&self.catalog, deadline).await {
                tracing::warn!(upstream = %peer.name(), %fault, "the server could not be looked at");
            }
            peer.follow_again(&self.catalog, deadline).await;
        });
        futures_util::future::join_all(checks).await;
    }

    fn has_drift(&self, upstream: &UpstreamName) -> bool {
        let mut own = self.catalog.tools().filter(|tool| tool.upstream() == upstream);
        own.any(|tool| tool.server_tool().is_some_and(|tool| tool.drift().is_some()))
    }

    /// Ends every conversation with an MCP server, and what was started for it.
    pub async fn close_servers(&self) {
        let peers = self.upstreams.values().filter_map(Far::peer);
        futures_util::future::join_all(peers.map(|peer| peer.close())).await;
    }

    /// Takes no new calls; those that run go on. Those that wait for their clients to come back are given up: nobody can
    /// come back any more.
    pub fn drain(&self) {
        self.slots.close();
        self.subscriptions.close();
        self.parks.close();
    }

    /// Waits until no call runs, at most until `deadline`; gives how many still do.
    pub async fn drained(&self, deadline: Instant) -> usize {
        // Calls end in other tasks, and nothing waits for their number but this; a short look now and then will do.
        while self.slots.running() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.slots.running()
    }
}

/// A time, up to a quarter longer: gates that were started together do not ask together (CACHE-03).
fn apart(time: Duration) -> Duration {
    let mut random = [0_u8];
    // Without randomness they do.
    let _ = getrandom::fill(&mut random);
    time + time.mul_f64(f64::from(u8::from_le_bytes(random)) / 1_024.0)
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("tools", &self.catalog.tools().len())
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
