//! Event streams as bodies: those of a session, which can be resumed, and those of a request that stands alone.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use gateway::{Next, Stream};
use http::{HeaderName, HeaderValue, header};
use tokio::sync::mpsc;
use tokio::time::Interval;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::sse;

/// The response that carries a stream (HM-10: no proxy is to collect it).
fn response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// An event stream that ends at once: the answer to a request that was cancelled.
pub(crate) fn nothing() -> Response {
    response(Body::empty())
}

fn keep_alive(every: Duration) -> Interval {
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

/// A stream of a session. Closing the connection ends the reading and nothing else (HL-07).
pub(crate) fn of_session(stream: Stream, ended: CancellationToken, every: Duration) -> Response {
    let state = (stream, ended, keep_alive(every));
    response(Body::from_stream(stream::unfold(
        state,
        async |(mut stream, ended, mut ticks)| {
            let bytes = tokio::select! {
                biased;
                next = stream.next() => match next {
                    Next::Event(bytes) => bytes,
                    Next::End => return None,
                },
                () = ended.cancelled() => return None,
                _ = ticks.tick() => sse::keep_alive(),
            };
            Some((Ok::<_, std::convert::Infallible>(bytes), (stream, ended, ticks)))
        },
    )))
}

/// How many events of a request wait for a slow reader before the work waits for him.
const WAITING_EVENTS: usize = 16;

/// The writing end of a stream that stands alone.
pub(crate) type Events = mpsc::Sender<Bytes>;

/// The stream of a request that stands alone. Closing the connection cancels the request (HM-09).
pub(crate) fn of_request(cancel_on_close: DropGuard, every: Duration) -> (Events, Response) {
    let (sender, receiver) = mpsc::channel::<Bytes>(WAITING_EVENTS);
    let state = (receiver, keep_alive(every), cancel_on_close);
    let body = Body::from_stream(stream::unfold(state, async |(mut receiver, mut ticks, guard)| {
        let bytes = tokio::select! {
            biased;
            event = receiver.recv() => event?,
            _ = ticks.tick() => sse::keep_alive(),
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (receiver, ticks, guard)))
    }));
    (sender, response(body))
}
