//! The town of the demo: the invoice service, the gate in front of it, keys for its callers. All on loopback, all in a
//! folder that is removed at the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use audit::Entry;
use config::PaperWorld;
use gateway::Gateway;
use identity::generate_key;
use jiff::Timestamp;
use model::SecretText;
use secrecy::ExposeSecret as _;
use store::KeyRow;
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::caller_name;
use crate::command::serve::{Open, listen};
use crate::failure::Failure;
use crate::house;
use crate::house::document::Reach;

pub(super) struct Town {
    service: invoices::Running,
    gateway: Arc<Gateway>,
    open: Open,
    serving: JoinHandle<usize>,
    shutdown: CancellationToken,
    endpoint: String,
    keys: BTreeMap<String, SecretText>,
    // Last, so that the folder goes when everything in it is closed.
    _folder: TempDir,
}

impl Town {
    pub(super) async fn build(address: SocketAddr) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("tollhouse-demo-")
            .tempdir()
            .map_err(|error| Failure::Unavailable(format!("no temporary folder can be made: {error}")))?;
        let credential = credential()?;
        let database = folder.path().join("invoices.db");
        let service = invoices::start(invoices::Options::new(database, credential.expose_secret()))
            .await
            .map_err(|error| Failure::Unavailable(format!("the invoice service did not start: {error:#}")))?;
        let world = world(folder.path(), &service, &credential);
        let mut reviewed =
            house::review(&folder.path().join("tollhouse.toml"), &world, Reach::Configured).await?;
        reviewed.settings.listen = address;
        let listener = listen(&mut reviewed.settings).await?;
        let open = Open::new(reviewed, "demo").await?;
        let keys = make_keys(&open).await?;
        let shutdown = CancellationToken::new();
        let face = open.face(&listener, &shutdown).await?;
        let endpoint = format!("http://{}/mcp", listener.address());
        let serving = tokio::spawn(listener.serve(face, shutdown.clone()));
        Ok(Self {
            service,
            gateway: Arc::clone(&open.gateway),
            open,
            serving,
            shutdown,
            endpoint,
            keys,
            _folder: folder,
        })
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn service_url(&self) -> String {
        self.service.url()
    }

    /// How many requests the service has seen, counted by the service itself.
    pub(super) fn service_requests(&self) -> u64 {
        self.service.requests()
    }

    pub(super) fn key(&self, caller: &str) -> Option<&str> {
        self.keys.get(caller).map(SecretText::expose_secret)
    }

    pub(super) fn ledger(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.gateway.ledger().subscribe()
    }

    pub(super) const fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    pub(super) async fn close(self) -> Result<(), Failure> {
        self.shutdown.cancel();
        if let Err(error) = self.serving.await {
            tracing::error!(%error, "the gate did not close in order");
        }
        self.open.close().await?;
        self.service
            .stop()
            .await
            .map_err(|error| Failure::Internal(format!("{error:#}")))
    }
}

/// A credential that exists for this run only.
fn credential() -> Result<SecretText, Failure> {
    let made = generate_key(caller_name("service")?, Timestamp::now(), None)
        .map_err(|fault| Failure::Internal(fault.to_string()))?;
    Ok(made.shown)
}

/// The files of the example, with the addresses of this run as variables.
fn world(folder: &Path, service: &invoices::Running, credential: &SecretText) -> PaperWorld {
    let database = format!("sqlite:{}", service.database_path().display());
    let mut world = PaperWorld {
        now: Timestamp::now(),
        ..PaperWorld::default()
    }
    .with_file(folder.join("tollhouse.toml"), invoices::CONFIG)
    .with_file(folder.join("openapi.yaml"), invoices::OPENAPI)
    .with_file(folder.join("policy/invoices.cedar"), invoices::POLICY)
    .with_variable(invoices::URL_VARIABLE, service.url())
    .with_variable(invoices::DATABASE_VARIABLE, database);
    world.variables.insert(
        invoices::TOKEN_VARIABLE.to_owned(),
        Some(credential.expose_secret().to_owned()),
    );
    world
}

async fn make_keys(open: &Open) -> Result<BTreeMap<String, SecretText>, Failure> {
    let mut keys = BTreeMap::new();
    for name in open.settings.callers.keys() {
        let made = generate_key(name.clone(), Timestamp::now(), None)
            .map_err(|fault| Failure::Internal(fault.to_string()))?;
        let record = made.record;
        let row = KeyRow {
            id: record.id,
            hash: record.hash,
            caller: record.caller,
            added: record.added,
            expires: None,
            revoked: None,
            note: Some("demo".to_owned()),
        };
        open.store
            .keys_add(&row)
            .await
            .map_err(|fault| Failure::Unavailable(format!("the keys cannot be written: {fault}")))?;
        keys.insert(name.to_string(), made.shown);
    }
    Ok(keys)
}
