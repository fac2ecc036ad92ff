//! When a stream that broke is tried again: after what the server asked for, later with every try that failed, and not
//! for ever. It tries nothing itself.

use std::time::Duration;

use tokio::time::Instant;

use crate::endpoint::Bounds;

/// The pause where the server says nothing.
const PAUSE_UNSAID: Duration = Duration::from_secs(1);

/// The shortest pause, whatever the server says: one that ends its stream at once would be asked as fast as it answers.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The pauses between the tries of one stream.
#[derive(Debug)]
pub(crate) struct Pause {
    tries: usize,
    tries_max: usize,
    pause_max: Duration,
}

impl Pause {
    pub(crate) const fn new(bounds: &Bounds) -> Self {
        Self {
            tries: 0,
            tries_max: bounds.resumes_max,
            pause_max: bounds.retry_max,
        }
    }

    /// Something came: what failed before does not count any more.
    pub(crate) const fn heard(&mut self) {
        self.tries = 0;
    }

    /// Tries since something came.
    pub(crate) const fn tries(&self) -> usize {
        self.tries
    }

    /// When to try next, counting it; `None` if not at all: too often, or the server asks for more patience than is had.
    /// The first pause is what `retry` says (HL-06), each further one twice as long, never past the longest.
    pub(crate) fn next(&mut self, retry: Option<Duration>) -> Option<Instant> {
        let asked = retry.unwrap_or(PAUSE_UNSAID).max(PAUSE_MIN);
        if self.tries == self.tries_max || asked > self.pause_max {
            return None;
        }
        let doublings = u32::try_from(self.tries).unwrap_or(u32::MAX).min(16);
        self.tries += 1;
        Some(Instant::now() + asked.saturating_mul(1 << doublings).min(self.pause_max))
    }
}

#[cfg(test)]
mod tests {
    use model::Limits;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hl_06_the_first_pause_is_what_was_asked_for_and_the_tries_have_an_end() {
        let limits = Limits {
            upstream_resumes_max: 4,
            upstream_retry_max: Duration::from_secs(3),
            ..Limits::default()
        };
        let bounds = Bounds::new(&limits);
        let pauses = |retry: Option<u64>| {
            let mut pause = Pause::new(&bounds);
            let retry = retry.map(Duration::from_millis);
            let pauses = std::iter::from_fn(|| pause.next(retry));
            pauses
                .map(|wake| (wake - Instant::now()).as_millis())
                .collect::<Vec<_>>()
        };
        assert_eq!(pauses(Some(500)), [500, 1_000, 2_000, 3_000]);
        assert_eq!(pauses(None), [1_000, 2_000, 3_000, 3_000]);
        assert_eq!(pauses(Some(0)), [50, 100, 200, 400]);
        assert_eq!(pauses(Some(3_000)), [3_000, 3_000, 3_000, 3_000]);
        assert!(pauses(Some(3_001)).is_empty(), "more patience than is had");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_makes_failed_tries_forgotten() {
        let limits = Limits {
            upstream_resumes_max: 1,
            ..Limits::default()
        };
        let mut pause = Pause::new(&Bounds::new(&limits));
        assert!(pause.next(None).is_some());
        assert_eq!((pause.next(None), pause.tries()), (None, 1));
        pause.heard();
        assert!(pause.next(None).is_some());
    }
}
