//! The wait after a failure: doubled each time up to a bound, for each caller alone, so that nobody who makes a server
//! fail keeps others from it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::RestartSettings;
use tokio::time::Instant;

/// A child that ran this long did not fail at the start.
const GOOD_RUN: Duration = Duration::from_secs(60);

/// Callers whose failures are remembered. Past it, the oldest wait is forgotten: it has nearly passed anyway.
const CALLERS_MAX: usize = 10_000;

/// The failures of one server.
#[derive(Debug, Clone)]
pub(super) struct Backoffs {
    settings: RestartSettings,
    of: Arc<Mutex<HashMap<String, Failed>>>,
}

#[derive(Debug, Clone, Copy)]
struct Failed {
    times: u32,
    until: Instant,
}

/// Where the end of one child is told.
#[derive(Debug)]
pub(super) struct Failures {
    caller: String,
    started: Instant,
    /// Whether the child has answered.
    proven: Arc<AtomicBool>,
    all: Backoffs,
}

impl Backoffs {
    pub(super) fn new(settings: RestartSettings) -> Self {
        Self {
            settings,
            of: Arc::default(),
        }
    }

    /// How long the next start has to wait.
    pub(super) fn wait(&self, caller: &str) -> Option<Duration> {
        let failed = *self.lock().get(caller)?;
        let wait = failed.until.saturating_duration_since(Instant::now());
        (!wait.is_zero()).then_some(wait)
    }

    /// For one child that starts now.
    pub(super) fn of(&self, caller: &str, proven: Arc<AtomicBool>) -> Failures {
        Failures {
            caller: caller.to_owned(),
            started: Instant::now(),
            proven,
            all: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Failed>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wait after so many failures in a row.
    fn after(&self, times: u32) -> Duration {
        let doubled = 1_u32.checked_shl(times.saturating_sub(1)).unwrap_or(u32::MAX);
        self.settings
            .wait
            .saturating_mul(doubled)
            .min(self.settings.wait_max)
    }
}

impl Failures {
    /// The child ended without being asked to.
    pub(super) fn failed(&self) {
        let now = Instant::now();
        let good = self.proven.load(Ordering::Acquire) && now.duration_since(self.started) >= GOOD_RUN;
        let mut of = self.all.lock();
        let before = of.get(&self.caller).map_or(0, |failed| failed.times);
        let times = if good { 1 } else { before.saturating_add(1) };
        let until = now + self.all.after(times);
        of.insert(self.caller.clone(), Failed { times, until });
        if of.len() > CALLERS_MAX
            && let Some(oldest) = of
                .iter()
                .min_by_key(|(_, failed)| failed.until)
                .map(|(caller, _)| caller.clone())
        {
            of.remove(&oldest);
        }
    }

    /// The child ended because it was asked to, and had answered: what failed before is forgotten.
    pub(super) fn ended_well(&self) {
        if self.proven.load(Ordering::Acquire) {
            self.all.lock().remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoffs() -> Backoffs {
        Backoffs::new(RestartSettings {
            wait: Duration::from_secs(1),
            wait_max: Duration::from_secs(5),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_doubles_up_to_its_bound_and_is_of_one_caller_alone() {
        let backoffs = backoffs();
        assert_eq!(backoffs.wait("ada"), None);
        for seconds in [1, 2, 4, 5, 5] {
            backoffs.of("ada", Arc::default()).failed();
            assert_eq!(backoffs.wait("ada"), Some(Duration::from_secs(seconds)));
            assert_eq!(backoffs.wait("bob"), None);
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert_eq!(backoffs.wait("ada"), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_good_run_the_wait_is_the_first_one_again() {
        let backoffs = backoffs();
        for _ in 0..3 {
            backoffs.of("ada", Arc::default()).failed();
        }
        for (proven, seconds, expected) in [(false, 60, 5), (true, 59, 5), (true, 60, 1)] {
            let failures = backoffs.of("ada", Arc::new(AtomicBool::new(proven)));
            tokio::time::advance(Duration::from_secs(seconds)).await;
            failures.failed();
            let wait = backoffs.wait("ada");
            assert_eq!(wait, Some(Duration::from_secs(expected)), "{proven} {seconds}");
        }
        backoffs.of("ada", Arc::new(AtomicBool::new(true))).ended_well();
        assert_eq!(backoffs.wait("ada"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_callers_are_remembered() {
        let backoffs = backoffs();
        for caller in 0..=CALLERS_MAX {
            backoffs.of(&caller.to_string(), Arc::default()).failed();
            tokio::time::advance(Duration::from_nanos(1)).await;
        }
        assert_eq!(backoffs.lock().len(), CALLERS_MAX);
        assert_eq!(backoffs.wait("0"), None);
        assert!(backoffs.wait("1").is_some());
    }
}
