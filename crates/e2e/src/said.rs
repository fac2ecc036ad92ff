//! What a command said, to whom, and with which exit code.

use std::ffi::OsStr;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::binary;
use crate::house::{House, PATIENCE, text};

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Its standard output as one JSON value.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts the exit code, with everything that was said.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self
    }

    /// Asserts that standard error has a text.
    #[track_caller]
    pub fn told(self, needle: &str) -> Self {
        assert!(self.err.contains(needle), "no {needle:?} in:\n{}", self.err);
        self
    }

    /// Asserts that standard output has a text.
    #[track_caller]
    pub fn printed(self, needle: &str) -> Self {
        assert!(self.out.contains(needle), "no {needle:?} in:\n{}", self.out);
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// Runs `tollhouse` in a house.
pub async fn run<S: AsRef<OsStr>>(house: &House, arguments: impl IntoIterator<Item = S>) -> Said {
    house.run(arguments).await.into()
}

/// Runs `tollhouse` in a house and writes to its standard input.
pub async fn run_with_input<S: AsRef<OsStr>>(
    house: &House,
    arguments: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Said {
    let mut child = house
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // A command that does not read its input closes it, which is its right.
    let _ = pipe.write_all(input).await;
    drop(pipe);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    ended.expect("the command ends").unwrap().into()
}

/// Runs a line of a shell in a house, where `tollhouse` is the built binary.
pub async fn shell(house: &House, line: &str) -> Said {
    let ended = shell_command(house, line).stdin(Stdio::null()).output();
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    ended.expect("the line ends").unwrap().into()
}

/// The line of a shell, to be run: with the folder and the environment that a house gives to its commands.
pub fn shell_command(house: &House, line: &str) -> Command {
    let programs = binary::tollhouse().parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&path))).unwrap();
    let model = house.command([""; 0]);
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .current_dir(house.folder())
        .env_clear()
        .envs(
            model
                .as_std()
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", path)
        .kill_on_drop(true);
    command
}
