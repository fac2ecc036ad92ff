//! From a URI to a connection: read the host, resolve once, judge every address, connect to a judged one, check again.
//!
//! HTTP clients with a filtering resolver never show it a host that is written as an address, and connect to whatever
//! the next lookup says. Here every connection of every client goes through [`Dialer::dial`], whatever the host looks like,
//! and the socket is opened to the address that was judged.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::Service;

use crate::destination::{port_of, read_port, split_port};
use crate::fault::{EgressFault, Phase, chain};
use crate::host::Host;
use crate::network::Network;
use crate::resolve::Resolve;
use crate::tls::Tls;

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, EgressFault>> + Send>>;

/// Makes connections, encrypted where the scheme says so, within one time limit for all of it.
#[derive(Clone)]
pub(crate) struct Connector {
    plain: Dialer,
    encrypted: Result<HttpsConnector<Dialer>, Arc<str>>,
}

/// Makes the TCP connection.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<Rules>);

struct Rules {
    network: Network,
    resolver: Arc<dyn Resolve>,
    connect_timeout: Duration,
}

/// A connection to an address that was judged.
///
/// Of its own type so that it says nothing of itself: what a connection adds to each answer costs on each request.
pub(crate) struct Io(TokioIo<TcpStream>);

impl Connector {
    pub(crate) fn new(
        network: Network,
        resolver: Arc<dyn Resolve>,
        tls: Tls,
        connect_timeout: Duration,
    ) -> Self {
        let plain = Dialer(Arc::new(Rules {
            network,
            resolver,
            connect_timeout,
        }));
        let encrypted = match tls {
            // The name that the certificate must have is the host of the URI, never a resolved address.
            Tls::Ready(config) => Ok(HttpsConnector::from((plain.clone(), config))),
            Tls::NoRoots(why) => Err(why),
        };
        Self { plain, encrypted }
    }

    /// Why no encrypted connection can be made at all, if that is so.
    pub(crate) fn tls_fault(&self) -> Option<&str> {
        self.encrypted.as_ref().err().map(|why| &**why)
    }

    async fn connect(mut self, uri: Uri) -> Result<MaybeHttpsStream<Io>, EgressFault> {
        if uri.scheme() != Some(&http::uri::Scheme::HTTPS) {
            return self.plain.call(uri).await.map(MaybeHttpsStream::Http);
        }
        let host = uri.host().unwrap_or_default().to_owned();
        match self.encrypted {
            Ok(mut encrypted) => encrypted.call(uri).await.map_err(|error| {
                match error.downcast::<EgressFault>() {
                    Ok(fault) => *fault,
                    // What is not from the dialer is from the handshake.
                    Err(error) => EgressFault::Tls {
                        host,
                        why: chain(&*error),
                    },
                }
            }),
            Err(why) => Err(EgressFault::Tls {
                host,
                why: why.to_string(),
            }),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Io>;
    type Error = EgressFault;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), EgressFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let timeout = self.plain.0.connect_timeout;
        let connecting = self.clone().connect(uri);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(outcome) => outcome,
                Err(_) => Err(EgressFault::Timeout {
                    sent: false,
                    phase: Phase::Connect,
                }),
            }
        })
    }
}

impl Service<Uri> for Dialer {
    type Response = Io;
    type Error = EgressFault;
    type Future = Connecting<Io>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), EgressFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.dial(&uri).await })
    }
}

// === impl Dialer ===

impl Dialer {
    /// Opens a connection to the host of a URI. Dropping the future leaves nothing open.
    async fn dial(&self, uri: &Uri) -> Result<Io, EgressFault> {
        let (host, port) = read_authority(uri)?;
        let shown = host.to_string();
        let addresses = self.addresses(host).await?;
        for address in &addresses {
            // All of them, before any is connected to: an answer that mixes good and bad addresses is an attack, and
            // taking the good one now only means that the bad one is taken later.
            self.judge(&shown, *address)?;
        }
        let stream = self.connect(&shown, &addresses, port).await?;
        tracing::debug!(host = shown, port, "connected");
        Ok(Io(TokioIo::new(stream)))
    }

    async fn addresses(&self, host: Host) -> Result<Vec<IpAddr>, EgressFault> {
        let name = match host {
            Host::Address(address) => return Ok(vec![address]),
            Host::Name(name) => name,
        };
        match self.0.resolver.resolve(&name).await {
            Ok(addresses) if addresses.is_empty() => Err(EgressFault::Resolve {
                host: name,
                why: "it has no address".to_owned(),
            }),
            Ok(addresses) => Ok(addresses),
            Err(error) => Err(EgressFault::Resolve {
                host: name,
                why: error.to_string(),
            }),
        }
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), EgressFault> {
        self.0.network.permits(address).map_err(|why| {
            tracing::debug!(host, %address, "refused");
            EgressFault::Refused {
                host: host.to_owned(),
                address,
                why,
            }
        })
    }

    /// Tries the addresses in order. Each may take its share of the time, so that a dead first one leaves time for the
    /// second.
    async fn connect(&self, host: &str, addresses: &[IpAddr], port: u16) -> Result<TcpStream, EgressFault> {
        let end = Instant::now() + self.0.connect_timeout;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for (position, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - position).unwrap_or(u32::MAX);
            let share = end.saturating_duration_since(Instant::now()) / left;
            match tokio::time::timeout(share, TcpStream::connect(SocketAddr::new(*address, port))).await {
                Ok(Ok(stream)) => {
                    // The judgement is on the socket itself, not on our own bookkeeping of which address it is for.
                    let peer = stream.peer_addr().map_err(|error| connect_fault(host, &error))?;
                    self.judge(host, peer.ip())?;
                    stream
                        .set_nodelay(true)
                        .map_err(|error| connect_fault(host, &error))?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
            }
        }
        Err(connect_fault(host, &last))
    }
}

fn connect_fault(host: &str, error: &io::Error) -> EgressFault {
    EgressFault::Connect {
        host: host.to_owned(),
        why: error.to_string(),
    }
}

/// Host and port of a request, read as strictly as a configured destination: a request may have been put together
/// elsewhere.
fn read_authority(uri: &Uri) -> Result<(Host, u16), EgressFault> {
    let authority = uri
        .authority()
        .map(http::uri::Authority::as_str)
        .ok_or_else(|| EgressFault::Request("its URI names no host".to_owned()))?;
    if authority.contains('@') {
        return Err(EgressFault::Request(
            "its URI holds a user name or password".to_owned(),
        ));
    }
    let (host, port) = split_port(authority);
    let host = Host::parse(host)
        .map_err(|why| EgressFault::Request(format!("the host `{host}` of its URI cannot be used: {why}")))?;
    let port = match port {
        Some(digits) => read_port(digits).ok_or_else(|| {
            EgressFault::Request(format!(
                "the port `{digits}` of its URI is no number from 1 to 65535"
            ))
        })?,
        None => port_of(uri.scheme().unwrap_or(&http::uri::Scheme::HTTP)),
    };
    Ok((host, port))
}

// === impl Io ===

impl Connection for Io {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_types, reason = "the test plays the far side")]
mod tests {
    use super::*;
    use crate::resolve::SystemResolver;

    #[tokio::test]
    async fn small_requests_do_not_wait_for_company() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let dialer = Dialer(Arc::new(Rules {
            network: Network::allowing(vec!["127.0.0.0/8".parse().unwrap()]),
            resolver: Arc::new(SystemResolver),
            connect_timeout: Duration::from_secs(5),
        }));
        let Io(io) = dialer.dial(&uri).await.unwrap();
        assert!(io.inner().nodelay().unwrap());
    }
}
