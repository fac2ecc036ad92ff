//! The bailiff: shuts itself into the sandbox and becomes the command. It has one thread, because Landlock and seccomp
//! hold for the thread that asks for them and for what it becomes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::{Launch, Protection, Report, VARIABLE_PREFIX};

/// Comes back only with a reason why the command does not run.
pub(super) fn run(launch: Launch) -> Result<u8, String> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        // The warden ends the command; this ends it where somebody ended the warden.
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| format!("the end of the warden cannot be watched: {error}"))?;
        if getppid().is_none_or(|parent| parent.as_raw_pid().unsigned_abs() != launch.parent) {
            return Err("the gate is gone".to_owned());
        }
    }
    let protection = protect(&launch)?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(
            launch
                .variables
                .iter()
                .filter_map(|(name, value)| meant(name, value)),
        );
    Report::Ready(protection).say();
    let error = command.exec();
    // The report is given; this line is for the log.
    Err(format!(
        "`{}` cannot be run in `{}`: {error}",
        launch.program.display(),
        launch.cwd.display()
    ))
}

/// A variable of the command, without the prefix under which it travelled.
fn meant<'v>(name: &'v OsString, value: &'v OsString) -> Option<(&'v OsStr, &'v OsStr)> {
    let name = name.as_bytes().strip_prefix(VARIABLE_PREFIX.as_bytes())?;
    Some((OsStr::from_bytes(name), value.as_os_str()))
}

#[cfg(target_os = "linux")]
fn protect(launch: &Launch) -> Result<Protection, String> {
    match &launch.sandbox {
        None => Ok(Protection::None),
        Some(text) => super::sandbox::apply(text, launch.program.as_ref()),
    }
}

#[cfg(not(target_os = "linux"))]
fn protect(launch: &Launch) -> Result<Protection, String> {
    let allowed = |text: &String| {
        let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
        value.is_some_and(|value| value.get("allow_degraded") == Some(&serde_json::Value::Bool(true)))
    };
    match &launch.sandbox {
        None => Ok(Protection::None),
        Some(text) if allowed(text) => Ok(Protection::None),
        Some(_) => Err(
            "this system has no sandbox; run the server elsewhere, or write `sandbox.allow_degraded = true`"
                .to_owned(),
        ),
    }
}
