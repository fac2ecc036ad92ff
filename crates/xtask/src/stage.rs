//! The stages of the two big chores: `check`, what is fast and needs nothing but Rust, and `test`, everything. Each stage
//! says how long it took, and a stage that fails does not keep the later ones from telling what they have to tell.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::command::{cargo, plain, program, run};
use crate::{install, repository};

/// One step of a big chore.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// What it is called in the table at the end.
    pub name: &'static str,
    /// What it does.
    pub work: fn() -> Result<()>,
    /// Whether it makes no sense to go on without it.
    pub vital: bool,
}

const INSTALL: Stage = Stage {
    name: "install",
    work: install::install,
    vital: true,
};

const FORMAT: Stage = Stage {
    name: "format",
    work: || run(&mut cargo(&["fmt", "--all", "--check"])),
    vital: false,
};

const CLIPPY: Stage = Stage {
    name: "clippy",
    work: || {
        let words = ["clippy", "--locked", "--workspace", "--all-targets"];
        run(cargo(&words).args(["--", "--deny", "warnings"]))
    },
    vital: false,
};

const DENY: Stage = Stage {
    name: "deny",
    work: deny,
    vital: false,
};

/// Building is a stage of its own, so that the time of the tests is the time of the tests.
const BUILD: Stage = Stage {
    name: "build",
    work: || {
        (BINARIES.work)()?;
        run(&mut cargo(&["test", "--locked", "--workspace", "--no-run"]))
    },
    vital: true,
};

const BINARIES: Stage = Stage {
    name: "binaries",
    work: || run(&mut cargo(&["build", "--locked", "--workspace", "--bins"])),
    vital: true,
};

const RULES: Stage = Stage {
    name: "rules",
    work: || run(&mut cargo(&["test", "--locked", "--package", "xtask"])),
    vital: false,
};

const TESTS: Stage = Stage {
    name: "tests",
    work: || {
        run(&mut required(&[
            "test",
            "--locked",
            "--workspace",
            "--no-fail-fast",
        ])?)
    },
    vital: false,
};

const END_TO_END: Stage = Stage {
    name: "end to end",
    work: || {
        let words = ["test", "--locked", "--package", "tollhouse-e2e", "--no-fail-fast"];
        run(&mut required(&words)?)
    },
    vital: false,
};

const DOCS: Stage = Stage {
    name: "docs",
    work: || {
        let mut command = cargo(&["doc", "--locked", "--workspace", "--no-deps"]);
        run(command.env("RUSTDOCFLAGS", "--deny warnings"))
    },
    vital: false,
};

/// What a change has to pass before anybody looks at it.
pub const CHECK: &[Stage] = &[FORMAT, CLIPPY, RULES, DOCS];

/// The end-to-end tests with every peer.
pub const E2E: &[Stage] = &[INSTALL, BINARIES, END_TO_END];

/// Everything.
pub const TEST: &[Stage] = &[INSTALL, FORMAT, DENY, CLIPPY, BUILD, TESTS, DOCS];

/// Compares the dependencies with `deny.toml`. Advisories are not looked up: the answer would change without a change here.
///
/// # Errors
/// Where cargo-deny cannot be installed, or finds something.
pub fn deny() -> Result<()> {
    let mut command = Command::new(install::cargo_deny()?);
    command.args([
        "--locked",
        "--log-level",
        "error",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    plain(&mut command);
    run(&mut command)
}

/// Lets the official conformance suite, and clients and servers of other people, loose on a gate, and writes `docs/conformance*.md`
/// and `docs/grid.md` from what comes of it.
///
/// # Errors
/// Where a check neither passes nor is known to be not for this server, or the suite is not installed.
pub fn conformance() -> Result<()> {
    let mut command = cargo(&[
        "test",
        "--locked",
        "--workspace",
        "--test",
        "peers",
        "--",
        "conformance::",
        "grid::",
        "through::",
        "clients::",
    ]);
    command.envs([("TOLLHOUSE_PEERS", "required"), ("TOLLHOUSE_WRITE", "1")]);
    run(&mut command)
}

/// Opens and abandons a thousand sessions over servers that are started for them, and tells what the gate holds before,
/// at the end of it, and five minutes later.
///
/// # Errors
/// Where something was not given back.
pub fn leak() -> Result<()> {
    let mut command = cargo(&[
        "test",
        "--locked",
        "--package",
        "tollhouse-e2e",
        "--test",
        "it",
        "--",
        "--ignored",
        "--nocapture",
        "leak::",
    ]);
    run(&mut command)
}

/// A cargo command that finds PostgreSQL, and in which a peer that is missing is a failure.
fn required(words: &[&str]) -> Result<Command> {
    let with_postgres: PathBuf = repository::target_folder()?.join("debug/with-postgres");
    let mut command = Command::new(with_postgres);
    command.arg(program()).args(words);
    command.env("TOLLHOUSE_PEERS", "required");
    plain(&mut command);
    Ok(command)
}

/// Runs the stages in order and tells what each took.
///
/// # Errors
/// Where a stage failed; all of them are named.
pub fn run_all(stages: &[Stage]) -> Result<()> {
    let mut ran = Vec::new();
    for stage in stages {
        println!("\n=== {}", stage.name);
        let began = Instant::now();
        let result = (stage.work)();
        if let Err(fault) = &result {
            eprintln!("error: {fault:#}");
        }
        let passed = result.is_ok();
        ran.push(Ran {
            name: stage.name,
            passed,
            took: began.elapsed(),
        });
        if !passed && stage.vital {
            break;
        }
    }
    print!("\n{}", table(stages, &ran));
    let failed: Vec<&str> = ran.iter().filter(|ran| !ran.passed).map(|ran| ran.name).collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// How a stage went.
struct Ran {
    name: &'static str,
    passed: bool,
    took: Duration,
}

/// The table at the end.
fn table(stages: &[Stage], ran: &[Ran]) -> String {
    let mut text = String::new();
    let mut whole = Duration::ZERO;
    // Writing to a String cannot fail.
    for stage in stages {
        let Some(ran) = ran.iter().find(|ran| ran.name == stage.name) else {
            let _ = writeln!(text, "{:<11} not run", stage.name);
            continue;
        };
        whole += ran.took;
        let word = if ran.passed { "passed" } else { "FAILED" };
        let _ = writeln!(text, "{:<11} {word}  {:>6}", stage.name, minutes(ran.took));
    }
    let _ = writeln!(text, "{:<11}         {:>6}", "all", minutes(whole));
    text
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, work: fn() -> Result<()>, vital: bool) -> Stage {
        Stage { name, work, vital }
    }

    #[test]
    fn a_stage_that_fails_is_told_and_the_others_run_unless_it_was_vital() {
        let yes: fn() -> Result<()> = || Ok(());
        let no: fn() -> Result<()> = || bail!("no");
        run_all(&[stage("a", yes, true), stage("b", yes, false)]).unwrap();
        let fault =
            run_all(&[stage("a", no, false), stage("b", no, true), stage("c", no, false)]).unwrap_err();
        assert_eq!(fault.to_string(), "failed: a, b");
    }

    #[test]
    fn the_table_says_what_passed_what_failed_and_what_did_not_run() {
        let work: fn() -> Result<()> = || Ok(());
        let stages = ["one", "two", "three"].map(|name| stage(name, work, false));
        let ran = [("one", true, 61), ("two", false, 5)].map(|(name, passed, seconds)| Ran {
            name,
            passed,
            took: Duration::from_secs(seconds),
        });
        assert_eq!(
            table(&stages, &ran),
            "one         passed    1:01\ntwo         FAILED    0:05\nthree       not run\nall                   1:06\n"
        );
    }
}
