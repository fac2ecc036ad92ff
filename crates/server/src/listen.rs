//! The listening socket: connections within limits, and the orderly end of all of them.
//!
//! axum's own loop has no limit on connections and no timeout for slow headers, so this is hyper's, with both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::http::Face;

/// Streams of one HTTP/2 connection at once.
const HTTP2_STREAMS_MAX: u32 = 128;
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
    #[error("cannot listen on `{address}`: {source}; stop what listens there, or choose another `listen`")]
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
        let mut sweep = tokio::time::interval(Duration::from_secs(30));
        loop {
            let place = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                _ = sweep.tick() => {
                    face.gateway().sessions().sweep();
                    continue;
                }
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
            let connection =
                builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
            let connection = graceful.watch(connection.into_owned());
            tokio::spawn(async move {
                let _place = place;
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended early");
                }
            });
        }
        drop(self.socket);
        drain(&face, graceful, limits.drain_timeout).await
    }
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

/// Ends in order: calls first, then streams, then connections.
async fn drain(face: &Face, graceful: GracefulShutdown, timeout: Duration) -> usize {
    let gateway = face.gateway();
    gateway.drain();
    let deadline = Instant::now() + timeout;
    let cut_off = gateway.drained(deadline).await;
    // What still runs is cancelled, and its outcome is still written down.
    gateway.sessions().end_all();
    face.0.closing.cancel();
    face.0.tasks.close();
    let ends = async {
        graceful.shutdown().await;
        face.0.tasks.wait().await;
    };
    let rest = deadline.max(Instant::now() + Duration::from_secs(1));
    if tokio::time::timeout_at(rest, ends).await.is_err() {
        tracing::warn!("connections were still open at the end of `drain_timeout`");
    }
    cut_off
}
