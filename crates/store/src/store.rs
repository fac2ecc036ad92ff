//! The open store: pools, pragmas, migrations. What is kept in it is in `ledger`, `keys` and `secrets`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, SqliteConnection, SqlitePool};
use tokio::time::Instant;

use crate::ledger_file::{LedgerFilePlace, UNFOLDED_PAGES_MAX};
use crate::{StoreFault, StoreUrl};

// A new file in these folders is seen by Cargo only after this file changed too, or after `cargo clean`.
static SQLITE_MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES_MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// An open store. Cheap to clone; every clone is the same store.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// How the store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// How long SQLite waits for another process to give up its lock, before [`StoreFault::Locked`]. Default: 2 s.
    pub busy_timeout: Duration,
    /// How long a connection may take to be made, or to become free. Default: 5 s.
    pub connect_timeout: Duration,
    /// Connections besides the ledger's own. Default: 4.
    pub connections_max: u32,
    /// The largest size of the SQLite file, in bytes; rounded down to whole pages, at least one. The write-ahead log comes
    /// on top (16 MiB, more while a long read holds it). PostgreSQL has its own means; it ignores this.
    pub bytes_max: Option<u64>,
}

/// SQLite's file system that keeps files in the memory of this process.
const MEMORY: &str = "memdb";

/// How long a first connection that was refused waits before it is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(10);

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(5),
            connections_max: 4,
            bytes_max: None,
        }
    }
}

/// How much room the store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSize {
    /// The size of the database, in bytes.
    pub bytes: u64,
    /// The size at which writes are refused, in bytes, where the store has one.
    pub bytes_max: Option<u64>,
}

pub(crate) struct Inner {
    pub(crate) url: StoreUrl,
    pub(crate) options: StoreOptions,
    pub(crate) connect: Connect,
    pub(crate) backend: Backend,
}

pub(crate) enum Backend {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// How a connection of our own is made, outside the pool.
pub(crate) enum Connect {
    Sqlite(LedgerFilePlace),
    Postgres(Box<PgConnectOptions>),
}

/// Runs one expression on the pool of whichever engine it is. The expression is compiled once for each: one SQL text,
/// two types.
macro_rules! on {
    ($store:expr, $pool:ident => $body:expr) => {
        match &$store.inner.backend {
            crate::store::Backend::Sqlite($pool) => $body,
            crate::store::Backend::Postgres($pool) => $body,
        }
    };
}
pub(crate) use on;

// === impl Store ===

impl Store {
    /// Opens the store, creates it where it does not exist, and brings its tables up to date.
    ///
    /// A SQLite file is created with mode 0600 in a folder that must exist. Several processes may open the same store at
    /// once: one migrates, the others wait.
    ///
    /// # Errors
    /// [`StoreFault::Io`] where the folder is missing or the file refuses, [`StoreFault::Schema`] where a newer build wrote
    /// it, [`StoreFault::Corrupt`] where it is no database, [`StoreFault::Locked`] and [`StoreFault::Unreachable`] as said there.
    ///
    /// Cancellation leaves at most a new, empty or fully migrated database.
    pub async fn open(url: &StoreUrl, options: StoreOptions) -> Result<Self, StoreFault> {
        match url {
            StoreUrl::Sqlite(path) => {
                create_file(path)?;
                let connect = SqliteConnectOptions::new()
                    .filename(path)
                    .journal_mode(SqliteJournalMode::Wal)
                    .pragma("wal_autocheckpoint", UNFOLDED_PAGES_MAX.to_string());
                Self::open_sqlite(url, connect, path.clone(), None, options).await
            }
            StoreUrl::Memory => {
                // The `memdb` file system gives all connections of this process the database of that name, with real
                // locks. A shared cache would lock single tables, and without waiting.
                static NEXT: AtomicU64 = AtomicU64::new(0);
                let name = format!("/tollhouse-{}", NEXT.fetch_add(1, Ordering::Relaxed));
                let connect = SqliteConnectOptions::new()
                    .filename(&name)
                    .vfs(MEMORY)
                    .create_if_missing(true);
                Self::open_sqlite(url, connect, name.into(), Some(MEMORY), options).await
            }
            StoreUrl::Postgres(_) => Self::open_postgres(url, options).await,
        }
    }

    async fn open_sqlite(
        url: &StoreUrl,
        connect: SqliteConnectOptions,
        path: PathBuf,
        vfs: Option<&'static str>,
        options: StoreOptions,
    ) -> Result<Self, StoreFault> {
        let connect = connect
            .busy_timeout(options.busy_timeout)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .disable_statement_logging();
        let bytes_max = options.bytes_max;
        let first = first_connection(&connect, options.busy_timeout).await?;
        let pool = SqlitePoolOptions::new()
            .max_connections(options.connections_max.max(1))
            // One connection stays: a database in memory lives as long as somebody has it open.
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(options.connect_timeout)
            .after_connect(move |connection, _| Box::pin(limit_size(connection, bytes_max)))
            .connect_with(connect)
            .await?;
        drop(first);
        migrate_sqlite(&pool).await?;
        let place = LedgerFilePlace {
            path,
            vfs,
            busy_timeout: options.busy_timeout,
            bytes_max,
        };
        Ok(Self {
            inner: Arc::new(Inner {
                url: url.clone(),
                options,
                connect: Connect::Sqlite(place),
                backend: Backend::Sqlite(pool),
            }),
        })
    }

    async fn open_postgres(url: &StoreUrl, options: StoreOptions) -> Result<Self, StoreFault> {
        let connect = postgres_options(url, "tollhouse")?;
        let pool = PgPoolOptions::new()
            .max_connections(options.connections_max.max(1))
            .acquire_timeout(options.connect_timeout)
            .connect_with(connect.clone())
            .await?;
        // The migrator holds an advisory lock meanwhile, and applies each migration in a transaction.
        POSTGRES_MIGRATIONS.run(&pool).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                url: url.clone(),
                options,
                connect: Connect::Postgres(Box::new(connect)),
                backend: Backend::Postgres(pool),
            }),
        })
    }

    /// Where it is. `Display` of it holds no password.
    #[must_use]
    pub fn url(&self) -> &StoreUrl {
        &self.inner.url
    }

    /// How much room the store takes, so that somebody can be warned before it is full.
    ///
    /// # Errors
    /// [`StoreFault`] where the database does not answer.
    pub async fn size(&self) -> Result<StoreSize, StoreFault> {
        let (bytes, bytes_max) = match &self.inner.backend {
            Backend::Sqlite(pool) => {
                let (pages, free, size): (i64, i64, i64) = sqlx::query_as(
                    "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                )
                .fetch_one(pool)
                .await?;
                ((pages - free) * size, self.inner.options.bytes_max)
            }
            Backend::Postgres(pool) => {
                let bytes = sqlx::query_scalar("SELECT pg_database_size(current_database())")
                    .fetch_one(pool)
                    .await?;
                (bytes, None)
            }
        };
        Ok(StoreSize {
            bytes: u64::try_from(bytes).unwrap_or_default(),
            bytes_max,
        })
    }

    /// Closes the pool; every later use of any clone is [`StoreFault::Unreachable`]. A [`crate::LedgerWriter`] has a connection
    /// of its own and is not closed.
    pub async fn close(self) {
        on!(self, pool => pool.close().await);
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.inner.url)
    }
}

// === connections of our own ===

impl Inner {
    /// A PostgreSQL connection, within the time that a connection may take.
    pub(crate) async fn connect_postgres(
        &self,
        connect: &PgConnectOptions,
    ) -> Result<PgConnection, StoreFault> {
        match tokio::time::timeout(self.options.connect_timeout, PgConnection::connect_with(connect)).await {
            Ok(connection) => Ok(connection?),
            Err(_) => Err(StoreFault::Unreachable(
                "no connection was made in time".to_owned(),
            )),
        }
    }
}

/// Reads a PostgreSQL URL. Where it has no `sslmode` and its host is not this machine, the server must prove who it is.
///
/// `application` is how the session is called in the server's own lists, where the URL does not say it.
pub(crate) fn postgres_options(url: &StoreUrl, application: &str) -> Result<PgConnectOptions, StoreFault> {
    let StoreUrl::Postgres(secret) = url else {
        return Err(StoreFault::Other("not a PostgreSQL URL".to_owned()));
    };
    let text = secret.expose_secret();
    // The driver's error may quote the URL, and with it the password.
    let options = PgConnectOptions::from_str(text)
        .map_err(|_| {
            StoreFault::Unreachable("the PostgreSQL URL has a parameter with a bad value".to_owned())
        })?
        .disable_statement_logging();
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name(application),
    };
    let local = options.get_socket().is_some()
        || options.get_host() == "localhost"
        || options.get_host().starts_with('/')
        || options
            .get_host()
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback());
    let said = ::url::Url::parse(text).is_ok_and(|url| url.query_pairs().any(|(name, _)| name == "sslmode"));
    Ok(match (said, local) {
        (true, _) => options,
        (false, true) => options.ssl_mode(PgSslMode::Prefer),
        (false, false) => options.ssl_mode(PgSslMode::VerifyFull),
    })
}

/// Makes the first connection, before there is a pool whose connections could meet.
///
/// A new file is switched to write-ahead logging here. Two that do so at once each wait for the other's lock; SQLite sees
/// that and tells one of them that the file is locked, without the wait that `busy_timeout` asks for. That one tries again.
async fn first_connection(
    connect: &SqliteConnectOptions,
    busy_timeout: Duration,
) -> Result<SqliteConnection, StoreFault> {
    let deadline = Instant::now() + busy_timeout;
    loop {
        match connect.connect().await.map_err(StoreFault::from) {
            Err(StoreFault::Locked(_)) if Instant::now() < deadline => {
                tokio::time::sleep(FIRST_RETRY).await;
            }
            connected => return connected,
        }
    }
}

/// Sets the size at which SQLite says that the database is full. It is a property of the connection, not of the file.
async fn limit_size(connection: &mut SqliteConnection, bytes_max: Option<u64>) -> Result<(), sqlx::Error> {
    let Some(bytes_max) = bytes_max else {
        return Ok(());
    };
    let page: i64 = sqlx::query_scalar("PRAGMA page_size")
        .fetch_one(&mut *connection)
        .await?;
    let pages = bytes_max
        .checked_div(u64::try_from(page).unwrap_or_default())
        .unwrap_or(1)
        .clamp(1, u64::from(u32::MAX) - 1);
    // A pragma takes no bound value. This is a number, whatever the configuration said.
    let sql = format!("PRAGMA max_page_count = {pages}");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .persistent(false)
        .execute(connection)
        .await?;
    Ok(())
}

async fn migrate_sqlite(pool: &SqlitePool) -> Result<(), StoreFault> {
    // The migrator takes no lock on SQLite. Under `BEGIN IMMEDIATE` a second process waits here until the first is done,
    // and then finds nothing left to do; and all migrations are applied, or none.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    SQLITE_MIGRATIONS
        .run_direct(None, &mut *transaction, false)
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// Creates an empty file that only its owner can read, before SQLite would create one that everybody can. SQLite gives
/// its other files (`-wal`, `-shm`) the same mode.
fn create_file(path: &Path) -> Result<(), StoreFault> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        return Err(StoreFault::Io(format!(
            "the folder `{}` does not exist; create it",
            folder.display()
        )));
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            warn_of_readers(path);
            Ok(())
        }
        Err(error) => Err(StoreFault::Io(format!("`{}`: {error}", path.display()))),
    }
}

/// The store holds keys. Whether others may read it is the operator's to say, but not without knowing.
fn warn_of_readers(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(path) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        if mode & 0o077 != 0 {
            tracing::warn!(
                file = %path.display(),
                mode = format!("{mode:o}"),
                "the store can be read by others than its owner, and it holds keys; run `chmod 600` on it"
            );
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> PgSslMode {
        let url = StoreUrl::parse(text, Path::new("/")).unwrap();
        postgres_options(&url, "test").unwrap().get_ssl_mode()
    }

    #[test]
    fn a_server_elsewhere_must_prove_who_it_is_unless_the_operator_says_otherwise() {
        for (text, expected) in [
            ("postgres://db.internal/x", "VerifyFull"),
            ("postgres://10.1.2.3/x", "VerifyFull"),
            ("postgres://db.internal/x?sslmode=disable", "Disable"),
            ("postgres://db.internal/x?sslmode=verify-ca", "VerifyCa"),
            ("postgres://localhost/x", "Prefer"),
            ("postgres://127.0.0.1:5433/x", "Prefer"),
            ("postgres://[::1]/x", "Prefer"),
            ("postgres:///x?host=/run/postgresql", "Prefer"),
        ] {
            assert_eq!(format!("{:?}", mode(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_bad_value_in_a_url_does_not_show_the_password() {
        let url = StoreUrl::parse("postgres://u:canary-77@h/x?sslmode=maybe", Path::new("/")).unwrap();
        let fault = postgres_options(&url, "test").unwrap_err();
        assert!(!format!("{fault} {fault:?}").contains("canary"), "{fault:?}");
    }
}
