//! An upstream for benchmarks. It does as little as a correct server can, so that what is measured is in front of it.
//!
//! Two faces on one port: MCP at `/mcp` in both eras, and an OpenAPI service at `/echo` and `/items/{id}`. Every
//! answer carries the nonce of its call, so that a load generator can tell its own answer from any other.
//! Read first: `echo.rs`, what is echoed; then `mcp.rs` and `api.rs`, the two faces.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

mod api;
mod count;
mod echo;
mod mcp;
mod port;
mod stdio;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};

use echo::Echo;

/// An upstream that echoes, for benchmarks. Loopback only.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Where to listen; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Speak MCP on standard input and output instead of listening
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Write the OpenAPI document and end
    #[arg(long, conflicts_with_all = ["listen", "stdio"])]
    print_openapi: bool,

    /// How many tools and operations: `echo`, `echo2`, …
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    tools: u16,

    /// Wait this long before each answer
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    delay_ms: u64,

    /// Add a field of this many bytes to each answer
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64 << 20))]
    answer_bytes: u32,

    /// Answer a call that carries a progress token with an event stream of this many progress events, then the result
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    events: u32,

    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let echo = Arc::new(Echo::new(echo::Shape {
        tools: options.tools,
        delay: Duration::from_millis(options.delay_ms),
        padding_bytes: usize::try_from(options.answer_bytes)?,
        events: options.events,
    }));
    if options.print_openapi {
        announce(&serde_json::to_string_pretty(&api::document(options.tools))?);
        return Ok(());
    }
    let runtime = if options.workers == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(usize::from(options.workers))
            .enable_all()
            .build()
    };
    let runtime = runtime.context("no runtime")?;
    let ended = runtime.block_on(run(&options, echo));
    // A read of standard input cannot be called off; dropping the runtime would wait for it.
    runtime.shutdown_background();
    ended
}

async fn run(options: &Options, echo: Arc<Echo>) -> anyhow::Result<()> {
    let stop = Stop::listen()?;
    tokio::select! {
        () = stop.told() => Ok(()),
        ended = serve(options, echo) => ended,
    }
}

async fn serve(options: &Options, echo: Arc<Echo>) -> anyhow::Result<()> {
    if options.stdio {
        return stdio::serve(&echo).await;
    }
    if !options.listen.ip().is_loopback() {
        bail!(
            "listen address `{}` is not loopback; a benchmark stays on this machine, as 127.0.0.1:0",
            options.listen
        );
    }
    let port = port::Port::open(options.listen).await?;
    announce(&format!("listening on http://{}", port.address()));
    port.serve(echo).await
}

#[expect(
    clippy::print_stdout,
    reason = "standard output is the interface of this command"
)]
fn announce(line: &str) {
    println!("{line}");
}

/// The signals that end the upstream, heard from the moment this exists.
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
