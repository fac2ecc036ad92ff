//! The command `run`: warm up, measure, print what was measured.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::load::{Phase, Workers};
use crate::place::Place;
use crate::script::{Face, Script, ScriptOptions};
use crate::tally::{Quantiles, rounded};
use crate::watch::{Watch, Watched};
use crate::{Verdict, duration, print};

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The target, on this machine: http://127.0.0.1:PORT/PATH
    #[arg(long, value_name = "URL")]
    url: Place,

    #[command(flatten)]
    script: ScriptOptions,

    /// Workers, each with one connection and one call at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    concurrency: u16,

    /// Open loop: so many calls are due each second, whether earlier ones were answered or not
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    rate: Option<u32>,

    /// How long to warm up; these calls are verified and not measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    warm_up: Duration,

    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    measure: Duration,

    /// Most calls in each of the two phases
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    calls: u64,

    /// How long one call may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    call_timeout: Duration,

    /// Report CPU time, memory and descriptors of this process and its descendants; may be given several times
    #[arg(long = "watch-pid", value_name = "PID")]
    watch: Vec<u32>,
}

/// What a run measured, as it is printed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunReport {
    pub(crate) target: String,
    pub(crate) face: Face,
    pub(crate) concurrency: u16,
    pub(crate) bytes: u32,
    /// Calls due each second in the open loop; none in the closed loop.
    pub(crate) rate: Option<u32>,
    pub(crate) warm_up: WarmUp,
    pub(crate) seconds: f64,
    pub(crate) calls: u64,
    pub(crate) verified: u64,
    pub(crate) errors: u64,
    /// Calls of the open loop that were due and not sent, because no worker was free.
    pub(crate) unsent: u64,
    pub(crate) faults: BTreeMap<String, u64>,
    /// Connections opened over the whole run.
    pub(crate) connections: u64,
    pub(crate) calls_per_second: f64,
    /// In the open loop from when a call was due, in the closed loop from when it was sent.
    pub(crate) latency_us: Quantiles,
    /// From when a call was sent.
    pub(crate) service_us: Quantiles,
    pub(crate) watched: Vec<Watched>,
}

/// The unmeasured part of a run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct WarmUp {
    pub(crate) verified: u64,
    pub(crate) errors: u64,
}

impl RunReport {
    /// Sound: something was verified, nothing failed, nothing was left out.
    pub(crate) const fn verdict(&self) -> Verdict {
        if self.verified > 0 && self.errors == 0 && self.warm_up.errors == 0 && self.unsent == 0 {
            Verdict::Sound
        } else {
            Verdict::Faulty
        }
    }
}

pub(crate) async fn run(options: RunOptions) -> anyhow::Result<Verdict> {
    let report = measure(&options).await?;
    print(&serde_json::to_string_pretty(&report)?);
    Ok(report.verdict())
}

async fn measure(options: &RunOptions) -> anyhow::Result<RunReport> {
    if options.call_timeout.is_zero() {
        bail!("call timeout `0` lets no call end; write 250ms, 5s or 2m");
    }
    let script = Script::new(&options.script, options.url.clone())?;
    let mut workers = Workers::open(script, options.concurrency, options.call_timeout).await?;
    let phase = |duration| Phase {
        duration,
        calls_max: options.calls,
        rate: options.rate,
    };
    let warm_up = workers.phase(phase(options.warm_up)).await?.tally;
    let watches = options
        .watch
        .iter()
        .map(|pid| Watch::begin(*pid))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let measured = workers.phase(phase(options.measure)).await?;
    let verified = measured.tally.verified;
    let watched = watches
        .into_iter()
        .map(|watch| watch.end(verified))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let seconds = measured.elapsed.as_secs_f64();
    let mut faults = warm_up.faults().clone();
    faults.extend(measured.tally.faults().clone());
    Ok(RunReport {
        target: options.url.to_string(),
        face: options.script.face,
        concurrency: options.concurrency,
        bytes: options.script.bytes,
        rate: options.rate,
        warm_up: WarmUp {
            verified: warm_up.verified,
            errors: warm_up.errors,
        },
        seconds: rounded(seconds),
        calls: measured.tally.calls(),
        verified,
        errors: measured.tally.errors,
        unsent: measured.unsent,
        faults,
        connections: workers.opened(),
        calls_per_second: rounded(verified as f64 / seconds),
        latency_us: measured.tally.latency(),
        service_us: measured.tally.service(),
        watched,
    })
}
