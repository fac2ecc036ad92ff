//! The HTTP face: one endpoint for every revision, the metadata beside it, and the checks that come before all else.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{any, get};
use gateway::{Cursor, Gateway, Mount, NotResumed, Session};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use identity::Principal;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::header::{Field, Fields};

use crate::door::Door;
use crate::origin::{Neighbours, Stray};
use crate::{calls, events, media, post, refuse};

/// What a [`Face`] is made of.
#[derive(Debug)]
pub struct FaceOptions {
    /// The gateway behind it.
    pub gateway: Arc<Gateway>,
    /// How callers are known.
    pub door: Door,
    /// Which hosts it answers for.
    pub neighbours: Neighbours,
    /// The path of the endpoint, as `/mcp`.
    pub path: String,
    /// Endpoints that show a part, by what stands behind `path`: `/far`, `/view/support`.
    pub mounts: Vec<(String, Mount)>,
}

/// The HTTP face of a gateway, as one of its endpoints shows it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Face(pub(crate) Arc<Inner>, pub(crate) Mount);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) tasks: TaskTracker,
    /// Comes to pass when calls that stand alone may run no longer.
    pub(crate) closing: CancellationToken,
    door: Door,
    neighbours: Neighbours,
    path: String,
    mounts: Vec<(String, Mount)>,
}

/// Header fields, as the wire asks for them.
pub(crate) struct HttpFields<'a>(pub(crate) &'a HeaderMap);

impl Fields for HttpFields<'_> {
    fn field(&self, name: &str) -> Field<'_> {
        let mut values = self.0.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Field::Absent,
            (Some(value), None) => Field::One(value.as_bytes()),
            (Some(_), Some(_)) => Field::Many,
        }
    }
}

impl Face {
    /// A face.
    #[must_use]
    pub fn new(options: FaceOptions) -> Self {
        let FaceOptions {
            gateway,
            door,
            neighbours,
            path,
            mounts,
        } = options;
        let inner = Inner {
            gateway,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            door,
            neighbours,
            path,
            mounts,
        };
        Self(Arc::new(inner), Mount::All)
    }

    /// The gateway behind it.
    #[must_use]
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.0.gateway
    }

    /// The routes.
    pub(crate) fn router(&self) -> Router {
        let metadata = "/.well-known/oauth-protected-resource";
        let whole = (self.0.path.clone(), Mount::All);
        let parts = self.0.mounts.iter();
        let parts = parts.map(|(behind, mount)| (format!("{}{behind}", self.0.path), mount.clone()));
        let mut endpoints = Router::new();
        for (path, mount) in std::iter::once(whole).chain(parts) {
            let face = Self(Arc::clone(&self.0), mount);
            let one = Router::new()
                .route(&path, any(endpoint))
                // RFC 9728 section 3.1: the path goes behind the well-known part; the bare one is probed second. All
                // endpoints are one resource: what one shows is no right.
                .route(
                    &format!("{metadata}{path}"),
                    get(resource_metadata).options(resource_metadata),
                )
                .with_state(face);
            endpoints = endpoints.merge(one);
        }
        endpoints
            .route(metadata, get(resource_metadata).options(resource_metadata))
            .route("/healthz", get(async || "ok\n"))
            .with_state(self.clone())
    }
}

/// Where tokens come from (RFC 9728). It needs no identity, but pages of a foreign origin do not get it (HL-18, SEC-12): on
/// a person's own machine it would tell any page that a gate runs here, and whose.
async fn resource_metadata(State(face): State<Face>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(stray) = face.0.neighbours.check(&parts.headers, &parts.uri) {
        return turned_away(stray);
    }
    let mut response = if parts.method == Method::OPTIONS {
        // Clients in a browser send their revision along, and so have to ask first.
        preflight("GET, OPTIONS", &parts.headers)
    } else {
        let mut response = refuse::json(StatusCode::OK, face.0.door.metadata().into());
        response.headers_mut().insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=300"),
        );
        response
    };
    Neighbours::cors(&parts.headers, response.headers_mut());
    response
}

/// Everything on the endpoint, in the order of C1: `Host` and `Origin`, who it is, the verb.
async fn endpoint(State(face): State<Face>, request: Request<Body>) -> Response {
    let received = tokio::time::Instant::now();
    let (parts, body) = request.into_parts();
    if let Err(stray) = face.0.neighbours.check(&parts.headers, &parts.uri) {
        return turned_away(stray);
    }
    let mut response = if parts.method == Method::OPTIONS {
        preflight("GET, POST, DELETE, OPTIONS", &parts.headers)
    } else {
        match identify(&face, &parts).await {
            Err(response) => response,
            Ok(principal) => match parts.method {
                Method::POST => post::post(&face, Arc::new(principal), &parts, body, received).await,
                Method::GET => listen(&face, &principal, &parts),
                Method::DELETE => delete(&face, &principal, &parts),
                _ => not_allowed("GET, POST, DELETE, OPTIONS"),
            },
        }
    };
    Neighbours::cors(&parts.headers, response.headers_mut());
    response
}

async fn identify(face: &Face, parts: &Parts) -> Result<Principal, Response> {
    let identified = match HttpFields(&parts.headers).field("authorization") {
        Field::Absent => face.0.door.identify(None).await,
        Field::One(value) => face.0.door.identify(Some(value)).await,
        Field::Many => Err(identity::Unauthenticated::Malformed {
            what: "one `Authorization` header",
        }),
    };
    match identified {
        Ok(principal) => Ok(principal),
        Err(cause) => {
            face.0.gateway.turn_away(&cause.for_operator(), "http").await;
            Err(refuse::unauthenticated(&cause, &face.0.door.challenge(&cause)))
        }
    }
}

/// A session's own stream, or the rest of one that broke off (HL-08, HL-11).
fn listen(face: &Face, principal: &Principal, parts: &Parts) -> Response {
    let session = match session(face, principal, parts) {
        Ok(session) => session,
        Err(response) => return response,
    };
    if !media::accepts(&parts.headers, "text/event-stream") {
        return refuse::plain(
            StatusCode::NOT_ACCEPTABLE,
            "a GET gives an event stream; accept `text/event-stream`",
        );
    }
    let every = face.0.gateway.limits().keep_alive_interval;
    let reading = match HttpFields(&parts.headers).field(wire::header::LAST_EVENT) {
        Field::Absent => session.listen().ok_or(NotResumed::Full).inspect(|stream| {
            if session.revision().primes_streams() {
                session.prime(stream.id(), calls::RETRY_MS);
            }
        }),
        Field::One(value) => std::str::from_utf8(value)
            .ok()
            .and_then(Cursor::parse)
            .ok_or(NotResumed::Gone)
            .and_then(|cursor| session.resume(cursor)),
        Field::Many => return refuse::plain(StatusCode::BAD_REQUEST, "`Last-Event-ID` stands twice"),
    };
    match reading {
        Ok(stream) => events::of_session(stream, session.ended().clone(), every),
        Err(NotResumed::Full) => refuse::plain(
            StatusCode::TOO_MANY_REQUESTS,
            "this session has too many streams open",
        ),
        Err(NotResumed::Gone) => refuse::plain(
            StatusCode::BAD_REQUEST,
            "the stream cannot be resumed from this `Last-Event-ID`; its events are gone",
        ),
    }
}

/// Ends a session (HL-15).
fn delete(face: &Face, principal: &Principal, parts: &Parts) -> Response {
    match session(face, principal, parts) {
        Err(response) => response,
        Ok(session) => {
            face.0
                .gateway
                .sessions()
                .close(session.id().as_str(), principal, &face.1);
            refuse::empty(StatusCode::NO_CONTENT)
        }
    }
}

/// The session that a GET or DELETE names. In the stateless era these verbs do not exist (HM-01).
#[expect(
    clippy::result_large_err,
    reason = "the error is the whole answer, and goes out at once"
)]
fn session(face: &Face, principal: &Principal, parts: &Parts) -> Result<Arc<Session>, Response> {
    let fields = HttpFields(&parts.headers);
    let stateless = wire::http::is_stateless(fields.field(wire::header::PROTOCOL_VERSION));
    match fields.field(wire::header::SESSION) {
        _ if stateless => Err(not_allowed("POST, OPTIONS")),
        Field::Absent => Err(not_allowed("POST, OPTIONS")),
        Field::Many => Err(refuse::plain(
            StatusCode::BAD_REQUEST,
            "`Mcp-Session-Id` stands twice",
        )),
        Field::One(id) => find(face, principal, id).ok_or_else(lost),
    }
}

/// The caller's session with this id.
pub(crate) fn find(face: &Face, principal: &Principal, id: &[u8]) -> Option<Arc<Session>> {
    let id = std::str::from_utf8(id).ok()?;
    face.0.gateway.sessions().find(id.trim(), principal, &face.1)
}

/// A session that is unknown, ended, or somebody else's: the three read the same (HL-14).
pub(crate) fn lost() -> Response {
    refuse::plain(
        StatusCode::NOT_FOUND,
        "there is no such session; start again with `initialize`",
    )
}

fn not_allowed(allowed: &'static str) -> Response {
    let mut response = refuse::plain(StatusCode::METHOD_NOT_ALLOWED, "this verb is not served here");
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

fn preflight(allowed: &'static str, request: &HeaderMap) -> Response {
    let mut response = refuse::empty(StatusCode::NO_CONTENT);
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    Neighbours::preflight(request, response.headers_mut());
    response
}

fn turned_away(stray: Stray) -> Response {
    match stray {
        Stray::HostMissing => refuse::plain(
            StatusCode::BAD_REQUEST,
            "the header `Host` is missing, or stands twice",
        ),
        Stray::HostForeign => refuse::plain(
            StatusCode::FORBIDDEN,
            "this server does not answer for this `Host`; the operator can add it to `allowed_hosts`",
        ),
        Stray::OriginForeign => refuse::plain(
            StatusCode::FORBIDDEN,
            "pages of this `Origin` may not call; the operator can add it to `allowed_origins`",
        ),
    }
}
