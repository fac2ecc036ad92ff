//! The SQLite connection with which the ledger is written: on the spot where nothing has to be waited for, else on a thread
//! that may wait. What is written, and whether it may be, is not decided here.
//!
//! Most records are of reads, which only have to survive the death of this process. Writing one is a few pages into the
//! cache of the operating system, less work than the way to another thread and back. So it is done where the caller
//! stands, with a lock that is not waited for. Whatever can take long goes to a thread: a flush to disk, the wait for
//! somebody else's lock, and folding the log into the database.
//!
//! The driver of the pool has a thread for each connection and takes that way for every statement; the driver here is
//! the other well-kept one, and both are linked to the same SQLite.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::Digest;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};
use uuid::Uuid;

use crate::ledger::{Position, digest};
use crate::writer::{Durability, STATEMENT_ROWS_MAX, insert_text_of, key};
use crate::{LedgerRow, StoreFault};

/// Where the database is, and how a connection to it behaves.
#[derive(Debug, Clone)]
pub(crate) struct LedgerFilePlace {
    /// The file, or the name of a database in memory.
    pub(crate) path: PathBuf,
    /// A file system of SQLite's own, for a database in memory.
    pub(crate) vfs: Option<&'static str>,
    /// How long somebody else's lock is waited for.
    pub(crate) busy_timeout: Duration,
    /// The size at which writes are refused, in bytes.
    pub(crate) bytes_max: Option<u64>,
}

/// The connection. Each write takes it and gives it back: a write that failed or was given up leaves none, because nobody
/// knows the state that it is in.
pub(crate) struct LedgerFile {
    /// Never locked: whoever has `&mut` has it alone. The lock says so to the compiler, for tasks that move between threads.
    connection: Mutex<Connection>,
    busy_timeout: Duration,
    mode: Durability,
    /// About how many pages of the log were written since it was last folded into the database.
    unfolded: usize,
}

/// After about so many pages the log is folded into the database. SQLite's own default is 1 000; why so many: see `writer`.
pub(crate) const UNFOLDED_PAGES_MAX: usize = 4_000;

/// SQLite's page, and what a row takes beside its body, in bytes.
const PAGE_BYTES: usize = 4_096;
const ROW_BYTES: usize = 160;

impl LedgerFile {
    /// Connects to a database whose tables are there.
    pub(crate) async fn open(place: LedgerFilePlace) -> Result<Self, StoreFault> {
        on_a_thread(move || Self::connect(&place)).await
    }

    fn connect(place: &LedgerFilePlace) -> Result<Self, StoreFault> {
        // Exclusive use, which SQLite calls "no mutex", is what `&mut` promises.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match place.vfs {
            None => Connection::open_with_flags(&place.path, flags)?,
            Some(vfs) => {
                let flags = flags | OpenFlags::SQLITE_OPEN_CREATE;
                Connection::open_with_flags_and_vfs(&place.path, flags, vfs)?
            }
        };
        connection.busy_timeout(place.busy_timeout)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        if let Some(bytes_max) = place.bytes_max {
            let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages = bytes_max.checked_div(u64::from(page)).unwrap_or(1);
            let pages = u32::try_from(pages.max(1)).unwrap_or(u32::MAX - 1);
            connection.pragma_update(None, "max_page_count", pages)?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENT_ROWS_MAX + 4);
        connection.busy_timeout(Duration::ZERO)?;
        Ok(Self {
            connection: Mutex::new(connection),
            busy_timeout: place.busy_timeout,
            mode: Durability::Disk,
            unfolded: 0,
        })
    }

    /// Appends rows, all or none. Their chains have the numbers in `numbers`.
    pub(crate) async fn append(
        mut self,
        rows: &[LedgerRow],
        numbers: &HashMap<Uuid, i64>,
        durability: Durability,
    ) -> Result<Self, StoreFault> {
        let keys: Vec<i64> = rows
            .iter()
            .map(|row| key(row, numbers))
            .collect::<Result<_, _>>()?;
        let written = match durability {
            // A flush is waited for, so it is not tried here.
            Durability::Disk => false,
            Durability::Process => match self.write(rows, &keys, durability).map_err(StoreFault::from) {
                Ok(()) => true,
                Err(StoreFault::Locked(_)) => false,
                Err(fault) => return Err(fault),
            },
        };
        if !written {
            let rows = rows.to_vec();
            self = self
                .waiting(move |file| Ok(file.write(&rows, &keys, durability)?))
                .await?
                .0;
        }
        if self.unfolded >= UNFOLDED_PAGES_MAX {
            self = self.waiting(Self::fold).await?.0;
        }
        Ok(self)
    }

    /// The number of a chain, which it gets here if it has none.
    pub(crate) async fn number(self, chain: Uuid) -> Result<(Self, i64), StoreFault> {
        self.waiting(move |file| {
            let chain = chain.as_bytes().as_slice();
            let connection = file.connection();
            connection.execute(
                "INSERT INTO ledger_chain (chain) VALUES (?1) ON CONFLICT (chain) DO NOTHING",
                [chain],
            )?;
            let sql = "SELECT number FROM ledger_chain WHERE chain = ?1";
            Ok(connection.query_row(sql, [chain], |row| row.get(0))?)
        })
        .await
    }

    /// The last entry of a chain.
    pub(crate) async fn head(
        self,
        chain: Uuid,
        sql: &'static str,
    ) -> Result<(Self, Option<(u64, Digest)>), StoreFault> {
        self.waiting(move |file| {
            let head: Option<(i64, Vec<u8>)> = file
                .connection()
                .query_row(sql, [chain.as_bytes().as_slice()], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            head.map(|(key, hash)| Ok((Position::of(key)?.seq, digest(hash)?)))
                .transpose()
        })
        .await
    }

    /// Closes the connection in good order.
    pub(crate) async fn close(self) -> Result<(), StoreFault> {
        on_a_thread(move || {
            let connection = self
                .connection
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner);
            connection.close().map_err(|(_, error)| error.into())
        })
        .await
    }

    /// Does something on a thread that may wait for a lock or for the disk.
    async fn waiting<A: Send + 'static>(
        mut self,
        work: impl FnOnce(&mut Self) -> Result<A, StoreFault> + Send + 'static,
    ) -> Result<(Self, A), StoreFault> {
        on_a_thread(move || {
            let patience = self.busy_timeout;
            self.connection().busy_timeout(patience)?;
            let done = work(&mut self)?;
            self.connection().busy_timeout(Duration::ZERO)?;
            Ok((self, done))
        })
        .await
    }

    fn write(
        &mut self,
        rows: &[LedgerRow],
        keys: &[i64],
        durability: Durability,
    ) -> Result<(), rusqlite::Error> {
        if self.mode != durability {
            let synchronous = match durability {
                Durability::Process => "NORMAL",
                Durability::Disk => "FULL",
            };
            self.connection()
                .pragma_update(None, "synchronous", synchronous)?;
            self.mode = durability;
        }
        if rows.len() <= STATEMENT_ROWS_MAX {
            insert(self.connection(), rows, keys)?;
        } else {
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection().transaction_with_behavior(behavior)?;
            for (rows, keys) in rows
                .chunks(STATEMENT_ROWS_MAX)
                .zip(keys.chunks(STATEMENT_ROWS_MAX))
            {
                insert(&transaction, rows, keys)?;
            }
            transaction.commit()?;
        }
        let bytes: usize = rows.iter().map(|row| row.body.len() + ROW_BYTES).sum();
        self.unfolded += bytes.div_ceil(PAGE_BYTES) + 1;
        Ok(())
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folds the log into the database, as far as readers allow. What they hold back stays for the next time.
    fn fold(&mut self) -> Result<(), StoreFault> {
        self.connection()
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        self.unfolded = 0;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn synchronous(&mut self) -> i64 {
        self.connection()
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .unwrap()
    }
}

/// Binds and runs one `INSERT` of at most [`STATEMENT_ROWS_MAX`] rows.
fn insert(connection: &Connection, rows: &[LedgerRow], keys: &[i64]) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached(insert_text_of(rows.len()))?;
    let mut at = 0;
    for (row, key) in rows.iter().zip(keys) {
        let call = row.call.as_ref().map(|call| call.as_bytes().as_slice());
        statement.raw_bind_parameter(at + 1, key)?;
        statement.raw_bind_parameter(at + 2, row.time)?;
        statement.raw_bind_parameter(at + 3, row.kind.as_str())?;
        statement.raw_bind_parameter(at + 4, call)?;
        statement.raw_bind_parameter(at + 5, row.body.as_str())?;
        statement.raw_bind_parameter(at + 6, row.prev.as_bytes().as_slice())?;
        statement.raw_bind_parameter(at + 7, row.hash.as_bytes().as_slice())?;
        at += 7;
    }
    statement.raw_execute()?;
    Ok(())
}

/// Runs what may wait on a thread for such work.
///
/// Cancellation: the work goes on, and what it gives is dropped.
async fn on_a_thread<A: Send + 'static>(
    work: impl FnOnce() -> Result<A, StoreFault> + Send + 'static,
) -> Result<A, StoreFault> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(StoreFault::Unreachable(
            "the thread that writes has ended".to_owned(),
        )),
    }
}
