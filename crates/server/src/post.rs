//! The way of a POST: read within limits, sorted by the wire, answered as JSON or as events.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use gateway::{Inquiries, Session};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::header::{Field, Fields as _};
use wire::http::{Post, Sorted, agrees_on_arguments, sort};
use wire::{Ask, Failure, Id, Inbound, LogFilter, Notice, Opening, Revision, Subscription, answer};

use crate::answer::{CallAsk, Caller, Work, begin, call};
use crate::calls::{Around, call_alone, call_in_session, whole};
use crate::http::{Face, HttpFields, find, lost};
use crate::listening::{self, Heard};
use crate::media::{accepts, is_json, traceparent};
use crate::{events, refuse};

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
