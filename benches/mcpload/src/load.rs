//! When calls are sent. Closed loop: each worker sends its next call once it has the answer to the last. Open loop:
//! calls are due at a fixed rate, whether earlier ones were answered or not.
//!
//! A closed loop slows down with its target, so its latencies leave out those that a user would have had to wait
//! (coordinated omission). In the open loop a latency therefore begins when the call was *due*, not when a worker was
//! free to send it, and a call that was never sent is reported as such.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::script::Script;
use crate::tally::Tally;

/// How many calls may fail before a phase is given up: a target that is down would otherwise be hammered to the end.
const ERRORS_MAX: u64 = 100;
/// How long after the end of an open phase late calls may still be sent.
const LATE_MAX: Duration = Duration::from_secs(5);

/// One phase of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phase {
    /// How long calls are started.
    pub(crate) duration: Duration,
    /// How many calls are started at most.
    pub(crate) calls_max: u64,
    /// Calls per second; `None` is the closed loop.
    pub(crate) rate: Option<u32>,
}

/// What a phase gave.
#[derive(Debug)]
pub(crate) struct Phased {
    pub(crate) tally: Tally,
    pub(crate) elapsed: Duration,
    /// Calls of an open loop that were due and were not sent.
    pub(crate) unsent: u64,
}

/// The workers, with their connections kept from phase to phase.
pub(crate) struct Workers {
    script: Arc<Script>,
    connections: Vec<Connection>,
    /// The number of the next call. It never starts again, so that no two calls of a run are alike.
    next: Arc<AtomicU64>,
}

/// What the workers of one phase share.
struct Shared {
    script: Arc<Script>,
    next: Arc<AtomicU64>,
    /// Calls begun in this phase.
    begun: AtomicU64,
    errors: AtomicU64,
    pace: Pace,
    calls_max: u64,
    /// No call is begun after this.
    end: Instant,
}

/// When the next call may be sent.
enum Pace {
    /// At once.
    Closed,
    /// The i-th call when its permit arrives, which is when it is due.
    Open {
        due: Semaphore,
        start: Instant,
        rate: u32,
    },
}

impl Workers {
    /// Connects `concurrency` workers.
    ///
    /// # Errors
    /// A worker that cannot connect or cannot open its session.
    pub(crate) async fn open(
        script: Script,
        concurrency: u16,
        call_timeout: Duration,
    ) -> anyhow::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..concurrency {
            let mut connection = Connection::new(call_timeout);
            if let Err(fault) = connection.open(&script).await {
                bail!("cannot open a connection to {}: {fault:?}", script.place());
            }
            connections.push(connection);
        }
        Ok(Self {
            script: Arc::new(script),
            connections,
            next: Arc::new(AtomicU64::new(1)),
        })
    }

    /// Connections opened so far; more than there are workers where the target closes them.
    pub(crate) fn opened(&self) -> u64 {
        self.connections.iter().map(Connection::opened).sum()
    }

    /// Runs one phase to its end.
    ///
    /// # Errors
    /// A worker that panicked. Failed calls are no error here; they are in the tally.
    pub(crate) async fn phase(&mut self, phase: Phase) -> anyhow::Result<Phased> {
        let start = Instant::now();
        let (pace, calls_max, end) = match phase.rate {
            None => (Pace::Closed, phase.calls_max, start + phase.duration),
            Some(rate) => {
                let due = Semaphore::new(0);
                let calls = calls_due(rate, phase.duration).min(phase.calls_max);
                (
                    Pace::Open { due, start, rate },
                    calls,
                    start + phase.duration + LATE_MAX,
                )
            }
        };
        let shared = Arc::new(Shared {
            script: Arc::clone(&self.script),
            next: Arc::clone(&self.next),
            begun: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            pace,
            calls_max,
            end,
        });
        let dispatcher = dispatch(&shared);
        let mut workers = JoinSet::new();
        for connection in self.connections.drain(..) {
            workers.spawn(work(connection, Arc::clone(&shared)));
        }
        let mut tally = Tally::new()?;
        while let Some(worker) = workers.join_next().await {
            let (connection, part) = worker.context("a worker failed")??;
            self.connections.push(connection);
            tally.merge(part)?;
        }
        let elapsed = start.elapsed();
        if let Some(dispatcher) = dispatcher {
            // It ends with the phase at the latest; by now all permits are given out or nobody takes them.
            shared.begun.store(u64::MAX, Ordering::Relaxed);
            tokio::task::spawn_blocking(move || dispatcher.join())
                .await?
                .map_err(|_| anyhow::anyhow!("the dispatcher failed"))?;
        }
        let unsent = match phase.rate {
            None => 0,
            Some(_) => calls_max.saturating_sub(tally.calls()),
        };
        Ok(Phased {
            tally,
            elapsed,
            unsent,
        })
    }
}

fn calls_due(rate: u32, duration: Duration) -> u64 {
    u64::try_from(u128::from(rate) * duration.as_millis() / 1_000).unwrap_or(u64::MAX)
}

/// When the i-th call of an open loop is due, counted from the start of the phase.
fn due_after(i: u64, rate: u32) -> Duration {
    let nanos = u128::from(i) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

async fn work(mut connection: Connection, shared: Arc<Shared>) -> anyhow::Result<(Connection, Tally)> {
    let mut tally = Tally::new()?;
    while shared.errors.load(Ordering::Relaxed) < ERRORS_MAX {
        let Some(due) = shared.next_due().await else {
            break;
        };
        let n = shared.next.fetch_add(1, Ordering::Relaxed);
        let sent = Instant::now();
        let outcome = connection.call(&shared.script, n).await;
        let done = Instant::now();
        if outcome.is_err() {
            shared.errors.fetch_add(1, Ordering::Relaxed);
        }
        tally.add(outcome, done - due.unwrap_or(sent), done - sent);
    }
    Ok((connection, tally))
}

impl Shared {
    /// Waits until a call is due. `None`: the phase has no more calls. `Some(None)`: closed loop, due now.
    async fn next_due(&self) -> Option<Option<Instant>> {
        let i = self.begun.fetch_add(1, Ordering::Relaxed);
        if i >= self.calls_max || Instant::now() >= self.end {
            return None;
        }
        match &self.pace {
            Pace::Closed => Some(None),
            Pace::Open { due, start, rate } => {
                // Permits arrive in the order of the schedule and are taken in the order of asking.
                due.acquire().await.ok()?.forget();
                (Instant::now() < self.end).then(|| Some(*start + due_after(i, *rate)))
            }
        }
    }
}

/// Gives out a permit for each call when it is due, from a thread of its own: the runtime's timer counts whole
/// milliseconds, which is twenty calls at 20,000 calls per second.
fn dispatch(shared: &Arc<Shared>) -> Option<std::thread::JoinHandle<()>> {
    match &shared.pace {
        Pace::Closed => None,
        Pace::Open { .. } => {
            let shared = Arc::clone(shared);
            Some(std::thread::spawn(move || shared.give_permits()))
        }
    }
}

impl Shared {
    fn give_permits(&self) {
        let Pace::Open { due, start, rate } = &self.pace else {
            return;
        };
        let mut given = 0;
        while given < self.calls_max && self.begun.load(Ordering::Relaxed) != u64::MAX {
            let now = start.elapsed();
            let mut ready: usize = 0;
            while given < self.calls_max && due_after(given, *rate) <= now {
                given += 1;
                ready += 1;
            }
            due.add_permits(ready);
            // At most a tenth of a second at a time, so that the end of the phase is noticed.
            let rest = due_after(given, *rate).saturating_sub(start.elapsed());
            std::thread::sleep(rest.min(Duration::from_millis(100)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_due_at_equal_distances() {
        assert_eq!(calls_due(1_000, Duration::from_millis(2_500)), 2_500);
        assert_eq!(calls_due(3, Duration::from_millis(500)), 1);
        assert_eq!(due_after(0, 1_000), Duration::ZERO);
        assert_eq!(due_after(1, 1_000), Duration::from_millis(1));
        assert_eq!(due_after(3_000, 1_000), Duration::from_secs(3));
        assert_eq!(due_after(1, 3), Duration::from_nanos(333_333_333));
    }
}
