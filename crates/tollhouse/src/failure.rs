//! Every way in which `tollhouse` is expected to fail, and the exit code of each. Anything else is a defect.
//!
//! The codes are part of the command's contract: `docs/exit-codes.md`, where a test compares them.

use std::process::ExitCode;

use crate::print::tell;
use crate::problem::{Problem, report};

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was asked was done, and its result is a no: a refused call, a demo that came out wrong. Already printed.
    #[error("")]
    No,
    /// The ledger is not sound. Already printed.
    #[error("")]
    Unsound,
    /// Something that a person named is not there or cannot be read.
    #[error("{0}")]
    Input(String),
    /// An address, a service or a database that is needed is not available.
    #[error("{0}")]
    Unavailable(String),
    /// The configuration, a document or a policy is wrong.
    #[error("the configuration has {} faults", .0.len())]
    Problems(Vec<Problem>),
    /// The same, already printed.
    #[error("")]
    Faulty,
    /// The command of a server ended so. Only the gate reads this.
    #[error("the command ended with exit code {0}")]
    Launched(u8),
    /// A defect of Tollhouse, or a machine that cannot run it.
    #[error("{0}")]
    Internal(String),
}

impl Failure {
    /// The exit code: 0 is success, 2 is a wrong command line (by clap); these follow sysexits.
    pub(crate) const fn code(&self) -> u8 {
        match self {
            Self::No => 1,
            Self::Unsound => 65,
            Self::Input(_) => 66,
            Self::Unavailable(_) => 69,
            Self::Internal(_) => 70,
            Self::Problems(_) | Self::Faulty => 78,
            Self::Launched(code) => *code,
        }
    }

    /// Says what went wrong, on standard error, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::No | Self::Unsound | Self::Faulty | Self::Launched(_) => {}
            Self::Problems(problems) => report(problems),
            Self::Input(text) | Self::Unavailable(text) | Self::Internal(text) => {
                tell!("tollhouse: {text}");
            }
        }
        ExitCode::from(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_codes_are_those_of_the_documentation() {
        let documented = include_str!("../../../docs/exit-codes.md");
        for (failure, word) in [
            (Failure::No, "no"),
            (Failure::Unsound, "unsound"),
            (Failure::Input(String::new()), "input"),
            (Failure::Unavailable(String::new()), "unavailable"),
            (Failure::Internal(String::new()), "internal"),
            (Failure::Problems(Vec::new()), "configuration"),
            (Failure::Faulty, "configuration"),
        ] {
            let row = format!("| {} | {word} |", failure.code());
            assert!(documented.contains(&row), "docs/exit-codes.md has no row {row}");
        }
    }
}
