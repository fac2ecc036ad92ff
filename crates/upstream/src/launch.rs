//! The launcher: what the gate starts in place of a server's command. It runs in a process of its own.
//!
//! Two processes of it stand before every command. The **warden** is the child of the gate: it starts the second one,
//! waits, and sees to it that nothing of the command is left: when it ends, when the gate asks for it, and when the gate
//! is gone, however it went. The **bailiff** is the child of the warden: it shuts itself into the sandbox, says on
//! standard error what of it holds, and then becomes the command. Both are safe code, which is why neither is a hook
//! between fork and exec.
//!
//! The environment of the command travels under a prefix, so that nothing in it (`LD_PRELOAD`) acts on the launcher.

#[cfg(unix)]
mod bailiff;
mod report;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(unix)]
mod warden;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use report::{REPORT_BYTES_MAX, Report};

pub use report::Protection;

/// The hidden subcommand of the launcher.
const SUBCOMMAND: &str = "__launch";

/// Stands before the name of each variable of the command's environment.
pub(crate) const VARIABLE_PREFIX: &str = "TOLLHOUSE_CHILD_";

/// What one process of the launcher is to do.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Which of the two it is.
    pub role: Role,
    /// The process that started it. Where it is gone already, nothing starts.
    pub parent: u32,
    /// The folder in which the command runs.
    pub cwd: PathBuf,
    /// What it may reach, as JSON. `None`: whatever its user may.
    pub sandbox: Option<String>,
    /// How long the command and what it started have between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The program, as an absolute path.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The variables of this process.
    pub variables: Vec<(OsString, OsString)>,
}

/// Which process of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Stays beside the command, and ends what is left of it.
    Warden,
    /// Becomes the command.
    Bailiff,
}

impl Role {
    /// The word for it on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warden => "warden",
            Self::Bailiff => "bailiff",
        }
    }
}

impl Launch {
    /// The hidden subcommand that does it, and its arguments: what stands behind the name of our own program.
    pub(crate) fn command_line(&self, role: Role, parent: u32) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec![
            SUBCOMMAND.into(),
            role.as_str().into(),
            "--parent".into(),
            parent.to_string().into(),
            "--cwd".into(),
            self.cwd.clone().into(),
            "--grace".into(),
            self.grace.as_millis().to_string().into(),
        ];
        if let Some(sandbox) = &self.sandbox {
            all.extend(["--sandbox".into(), sandbox.into()]);
        }
        all.push("--".into());
        all.push(self.program.clone());
        all.extend(self.arguments.iter().cloned());
        all
    }

    /// Does it. Comes back with the exit code that this process should end with; a bailiff that becomes its command does
    /// not come back.
    ///
    /// What goes wrong before the command runs is one line on standard error, for the gate.
    #[must_use]
    pub fn run(self) -> u8 {
        #[cfg(unix)]
        {
            let role = self.role;
            let result = match role {
                Role::Warden => warden::run(self),
                Role::Bailiff => bailiff::run(self),
            };
            match result {
                Ok(code) => code,
                Err(why) => {
                    Report::Refused(why).say();
                    NOT_STARTED
                }
            }
        }
        #[cfg(not(unix))]
        {
            Report::Refused("servers are started on Unix only; reach this one by `url`".to_owned()).say();
            NOT_STARTED
        }
    }
}

/// The exit code of a command that was never run, as a shell has it.
const NOT_STARTED: u8 = 126;
