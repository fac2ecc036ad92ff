//! A process that is measured: started on a core of its own, ready when it says so, ended when we are done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

/// How long a process may take to end once it was told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of a failed process's standard error is shown.
const TAIL_BYTES: usize = 4_096;
/// Lines that a process may print before its ready line.
const LINES_MAX: usize = 1_000;

/// How to start a process.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    /// For messages and file names.
    pub(crate) name: &'a str,
    pub(crate) command: &'a [String],
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The core to keep it on; `None` leaves that to the system.
    pub(crate) core: Option<usize>,
    /// Where its standard error goes, as `NAME.stderr`.
    pub(crate) folder: &'a Path,
    pub(crate) ready_timeout: Duration,
}

/// A process that printed its ready line. Dropped, it is killed.
pub(crate) struct Running {
    child: Child,
    pid: u32,
    url: String,
    /// Kept open, so that a process that prints more does not fail on a closed pipe; what it prints is thrown away.
    _drain: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Starts a process and waits for a line with `listening on http://…`.
    ///
    /// # Errors
    /// It cannot be started, ends, or is not ready in time; the end of its standard error is part of the message.
    pub(crate) async fn start(start: &Start<'_>) -> anyhow::Result<Self> {
        let stderr_path = start.folder.join(format!("{}.stderr", start.name));
        let stderr = std::fs::File::create(&stderr_path)
            .with_context(|| format!("cannot write `{}`", stderr_path.display()))?;
        let command = pinned(start.command, start.core);
        let (program, arguments) = command
            .split_first()
            .with_context(|| format!("`{}` has no command", start.name))?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(start.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start `{program}` for `{}`", start.name))?;
        let pid = child.id().context("the process ended at once")?;
        let stdout = child
            .stdout
            .take()
            .context("the process has no standard output")?;
        let ready = tokio::time::timeout(start.ready_timeout, ready_line(stdout)).await;
        match ready {
            Ok(Ok((url, mut rest))) => {
                let drain = tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
                });
                Ok(Self {
                    child,
                    pid,
                    url,
                    _drain: drain,
                })
            }
            Ok(Err(error)) => bail!("`{}` {error}{}", start.name, tail(&stderr_path)),
            Err(_) => bail!(
                "`{}` printed no `listening on http://…` within {:?}{}",
                start.name,
                start.ready_timeout,
                tail(&stderr_path)
            ),
        }
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Its URL without a path, as `http://127.0.0.1:40123`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks the process to end and waits for it; kills it where it does not.
    ///
    /// # Errors
    /// It had to be killed, or the system failed.
    pub(crate) async fn stop(mut self) -> anyhow::Result<ExitStatus> {
        // The safe standard library has no way to send another signal than KILL.
        let told = Command::new("kill")
            .args(["-TERM", &self.pid.to_string()])
            .status()
            .await;
        told.context("cannot run `kill`")?;
        match tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => {
                self.child.kill().await?;
                bail!(
                    "process `{}` did not end within {STOP_TIMEOUT:?} and was killed",
                    self.pid
                )
            }
        }
    }
}

/// The command behind `taskset`, where a core is given.
pub(crate) fn pinned(command: &[String], core: Option<usize>) -> Vec<String> {
    let prefix = core.map_or_else(Vec::new, |core| {
        vec!["taskset".to_owned(), "-c".to_owned(), core.to_string()]
    });
    [prefix.as_slice(), command].concat()
}

/// Whether processes can be kept on cores of their own here.
pub(crate) fn can_pin() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores > 1
        && std::process::Command::new("taskset")
            .args(["-c", "0", "true"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

/// Waits until this command is to end early. Whoever waits beside its work drops the work then, and with it every
/// process that was started.
pub(crate) async fn interrupted() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// A command of this workspace that was built beside this one.
pub(crate) fn sibling(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.is_file() {
        bail!(
            "`{}` is not built; run `cargo build --release -p {name}`",
            path.display()
        );
    }
    Ok(path)
}

async fn ready_line(stdout: ChildStdout) -> anyhow::Result<(String, BufReader<ChildStdout>)> {
    let mut reader = BufReader::new(stdout);
    for _ in 0..LINES_MAX {
        let mut line = Vec::new();
        let read = (&mut reader).take(64 << 10).read_until(b'\n', &mut line).await?;
        if read == 0 {
            bail!("ended before it was ready");
        }
        if let Some(url) = url_in(&String::from_utf8_lossy(&line)) {
            return Ok((url, reader));
        }
    }
    bail!("printed {LINES_MAX} lines and none of them was `listening on http://…`")
}

/// The URL of a ready line, without its path: that is the subject's.
fn url_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("listening on http://")?;
    let authority = rest.split([' ', '\t', '\r', '\n', '/']).next()?;
    (!authority.is_empty()).then(|| format!("http://{authority}"))
}

fn tail(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let from = bytes.len().saturating_sub(TAIL_BYTES);
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
    match text.trim() {
        "" => String::new(),
        text => format!("; its last words: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    async fn start(script: &str, ready_timeout: Duration) -> anyhow::Result<Running> {
        let folder = tempfile::tempdir().unwrap();
        Running::start(&Start {
            name: "gate",
            command: &shell(script),
            environment: &BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
            core: None,
            folder: folder.path(),
            ready_timeout,
        })
        .await
    }

    #[test]
    fn the_url_is_found_in_the_ready_line_and_in_no_other() {
        for (line, url) in [
            ("listening on http://127.0.0.1:80", Some("http://127.0.0.1:80")),
            (
                "tollhouse: listening on http://127.0.0.1:80/ (2 tools)\n",
                Some("http://127.0.0.1:80"),
            ),
            (
                "listening on http://127.0.0.1:80/mcp, 1 tool",
                Some("http://127.0.0.1:80"),
            ),
            (
                "listening on http://127.0.0.1:80\r\n",
                Some("http://127.0.0.1:80"),
            ),
            ("listening on http:///mcp", None),
            ("listening on 127.0.0.1:80", None),
            ("listening on", None),
            ("starting", None),
        ] {
            assert_eq!(url_in(line).as_deref(), url, "{line}");
        }
    }

    #[tokio::test]
    async fn a_process_is_ready_when_it_says_so_and_ends_when_it_is_told_to() {
        let script = "echo $GREETING; echo listening on http://127.0.0.1:1; exec sleep 1000";
        let running = start(script, Duration::from_secs(30)).await.unwrap();
        assert_eq!(running.url(), "http://127.0.0.1:1");
        let status = running.stop().await.unwrap();
        assert!(!status.success());
    }

    #[tokio::test]
    async fn a_process_that_nobody_holds_any_more_is_killed() {
        let script = "echo listening on http://127.0.0.1:1; exec sleep 1000";
        let running = start(script, Duration::from_secs(30)).await.unwrap();
        let stat = format!("/proc/{}/stat", running.pid());
        drop(running);
        // It is gone, or dead and not yet waited for.
        let begin = std::time::Instant::now();
        while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
            assert!(begin.elapsed() < Duration::from_secs(30), "it still runs");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_process_that_is_never_ready_is_reported_with_its_last_words() {
        let ended = start("echo no configuration >&2; exit 3", Duration::from_secs(30)).await;
        let error = ended.err().unwrap().to_string();
        assert!(
            error.contains("ended before it was ready") && error.contains("no configuration"),
            "{error}"
        );

        let silent = start("exec sleep 1000", Duration::from_millis(50)).await;
        let error = silent.err().unwrap().to_string();
        assert!(error.contains("printed no `listening on"), "{error}");

        let folder = tempfile::tempdir().unwrap();
        let missing = Running::start(&Start {
            name: "gate",
            command: &["/no/such/command".to_owned()],
            environment: &BTreeMap::new(),
            core: None,
            folder: folder.path(),
            ready_timeout: Duration::from_secs(30),
        })
        .await;
        assert!(
            missing
                .err()
                .unwrap()
                .to_string()
                .contains("cannot start `/no/such/command`")
        );
    }

    #[test]
    fn a_pinned_command_runs_behind_taskset() {
        let command = shell("true");
        assert_eq!(pinned(&command, None), command);
        assert_eq!(pinned(&command, Some(1))[..4], ["taskset", "-c", "1", "sh"]);
    }
}
