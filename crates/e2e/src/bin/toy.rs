//! A toy server on standard input and output: it does what each line asks, well or badly. It speaks no MCP.
//!
//! `toy serve MARK` takes one JSON object a line, `{"do": "echo"}`, and answers with one. `MARK` tells its processes from
//! all others. Other words are what it starts of itself, and a gate that can be killed.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a toy for tests"
)]

use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use serde_json::{Value, json};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", mark] => serve(mark),
        // Ends neither when its input does nor at SIGTERM.
        ["stubborn", mark] => {
            deaf_to_sigterm();
            start("sit", mark);
            start("escape", mark);
            println!("{{\"ready\":true}}");
            for_ever()
        }
        ["sit", _] => {
            deaf_to_sigterm();
            for_ever()
        }
        // Leaves its process group and its session.
        ["escape", _] => {
            rustix::process::setsid().unwrap();
            deaf_to_sigterm();
            for_ever()
        }
        ["mcp", kind, mark] => mcp(kind, mark),
        ["gate", launcher, mark] => gate(launcher, mark),
        other => panic!("{other:?} is nothing that a toy does"),
    }
}

fn for_ever() {
    loop {
        std::thread::park();
    }
}

/// A handler that does nothing, for as long as the process lasts.
fn deaf_to_sigterm() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let entered = runtime.enter();
    let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    drop(entered);
    std::mem::forget((signal, runtime));
}

fn start(what: &str, mark: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([what, mark])
        .spawn()
        .unwrap();
    // Whoever ends the toy ends this, too.
    std::mem::forget(child);
}

/// An MCP server of the legacy era with two tools. `fragile` ends at anything that comes before `initialize`, `mute` leaves
/// what it does not know unanswered, `polite` answers it with an error.
fn mcp(kind: &str, mark: &str) {
    let mut opened = false;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let say = |result: Value| {
            println!(
                "{}",
                json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
            )
        };
        let arguments = &message["params"]["arguments"];
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                opened = true;
                say(json!({
                    "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "toy", "version": "1" },
                }));
            }
            _ if !opened && kind == "fragile" => std::process::exit(3),
            "tools/list" => {
                let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
                let tool = |name: &str| json!({ "name": name, "inputSchema": schema });
                say(json!({ "tools": [tool("say"), tool("look"), tool("sleep"), tool("die")] }));
            }
            "tools/call" => match message["params"]["name"].as_str().unwrap() {
                "say" => say(text(arguments["text"].as_str().unwrap_or_default())),
                // Who it is, and what it has of an environment.
                "look" => {
                    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                    say(text(
                        &json!({ "process": std::process::id(), "mark": mark, "variables": names })
                            .to_string(),
                    ));
                }
                "sleep" => {}
                _ => std::process::exit(4),
            },
            method if method.starts_with("notifications/") => eprintln!("{method}"),
            _ if kind == "polite" => {
                println!(
                    "{}",
                    json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32601, "message": "no" } })
                );
            }
            _ => {}
        }
    }
}

fn serve(mark: &str) {
    eprintln!("ready");
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |name: &str| asked[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| usize::try_from(asked[name].as_u64().unwrap_or_default()).unwrap();
        let told = |result: std::io::Result<()>| match result {
            Ok(()) => json!({ "ok": true }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        let answer = match text("do").as_str() {
            "echo" => asked.clone(),
            "env" => std::env::vars()
                .map(|(name, value)| (name, json!(value)))
                .collect(),
            "cwd" => json!({ "cwd": std::env::current_dir().unwrap() }),
            "read" => told(
                std::fs::File::open(text("path"))
                    .and_then(|mut file| file.read(&mut [0; 1]))
                    .map(drop),
            ),
            "list" => told(std::fs::read_dir(text("path")).map(drop)),
            "write" => told(std::fs::write(text("path"), "x")),
            "connect" => told(TcpStream::connect(text("to")).map(drop)),
            "connect-unix" => told(UnixStream::connect(text("to")).map(drop)),
            "listen-unix" => told(UnixListener::bind(text("to")).map(drop)),
            "pair" => told(UnixStream::pair().map(drop)),
            "run" => told(Command::new(text("program")).arg("--version").output().map(drop)),
            "parent" => json!({ "parent": std::os::unix::process::parent_id() }),
            "fork" => {
                start("sit", mark);
                start("escape", mark);
                json!({ "ok": true })
            }
            "noise" => {
                (0..number("lines")).for_each(|_| println!("this is no message"));
                json!({ "ok": true })
            }
            "long" => json!({ "text": "x".repeat(number("bytes")) }),
            "say" => {
                (0..number("lines")).for_each(|n| eprintln!("{n} {}", text("text")));
                json!({ "ok": true })
            }
            "exit" => std::process::exit(i32::try_from(number("code")).unwrap()),
            "hang" => return for_ever(),
            other => json!({ "error": format!("a toy does not {other}") }),
        };
        println!("{answer}");
        std::io::stdout().flush().unwrap();
    }
}

/// A gate with one stubborn child, for whoever kills it.
fn gate(launcher: &str, mark: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let yard = upstream::Yard::new(launcher.into(), std::env::vars_os(), &model::Limits::default());
        let children = e2e::children::of(&yard, &["stubborn", mark], |_| {});
        let mut child = children.start("ada").await.unwrap();
        let heard = child.receiver().unwrap().next().await;
        println!("{heard:?}");
        std::future::pending::<()>().await;
    });
}
