//! The command. It hands its arguments to [`cli`] and turns what comes back into an exit code.

#![forbid(unsafe_code)]

mod cli;
mod command;
mod directory;
mod failure;
mod house;
mod log;
mod print;
mod problem;
mod whole;

fn main() -> std::process::ExitCode {
    match command::run(cli::parse()).and_then(|()| print::ended()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
