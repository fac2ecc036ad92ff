//! One URL of an MCP server: the requests that go there, with the credential attached last, and what every answer is
//! looked at for first. It knows HTTP and no JSON-RPC.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::Access;
use config::UrlSettings;
use egress::{Answer, Client, ClientOptions, Destination, DestinationFault, EgressFault, Network};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use model::{Limits, UpstreamName};
use tokio::time::Instant;
use url::Url;

use crate::challenge::Challenge;
use crate::credential::{Credentials, Tokens};
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::service::ServiceFault;

/// How many characters of a body are kept for the operator.
const EXCERPT_CHARS_MAX: usize = 300;

/// How many bytes of a body that nobody waits for are read, so that its connection can be used again.
const DRAIN_BYTES_MAX: usize = 64 << 10;

/// How long the end of a stream is waited for whose answer came: a connection whose stream has ended is used again, any
/// other is closed. Servers end a stream in the moment in which they have answered.
const LINGER: Duration = Duration::from_millis(10);

/// One URL of a server. Cheap to clone; clones share connections and credential.
#[derive(Clone)]
pub(crate) struct Endpoint {
    server: Arc<Server>,
    /// Path and query, without a credential.
    target: String,
    /// The same with the origin.
    uri: Uri,
}

struct Server {
    client: Client,
    /// The origin alone.
    origin: Destination,
    credentials: Credentials,
    access: Access,
    headers: HeaderMap,
    bounds: Bounds,
}

/// The limits of an exchange.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) message_bytes_max: usize,
    pub(crate) stream_bytes_max: usize,
    pub(crate) messages_max: usize,
    pub(crate) idle_max: Duration,
    pub(crate) resumes_max: usize,
    pub(crate) retry_max: Duration,
    pub(crate) linger: Duration,
}

// === impl Endpoint ===

impl Endpoint {
    /// Sets an endpoint up; connects to nothing.
    ///
    /// # Errors
    /// [`ServiceFault`], with the key of the configuration.
    pub(crate) fn new(
        name: &UpstreamName,
        settings: &UrlSettings,
        limits: &Limits,
    ) -> Result<Self, ServiceFault> {
        let key = |part: &str| format!("upstream.{name}.{part}");
        let unreadable = |fault| ServiceFault::Destination {
            key: key("url"),
            fault,
        };
        let (origin, target) = split(&settings.url);
        let origin = Destination::parse(origin).map_err(unreadable)?;
        let uri = origin
            .uri(target)
            .map_err(|fault| unreadable(DestinationFault::Path(fault)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let pair = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_str(value).ok());
            let Some((name, value)) = pair else {
                return Err(ServiceFault::Header {
                    key: key("headers"),
                    name: name.clone(),
                });
            };
            headers.insert(name, value);
        }
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("tollhouse/", env!("CARGO_PKG_VERSION"))),
        );
        let mut options = ClientOptions::new(Network::allowing(settings.network.allow.clone()), limits);
        options.ca_pem = settings.tls.ca.as_ref().map(|file| file.bytes.clone());
        let client = Client::new(options.clone()).map_err(|fault| ServiceFault::Client {
            key: key("tls.ca"),
            fault,
        })?;
        let credentials =
            Credentials::new(&settings.credential, &options, limits).map_err(|(_, fault)| {
                ServiceFault::Credential {
                    key: key("credential"),
                    fault,
                }
            })?;
        let server = Server {
            client,
            origin,
            credentials,
            access: Access::of_every_request(&settings.credential),
            headers,
            bounds: Bounds::new(limits),
        };
        Ok(Self {
            server: Arc::new(server),
            target: uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned(),
            uri,
        })
    }

    /// Another URL of the same origin, as the server names it: absolute, or relative to this one. `None`: it is of
    /// another origin, has a user, or cannot be read (SSE-06).
    pub(crate) fn sibling(&self, named: &str) -> Option<Self> {
        let here = Url::parse(&self.uri.to_string()).ok()?;
        let there = here.join(named).ok()?;
        let same_origin = here.scheme() == there.scheme()
            && here.host() == there.host()
            && here.port_or_known_default() == there.port_or_known_default();
        if !same_origin || !there.username().is_empty() || there.password().is_some() {
            return None;
        }
        let target = match there.query() {
            None => there.path().to_owned(),
            Some(query) => format!("{}?{query}", there.path()),
        };
        // Built on our own origin, so that it cannot name another even if the comparison erred.
        let uri = self.with(&target).ok()?;
        Some(Self {
            server: Arc::clone(&self.server),
            target,
            uri,
        })
    }

    fn with(&self, target: &str) -> Result<Uri, http::Error> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(target)?);
        Ok(Uri::from_parts(parts)?)
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        self.server.origin.origin()
    }

    /// The limits in force.
    pub(crate) fn bounds(&self) -> &Bounds {
        &self.server.bounds
    }

    /// The same, with the patience of a test for the end of a stream.
    #[cfg(test)]
    pub(crate) fn lingering(mut self, linger: Duration) -> Self {
        Arc::get_mut(&mut self.server)
            .expect("nobody else has it")
            .bounds
            .linger = linger;
        self
    }

    /// Whether bytes repeat a credential of this server.
    pub(crate) fn reveals(&self, bytes: &[u8]) -> bool {
        self.server.credentials.are_in(bytes)
    }

    /// Sends one request, once, and waits for the head of its answer. `headers` adds those of this request to those that
    /// all have; `trip` counts it.
    ///
    /// A request that met a connection which was just going away, and of which provably no byte was written, is tried
    /// once more. Dropping the future gives the request up: it may have left.
    ///
    /// # Errors
    /// [`LinkFault::Egress`], [`LinkFault::Token`], [`LinkFault::Request`]; and of the statuses those that mean the same
    /// whatever was asked: [`LinkFault::Unauthorized`], [`LinkFault::Forbidden`].
    pub(crate) async fn send(
        &self,
        method: Method,
        headers: impl Fn(HeaderMap) -> Result<HeaderMap, LinkFault>,
        body: Bytes,
        trip: Option<&Trip>,
        deadline: Instant,
    ) -> Result<Answer, LinkFault> {
        let server = &*self.server;
        let tokens = server.credentials.tokens(&server.access, deadline).await?;
        let request = || {
            let headers = headers(server.headers.clone())?;
            self.request(method.clone(), headers, body.clone(), &tokens)
        };
        let client = server
            .credentials
            .client(&server.access)
            .unwrap_or(&server.client);
        let answer = match depart(client, request()?, trip, deadline).await {
            Err(EgressFault::Broken { sent: false, .. }) => {
                depart(client, request()?, trip, deadline).await?
            }
            outcome => outcome?,
        };
        match answer.status {
            StatusCode::UNAUTHORIZED => Err(LinkFault::Unauthorized {
                challenge: Challenge::of(&answer.headers),
                renews: tokens.reject(),
            }),
            StatusCode::FORBIDDEN => Err(LinkFault::Forbidden {
                challenge: Challenge::of(&answer.headers),
            }),
            _ => Ok(answer),
        }
    }

    fn request(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        tokens: &Tokens,
    ) -> Result<Request<Full<Bytes>>, LinkFault> {
        let fault = |text: String| LinkFault::Request(text);
        let mut target = self.target.clone();
        // Behind this line nothing is logged and nothing is shown.
        self.server
            .credentials
            .attach(&self.server.access, tokens, &mut target, &mut headers)
            .map_err(|error| fault(error.to_string()))?;
        let uri = if target.len() == self.target.len() {
            self.uri.clone()
        } else {
            // The text of this error would show the target.
            self.with(&target)
                .map_err(|_| fault("its target is too long".to_owned()))?
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The fault that an answer with an unexpected status is, with the beginning of what it says.
    pub(crate) async fn refused(&self, answer: Answer, deadline: Instant) -> LinkFault {
        let (status, retry_after) = (answer.status.as_u16(), retry_after(&answer.headers));
        let body = answer.read(DRAIN_BYTES_MAX, deadline).await.unwrap_or_default();
        LinkFault::Status {
            status,
            retry_after,
            excerpt: self.excerpt(&body),
        }
    }

    /// The beginning of a body as one line of text, or nothing if it repeats a credential.
    pub(crate) fn excerpt(&self, body: &[u8]) -> Option<String> {
        // The whole body is looked at: a credential that begins in what is kept may end behind it.
        if body.is_empty() || self.reveals(body) {
            return None;
        }
        let start = body.get(..body.len().min(EXCERPT_CHARS_MAX * 4))?;
        let text = String::from_utf8_lossy(start);
        let shown: String = text
            .chars()
            .take(EXCERPT_CHARS_MAX)
            .map(|character| if is_plain(character) { character } else { ' ' })
            .collect();
        Some(shown.trim().to_owned()).filter(|shown| !shown.is_empty())
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A path or query that a server named may be as good as a credential.
        f.debug_struct("Endpoint")
            .field("origin", &self.origin())
            .finish_non_exhaustive()
    }
}

/// Reads what is left of a body that says nothing, so that its connection can be used again.
pub(crate) async fn drain(answer: Answer, deadline: Instant) {
    let _ = answer.read(DRAIN_BYTES_MAX, deadline).await;
}

async fn depart(
    client: &Client,
    request: Request<Full<Bytes>>,
    trip: Option<&Trip>,
    deadline: Instant,
) -> Result<Answer, EgressFault> {
    if let Some(trip) = trip {
        trip.leaving();
    }
    let answer = client.send(request, deadline).await;
    if let (Some(trip), Err(fault)) = (trip, &answer)
        && !fault.sent()
    {
        trip.stayed();
    }
    answer
}

/// Where the path of a URL begins. What cannot be read as a URL is for others to refuse.
fn split(url: &str) -> (&str, &str) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let path = url
        .get(authority..)
        .and_then(|rest| rest.find(['/', '?', '#', '\\']))
        .map_or(url.len(), |at| authority + at);
    url.split_at(path)
}

/// The seconds of `Retry-After`. A date is not read: nobody's clock is asked here.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// Whether a character changes nothing but its own place on a line.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

// === impl Bounds ===

impl Bounds {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            message_bytes_max: limits.upstream_body_bytes_max,
            stream_bytes_max: limits.upstream_stream_bytes_max,
            messages_max: limits.upstream_stream_messages_max,
            idle_max: limits.upstream_idle_timeout,
            resumes_max: limits.upstream_resumes_max,
            retry_max: limits.upstream_retry_max,
            linger: LINGER,
        }
    }
}
