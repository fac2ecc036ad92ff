//! The service of the worked example: invoices of two tenants over HTTP on loopback, with SQLite inside.
//!
//! It plays the API that stands behind a gateway. It trusts its one service credential and decides nothing about
//! people: whoever holds the credential reads and changes the invoices of every tenant. All data is invented.
//! Read first: [`start`], then `openapi.yaml`, which is the contract that `operation.rs` serves.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

mod count;
mod database;
mod door;
mod invoice;
mod operation;
mod payment;
mod problem;
mod report;
mod seed;
mod service;
mod tenant;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use operation::Operation;
use service::Service;

/// The contract of the service: OpenAPI 3.1 in YAML.
pub const OPENAPI: &str = include_str!("../openapi.yaml");

/// The reviewed configuration of the gate in front of the service, as TOML. It names [`URL_VARIABLE`],
/// [`DATABASE_VARIABLE`] and [`TOKEN_VARIABLE`].
pub const CONFIG: &str = include_str!("../tollhouse.toml");

/// The rules that the configuration expects as `policy/invoices.cedar`.
pub const POLICY: &str = include_str!("../policy/invoices.cedar");

/// The environment variable from which [`CONFIG`] takes the address of the service, as `http://127.0.0.1:7310`.
pub const URL_VARIABLE: &str = "INVOICES_URL";

/// The environment variable from which [`CONFIG`] takes the directory, as `sqlite:/path/to/invoices.db`.
pub const DATABASE_VARIABLE: &str = "INVOICES_DATABASE";

/// The environment variable from which [`CONFIG`] and the command take the service credential.
pub const TOKEN_VARIABLE: &str = "INVOICES_TOKEN";

/// How to start the service.
///
/// It has no `Debug`, because it holds the credential.
pub struct Options {
    /// Where to listen. Only loopback is accepted; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The database file. It is made where it is missing, and filled afresh at each start; a file that is not an
    /// invoice database is refused. A gate may read it for owners and members while the service runs.
    pub database: PathBuf,
    /// The bearer token that every request under `/v1` must bring.
    pub credential: String,
    /// How long a report takes from start to `done`. Zero: it is done when it is first asked for.
    pub report_duration: Duration,
    /// A fault to test a gate with: `listInvoices` then ignores its tenant and gives every tenant's rows.
    pub list_ignores_tenant: bool,
}

impl Options {
    /// The usual service: a free port on 127.0.0.1, reports that take two seconds, no faults.
    #[must_use]
    pub fn new(database: impl Into<PathBuf>, credential: impl Into<String>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            database: database.into(),
            credential: credential.into(),
            report_duration: Duration::from_secs(2),
            list_ignores_tenant: false,
        }
    }
}

/// A running service. Dropped without [`Running::stop`], it stops taking connections and its requests are cut off.
#[must_use]
pub struct Running {
    address: SocketAddr,
    service: Arc<Service>,
    closing: CancellationToken,
    server: Option<JoinHandle<std::io::Result<()>>>,
}

/// Starts the service and returns once it listens.
///
/// # Errors
/// An address that is not loopback or not free; a database file that cannot be made or is not ours; an empty
/// credential.
///
/// # Cancellation
/// Dropped before it returns, it may leave a filled database file behind, and nothing else.
pub async fn start(options: Options) -> anyhow::Result<Running> {
    if !options.listen.ip().is_loopback() {
        bail!(
            "listen address `{}` is not loopback; this service is synthetic and stays on this machine, as 127.0.0.1:0",
            options.listen
        );
    }
    if options.credential.is_empty() {
        bail!("the service credential is empty; choose any text, as `synthetic-credential`");
    }
    let listen = options.listen;
    let service = Arc::new(Service::open(options).await?);
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on `{listen}`; choose another port, or 0 for a free one"))?;
    let address = listener.local_addr().context("the listener has no address")?;
    let closing = CancellationToken::new();
    let router = door::router(Arc::clone(&service));
    let server = tokio::spawn(
        axum::serve(listener, router)
            .with_graceful_shutdown(closing.clone().cancelled_owned())
            .into_future(),
    );
    Ok(Running {
        address,
        service,
        closing,
        server: Some(server),
    })
}

// === impl Running ===

impl Running {
    /// How long [`Running::stop`] waits for requests that are still running.
    const STOP_TIMEOUT: Duration = Duration::from_secs(5);

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL without a slash at the end, as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The database file: tables `invoice(id, tenant, …)` and `member(tenant, subject, role)`.
    #[must_use]
    pub fn database_path(&self) -> &Path {
        self.service.database_path()
    }

    /// How many requests for this operation arrived since the start or the last reset, whatever the answer was.
    #[must_use]
    pub fn count(&self, operation: Operation) -> u64 {
        self.service.counts().of(operation)
    }

    /// How many requests arrived in all, those for unknown paths included and those under `/_test` not.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.service.counts().total()
    }

    /// Stops: takes no more connections, lets running requests end for up to five seconds, closes the database.
    ///
    /// # Errors
    /// Requests that did not end in time (they are cut off), or a server that failed earlier.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.closing.cancel();
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let ended = tokio::time::timeout(Self::STOP_TIMEOUT, &mut server).await;
        server.abort();
        self.service.close().await;
        match ended {
            Ok(joined) => joined
                .context("the server task failed")?
                .context("the server failed"),
            Err(_) => bail!(
                "requests were still running after {:?} and were cut off",
                Self::STOP_TIMEOUT
            ),
        }
    }

    /// Waits until the server ends by itself, which it does only when it fails.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn failed(&mut self) -> anyhow::Result<()> {
        match self.server.as_mut() {
            Some(server) => server
                .await
                .context("the server task failed")?
                .context("the server failed"),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.closing.cancel();
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}
