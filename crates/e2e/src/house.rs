//! A folder with a configuration, and the gate that runs from it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::binary;
use crate::ledger::Entries;

/// How long anything may take before a test gives up. Generous, because machines are shared; never waited for in full
/// unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder from which gates run. It is removed at the end.
#[derive(Debug)]
pub struct House {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// A running gate over HTTP. Killed when dropped.
#[derive(Debug)]
pub struct Gate {
    /// The endpoint, as `http://127.0.0.1:40001/mcp`.
    pub url: String,
    child: Child,
    log: Arc<Mutex<String>>,
}

/// A running gate on standard input and output. Killed when dropped.
#[derive(Debug)]
pub struct Pipe {
    pub input: Option<ChildStdin>,
    pub output: tokio::io::Lines<BufReader<ChildStdout>>,
    pub child: Child,
    log: Arc<Mutex<String>>,
}

impl House {
    pub fn new() -> Self {
        Self {
            folder: TempDir::with_prefix("tollhouse-e2e-").unwrap(),
            variables: Vec::new(),
        }
    }

    /// The worked example's configuration, in front of a running invoice service.
    pub fn invoices(service: &invoices::Running, credential: &str) -> Self {
        Self::new()
            .with_file("tollhouse.toml", invoices::CONFIG)
            .with_file("openapi.yaml", invoices::OPENAPI)
            .with_file("policy/invoices.cedar", invoices::POLICY)
            .with_variable(invoices::URL_VARIABLE, service.url())
            .with_variable(
                invoices::DATABASE_VARIABLE,
                format!("sqlite:{}", service.database_path().display()),
            )
            .with_variable(invoices::TOKEN_VARIABLE, credential)
    }

    #[must_use]
    pub fn with_file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(path, content);
        self
    }

    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Replaces a text in a file that is there; it must occur.
    #[must_use]
    pub fn with_change(self, path: &str, from: &str, to: &str) -> Self {
        let text = std::fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from:?}");
        self.write(path, text.replace(from, to));
        self
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The environment that this house gives to its gates.
    pub fn variables(&self) -> std::collections::BTreeMap<&str, &str> {
        let variables = self.variables.iter();
        variables
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect()
    }

    /// The command, with the environment that this house gives it and nothing else but what a program needs to run.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(binary::tollhouse());
        command
            .args(arguments)
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub async fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let child = self.command(arguments).stdin(Stdio::null()).output();
        tokio::time::timeout(PATIENCE, child)
            .await
            .expect("the command ends")
            .unwrap()
    }

    /// Makes an API key for a caller.
    pub async fn key(&self, caller: &str) -> String {
        let output = self.run(["keys", "add", caller]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    }

    /// Starts the gate over HTTP on a free port.
    pub async fn serve(&self) -> Gate {
        Gate::start(self.command(["serve", "--listen", "127.0.0.1:0"])).await
    }

    /// Starts the gate on standard input and output.
    pub fn stdio(&self) -> Pipe {
        Pipe::start(self.command(["serve", "--stdio"]))
    }

    /// Exports the ledger and reads it.
    pub async fn ledger(&self) -> Entries {
        let output = self.run(["audit", "export"]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        Entries::parse(&text(&output.stdout))
    }
}

/// The part of an API key that is secret: 43 characters, of which any may be the `_` that stands before them too.
pub fn secret_of(key: &str) -> &str {
    let (_, secret) = id_and_secret(key);
    secret
}

/// The public name of an API key.
pub fn id_of(key: &str) -> &str {
    let (id, _) = id_and_secret(key);
    id
}

fn id_and_secret(key: &str) -> (&str, &str) {
    let (id, secret) = key.strip_prefix("th_").unwrap().split_once('_').unwrap();
    assert_eq!(secret.len(), 43, "an API key");
    (id, secret)
}

impl Default for House {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Starts a gate and waits for the line that says where it listens.
    pub async fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = collect(child.stderr.take().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = async {
            while let Some(line) = output.next_line().await.unwrap() {
                if let Some(url) = line.strip_prefix("listening on ") {
                    return Some(url.to_owned());
                }
            }
            None
        };
        let url = tokio::time::timeout(PATIENCE, ready)
            .await
            .expect("the gate gets ready");
        let Some(url) = url else {
            let status = child.wait().await.unwrap();
            panic!("the gate ended with {status}:\n{}", log.lock().unwrap());
        };
        // Nothing else comes, but a pipe that nobody reads could fill.
        tokio::spawn(async move { while let Ok(Some(_)) = output.next_line().await {} });
        Self { url, child, log }
    }

    /// The URL without the endpoint's path.
    pub fn base(&self) -> &str {
        self.url.strip_suffix("/mcp").unwrap()
    }

    /// `host:port`.
    pub fn authority(&self) -> &str {
        self.base().strip_prefix("http://").unwrap()
    }

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Kills it at once, as a crash would.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks it to close, and waits until it did. Gives its exit code and its log.
    pub async fn close(self) -> (Option<i32>, String) {
        self.interrupt();
        self.ended().await
    }

    /// Asks it to close.
    pub fn interrupt(&self) {
        terminate(self.id());
    }

    /// Waits until it has ended of its own accord. Gives its exit code and its log.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("the gate does not end; the log says:\n{}", self.log()))
            .unwrap();
        read_to_end(&self.log).await;
        (status.code(), self.log())
    }

    /// Waits until its log has a text.
    pub async fn logged(&self, needle: &str) {
        let waiting = async {
            while !self.log().contains(needle) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("the log never says {needle:?}:\n{}", self.log());
        }
    }
}

impl Pipe {
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = collect(child.stderr.take().unwrap());
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
            log,
        }
    }

    /// Writes one line.
    pub async fn send(&mut self, line: &str) {
        use tokio::io::AsyncWriteExt as _;
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }

    /// Reads one line; `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await;
        line.unwrap_or_else(|_| panic!("no line comes; the log says:\n{}", self.log()))
            .unwrap()
    }

    /// Reads one line as JSON.
    pub async fn message(&mut self) -> serde_json::Value {
        let line = self
            .line()
            .await
            .unwrap_or_else(|| panic!("the pipe ended; the log says:\n{}", self.log()));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Writes one message and reads the next one.
    pub async fn ask(&mut self, message: &serde_json::Value) -> serde_json::Value {
        self.send(&message.to_string()).await;
        self.message().await
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until its log has a text.
    pub async fn logged(&self, needle: &str) {
        until(&format!("the log says {needle:?}"), async || {
            self.log().contains(needle)
        })
        .await;
    }

    /// Closes the input and waits for the end.
    pub async fn close(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        self.ended().await
    }

    /// Asks it to close, and leaves its input open.
    pub fn interrupt(&self) {
        terminate(self.child.id().expect("it runs"));
    }

    /// Waits until it has ended of its own accord. Gives its exit code and its log.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("the gate does not end; the log says:\n{}", self.log()))
            .unwrap();
        read_to_end(&self.log).await;
        (status.code(), self.log())
    }
}

fn terminate(process: u32) {
    let status = std::process::Command::new("kill")
        .args(["-TERM", &process.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Closes a gate, which must end well.
pub async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

/// Waits until something that has no event to wait for has come to pass.
pub async fn until(what: &str, mut happened: impl AsyncFnMut() -> bool) {
    let began = tokio::time::Instant::now();
    while !happened().await {
        assert!(began.elapsed() < PATIENCE, "it never happens: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until everything that a gate wrote to its standard error has been collected.
async fn read_to_end(log: &Arc<Mutex<String>>) {
    until("the log is read to its end", async || Arc::strong_count(log) == 1).await;
}

fn collect(stream: impl tokio::io::AsyncRead + Unpin + Send + 'static) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let writer = Arc::clone(&log);
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut log = writer.lock().unwrap();
            log.push_str(&line);
            log.push('\n');
        }
    });
    log
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}
