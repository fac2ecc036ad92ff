//! The HTTP port: hyper without a framework, TCP_NODELAY, one task for each connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::stream;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Either, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::api;
use crate::count::Kind;
use crate::echo::Echo;
use crate::mcp::{self, Headers, Reply};

/// The longest request body.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Open connections; one more waits.
const CONNECTIONS_MAX: usize = 4_096;

type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;

/// A port that is open and not yet served.
pub(crate) struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    pub(crate) async fn open(listen: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!("cannot listen on `{listen}`; choose another port, or 0 for a free one")
        })?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves for as long as it is polled. Connections outlive it until their runtime ends.
    pub(crate) async fn serve(self, echo: Arc<Echo>) -> anyhow::Result<()> {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let place = Arc::clone(&places).acquire_owned().await?;
            let Ok((stream, _)) = self.listener.accept().await else {
                // Out of descriptors, most likely; connections that end will free some.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let echo = Arc::clone(&echo);
            tokio::spawn(async move {
                connection(stream, echo).await;
                drop(place);
            });
        }
    }
}

async fn connection(stream: TcpStream, echo: Arc<Echo>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let echo = Arc::clone(&echo);
        async move { Ok::<_, Infallible>(answer(&echo, request).await) }
    });
    // A connection that breaks is the client's affair: it counts the call that it lost.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(echo: &Arc<Echo>, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if path == "/_count" {
        return json(200, echo.counts().table().to_string().into_bytes());
    }
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        echo.counts().add(Kind::Other);
        return json(413, br#"{"error":"the body is too long or broke off"}"#.to_vec());
    };
    let bytes = body.to_bytes();
    if path == "/mcp" {
        return mcp_face(echo, &parts.method, &parts.headers, &bytes).await;
    }
    let answer = api::answer(echo, parts.method.as_str(), path, parts.uri.query(), &bytes);
    wait(echo).await;
    match answer {
        Some(answer) => json(answer.status, answer.body),
        None => {
            echo.counts().add(Kind::Other);
            json(
                404,
                br#"{"error":"no operation has this method and path"}"#.to_vec(),
            )
        }
    }
}

async fn mcp_face(echo: &Arc<Echo>, method: &Method, headers: &HeaderMap, bytes: &[u8]) -> Response<Body> {
    if method != Method::POST {
        echo.counts().add(Kind::Other);
        let mut response = json(405, Vec::new());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let text = |name: &'static str| headers.get(name).and_then(|value| value.to_str().ok());
    let reply = mcp::answer(
        echo,
        bytes,
        Some(&Headers {
            revision: text("mcp-protocol-version"),
            method: text("mcp-method"),
            name: text("mcp-name"),
            session: text("mcp-session-id"),
        }),
    );
    if let Some(token) = &reply.progress {
        return events(echo, token.clone(), reply.body);
    }
    wait(echo).await;
    plain(reply)
}

fn plain(reply: Reply) -> Response<Body> {
    let mut response = json(reply.status, reply.body);
    if let Some(value) = reply.session.and_then(|id| HeaderValue::from_str(&id).ok()) {
        response
            .headers_mut()
            .insert(HeaderName::from_static("mcp-session-id"), value);
    }
    response
}

/// An event stream: the progress events one by one, the wait, then the result.
fn events(echo: &Arc<Echo>, token: String, result: Vec<u8>) -> Response<Body> {
    let total = echo.shape().events;
    let delay = echo.shape().delay;
    let frames = stream::unfold((1_u32, Some(result)), move |(n, mut result)| {
        let progress = (n <= total).then(|| {
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
                 {{\"progressToken\":{token},\"progress\":{n},\"total\":{total}}}}}\n\n"
            )
        });
        async move {
            let event = match progress {
                Some(event) => event.into_bytes(),
                None => {
                    let result = result.take()?;
                    pause(delay).await;
                    [b"data: ".as_slice(), &result, b"\n\n"].concat()
                }
            };
            Some((Ok(Frame::data(Bytes::from(event))), (n.saturating_add(1), result)))
        }
    });
    let mut response = Response::new(Either::Right(StreamBody::new(frames).boxed_unsync()));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

async fn wait(echo: &Echo) {
    pause(echo.shape().delay).await;
}

async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

fn json(status: u16, body: Vec<u8>) -> Response<Body> {
    let typed = !body.is_empty();
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(body))));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if typed {
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}
