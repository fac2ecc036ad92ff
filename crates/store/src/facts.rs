//! The operator's own database of facts: who owns what, who is a member of what. Read only, one value at a time.
//!
//! It answers or it fails, in time; what a fault means for the call is for `gateway` to say (a no). Nothing is kept from
//! one question to the next but the connection.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use model::{FactValue, LimitKey};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, PgTypeInfo, PgTypeKind};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{
    Arguments as _, AssertSqlSafe, ConnectOptions as _, Connection as _, Either, Executor as _, Postgres,
    Row as _, SqlSafeStr as _, Statement as _, TypeInfo as _, ValueRef as _,
};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::store::postgres_options;
use crate::{FactQuery, StoreFault, StoreUrl};

/// A database of facts, opened for reading. Cheap to clone.
#[derive(Clone)]
pub struct FactDatabase {
    inner: Arc<Inner>,
}

/// What a query for a fact found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactRow {
    /// No row.
    None,
    /// One row with a value.
    One(FactValue),
    /// One row, and its value is NULL: unknown.
    Null,
    /// More rows than one. Which of them would be true is a guess, so that none is given.
    Many,
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

// === impl FactRow ===

impl FactRow {
    /// The fact as a text: an id of an owner. A whole number is written in digits. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is a truth value.
    pub fn text(self) -> Result<Option<String>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Text(text)) => Ok(Some(text)),
            Self::One(FactValue::Integer(number)) => Ok(Some(number.to_string())),
            Self::One(FactValue::Truth(_)) => Err(mismatch("truth value", "a text")),
            Self::Many => Err(FactFault::Many),
        }
    }

    /// The fact as yes or no. SQLite has no truth values; its 1 and 0 are read as such. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is a text or another number.
    pub fn truth(self) -> Result<Option<bool>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Truth(truth)) => Ok(Some(truth)),
            Self::One(FactValue::Integer(0)) => Ok(Some(false)),
            Self::One(FactValue::Integer(1)) => Ok(Some(true)),
            Self::One(FactValue::Integer(_)) => Err(mismatch("number", "a truth value")),
            Self::One(FactValue::Text(_)) => Err(mismatch("text", "a truth value")),
            Self::Many => Err(FactFault::Many),
        }
    }

    /// The fact as a whole number. `None` where it is not known.
    ///
    /// # Errors
    /// [`FactFault::Many`]; [`FactFault::Type`] where it is something else.
    pub fn integer(self) -> Result<Option<i64>, FactFault> {
        match self {
            Self::None | Self::Null => Ok(None),
            Self::One(FactValue::Integer(number)) => Ok(Some(number)),
            Self::One(FactValue::Truth(_)) => Err(mismatch("truth value", "a whole number")),
            Self::One(FactValue::Text(_)) => Err(mismatch("text", "a whole number")),
            Self::Many => Err(FactFault::Many),
        }
    }
}

fn mismatch(found: &str, wanted: &'static str) -> FactFault {
    FactFault::Type {
        found: found.to_owned(),
        wanted,
    }
}

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

fn one_column(columns: usize) -> Result<(), FactFault> {
    if columns == 1 {
        Ok(())
    } else {
        Err(FactFault::Columns(columns))
    }
}

fn sqlite_value(row: &SqliteRow) -> Result<FactRow, FactFault> {
    one_column(row.len())?;
    let value = row.try_get_raw(0).map_err(fault)?;
    if value.is_null() {
        return Ok(FactRow::Null);
    }
    let kind = value.type_info().name().to_owned();
    match kind.as_str() {
        "INTEGER" => Ok(FactValue::Integer(row.try_get_unchecked(0).map_err(fault)?)),
        "TEXT" => Ok(FactValue::Text(row.try_get_unchecked(0).map_err(fault)?)),
        _ => Err(FactFault::Type {
            found: kind,
            wanted: "a text or a whole number",
        }),
    }
    .map(FactRow::One)
}

fn postgres_value(row: &PgRow) -> Result<FactRow, FactFault> {
    one_column(row.len())?;
    let value = row.try_get_raw(0).map_err(fault)?;
    if value.is_null() {
        return Ok(FactRow::Null);
    }
    let kind = value.type_info().into_owned();
    let decode = |error: sqlx::error::BoxDynError| FactFault::Query(error.to_string());
    match (kind.name(), kind.kind()) {
        ("BOOL", _) => Ok(FactValue::Truth(row.try_get(0).map_err(fault)?)),
        ("INT2", _) => Ok(FactValue::Integer(i64::from(
            row.try_get::<i16, _>(0).map_err(fault)?,
        ))),
        ("INT4", _) => Ok(FactValue::Integer(i64::from(
            row.try_get::<i32, _>(0).map_err(fault)?,
        ))),
        ("INT8", _) => Ok(FactValue::Integer(row.try_get(0).map_err(fault)?)),
        ("TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN", _) | (_, PgTypeKind::Enum(_)) => {
            Ok(FactValue::Text(value.as_str().map_err(decode)?.to_owned()))
        }
        ("UUID", _) => {
            let bytes = value.as_bytes().map_err(decode)?;
            let id = uuid::Uuid::from_slice(bytes).map_err(|error| decode(error.into()))?;
            Ok(FactValue::Text(id.to_string()))
        }
        (name, _) => Err(FactFault::Type {
            found: name.to_owned(),
            wanted: "a text, a whole number, a UUID or a truth value",
        }),
    }
    .map(FactRow::One)
}

/// How a text becomes a value of the type that PostgreSQL wants. It takes values in binary, each type in its own form.
#[derive(Clone, Copy)]
enum Bind {
    Text,
    Int2,
    Int4,
    Int8,
    Bool,
    Uuid,
}

impl Bind {
    fn of(kind: &PgTypeInfo, placeholder: usize) -> Result<Self, FactFault> {
        match (kind.name(), kind.kind()) {
            ("TEXT" | "VARCHAR" | "CHAR" | "NAME" | "UNKNOWN", _) | (_, PgTypeKind::Enum(_)) => {
                Ok(Self::Text)
            }
            ("INT2", _) => Ok(Self::Int2),
            ("INT4", _) => Ok(Self::Int4),
            ("INT8", _) => Ok(Self::Int8),
            ("BOOL", _) => Ok(Self::Bool),
            ("UUID", _) => Ok(Self::Uuid),
            (name, _) => Err(FactFault::BindType {
                placeholder,
                wanted: name.to_owned(),
            }),
        }
    }

    fn add(self, text: &str, arguments: &mut PgArguments, placeholder: usize) -> Result<(), FactFault> {
        let refused = |wanted: &str| FactFault::Bind {
            placeholder,
            wanted: wanted.to_owned(),
        };
        match self {
            Self::Text => arguments.add(text),
            Self::Int2 => arguments.add(whole::<i16>(text).ok_or_else(|| refused("smallint"))?),
            Self::Int4 => arguments.add(whole::<i32>(text).ok_or_else(|| refused("integer"))?),
            Self::Int8 => arguments.add(whole::<i64>(text).ok_or_else(|| refused("bigint"))?),
            Self::Bool => arguments.add(text.parse::<bool>().map_err(|_| refused("boolean"))?),
            Self::Uuid => arguments.add(RawUuid(
                uuid::Uuid::try_parse(text)
                    .ok()
                    .filter(|id| id.to_string() == text)
                    .ok_or_else(|| refused("uuid in lower case with hyphens"))?,
            )),
        }
        .map_err(|_| refused("value"))
    }
}

/// A whole number in its one usual spelling. `+7` and `007` would name the same row as `7`, and a rule that
/// compares the caller's text would not know it.
fn whole<N: std::str::FromStr + ToString>(text: &str) -> Option<N> {
    text.parse::<N>().ok().filter(|number| number.to_string() == text)
}

/// The driver's own UUID support is a feature that we do not build; its form on the wire is 16 bytes.
struct RawUuid(uuid::Uuid);

impl sqlx::Type<Postgres> for RawUuid {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("uuid")
    }
}

impl sqlx::Encode<'_, Postgres> for RawUuid {
    fn encode_by_ref(
        &self,
        buffer: &mut sqlx::postgres::PgArgumentBuffer,
    ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
        buffer.extend_from_slice(self.0.as_bytes());
        Ok(sqlx::encode::IsNull::No)
    }
}

// === faults, clock, file ===

/// Sorts a driver's error: is it the database, or the query? PostgreSQL quotes a value that does not fit (class 22), and
/// a value may be a caller's; of those only the code is told.
fn fault(error: sqlx::Error) -> FactFault {
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
