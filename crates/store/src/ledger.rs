//! The rows of the ledger, and how they are read. Writing them is in `writer`; what is in them is for `audit` to say.

use model::Digest;
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::store::{Backend, on};
use crate::{Store, StoreFault};

/// One entry of the ledger as it is kept.
///
/// `body` and `prev` are what `hash` was made of. The other columns repeat what the body says, so that it can be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// The chain it belongs to.
    pub chain: Uuid,
    /// Its place in the chain, from 0. At most `i64::MAX`.
    pub seq: u64,
    /// When it happened, in microseconds since 1970-01-01T00:00:00Z.
    pub time: i64,
    /// What kind of entry it is.
    pub kind: String,
    /// The call that it is about, if any.
    pub call: Option<Uuid>,
    /// What it says: canonical JSON.
    pub body: String,
    /// The hash of the entry before it in its chain.
    pub prev: Digest,
    /// Its own hash.
    pub hash: Digest,
}

/// The last entry of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerHead {
    /// The chain.
    pub chain: Uuid,
    /// The place of its last entry.
    pub seq: u64,
    /// The hash of its last entry.
    pub hash: Digest,
}

/// Which entries to read. Conditions are joined by "and"; what is not set is not asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerFilter {
    /// Entries of this chain.
    pub chain: Option<Uuid>,
    /// Entries behind this place of their chain.
    pub after: Option<u64>,
    /// Entries about this call.
    pub call: Option<Uuid>,
    /// Entries whose body has this text as its `tool`. Looks into every body that the other conditions leave.
    pub tool: Option<String>,
    /// Entries of this time or later, in microseconds since 1970-01-01T00:00:00Z.
    pub since: Option<i64>,
    /// Entries of one of these kinds; empty: of any.
    pub kinds: Vec<String>,
    /// The most rows to give. They are held in memory.
    pub limit: u32,
    /// In which order.
    pub order: LedgerOrder,
}

/// The order of entries that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LedgerOrder {
    /// By chain, then by place: as the chain was made.
    #[default]
    Chain,
    /// The last written first.
    Newest,
}

impl Default for LedgerFilter {
    /// The first 1 000 entries, whatever they are.
    fn default() -> Self {
        Self {
            chain: None,
            after: None,
            call: None,
            tool: None,
            since: None,
            kinds: Vec::new(),
            limit: 1_000,
            order: LedgerOrder::default(),
        }
    }
}

pub(crate) const COLUMNS: &str = "chain, seq, time, kind, call, body, prev, hash";

type Raw = (
    Vec<u8>,
    i64,
    i64,
    String,
    Option<Vec<u8>>,
    String,
    Vec<u8>,
    Vec<u8>,
);

/// One query over any filter, compiled for each engine: `QueryBuilder` numbers the placeholders as the engine wants them.
macro_rules! filtered {
    ($engine:ty, $pool:expr, $filter:expr) => {{
        let filter: &LedgerFilter = $filter;
        let mut query = QueryBuilder::<$engine>::new(format!("SELECT {COLUMNS} FROM ledger WHERE 1 = 1"));
        if let Some(chain) = &filter.chain {
            query.push(" AND chain = ").push_bind(chain.as_bytes().to_vec());
        }
        if let Some(after) = filter.after {
            query
                .push(" AND seq > ")
                .push_bind(i64::try_from(after).unwrap_or(i64::MAX));
        }
        if let Some(call) = &filter.call {
            query.push(" AND call = ").push_bind(call.as_bytes().to_vec());
        }
        if let Some(since) = filter.since {
            query.push(" AND time >= ").push_bind(since);
        }
        if let Some((first, rest)) = filter.kinds.split_first() {
            query.push(" AND kind IN (").push_bind(first.clone());
            for kind in rest {
                query.push(", ").push_bind(kind.clone());
            }
            query.push(")");
        }
        if let Some(tool) = &filter.tool {
            // "The body contains this text", in words that both engines have, and with no wildcard to escape.
            // A quotation mark inside a JSON string is escaped, so that no value can look like this key.
            let needle = format!("\"tool\":{}", serde_json::Value::from(tool.as_str()));
            query
                .push(" AND replace(body, ")
                .push_bind(needle)
                .push(", '') <> body");
        }
        query.push(match filter.order {
            LedgerOrder::Chain => " ORDER BY chain, seq LIMIT ",
            LedgerOrder::Newest => " ORDER BY position DESC LIMIT ",
        });
        query.push_bind(i64::from(filter.limit));
        query.build_query_as::<Raw>().fetch_all($pool).await?
    }};
}

impl Store {
    /// Entries of the ledger.
    ///
    /// # Errors
    /// [`StoreFault::Corrupt`] where a row is not an entry; else of the database.
    pub async fn ledger_read(&self, filter: &LedgerFilter) -> Result<Vec<LedgerRow>, StoreFault> {
        let rows = match &self.inner.backend {
            Backend::Sqlite(pool) => filtered!(sqlx::Sqlite, pool, filter),
            Backend::Postgres(pool) => filtered!(sqlx::Postgres, pool, filter),
        };
        rows.into_iter().map(read).collect()
    }

    /// The last entry of every chain, in the order of chain ids. Takes one look into the index per chain, not a walk
    /// through all entries.
    ///
    /// # Errors
    /// As [`Self::ledger_read`].
    pub async fn ledger_heads(&self) -> Result<Vec<LedgerHead>, StoreFault> {
        let rows: Vec<(Vec<u8>, i64, Vec<u8>)> = on!(self, pool => {
            sqlx::query_as(
                "WITH RECURSIVE chains (chain) AS (
                     SELECT (SELECT chain FROM ledger ORDER BY chain LIMIT 1)
                     UNION ALL
                     SELECT (SELECT l.chain FROM ledger l WHERE l.chain > chains.chain ORDER BY l.chain LIMIT 1)
                     FROM chains WHERE chains.chain IS NOT NULL
                 )
                 SELECT l.chain, l.seq, l.hash FROM chains
                 JOIN ledger l ON l.chain = chains.chain
                  AND l.seq = (SELECT h.seq FROM ledger h WHERE h.chain = chains.chain ORDER BY h.seq DESC LIMIT 1)
                 ORDER BY l.chain",
            )
            .fetch_all(pool)
            .await?
        });
        rows.into_iter()
            .map(|(chain, seq, hash)| {
                Ok(LedgerHead {
                    chain: uuid(&chain)?,
                    seq: place(seq)?,
                    hash: digest(hash)?,
                })
            })
            .collect()
    }

    /// The first entry of every chain, in the order of chain ids.
    ///
    /// # Errors
    /// As [`Self::ledger_read`].
    pub async fn ledger_starts(&self) -> Result<Vec<LedgerRow>, StoreFault> {
        let rows: Vec<Raw> = on!(self, pool => {
            sqlx::query_as(
                "WITH RECURSIVE chains (chain) AS (
                     SELECT (SELECT chain FROM ledger ORDER BY chain LIMIT 1)
                     UNION ALL
                     SELECT (SELECT l.chain FROM ledger l WHERE l.chain > chains.chain ORDER BY l.chain LIMIT 1)
                     FROM chains WHERE chains.chain IS NOT NULL
                 )
                 SELECT l.chain, seq, time, kind, call, body, prev, hash FROM chains
                 JOIN ledger l ON l.chain = chains.chain AND l.seq = 0
                 ORDER BY l.chain",
            )
            .fetch_all(pool)
            .await?
        });
        rows.into_iter().map(read).collect()
    }
}

fn read((chain, seq, time, kind, call, body, prev, hash): Raw) -> Result<LedgerRow, StoreFault> {
    Ok(LedgerRow {
        chain: uuid(&chain)?,
        seq: place(seq)?,
        time,
        kind,
        call: call.as_deref().map(uuid).transpose()?,
        body,
        prev: digest(prev)?,
        hash: digest(hash)?,
    })
}

pub(crate) fn place(seq: i64) -> Result<u64, StoreFault> {
    u64::try_from(seq).map_err(|_| StoreFault::Corrupt("a ledger row has a negative place".to_owned()))
}

pub(crate) fn digest(bytes: Vec<u8>) -> Result<Digest, StoreFault> {
    bytes
        .try_into()
        .map(Digest::from_bytes)
        .map_err(|_| StoreFault::Corrupt("a ledger row has a hash that is not 32 bytes long".to_owned()))
}

fn uuid(bytes: &[u8]) -> Result<Uuid, StoreFault> {
    Uuid::from_slice(bytes)
        .map_err(|_| StoreFault::Corrupt("a ledger row has an id that is not 16 bytes long".to_owned()))
}
