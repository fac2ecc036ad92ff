//! A disk that is full, a database that somebody holds, and what is on disk before a request leaves: no record, no call.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use e2e::client::Mcp;
use e2e::house::{Gate, House, text, until};
use e2e::orders;
use e2e::peer;
use e2e::service::Service;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::process::Command;

const NOT_MADE: &str = "the call could not be recorded, so it was not made; try again later";
const TOOLS: [&str; 3] = ["orders_read", "orders_note", "orders_drop"];

fn arguments(tool: &str) -> Value {
    match tool {
        "orders_note" => json!({"id":"o-1","text":"x"}),
        _ => json!({"id":"o-1"}),
    }
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Calls every tool; none may be made.
async fn assert_shut(what: &str, ada: &Mcp, service: &Service) {
    let before = service.count();
    for tool in TOOLS {
        let result = ada.call(tool, arguments(tool)).await;
        assert_eq!(result["isError"], true, "{what} {tool}: {result}");
        assert_eq!(said(&result), NOT_MADE, "{what} {tool}: {result}");
    }
    assert_eq!(service.count(), before, "{what}");
}

/// Calls every tool; all must be made.
async fn assert_open(what: &str, ada: &Mcp, service: &Service) {
    let before = service.count();
    for tool in TOOLS {
        let result = ada.call(tool, arguments(tool)).await;
        assert!(result.get("isError").is_none(), "{what} {tool}: {result}");
    }
    assert_eq!(service.count(), before + TOOLS.len(), "{what}");
}

/// The ledger has every call that the service saw, and is sound.
async fn assert_sound(house: &House, service: &Service) {
    let verified = house.run(["audit", "verify"]).await;
    assert_eq!(
        verified.status.code(),
        Some(0),
        "{}{}",
        text(&verified.stdout),
        text(&verified.stderr)
    );
    let ledger = house.ledger().await;
    let intents = ledger.of_kind("intent");
    for request in service.arrived() {
        let id = request.headers["x-request-id"].to_str().unwrap();
        assert!(intents.iter().any(|intent| intent["call"] == id), "{id}");
    }
    // An intent that was written too late for its call is no call: it was given up, and says so.
    let gone = intents
        .iter()
        .filter(|intent| {
            ledger
                .outcome(&intent["call"])
                .is_some_and(|outcome| outcome["abandoned"] == true)
        })
        .count();
    assert_eq!(intents.len() - gone, service.count());
}

#[tokio::test]
async fn a_database_that_somebody_holds_stops_calls_until_it_is_free() {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let config = format!("{}\n[limits]\nledger_timeout = \"400ms\"\n", orders::CONFIG);
    house.write("tollhouse.toml", config);
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    assert_open("before", &ada, &service).await;

    let options = SqliteConnectOptions::new().filename(house.path("tollhouse.db"));
    let mut other = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql("BEGIN EXCLUSIVE")
        .execute(&mut other)
        .await
        .unwrap();
    assert_shut("held", &ada, &service).await;
    gate.logged("the intent could not be written, so the call was not made")
        .await;
    // A refusal that cannot be written down is a refusal all the same.
    let refused = ada.call("orders_read", json!({"id":"o-2"})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    // A gate that starts now says why it does not.
    let output = house.run(["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("locked by another process"),
        "{}",
        text(&output.stderr)
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();

    // The same gate goes on, and nothing has to be repaired.
    let read = async || {
        let result = ada.call("orders_read", json!({"id":"o-1"})).await;
        result.get("isError").is_none()
    };
    until("the gate finds its database again", read).await;
    assert_open("after", &ada, &service).await;
    gate.close().await;
    assert_sound(&house, &service).await;
}

#[tokio::test]
async fn a_store_that_may_not_grow_stops_calls_until_it_may() {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    let config = format!("store_bytes_max = \"1MiB\"\n{}", orders::CONFIG);
    house.write("tollhouse.toml", &config);
    let key = house.key("ada").await;
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    fill(&ada).await;
    assert_shut("full", &ada, &service).await;
    assert!(gate.log().contains("full"), "{}", gate.log());
    gate.close().await;

    // It is full for a new gate too, which says so before it listens.
    let output = house.run(["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(output.status.code(), Some(69), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("store_bytes_max"),
        "{}",
        text(&output.stderr)
    );
    // Allowed to grow, it goes on where it was; nothing has to be repaired.
    house.write("tollhouse.toml", config.replace("1MiB", "64MiB"));
    let gate = house.serve().await;
    let ada = Mcp::modern(&gate.url, &key);
    assert_open("after", &ada, &service).await;
    gate.close().await;
    assert_sound(&house, &service).await;
}

/// Calls until one is not made for want of a record.
async fn fill(ada: &Mcp) {
    for _ in 0..5_000 {
        let result = ada.call("orders_note", arguments("orders_note")).await;
        if said(&result) == NOT_MADE {
            return;
        }
        // The last one that is made may find no place for its outcome.
        assert!(
            result.get("isError").is_none() || said(&result).contains("could not be recorded"),
            "{result}"
        );
    }
    panic!("the store never gets full");
}

/// Mounts a small disk for the store in a namespace of its own, with what is there already, and runs the gate on it.
const ON_A_SMALL_DISK: &str = r#"
cp -r store seed && mount -t tmpfs -o size=2m none store && cp -r seed/. store && exec "$@"
"#;

fn unshared(folder: &Path) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount"])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

#[tokio::test]
async fn a_disk_that_is_full_stops_calls_until_there_is_room() {
    let service = Service::start(orders::usual).await;
    let house =
        orders::house(&service.url()).with_change("tollhouse.toml", "sqlite:toll", "sqlite:store/toll");
    house.write("store/.keep", "");
    house.write("probe/.keep", "");
    let probe = unshared(&house.path("probe"))
        .args(["mount", "-t", "tmpfs", "none", "."])
        .output()
        .await;
    if !probe.is_ok_and(|output| output.status.success()) {
        peer::missing(
            "a namespace of one's own",
            "allow `unshare --user --map-root-user --mount`",
        );
        return;
    }
    let key = house.key("ada").await;
    let serve = house.command(["serve", "--listen", "127.0.0.1:0"]);
    let serve = serve.as_std();
    let mut command = unshared(house.folder());
    command
        .args(["sh", "-c", ON_A_SMALL_DISK, "sh"])
        .arg(serve.get_program())
        .args(serve.get_args())
        .env_clear()
        .envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .kill_on_drop(true);
    let gate = Gate::start(command).await;
    let ada = Mcp::modern(&gate.url, &key);
    assert_open("before", &ada, &service).await;

    // The folder as the gate sees it.
    let disk = PathBuf::from(format!("/proc/{}/root", gate.id()))
        .join(house.folder().strip_prefix("/").unwrap())
        .join("store");
    let ballast = disk.join("ballast");
    let room = std::io::copy(
        &mut std::io::repeat(0),
        &mut std::fs::File::create(&ballast).unwrap(),
    );
    assert_eq!(
        room.unwrap_err().kind(),
        std::io::ErrorKind::StorageFull,
        "the disk is full"
    );
    fill(&ada).await;
    assert_shut("full", &ada, &service).await;
    assert!(gate.log().contains("full"), "{}", gate.log());
    std::fs::remove_file(&ballast).unwrap();
    assert_open("with room again", &ada, &service).await;

    // The disk goes with the gate. Nothing is being written now, so that a copy of it is whole.
    for name in ["tollhouse.db", "tollhouse.db-wal"] {
        std::fs::copy(disk.join(name), house.path("store").join(name)).unwrap();
    }
    gate.close().await;
    assert_sound(&house, &service).await;
}

/// What a trace says of one call, between the caller's request and the service's.
#[derive(Debug)]
struct Traced {
    /// The first words of what was sent to the service.
    sent: String,
    /// Flushes of the store's log that had come to their end by then.
    flushes: usize,
}

/// Reads a trace: the flushes between each request that came and the one that left for it.
fn traced(trace: &str, service_port: u16) -> Vec<Traced> {
    let mut calls = Vec::new();
    let mut flushes = 0;
    for line in trace.lines() {
        let flushed = line.contains("fdatasync") || line.contains("fsync");
        if line.contains("\"POST /mcp ") {
            flushes = 0;
        } else if flushed && line.ends_with("= 0") {
            flushes += 1;
        } else if line.contains(&format!("->127.0.0.1:{service_port}]"))
            && let Some((_, sent)) = line.split_once('"')
            && ["GET /", "POST /", "DELETE /"]
                .iter()
                .any(|verb| sent.starts_with(verb))
        {
            let sent = sent.split(" HTTP").next().unwrap().to_owned();
            calls.push(Traced { sent, flushes });
        }
    }
    calls
}

#[tokio::test]
async fn the_intent_of_a_change_is_on_disk_before_its_request_leaves_and_a_read_does_not_wait() {
    if peer::program("strace").is_none() {
        peer::missing("strace", "apt-get install strace");
        return;
    }
    let traceable = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
        .await
        .unwrap();
    if !traceable.status.success() {
        peer::missing("the right to trace a process", "allow ptrace");
        return;
    }
    for (ledger, waits) in [
        ("", true),
        // The same without the wait, which shows that the trace would show it.
        (
            "[ledger]\nwrite = \"process\"\ndanger_write_without_disk = true\n",
            false,
        ),
    ] {
        for call in trace(ledger).await {
            let changes = !call.sent.starts_with("GET");
            assert_eq!(call.flushes > 0, changes && waits, "{ledger}{call:?}");
        }
    }
}

/// Makes each call three times, one after another, on a gate that is traced.
async fn trace(ledger: &str) -> Vec<Traced> {
    let service = Service::start(orders::usual).await;
    let house = orders::house(&service.url());
    house.write("tollhouse.toml", format!("{}\n{ledger}", orders::CONFIG));
    let key = house.key("ada").await;
    let serve = house.command(["serve", "--listen", "127.0.0.1:0"]);
    let serve = serve.as_std();
    let mut command = Command::new("strace");
    // The gate stays the child of the test, and the tracer is a process beside it.
    command
        .args(["-D", "-f", "-yy", "-s", "64", "-o", "trace.txt", "-e"])
        .arg("trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,fsync,fdatasync,sync_file_range")
        .arg(serve.get_program())
        .args(serve.get_args())
        .current_dir(house.folder())
        .env_clear()
        .envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .kill_on_drop(true);
    let gate = Gate::start(command).await;
    let id = gate.id();
    let ada = Mcp::modern(&gate.url, &key);
    for _ in 0..3 {
        assert_open("traced", &ada, &service).await;
    }
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
    let written = || std::fs::read_to_string(house.path("trace.txt")).unwrap();
    until("the trace ends", async || {
        written()
            .lines()
            .any(|line| line.starts_with(&format!("{id} ")) && line.contains("+++ exited"))
    })
    .await;
    let calls = traced(&written(), service.address.port());
    let sent: Vec<&str> = calls.iter().map(|call| call.sent.as_str()).collect();
    assert_eq!(
        sent,
        ["GET /orders/o-1", "POST /orders/o-1/notes", "DELETE /orders/o-1"].repeat(3)
    );
    calls
}
