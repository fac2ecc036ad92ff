//! Streamable HTTP, both eras: each message is a POST whose own answer carries what belongs to it. The calling task reads
//! that answer itself; there is no task and no channel per call. It knows framing and headers, no JSON-RPC: what a message
//! says, which ids are whose and what a session is are matters of the peer on top of it.
//!
//! Read first: [`Streamable::exchange`]; then `listening.rs` for the stream that no message of ours opened.
//!
//! Source: MCP 2025-03-26 to 2026-07-28, basic/transports; rules HL-* and HM-*.

use bytes::Bytes;
use config::UrlSettings;
use egress::{Answer, EgressFault, Part};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use model::{Limits, UpstreamName};
use tokio::time::Instant;
use wire::header as field;

use crate::endpoint::{Endpoint, drain};
use crate::event_stream::{EventStream, Mark, Toll, message};
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::resume::Pause;
use crate::service::ServiceFault;

/// The longest session id that is taken, in bytes.
const SESSION_BYTES_MAX: usize = 1_024;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// One endpoint of one server. Cheap to clone. It holds no state of a session.
#[derive(Debug, Clone)]
pub(crate) struct Streamable {
    endpoint: Endpoint,
}

/// One message to send, with what its headers say. None of it is checked against the body: the peer wrote both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Post<'a> {
    /// One JSON-RPC message; in 2025-03-26 also an array of them.
    pub(crate) body: Bytes,
    /// `MCP-Protocol-Version` (HL-16, HM-03).
    pub(crate) version: Option<&'a str>,
    /// `Mcp-Session-Id` (HL-13).
    pub(crate) session: Option<&'a str>,
    /// `Mcp-Method` (HM-03).
    pub(crate) method: Option<&'a str>,
    /// `Mcp-Name`, not yet encoded (HM-03, HM-15).
    pub(crate) name: Option<&'a str>,
    /// `Mcp-Param-*`: the names behind the prefix and the values, not yet encoded (HM-14, HM-15).
    pub(crate) params: &'a [(String, String)],
    /// The W3C `traceparent`.
    pub(crate) traceparent: Option<&'a str>,
    /// Whether a stream that breaks is taken up again where its events had ids: in the legacy era (HL-06, HL-11), never
    /// in the stateless one (HM-11).
    pub(crate) resumes: bool,
}

/// What a message that was heard means for the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    /// It is the answer; the exchange is over.
    Answered,
    /// It is something else that belongs to the exchange: a notification, or a request of the server.
    GoOn,
}

/// An exchange that ended as it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchanged {
    /// The HTTP status of the answer.
    pub(crate) status: StatusCode,
    /// `Mcp-Session-Id` of the answer: visible ASCII, at most 1,024 bytes. It counts on the answer to `initialize` alone
    /// (HL-12).
    pub(crate) session: Option<String>,
    /// How often the stream was taken up again.
    pub(crate) resumes: usize,
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Events,
    Nothing,
    Other,
}

// === impl Streamable ===

impl Streamable {
    /// Sets a link up; connects to nothing.
    ///
    /// # Errors
    /// [`ServiceFault`], with the key of the configuration.
    pub(crate) fn new(
        name: &UpstreamName,
        settings: &UrlSettings,
        limits: &Limits,
    ) -> Result<Self, ServiceFault> {
        Ok(Self {
            endpoint: Endpoint::new(name, settings, limits)?,
        })
    }

    /// The same, with the patience of a test for the end of a stream.
    #[cfg(test)]
    pub(crate) fn lingering(self, linger: std::time::Duration) -> Self {
        Self {
            endpoint: self.endpoint.lingering(linger),
        }
    }

    /// Where the messages go.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends one request and reads what comes on its response until `hear` says that the answer was among it.
    ///
    /// `hear` gets each message with the HTTP status that it came with, in order and unparsed: one JSON body (also of an
    /// answer whose status says that it failed: a server says there why), or the data of one event after the other. It
    /// decides alone what is the answer. A body or an event is at most `upstream_body_bytes_max` bytes.
    ///
    /// The message is never sent twice. A stream that breaks before the answer is taken up again where `post.resumes`
    /// and its events had ids, by a GET that names the last one, after the pause that the server asked for.
    ///
    /// Dropping the future closes the response. The server may have acted: [`Trip::requests`] says whether it left.
    ///
    /// # Errors
    /// [`LinkFault`]; [`LinkFault::sent`] says whether the server may have acted.
    pub(crate) async fn exchange(
        &self,
        post: Post<'_>,
        trip: &Trip,
        mut hear: impl FnMut(StatusCode, Bytes) -> Hearing,
    ) -> Result<Exchanged, LinkFault> {
        let answer = self.post(&post, Some(trip), trip.deadline).await?;
        let status = answer.status;
        let mut exchanged = Exchanged {
            status,
            session: session_of(&answer.headers)?,
            resumes: 0,
        };
        match Media::of(&answer.headers) {
            Media::Events if status.is_success() => {
                exchanged.resumes = self.hear_events(answer, &post, trip, &mut hear).await?;
                Ok(exchanged)
            }
            Media::Json if is_told(status) => {
                let body = self.whole(answer, trip.deadline).await?;
                match hear(status, body.clone()) {
                    Hearing::Answered => Ok(exchanged),
                    Hearing::GoOn if status.is_success() => Err(LinkFault::Cut { tries: 0 }),
                    Hearing::GoOn => Err(LinkFault::Status {
                        status: status.as_u16(),
                        retry_after: None,
                        excerpt: self.endpoint.excerpt(&body),
                    }),
                }
            }
            // A request that is taken as a notification is: no answer will come.
            Media::Nothing if status.is_success() => Err(LinkFault::Cut { tries: 0 }),
            Media::Json | Media::Nothing | Media::Events | Media::Other if !status.is_success() => {
                Err(self.endpoint.refused(answer, trip.deadline).await)
            }
            Media::Json | Media::Nothing | Media::Events | Media::Other => Err(not_mcp(&answer)),
        }
    }

    /// Sends a message that has no answer: a notification, or our response to a request of the server. 202 is what the
    /// rules ask for (HL-03); any other success is taken too, and what it says is not read.
    ///
    /// Dropping the future gives the message up; it may have left.
    ///
    /// # Errors
    /// [`LinkFault`]; a status that says that it did not work is one of them.
    pub(crate) async fn notify(
        &self,
        post: Post<'_>,
        trip: Option<&Trip>,
        deadline: Instant,
    ) -> Result<(), LinkFault> {
        let answer = self.post(&post, trip, deadline).await?;
        if !answer.status.is_success() {
            return Err(self.endpoint.refused(answer, deadline).await);
        }
        // A stream would be read until it pleases to end.
        if Media::of(&answer.headers) != Media::Events {
            drain(answer, deadline).await;
        }
        Ok(())
    }

    /// Ends a session (HL-15). Whatever the server answers, nothing more is to be done about it.
    ///
    /// Dropping the future leaves the session to the server's own clock.
    pub(crate) async fn end(&self, session: &str, version: Option<&str>, deadline: Instant) {
        let headers = |headers| {
            let headers = of_session(headers, Some(session), version)?;
            Ok(headers)
        };
        let answer = self
            .endpoint
            .send(Method::DELETE, headers, Bytes::new(), None, deadline)
            .await;
        match answer {
            Ok(answer) => drain(answer, deadline).await,
            Err(fault) => tracing::debug!(%fault, "a session was not ended"),
        }
    }

    /// Opens a stream by GET: one that nobody asked for yet, or from `last` on one that broke. `None`: the server has
    /// none (405).
    pub(crate) async fn get(
        &self,
        session: Option<&str>,
        version: Option<&str>,
        last: Option<&HeaderValue>,
        trip: Option<&Trip>,
        deadline: Instant,
    ) -> Result<Option<EventStream>, LinkFault> {
        let headers = |headers| {
            let mut headers = of_session(headers, session, version)?;
            headers.insert(header::ACCEPT, HeaderValue::from_static(EVENTS));
            if let Some(last) = last {
                headers.insert(HeaderName::from_static(field::LAST_EVENT), last.clone());
            }
            Ok(headers)
        };
        let answer = self
            .endpoint
            .send(Method::GET, headers, Bytes::new(), trip, deadline)
            .await?;
        match answer.status {
            StatusCode::METHOD_NOT_ALLOWED => {
                drain(answer, deadline).await;
                Ok(None)
            }
            StatusCode::NOT_FOUND if session.is_some() => {
                drain(answer, deadline).await;
                Err(LinkFault::SessionLost)
            }
            status if !status.is_success() => Err(self.endpoint.refused(answer, deadline).await),
            _ if Media::of(&answer.headers) == Media::Events => {
                Ok(Some(EventStream::new(answer, self.endpoint.bounds())))
            }
            _ => Err(not_mcp(&answer)),
        }
    }

    async fn post(
        &self,
        post: &Post<'_>,
        trip: Option<&Trip>,
        deadline: Instant,
    ) -> Result<Answer, LinkFault> {
        let answer = self
            .endpoint
            .send(
                Method::POST,
                |headers| post.headers(headers),
                post.body.clone(),
                trip,
                deadline,
            )
            .await?;
        if answer.status == StatusCode::NOT_FOUND && post.session.is_some() {
            drain(answer, deadline).await;
            return Err(LinkFault::SessionLost);
        }
        Ok(answer)
    }

    /// Reads streams until the answer was heard; gives how often one was taken up again.
    async fn hear_events(
        &self,
        answer: Answer,
        post: &Post<'_>,
        trip: &Trip,
        hear: &mut impl FnMut(StatusCode, Bytes) -> Hearing,
    ) -> Result<usize, LinkFault> {
        let status = answer.status;
        let bounds = self.endpoint.bounds();
        let mut stream = EventStream::new(answer, bounds);
        let mut mark = Mark::default();
        let mut toll = Toll::new(bounds);
        let mut pause = Pause::new(bounds);
        let mut resumes = 0;
        loop {
            let broken = loop {
                match stream.next(&mut mark, &mut toll, Some(trip.deadline)).await {
                    Ok(Some(event)) => {
                        pause.heard();
                        let Some(message) = message(event) else {
                            continue;
                        };
                        toll.message()?;
                        match hear(status, message) {
                            Hearing::GoOn => {}
                            Hearing::Answered => {
                                stream.linger().await;
                                return Ok(resumes);
                            }
                        }
                    }
                    Ok(None) => break LinkFault::Cut { tries: 0 },
                    Err(fault) if fault.is_break() => break fault,
                    Err(fault) => return Err(fault),
                }
            };
            if !post.resumes {
                return Err(broken);
            }
            stream = self.take_up(post, trip, &mark, &mut pause, broken).await?;
            resumes += 1;
        }
    }

    /// Takes a broken stream up again behind its last event.
    async fn take_up(
        &self,
        post: &Post<'_>,
        trip: &Trip,
        mark: &Mark,
        pause: &mut Pause,
        broken: LinkFault,
    ) -> Result<EventStream, LinkFault> {
        let Some(last) = &mark.last else {
            return Err(broken);
        };
        let mut broken = broken;
        loop {
            let Some(wake) = pause.next(mark.retry).filter(|wake| *wake < trip.deadline) else {
                // What the last try met says more than that there were some, unless there was none.
                return Err(match (pause.tries(), broken) {
                    (tries, LinkFault::Cut { .. }) => LinkFault::Cut { tries },
                    (_, broken) => broken,
                });
            };
            tokio::time::sleep_until(wake).await;
            tracing::debug!(tries = pause.tries(), "a stream is taken up again");
            let again = self
                .get(post.session, post.version, Some(last), Some(trip), trip.deadline)
                .await;
            match again {
                Ok(Some(stream)) => return Ok(stream),
                // The message left long ago, whatever became of this GET.
                Ok(None) => {
                    return Err(LinkFault::Cut { tries: pause.tries() });
                }
                Err(fault) if fault.is_break() => broken = sent(fault, pause),
                Err(fault) => return Err(sent(fault, pause)),
            }
        }
    }

    async fn whole(&self, answer: Answer, deadline: Instant) -> Result<Bytes, LinkFault> {
        let max = self.endpoint.bounds().message_bytes_max;
        answer.read(max, deadline).await.map_err(|fault| match fault {
            EgressFault::TooLarge { part: Part::Body, .. } => LinkFault::TooLarge {
                what: "a message",
                max,
                key: "upstream_body_bytes_max",
            },
            fault => LinkFault::Egress(fault),
        })
    }
}

/// A fault of a later request of an exchange whose message has left: it never says that nothing was sent.
fn sent(fault: LinkFault, pause: &Pause) -> LinkFault {
    if fault.sent() {
        fault
    } else {
        LinkFault::Cut { tries: pause.tries() }
    }
}

/// Statuses with which a server may say in words what is the matter; a redirect has none.
fn is_told(status: StatusCode) -> bool {
    status.is_success() || status.is_client_error() || status.is_server_error()
}

/// The fault of an answer that is neither JSON nor events.
pub(crate) fn not_mcp(answer: &Answer) -> LinkFault {
    let media = answer.headers.get(header::CONTENT_TYPE);
    LinkFault::NotMcp {
        status: answer.status.as_u16(),
        media: media.map(|value| {
            String::from_utf8_lossy(value.as_bytes())
                .escape_debug()
                .take(100)
                .collect()
        }),
    }
}

/// Whether an answer is an event stream.
pub(crate) fn is_events(answer: &Answer) -> bool {
    Media::of(&answer.headers) == Media::Events
}

/// The headers of one session.
fn of_session(
    mut headers: HeaderMap,
    session: Option<&str>,
    version: Option<&str>,
) -> Result<HeaderMap, LinkFault> {
    if let Some(session) = session {
        insert(&mut headers, field::SESSION, session)?;
    }
    if let Some(version) = version {
        insert(&mut headers, field::PROTOCOL_VERSION, version)?;
    }
    Ok(headers)
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), LinkFault> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| LinkFault::Request(format!("the value of `{name}` cannot be sent as a header")))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

/// The session id of an answer (HL-12).
fn session_of(headers: &HeaderMap) -> Result<Option<String>, LinkFault> {
    let Some(value) = headers.get(field::SESSION) else {
        return Ok(None);
    };
    let bytes = value.as_bytes();
    let fits = !bytes.is_empty() && bytes.len() <= SESSION_BYTES_MAX;
    match value.to_str() {
        Ok(text) if fits && bytes.iter().all(u8::is_ascii_graphic) => Ok(Some(text.to_owned())),
        Ok(_) | Err(_) => Err(LinkFault::SessionId {
            max: SESSION_BYTES_MAX,
        }),
    }
}

// === impl Post ===

impl Post<'_> {
    fn headers(&self, headers: HeaderMap) -> Result<HeaderMap, LinkFault> {
        let mut headers = of_session(headers, self.session, self.version)?;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        if let Some(method) = self.method {
            insert(&mut headers, field::METHOD, method)?;
        }
        if let Some(name) = self.name {
            insert(&mut headers, field::NAME, &field::encode(name))?;
        }
        if let Some(Ok(parent)) = self.traceparent.map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static("traceparent"), parent);
        }
        for (name, value) in self.params {
            let fault = || LinkFault::Request(format!("`{name}` is not the name of a header of an argument"));
            let name =
                HeaderName::from_bytes(format!("{}{name}", field::PARAM).as_bytes()).map_err(|_| fault())?;
            let value = HeaderValue::from_str(&field::encode(value)).map_err(|_| fault())?;
            if headers.insert(name, value).is_some() {
                return Err(fault());
            }
        }
        Ok(headers)
    }
}

// === impl Media ===

impl Media {
    fn of(headers: &HeaderMap) -> Self {
        // Nothing is decompressed here, and nothing compressed was asked for.
        let is_plain = headers
            .get(header::CONTENT_ENCODING)
            .is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
        let Some(value) = headers.get(header::CONTENT_TYPE) else {
            return Self::Nothing;
        };
        let value = value.as_bytes();
        let end = value.iter().position(|byte| *byte == b';').unwrap_or(value.len());
        let (name, _) = value.split_at(end);
        let name = name.trim_ascii();
        match is_plain {
            true if name.eq_ignore_ascii_case(JSON.as_bytes()) => Self::Json,
            true if name.eq_ignore_ascii_case(EVENTS.as_bytes()) => Self::Events,
            true | false => Self::Other,
        }
    }
}
