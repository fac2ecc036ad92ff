//! Every answer that is not a success, in the shape of the schema `Problem`.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why a request was not served.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The request does not fit the document.
    Invalid(String),
    /// No service credential, or a wrong one.
    Unauthenticated,
    /// No such thing.
    Unknown(String),
    /// The state of the thing does not allow it.
    Conflict(String),
    /// A limit of the service is reached.
    Full(String),
    /// The database failed. The text goes to standard error, not to the client.
    Database(sqlx::Error),
}

#[derive(Serialize)]
struct Shown<'a> {
    error: &'a str,
    message: &'a str,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, error, message) = match &self {
            Self::Invalid(text) => (StatusCode::BAD_REQUEST, "invalid", text.as_str()),
            Self::Unauthenticated => (
                StatusCode::UNAUTHORIZED,
                "unauthenticated",
                "the service credential is missing or wrong",
            ),
            Self::Unknown(text) => (StatusCode::NOT_FOUND, "unknown", text.as_str()),
            Self::Conflict(text) => (StatusCode::CONFLICT, "conflict", text.as_str()),
            Self::Full(text) => (StatusCode::TOO_MANY_REQUESTS, "full", text.as_str()),
            Self::Database(error) => {
                report(error);
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal",
                    "the database failed",
                )
            }
        };
        let mut response = (status, Json(Shown { error, message })).into_response();
        if matches!(self, Self::Unauthenticated) {
            let scheme = HeaderValue::from_static("Bearer realm=\"invoices\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

#[expect(
    clippy::print_stderr,
    reason = "standard error is this service's only log, and this its only line"
)]
fn report(error: &sqlx::Error) {
    eprintln!("database: {error}");
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::Invalid(rejection.body_text())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self::Invalid(rejection.body_text())
    }
}
