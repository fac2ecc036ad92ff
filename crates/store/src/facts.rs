//! The operator's own database of facts: who owns what, who is a member of what. Read only, one value at a time.
//!
//! It answers or it fails, in time; what a fault means for the call is for `gateway` to say (a no). Nothing is kept from
//! one question to the next but the connection.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use model::LimitKey;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, SqlSafeStr as _,
    Statement as _,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::fact_value::{Bind, FactRow, one_column, postgres_value, sqlite_value};
use crate::store::postgres_options;
use crate::{FactQuery, StoreFault, StoreUrl};

/// A database of facts, opened for reading. Cheap to clone.
#[derive(Clone)]
pub struct FactDatabase {
    inner: Arc<Inner>,
}

/// Why a fact could not be looked up. Holds no value that was bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactFault {
    /// The database cannot be reached, is locked or is damaged.
    #[error("the database of facts did not answer: {0}")]
    Database(StoreFault),
    /// It did not answer by the deadline.
    #[error("the database of facts did not answer in time")]
    Timeout,
    /// It refuses the query.
    #[error("the database of facts refuses the query ({0})")]
    Query(String),
    /// Another number of values than the query has placeholders.
    #[error("the query has {expected} placeholders and was given {found} values")]
    Binds {
        /// Its placeholders.
        expected: usize,
        /// The values.
        found: usize,
    },
    /// A value that cannot be one of the type that the database wants: a caller's `x` for a whole number.
    #[error("the value of ${placeholder} is no {wanted}, which is what the database compares it with")]
    Bind {
        /// Which placeholder.
        placeholder: usize,
        /// What the database wants, in its own word.
        wanted: String,
    },
    /// A type that no text is turned into.
    #[error(
        "${placeholder} stands where the database wants a {wanted}; compare as text, as in `column::text = ${placeholder}`"
    )]
    BindType {
        /// Which placeholder.
        placeholder: usize,
        /// What the database wants, in its own word.
        wanted: String,
    },
    /// Not one column.
    #[error("the query gives {0} columns; select one value")]
    Columns(usize),
    /// A value that is no fact.
    #[error("the query gives a {found} where {wanted} is needed; cast it, as in `cast(column as text)`")]
    Type {
        /// What it is, in the database's word.
        found: String,
        /// What would do.
        wanted: &'static str,
    },
    /// Several rows where one was needed.
    #[error("the query gives more than one row; a fact is one value")]
    Many,
}

struct Inner {
    engine: Engine,
    permits: Semaphore,
    /// Connections that are ready for the next question. Never held across an await.
    idle: Mutex<Vec<Connection>>,
}

enum Engine {
    Sqlite {
        path: PathBuf,
        options: Box<SqliteConnectOptions>,
    },
    Postgres(Box<PgConnectOptions>),
}

enum Connection {
    Sqlite {
        connection: SqliteConnection,
        clock: Arc<QueryClock>,
        file: FileId,
    },
    Postgres(PgConnection),
}

/// How long SQLite waits for a writer to end. A reader of a file in WAL mode never has to.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);

/// After how many of its instructions SQLite looks at the clock: well under a millisecond.
const CLOCK_OPERATIONS: i32 = 10_000;

// === impl FactDatabase ===

impl FactDatabase {
    /// Opens a database of facts, with at most `connections_max` connections (at least one), and makes the first of them.
    ///
    /// SQLite is opened read only; the file must exist, and one that is later replaced by another is noticed. A PostgreSQL
    /// session is set to read only, and the server ends a query after the longest `source_timeout` there can be.
    ///
    /// # Errors
    /// [`FactFault::Database`]. A database in memory is refused: nobody could have put a fact there.
    pub async fn open(url: &StoreUrl, connections_max: usize) -> Result<Self, FactFault> {
        let engine = match url {
            StoreUrl::Sqlite(path) => Engine::Sqlite {
                path: path.clone(),
                options: Box::new(
                    SqliteConnectOptions::new()
                        .filename(path)
                        .read_only(true)
                        .busy_timeout(BUSY_TIMEOUT)
                        .pragma("query_only", "ON")
                        .disable_statement_logging(),
                ),
            },
            StoreUrl::Memory => {
                return Err(FactFault::Database(StoreFault::Io(
                    "a database in memory holds no facts; write sqlite:FILE".to_owned(),
                )));
            }
            StoreUrl::Postgres(_) => Engine::Postgres(Box::new(
                postgres_options(url, "tollhouse-facts").map_err(FactFault::Database)?,
            )),
        };
        let first = engine.connect().await?;
        Ok(Self {
            inner: Arc::new(Inner {
                engine,
                permits: Semaphore::new(connections_max.clamp(1, Semaphore::MAX_PERMITS)),
                idle: Mutex::new(vec![first]),
            }),
        })
    }

    /// Runs a query with these values for `$1`, `$2`, ….
    ///
    /// Values are texts. PostgreSQL is asked what type each placeholder has: whole numbers, UUIDs, truth values, texts and
    /// enumerations are read from the text; for any other type the fault says how to compare as text. A number or UUID in
    /// an unusual spelling (`+7`, `007`, upper case) is refused: it would find a row under a name that no rule knows.
    ///
    /// # Errors
    /// [`FactFault`] by cause, at the latest at `deadline`. No fault is ever a fact.
    ///
    /// Cancellation: the connection is closed; SQLite stops at the deadline, PostgreSQL at its statement timeout.
    pub async fn query(
        &self,
        query: &FactQuery,
        binds: &[String],
        deadline: Instant,
    ) -> Result<FactRow, FactFault> {
        if binds.len() != query.placeholders() {
            return Err(FactFault::Binds {
                expected: query.placeholders(),
                found: binds.len(),
            });
        }
        // PostgreSQL has no such texts, and SQLite has functions that see only what is before it.
        if let Some(index) = binds.iter().position(|bind| bind.contains('\0')) {
            return Err(FactFault::Bind {
                placeholder: index + 1,
                wanted: "text without NUL characters".to_owned(),
            });
        }
        self.within(
            deadline,
            Question {
                query,
                binds: Some(binds),
            },
        )
        .await
    }

    /// Checks a query against the database without running it: that it compiles, gives one column, and (PostgreSQL) that
    /// every placeholder has a type that can be read from a text. For the start, so that a typing error is found there.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub async fn check(&self, query: &FactQuery, deadline: Instant) -> Result<(), FactFault> {
        self.within(deadline, Question { query, binds: None })
            .await
            .map(drop)
    }

    async fn within(&self, deadline: Instant, question: Question<'_>) -> Result<FactRow, FactFault> {
        // A question that is quick enough would be answered after its time all the same.
        if deadline <= Instant::now() {
            return Err(FactFault::Timeout);
        }
        // When the time is up, the future is dropped, and its connection with it.
        tokio::time::timeout_at(deadline, self.ask(deadline, question))
            .await
            .unwrap_or(Err(FactFault::Timeout))
    }

    async fn ask(&self, deadline: Instant, question: Question<'_>) -> Result<FactRow, FactFault> {
        let _permit = self
            .inner
            .permits
            .acquire()
            .await
            .map_err(|_| FactFault::Database(StoreFault::Other("closed".to_owned())))?;
        if let Some(mut connection) = self.inner.idle_connection() {
            match connection.ask(deadline, question).await {
                // The server may have ended it since. A question can be asked again; a stranger's answer cannot be had
                // twice, but this one is the same question.
                Err(FactFault::Database(StoreFault::Unreachable(_))) => {}
                answer => return self.inner.keep(connection, answer),
            }
        }
        let mut connection = self.inner.engine.connect().await?;
        let answer = connection.ask(deadline, question).await;
        self.inner.keep(connection, answer)
    }
}

impl std::fmt::Debug for FactDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FactDatabase")
    }
}

impl Inner {
    fn idle_connection(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.is_current(&self.engine) {
                return Some(connection);
            }
        }
        None
    }

    /// Puts a connection back where its state is known: it answered, or it was not asked. One with rows still to come
    /// (`Many`) would make the next question wait for them.
    fn keep(&self, connection: Connection, answer: Result<FactRow, FactFault>) -> Result<FactRow, FactFault> {
        if !matches!(
            answer,
            Ok(FactRow::Many) | Err(FactFault::Database(_) | FactFault::Timeout | FactFault::Query(_))
        ) {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(connection);
        }
        answer
    }
}

impl Engine {
    async fn connect(&self) -> Result<Connection, FactFault> {
        match self {
            Self::Sqlite { path, options } => {
                // Before opening: if the file is replaced in between, the next question notices.
                let file = FileId::of(path).map_err(|error| {
                    FactFault::Database(StoreFault::Io(format!("`{}`: {error}", path.display())))
                })?;
                let mut connection = options.connect().await.map_err(fault)?;
                let clock = Arc::new(QueryClock::new());
                let seen = Arc::clone(&clock);
                connection
                    .lock_handle()
                    .await
                    .map_err(fault)?
                    .set_progress_handler(CLOCK_OPERATIONS, move || seen.running());
                Ok(Connection::Sqlite {
                    connection,
                    clock,
                    file,
                })
            }
            Self::Postgres(options) => {
                let mut connection = PgConnection::connect_with(options).await.map_err(fault)?;
                let timeout = LimitKey::find("source_timeout").map_or(60_000, |key| key.max);
                let session = format!(
                    "SET default_transaction_read_only = on; SET statement_timeout = {timeout}; SET lock_timeout = {timeout}"
                );
                sqlx::raw_sql(AssertSqlSafe(session))
                    .execute(&mut connection)
                    .await
                    .map_err(fault)?;
                Ok(Connection::Postgres(connection))
            }
        }
    }
}

// === one question on one connection ===

#[derive(Clone, Copy)]
struct Question<'a> {
    query: &'a FactQuery,
    /// `None`: compile it and look at it, no more.
    binds: Option<&'a [String]>,
}

impl Connection {
    /// Whether it still reads the file that the path names.
    fn is_current(&self, engine: &Engine) -> bool {
        match (self, engine) {
            (Self::Sqlite { file, .. }, Engine::Sqlite { path, .. }) => {
                FileId::of(path).is_ok_and(|now| now == *file)
            }
            _ => true,
        }
    }

    async fn ask(&mut self, deadline: Instant, question: Question<'_>) -> Result<FactRow, FactFault> {
        let sql = AssertSqlSafe(question.query.shared());
        match self {
            Self::Sqlite {
                connection, clock, ..
            } => {
                clock.set(deadline);
                let Some(binds) = question.binds else {
                    let statement = connection.prepare(sql.into_sql_str()).await.map_err(fault)?;
                    return one_column(statement.columns().len()).map(|()| FactRow::None);
                };
                let mut query = sqlx::query(sql);
                for bind in binds {
                    query = query.bind(bind);
                }
                let mut rows = query.fetch(connection);
                let Some(row) = rows.try_next().await.map_err(fault)? else {
                    return Ok(FactRow::None);
                };
                let value = sqlite_value(&row)?;
                Ok(if rows.try_next().await.map_err(fault)?.is_some() {
                    FactRow::Many
                } else {
                    value
                })
            }
            Self::Postgres(connection) => {
                // Prepared without types, so that the server says what it takes each placeholder for; then kept.
                let statement = connection.prepare(sql.into_sql_str()).await.map_err(fault)?;
                one_column(statement.columns().len())?;
                let types = match statement.parameters() {
                    Some(Either::Left(types)) => types,
                    _ => &[],
                };
                let Some(binds) = question.binds else {
                    for (index, kind) in types.iter().enumerate() {
                        Bind::of(kind, index + 1)?;
                    }
                    return Ok(FactRow::None);
                };
                if types.len() != binds.len() {
                    return Err(FactFault::Binds {
                        expected: types.len(),
                        found: binds.len(),
                    });
                }
                let mut arguments = PgArguments::default();
                for (index, (kind, bind)) in types.iter().zip(binds).enumerate() {
                    Bind::of(kind, index + 1)?.add(bind, &mut arguments, index + 1)?;
                }
                let mut rows = statement.query_with(arguments).fetch(connection);
                let Some(row) = rows.try_next().await.map_err(fault)? else {
                    return Ok(FactRow::None);
                };
                let value = postgres_value(&row)?;
                let many = rows.try_next().await.map_err(fault)?.is_some();
                Ok(if many { FactRow::Many } else { value })
            }
        }
    }
}

// === faults, clock, file ===

/// Sorts a driver's error: is it the database, or the query? PostgreSQL quotes a value that does not fit (class 22), and
/// a value may be a caller's; of those only the code is told.
pub(crate) fn fault(error: sqlx::Error) -> FactFault {
    if let sqlx::Error::Database(error) = &error
        && let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
        && error.code().starts_with("22")
    {
        return FactFault::Query(format!("{} data exception", error.code()));
    }
    match &error {
        // SQLite: INTERRUPT, which is our clock.
        sqlx::Error::Database(error) if error.code().as_deref() == Some("9") => FactFault::Timeout,
        // PostgreSQL: its statement timeout.
        sqlx::Error::Database(error) if error.code().as_deref() == Some("57014") => FactFault::Timeout,
        _ => match StoreFault::from(error) {
            StoreFault::Other(text) | StoreFault::Schema(text) | StoreFault::Conflict(text) => {
                FactFault::Query(text)
            }
            other => FactFault::Database(other),
        },
    }
}

/// The time at which a running SQLite query has to end, for the thread that runs it.
struct QueryClock {
    zero: Instant,
    end_micros: AtomicU64,
}

impl QueryClock {
    fn new() -> Self {
        Self {
            zero: Instant::now(),
            end_micros: AtomicU64::new(u64::MAX),
        }
    }

    fn set(&self, deadline: Instant) {
        let end = deadline.saturating_duration_since(self.zero).as_micros();
        self.end_micros
            .store(u64::try_from(end).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn running(&self) -> bool {
        self.zero.elapsed().as_micros() < u128::from(self.end_micros.load(Ordering::Relaxed))
    }
}

/// Which file a path named. A file that is replaced (an export that is moved over the old one) has another; an open
/// connection would go on reading the old one, and with it yesterday's owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn of(path: &std::path::Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(path)?;
        Ok(Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &std::path::Path) -> std::io::Result<Self> {
        std::fs::metadata(path).map(|_| Self(0, 0))
    }
}
