//! One HTTP service behind the gate: a fixed destination, a credential, and requests that were permitted and recorded.

use std::time::Duration;

use audit::Recorded;
use bytes::Bytes;
use catalog::{Access, Operation, Tool};
use config::{Redirects, UpstreamSettings};
use egress::{Client, ClientOptions, Destination, DestinationFault, EgressFault, Network, Part};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::Full;
use model::{Call, CallId, Limits, Object, UpstreamName};
use openapi::BuildFault;
use policy::Permitted;
use tokio::time::Instant;

use crate::answer::{Answer, retry_after};
use crate::credential::{CredentialFault, Credentials, Tokens};
use crate::fault::SendFault;
use crate::link;
use crate::outgoing::{Outgoing, Retry, Trip};
use crate::preview::Preview;
use crate::token::TokenFault;

/// Redirects that are followed, where an upstream may redirect at all.
const HOPS_MAX: u8 = 3;

/// An HTTP service.
#[derive(Debug)]
pub struct Service {
    name: UpstreamName,
    client: Client,
    destination: Destination,
    credentials: Credentials,
    headers: HeaderMap,
    redirects: Redirects,
    body_bytes_max: usize,
}

/// Why a service cannot be set up. `key` is the configuration's, as `Settings::place` takes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceFault {
    /// The destination is none.
    #[error("`{key}`: {fault}")]
    Destination {
        /// The key.
        key: String,
        /// What is wrong.
        fault: DestinationFault,
    },
    /// The credential cannot be used.
    #[error("`{key}`: {fault}")]
    Credential {
        /// The key.
        key: String,
        /// What is wrong.
        fault: CredentialFault,
    },
    /// A static header cannot be sent.
    #[error("`{key}`: `{name}` cannot be sent as a header")]
    Header {
        /// The key.
        key: String,
        /// Its name.
        name: String,
    },
    /// The client cannot be made: roots that cannot be read.
    #[error("`{key}`: {fault}")]
    Client {
        /// The key.
        key: String,
        /// What is wrong.
        fault: EgressFault,
    },
}

/// What follows an answer.
#[derive(Debug)]
pub enum Followed {
    /// Another request of the same call.
    By(Box<Outgoing>),
    /// Nothing.
    End,
}

/// Requests that one call may become, whatever its tool says.
const PAGES_MAX: usize = 100;

impl ServiceFault {
    /// The key of the configuration that is at fault.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Destination { key, .. }
            | Self::Credential { key, .. }
            | Self::Header { key, .. }
            | Self::Client { key, .. } => key,
        }
    }
}

impl Service {
    /// Sets a service up; connects to nothing.
    ///
    /// # Errors
    /// [`ServiceFault`].
    pub fn new(settings: &UpstreamSettings, limits: &Limits) -> Result<Self, ServiceFault> {
        let key = |part: &str| format!("upstream.{}.{part}", settings.name);
        let destination =
            Destination::parse(&settings.destination).map_err(|fault| ServiceFault::Destination {
                key: key("destination"),
                fault,
            })?;
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
        let network = Network::allowing(settings.network.allow.clone());
        let mut options = ClientOptions::new(network, limits);
        options.ca_pem = settings.tls.ca.as_ref().map(|file| file.bytes.clone());
        let client = Client::new(options.clone()).map_err(|fault| ServiceFault::Client {
            key: key("tls.ca"),
            fault,
        })?;
        let credentials =
            Credentials::new(&settings.credentials, &options, limits).map_err(|(scheme, fault)| {
                ServiceFault::Credential {
                    key: match scheme {
                        None => key("credential"),
                        Some(scheme) => key(&format!("credentials.{}", config::quoted(&scheme))),
                    },
                    fault,
                }
            })?;
        Ok(Self {
            name: settings.name.clone(),
            client,
            destination,
            credentials,
            headers,
            redirects: settings.redirects,
            body_bytes_max: limits.upstream_body_bytes_max,
        })
    }

    /// The name of the upstream.
    #[must_use]
    pub const fn name(&self) -> &UpstreamName {
        &self.name
    }

    /// How many requests of this service may have left since it was set up.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.client.requests() + self.credentials.requests()
    }

    /// Whether bytes repeat a credential of this service.
    #[must_use]
    pub fn reveals(&self, bytes: &[u8]) -> bool {
        self.credentials.are_in(bytes)
    }

    /// Gets the tokens that requests with this access need, as a call would: for whoever asks whether that can be done.
    /// Gives how many there are. Nothing is sent to the service itself.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub async fn sign_in(&self, access: &Access, deadline: Instant) -> Result<usize, TokenFault> {
        let tokens = self.credentials.tokens(access, deadline).await?;
        Ok(tokens.count())
    }

    /// Builds the request of a call, without credential.
    ///
    /// # Errors
    /// [`BuildFault`] where the arguments cannot be sent safely; nothing is sent.
    pub(crate) fn prepare(tool: &Tool, operation: &Operation, call: &Call) -> Result<Outgoing, BuildFault> {
        let Some(pages) = tool.bounds().pages.as_ref() else {
            return Self::outgoing(
                tool,
                operation,
                call.id,
                (call.arguments.object(), &call.injected),
            );
        };
        // How many pages are read is nothing that the service knows of.
        let mut arguments = call.arguments.object().clone();
        arguments.shift_remove(&pages.asked);
        Self::outgoing(tool, operation, call.id, (&arguments, &call.injected))
    }

    /// Builds the request for another page of a call: `arguments` are those of the call with another page.
    ///
    /// # Errors
    /// [`BuildFault`], as for the first page.
    pub fn prepare_page(
        &self,
        (tool, operation): (&Tool, &Operation),
        call: CallId,
        arguments: &Object,
        injected: &Object,
    ) -> Result<Outgoing, BuildFault> {
        Self::outgoing(tool, operation, call, (arguments, injected))
    }

    fn outgoing(
        tool: &Tool,
        operation: &Operation,
        call: CallId,
        (arguments, injected): (&Object, &Object),
    ) -> Result<Outgoing, BuildFault> {
        let prepared = operation.plan().build(arguments, injected)?;
        let repeatable = !tool.class().changes_state() && matches!(prepared.method, "GET" | "HEAD");
        let retry = tool.bounds().retry.as_ref().filter(|_| repeatable);
        let retry = retry.map(|retry| Retry {
            attempts: retry.attempts,
            on: retry.on.clone(),
        });
        Ok(Outgoing {
            call,
            prepared,
            access: operation.access().clone(),
            repeatable,
            retry,
            timeout: tool.bounds().timeout,
        })
    }

    /// The query of the link to the next page, where the answer to a request has one. `Err`: it leads elsewhere.
    ///
    /// # Errors
    /// The link leads to another service or another operation; it is not for us to follow.
    pub fn next_query(
        &self,
        answer: &Answer,
        request: &Outgoing,
    ) -> Result<Option<Vec<(String, String)>>, &'static str> {
        let Some(target) = answer.link.as_deref().and_then(link::next) else {
            return Ok(None);
        };
        let own = self
            .destination
            .uri(&request.prepared.path_and_query)
            .map_err(|_| "the path leaves the destination")?;
        match link::query_of(&target, &own.to_string()) {
            Some(query) => Ok(Some(query)),
            None => Err("the link to the next page leads to another operation"),
        }
    }

    /// What would be sent, for people.
    #[must_use]
    pub fn preview(&self, outgoing: &Outgoing) -> Preview {
        let prepared = &outgoing.prepared;
        let fixed = self.headers.iter().map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        });
        Preview {
            method: prepared.method.to_owned(),
            url: format!(
                "{}{}{}",
                self.destination.origin(),
                self.destination.base_path(),
                prepared.path_and_query
            ),
            headers: prepared.headers.iter().cloned().chain(fixed).collect(),
            credential: self.credentials.places(&outgoing.access),
            body: prepared
                .body
                .as_ref()
                .map(|body| String::from_utf8_lossy(&body.bytes).into_owned()),
        }
    }

    /// Sends the request of a call that was permitted and recorded.
    ///
    /// A request that changes nothing is repeated as its tool allows, within the deadline of the trip; any other is
    /// sent once. Dropping the future gives the call up: what left has left, and [`Trip::requests`] says how much.
    ///
    /// # Errors
    /// [`SendFault`]; [`SendFault::sent`] says whether the far side may have acted.
    pub async fn send(
        &self,
        call: Recorded<Permitted<Call>>,
        outgoing: Outgoing,
        trip: &Trip,
    ) -> Result<Answer, SendFault> {
        let (call, outgoing) = self.own(call, outgoing)?;
        self.attempts(&call, &outgoing, trip, trip.deadline).await
    }

    /// Sends the request of a call, and then one request after the other for as long as `follow` gives one: the pages of
    /// a list. All of them are requests of the one call that was permitted and recorded, and all end with its deadline.
    ///
    /// `follow` sees each answer with its request. The bodies of all answers together are at most as long as one may be.
    ///
    /// # Errors
    /// [`SendFault`] of whichever request failed.
    pub async fn send_pages(
        &self,
        call: Recorded<Permitted<Call>>,
        outgoing: Outgoing,
        trip: &Trip,
        mut follow: impl FnMut(&Answer, &Outgoing) -> Followed,
    ) -> Result<Vec<Answer>, SendFault> {
        let (call, outgoing) = self.own(call, outgoing)?;
        let mut answers: Vec<Answer> = Vec::new();
        let mut bytes = 0_usize;
        let mut next = Some(outgoing);
        while let Some(outgoing) = next.take() {
            let answer = self.attempts(&call, &outgoing, trip, trip.deadline).await?;
            bytes = bytes.saturating_add(answer.body.len());
            if bytes > self.body_bytes_max {
                return Err(SendFault::Egress(EgressFault::TooLarge {
                    part: Part::Body,
                    max: self.body_bytes_max,
                }));
            }
            let is_last = answers.len() + 1 >= PAGES_MAX;
            next = match follow(&answer, &outgoing) {
                Followed::By(next) if !is_last => Some(*next),
                Followed::By(_) | Followed::End => None,
            };
            // A page of another call would be a fault of the calling room, and is not sent.
            next = next.filter(|next| next.call == call.id);
            answers.push(answer);
        }
        Ok(answers)
    }

    /// A call and the request that was built for it.
    pub(crate) fn own(
        &self,
        call: Recorded<Permitted<Call>>,
        outgoing: Outgoing,
    ) -> Result<(Call, Outgoing), SendFault> {
        let (call, _verdict) = call.into_inner().into_parts();
        if outgoing.call != call.id || call.upstream != self.name {
            return Err(SendFault::Request(format!(
                "the request of another call came with call {}",
                call.id
            )));
        }
        Ok((call, outgoing))
    }

    /// Sends a request as often as it may be sent, until `deadline`.
    pub(crate) async fn attempts(
        &self,
        call: &Call,
        outgoing: &Outgoing,
        trip: &Trip,
        deadline: Instant,
    ) -> Result<Answer, SendFault> {
        let outcome = self.repeat(call, outgoing, trip, deadline).await;
        outcome.map_err(|fault| match trip.requests() {
            requests if requests > 0 && !fault.sent() => SendFault::Later {
                requests,
                fault: Box::new(fault),
            },
            _ => fault,
        })
    }

    async fn repeat(
        &self,
        call: &Call,
        outgoing: &Outgoing,
        trip: &Trip,
        deadline: Instant,
    ) -> Result<Answer, SendFault> {
        let mut attempt = 1;
        let mut refused: Option<Answer> = None;
        loop {
            let tokens = match self.credentials.tokens(&outgoing.access, deadline).await {
                Ok(tokens) => tokens,
                // Without a fresh token, the answer to the old one is all there is.
                Err(fault) => return refused.ok_or(SendFault::Token(fault)),
            };
            let request = self.request(call, outgoing, &tokens, trip)?;
            let outcome = self.attempt(request, &outgoing.access, trip, deadline).await;
            if let Ok((answer, _)) = &outcome
                && answer.status == 401
                && tokens.reject()
                && outgoing.repeatable
                && refused.is_none()
            {
                // A token can end before its time. A second refusal is about something else.
                refused = Some(answer.clone());
                continue;
            }
            let Some(retry) = outgoing.retry.as_ref().filter(|retry| attempt < retry.attempts) else {
                return outcome.map(|(answer, _)| answer);
            };
            let pause = match &outcome {
                Ok((answer, after)) if retry.on.contains(&answer.status) => {
                    after.unwrap_or(Retry::pause(attempt))
                }
                Err(SendFault::Egress(fault)) if !fault.sent() && is_passing(fault) => Retry::pause(attempt),
                Ok(_) | Err(_) => return outcome.map(|(answer, _)| answer),
            };
            if Instant::now() + pause >= deadline {
                return outcome.map(|(answer, _)| answer);
            }
            tracing::debug!(call = %call.id, attempt, "the upstream is asked again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// The request with destination and credential.
    fn request(
        &self,
        call: &Call,
        outgoing: &Outgoing,
        tokens: &Tokens,
        trip: &Trip,
    ) -> Result<Request<Full<Bytes>>, SendFault> {
        let fault = |text: String| SendFault::Request(text);
        let prepared = &outgoing.prepared;
        let mut headers = self.headers.clone();
        for (name, value) in &prepared.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| fault(error.to_string()))?;
            let value = HeaderValue::from_str(value).map_err(|error| fault(error.to_string()))?;
            headers.insert(name, value);
        }
        let body = match &prepared.body {
            None => Bytes::new(),
            Some(body) => {
                let media =
                    HeaderValue::from_str(&body.content_type).map_err(|error| fault(error.to_string()))?;
                headers.insert(header::CONTENT_TYPE, media);
                body.bytes.clone()
            }
        };
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("tollhouse/", env!("CARGO_PKG_VERSION"))),
        );
        if let Ok(id) = HeaderValue::from_str(&call.id.to_string()) {
            headers.insert(HeaderName::from_static("x-request-id"), id);
        }
        if let Some(Ok(parent)) = trip.traceparent.as_deref().map(HeaderValue::from_str) {
            headers.insert(HeaderName::from_static("traceparent"), parent);
        }
        let mut target = prepared.path_and_query.clone();
        // Behind this line nothing is logged and nothing is shown.
        self.credentials
            .attach(&outgoing.access, tokens, &mut target, &mut headers)
            .map_err(|error| fault(error.to_string()))?;
        let uri = self
            .destination
            .uri(&target)
            .map_err(|_| fault("the path leaves the destination".to_owned()))?;
        let method =
            Method::from_bytes(prepared.method.as_bytes()).map_err(|error| fault(error.to_string()))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }

    async fn attempt(
        &self,
        request: Request<Full<Bytes>>,
        access: &Access,
        trip: &Trip,
        deadline: Instant,
    ) -> Result<(Answer, Option<Duration>), SendFault> {
        let client = self.credentials.client(access).unwrap_or(&self.client);
        trip.leaving();
        let follows = matches!(self.redirects, Redirects::SameOrigin)
            && matches!(*request.method(), Method::GET | Method::HEAD);
        let sent = if follows {
            client
                .send_following(request, HOPS_MAX, deadline, || trip.leaving())
                .await
        } else {
            client.send(request, deadline).await
        };
        let answer = sent.inspect_err(|fault| {
            if !fault.sent() {
                trip.stayed();
            }
        })?;
        let status = answer.status.as_u16();
        let media_type = answer
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|text| {
                text.split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase()
            });
        let after = retry_after(&answer.headers);
        let links: Vec<&str> = answer
            .headers
            .get_all(header::LINK)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let link = (!links.is_empty()).then(|| links.join(", "));
        let body = answer.read(self.body_bytes_max, deadline).await?;
        Ok((
            Answer {
                status,
                media_type,
                retry_after: after,
                link,
                body,
            },
            after,
        ))
    }
}

/// Whether a fault may be gone at the next try.
const fn is_passing(fault: &EgressFault) -> bool {
    match fault {
        EgressFault::Resolve { .. }
        | EgressFault::Connect { .. }
        | EgressFault::Broken { .. }
        | EgressFault::Timeout { .. } => true,
        EgressFault::Refused { .. }
        | EgressFault::Tls { .. }
        | EgressFault::TooLarge { .. }
        | EgressFault::Redirect { .. }
        | EgressFault::Request(_)
        | EgressFault::Setup(_) => false,
    }
}
