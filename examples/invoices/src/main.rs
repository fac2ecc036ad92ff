//! The command: starts the service, prints one ready line, runs until it is told to stop.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use invoices::{Options, TOKEN_VARIABLE};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: &str =
    "usage: INVOICES_TOKEN=TEXT tollhouse-example-invoices --database FILE [--listen ADDRESS:PORT]";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stop = Stop::listen()?;
    let mut running = invoices::start(options(std::env::args().skip(1))?).await?;
    announce(&running);
    tokio::select! {
        () = stop.told() => {}
        failed = running.failed() => failed?,
    }
    running.stop().await
}

#[expect(
    clippy::print_stdout,
    reason = "the ready line is the interface of this command"
)]
fn announce(running: &invoices::Running) {
    println!("listening on {}", running.url());
}

fn options(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let mut listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut database: Option<PathBuf> = None;
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("`{name}` has no value; {USAGE}"))
        };
        match name.as_str() {
            "--listen" => {
                let text = value()?;
                listen = text.parse().with_context(|| {
                    format!("listen address `{text}` is none; write ADDRESS:PORT, as 127.0.0.1:7310")
                })?;
            }
            "--database" => database = Some(PathBuf::from(value()?)),
            _ => bail!("argument `{name}` is unknown; {USAGE}"),
        }
    }
    // The credential is not an argument, because arguments are visible to every user of the machine.
    let credential = std::env::var(TOKEN_VARIABLE).with_context(|| {
        format!("`{TOKEN_VARIABLE}` is not set; choose any text as the service credential")
    })?;
    let database = database.with_context(|| format!("no database is named; {USAGE}"))?;
    Ok(Options {
        listen,
        ..Options::new(database, credential)
    })
}

/// The signals that end the service, heard from the moment this exists.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Begins to listen. A signal that arrives before would kill the process without a word.
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn told(mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
