//! A load generator for MCP and plain HTTP that believes nothing: an answer counts once it was verified.
//!
//! Three commands. `run` puts load on one target and prints what it measured as JSON. `compare` starts an upstream, a
//! bare proxy and a gate, and runs them in turn. `instructions` counts instructions per call under callgrind.
//! Read first: `script.rs`, what is sent; `answer.rs`, what is verified; `load.rs`, when it is sent.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

mod answer;
mod child;
mod compare;
mod connection;
mod instructions;
mod load;
mod place;
mod plan;
mod run;
mod script;
mod table;
mod tally;
mod token;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

/// A load generator that verifies every answer. Loopback targets only.
#[derive(Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Put load on one target; prints JSON, ends with 1 if any answer failed verification
    Run(run::RunOptions),
    /// Start an upstream, a bare proxy and a gate, and compare them in interleaved rounds
    Compare(compare::CompareOptions),
    /// Count instructions per call of a command under callgrind, as the slope between two runs
    Instructions(instructions::InstructionsOptions),
    /// Make an issuer's key set and one access token of it, for a gate that wants one
    Token(token::TokenOptions),
}

/// Whether everything that was sent came back right. It becomes the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Sound,
    Faulty,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    // One thread: the generator shares its core with the upstream, and a second thread would only contend for it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let verdict = runtime.block_on(async {
        match options.command {
            Command::Run(options) => run::run(options).await,
            Command::Compare(options) => compare::compare(options).await,
            Command::Instructions(options) => instructions::instructions(options).await,
            Command::Token(options) => token::token(&options),
        }
    })?;
    Ok(match verdict {
        Verdict::Sound => ExitCode::SUCCESS,
        Verdict::Faulty => ExitCode::FAILURE,
    })
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is the interface of this command"
)]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "progress and faults of a command for people")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Parses `250ms`, `5s` or `2m`, for command lines and plans.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let millis_each = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return Err(format!("duration `{text}` has no unit; write 250ms, 5s or 2m")),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(millis_each))
        .filter(|millis| *millis <= 3_600_000)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("duration `{text}` is no number up to an hour; write 250ms, 5s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_number_and_a_unit_and_ends_at_an_hour() {
        for (text, millis) in [("0ms", 0), ("250ms", 250), ("5s", 5_000), ("60m", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "5h",
            "-1s",
            "1.5s",
            "61m",
            "99999999999999999999s",
            "5 s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
