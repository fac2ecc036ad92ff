//! The listening socket: connections within limits, and the orderly end of all of them.
//!
//! axum's own loop has no limit on connections and no timeout for slow headers, so this is hyper's, with both.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::http::Face;

/// Streams of one HTTP/2 connection at once.
const HTTP2_STREAMS_MAX: u32 = 128;
/// How often idle sessions are looked for, at least.
const SWEEP_INTERVAL_MAX: Duration = Duration::from_secs(30);
/// Headers of one request, counted.
const HEADERS_MAX: usize = 100;

/// A bound socket that does not serve yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// Why nothing can be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenFault {
    /// The address is taken, not ours, or not allowed.
    #[error(
        "cannot listen on `{address}`: {source}; stop what listens there, or choose another address, as `listen` or with `--listen`"
    )]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Listener {
    /// Binds an address. Port 0 asks for any free one.
    ///
    /// # Errors
    /// [`ListenFault`].
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenFault> {
        let bind = async {
            let socket = TcpListener::bind(address).await?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        bind.await.map_err(|source| ListenFault::Bind { address, source })
    }

    /// The address that was bound.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`, then drains: no new connections and calls, running calls may end within
    /// `drain_timeout`, then everything is closed.
    ///
    /// Gives how many calls were cut off. Dropping the future closes everything at once.
    pub async fn serve(self, face: Face, shutdown: CancellationToken) -> usize {
        let limits = face.gateway().limits().clone();
        let places = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
        let graceful = GracefulShutdown::new();
        let builder = builder(limits.headers_bytes_max, limits.headers_timeout);
        let router = face.router();
        let sweeping = tokio::spawn(sweep(face.clone(), shutdown.clone()));
        loop {
            let place = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let Ok(place) = place else { break };
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = self.socket.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, or a connection that was gone before it was taken. A short pause keeps this
                    // from turning into a loop that only logs.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            // Answers are small and wait for nothing.
            let _ = stream.set_nodelay(true);
            let activity = Activity::default();
            let service = service(router.clone(), activity.clone());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let connection = graceful.watch(connection.into_owned());
            let idle_timeout = limits.headers_timeout;
            tokio::spawn(async move {
                let _place = place;
                tokio::select! {
                    ended = connection => {
                        if let Err(error) = ended {
                            tracing::debug!(%error, "a connection ended early");
                        }
                    }
                    () = activity.idle(idle_timeout) => tracing::debug!("an idle connection was closed"),
                }
            });
        }
        // Whoever finds the door closed can be sure that no call is taken in any more, on any connection.
        face.gateway().drain();
        drop(self.socket);
        // It ends with the shutdown, and holds nothing that could be lost.
        let _ = sweeping.await;
        drain(&face, graceful, limits.drain_timeout).await
    }
}

/// The routes, for one connection whose activity is noted.
fn service(
    router: Router,
    activity: Activity,
) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send> {
    let routes = TowerToHyperService::new(router);
    service_fn(move |request: Request<Incoming>| {
        let under_way = activity.begin();
        let answered = routes.call(request);
        async move { Ok(answered.await?.map(|body| under_way.until_read(body))) }
    })
}

fn builder(headers_bytes_max: usize, headers_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(headers_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(headers_bytes_max.max(8_192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_header_list_size(u32::try_from(headers_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// Ends idle sessions by and by: a session's streams are to end with it, also when nobody comes.
async fn sweep(face: Face, shutdown: CancellationToken) {
    let every = face
        .gateway()
        .limits()
        .session_idle_timeout
        .min(SWEEP_INTERVAL_MAX);
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => face.gateway().sessions().sweep(),
        }
    }
}

/// Ends in order, when no new calls are taken: calls first, then streams, then connections.
async fn drain(face: &Face, graceful: GracefulShutdown, timeout: Duration) -> usize {
    let gateway = face.gateway();
    let deadline = Instant::now() + timeout;
    let cut_off = gateway.drained(deadline).await;
    // Calls that still run are cut off: those in sessions with their sessions, the others with this.
    gateway.sessions().end_all();
    face.0.closing.cancel();
    face.0.tasks.close();
    let ends = async {
        graceful.shutdown().await;
        face.0.tasks.wait().await;
    };
    // Their outcomes are written down like any other, and have as long for it.
    let rest = deadline.max(Instant::now() + gateway.limits().ledger_timeout);
    if tokio::time::timeout_at(rest, ends).await.is_err() {
        tracing::warn!("connections were still open at the end of `drain_timeout`");
    }
    cut_off
}
