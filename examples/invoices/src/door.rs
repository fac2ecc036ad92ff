//! The way in: what is counted, what needs the credential, and the two test aids beside the documented routes.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::operation::{self, Operation};
use crate::problem::Problem;
use crate::service::Service;

/// The longest request body. Orders are small.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The documented routes behind counter and credential, and `/_test/*` beside them.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let documented = operation::routes()
        .fallback(unmatched)
        .method_not_allowed_fallback(unmatched)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&service), authenticate))
        // Added last, so it runs first: a request that is refused has still arrived.
        .layer(from_fn_with_state(Arc::clone(&service), count));
    let aids = Router::new()
        .route("/_test/count", get(counts))
        .route("/_test/reset", post(reset));
    documented.merge(aids).with_state(service)
}

async fn count(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let operation = request
        .extensions()
        .get::<MatchedPath>()
        .and_then(|path| Operation::find(request.method().as_str(), path.as_str()));
    service.counts().add(operation);
    next.run(request).await
}

async fn authenticate(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let mut headers = request.headers().get_all(header::AUTHORIZATION).iter();
    let (first, second) = (headers.next(), headers.next());
    let token = first
        .filter(|_| second.is_none())
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if token.is_some_and(|token| service.accepts(token)) {
        Ok(next.run(request).await)
    } else {
        Err(Problem::Unauthenticated)
    }
}

async fn unmatched() -> Problem {
    Problem::Unknown("no operation has this method and path".to_owned())
}

/// `{"total": 3, "operations": {"getInvoice": 2, …, "unmatched": 1}}`
async fn counts(State(service): State<Arc<Service>>) -> Json<Value> {
    let counts = service.counts();
    Json(json!({ "total": counts.total(), "operations": counts.table() }))
}

/// Sets every counter to zero and the data back to what it was at the start.
async fn reset(State(service): State<Arc<Service>>) -> Result<Json<Value>, Problem> {
    service.reset().await?;
    Ok(Json(json!({ "reset": true })))
}
