//! Children of a gate, without a gate: the toy server behind the launcher of the built binary.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use config::{CommandSettings, RestartSettings};
use serde_json::Value;
use tokio::time::Instant;
use upstream::{Child, Children, Heard, Receiver, Sender, Yard};

/// How long anything may take that should happen at once.
pub const SOON: Duration = Duration::from_secs(30);

/// The children of a toy, with settings that a test can change.
pub fn of(yard: &Yard, words: &[&str], change: impl FnOnce(&mut CommandSettings)) -> Children {
    let toy = toy();
    let mut settings = CommandSettings {
        secrets: std::collections::BTreeSet::new(),
        command: std::iter::once("toy")
            .chain(words.iter().copied())
            .map(str::to_owned)
            .collect(),
        env: Vec::new(),
        pass_env: Vec::new(),
        cwd: PathBuf::from("/"),
        folder: PathBuf::from("/"),
        sandbox: None,
        start_timeout: SOON,
        stop_timeout: Duration::from_millis(300),
        idle_stop: Duration::from_secs(3_600),
        restart: RestartSettings {
            wait: Duration::from_secs(60),
            wait_max: Duration::from_secs(3_600),
        },
        children_max: 1_000,
        children_per_caller_max: 1_000,
    };
    change(&mut settings);
    let name = model::UpstreamName::parse("toy").expect("a name");
    Children::new(yard, name, toy, settings)
}

/// The toy, beside the program that runs now.
fn toy() -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    let beside = own.with_file_name("toy");
    if beside.is_file() {
        beside
    } else {
        crate::binary::path("toy")
    }
}

/// A child, and what is said with it.
pub struct Talk {
    /// The child.
    pub child: Child,
    sender: Sender,
    /// What comes in.
    pub receiver: Receiver,
}

impl Talk {
    /// Starts one.
    pub async fn start(children: &Children) -> Self {
        let child = children.start("ada").await;
        Self::with(child.expect("it starts"))
    }

    /// With one that is there.
    pub fn with(mut child: Child) -> Self {
        Self {
            sender: child.sender(),
            receiver: child.receiver().expect("nobody asked before"),
            child,
        }
    }

    /// Sends a line.
    pub async fn send(&self, message: &Value) {
        let sent = self
            .sender
            .send(Bytes::from(message.to_string()), Instant::now() + SOON)
            .await;
        sent.expect("it takes a line");
    }

    /// What comes next.
    pub async fn hear(&mut self) -> Heard {
        tokio::time::timeout(SOON, self.receiver.next())
            .await
            .expect("it says something")
    }

    /// Sends a line and gives the answer.
    pub async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        match self.hear().await {
            Heard::Message(bytes) => serde_json::from_slice(&bytes).expect("JSON"),
            other => panic!("{message} was answered by {other:?}"),
        }
    }
}

/// The processes whose command line has a word, zombies left out: they have none.
pub fn processes(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).ok()?;
            let own = pid == std::process::id();
            let has = line.split(|byte| *byte == 0).any(|part| part == word.as_bytes());
            (has && !own).then_some(pid)
        })
        .collect()
}

/// Waits until something is so; the system tells nobody when it is.
pub async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !so() {
        assert!(Instant::now() < deadline, "{what}: this did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
