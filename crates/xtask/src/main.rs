//! What a person types: `cargo xtask …`. The logic is in the library.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "chores tell on the terminal what they do"
)]

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use openapi::Nesting;
use xtask::corpus::{self, Choice};
use xtask::repository::Made;
use xtask::rooms::{ROOMS, Room};
use xtask::stage;

/// Tests and chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Format, lint, hold the rules of the repository, build the documentation
    Check,
    /// Everything: install what is missing, check, and run all tests with every peer
    Test,
    /// Install what is missing and run the end-to-end tests with every peer
    E2e,
    /// Compare the dependencies with deny.toml
    Deny,
    /// Install what the end-to-end tests need beside Rust
    Install,
    /// Run the fuzz targets from their corpora, one after the other
    Fuzz {
        /// One target; without it, all.
        target: Option<String>,
        /// How long each runs, in seconds.
        #[arg(default_value_t = xtask::fuzz::SECONDS)]
        seconds: u32,
    },
    /// Write docs/conformance*.md and docs/grid.md from runs of the official conformance suite and of real clients and servers
    Conformance,
    /// Open and abandon a thousand sessions over started servers, and tell what the gate holds before and five minutes after
    Leak,
    /// Compare each room's clippy.toml with the table of rooms, or write it
    Rooms {
        /// Write what differs.
        #[arg(long)]
        write: bool,
    },
    /// Count what comes of every OpenAPI document in a folder; fails where something comes that must never be
    Corpus {
        /// The folder; documents in JSON and YAML, also in its folders.
        folder: std::path::PathBuf,
        /// Write values inside of `deepObject`, items of lists by their index; without it they block.
        #[arg(long)]
        nested: bool,
        /// The budget of each input schema, in bytes, as `input_bytes_max` of an upstream.
        #[arg(long)]
        input_bytes_max: Option<usize>,
        /// The budget of each output schema, in bytes, as `output_bytes_max` of an upstream.
        #[arg(long)]
        output_bytes_max: Option<usize>,
    },
    /// Compare the documents that are made from the code with it, or write them
    Docs {
        /// Write what differs.
        #[arg(long)]
        write: bool,
    },
}

fn main() -> ExitCode {
    match Cli::parse().chore.run() {
        Ok(()) => ExitCode::SUCCESS,
        // Not as the result of `main`, which adds a backtrace that nobody needs.
        Err(fault) => {
            eprintln!("error: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

// === impl Chore ===

impl Chore {
    fn run(self) -> Result<()> {
        match self {
            Self::Check => stage::run_all(stage::CHECK),
            Self::Test => stage::run_all(stage::TEST),
            Self::E2e => stage::run_all(stage::E2E),
            Self::Deny => stage::deny(),
            Self::Install => xtask::install::install(),
            Self::Conformance => stage::conformance(),
            Self::Leak => stage::leak(),
            Self::Fuzz { target, seconds } => xtask::fuzz::fuzz(target.as_deref(), seconds),
            Self::Rooms { write } => keep(&ROOMS.iter().map(Room::clippy_file).collect::<Vec<_>>(), write),
            Self::Corpus {
                folder,
                nested,
                input_bytes_max,
                output_bytes_max,
            } => {
                let choice = Choice {
                    nesting: if nested { Nesting::Indexed } else { Nesting::Refuse },
                    input_bytes_max,
                    output_bytes_max,
                };
                println!("{}", corpus::corpus(&folder, choice)?);
                Ok(())
            }
            Self::Docs { write } => keep(&xtask::documents::all()?, write),
        }
    }
}

/// Compares files with their source, or writes them.
fn keep(files: &[Made], write: bool) -> Result<()> {
    let mut faults = Vec::new();
    for file in files {
        if write {
            if file.write()? {
                println!("wrote {}", file.path);
            }
        } else if let Some(fault) = file.fault() {
            faults.push(fault);
        }
    }
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    println!("{} files equal their source", files.len());
    Ok(())
}
