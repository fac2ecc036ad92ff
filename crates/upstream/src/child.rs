//! The children of the gate: MCP servers that it starts, speaks with over pipes, and of which it leaves nothing behind.
//!
//! A [`Yard`] counts all children; [`Children`] are those of one server, with their caps and their wait after a failure;
//! a [`Child`] is one of them. Each has a keeper (`keeper.rs`), a task that lasts as long as the process and is the only
//! one to end it. What is said with a child is not known here: see [`Sender`] and [`Receiver`].

mod backoff;
mod keeper;
mod log;
mod place;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use config::{CommandSettings, SandboxSettings};
use model::{Limits, UpstreamName};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::process::Command;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::duplex::{self, End, LineBounds, Receiver, Sender};
use crate::launch::{Launch, Protection, Report, Role, VARIABLE_PREFIX};
use backoff::Backoffs;
use keeper::Keeper;
use log::Log;
use place::Places;

pub use place::TooMany;

/// Variables that every child gets from our own environment, where they are set: what `npx`, `uvx` and the like need to
/// find programs, their caches and the language. No other one is passed on unless it is declared.
pub const PASSED_ON: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// All children of the gate: how many there are, and the tasks that keep them.
#[derive(Debug, Clone)]
pub struct Yard {
    launcher: PathBuf,
    variables: Arc<Vec<(String, OsString)>>,
    places: Places,
    keepers: TaskTracker,
    closing: CancellationToken,
    bounds: LineBounds,
    log_bytes_max: usize,
}

/// The children of one server.
#[derive(Debug)]
pub struct Children {
    yard: Yard,
    name: UpstreamName,
    program: PathBuf,
    settings: CommandSettings,
    places: Places,
    backoffs: Backoffs,
}

/// One running server. Dropped, it is stopped.
#[derive(Debug)]
pub struct Child {
    sender: Sender,
    receiver: Option<Receiver>,
    protection: Protection,
    start_deadline: Instant,
    busy: watch::Sender<usize>,
    ended: watch::Receiver<Option<End>>,
    proven: Arc<std::sync::atomic::AtomicBool>,
    _closing: DropGuard,
}

/// As long as this is there, the child is not idle.
#[derive(Debug)]
pub struct Busy(watch::Sender<usize>);

/// Why there is no child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartFault {
    /// There are as many as there may be.
    #[error("{0}")]
    TooMany(#[from] TooMany),
    /// One failed a moment ago; the next one starts later.
    #[error("the server failed, and is started again in {} ms", wait.as_millis())]
    Waiting {
        /// How much later.
        wait: Duration,
    },
    /// The launcher cannot be started.
    #[error("the server cannot be started: {0}")]
    Spawn(String),
    /// The launcher says why the command is not run.
    #[error("the server is not started: {0}")]
    Refused(String),
    /// It ended before it was there.
    #[error("the server ended while it started: {0}")]
    Ended(End),
    /// It was not there in time.
    #[error("the server did not start in time; raise `start_timeout` if it needs longer")]
    Late,
    /// The gate closes.
    #[error("the gate closes")]
    Closing,
}

// === impl Yard ===

impl Yard {
    /// A yard without children.
    ///
    /// `launcher`: our own program, which has the launcher in it. `variables`: our own environment; only what
    /// [`PASSED_ON`] and `pass_env` name of it is ever used.
    #[must_use]
    pub fn new(
        launcher: PathBuf,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        limits: &Limits,
    ) -> Self {
        let variables = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self {
            launcher,
            variables: Arc::new(variables.collect()),
            places: Places::new(limits.children_max, usize::MAX),
            keepers: TaskTracker::new(),
            closing: CancellationToken::new(),
            bounds: LineBounds {
                line_bytes_max: limits.upstream_body_bytes_max,
                noise_lines_max: limits.child_noise_lines_max,
                write_timeout: limits.body_timeout,
            },
            log_bytes_max: limits.child_log_bytes_max,
        }
    }

    /// How many children there are, those included that are about to end.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.count()
    }

    /// Stops every child and waits until none is left. No other one starts.
    pub async fn close(&self) {
        self.closing.cancel();
        self.keepers.close();
        self.keepers.wait().await;
    }
}

// === impl Children ===

impl Children {
    /// The children of one server; none of them is started yet.
    ///
    /// `program`: the program of the command, as an absolute path. That somebody approved it is judged before.
    #[must_use]
    pub fn new(yard: &Yard, name: UpstreamName, program: PathBuf, settings: CommandSettings) -> Self {
        let places = Places::new(settings.children_max, settings.children_per_caller_max);
        Self {
            yard: yard.clone(),
            name,
            program,
            backoffs: Backoffs::new(settings.restart),
            settings,
            places,
        }
    }

    /// How many there are of this server.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.count()
    }

    /// Starts one. `caller` is whom it counts for, and who waits after a failure of it; for a shared one, anything that
    /// is always the same.
    ///
    /// The child is there once the launcher reported what it is shut into and the command is about to run. Whether the
    /// command then runs and speaks is learnt by speaking with it, until [`Child::start_deadline`].
    ///
    /// # Errors
    /// [`StartFault`]. Nothing is left of a child that did not start.
    ///
    /// # Cancellation
    /// What had started is stopped.
    pub async fn start(&self, caller: &str) -> Result<Child, StartFault> {
        if self.yard.closing.is_cancelled() {
            return Err(StartFault::Closing);
        }
        if let Some(wait) = self.backoffs.wait(caller) {
            return Err(StartFault::Waiting { wait });
        }
        let places = (self.yard.places.take("")?, self.places.take(caller)?);
        let start_deadline = Instant::now() + self.settings.start_timeout;
        let mut process = self
            .command()
            .spawn()
            .map_err(|error| StartFault::Spawn(error.to_string()))?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(input), Some(output), Some(error)) = pipes else {
            return Err(StartFault::Spawn("it has no pipes".to_owned()));
        };
        let closing = self.yard.closing.child_token();
        let guard = closing.clone().drop_guard();
        let (cause, ended) = watch::channel(None);
        let (busy, busy_now) = watch::channel(0);
        let (sender, jobs) = duplex::sending();
        let proven = Arc::default();
        let (report, reported) = oneshot::channel();
        let log = Log::new(
            self.name.to_string(),
            self.settings.env.iter().map(|(_, value)| value.clone()),
            self.yard.log_bytes_max,
        );
        let keeper = Keeper {
            process,
            name: self.name.to_string(),
            closing: closing.clone(),
            busy: busy_now,
            idle_stop: self.settings.idle_stop,
            stop_timeout: self.settings.stop_timeout,
            writer: duplex::write_lines(input, jobs, closing, self.yard.bounds.write_timeout),
            log: log.follow(error, report),
            cause,
            failures: self.backoffs.of(caller, Arc::clone(&proven)),
            places,
        };
        self.yard.keepers.spawn(keeper.keep());
        let mut watched = ended.clone();
        let protection = tokio::select! {
            biased;
            report = timeout_at(start_deadline, reported) => match report {
                Ok(Ok(Report::Ready(protection))) => protection,
                Ok(Ok(Report::Refused(why))) => return Err(StartFault::Refused(why)),
                Ok(Err(_)) => return Err(self.silent(&mut watched).await),
                Err(_) => return Err(StartFault::Late),
            },
        };
        let receiver = Receiver::of_lines(output, self.yard.bounds, self.name.to_string(), ended.clone());
        Ok(Child {
            sender,
            receiver: Some(receiver),
            protection,
            start_deadline,
            busy,
            ended,
            proven,
            _closing: guard,
        })
    }

    /// The fault of a child whose launcher said nothing.
    async fn silent(&self, ended: &mut watch::Receiver<Option<End>>) -> StartFault {
        let deadline = Instant::now() + self.settings.stop_timeout;
        match timeout_at(deadline, ended.wait_for(Option::is_some)).await {
            Ok(Ok(end)) => StartFault::Ended(end.clone().unwrap_or(End::Closed)),
            Ok(Err(_)) | Err(_) => StartFault::Ended(End::Closed),
        }
    }

    /// The launcher, about to become the command.
    fn command(&self) -> Command {
        let settings = &self.settings;
        let launch = Launch {
            role: Role::Warden,
            parent: std::process::id(),
            cwd: settings.cwd.clone(),
            sandbox: settings.sandbox.as_ref().map(sandbox),
            grace: settings.stop_timeout,
            program: self.program.clone().into(),
            arguments: settings.command.iter().skip(1).map(OsString::from).collect(),
            variables: Vec::new(),
        };
        let mut command = Command::new(&self.yard.launcher);
        command
            .args(launch.command_line(Role::Warden, launch.parent))
            .env_clear()
            .envs(self.variables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Only where the keeper is torn away with its runtime; else it ends the child step by step.
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }

    /// The environment of the command, under the prefix of the launcher.
    fn variables(&self) -> Vec<(String, OsString)> {
        let passed = |name: &str| {
            PASSED_ON.contains(&name) || self.settings.pass_env.iter().any(|passed| passed == name)
        };
        let own = self.yard.variables.iter();
        let own = own
            .filter(|(name, _)| passed(name))
            .map(|(name, value)| (name.as_str(), value.clone()));
        let declared = self
            .settings
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), OsString::from(value.expose_secret())));
        own.chain(declared)
            .map(|(name, value)| (format!("{VARIABLE_PREFIX}{name}"), value))
            .collect()
    }
}

/// A sandbox, as the launcher reads it.
fn sandbox(settings: &SandboxSettings) -> String {
    json!({
        "read": settings.read,
        "write": settings.write,
        "network": settings.network,
        "allow_degraded": settings.allow_degraded,
    })
    .to_string()
}

// === impl Child ===

impl Child {
    /// What messages are sent with.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// What messages come in by; there is one, and the first who asks has it.
    pub const fn receiver(&mut self) -> Option<Receiver> {
        self.receiver.take()
    }

    /// How much of the declared sandbox holds.
    #[must_use]
    pub const fn protection(&self) -> Protection {
        self.protection
    }

    /// Until when it must have answered for the first time.
    #[must_use]
    pub const fn start_deadline(&self) -> Instant {
        self.start_deadline
    }

    /// Says that it has answered for the first time. A child that ends before that has failed, whenever it does.
    pub fn answered(&self) {
        self.proven.store(true, std::sync::atomic::Ordering::Release);
    }

    /// Keeps it from being stopped as idle, until what comes back is dropped.
    #[must_use]
    pub fn busy(&self) -> Busy {
        self.busy.send_modify(|busy| *busy = busy.saturating_add(1));
        Busy(self.busy.clone())
    }

    /// Why it ended, where it has.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.ended.borrow().clone()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|busy| *busy = busy.saturating_sub(1));
    }
}

/// A secret that must not reach the log.
type Hidden = SecretString;
