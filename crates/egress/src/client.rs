//! Sending a request: one try, no redirect unless asked for, no proxy, a deadline on everything.
//!
//! The pool of connections is hyper-util's, keyed by scheme, host and port. What a pooled connection leads to was judged
//! when it was opened and cannot change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header;
use http::{HeaderMap, Method, Request, Version};
use http_body::Body as _;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use model::Limits;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::connector::Connector;
use crate::fault::{EgressFault, Part, Phase, chain};
use crate::network::Network;
use crate::outgoing::{Departure, Outgoing};
use crate::redirect::{self, RedirectFault};
use crate::resolve::{Resolve, SystemResolver};
use crate::tls::{ClientCertificate, Tls};

/// How long an unused connection is kept. Shorter than what common servers keep it (60 s and more), so that it is
/// mostly us who close and no request meets a connection that is just going away.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// How often an HTTP/2 connection with requests on it is asked whether it lives, and how long the reply may take. An
/// HTTP/1 connection is closed with the request that waited in vain; one of HTTP/2 is shared, and would go on to swallow
/// requests.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// What hyper needs for a status line and the ends of lines beside the headers that we count ourselves.
const HEAD_SLACK: usize = 4_096;

/// How a client connects.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Which addresses may be connected to.
    pub network: Network,
    /// Roots beside those of the platform, as PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// The certificate that is shown to servers over TLS that ask for one.
    pub certificate: Option<ClientCertificate>,
    /// How long name, connection and TLS handshake may take together.
    pub connect_timeout: Duration,
    /// Idle connections kept per scheme, host and port.
    pub idle_max: usize,
    /// The headers of an answer, all names and values with their separators together, in bytes.
    pub headers_bytes_max: usize,
    /// Whether HTTP/2 is offered to servers over TLS.
    pub http2: bool,
}

/// A client for requests to the outside. Cheap to clone; clones share connections and the count of requests.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: legacy::Client<Connector, Outgoing>,
    requests: Arc<AtomicU64>,
    headers_bytes_max: usize,
    tls_fault: Option<String>,
}

impl ClientOptions {
    /// Options with the limits in force, for this network, with HTTP/2 and without extra roots.
    #[must_use]
    pub fn new(network: Network, limits: &Limits) -> Self {
        Self {
            network,
            ca_pem: None,
            certificate: None,
            connect_timeout: limits.upstream_connect_timeout,
            idle_max: limits.upstream_connections_max,
            headers_bytes_max: limits.upstream_headers_bytes_max,
            http2: true,
        }
    }
}

impl Client {
    /// A client that resolves names as the operating system does.
    ///
    /// # Errors
    /// [`EgressFault::Setup`] where the extra roots, or the certificate of this client, cannot be used.
    pub fn new(options: ClientOptions) -> Result<Self, EgressFault> {
        Self::with_resolver(options, Arc::new(SystemResolver))
    }

    /// A client with another resolver.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_resolver(options: ClientOptions, resolver: Arc<dyn Resolve>) -> Result<Self, EgressFault> {
        let tls = Tls::new(
            options.ca_pem.as_deref(),
            options.certificate.as_ref(),
            options.http2,
        )?;
        let connector = Connector::new(options.network, resolver, tls, options.connect_timeout);
        let tls_fault = connector.tls_fault().map(str::to_owned);
        // hyper refuses to work with less than 8 KiB, by a panic.
        let head_max = options.headers_bytes_max.saturating_add(HEAD_SLACK).max(8_192);
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(options.idle_max)
            // A request is sent once. Whether it may be sent again is known only to whoever knows what it does.
            .retry_canceled_requests(false)
            .http1_max_buf_size(head_max)
            // HTTP/2 counts 32 bytes more per header than we do; the exact count is ours.
            .http2_max_header_list_size(u32::try_from(head_max.saturating_mul(2)).unwrap_or(u32::MAX))
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .timer(TokioTimer::new())
            .build(connector);
        Ok(Self(Arc::new(Inner {
            http,
            requests: Arc::new(AtomicU64::new(0)),
            headers_bytes_max: options.headers_bytes_max,
            tls_fault,
        })))
    }

    /// Sends one request and waits for status and headers of the answer.
    ///
    /// The URI is absolute, `http` or `https`; its host is judged at the connection. No redirect is followed, nothing is
    /// sent twice, no proxy is used whatever the environment says. `Host` and `Content-Length` are written here; headers
    /// that change how the message is framed are refused.
    ///
    /// Dropping the future abandons the request: bytes may have left, and an HTTP/1 connection is closed.
    ///
    /// # Errors
    /// [`EgressFault`]; [`EgressFault::sent`] says whether the far side may have acted.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Answer, EgressFault> {
        check(&request)?;
        if Instant::now() >= deadline {
            // A pooled connection would still take it.
            return Err(EgressFault::Timeout {
                sent: false,
                phase: Phase::Connect,
            });
        }
        let departure = Departure::new(&self.0.requests);
        let (mut parts, body) = request.into_parts();
        // The version is what the connection speaks, not what the request says.
        parts.version = Version::HTTP_11;
        let body = Outgoing::new(body, Arc::clone(&departure));
        let waiting = self.0.http.request(Request::from_parts(parts, body));
        // The request's future is gone behind this line, so the departure is final.
        let outcome = tokio::time::timeout_at(deadline, waiting).await;
        match outcome {
            Ok(Ok(response)) => {
                departure.mark();
                self.check_headers(response.headers())?;
                Ok(Answer::new(response))
            }
            Ok(Err(error)) => Err(self.fault(&error, departure.is_final_and_sent())),
            Err(_) => {
                let sent = departure.is_final_and_sent();
                let phase = if sent { Phase::Answer } else { Phase::Connect };
                Err(EgressFault::Timeout { sent, phase })
            }
        }
    }

    /// Sends a GET or HEAD and follows up to `hops` redirects within its own origin (scheme, host and port).
    ///
    /// `again` is called before each further request, so that a caller who gives the future up still knows how many
    /// were tried.
    ///
    /// # Errors
    /// [`EgressFault::Redirect`] for a redirect to another origin, of another method, without a readable `Location`, or
    /// one too many; else as [`Client::send`].
    pub async fn send_following(
        &self,
        request: Request<Full<Bytes>>,
        hops: u8,
        deadline: Instant,
        again: impl Fn(),
    ) -> Result<Answer, EgressFault> {
        let (parts, body) = request.into_parts();
        let mut uri = parts.uri;
        let mut followed = 0;
        loop {
            let mut hop = Request::new(body.clone());
            *hop.method_mut() = parts.method.clone();
            *hop.uri_mut() = uri.clone();
            *hop.headers_mut() = parts.headers.clone();
            let answer = self.send(hop, deadline).await?;
            if !redirect::is_redirect(answer.status) {
                return Ok(answer);
            }
            let refused = |why| EgressFault::Redirect {
                status: answer.status.as_u16(),
                why,
            };
            let location = answer.headers.get(header::LOCATION);
            uri = redirect::next(&parts.method, &uri, location).map_err(refused)?;
            if followed == hops {
                return Err(refused(RedirectFault::TooMany { max: hops }));
            }
            followed += 1;
            again();
        }
    }

    /// How many requests of this client and its clones had bytes that may have left. A refused address counts 0.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Why no encrypted connection can be made from this machine at all, if that is so. Worth a line at start, because
    /// otherwise the first request to an `https` destination says it.
    #[must_use]
    pub fn tls_fault(&self) -> Option<&str> {
        self.0.tls_fault.as_deref()
    }

    fn check_headers(&self, headers: &HeaderMap) -> Result<(), EgressFault> {
        // As HTTP/1 writes them: name, `: `, value, end of line.
        let bytes: usize = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        if bytes > self.0.headers_bytes_max {
            return Err(self.headers_too_large());
        }
        Ok(())
    }

    fn headers_too_large(&self) -> EgressFault {
        EgressFault::TooLarge {
            part: Part::Headers,
            max: self.0.headers_bytes_max,
        }
    }

    /// What hyper says, in our words. Our own faults travel through it from the connector.
    fn fault(&self, error: &legacy::Error, sent: bool) -> EgressFault {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(fault) = cause.downcast_ref::<EgressFault>() {
                return fault.clone();
            }
            if cause
                .downcast_ref::<hyper::Error>()
                .is_some_and(hyper::Error::is_parse_too_large)
            {
                return self.headers_too_large();
            }
            next = cause.source();
        }
        EgressFault::Broken {
            sent,
            why: chain(error),
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

/// Refuses requests that are not plain messages to the host of their URI.
fn check(request: &Request<Full<Bytes>>) -> Result<(), EgressFault> {
    let refused = |why: String| Err(EgressFault::Request(why));
    if *request.method() == Method::CONNECT || *request.method() == Method::TRACE {
        return refused(format!("the method `{}` is not sent from here", request.method()));
    }
    match request.uri().scheme_str() {
        Some("http" | "https") => {}
        Some(_) | None => return refused("its URI is not absolute, with `http` or `https`".to_owned()),
    }
    for (name, value) in request.headers() {
        let allowed = if *name == header::HOST {
            request
                .uri()
                .authority()
                .is_some_and(|authority| authority.as_str().as_bytes() == value.as_bytes())
        } else if *name == header::CONTENT_LENGTH {
            let length = value.to_str().ok().and_then(|text| text.parse().ok());
            request.body().size_hint().exact() == length
        } else {
            // What frames a message, or belongs to one connection, is not the caller's to say.
            *name != header::TRANSFER_ENCODING
                && *name != header::CONNECTION
                && *name != header::UPGRADE
                && *name != header::EXPECT
                && *name != header::TE
                && *name != header::TRAILER
                && *name != header::PROXY_AUTHORIZATION
                && name.as_str() != "keep-alive"
                && name.as_str() != "proxy-connection"
        };
        if !allowed {
            return refused(format!(
                "its header `{name}` would change how or where the message is read"
            ));
        }
    }
    Ok(())
}
