//! The way of a POST: read within limits, sorted by the wire, answered as JSON or as events.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use gateway::{Claim, Flow, Inquiries, Progress, Session, Wish};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::answer::Written;
use wire::header::{Field, Fields as _};
use wire::http::{Post, Sorted, agrees_on_arguments, sort};
use wire::{
    Ask, Failure, Id, Inbound, LogFilter, Notice, Opening, Profile, Revision, Subscription, answer, sse,
};

use crate::answer::{CUT_OFF, CallAsk, Caller, Reports, Work, begin, call, with_reports};
use crate::http::{Face, HttpFields, find, lost};
use crate::listening::{self, Heard};
use crate::questions::with_questions;
use crate::rounds::Round;
use crate::{events, refuse};

/// How long a client waits before it resumes a stream, in milliseconds (HL-06).
pub(crate) const RETRY_MS: u64 = 1_000;

/// What came with a request beside its body.
struct Around {
    received: Instant,
    traceparent: Option<String>,
    json: bool,
    events: bool,
}

pub(crate) async fn post(
    face: &Face,
    principal: Caller,
    parts: &Parts,
    body: Body,
    received: Instant,
) -> Response {
    if !is_json(&parts.headers) {
        return refuse::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a message has `Content-Type: application/json`",
        );
    }
    let around = Around {
        received,
        traceparent: traceparent(&parts.headers),
        json: accepts(&parts.headers, "application/json"),
        events: accepts(&parts.headers, "text/event-stream"),
    };
    if !around.json && !around.events {
        let text = "accept `application/json` and `text/event-stream`";
        return refuse::plain(StatusCode::NOT_ACCEPTABLE, text);
    }
    let body = match read(face, &parts.headers, body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let limits = face.0.gateway.limits();
    let fields = HttpFields(&parts.headers);
    match sort(&fields, &body, limits) {
        Err(reject) => {
            let (status, failure) = match reject.failure {
                // Only messages that stand alone are read so far here.
                failure @ Failure::Of { .. } => {
                    let failure = served(face, failure);
                    (failure.status(Revision::NEWEST_STATELESS), failure)
                }
                failure => (reject.status, failure),
            };
            // Nobody spoke a revision yet, so the form without an id is the newest one's.
            let error = answer::error(Revision::NEWEST_STATELESS, reject.id.as_ref(), &failure);
            whole(status, error, &around)
        }
        Ok(Sorted::Stateless { revision, inbound }) => {
            if let Err((id, failure)) = arguments_agree(face, &principal, &fields, &inbound) {
                return refuse::with_status(failure.status(revision), revision, Some(id), &failure);
            }
            // HM-01: a session id is not looked at here, and none is given.
            one(face, principal, None, revision, inbound, &around).await
        }
        Ok(Sorted::Opening { id, opening }) => match fields.field(wire::header::SESSION) {
            Field::Absent => open(face, &principal, &id, &opening, &around),
            Field::One(session) if find(face, &principal, session).is_none() => lost(),
            Field::One(_) | Field::Many => {
                let text = "this session is already open; leave `Mcp-Session-Id` out to open another";
                refuse::with_status(
                    400,
                    opening.revision,
                    Some(&id),
                    &Failure::InvalidRequest(text.to_owned()),
                )
            }
        },
        Ok(Sorted::InSession(pending)) => {
            let session = match fields.field(wire::header::SESSION) {
                Field::Absent => {
                    let text = "the header `Mcp-Session-Id` is missing; start with `initialize`";
                    let failure = Failure::InvalidRequest(text.to_owned());
                    return refuse::with_status(400, Revision::NEWEST_WITH_SESSIONS, pending.id(), &failure);
                }
                Field::Many => {
                    return refuse::plain(StatusCode::BAD_REQUEST, "`Mcp-Session-Id` stands twice");
                }
                Field::One(session) => match find(face, &principal, session) {
                    Some(session) => session,
                    None => return lost(),
                },
            };
            let revision = session.revision();
            match pending.bind(revision, limits) {
                Err(reject) => refuse::reject_in(revision, &reject),
                Ok(Post::One(inbound)) => {
                    one(face, principal, Some(session), revision, inbound, &around).await
                }
                Ok(Post::Batch(messages)) => batch(face, principal, &session, messages, &around).await,
            }
        }
    }
}

/// Opens a session and answers `initialize` (HL-12).
fn open(face: &Face, principal: &Caller, id: &Id, opening: &Opening, around: &Around) -> Response {
    let gateway = &face.0.gateway;
    match gateway.sessions().open(principal, &face.1, opening) {
        Err(full) => {
            tracing::warn!(caller = %principal.caller().subject, %full, "no session was opened");
            let failure =
                Failure::Internal("no more sessions can be opened now; close one, or try again later");
            refuse::with_status(503, opening.revision, Some(id), &failure)
        }
        Ok(session) => {
            let offers = gateway.offers(principal, &face.1);
            if offers.changes {
                listening::of_session(gateway, principal, &face.1, &session);
            }
            let said = answer::Said::Opened(offers);
            let body = gateway.server().result(session.revision(), id, &said);
            let mut response = whole(200, Some(body), around);
            if let Ok(value) = HeaderValue::from_str(session.id().as_str()) {
                response
                    .headers_mut()
                    .insert(HeaderName::from_static(wire::header::SESSION), value);
            }
            response
        }
    }
}

/// One message.
async fn one(
    face: &Face,
    principal: Caller,
    session: Option<Arc<Session>>,
    revision: Revision,
    inbound: Inbound,
    around: &Around,
) -> Response {
    match inbound {
        Inbound::Request(request) => match begin(&face.0.gateway, &principal, &face.1, revision, *request) {
            Work::Answered { status, body } => whole(status, body, around),
            Work::Listen(id, wanted) => listen(face, &principal, id, wanted, around),
            Work::Note(id, note) => match session {
                Some(session) => {
                    let body = note.take(&face.0.gateway, session.hearing(), revision, &id);
                    whole(200, Some(body), around)
                }
                // They exist in sessions alone.
                None => refuse::failure(
                    revision,
                    Some(&id),
                    &Failure::InvalidRequest("there is no session".to_owned()),
                ),
            },
            Work::Call(mut ask) => {
                // A reader of JSON alone gets JSON, whatever else it asks for: there is no place for reports in it
                // (HL-04).
                ask.progress = ask.progress.filter(|_| around.events);
                if !around.events {
                    ask.logs = LogFilter::Nothing;
                }
                match session {
                    Some(session) => call_in_session(face, principal, session, ask, around).await,
                    None => call_alone(face, principal, revision, ask, around).await,
                }
            }
        },
        Inbound::Notice(notice) => {
            noted(session.as_deref(), &notice);
            refuse::empty(StatusCode::ACCEPTED)
        }
        // HL-03: accepted, whether or not it answers something of its own session.
        Inbound::Response(response) => {
            if let Some(session) = session {
                session.posed().answer(*response);
            }
            refuse::empty(StatusCode::ACCEPTED)
        }
        Inbound::Refused { id, failure } => {
            let failure = served(face, failure);
            let error = answer::error(revision, id.as_ref(), &failure);
            whole(failure.status(revision), error, around)
        }
    }
}

/// The failure of a request at this endpoint.
fn served(face: &Face, failure: Failure) -> Failure {
    failure.where_served(|method| face.0.gateway.serves_method(&face.1, method))
}

/// HM-17: what a tool wants in headers too stands there. Only for whom the tool is there at all.
fn arguments_agree<'i>(
    face: &Face,
    principal: &Caller,
    fields: &HttpFields<'_>,
    inbound: &'i Inbound,
) -> Result<(), (&'i Id, Failure)> {
    let Inbound::Request(request) = inbound else {
        return Ok(());
    };
    let Ask::CallTool { name, arguments } = &request.ask else {
        return Ok(());
    };
    match face.0.gateway.schema_with_headers(principal, &face.1, name) {
        None => Ok(()),
        Some(schema) => {
            agrees_on_arguments(fields, &schema, arguments.object()).map_err(|failure| (&request.id, failure))
        }
    }
}

fn noted(session: Option<&Session>, notice: &Notice) {
    match notice {
        Notice::Cancelled(cancel) => {
            if let Some(session) = session {
                session.running().cancel(&cancel.id);
            }
        }
        Notice::Initialized | Notice::Other => {}
    }
}

/// An answer that is there as a whole.
fn whole(status: u16, body: Option<Bytes>, around: &Around) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    match body {
        None => refuse::empty(status),
        Some(body) if around.json || status != StatusCode::OK => refuse::json(status, body),
        // The client takes events only: one event, and the end.
        Some(body) => {
            let mut response = events::nothing();
            *response.body_mut() = Body::from(sse::event(None, &body));
            response
        }
    }
}

/// A subscription: a stream of its own, which closing the connection ends (SUB-08).
fn listen(face: &Face, principal: &Caller, id: Id, wanted: Subscription, around: &Around) -> Response {
    let gateway = &face.0.gateway;
    if !around.events {
        return refuse::plain(
            StatusCode::NOT_ACCEPTABLE,
            "a subscription is a stream of events; accept `text/event-stream`",
        );
    }
    let opened = match listening::subscribe(gateway, principal, &face.1, (&id, wanted)) {
        Ok(opened) => opened,
        Err(answer) => return whole(200, answer, around),
    };
    let cancel = CancellationToken::new();
    let every = gateway.limits().keep_alive_interval;
    let (out, response) = events::of_request(cancel.clone().drop_guard(), every);
    let heard = Heard {
        out,
        as_events: true,
        cancel,
        closing: face.0.closing.clone(),
    };
    face.0.tasks.spawn(listening::subscription(id, opened, heard));
    response
}

/// A call of the stateless era: it lives as long as its connection (HM-09).
async fn call_alone(
    face: &Face,
    principal: Caller,
    revision: Revision,
    ask: Box<CallAsk>,
    around: &Around,
) -> Response {
    let inquiries = face.0.gateway.inquiries(&face.1, ask.declared);
    if ask.retry.is_some() || !inquiries.profile().is_empty() {
        return call_that_asks(face, principal, revision, ask, around, inquiries).await;
    }
    let cancel = face.0.closing.child_token();
    let guard = cancel.clone().drop_guard();
    let CallAsk {
        id,
        progress,
        traceparent,
        asked,
        logs,
        ..
    } = *ask;
    let mut flow = around.flow(traceparent, cancel, None, inquiries);
    flow.progress = logging(logs);
    let gateway = Arc::clone(&face.0.gateway);
    if around.json && progress.is_none() && logs == LogFilter::Nothing {
        let request = id.clone();
        let work = async move { call(&gateway, &principal, revision, &id, asked, &flow).await };
        // In a task of its own, so that a connection that closes cancels the call in order instead of dropping it.
        let answered = face.0.tasks.spawn(work).await;
        drop(guard.disarm());
        return match answered {
            Ok(Some(written)) => whole(written.status, Some(written.body), around),
            Ok(None) => refuse::with_status(503, revision, Some(&request), &CUT_OFF),
            Err(error) => broken(revision, &error),
        };
    }
    let (sender, response) = events::of_request(guard, gateway.limits().keep_alive_interval);
    face.0.tasks.spawn(async move {
        let interval = gateway.limits().progress_interval;
        let work = call(&gateway, &principal, revision, &id, asked, &flow);
        let reports = Reports::Channel(&sender, true);
        let answered = with_reports(
            work,
            &flow.progress,
            revision,
            progress.as_ref(),
            interval,
            reports,
        )
        .await;
        if let Some(written) = answered.or_else(|| Written::error(revision, Some(&id), &CUT_OFF)) {
            let _ = sender.send(sse::event(None, &written.body)).await;
        }
    });
    response
}

/// A call of the stateless era that may ask its client something, or that was asked and goes on: it outlives its request
/// where it asks (C5). Else its connection is its life, too.
async fn call_that_asks(
    face: &Face,
    principal: Caller,
    revision: Revision,
    ask: Box<CallAsk>,
    around: &Around,
    inquiries: Arc<Inquiries>,
) -> Response {
    let CallAsk {
        id,
        progress,
        traceparent,
        asked,
        retry,
        logs,
        ..
    } = *ask;
    let gateway = Arc::clone(&face.0.gateway);
    let claim = Claim::of(&principal, &face.1, &asked.wanted);
    let tasks = face.0.tasks.clone();
    let round = Round {
        gateway: &gateway,
        tasks: &tasks,
        claim,
        revision,
        id: id.clone(),
    };
    let begun = match retry {
        Some(retry) => match round.resume(&retry) {
            Ok(begun) => {
                takes_up(&begun.0.progress, logs);
                begun
            }
            Err(failure) => return refuse::failure(revision, Some(&id), &failure),
        },
        None => {
            let cancel = face.0.closing.child_token();
            let mut flow = around.flow(traceparent, cancel.clone(), None, inquiries);
            flow.progress = logging(logs);
            round.begin(principal, asked, flow, &cancel)
        }
    };
    if around.json && progress.is_none() && logs == LogFilter::Nothing {
        return match round.answer(begun).await {
            Some(written) => whole(written.status, Some(written.body), around),
            None => refuse::with_status(503, revision, Some(&id), &CUT_OFF),
        };
    }
    let gone = CancellationToken::new();
    let every = gateway.limits().keep_alive_interval;
    let (sender, response) = events::of_request(gone.clone().drop_guard(), every);
    let own = face.0.tasks.clone();
    let claim = round.claim.clone();
    face.0.tasks.spawn(async move {
        let reporting = Arc::clone(&begun.0.progress);
        let interval = gateway.limits().progress_interval;
        let round = Round {
            gateway: &gateway,
            tasks: &own,
            claim,
            revision,
            id: id.clone(),
        };
        let work = round.answer(begun);
        let reports = Reports::Channel(&sender, true);
        let answered = with_reports(work, &reporting, revision, progress.as_ref(), interval, reports);
        let answered = tokio::select! {
            biased;
            answered = answered => answered,
            // HM-09: whoever closes the connection cancels the call.
            () = gone.cancelled() => return,
        };
        if let Some(written) = answered.or_else(|| Written::error(revision, Some(&id), &CUT_OFF)) {
            let _ = sender.send(sse::event(None, &written.body)).await;
        }
    });
    response
}

/// A call in a session: it outlives its connection, and its events can be had again (HL-05 to HL-07).
async fn call_in_session(
    face: &Face,
    principal: Caller,
    session: Arc<Session>,
    ask: Box<CallAsk>,
    around: &Around,
) -> Response {
    let revision = session.revision();
    let CallAsk {
        id,
        progress,
        traceparent,
        asked,
        ..
    } = *ask;
    let Some(running) = session.running().start(&id) else {
        let failure = Failure::InvalidRequest("a request with this id is still running".to_owned());
        return refuse::failure(revision, Some(&id), &failure);
    };
    // Who reads JSON alone has no place for requests of ours.
    let profile = if around.events {
        session.profile()
    } else {
        Profile::NONE
    };
    let inquiries = face.0.gateway.inquiries(&face.1, profile);
    let asks = !inquiries.profile().is_empty();
    let logs = around.events && face.0.gateway.may_log(&principal, &face.1, &asked.wanted);
    let mut flow = around.flow(traceparent, running.cancel().clone(), Some(&session), inquiries);
    if logs {
        flow.progress = Arc::new(Progress::with(Arc::clone(session.hearing().wish())));
    }
    let gateway = Arc::clone(&face.0.gateway);
    if around.json && progress.is_none() && !asks && !logs {
        let work = async move {
            let _running = running;
            call(&gateway, &principal, revision, &id, asked, &flow).await
        };
        return match face.0.tasks.spawn(work).await {
            Ok(Some(written)) => refuse::json(StatusCode::OK, written.body),
            // CAN-01: a cancelled request is not answered; the stream that would have held the answer ends.
            Ok(None) => events::nothing(),
            Err(error) => broken(revision, &error),
        };
    }
    let stream = session.answer_stream();
    if revision.primes_streams() {
        session.prime(stream, RETRY_MS);
    }
    let every = gateway.limits().keep_alive_interval;
    let reading = session.read(stream);
    let ended = session.ended().clone();
    face.0.tasks.spawn(async move {
        let interval = gateway.limits().progress_interval;
        let reports = Reports::Stream(&session, stream);
        let work = call(&gateway, &principal, revision, &id, asked, &flow);
        let work = with_questions(work, &flow.inquiries, revision, session.posed(), reports);
        let answered = with_reports(
            work,
            &flow.progress,
            revision,
            progress.as_ref(),
            interval,
            reports,
        )
        .await;
        // Its id is free when its answer can be read, and not a moment later.
        drop(running);
        if let Some(written) = answered {
            session.push(stream, &written.body);
        }
        session.end_stream(stream);
    });
    match reading {
        Some(reading) => events::of_session(reading, ended, every),
        None => refuse::plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the stream could not be opened",
        ),
    }
}

/// A batch: every request runs, and all answers come as one array (BASE-09).
async fn batch(
    face: &Face,
    principal: Caller,
    session: &Arc<Session>,
    messages: Vec<Inbound>,
    around: &Around,
) -> Response {
    let has_refused = messages
        .iter()
        .any(|message| matches!(message, Inbound::Refused { .. }));
    let work = messages
        .into_iter()
        .map(|message| element(face, Arc::clone(&principal), session, message, around));
    let answers: Vec<Bytes> = join_all(work).await.into_iter().flatten().collect();
    if !answers.is_empty() {
        return whole(200, Some(answer::batch(&answers)), around);
    }
    // What could not be read has no answer where an error needs an id; the status says that it was not accepted.
    refuse::empty(if has_refused {
        StatusCode::BAD_REQUEST
    } else {
        StatusCode::ACCEPTED
    })
}

/// The answer to one element of a batch, if it gets one.
async fn element(
    face: &Face,
    principal: Caller,
    session: &Arc<Session>,
    message: Inbound,
    around: &Around,
) -> Option<Bytes> {
    let revision = session.revision();
    match message {
        Inbound::Notice(notice) => {
            noted(Some(session), &notice);
            None
        }
        Inbound::Response(response) => {
            session.posed().answer(*response);
            None
        }
        Inbound::Refused { id, failure } => answer::error(revision, id.as_ref(), &served(face, failure)),
        Inbound::Request(request) => match begin(&face.0.gateway, &principal, &face.1, revision, *request) {
            Work::Answered { body, .. } => body,
            // Batches are of one revision, in which there are none.
            Work::Listen(..) => None,
            Work::Note(id, note) => Some(note.take(&face.0.gateway, session.hearing(), revision, &id)),
            Work::Call(ask) => {
                let CallAsk {
                    id,
                    asked,
                    traceparent,
                    ..
                } = *ask;
                let Some(running) = session.running().start(&id) else {
                    let failure =
                        Failure::InvalidRequest("a request with this id is still running".to_owned());
                    return answer::error(revision, Some(&id), &failure);
                };
                // A batch is answered as one body, in which there is no place for requests of ours.
                let inquiries = Arc::new(Inquiries::none());
                let flow = around.flow(traceparent, running.cancel().clone(), Some(session), inquiries);
                let gateway = Arc::clone(&face.0.gateway);
                let work = async move {
                    let _running = running;
                    call(&gateway, &principal, revision, &id, asked, &flow).await
                };
                match face.0.tasks.spawn(work).await {
                    Ok(answered) => answered.map(|written| written.body),
                    Err(error) => {
                        tracing::error!(%error, "a call's task did not end well");
                        None
                    }
                }
            }
        },
    }
}

fn broken(revision: Revision, error: &tokio::task::JoinError) -> Response {
    tracing::error!(%error, "a call's task did not end well");
    refuse::with_status(
        500,
        revision,
        None,
        &Failure::Internal("the call could not be completed"),
    )
}

impl Around {
    /// What goes with a call. The trace in its body, if there is one, is the call's own; the header's is the request's.
    fn flow(
        &self,
        own: Option<String>,
        cancel: CancellationToken,
        session: Option<&Session>,
        inquiries: Arc<Inquiries>,
    ) -> Flow {
        let traceparent = own.or_else(|| self.traceparent.clone());
        Flow {
            transport: "http",
            received: self.received,
            traceparent,
            cancel,
            progress: Arc::default(),
            session: session.map(|session| session.id().clone()),
            inquiries,
            hearing: session.map(|session| Arc::clone(session.hearing())),
        }
    }
}

/// The progress of a call of the stateless era that wants these messages for a log.
pub(crate) fn logging(logs: LogFilter) -> Arc<Progress> {
    match logs {
        LogFilter::Nothing => Arc::default(),
        LogFilter::From(_) | LogFilter::Everything => Arc::new(Progress::with(Arc::new(Wish::new(logs)))),
    }
}

/// A parked call goes on, for a request that wants these messages: those that came meanwhile were for nobody (C5).
pub(crate) fn takes_up(progress: &Progress, logs: LogFilter) {
    progress.relay().forget_logs();
    progress.relay().logs().set(logs);
}

// === reading ===

async fn read(face: &Face, headers: &HeaderMap, body: Body) -> Result<Bytes, Response> {
    let limits = face.0.gateway.limits();
    let too_large = || {
        refuse::plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the message is larger than `body_bytes_max`",
        )
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok())
        .and_then(|length| usize::try_from(length).ok());
    if announced.is_some_and(|length| length > limits.body_bytes_max) {
        return Err(too_large());
    }
    let reading = Limited::new(body, limits.body_bytes_max).collect();
    match tokio::time::timeout(limits.body_timeout, reading).await {
        Err(_) => Err(refuse::plain(
            StatusCode::REQUEST_TIMEOUT,
            "the message did not come in time",
        )),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a message broke off");
            Err(refuse::plain(StatusCode::BAD_REQUEST, "the message broke off"))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let media = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

/// Whether a client takes a media type. One that says nothing takes everything (RFC 9110 section 12.5.1).
pub(crate) fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        said = true;
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default();
            let refused = parts.any(|parameter| {
                parameter
                    .strip_prefix("q=")
                    .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
            });
            let family = media.split('/').next().unwrap_or_default();
            let fits = range.eq_ignore_ascii_case(media)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|range| range.eq_ignore_ascii_case(family));
            if fits && !refused {
                return true;
            }
        }
    }
    !said
}

/// The trace that a request belongs to, from its header; one in the body is for the wire.
fn traceparent(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all("traceparent").iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value
            .to_str()
            .ok()
            .filter(|text| wire::is_traceparent(text))
            .map(str::to_owned),
        (Some(_) | None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_accepts_is_read_as_http_says() {
        let accepts = |accept: &[&str], media: &str| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, HeaderValue::from_str(value).unwrap());
            }
            accepts(&headers, media)
        };
        for accept in [
            &["application/json, text/event-stream"][..],
            &["application/json", "text/event-stream"],
            &["*/*"],
            &["text/event-stream;q=0.5, application/*"],
            &[],
        ] {
            assert!(
                accepts(accept, "application/json") && accepts(accept, "text/event-stream")
                    || accept.len() == 1,
                "{accept:?}"
            );
        }
        assert!(accepts(&["application/*"], "application/json"));
        assert!(!accepts(&["application/*"], "text/event-stream"));
        assert!(!accepts(&["text/html"], "application/json"));
        assert!(!accepts(&["application/json;q=0"], "application/json"));
    }

    #[test]
    fn a_message_is_json_by_its_type_and_nothing_else() {
        let is_json = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            }
            is_json(&headers)
        };
        assert!(is_json(&["application/json"]) && is_json(&["Application/JSON; charset=utf-8"]));
        assert!(!is_json(&[]) && !is_json(&["text/plain"]) && !is_json(&["application/json", "text/plain"]));
        assert!(!is_json(&["application/x-www-form-urlencoded"]));
    }
}
