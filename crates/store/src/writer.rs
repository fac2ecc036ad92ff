//! The writing end of the ledger: one connection of its own, one statement per batch, and how durable it is.
//!
//! It appends what it is given and nothing else: that the rows chain up, and that nobody else writes the same chain, is
//! for `audit` to see to. A second writer of a chain meets the key of the table and is refused.
//!
//! # Why the table looks as it does
//! Every page that a commit touches is written to the write-ahead log, so that each index costs a page per commit. What one
//! recorded call (two entries) cost, in kilobytes written and microseconds of processor time, with one caller and with
//! sixteen (SQLite on ext4, two busy cores, best of three runs of `cargo bench -p tollhouse-audit`):
//!
//! | layout | 1 caller | 16 callers |
//! |---|---|---|
//! | table with a unique index on (chain, seq) | 24.2 KB, 186 µs | 8.2 KB, 52 µs |
//! | the same with an index on call besides | 33.9 KB, 186 µs | 10.1 KB, 62 µs |
//! | `WITHOUT ROWID`, key (chain, seq) | 33.9 KB, 190 µs | 15.9 KB, 72 µs |
//! | **one whole number as key: chain number and seq** | 13.3 KB, 139 µs | 6.0 KB, 44 µs |
//! | that, with pages of 8 KiB | 21.5 KB, 130 µs | 7.4 KB, 45 µs |
//! | that, with pages of 16 KiB | 37.6 KB, 142 µs | 10.0 KB, 42 µs |
//!
//! So the key is `number of the chain * 2^40 + seq`; it makes a second entry in one place impossible as well as an index
//! would. A `WITHOUT ROWID` table moves every body over a quarter of a page to a page of its own. Larger pages save no time
//! and write more, which a flush to disk pays for. What is given up: a call is found by looking at every entry, and the
//! rows of a chain need the table `ledger_chain` to be read. It would be wrong if people looked up calls all day.
//!
//! (Measured with a driver that had a thread of its own; what a way to that thread costs is in ADR 0009. On SQLite the connection
//! is `ledger_file`'s.)
//!
//! The log is folded into the database by the writer itself, every 4 000 pages instead of SQLite's 1 000: with 200, 1 000 and
//! 4 000 pages sixteen callers made 5 000, 7 800 and 14 500 calls a second. It takes up to 16 MiB on disk.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use model::Digest;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use uuid::Uuid;

use crate::ledger::{Position, digest};
use crate::ledger_file::LedgerFile;
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
    /// The numbers of the chains that were written.
    numbers: HashMap<Uuid, i64>,
}

enum Connection {
    Sqlite(LedgerFile),
    Postgres(Session),
}

/// A session of PostgreSQL, and how durable its next commit is.
struct Session {
    connection: PgConnection,
    mode: Durability,
}

/// The rows of one statement. A longer batch takes several statements in one transaction.
///
/// Each length is a statement of its own, prepared once and kept. Up to here a batch is one round trip and atomic by itself;
/// beyond, begin and commit are shared by so many rows that they do not count.
pub(crate) const STATEMENT_ROWS_MAX: usize = 16;

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
            numbers: HashMap::new(),
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
            None => {
                // The database may be another one by now, restored from a backup, in which chains have other numbers.
                self.numbers.clear();
                self.connect().await?
            }
        };
        for row in rows {
            if let Entry::Vacant(place) = self.numbers.entry(row.chain) {
                let number;
                (connection, number) = connection.number(row.chain).await?;
                place.insert(number);
            }
        }
        self.connection = Some(connection.append(rows, &self.numbers, durability).await?);
        Ok(())
    }

    /// The last entry of a chain, as the store has it.
    ///
    /// # Errors
    /// [`StoreFault`] of the database.
    pub async fn head(&mut self, chain: Uuid) -> Result<Option<(u64, Digest)>, StoreFault> {
        const SQL: &str = "SELECT position, hash FROM ledger
             WHERE position >= (SELECT number FROM ledger_chain WHERE chain = $1) * 1099511627776
               AND position < ((SELECT number FROM ledger_chain WHERE chain = $1) + 1) * 1099511627776
             ORDER BY position DESC LIMIT 1";
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let (connection, head) = connection.head(chain, SQL).await?;
        self.connection = Some(connection);
        Ok(head)
    }

    /// Closes the connection in good order.
    ///
    /// # Errors
    /// [`StoreFault`] of the database; what was appended stays appended.
    pub async fn close(mut self) -> Result<(), StoreFault> {
        match self.connection.take() {
            Some(Connection::Sqlite(file)) => file.close().await?,
            Some(Connection::Postgres(session)) => session.connection.close().await?,
            None => {}
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connection, StoreFault> {
        Ok(match &self.inner.connect {
            Connect::Sqlite(place) => Connection::Sqlite(LedgerFile::open(place.clone()).await?),
            Connect::Postgres(options) => {
                let mut connection = self.inner.connect_postgres(options).await?;
                // A session begins with whatever the server is set to, so that the mode is set once before the first write.
                sqlx::raw_sql("SET synchronous_commit = on")
                    .execute(&mut connection)
                    .await?;
                Connection::Postgres(Session {
                    connection,
                    mode: Durability::Disk,
                })
            }
        })
    }
}

// === one connection ===

impl Connection {
    /// The number of a chain, which it gets here if it has none.
    async fn number(self, chain: Uuid) -> Result<(Self, i64), StoreFault> {
        Ok(match self {
            Self::Sqlite(file) => {
                let (file, number) = file.number(chain).await?;
                (Self::Sqlite(file), number)
            }
            Self::Postgres(mut session) => {
                let number = session.number(chain).await?;
                (Self::Postgres(session), number)
            }
        })
    }

    async fn append(
        self,
        rows: &[LedgerRow],
        numbers: &HashMap<Uuid, i64>,
        durability: Durability,
    ) -> Result<Self, StoreFault> {
        Ok(match self {
            Self::Sqlite(file) => Self::Sqlite(file.append(rows, numbers, durability).await?),
            Self::Postgres(mut session) => {
                session.append(rows, numbers, durability).await?;
                Self::Postgres(session)
            }
        })
    }

    async fn head(self, chain: Uuid, sql: &'static str) -> Result<(Self, Option<(u64, Digest)>), StoreFault> {
        Ok(match self {
            Self::Sqlite(file) => {
                let (file, head) = file.head(chain, sql).await?;
                (Self::Sqlite(file), head)
            }
            Self::Postgres(mut session) => {
                let head: Option<(i64, Vec<u8>)> = sqlx::query_as(sql)
                    .bind(chain.as_bytes().as_slice())
                    .fetch_optional(&mut session.connection)
                    .await?;
                let head = head
                    .map(|(key, hash)| Ok::<_, StoreFault>((Position::of(key)?.seq, digest(hash)?)))
                    .transpose()?;
                (Self::Postgres(session), head)
            }
        })
    }
}

impl Session {
    async fn number(&mut self, chain: Uuid) -> Result<i64, StoreFault> {
        let chain = chain.as_bytes().as_slice();
        sqlx::query("INSERT INTO ledger_chain (chain) VALUES ($1) ON CONFLICT (chain) DO NOTHING")
            .bind(chain)
            .execute(&mut self.connection)
            .await?;
        let number = sqlx::query_scalar("SELECT number FROM ledger_chain WHERE chain = $1")
            .bind(chain)
            .fetch_one(&mut self.connection)
            .await?;
        Ok(number)
    }

    async fn append(
        &mut self,
        rows: &[LedgerRow],
        numbers: &HashMap<Uuid, i64>,
        durability: Durability,
    ) -> Result<(), StoreFault> {
        if self.mode != durability {
            sqlx::raw_sql(match durability {
                Durability::Process => "SET synchronous_commit = off",
                Durability::Disk => "SET synchronous_commit = on",
            })
            .execute(&mut self.connection)
            .await?;
            self.mode = durability;
        }
        if rows.len() <= STATEMENT_ROWS_MAX {
            insert(&mut self.connection, rows, numbers).await?;
        } else {
            let mut transaction = self.connection.begin().await?;
            for rows in rows.chunks(STATEMENT_ROWS_MAX) {
                insert(&mut transaction, rows, numbers).await?;
            }
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// Binds and runs one `INSERT` of at most [`STATEMENT_ROWS_MAX`] rows.
async fn insert(
    connection: &mut PgConnection,
    rows: &[LedgerRow],
    numbers: &HashMap<Uuid, i64>,
) -> Result<(), StoreFault> {
    let mut query = sqlx::query(insert_text_of(rows.len()));
    for row in rows {
        query = query
            .bind(key(row, numbers)?)
            .bind(row.time)
            .bind(row.kind.as_str())
            .bind(row.call.as_ref().map(|call| call.as_bytes().as_slice()))
            .bind(row.body.as_str())
            .bind(row.prev.as_bytes().as_slice())
            .bind(row.hash.as_bytes().as_slice());
    }
    query.execute(connection).await?;
    Ok(())
}

/// The statement that inserts so many rows, at most [`STATEMENT_ROWS_MAX`].
pub(crate) fn insert_text_of(rows: usize) -> &'static str {
    let text = rows.checked_sub(1).and_then(|index| INSERTS.get(index));
    text.map_or("", String::as_str)
}

pub(crate) fn key(row: &LedgerRow, numbers: &HashMap<Uuid, i64>) -> Result<i64, StoreFault> {
    let number = numbers.get(&row.chain).copied();
    number
        .and_then(|number| Position { number, seq: row.seq }.key())
        .ok_or_else(|| StoreFault::Full("the chain has no number left for this entry".to_owned()))
}

fn insert_text(rows: usize) -> String {
    let mut text = String::from("INSERT INTO ledger (position, time, kind, call, body, prev, hash) VALUES ");
    for row in 0..rows {
        let places: Vec<String> = (1..=7).map(|column| format!("${}", row * 7 + column)).collect();
        if row > 0 {
            text.push_str(", ");
        }
        text.push_str(&format!("({})", places.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{StoreOptions, StoreUrl};

    fn row(chain: Uuid, seq: u64) -> LedgerRow {
        LedgerRow {
            chain,
            seq,
            time: 0,
            kind: "intent".to_owned(),
            call: None,
            body: "{}".to_owned(),
            prev: Digest::ZERO,
            hash: Digest::ZERO,
        }
    }

    async fn mode(writer: &mut LedgerWriter) -> String {
        match writer.connection.as_mut().unwrap() {
            Connection::Sqlite(file) => file.synchronous().to_string(),
            Connection::Postgres(session) => sqlx::query_scalar("SHOW synchronous_commit")
                .fetch_one(&mut session.connection)
                .await
                .unwrap(),
        }
    }

    async fn follows(url: &StoreUrl, process: &str, disk: &str) {
        let store = Store::open(url, StoreOptions::default()).await.unwrap();
        let mut writer = store.ledger_writer().await.unwrap();
        let chain = Uuid::now_v7();
        let mut seq = 0;
        assert_eq!(mode(&mut writer).await, disk, "a new connection");
        for length in [1, 20] {
            for (durability, expected) in [
                (Durability::Process, process),
                (Durability::Disk, disk),
                (Durability::Process, process),
                (Durability::Process, process),
                (Durability::Disk, disk),
            ] {
                let rows: Vec<LedgerRow> = (seq..seq + length).map(|seq| row(chain, seq)).collect();
                writer.append(&rows, durability).await.unwrap();
                seq += length;
                assert_eq!(mode(&mut writer).await, expected, "{durability:?} {length}");
            }
        }
        // A failed write costs the connection; the next one has to be told again.
        writer
            .append(&[row(chain, seq)], Durability::Process)
            .await
            .unwrap();
        writer
            .append(&[row(chain, seq)], Durability::Process)
            .await
            .unwrap_err();
        writer
            .append(&[row(chain, seq + 1)], Durability::Process)
            .await
            .unwrap();
        assert_eq!(mode(&mut writer).await, process, "after a failure");
    }

    #[tokio::test]
    async fn a_write_is_as_durable_as_asked_each_time() {
        let folder = tempfile::tempdir().unwrap();
        // 1 is NORMAL, 2 is FULL.
        follows(&StoreUrl::Sqlite(folder.path().join("t.db")), "1", "2").await;
        if let Ok(base) = std::env::var("PG_URL") {
            let schema = format!("t_{}", Uuid::now_v7().simple());
            let mut admin = PgConnection::connect(&base).await.unwrap();
            let create = format!("CREATE SCHEMA {schema}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(create))
                .execute(&mut admin)
                .await
                .unwrap();
            let mark = if base.contains('?') { '&' } else { '?' };
            let url = format!("{base}{mark}options=-csearch_path%3D{schema}");
            follows(&StoreUrl::parse(&url, Path::new("/")).unwrap(), "off", "on").await;
        }
    }
}
