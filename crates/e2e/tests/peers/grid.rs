//! Clients and servers that other people wrote, on both ends of one gate: each client against each server, and what each of
//! them has. The outcome is `docs/grid.md`, written where `TOLLHOUSE_WRITE` is set and compared otherwise.
//!
//! What does not work where both ends have it is a failure of the test, and no cell of the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use e2e::behind::{Behind, Line, Official, Way};
use e2e::client::{LEGACY, MODERN};
use e2e::driver::{self, Driver, HOW, Sdk};
use e2e::house::{Gate, House, text};
use e2e::peer;
use e2e::service::Service;
use serde_json::{Value, json};

use crate::conformance::assert_document;
use crate::inspector::INSPECTOR;

/// What is tried, in the order of the columns. Each is done in a session of the client with the server's own endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    List,
    Call,
    Read,
    Prompt,
    Complete,
    Elicit,
    Progress,
    Cancel,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Sdk(Sdk),
    FastMcp,
    Rmcp,
    Inspector,
}

/// A client in one way to agree on a revision.
struct Client {
    name: &'static str,
    who: Who,
    mode: &'static str,
    /// What the program cannot be made to do, and why.
    lacks: &'static [(Deed, &'static str)],
}

/// A server with what it has.
struct Server {
    name: &'static str,
    /// The columns of this server: the step that a driver does, and what it has to tell in the end.
    deeds: Vec<(Deed, Value, Value)>,
    /// Why it has no others.
    lacks: &'static str,
    _running: Option<Behind>,
}

const NO_CANCEL: (Deed, &str) = (
    Deed::Cancel,
    "its interface has no way to give up a call that runs",
);
const ONE_COMMAND: &str = "its command line has no method for it";

const CLIENTS: [Client; 10] = [
    Client {
        name: "TypeScript SDK 1.x",
        who: Who::Sdk(Sdk::TypeScript1),
        mode: "2025-11-25",
        lacks: &[],
    },
    Client {
        name: "TypeScript SDK 2.x",
        who: Who::Sdk(Sdk::TypeScript2),
        mode: "legacy",
        lacks: &[],
    },
    Client {
        name: "TypeScript SDK 2.x",
        who: Who::Sdk(Sdk::TypeScript2),
        mode: "auto",
        lacks: &[],
    },
    Client {
        name: "Python SDK 1.x",
        who: Who::Sdk(Sdk::Python1),
        mode: "2025-11-25",
        lacks: &[NO_CANCEL],
    },
    Client {
        name: "Python SDK 2.x",
        who: Who::Sdk(Sdk::Python2),
        mode: "legacy",
        lacks: &[],
    },
    Client {
        name: "Python SDK 2.x",
        who: Who::Sdk(Sdk::Python2),
        mode: "auto",
        lacks: &[],
    },
    Client {
        name: "FastMCP",
        who: Who::FastMcp,
        mode: "auto",
        lacks: &[NO_CANCEL],
    },
    Client {
        name: "rmcp 3.x",
        who: Who::Rmcp,
        mode: "legacy",
        lacks: &[],
    },
    Client {
        name: "rmcp 3.x",
        who: Who::Rmcp,
        mode: "auto",
        lacks: &[],
    },
    Client {
        name: "Inspector",
        who: Who::Inspector,
        mode: "auto",
        lacks: &[
            (Deed::Complete, ONE_COMMAND),
            (Deed::Elicit, ONE_COMMAND),
            (Deed::Progress, ONE_COMMAND),
            (Deed::Cancel, ONE_COMMAND),
        ],
    },
];

impl Deed {
    const ALL: [(Self, &'static str); 8] = [
        (Self::List, "list"),
        (Self::Call, "call"),
        (Self::Read, "read"),
        (Self::Prompt, "prompt"),
        (Self::Complete, "complete"),
        (Self::Elicit, "elicit"),
        (Self::Progress, "progress"),
        (Self::Cancel, "cancel"),
    ];
}

// === the servers ===

/// What every server on an SDK has.
fn of_sdk(name: &'static str, running: Option<Behind>) -> Server {
    Server {
        name,
        deeds: vec![
            (Deed::List, json!(["tools"]), json!("echo")),
            (
                Deed::Call,
                json!(["call", "echo", {"text": "hällö"}]),
                json!("hällö"),
            ),
            (Deed::Read, json!(["read", "note://one"]), json!("the first note")),
            (
                Deed::Prompt,
                json!(["prompt", "greet", {"name": "Ada"}]),
                json!("greet Ada"),
            ),
            (
                Deed::Complete,
                json!(["complete", {"type": "ref/prompt", "name": "greet"}, "name", "Ad"]),
                json!("Ad1"),
            ),
            (Deed::Elicit, json!(["call", "ask", {}]), json!("hello Ada")),
            (
                Deed::Progress,
                json!(["watch", "count", {"to": 3}]),
                json!("counted to 3"),
            ),
            (Deed::Cancel, json!(["cancel", "wait", {}]), json!(true)),
        ],
        lacks: "",
        _running: running,
    }
}

fn of_tools(name: &'static str, tool: &str, arguments: &Value, says: &str, lacks: &'static str) -> Server {
    Server {
        name,
        deeds: vec![
            (Deed::List, json!(["tools"]), json!(tool)),
            (Deed::Call, json!(["call", tool, arguments]), json!(says)),
        ],
        lacks,
        _running: None,
    }
}

const TOOLS_ALONE: &str = "it has tools alone, which ask nothing and take no time";

/// What is behind the gate: the servers, and the part of the configuration that names them.
async fn behind(house: &House, page: &str) -> Option<(Vec<Server>, String)> {
    let files = house.path("files").display().to_string();
    let mut servers = Vec::new();
    let mut config = String::new();
    let mut command = |name: &str, line: &Line, more: &str| {
        let words = json!(line.command);
        let _ = write!(
            config,
            "[upstream.{name}]\ncommand = {words}\ncwd = {}\nsharing = \"shared\"\nmay_ask = [\"elicitation\"]\n{more}",
            json!(line.folder)
        );
    };
    let memory = format!(
        "env = {{ MEMORY_FILE_PATH = {} }}\n",
        json!(house.path("memory.json"))
    );
    for (official, arguments, more) in [
        (Official::Everything, vec!["stdio"], ""),
        (Official::Filesystem, vec![files.as_str()], ""),
        (Official::Memory, vec![], memory.as_str()),
        (Official::Time, vec!["--local-timezone", "UTC"], ""),
        (Official::Git, vec!["--repository", files.as_str()], ""),
        (
            Official::Fetch,
            vec!["--ignore-robots-txt", "--allow-private-ips"],
            "",
        ),
    ] {
        let name = format!("{official:?}").to_lowercase();
        command(&name, &official.line(&arguments)?, more);
    }
    for (sdk, name) in [(Sdk::Python1, "python1"), (Sdk::Python2, "python2")] {
        command(name, &sdk.line()?, "");
    }
    command("rmcp", &Line::rmcp()?, "");
    for (sdk, name) in [
        (Sdk::TypeScript1, "typescript1"),
        (Sdk::TypeScript2, "typescript2"),
    ] {
        let running = sdk.serve(Way::Http).await?;
        let _ = write!(
            config,
            "[upstream.{name}]\nurl = \"{}\"\nnetwork = {{ allow = [\"127.0.0.0/8\"] }}\nsharing = \"shared\"\nmay_ask = [\"elicitation\"]\n",
            running.url
        );
        servers.push(of_sdk(name, Some(running)));
    }
    servers.extend(["python1", "python2", "rmcp"].map(|name| of_sdk(name, None)));
    let long = "trigger-long-running-operation";
    servers.push(Server {
        name: "everything",
        deeds: vec![
            (Deed::List, json!(["tools"]), json!("echo")),
            (Deed::Call, json!(["call", "echo", {"message": "hi"}]), json!("Echo: hi")),
            (
                Deed::Read,
                json!(["read", "demo://resource/static/document/features.md"]),
                json!("Everything"),
            ),
            (
                Deed::Prompt,
                json!(["prompt", "args-prompt", {"city": "Oslo"}]),
                json!("Oslo"),
            ),
            (
                Deed::Complete,
                json!(["complete", {"type": "ref/prompt", "name": "completable-prompt"}, "department", "Eng"]),
                json!("Engineering"),
            ),
            (
                Deed::Progress,
                json!(["watch", long, {"duration": 0.2, "steps": 2}]),
                json!("completed"),
            ),
            (
                Deed::Cancel,
                json!(["cancel", long, {"duration": 60, "steps": 300}]),
                json!(true),
            ),
        ],
        lacks: "it shows the tools that ask to nobody but clients that can be asked, and what is approved is what it shows to \
                the gate itself",
        _running: None,
    });
    let text_file = house.path("files/a.txt");
    servers.push(of_tools(
        "filesystem",
        "read_text_file",
        &json!({ "path": text_file }),
        "a text",
        TOOLS_ALONE,
    ));
    servers.push(of_tools(
        "memory",
        "read_graph",
        &json!({}),
        "entities",
        TOOLS_ALONE,
    ));
    servers.push(of_tools(
        "time",
        "get_current_time",
        &json!({ "timezone": "UTC" }),
        "UTC",
        TOOLS_ALONE,
    ));
    servers.push(of_tools(
        "git",
        "git_status",
        &json!({ "repo_path": files }),
        "branch",
        TOOLS_ALONE,
    ));
    let mut fetch = of_tools(
        "fetch",
        "fetch",
        &json!({ "url": page }),
        "a page",
        "it has one tool and one prompt, which ask nothing and tell no progress",
    );
    fetch.deeds.push((
        Deed::Prompt,
        json!(["prompt", "page", {"url": page}]),
        json!("a page"),
    ));
    servers.push(fetch);
    for server in &servers {
        let name = server.name;
        let mut tools: Vec<&str> = Vec::new();
        for (deed, step, _) in &server.deeds {
            let named = step[1].as_str().unwrap_or_default();
            match (deed, step[0].as_str().unwrap()) {
                (_, "call" | "watch" | "cancel") if !tools.contains(&named) => {
                    tools.push(named);
                    let _ = write!(config, "[upstream.{name}.tool.{named}]\nclass = \"read\"\n");
                    if named.starts_with("trigger") {
                        // By its name it would change something.
                        config.push_str(
                            "approval.class = { by = \"t\", because = \"t\", until = \"2099-12-31\", for = [\"everyone\"] }\n",
                        );
                    }
                }
                (_, "prompt") => {
                    let _ = writeln!(config, "[upstream.{name}.prompt.{named}]");
                    if name == "fetch" {
                        // A tool of this server has the name of the prompt.
                        config.push_str("prompt = \"fetch\"\n");
                    }
                }
                (_, "read") => {
                    let _ = write!(config, "[upstream.{name}.resource.first]\nuri = \"{named}\"\n");
                }
                (_, "complete") if step[1]["name"] == "completable-prompt" => {
                    let _ = writeln!(config, "[upstream.{name}.prompt.completable-prompt]");
                }
                (_, _) => {}
            }
        }
        if tools.contains(&"wait") {
            let _ = write!(config, "[upstream.{name}.tool.waited]\nclass = \"read\"\n");
        }
    }
    Some((servers, config))
}

/// A gate in front of all of them, with what they have approved.
async fn house() -> Option<(House, Vec<Server>, Service)> {
    let web = Service::start(|_| {
        axum::response::Response::builder()
            .header("content-type", "text/html")
            .body("<html><body><p>a page</p></body></html>".into())
            .unwrap()
    })
    .await;
    let house = House::new()
        .with_file("files/a.txt", "a text")
        .with_file("policy/all.cedar", "permit (principal, action, resource);\n");
    let made = std::process::Command::new("git")
        .args(["init", "--quiet"])
        .arg(house.path("files"))
        .status();
    assert!(made.unwrap().success());
    let (servers, upstreams) = behind(&house, &format!("{}/page", web.url())).await?;
    house.write(
        "tollhouse.toml",
        format!(
            "listen = \"127.0.0.1:0\"\n[identity]\napi_keys = true\n[policy]\nfolder = \"policy\"\n[caller.ada]\nsubject = \"ada\"\n{upstreams}"
        ),
    );
    for server in &servers {
        if server._running.is_none() {
            let approved = house.run(["approve", server.name]).await;
            assert!(approved.status.success(), "{}", text(&approved.stderr));
        }
        let approved = house.run(["pins", "approve", server.name, "--all"]).await;
        assert!(
            approved.status.success(),
            "{}: {}",
            server.name,
            text(&approved.stderr)
        );
    }
    Some((house, servers, web))
}

// === the clients ===

impl Client {
    fn can(&self, deed: Deed) -> bool {
        !self.lacks.iter().any(|(lacks, _)| *lacks == deed)
    }

    /// What this client does with this server.
    fn deeds<'s>(&self, server: &'s Server) -> Vec<&'s (Deed, Value, Value)> {
        server.deeds.iter().filter(|(deed, ..)| self.can(*deed)).collect()
    }

    fn at(&self, gate: &Gate, server: &Server) -> String {
        let log = gate.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(20)..].join("\n");
        format!("{self}, {}:\n{last}", server.name)
    }

    /// Does everything with every server; panics where something does not come out as it has to.
    async fn walk(&self, gate: &Gate, key: &str, servers: &[Server]) -> bool {
        if self.who == Who::Inspector {
            return self.inspect(gate, key, servers).await;
        }
        let cells: Vec<Value> = servers
            .iter()
            .map(|server| {
                let mut steps: Vec<&Value> = self.deeds(server).into_iter().map(|(_, step, _)| step).collect();
                let waited = json!(["call", "waited", {}]);
                if steps.iter().any(|step| step[1] == "wait") {
                    steps.push(&waited);
                }
                json!({
                    "url": format!("{}/{}", gate.url, server.name), "token": key, "mode": self.mode, "steps": steps,
                    "answer": { "name": "Ada" },
                })
            })
            .collect();
        let cells = json!({ "cells": cells });
        let driver = match self.who {
            Who::Sdk(sdk) => sdk.drive_all(&cells),
            Who::FastMcp => Driver::fastmcp(&cells),
            Who::Rmcp => Driver::rmcp(&cells),
            Who::Inspector => None,
        };
        let Some(mut driver) = driver else { return false };
        for server in servers {
            let told = driver.step("connect").await;
            assert!(told["error"].is_null(), "{told} {}", self.at(gate, server));
            // FastMCP does not tell.
            if let Some(revision) = told["revision"].as_str() {
                let expected = if self.mode == "auto" { MODERN } else { LEGACY[3] };
                assert_eq!(revision, expected, "{}", self.at(gate, server));
            }
            for (deed, step, says) in self.deeds(server) {
                let step = step[0].as_str().unwrap();
                let mut reports = 0;
                let told = loop {
                    let (step_told, told) = driver.any().await;
                    if step_told == "progress" && *deed != Deed::List {
                        reports += 1;
                        continue;
                    }
                    assert_eq!(step_told, step, "{told} {}", self.at(gate, server));
                    break told;
                };
                let holds = match deed {
                    Deed::List => told["names"].as_array().is_some_and(|names| names.contains(says)),
                    Deed::Cancel => told["cancelled"] == true,
                    Deed::Complete => told["values"][0] == *says,
                    Deed::Progress => reports >= 2 && contains(&told["text"], says),
                    Deed::Call | Deed::Read | Deed::Prompt | Deed::Elicit => contains(&told["text"], says),
                };
                assert!(
                    holds,
                    "{deed:?}: {told}, {reports} reports {}",
                    self.at(gate, server)
                );
                assert_ne!(
                    told["error_of_tool"],
                    true,
                    "{deed:?}: {told} {}",
                    self.at(gate, server)
                );
            }
            if self.deeds(server).iter().any(|(_, step, _)| step[1] == "wait") {
                // That it was told is for the server to say.
                let told = driver.step("call").await;
                assert!(
                    contains(&told["text"], &json!("one was cancelled")),
                    "{told} {}",
                    self.at(gate, server)
                );
            }
            let closed = driver.step("close").await;
            assert_eq!(closed, json!({}), "{}", self.at(gate, server));
        }
        driver.ended().await;
        true
    }

    async fn inspect(&self, gate: &Gate, key: &str, servers: &[Server]) -> bool {
        for server in servers {
            for (deed, step, says) in self.deeds(server) {
                let Some(mut inspector) = driver::npm(INSPECTOR) else {
                    peer::missing("the Inspector", HOW);
                    return false;
                };
                let home = tempfile::TempDir::new().unwrap();
                inspector
                    .env("HOME", home.path())
                    .env("MCP_CATALOG_PATH", home.path().join("catalog.json"))
                    .args(["--cli", "--quiet", "--format", "json", "--stored-auth-only"])
                    .args(["--protocol-era", self.mode, "--transport", "http"])
                    .args(["--server-url", &format!("{}/{}", gate.url, server.name)])
                    .args(["--header", &format!("Authorization: Bearer {key}")]);
                let named = step[1].as_str().unwrap_or_default();
                match deed {
                    Deed::List => inspector.args(["--method", "tools/list"]),
                    Deed::Call => inspector
                        .args(["--method", "tools/call", "--tool-name", named])
                        .args(["--tool-args-json", &step[2].to_string()]),
                    Deed::Read => inspector.args(["--method", "resources/read", "--uri", named]),
                    Deed::Prompt => {
                        inspector.args(["--method", "prompts/get", "--prompt-name", named, "--prompt-args"]);
                        let given = step[2].as_object().unwrap();
                        inspector.args(
                            given
                                .iter()
                                .map(|(name, value)| format!("{name}={}", value.as_str().unwrap())),
                        )
                    }
                    Deed::Complete | Deed::Elicit | Deed::Progress | Deed::Cancel => &mut inspector,
                };
                let output = driver::run(inspector).await;
                let told = text(&output.stdout);
                assert!(
                    output.status.success() && told.contains(says.as_str().unwrap()),
                    "{deed:?}: {told} {} {}",
                    text(&output.stderr),
                    self.at(gate, server)
                );
            }
        }
        true
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.mode)
    }
}

fn contains(told: &Value, says: &Value) -> bool {
    told.as_str()
        .zip(says.as_str())
        .is_some_and(|(told, says)| told.contains(says))
}

// === the page ===

const HEAD: &str = "\
# Real programs on both ends

Clients and servers that other people wrote, with one gate between them: each client with each server, at the endpoint of
that server (`/mcp/NAME`). This page is written by `cargo xtask conformance`, and a test compares it with each run: what stands
here as `yes` was done and came out right, and what both ends have and does not work is a failure of that test. The exact
versions are in `crates/e2e/peers`.

The first six servers are the official ones, the others small servers on the SDKs. The SDKs of TypeScript are spoken with over
Streamable HTTP, all others over standard input and output. In brackets stands how a client agrees on a revision: `auto` comes to
2026-07-28, the others to 2025-11-25. A server that was told of a cancelled call has to say so itself, where it is one of ours.
";

fn page(servers: &[Server]) -> String {
    let mut page = String::from(HEAD);
    let mut sorted: Vec<&Server> = servers.iter().collect();
    sorted.sort_by_key(|server| server.deeds.iter().any(|(_, step, _)| step[1] == "wait"));
    let columns = Deed::ALL.map(|(_, name)| name).join(" | ");
    for client in &CLIENTS {
        let _ = write!(
            page,
            "\n## {client}\n\n| server | {columns} |\n|---|{}\n",
            "---|".repeat(8)
        );
        for server in &sorted {
            let cells = Deed::ALL.map(|(deed, _)| {
                let has = server.deeds.iter().any(|(has, ..)| *has == deed);
                match (has, client.can(deed)) {
                    (true, true) => "yes",
                    (true, false) => "-",
                    (false, _) => "- (server)",
                }
            });
            let _ = writeln!(page, "| {} | {} |", server.name, cells.join(" | "));
        }
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (deed, why) in client.lacks {
            let (_, name) = Deed::ALL.iter().find(|(known, _)| known == deed).unwrap();
            reasons.entry(why).or_default().push(name);
        }
        for (why, names) in reasons {
            let _ = write!(page, "\n`-` for {}: {why}.\n", names.join(", "));
        }
    }
    page.push_str("\n## What a server has not\n\n");
    for server in sorted.iter().filter(|server| !server.lacks.is_empty()) {
        let _ = writeln!(page, "- {}: {}.", server.name, server.lacks);
    }
    page
}

#[tokio::test]
async fn every_client_does_with_every_server_what_both_have() {
    let Some((house, servers, _web)) = house().await else {
        return;
    };
    let key = house.key("ada").await;
    let gate = house.serve().await;
    for client in &CLIENTS {
        if !client.walk(&gate, &key, &servers).await {
            return;
        }
    }
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    // Every call that was given up is one in the ledger, too.
    let given_up = |entries: &e2e::ledger::Entries| {
        let outcomes = entries.of_kind("outcome");
        outcomes
            .iter()
            .filter(|outcome| outcome["refusal"] == "cancelled")
            .count()
    };
    let expected: usize = CLIENTS
        .iter()
        .map(|client| {
            let cancels = |server: &&Server| {
                client
                    .deeds(server)
                    .iter()
                    .any(|(deed, ..)| *deed == Deed::Cancel)
            };
            servers.iter().filter(cancels).count()
        })
        .sum();
    assert_eq!(given_up(&house.ledger().await), expected);
    assert_document("docs/grid.md", &page(&servers));
}
