//! Requests seen, by operation. This is the witness for "the upstream got no request", so it counts before any check.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Operation;

/// The counters. Requests that match no operation are counted under `unmatched`.
#[derive(Default)]
pub(crate) struct Counts {
    operations: [AtomicU64; Operation::ALL.len()],
    unmatched: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, operation: Option<Operation>) {
        self.counter(operation).fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn of(&self, operation: Operation) -> u64 {
        self.counter(Some(operation)).load(Ordering::SeqCst)
    }

    pub(crate) fn total(&self) -> u64 {
        self.all().map(|counter| counter.load(Ordering::SeqCst)).sum()
    }

    pub(crate) fn reset(&self) {
        for counter in self.all() {
            counter.store(0, Ordering::SeqCst);
        }
    }

    /// The counts by `operationId`, and `unmatched`.
    pub(crate) fn table(&self) -> BTreeMap<&'static str, u64> {
        let unmatched = ("unmatched", self.unmatched.load(Ordering::SeqCst));
        Operation::ALL
            .into_iter()
            .map(|operation| (operation.id(), self.of(operation)))
            .chain([unmatched])
            .collect()
    }

    fn all(&self) -> impl Iterator<Item = &AtomicU64> {
        self.operations.iter().chain([&self.unmatched])
    }

    fn counter(&self, operation: Option<Operation>) -> &AtomicU64 {
        operation
            .and_then(|wanted| {
                Operation::ALL
                    .iter()
                    .zip(&self.operations)
                    .find(|(operation, _)| **operation == wanted)
            })
            .map_or(&self.unmatched, |(_, counter)| counter)
    }
}
