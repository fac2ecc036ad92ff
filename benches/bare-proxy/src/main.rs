//! The floor of a benchmark: a reverse proxy that looks at nothing.
//!
//! It has what any HTTP gateway in this language has (hyper's server, hyper-util's pooled client, TCP_NODELAY on both
//! sides, a multi-thread runtime) and does nothing else: method, path, headers and body go on as they came. What a
//! gate costs beyond this is the price of its checks. It is no proxy to use: it keeps hop-by-hop headers and the
//! client's `Host`, and has no limits beyond those of a benchmark.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clap::Parser;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;

/// Open connections; one more waits.
const CONNECTIONS_MAX: usize = 4_096;
/// Idle connections kept to the upstream.
const IDLE_CONNECTIONS_MAX: usize = 256;

type Body = Either<Incoming, Full<Bytes>>;

/// A reverse proxy that looks at nothing, as the floor of a benchmark. Loopback only.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Where to listen; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Where everything goes, as 127.0.0.1:7400
    #[arg(long, value_name = "ADDRESS:PORT")]
    upstream: SocketAddr,

    /// Worker threads of the runtime
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
}

struct Proxy {
    client: Client<HttpConnector, Incoming>,
    upstream: Authority,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    for (what, address) in [("listen", options.listen), ("upstream", options.upstream)] {
        if !address.ip().is_loopback() {
            bail!(
                "{what} address `{address}` is not loopback; a benchmark stays on this machine, as 127.0.0.1:7400"
            );
        }
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(options.workers))
        .enable_all()
        .build()
        .context("no runtime")?
        .block_on(run(&options))
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let proxy = Arc::new(Proxy {
        client: Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector),
        upstream: options.upstream.to_string().parse()?,
    });
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`; choose another port, or 0", options.listen))?;
    let stop = Stop::listen()?;
    announce(listener.local_addr()?);
    tokio::select! {
        () = stop.told() => Ok(()),
        failed = accept(&listener, &proxy) => failed,
    }
}

#[expect(
    clippy::print_stdout,
    reason = "the ready line is the interface of this command"
)]
fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
}

async fn accept(listener: &TcpListener, proxy: &Arc<Proxy>) -> anyhow::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely; connections that end will free some.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let proxy = Arc::clone(proxy);
        tokio::spawn(async move {
            connection(stream, proxy).await;
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, proxy: Arc<Proxy>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.forward(request).await) }
    });
    // A connection that breaks is the client's affair: it counts the call that it lost.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

// === impl Proxy ===

impl Proxy {
    async fn forward(&self, request: Request<Incoming>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let Some(uri) = self.address(parts.uri.path_and_query()) else {
            return plain(StatusCode::BAD_REQUEST);
        };
        parts.uri = uri;
        match self.client.request(Request::from_parts(parts, body)).await {
            Ok(response) => response.map(Either::Left),
            Err(_) => plain(StatusCode::BAD_GATEWAY),
        }
    }

    fn address(&self, path: Option<&PathAndQuery>) -> Option<Uri> {
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTP);
        parts.authority = Some(self.upstream.clone());
        parts.path_and_query = path.cloned();
        Uri::from_parts(parts).ok()
    }
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::default()));
    *response.status_mut() = status;
    response
}

/// The signals that end the proxy, heard from the moment this exists.
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
