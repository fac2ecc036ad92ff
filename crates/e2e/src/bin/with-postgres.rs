//! Runs a command with a PostgreSQL server of its own: `with-postgres cargo test -p tollhouse-store`.
//!
//! The command finds the server's URL in `PG_URL`, where the rooms that know both engines look for it. The server and
//! its data are gone when the command has ended.

#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, reason = "a program for a terminal")]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: with-postgres COMMAND [ARGUMENT]...");
        return ExitCode::from(2);
    };
    // `peer::missing` has said what is missing; without a server the command runs all the same.
    let server = e2e::postgres::Postgres::start();
    let mut command = Command::new(&program);
    command.args(words);
    if let Some(server) = &server {
        command.env("PG_URL", server.url());
    }
    match command.status() {
        Ok(status) => ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        ),
        Err(error) => {
            eprintln!("`{}` cannot be run: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
