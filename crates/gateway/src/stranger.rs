//! Strangers: requests without an identity that holds. They are refused and written down, but not without bound:
//! whoever can send requests without a credential must not be able to fill the ledger.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many refusals of strangers are written down at once.
const BURST: u32 = 32;
/// How often another one may be written down after that.
const EVERY: Duration = Duration::from_secs(1);

/// Bounds what strangers can write.
#[derive(Debug)]
pub(crate) struct Strangers(Mutex<State>);

#[derive(Debug)]
struct State {
    left: u32,
    since: Instant,
    /// Refusals that were not written since the last one that was.
    passed_over: u64,
}

impl Strangers {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            left: BURST,
            since: Instant::now(),
            passed_over: 0,
        }))
    }

    /// Whether this refusal is written down; if so, how many were not since the last one.
    pub(crate) fn admit(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gained = u32::try_from(state.since.elapsed().as_millis() / EVERY.as_millis()).unwrap_or(BURST);
        if gained > 0 {
            state.left = state.left.saturating_add(gained).min(BURST);
            state.since = Instant::now();
        }
        if state.left == 0 {
            state.passed_over += 1;
            return None;
        }
        state.left -= 1;
        Some(std::mem::take(&mut state.passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strangers_are_written_down_up_to_the_bound_and_counted_past_it() {
        let strangers = Strangers::new();
        for _ in 0..BURST {
            assert_eq!(strangers.admit(), Some(0));
        }
        assert_eq!(strangers.admit(), None);
        assert_eq!(strangers.admit(), None);
        tokio::time::advance(EVERY).await;
        assert_eq!(strangers.admit(), Some(2));
        assert_eq!(strangers.admit(), None);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        for _ in 0..BURST {
            assert!(strangers.admit().is_some());
        }
        assert_eq!(strangers.admit(), None);
    }
}
