//! The command `instructions`: how many instructions one call costs a command, without the noise of a busy machine.
//!
//! The command runs twice under callgrind, once for few calls and once for many. The difference of the two counts over
//! the difference of the calls is the price of one call; start and end fall out. It counts user-mode instructions
//! of the one process, so system calls and child processes are not in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use crate::child::{Running, Start, interrupted, sibling};
use crate::compare::Folder;
use crate::load::{Phase, Workers};
use crate::plan::replaced;
use crate::script::{Script, ScriptOptions};
use crate::{Verdict, print};

/// A command is slower by a factor of about fifty under callgrind.
const READY_TIMEOUT: Duration = Duration::from_secs(300);
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
const PHASE_TIMEOUT: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
pub(crate) struct InstructionsOptions {
    #[command(flatten)]
    script: ScriptOptions,

    /// The path that the command takes calls at
    #[arg(long, value_name = "PATH", default_value = "/echo")]
    path: String,

    /// How many calls each of the two runs makes
    #[arg(long, value_name = "FEW,MANY", value_delimiter = ',', default_values_t = [100, 500],
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    calls: Vec<u64>,

    /// The upstream, which runs without callgrind; without it, the `echo-upstream` beside this command
    #[arg(long, value_name = "FILE")]
    echo_upstream: Option<PathBuf>,

    /// Set this in the command's environment
    #[arg(long = "env", value_name = "NAME=VALUE")]
    environment: Vec<String>,

    /// The command; `{upstream}`, `{upstream_address}` and `{folder}` are replaced in it
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Slope {
    face: &'static str,
    bytes: u32,
    instructions_per_call: u64,
    runs: Vec<Counted>,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Counted {
    calls: u64,
    instructions: u64,
}

pub(crate) async fn instructions(options: InstructionsOptions) -> anyhow::Result<Verdict> {
    if !matches!(options.calls.as_slice(), [few, many] if few < many) {
        bail!(
            "calls `{:?}` are no slope; write the smaller number first, as 100,500",
            options.calls
        );
    }
    let folder = Folder::new()?;
    let upstream = match &options.echo_upstream {
        Some(path) => path.clone(),
        None => sibling("echo-upstream")?,
    };
    let upstream = Running::start(&Start {
        name: "upstream",
        command: &[upstream.to_string_lossy().into_owned()],
        environment: &BTreeMap::new(),
        core: None,
        folder: folder.path(),
        ready_timeout: READY_TIMEOUT,
    })
    .await?;
    let mut runs = Vec::new();
    for calls in &options.calls {
        runs.push(tokio::select! {
            counted = count(&options, *calls, upstream.url(), folder.path()) => counted?,
            heard = interrupted() => {
            heard?;
            bail!("interrupted; every process that was started is ended")
        }
        });
    }
    upstream.stop().await?;
    let slope = Slope {
        face: options.script.face.as_str(),
        bytes: options.script.bytes,
        instructions_per_call: per_call(&runs)?,
        runs,
    };
    print(&serde_json::to_string_pretty(&slope)?);
    Ok(Verdict::Sound)
}

/// One run under callgrind. Every answer is verified: a command that fails fast must not look cheap.
async fn count(
    options: &InstructionsOptions,
    calls: u64,
    upstream: &str,
    folder: &Path,
) -> anyhow::Result<Counted> {
    // A folder of its own for each run, so that both begin with the same nothing.
    let own = folder.join(calls.to_string());
    std::fs::create_dir(&own)?;
    let own_text = own.to_string_lossy().into_owned();
    let words = [
        ("{upstream_address}", upstream.trim_start_matches("http://")),
        ("{upstream}", upstream),
        ("{folder}", own_text.as_str()),
    ];
    let log = own.join("valgrind.log");
    let mut command = vec![
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={own_text}/callgrind.out"),
        format!("--log-file={}", log.display()),
    ];
    command.extend(options.command.iter().map(|word| replaced(word, &words)));
    let environment = options
        .environment
        .iter()
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .with_context(|| format!("`{pair}` sets nothing; write NAME=VALUE"))?;
            Ok((name.to_owned(), replaced(value, &words)))
        })
        .collect::<anyhow::Result<_>>()?;
    let running = Running::start(&Start {
        name: "measured",
        command: &command,
        environment: &environment,
        core: None,
        folder: &own,
        ready_timeout: READY_TIMEOUT,
    })
    .await?;
    let place = format!("{}{}", running.url(), options.path).parse()?;
    let script = Script::new(&options.script, place)?;
    let mut workers = Workers::open(script, 1, CALL_TIMEOUT).await?;
    let phased = workers
        .phase(Phase {
            duration: PHASE_TIMEOUT,
            calls_max: calls,
            rate: None,
        })
        .await?;
    if phased.tally.verified != calls {
        bail!(
            "{} of {calls} calls were verified; {:?}",
            phased.tally.verified,
            phased.tally.faults()
        );
    }
    running.stop().await?;
    let text = std::fs::read_to_string(&log).context("valgrind wrote no log")?;
    let instructions =
        collected(&text).with_context(|| format!("valgrind counted nothing; its log: {}", text.trim()))?;
    Ok(Counted { calls, instructions })
}

/// The number behind `Collected :` in callgrind's log.
fn collected(log: &str) -> Option<u64> {
    log.lines().find_map(|line| {
        line.split_once("Collected :")?
            .1
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
}

fn per_call(runs: &[Counted]) -> anyhow::Result<u64> {
    let [few, many] = runs else {
        bail!("two runs make a slope; found {}", runs.len());
    };
    let calls = many.calls.saturating_sub(few.calls);
    let instructions = many.instructions.saturating_sub(few.instructions);
    instructions
        .checked_div(calls)
        .filter(|per_call| *per_call > 0)
        .context("the second run needs more calls than the first, and more instructions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_callgrinds_log() {
        let log = "==12== Callgrind, a call-graph generating cache profiler\n==12== \n\
                   ==12== Events    : Ir\n==12== Collected : 123456789\n==12== \n";
        assert_eq!(collected(log), Some(123_456_789));
        assert_eq!(collected("==12== Collected : none\n"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn the_slope_is_the_price_of_one_call() {
        let run = |calls, instructions| Counted { calls, instructions };
        assert_eq!(per_call(&[run(100, 1_007_000), run(500, 1_035_000)]).unwrap(), 70);
        assert!(per_call(&[run(500, 1_035_000), run(100, 1_007_000)]).is_err());
        assert!(per_call(&[run(100, 5), run(100, 6)]).is_err());
        assert!(per_call(&[run(100, 5)]).is_err());
    }
}
