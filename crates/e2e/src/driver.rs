//! Clients that other people wrote, as programs that do what a test says and tell what came of it, one JSON line for
//! each step. What is right is for the test to say, never for the program.
//!
//! The programs are in `peers/`; what they stand on is installed in `.peers/` by `cargo xtask test`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::house::{House, PATIENCE, text};
use crate::peer;

/// How a missing client is got.
pub const HOW: &str = "`cargo xtask test` installs it";

/// A generation of an official SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    TypeScript1,
    TypeScript2,
    Python1,
    Python2,
}

/// Where the server is.
#[derive(Debug, Clone, Copy)]
pub enum At<'a> {
    /// At this endpoint, with this bearer token.
    Http(&'a str, &'a str),
    /// It is the gate of this house on standard input and output, started by the client.
    Stdio(&'a House),
}

/// A running client. It and everything in its process group is killed when dropped.
#[derive(Debug)]
pub struct Driver {
    name: String,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
    log: Arc<Mutex<String>>,
    /// Ends when nobody holds the standard error any more, a server that the client started included.
    logging: JoinHandle<()>,
    group: Group,
}

/// A process that leads a group.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) leader: Child,
    id: u32,
}

// === impl Sdk ===

impl Sdk {
    /// Starts the client, to do steps such as `["call", "name", {…}]`; `None` where it is not installed.
    ///
    /// `mode` is how the revision is agreed on, in the words of the SDK; generation 1 has only one way.
    pub fn drive(self, mode: &Value, at: At<'_>, steps: &Value) -> Option<Driver> {
        let mut plan = match at {
            At::Http(url, token) => json!({"url":url,"token":token}),
            At::Stdio(house) => json!({
                "command":[crate::binary::tollhouse(),"serve","--stdio"],
                "folder":house.folder(),
                "variables":house.variables(),
            }),
        };
        plan["mode"] = mode.clone();
        plan["steps"] = steps.clone();
        self.plan(&plan, &format!(", mode {mode}, {at}", at = at.name()))
    }

    /// Starts the client, to walk through all `cells` of a plan, one after the other.
    pub fn drive_all(self, plan: &Value) -> Option<Driver> {
        self.plan(plan, "")
    }

    fn plan(self, plan: &Value, how: &str) -> Option<Driver> {
        let (program, script, what) = match self {
            Self::TypeScript1 => (node(), "typescript1.mjs", "the TypeScript SDK 1.x"),
            Self::TypeScript2 => (node(), "typescript2.mjs", "the TypeScript SDK 2.x"),
            Self::Python1 => (python(1), "python1.py", "the Python SDK 1.x"),
            Self::Python2 => (python(2), "python2.py", "the Python SDK 2.x"),
        };
        Driver::plan((program, script, what), plan, how)
    }
}

impl At<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Http(..) => "HTTP",
            Self::Stdio(_) => "stdio",
        }
    }
}

// === impl Driver ===

impl Driver {
    /// Starts the client of FastMCP, as [`Sdk::drive_all`] does; `None` where it is not installed.
    pub fn fastmcp(plan: &Value) -> Option<Self> {
        Self::plan((python(2), "client_fastmcp.py", "FastMCP"), plan, "")
    }

    /// Starts the client of rmcp, as [`Sdk::drive_all`] does; `None` where it is not installed.
    pub fn rmcp(plan: &Value) -> Option<Self> {
        let Some(program) = rmcp() else {
            peer::missing("rmcp", HOW);
            return None;
        };
        let mut command = bare(&program);
        command.arg("client").arg(plan.to_string());
        Some(Self::start("rmcp", command))
    }

    fn plan((program, script, what): (Option<PathBuf>, &str, &str), plan: &Value, how: &str) -> Option<Self> {
        let Some(program) = program else {
            peer::missing(what, HOW);
            return None;
        };
        let mut command = bare(&program);
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script))
            .arg(plan.to_string())
            .current_dir(peers().join("node"));
        Some(Self::start(&format!("{what}{how}"), command))
    }

    fn start(name: &str, command: Command) -> Self {
        let mut group = Group::start(command);
        let lines = BufReader::new(group.leader.stdout.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let mut errors = group.leader.stderr.take().unwrap();
        let writer = Arc::clone(&log);
        let logging = tokio::spawn(async move {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                writer
                    .lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&part[..count]));
            }
        });
        Self {
            name: name.to_owned(),
            lines,
            log,
            logging,
            group,
        }
    }

    /// What the client tells next. It must be about this step.
    pub async fn step(&mut self, step: &str) -> Value {
        let told = self.told().await;
        self.about(step, told)
    }

    /// What the client tells of `step`, after any number of things that it tells of `other`.
    pub async fn after(&mut self, other: &str, step: &str) -> Value {
        loop {
            let told = self.told().await;
            if told["step"] != other {
                return self.about(step, told);
            }
        }
    }

    /// What the client tells next, whatever it is about.
    pub async fn any(&mut self) -> (String, Value) {
        let mut told = self.told().await;
        let step = told.as_object_mut().unwrap().remove("step");
        (step.unwrap().as_str().unwrap().to_owned(), told)
    }

    fn about(&self, step: &str, mut told: Value) -> Value {
        assert_eq!(told["step"], step, "{}: {told}\n{}", self.name, self.log());
        told.as_object_mut().unwrap().remove("step");
        told
    }

    async fn told(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let Ok(Ok(Some(line))) = line else {
            panic!("{}: nothing more comes:\n{}", self.name, self.log());
        };
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{}: {error}: {line}\n{}", self.name, self.log()))
    }

    /// What it, and a server that it started, wrote to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has closed and ended in order, and a server that it started has ended too. Gives its log.
    pub async fn end(mut self) -> String {
        let told = self.step("close").await;
        assert_eq!(told, json!({}), "{}: {}", self.name, self.log());
        self.ended().await
    }

    /// The same, where it has told that it has closed.
    pub async fn ended(mut self) -> String {
        let ended = async {
            assert_eq!(self.lines.next_line().await.unwrap(), None, "{}", self.name);
            let status = self.group.leader.wait().await.unwrap();
            (&mut self.logging).await.unwrap();
            status
        };
        let Ok(status) = tokio::time::timeout(PATIENCE, ended).await else {
            panic!("{}: it never ends:\n{}", self.name, self.log());
        };
        assert!(status.success(), "{}: {status}:\n{}", self.name, self.log());
        self.log()
    }
}

// === impl Group ===

impl Group {
    pub(crate) fn start(mut command: Command) -> Self {
        let leader = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = leader.id().expect("it was just started");
        Self { leader, id }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where it was waited for, its pipes were read to their end before, so nobody is left; and its number may be
        // somebody else's by now.
        if self.leader.id().is_none() {
            return;
        }
        let _ = std::process::Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.id)])
            .stderr(Stdio::null())
            .status();
    }
}

/// Runs a program of an npm package to its end, in its own process group.
pub async fn run(mut command: Command) -> Output {
    command.env("NO_COLOR", "1");
    let mut group = Group::start(command);
    let mut output = group.leader.stdout.take().unwrap();
    let mut errors = group.leader.stderr.take().unwrap();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let running = async {
        let (read, failed) = tokio::join!(output.read_to_end(&mut stdout), errors.read_to_end(&mut stderr));
        read.unwrap();
        failed.unwrap();
        group.leader.wait().await.unwrap()
    };
    let status = tokio::time::timeout(PATIENCE, running).await;
    let Ok(status) = status else {
        panic!("it never ends:\n{}\n{}", text(&stdout), text(&stderr));
    };
    Output {
        status,
        stdout,
        stderr,
    }
}

/// A program of an npm package, as `@modelcontextprotocol/conformance/dist/index.js`; `None` where it is not installed.
pub fn npm(script: &str) -> Option<Command> {
    let program = node()?;
    let script = package(script)?;
    let mut command = bare(&program);
    command.arg(script);
    Some(command)
}

/// A file of an npm package; `None` where it is not installed.
pub fn package(file: &str) -> Option<PathBuf> {
    let file = peers().join("node/node_modules").join(file);
    file.is_file().then_some(file)
}

/// A file of an npm package that holds documents; `None` where it is not installed.
pub fn document(file: &str) -> Option<PathBuf> {
    let file = peers().join("documents/node_modules").join(file);
    file.is_file().then_some(file)
}

/// One of our own programs beside the drivers, which uses npm packages; `None` where Node.js or its packages are missing.
pub fn script(name: &str) -> Option<Command> {
    let program = node()?;
    let folder = peers().join("node");
    package("swagger-client/package.json")?;
    let mut command = bare(&program);
    command
        .env("TOLLHOUSE_PEERS_FOLDER", folder)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name));
    Some(command)
}

/// The command line that runs one of our own programs on Node.js, for a program that starts it itself.
pub fn line_of(name: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name);
    Some(format!("{} {}", node()?.display(), script.display()))
}

/// A command with nothing of the environment but what a program needs to run.
fn bare(program: &Path) -> Command {
    let mut path = OsString::from(program.parent().unwrap());
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let mut command = Command::new(program);
    command.env_clear().env("PATH", path);
    command
}

pub(crate) fn node() -> Option<PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    package(&format!("node-linux-{machine}/bin/node"))
}

pub(crate) fn python(generation: u8) -> Option<PathBuf> {
    let program = peers().join(format!("python{generation}/bin/python"));
    program.is_file().then_some(program)
}

pub(crate) fn rmcp() -> Option<PathBuf> {
    let program = peers().join("rmcp/peer-rmcp");
    program.is_file().then_some(program)
}

/// Where the clients are installed.
pub fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.peers")
}
