//! The rows of the ledger, and how they are read. Writing them is in `writer`; what is in them is for `audit` to say.

use std::collections::HashMap;

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
    /// Its place in the chain, from 0. Below 2^40.
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
    /// Entries behind this place, in whatever chain.
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
    /// By chain, in the order in which the store first saw them, then by place: as the chain was made.
    #[default]
    Chain,
    /// By time, the latest first.
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

// === positions ===

/// The place of an entry among all: the number that the store gave its chain, and its place in the chain.
///
/// One whole number, and the only key of the table: `number * 2^40 + seq`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) number: i64,
    pub(crate) seq: u64,
}

/// One more than the largest `seq`.
const SEQ_END: u64 = 1 << 40;
/// One more than the largest number of a chain: with it every key, and the one behind it, fits 63 bits.
const NUMBER_END: i64 = (1 << 23) - 1;

impl Position {
    /// The key. `None` past the 10^12th entry of a chain, or the 8 millionth chain.
    pub(crate) fn key(self) -> Option<i64> {
        let seq = i64::try_from(self.seq).ok().filter(|_| self.seq < SEQ_END)?;
        let number = Some(self.number).filter(|number| (0..NUMBER_END).contains(number))?;
        Some((number << 40) | seq)
    }

    /// The position of a key.
    pub(crate) fn of(key: i64) -> Result<Self, StoreFault> {
        let seq = u64::try_from(key & ((1 << 40) - 1)).ok().filter(|_| key >= 0);
        seq.map(|seq| Self {
            number: key >> 40,
            seq,
        })
        .ok_or_else(|| StoreFault::Corrupt("a ledger row has a negative position".to_owned()))
    }

    /// The first key of a chain and the one behind its last possible.
    fn keys(number: i64) -> (i64, i64) {
        (number << 40, (number + 1) << 40)
    }
}

// === reading ===

type Raw = (i64, i64, String, Option<Vec<u8>>, String, Vec<u8>, Vec<u8>);
type Numbers = HashMap<i64, Uuid>;

/// One query over any filter, compiled for each engine: `QueryBuilder` numbers the placeholders as the engine wants them.
macro_rules! filtered {
    ($engine:ty, $pool:expr, $filter:expr, $keys:expr) => {{
        let filter: &LedgerFilter = $filter;
        let (first, end): (i64, i64) = $keys;
        let mut query = QueryBuilder::<$engine>::new(
            "SELECT position, time, kind, call, body, prev, hash FROM ledger WHERE position >= ",
        );
        query.push_bind(first).push(" AND position < ").push_bind(end);
        if let (None, Some(after)) = (filter.chain, filter.after) {
            query
                .push(" AND position % 1099511627776 > ")
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
            LedgerOrder::Chain => " ORDER BY position LIMIT ",
            LedgerOrder::Newest => " ORDER BY position DESC LIMIT ",
        });
        query.push_bind(i64::from(filter.limit));
        query.build_query_as::<Raw>().fetch_all($pool).await?
    }};
}

impl Store {
    /// Entries of the ledger.
    ///
    /// Chain and place are looked up; every other condition looks at each entry that those leave, of which SQLite manages
    /// about a million in a second. Indexes would make these questions quick and every call dear.
    ///
    /// # Errors
    /// [`StoreFault::Corrupt`] where a row is not an entry; else of the database.
    pub async fn ledger_read(&self, filter: &LedgerFilter) -> Result<Vec<LedgerRow>, StoreFault> {
        let numbers = self.numbers().await?;
        match filter.order {
            LedgerOrder::Chain => self.in_chain_order(filter, &numbers).await,
            LedgerOrder::Newest => self.newest_first(filter, &numbers).await,
        }
    }

    async fn in_chain_order(
        &self,
        filter: &LedgerFilter,
        numbers: &Numbers,
    ) -> Result<Vec<LedgerRow>, StoreFault> {
        let Some(chain) = filter.chain else {
            return self.range(filter, (0, i64::MAX), numbers).await;
        };
        match number_of(chain, numbers) {
            Some(number) => {
                self.range(filter, keys_after(number, filter.after), numbers)
                    .await
            }
            None => Ok(Vec::new()),
        }
    }

    /// Chains are asked one by one, the one with the latest entry first, until the others can only have older ones.
    async fn newest_first(
        &self,
        filter: &LedgerFilter,
        numbers: &Numbers,
    ) -> Result<Vec<LedgerRow>, StoreFault> {
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        let mut heads = self.timed_heads().await?;
        heads.retain(|(head, _)| filter.chain.is_none_or(|chain| chain == head.chain));
        heads.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let mut newest: Vec<LedgerRow> = Vec::new();
        for (head, time) in heads {
            let oldest = newest.last().map(|row| row.time);
            if newest.len() >= limit && oldest.is_some_and(|oldest| time < oldest) {
                break;
            }
            let Some(number) = number_of(head.chain, numbers) else {
                continue;
            };
            newest.extend(
                self.range(filter, keys_after(number, filter.after), numbers)
                    .await?,
            );
            newest.sort_by_key(|row| std::cmp::Reverse((row.time, row.seq)));
            newest.truncate(limit);
        }
        Ok(newest)
    }

    async fn range(
        &self,
        filter: &LedgerFilter,
        keys: (i64, i64),
        numbers: &Numbers,
    ) -> Result<Vec<LedgerRow>, StoreFault> {
        let rows = match &self.inner.backend {
            Backend::Sqlite(pool) => filtered!(sqlx::Sqlite, pool, filter, keys),
            Backend::Postgres(pool) => filtered!(sqlx::Postgres, pool, filter, keys),
        };
        rows.into_iter().map(|row| read(row, numbers)).collect()
    }

    /// The last entry of every chain, in the order of chain ids. Takes one look into the index per chain, not a walk
    /// through all entries.
    ///
    /// # Errors
    /// As [`Self::ledger_read`].
    pub async fn ledger_heads(&self) -> Result<Vec<LedgerHead>, StoreFault> {
        Ok(self
            .timed_heads()
            .await?
            .into_iter()
            .map(|(head, _)| head)
            .collect())
    }

    async fn timed_heads(&self) -> Result<Vec<(LedgerHead, i64)>, StoreFault> {
        let rows: Vec<(Vec<u8>, i64, i64, Vec<u8>)> = on!(self, pool => {
            sqlx::query_as(
                "SELECT c.chain, l.position, l.time, l.hash FROM ledger_chain c
                 JOIN ledger l ON l.position = (
                     SELECT h.position FROM ledger h
                     WHERE h.position >= c.number * 1099511627776 AND h.position < (c.number + 1) * 1099511627776
                     ORDER BY h.position DESC LIMIT 1)
                 ORDER BY c.chain",
            )
            .fetch_all(pool)
            .await?
        });
        rows.into_iter()
            .map(|(chain, key, time, hash)| {
                let head = LedgerHead {
                    chain: uuid(&chain)?,
                    seq: Position::of(key)?.seq,
                    hash: digest(hash)?,
                };
                Ok((head, time))
            })
            .collect()
    }

    /// The first entry of every chain, in the order of chain ids.
    ///
    /// # Errors
    /// As [`Self::ledger_read`].
    pub async fn ledger_starts(&self) -> Result<Vec<LedgerRow>, StoreFault> {
        let numbers = self.numbers().await?;
        let rows: Vec<Raw> = on!(self, pool => {
            sqlx::query_as(
                "SELECT position, time, kind, call, body, prev, hash FROM ledger_chain c
                 JOIN ledger l ON l.position = c.number * 1099511627776
                 ORDER BY c.chain",
            )
            .fetch_all(pool)
            .await?
        });
        rows.into_iter().map(|row| read(row, &numbers)).collect()
    }

    async fn numbers(&self) -> Result<Numbers, StoreFault> {
        let rows: Vec<(i64, Vec<u8>)> = on!(self, pool => {
            sqlx::query_as("SELECT number, chain FROM ledger_chain").fetch_all(pool).await?
        });
        rows.into_iter()
            .map(|(number, chain)| Ok((number, uuid(&chain)?)))
            .collect()
    }
}

fn number_of(chain: Uuid, numbers: &Numbers) -> Option<i64> {
    numbers
        .iter()
        .find(|(_, known)| **known == chain)
        .map(|(number, _)| *number)
}

fn keys_after(number: i64, after: Option<u64>) -> (i64, i64) {
    let (first, end) = Position::keys(number);
    match after {
        None => (first, end),
        Some(after) => {
            let behind = after
                .checked_add(1)
                .and_then(|seq| Position { number, seq }.key());
            (behind.unwrap_or(end), end)
        }
    }
}

fn read((key, time, kind, call, body, prev, hash): Raw, numbers: &Numbers) -> Result<LedgerRow, StoreFault> {
    let position = Position::of(key)?;
    let chain = numbers.get(&position.number).copied();
    Ok(LedgerRow {
        chain: chain.ok_or_else(|| StoreFault::Corrupt("a ledger row belongs to no chain".to_owned()))?,
        seq: position.seq,
        time,
        kind,
        call: call.as_deref().map(uuid).transpose()?,
        body,
        prev: digest(prev)?,
        hash: digest(hash)?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_at_its_bounds_and_has_no_key_past_them() {
        for (number, seq) in [
            (0, 0),
            (1, 0),
            (0, SEQ_END - 1),
            (NUMBER_END - 1, SEQ_END - 1),
            (7, 12_345),
        ] {
            let position = Position { number, seq };
            assert_eq!(Position::of(position.key().unwrap()), Ok(position));
        }
        for (number, seq) in [(0, SEQ_END), (NUMBER_END, 0), (-1, 0), (0, u64::MAX)] {
            assert_eq!(Position { number, seq }.key(), None, "{number} {seq}");
        }
        assert!(Position::of(-1).is_err());
        let last = Position {
            number: NUMBER_END - 1,
            seq: SEQ_END - 1,
        };
        assert!(last.key() < Some(i64::MAX));
    }
}
