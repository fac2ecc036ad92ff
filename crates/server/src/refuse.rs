//! Answers that are not a JSON-RPC result: statuses, challenges, errors in the form that the reader's revision has.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use identity::Unauthenticated;
use wire::http::Reject;
use wire::{Failure, Id, Revision, answer};

/// Nothing of ours is for a shared cache (CACHE-04).
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A JSON body.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, NO_STORE);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A JSON-RPC error as a whole answer, in a revision.
pub(crate) fn failure(revision: Revision, id: Option<&Id>, failure: &Failure) -> Response {
    with_status(failure.status(revision), revision, id, failure)
}

/// A POST that was refused in a session.
pub(crate) fn reject_in(revision: Revision, reject: &Reject) -> Response {
    with_status(reject.status, revision, reject.id.as_ref(), &reject.failure)
}

pub(crate) fn with_status(status: u16, revision: Revision, id: Option<&Id>, failure: &Failure) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match answer::error(revision, id, failure) {
        Some(body) => json(status, body),
        None => empty(status),
    }
}

/// A plain reason with a status, for requests that never became messages.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response {
    let failure = Failure::InvalidRequest(text.to_owned());
    with_status(status.as_u16(), Revision::NEWEST_STATELESS, None, &failure)
}

/// The answer to somebody who is not known.
pub(crate) fn unauthenticated(cause: &Unauthenticated, challenge: &str) -> Response {
    let status = StatusCode::from_u16(cause.status()).unwrap_or(StatusCode::UNAUTHORIZED);
    let body = match cause.for_caller() {
        Some((error, description)) => serde_json::json!({ "error": error, "error_description": description }),
        None if status == StatusCode::UNAUTHORIZED => serde_json::json!({
            "error": "unauthorized",
            "error_description": "send `Authorization: Bearer` with an access token or an API key",
        }),
        None => serde_json::json!({
            "error": "temporarily_unavailable",
            "error_description": "credentials cannot be checked just now; try again later",
        }),
    };
    let mut response = json(status, Bytes::from(body.to_string()));
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        if let Ok(value) = HeaderValue::from_str(challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
    } else {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
