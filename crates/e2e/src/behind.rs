//! MCP servers that other people wrote, to stand behind the gate: on the official SDKs, and the official ones.
//!
//! The programs on the SDKs are in `peers/`; what all of them stand on is installed in `.peers/` by `cargo xtask test`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use crate::driver::{Group, HOW, Sdk, node, package, peers, python, rmcp};
use crate::house::PATIENCE;
use crate::peer;

/// The servers on the SDKs offer the same: these tools, where all have the first three; `note://one`, `note://by/{name}`
/// and the prompt `greet`.
pub const TOOLS: [&str; 3] = ["add", "count", "echo"];

/// An official server. All are spoken with over standard input and output; the one that has HTTP too listens there to
/// everybody, which no test may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Official {
    /// Every feature of the protocol.
    Everything,
    /// Files of the folder that is its argument.
    Filesystem,
    /// A graph in the file that `MEMORY_FILE_PATH` names.
    Memory,
    Time,
    /// The repository behind `--repository`.
    Git,
    Fetch,
}

/// How a server on an SDK is spoken with over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Streamable HTTP, in every era that the SDK has.
    Http,
    /// Streamable HTTP without the legacy era; the second TypeScript SDK alone can be told to.
    Modern,
    /// The two endpoints of 2024-11-05; the second TypeScript SDK has them no more.
    Sse,
}

/// A running server. It and everything in its process group is killed when dropped.
#[derive(Debug)]
pub struct Behind {
    /// Where it is.
    pub url: String,
    log: Arc<Mutex<String>>,
    _group: Group,
}

/// A command line that starts a server on standard input and output, as an upstream is configured with it. It needs
/// nothing of the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub command: Vec<String>,
    /// The folder in which it has to run.
    pub folder: String,
}

// === impl Official ===

impl Official {
    pub const ALL: [Self; 6] = [
        Self::Everything,
        Self::Filesystem,
        Self::Memory,
        Self::Time,
        Self::Git,
        Self::Fetch,
    ];

    /// What starts it; `arguments` are its own. `None` where it is not installed.
    pub fn line(self, arguments: &[&str]) -> Option<Line> {
        let npm = |name: &str| {
            let script = package(&format!("@modelcontextprotocol/{name}/dist/index.js"))?;
            Some(vec![text(&node()?), text(&script)])
        };
        let pypi = |name: &str| {
            let program = peers().join("python2/bin").join(name);
            program.is_file().then(|| vec![text(&program)])
        };
        let command = match self {
            Self::Everything => npm("server-everything"),
            Self::Filesystem => npm("server-filesystem"),
            Self::Memory => npm("server-memory"),
            Self::Time => pypi("mcp-server-time"),
            Self::Git => pypi("mcp-server-git"),
            Self::Fetch => pypi("mcp-server-fetch"),
        };
        let Some(mut command) = command else {
            peer::missing(&format!("the official server {self:?}"), HOW);
            return None;
        };
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Some(Line {
            command,
            folder: text(&peers().join("node")),
        })
    }
}

// === impl Sdk ===

impl Sdk {
    /// Every generation of every SDK.
    pub const ALL: [Self; 4] = [Self::TypeScript1, Self::TypeScript2, Self::Python1, Self::Python2];

    /// Whether its servers can be spoken with in this way.
    pub fn serves(self, way: Way) -> bool {
        match way {
            Way::Http => true,
            Way::Modern => self == Self::TypeScript2,
            Way::Sse => self != Self::TypeScript2,
        }
    }

    /// What starts the server on this SDK on standard input and output; `None` where it is not installed.
    pub fn line(self) -> Option<Line> {
        self.server("stdio")
    }

    /// Starts the server on this SDK on a port that is free and waits until it listens; `None` where it is not installed.
    pub async fn serve(self, way: Way) -> Option<Behind> {
        assert!(self.serves(way), "{self:?} does not speak {way:?}");
        let line = self.server(match way {
            Way::Http => "http",
            Way::Modern => "modern",
            Way::Sse => "sse",
        })?;
        Some(Behind::start(&line).await)
    }

    fn server(self, way: &str) -> Option<Line> {
        let script = match self {
            Self::TypeScript1 => "server-typescript1.mjs",
            Self::TypeScript2 => "server-typescript2.mjs",
            Self::Python1 | Self::Python2 => "server_python.py",
        };
        self.with_script(script, way)
    }

    fn with_script(self, script: &str, way: &str) -> Option<Line> {
        let program = match self {
            Self::TypeScript1 => node(),
            // Its adapter to Node.js came with the servers.
            Self::TypeScript2 => {
                node().filter(|_| package("@modelcontextprotocol/node/package.json").is_some())
            }
            Self::Python1 => python(1),
            Self::Python2 => python(2),
        };
        let Some(program) = program else {
            peer::missing(&format!("a server on {self:?}"), HOW);
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script);
        Some(Line {
            command: vec![text(&program), text(&script), way.to_owned()],
            folder: text(&peers().join("node")),
        })
    }
}

// === impl Line ===

impl Line {
    /// What starts the server on rmcp, the Rust SDK; `None` where it is not installed.
    pub fn rmcp() -> Option<Self> {
        let Some(program) = rmcp() else {
            peer::missing("a server on rmcp", HOW);
            return None;
        };
        Some(Self {
            command: vec![text(&program), "server".to_owned()],
            folder: text(&peers()),
        })
    }

    /// The command, with these variables and no others.
    pub fn command(&self, variables: &BTreeMap<&str, &str>) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .current_dir(&self.folder)
            .env_clear()
            .envs(variables);
        command
    }
}

// === impl Behind ===

impl Behind {
    /// Starts the server that has what the official conformance suite calls; `None` where it is not installed.
    pub async fn for_the_suite() -> Option<Self> {
        let line = Sdk::TypeScript2.with_script("server-conformance.mjs", "http")?;
        Some(Self::start(&line).await)
    }

    async fn start(line: &Line) -> Self {
        let mut group = Group::start(line.command(&BTreeMap::new()));
        let mut lines = BufReader::new(group.leader.stdout.take().unwrap()).lines();
        let mut errors = group.leader.stderr.take().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let writer = Arc::clone(&log);
        // It ends with the server.
        tokio::spawn(async move {
            let mut part = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut part).await {
                let said = String::from_utf8_lossy(&part[..count]).into_owned();
                writer.lock().unwrap().push_str(&said);
            }
        });
        let first = tokio::time::timeout(PATIENCE, lines.next_line()).await;
        let Ok(Ok(Some(first))) = first else {
            panic!("{line:?} does not start:\n{}", log.lock().unwrap());
        };
        let ready: Value = serde_json::from_str(&first).unwrap();
        // What else it says is nobody's matter, and must not make it wait.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            url: ready["url"].as_str().unwrap().to_owned(),
            log,
            _group: group,
        }
    }

    /// What it said on standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path of this repository").to_owned()
}
