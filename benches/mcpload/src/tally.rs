//! What was counted and timed: verified calls, faults by kind, and latencies in HDR histograms.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::answer::Fault;

/// The longest latency that is told apart; an hour, which no call may take.
const NANOS_MAX: u64 = 3_600_000_000_000;
/// Kinds of faults that are kept with their count.
const FAULTS_SHOWN_MAX: usize = 10;

/// What one worker, or all together, counted.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) verified: u64,
    pub(crate) errors: u64,
    faults: BTreeMap<String, u64>,
    /// From when the call was due to when its answer was verified. In a closed loop a call is due when it is sent.
    latency: Histogram<u64>,
    /// From when the call was sent.
    service: Histogram<u64>,
}

/// Quantiles in microseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
}

impl Tally {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            verified: 0,
            errors: 0,
            faults: BTreeMap::new(),
            latency: Histogram::new_with_bounds(1, NANOS_MAX, 3)?,
            service: Histogram::new_with_bounds(1, NANOS_MAX, 3)?,
        })
    }

    pub(crate) fn add(&mut self, outcome: Result<(), Fault>, latency: Duration, service: Duration) {
        match outcome {
            Ok(()) => {
                self.verified += 1;
                self.latency.saturating_record(nanos(latency));
                self.service.saturating_record(nanos(service));
            }
            Err(fault) => {
                self.errors += 1;
                let text = format!("{fault:?}");
                if self.faults.len() < FAULTS_SHOWN_MAX || self.faults.contains_key(&text) {
                    *self.faults.entry(text).or_default() += 1;
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) -> anyhow::Result<()> {
        self.verified += other.verified;
        self.errors += other.errors;
        for (text, count) in other.faults {
            if self.faults.len() < FAULTS_SHOWN_MAX || self.faults.contains_key(&text) {
                *self.faults.entry(text).or_default() += count;
            }
        }
        self.latency.add(other.latency)?;
        self.service.add(other.service)?;
        Ok(())
    }

    pub(crate) const fn calls(&self) -> u64 {
        self.verified + self.errors
    }

    pub(crate) const fn faults(&self) -> &BTreeMap<String, u64> {
        &self.faults
    }

    pub(crate) fn latency(&self) -> Quantiles {
        Quantiles::of(&self.latency)
    }

    pub(crate) fn service(&self) -> Quantiles {
        Quantiles::of(&self.service)
    }
}

impl Quantiles {
    fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: micros(histogram.max()),
            mean: rounded(histogram.mean() / 1_000.0),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NANOS_MAX)
}

fn micros(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1_000.0)
}

/// A number as reports show it: two digits after the point are more than any of this is worth.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_verified_calls_are_timed_and_every_fault_is_counted() {
        let mut all = Tally::new().unwrap();
        let mut one = Tally::new().unwrap();
        for micros in 1..=100 {
            let time = Duration::from_micros(micros * 10);
            one.add(Ok(()), time, time / 2);
        }
        one.add(Err(Fault::Nonce), Duration::from_secs(9), Duration::from_secs(9));
        all.merge(one.clone()).unwrap();
        all.merge(one).unwrap();
        assert_eq!((all.verified, all.errors, all.calls()), (200, 2, 202));
        assert_eq!(all.faults()["Nonce"], 2);
        let latency = all.latency();
        assert!((latency.p50 - 500.0).abs() < 1.0, "{latency:?}");
        assert!((latency.max - 1_000.0).abs() < 1.0, "{latency:?}");
        assert!((all.service().p50 - 250.0).abs() < 1.0);
    }

    #[test]
    fn the_kinds_of_faults_shown_are_bounded_and_the_count_is_not() {
        let mut tally = Tally::new().unwrap();
        for status in 400..420 {
            tally.add(Err(Fault::Status(status)), Duration::ZERO, Duration::ZERO);
        }
        assert_eq!(tally.faults().len(), FAULTS_SHOWN_MAX);
        assert_eq!(tally.errors, 20);
    }
}
