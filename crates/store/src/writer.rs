//! The writing end of the ledger: one connection of its own, one statement per batch, and how durable it is.
//!
//! It appends what it is given and nothing else: that the rows chain up, and that nobody else writes the same chain, is
//! for `audit` to see to. A second writer of a chain meets the unique index on (chain, seq) and is refused.

use std::sync::{Arc, LazyLock};

use model::Digest;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use crate::ledger::{digest, place};
use crate::store::{Connect, Inner};
use crate::{LedgerRow, Store, StoreFault};

/// What an appended entry survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// The death of this process (`kill -9`). SQLite: the write is with the operating system, `synchronous=NORMAL`.
    /// PostgreSQL: it is with the server, `synchronous_commit=off`, and lost if the server dies within its next 600 ms.
    Process,
    /// Power loss. SQLite: `synchronous=FULL`, the write-ahead log is flushed with each commit. PostgreSQL:
    /// `synchronous_commit=on`.
    Disk,
}

/// The writing end of the ledger. It keeps a connection of its own, so that no reader can hold up a record.
pub struct LedgerWriter {
    inner: Arc<Inner>,
    /// `None` after a failure, and while a write is under way: a write that was given up leaves a connection in a state
    /// that nobody knows, so that it is not used again.
    connection: Option<Connection>,
}

enum Connection {
    Sqlite(SqliteConnection, Durability),
    Postgres(PgConnection, Durability),
}

/// The rows of one statement. A longer batch takes several statements in one transaction.
///
/// Each length is a statement of its own, prepared once and kept. Up to here a batch is one round trip and atomic by itself;
/// beyond, begin and commit are shared by so many rows that they do not count.
const STATEMENT_ROWS_MAX: usize = 16;

static INSERTS: LazyLock<Vec<String>> = LazyLock::new(|| (1..=STATEMENT_ROWS_MAX).map(insert_text).collect());

impl Store {
    /// A writing end for the ledger.
    ///
    /// # Errors
    /// [`StoreFault`] where no connection can be made.
    pub async fn ledger_writer(&self) -> Result<LedgerWriter, StoreFault> {
        let mut writer = LedgerWriter {
            inner: Arc::clone(&self.inner),
            connection: None,
        };
        writer.connection = Some(writer.connect().await?);
        Ok(writer)
    }
}

impl LedgerWriter {
    /// Appends rows: all of them, or none. When it returns they are as durable as asked.
    ///
    /// # Errors
    /// [`StoreFault`] by cause. After [`StoreFault::Unreachable`] it is not known whether the rows were written; ask
    /// [`Self::head`]. The next call makes a new connection.
    ///
    /// Cancellation: the same as `Unreachable`. A write that was given up may still arrive later, as a whole or not at all.
    pub async fn append(&mut self, rows: &[LedgerRow], durability: Durability) -> Result<(), StoreFault> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.append(rows, durability).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// The last entry of a chain, as the store has it.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn head(&mut self, chain: Uuid) -> Result<Option<(u64, Digest)>, StoreFault> {
        const SQL: &str = "SELECT seq, hash FROM ledger WHERE chain = $1 ORDER BY seq DESC LIMIT 1";
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let chain = chain.as_bytes().as_slice();
        let head: Option<(i64, Vec<u8>)> = match &mut connection {
            Connection::Sqlite(connection, _) => {
                sqlx::query_as(SQL).bind(chain).fetch_optional(connection).await?
            }
            Connection::Postgres(connection, _) => {
                sqlx::query_as(SQL).bind(chain).fetch_optional(connection).await?
            }
        };
        self.connection = Some(connection);
        head.map(|(seq, hash)| Ok((place(seq)?, digest(hash)?)))
            .transpose()
    }

    /// Closes the connection in good order.
    ///
    /// # Errors
    /// [`StoreFault`] of the database; what was appended stays appended.
    pub async fn close(mut self) -> Result<(), StoreFault> {
        match self.connection.take() {
            Some(Connection::Sqlite(connection, _)) => connection.close().await?,
            Some(Connection::Postgres(connection, _)) => connection.close().await?,
            None => {}
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, StoreFault> {
        Ok(match &self.inner.connect {
            // The pool's pragmas say FULL, and a PostgreSQL session begins with whatever the server is set to, so that
            // the mode is always set there once before the first write.
            Connect::Sqlite(options) => {
                Connection::Sqlite(self.inner.connect_sqlite(options).await?, Durability::Disk)
            }
            Connect::Postgres(options) => {
                let mut connection = self.inner.connect_postgres(options).await?;
                sqlx::raw_sql("SET synchronous_commit = on")
                    .execute(&mut connection)
                    .await?;
                Connection::Postgres(connection, Durability::Disk)
            }
        })
    }
}

// === one connection ===

/// Binds and runs one `INSERT` of at most [`STATEMENT_ROWS_MAX`] rows.
macro_rules! insert {
    ($rows:expr, $connection:expr) => {{
        let rows: &[LedgerRow] = $rows;
        let text: &'static str = rows
            .len()
            .checked_sub(1)
            .and_then(|index| INSERTS.get(index))
            .map_or("", String::as_str);
        let mut query = sqlx::query(text);
        for row in rows {
            query = query
                .bind(row.chain.as_bytes().as_slice())
                .bind(i64::try_from(row.seq).unwrap_or(i64::MAX))
                .bind(row.time)
                .bind(row.kind.as_str())
                .bind(row.call.as_ref().map(|call| call.as_bytes().as_slice()))
                .bind(row.body.as_str())
                .bind(row.prev.as_bytes().as_slice())
                .bind(row.hash.as_bytes().as_slice());
        }
        query.execute($connection).await?;
    }};
}

impl Connection {
    async fn append(&mut self, rows: &[LedgerRow], durability: Durability) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection, mode) => {
                if *mode != durability {
                    // This pragma acts while it is compiled, so that a kept statement would do nothing the second time.
                    sqlx::query(match durability {
                        Durability::Process => "PRAGMA synchronous = NORMAL",
                        Durability::Disk => "PRAGMA synchronous = FULL",
                    })
                    .persistent(false)
                    .execute(&mut *connection)
                    .await?;
                    *mode = durability;
                }
                if rows.len() <= STATEMENT_ROWS_MAX {
                    insert!(rows, connection);
                } else {
                    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
                    for rows in rows.chunks(STATEMENT_ROWS_MAX) {
                        insert!(rows, &mut *transaction);
                    }
                    transaction.commit().await?;
                }
            }
            Self::Postgres(connection, mode) => {
                if *mode != durability {
                    sqlx::raw_sql(match durability {
                        Durability::Process => "SET synchronous_commit = off",
                        Durability::Disk => "SET synchronous_commit = on",
                    })
                    .execute(&mut *connection)
                    .await?;
                    *mode = durability;
                }
                if rows.len() <= STATEMENT_ROWS_MAX {
                    insert!(rows, connection);
                } else {
                    let mut transaction = connection.begin().await?;
                    for rows in rows.chunks(STATEMENT_ROWS_MAX) {
                        insert!(rows, &mut *transaction);
                    }
                    transaction.commit().await?;
                }
            }
        }
        Ok(())
    }
}

fn insert_text(rows: usize) -> String {
    let mut text =
        String::from("INSERT INTO ledger (chain, seq, time, kind, call, body, prev, hash) VALUES ");
    for row in 0..rows {
        let places: Vec<String> = (1..=8).map(|column| format!("${}", row * 8 + column)).collect();
        if row > 0 {
            text.push_str(", ");
        }
        text.push_str(&format!("({})", places.join(", ")));
    }
    text
}
