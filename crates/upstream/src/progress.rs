//! How far a call is, for whoever reports it: what a service says of its work, or what an MCP server tells by itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What was told and is not reported yet. Of a server that tells more than can be reported, the oldest goes.
const WAITING_MAX: usize = 64;

/// How much of running work is done.
#[derive(Debug)]
pub struct Progress {
    percent: AtomicU8,
    relay: Mutex<Relay>,
    told: Notify,
}

/// What an MCP server told of its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// How much is done. Finite.
    pub done: f64,
    /// Of how much, where it says. Finite.
    pub total: Option<f64>,
    /// In its words. Untrusted.
    pub message: Option<String>,
}

#[derive(Debug, Default)]
struct Relay {
    is_on: bool,
    last: Option<f64>,
    waiting: VecDeque<Told>,
}

impl Progress {
    const UNSAID: u8 = u8::MAX;

    pub(crate) fn note(&self, percent: Option<u8>) {
        if let Some(percent) = percent {
            self.percent.store(percent.min(100), Ordering::Relaxed);
        }
    }

    /// The percentage that was said last; `None`: none was.
    #[must_use]
    pub fn percent(&self) -> Option<u8> {
        let percent = self.percent.load(Ordering::Relaxed);
        (percent != Self::UNSAID).then_some(percent)
    }

    /// From now on, only what a server tells is progress: numbers of two makers would not rise together (PROG-02).
    pub(crate) fn is_told(&self) {
        self.relay().is_on = true;
    }

    /// Whether only what a server tells is progress.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.relay().is_on
    }

    /// Takes what a server told. Progress that does not rise is none (PROG-02).
    pub(crate) fn tell(&self, told: Told) {
        let mut relay = self.relay();
        if relay.last.is_some_and(|last| told.done <= last) {
            return;
        }
        relay.last = Some(told.done);
        if relay.waiting.len() >= WAITING_MAX {
            relay.waiting.pop_front();
        }
        relay.waiting.push_back(told);
        drop(relay);
        self.told.notify_one();
    }

    /// What was told and not yet taken, in order.
    pub fn take(&self) -> Vec<Told> {
        self.relay().waiting.drain(..).collect()
    }

    /// Waits until something was told. Dropping the future loses nothing.
    pub async fn changed(&self) {
        self.told.notified().await;
    }

    fn relay(&self) -> MutexGuard<'_, Relay> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            percent: AtomicU8::new(Self::UNSAID),
            relay: Mutex::default(),
            told: Notify::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_what_was_said_last_and_nothing_before() {
        let progress = Progress::default();
        assert_eq!(progress.percent(), None);
        for (said, percent) in [(Some(7), 7), (None, 7), (Some(200), 100), (Some(3), 3)] {
            progress.note(said);
            assert_eq!(progress.percent(), Some(percent));
        }
    }

    fn told(done: f64) -> Told {
        Told {
            done,
            total: None,
            message: None,
        }
    }

    #[test]
    fn prog_02_what_a_server_tells_rises_and_comes_in_order() {
        let progress = Progress::default();
        for done in [0.5, 0.5, 0.25, 1.0, 7.0, 6.0] {
            progress.tell(told(done));
        }
        assert_eq!(progress.take(), [told(0.5), told(1.0), told(7.0)]);
        assert_eq!(progress.take(), []);
        progress.tell(told(7.0));
        assert_eq!(progress.take(), [], "also what was taken counts");
    }

    #[test]
    fn of_a_flood_the_newest_stays() {
        let progress = Progress::default();
        for done in 0..=u32::try_from(WAITING_MAX).unwrap() {
            progress.tell(told(f64::from(done)));
        }
        let taken = progress.take();
        assert_eq!(taken.len(), WAITING_MAX);
        assert_eq!(taken.first(), Some(&told(1.0)));
    }
}
