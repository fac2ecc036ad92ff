//! `cargo xtask fuzz`: builds the fuzz targets with the toolchain that is there, and runs them from their corpora.
//!
//! The compiler's coverage counters and libFuzzer (built from source by its crate) are all that it takes: no other
//! toolchain and no other tool. `cargo fuzz` finds the layout that it knows, for those who want its sanitizers.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::{cargo, run};
use crate::repository;

/// How long each target runs if nothing is said, in seconds.
pub const SECONDS: u32 = 60;

/// What makes the compiler count the edges that a run takes, as libFuzzer wants it.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The longest input, in bytes, and the longest time for one, in seconds.
const INPUT_BYTES_MAX: u32 = 16_384;
const INPUT_SECONDS_MAX: u32 = 10;

/// The most memory that a target may take, in MiB.
const MEMORY_MB_MAX: u32 = 2_048;

/// Fuzzes one target or, one after the other, all.
///
/// What is found on the way is kept in `fuzz/target/corpus` and is where the next run goes on; what fails is written
/// to `fuzz/artifacts`, and belongs into `fuzz/corpus`, under a name, once it is mended.
///
/// # Errors
/// A target that there is not, one that does not build, and the names of those that failed.
pub fn fuzz(target: Option<&str>, seconds: u32) -> Result<()> {
    let known = targets()?;
    let chosen = match target {
        None => known,
        Some(name) if known.iter().any(|known| known == name) => vec![name.to_owned()],
        Some(name) => bail!("there is no target `{name}`; write one of {}", known.join(", ")),
    };
    let triple = host()?;
    build(&triple)?;
    let mut failed = Vec::new();
    for name in chosen {
        println!("fuzzing {name} for {seconds} s");
        if !run_target(&name, &triple, seconds)? {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("failed: {}; what did it is in fuzz/artifacts", failed.join(", "))
}

fn folder() -> PathBuf {
    repository::root().join("fuzz")
}

/// The targets, in the order of their names.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder().join("fuzz_targets"))? {
        let file = entry?.file_name();
        if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(".rs")) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The platform that the compiler runs on. It is named to cargo, so that build scripts are built without counters.
fn host() -> Result<String> {
    let said = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("rustc does not run")?;
    String::from_utf8(said.stdout)?
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("rustc does not say what it runs on")
}

fn build(triple: &str) -> Result<()> {
    let words = ["build", "--locked", "--release", "--bins", "--target", triple];
    let mut build = cargo(&words);
    build
        .current_dir(folder())
        .env("RUSTFLAGS", COVERAGE.join(" "))
        .env("CARGO_TARGET_DIR", folder().join("target"))
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    run(&mut build)
}

/// Runs one target. `false`: it found something.
fn run_target(name: &str, triple: &str, seconds: u32) -> Result<bool> {
    let found = folder().join("target/corpus").join(name);
    let artifacts = folder().join("artifacts").join(name);
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&artifacts)?;
    let mut command = Command::new(folder().join("target").join(triple).join("release").join(name));
    command
        // New inputs are written to the first folder; the second is only read.
        .arg(found)
        .arg(folder().join("corpus").join(name))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .args(["-print_final_stats=1", "-verbosity=1"])
        .current_dir(folder());
    let words = folder().join("dictionaries").join(name);
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    Ok(command
        .status()
        .with_context(|| format!("{name} does not run"))?
        .success())
}
