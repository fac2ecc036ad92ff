//! The API keys of the store, held in memory and read again at short intervals, so that a revoked key soon ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use identity::{ConfiguredCaller, KeyDirectory, KeyEntry, KeyRecord, Lookup};
use model::{CallerName, KeyId};
use store::{KeyRow, Store, StoreFault};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// After this many intervals without a successful reading no key is trusted: it may have been revoked.
const STALE_INTERVALS: u32 = 3;

/// Callers as the configuration has them, by name.
pub(crate) type Callers = BTreeMap<CallerName, Arc<ConfiguredCaller>>;

/// The keys of the store.
#[derive(Debug)]
pub(crate) struct StoredKeys {
    store: Store,
    callers: Callers,
    interval: Duration,
    current: ArcSwap<Reading>,
}

#[derive(Debug)]
struct Reading {
    keys: Arc<HashMap<KeyId, Found>>,
    version: u64,
    at: Instant,
}

#[derive(Debug)]
enum Found {
    Entry(Arc<KeyEntry>),
    Orphaned(CallerName),
}

impl StoredKeys {
    /// Reads the keys for the first time.
    pub(crate) async fn open(
        store: Store,
        callers: Callers,
        interval: Duration,
    ) -> Result<Arc<Self>, StoreFault> {
        let version = store.keys_version().await?;
        let keys = Arc::new(entries(store.keys_list().await?, &callers));
        let current = ArcSwap::from_pointee(Reading {
            keys,
            version,
            at: Instant::now(),
        });
        Ok(Arc::new(Self {
            store,
            callers,
            interval,
            current,
        }))
    }

    /// Reads the keys again and again, until `shutdown`.
    pub(crate) async fn follow(self: Arc<Self>, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if let Err(fault) = self.read().await {
                tracing::error!(%fault, "the API keys could not be read again");
            }
        }
    }

    async fn read(&self) -> Result<(), StoreFault> {
        let before = self.current.load_full();
        let at = Instant::now();
        let version = self.store.keys_version().await?;
        let keys = if version == before.version {
            Arc::clone(&before.keys)
        } else {
            Arc::new(entries(self.store.keys_list().await?, &self.callers))
        };
        self.current.store(Arc::new(Reading { keys, version, at }));
        Ok(())
    }
}

impl KeyDirectory for StoredKeys {
    fn find(&self, id: &KeyId) -> Lookup {
        let current = self.current.load();
        if current.at.elapsed() > self.interval * STALE_INTERVALS {
            return Lookup::Stale;
        }
        match current.keys.get(id) {
            None => Lookup::Absent,
            Some(Found::Entry(entry)) => Lookup::Found(Arc::clone(entry)),
            Some(Found::Orphaned(caller)) => Lookup::Orphaned(caller.clone()),
        }
    }
}

fn entries(rows: Vec<KeyRow>, callers: &Callers) -> HashMap<KeyId, Found> {
    rows.into_iter()
        .map(|row| {
            let KeyRow {
                id,
                hash,
                caller,
                added,
                expires,
                revoked,
                note,
            } = row;
            let found = match callers.get(&caller) {
                None => Found::Orphaned(caller),
                Some(configured) => {
                    let record = KeyRecord {
                        id: id.clone(),
                        hash,
                        caller,
                        added,
                        expires,
                        revoked,
                        note,
                    };
                    Found::Entry(Arc::new(KeyEntry {
                        record,
                        caller: Arc::clone(configured),
                    }))
                }
            };
            (id, found)
        })
        .collect()
}
