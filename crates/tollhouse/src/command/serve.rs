//! `tollhouse serve`: the gate, until it is told to close.

use std::sync::Arc;
use std::time::Duration;

use config::Settings;
use gateway::{Gateway, Mount};
use identity::{ResourceMetadata, Tokens, configured};
use server::{Door, DoorParts, Face, FaceOptions, KeySetKeeper, Listener, Neighbours, stdio};
use store::Store;
use tokio_util::sync::CancellationToken;
use upstream::Yard;

use crate::cli::Serve;
use crate::directory::StoredKeys;
use crate::failure::Failure;
use crate::house::command_line;
use crate::house::document::Reach;
use crate::print::say;
use crate::problem::Problem;
use crate::{house, log};

/// How often key sets are looked at that may need fetching.
const KEY_SETS_EVERY: Duration = Duration::from_secs(30);

/// The path of the endpoint.
const PATH: &str = "/mcp";

pub(crate) async fn serve(args: Serve) -> Result<(), Failure> {
    let mut reviewed = super::review_approved(&args.path, Reach::Configured).await?;
    log::start(reviewed.settings.log);
    for warning in &reviewed.warnings {
        tracing::warn!("{warning}");
    }
    let shutdown = CancellationToken::new();
    spawn_signals(shutdown.clone());
    if args.stdio {
        return serve_stdio(reviewed, shutdown).await;
    }
    if let Some(listen) = args.listen {
        reviewed.settings.listen = listen;
    }
    let listener = listen(&mut reviewed.settings).await?;
    let open = Open::new(reviewed, "serve").await?;
    let face = open.face(&listener, &shutdown).await?;
    look_at_servers(&open.gateway);
    say!("listening on http://{}{PATH}", listener.address());
    tracing::info!(
        resource = %open.settings.resource,
        tools = open.gateway.catalog().tools().len(),
        held = open.gateway.catalog().held(),
        policy = %open.gateway.policy().version().short(),
        ledger_key = %open.gateway.ledger().public_key(),
        "the gate is open"
    );
    let cut_off = listener.serve(face, shutdown).await;
    if cut_off > 0 {
        tracing::warn!(cut_off, "calls were still running at the end of `drain_timeout`");
    }
    open.close().await
}

async fn serve_stdio(reviewed: house::Reviewed, shutdown: CancellationToken) -> Result<(), Failure> {
    let Some(setting) = reviewed.settings.stdio.clone() else {
        let text = "stdio has no caller; add `[stdio]` with `caller = \"NAME\"`";
        return Err(Failure::Problems(vec![Problem::at(
            &reviewed.settings,
            "stdio",
            "configuration",
            text,
        )]));
    };
    let caller = house::caller(&reviewed.settings, setting.caller.as_str())?;
    let open = Open::new(reviewed, "stdio").await?;
    let principal = Arc::new(configured(&caller));
    look_at_servers(&open.gateway);
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let mount = setting.upstream.map_or(Mount::All, Mount::Upstream);
    let ended = stdio(
        Arc::clone(&open.gateway),
        (principal, mount),
        input,
        output,
        shutdown,
    )
    .await;
    let closed = open.close().await;
    match ended {
        Ok(()) => closed,
        Err(fault) => Err(Failure::Unavailable(fault.to_string())),
    }
}

/// Looks at the MCP servers in the background, until the process ends: what they have now against what was approved.
fn look_at_servers(gateway: &Arc<Gateway>) {
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move { gateway.watch_servers().await });
}

/// Binds the address and lets the settings follow it, where it asked for any free port.
pub(crate) async fn listen(settings: &mut Settings) -> Result<Listener, Failure> {
    let listener = Listener::bind(settings.listen)
        .await
        .map_err(|fault| Failure::Unavailable(fault.to_string()))?;
    settings.listening_on(listener.address());
    Ok(listener)
}

/// A house with open doors: store, ledger, sources, gateway.
pub(crate) struct Open {
    pub(crate) settings: Settings,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) store: Store,
    yard: Yard,
}

impl Open {
    pub(crate) async fn new(reviewed: house::Reviewed, role: &str) -> Result<Self, Failure> {
        // Sources first: a fault there leaves no trace in the ledger.
        let sources = house::sources(&reviewed.settings)
            .await
            .map_err(Failure::Problems)?;
        let store = house::store(&reviewed.settings).await?;
        for told in command_line::permit(&reviewed.settings, &store, &reviewed.upstreams).await? {
            tracing::warn!("{told}");
        }
        let yard = reviewed.yard.clone();
        let ledger = house::ledger(&reviewed.settings, &store, role).await?;
        let (settings, gateway) = house::gateway(reviewed, ledger, sources)?;
        Ok(Self {
            settings,
            gateway,
            store,
            yard,
        })
    }

    /// The HTTP face, with everything that it follows in the background until `shutdown`.
    pub(crate) async fn face(
        &self,
        listener: &Listener,
        shutdown: &CancellationToken,
    ) -> Result<Face, Failure> {
        let settings = &self.settings;
        let keys = if settings.identity.api_keys {
            let interval = settings.limits.keys_refresh_interval;
            let callers = house::callers(settings, identity::ISSUER_OF_KEYS);
            let keys = StoredKeys::open(self.store.clone(), callers, interval)
                .await
                .map_err(|fault| Failure::Unavailable(format!("the API keys cannot be read: {fault}")))?;
            tokio::spawn(Arc::clone(&keys).follow(shutdown.clone()));
            Some(keys)
        } else {
            None
        };
        let key_sets = Arc::new(house::key_sets(settings)?);
        tokio::spawn(follow_key_sets(Arc::clone(&key_sets), shutdown.clone()));
        let issuers = house::issuers(settings);
        let metadata = ResourceMetadata {
            resource_name: Some("Tollhouse".to_owned()),
            ..ResourceMetadata::new(
                settings.resource.clone(),
                issuers.iter().map(|issuer| issuer.issuer.clone()).collect(),
            )
        };
        let base = settings.public_url.as_str().trim_end_matches('/');
        let scopes: Vec<String> = issuers
            .iter()
            .flat_map(|issuer| issuer.scopes_required.clone())
            .collect();
        let door = Door::new(DoorParts {
            keys: keys.map(|keys| keys as Arc<dyn identity::KeyDirectory>),
            tokens: Tokens::new(issuers, &settings.limits),
            key_sets,
            metadata_url: metadata_url(base),
            metadata,
            scope: (!scopes.is_empty()).then(|| scopes.join(" ")),
            clock: Arc::new(jiff::Timestamp::now),
        });
        let neighbours = Neighbours::new(
            listener.address(),
            &settings.public_url,
            &settings.allowed_hosts,
            &settings.allowed_origins,
        );
        Ok(Face::new(FaceOptions {
            gateway: Arc::clone(&self.gateway),
            door,
            neighbours,
            path: PATH.to_owned(),
            mounts: mounts(settings),
        }))
    }

    /// Closes ledger and store, in this order.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.gateway.close_servers().await;
        self.yard.close().await;
        let closed = self.gateway.ledger().clone().close().await;
        self.store.close().await;
        closed.map_err(|fault| Failure::Unavailable(format!("the ledger did not close: {fault}")))
    }
}

/// The endpoints that show a part: one for each upstream, one for each view.
fn mounts(settings: &Settings) -> Vec<(String, Mount)> {
    let of_documents = settings.upstreams.iter().map(|upstream| &upstream.name);
    let of_servers = settings.servers.iter().map(|server| &server.name);
    let upstreams = of_documents
        .chain(of_servers)
        .map(|name| (format!("/{name}"), Mount::Upstream(name.clone())));
    let views = settings.views.iter().map(|view| {
        let mount = Mount::View(Arc::new(view.tools.clone()));
        (format!("/view/{}", view.name), mount)
    });
    upstreams.chain(views).collect()
}

/// RFC 9728 section 3.1: the well-known part goes between host and path of the resource.
fn metadata_url(public_url: &str) -> String {
    const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
    let host_ends = public_url.find("://").map_or(0, |at| at + 3);
    let path_begins = public_url
        .get(host_ends..)
        .and_then(|rest| rest.find('/'))
        .map_or(public_url.len(), |at| host_ends + at);
    let (host, path) = public_url.split_at(path_begins);
    format!("{host}{WELL_KNOWN}{path}{PATH}")
}

async fn follow_key_sets(keeper: Arc<KeySetKeeper>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(KEY_SETS_EVERY);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => keeper.refresh_aged().await,
        }
    }
}

/// The first signal closes in order, the second at once.
pub(crate) fn spawn_signals(shutdown: CancellationToken) {
    // One listener for both: a second signal that follows at once is not missed between them. It listens from here on, and not
    // from when the task first runs: until then a signal would end the process on the spot.
    let Some(mut signals) = Signals::listen() else {
        return;
    };
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("closing; a second signal closes at once");
        shutdown.cancel();
        signals.next().await;
        std::process::exit(130);
    });
}

/// Interrupts, and requests to end.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// `None`: there will be none.
    fn listen() -> Option<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Some(Self {
            interrupt: signal(SignalKind::interrupt()).ok()?,
            terminate: signal(SignalKind::terminate()).ok()?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Interrupts.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    const fn listen() -> Option<Self> {
        Some(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // There will be none.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_02_the_metadata_stands_between_host_and_path() {
        for (public, expected) in [
            (
                "http://127.0.0.1:7300",
                "http://127.0.0.1:7300/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://example.com/gate",
                "https://example.com/.well-known/oauth-protected-resource/gate/mcp",
            ),
        ] {
            assert_eq!(metadata_url(public), expected);
        }
    }
}
