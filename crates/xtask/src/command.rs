//! Other programs that chores run: found in the path, run with their output on the terminal, and a failure told with the
//! command that failed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A program in the path.
#[must_use]
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Runs a command to its end; what it prints goes to the terminal.
///
/// # Errors
/// Where it cannot be started or does not succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let words = words(command);
    println!("$ {words}");
    let status = command
        .status()
        .with_context(|| format!("`{words}` cannot be started"))?;
    if !status.success() {
        bail!("`{words}` failed ({status})");
    }
    Ok(())
}

/// A cargo command in the root of the repository, without what the cargo that started this program told it of itself:
/// some build scripts look at it, and would run again.
#[must_use]
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words);
    plain(&mut command);
    command
}

/// The cargo that runs this program.
#[must_use]
pub fn program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Takes what cargo says of this program out of the environment of another, and runs it in the root.
pub fn plain(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if own.iter().any(|start| name_text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.current_dir(crate::repository::root());
}

/// A command as a person would type it.
fn words(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_named_and_one_that_succeeds_is_not_a_fault() {
        run(&mut Command::new("true")).unwrap();
        let fault = run(Command::new("false").arg("word")).unwrap_err();
        assert!(fault.to_string().contains("`false word` failed"), "{fault}");
        let fault = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(fault.to_string().contains("cannot be started"), "{fault}");
    }

    #[test]
    fn programs_of_the_path_are_found_and_others_are_not() {
        assert!(in_path("sh").is_some());
        assert!(in_path("no-such-program-here").is_none());
    }
}
