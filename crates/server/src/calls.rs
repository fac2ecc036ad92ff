//! Calls over HTTP, each answered as its era and its request want it: as JSON or as events, alone or in a session, and in rounds where
//! it asks its client something.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use gateway::{Claim, Flow, Inquiries, Progress, Session, Wish};
use http::StatusCode;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::answer::Written;
use wire::{Failure, LogFilter, Profile, Revision, sse};

use crate::answer::{CUT_OFF, CallAsk, Caller, Reports, call, with_reports};
use crate::http::Face;
use crate::questions::with_questions;
use crate::rounds::Round;
use crate::{events, refuse};

/// How long a client waits before it resumes a stream, in milliseconds (HL-06).
pub(crate) const RETRY_MS: u64 = 1_000;

/// What came with a request beside its body.
pub(crate) struct Around {
    pub(crate) received: Instant,
    pub(crate) traceparent: Option<String>,
    pub(crate) json: bool,
    pub(crate) events: bool,
}

/// A call of the stateless era: it lives as long as its connection (HM-09).
pub(crate) async fn call_alone(
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
pub(crate) async fn call_in_session(
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

fn broken(revision: Revision, error: &tokio::task::JoinError) -> Response {
    tracing::error!(%error, "a call's task did not end well");
    refuse::with_status(
        500,
        revision,
        None,
        &Failure::Internal("the call could not be completed"),
    )
}

/// An answer that is there as a whole.
pub(crate) fn whole(status: u16, body: Option<Bytes>, around: &Around) -> Response {
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

impl Around {
    /// What goes with a call. The trace in its body, if there is one, is the call's own; the header's is the request's.
    pub(crate) fn flow(
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
