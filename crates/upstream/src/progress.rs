//! How far a call is, for whoever reports it: what a service says of its work, or what an MCP server tells by itself.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::relay::{Relay, Step, Told, Wish};

/// How much of running work is done, and what its server tells meanwhile.
#[derive(Debug)]
pub struct Progress {
    percent: AtomicU8,
    is_told: AtomicBool,
    last: Mutex<Option<f64>>,
    relay: Relay,
}

impl Progress {
    const UNSAID: u8 = u8::MAX;

    /// Of a call whose caller wants to have logged to him what this says.
    #[must_use]
    pub fn with(logs: Arc<Wish>) -> Self {
        Self {
            relay: Relay::with(logs),
            ..Self::default()
        }
    }

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
        self.is_told.store(true, Ordering::Release);
    }

    /// Whether only what a server tells is progress.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.is_told.load(Ordering::Acquire)
    }

    /// Takes what a server told. Progress that does not rise is none (PROG-02).
    pub(crate) fn tell(&self, step: Step) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| step.done <= last) {
            return;
        }
        *last = Some(step.done);
        self.relay.tell(Told::Progress(step));
    }

    /// What its server tells.
    #[must_use]
    pub const fn relay(&self) -> &Relay {
        &self.relay
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            percent: AtomicU8::new(Self::UNSAID),
            is_told: AtomicBool::new(false),
            last: Mutex::new(None),
            relay: Relay::default(),
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

    fn step(done: f64) -> Step {
        Step {
            done,
            total: None,
            message: None,
        }
    }

    #[test]
    fn prog_02_what_a_server_tells_rises_and_comes_in_order() {
        let progress = Progress::default();
        for done in [0.5, 0.5, 0.25, 1.0, 7.0, 6.0] {
            progress.tell(step(done));
        }
        let told = [0.5, 1.0, 7.0].map(|done| Told::Progress(step(done)));
        assert_eq!(progress.relay().take(), told);
        progress.tell(step(7.0));
        assert_eq!(progress.relay().take(), [], "also what was taken counts");
    }
}
