//! The server of these tests: right by default, wrong in one way on request. In-process, or as a child of a command
//! that starts processes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Set where the test binary is to be a server; the value is the way to be wrong.
pub(crate) const CHILD_VARIABLE: &str = "MCPLOAD_TEST_SERVER";
/// The bearer token that a child wants, where it is set.
pub(crate) const TOKEN_VARIABLE: &str = "MCPLOAD_TEST_TOKEN";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Right.
    Never,
    /// Every 20th answer has the nonce of another call.
    Nonce,
    /// The 20th answer has the nonce of another call, and no other.
    NonceOnce,
    /// Every 20th answer has another text.
    Text,
    /// Every 20th answer has another id.
    Id,
    /// Every 20th answer is a 500.
    Status,
    /// Every 20th request is never answered.
    Silent,
    /// The 20th request takes half a second, and those behind it on the connection wait.
    StallOnce,
    /// Every answer takes half a second.
    Slow,
    /// Every connection is closed after one answer.
    Closing,
}

impl FromStr for Wrong {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        [
            Self::Never,
            Self::Nonce,
            Self::NonceOnce,
            Self::Text,
            Self::Id,
            Self::Status,
            Self::Silent,
            Self::StallOnce,
            Self::Slow,
            Self::Closing,
        ]
        .into_iter()
        .find(|wrong| format!("{wrong:?}") == text)
        .ok_or(())
    }
}

struct Server {
    wrong: Wrong,
    token: Option<String>,
    requests: AtomicU64,
}

/// Serves on a free port in the background.
pub(crate) async fn serve(wrong: Wrong, token: Option<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Arc::new(Server {
        wrong,
        token,
        requests: AtomicU64::new(0),
    });
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let _ = stream.set_nodelay(true);
            let server = Arc::clone(&server);
            let service = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(server.answer(request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

/// Not a test: what the commands under test start as upstream and as gate.
#[test]
#[ignore = "a server for other tests, which start it as a child process"]
#[expect(clippy::print_stdout, reason = "the ready line that the commands wait for")]
fn serve_as_child() {
    let Ok(wrong) = std::env::var(CHILD_VARIABLE) else {
        return;
    };
    let token = std::env::var(TOKEN_VARIABLE).ok();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let address = serve(wrong.parse().unwrap(), token).await;
        println!("listening on http://{address}");
        std::future::pending::<()>().await;
    });
}

/// The command that starts this very binary as a server.
pub(crate) fn child_command() -> Vec<String> {
    let me = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    [
        &me,
        "server::serve_as_child",
        "--exact",
        "--ignored",
        "--nocapture",
    ]
    .map(str::to_owned)
    .to_vec()
}

impl Server {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let authorization = parts
            .headers
            .get("authorization")
            .map(|value| value.to_str().unwrap());
        if let Some(token) = &self.token
            && authorization != Some(&format!("Bearer {token}"))
        {
            return response(401, &Value::Null);
        }
        let n = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let hit = match self.wrong {
            Wrong::NonceOnce => n == 20,
            _ => n.is_multiple_of(20),
        };
        match self.wrong {
            Wrong::Silent if hit => std::future::pending().await,
            Wrong::StallOnce if n == 20 => tokio::time::sleep(Duration::from_millis(500)).await,
            Wrong::Slow => tokio::time::sleep(Duration::from_millis(500)).await,
            Wrong::Status if hit => return response(500, &Value::Null),
            _ => {}
        }
        let asked: Value = serde_json::from_slice(&body).unwrap();
        let mut response = if parts.uri.path() == "/echo" {
            response(200, &self.echoed(&asked, hit))
        } else {
            self.mcp(&asked, &parts.headers, hit)
        };
        if self.wrong == Wrong::Closing {
            response
                .headers_mut()
                .insert("connection", http::HeaderValue::from_static("close"));
        }
        response
    }

    fn mcp(&self, asked: &Value, headers: &http::HeaderMap, hit: bool) -> Response<Full<Bytes>> {
        let modern = headers
            .get("mcp-protocol-version")
            .is_some_and(|revision| revision == "2026-07-28");
        match asked["method"].as_str().unwrap() {
            "initialize" => {
                let mut opened = response(200, &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }));
                opened
                    .headers_mut()
                    .insert("mcp-session-id", http::HeaderValue::from_static("s1"));
                return opened;
            }
            "notifications/initialized" => return response(202, &Value::Null),
            _ => {}
        }
        if !modern && headers.get("mcp-session-id").is_none_or(|id| id != "s1") {
            return response(404, &Value::Null);
        }
        let echoed = self.echoed(&asked["params"]["arguments"], hit);
        let id = if self.wrong == Wrong::Id && hit {
            json!(0)
        } else {
            asked["id"].clone()
        };
        let answer = json!({
            "jsonrpc": "2.0",
            "id": id,
            "result": {
                "resultType": "complete",
                "content": [{ "type": "text", "text": echoed.to_string() }],
            },
        });
        response(200, &answer)
    }

    fn echoed(&self, asked: &Value, hit: bool) -> Value {
        let mut echoed = json!({ "text": asked["text"], "nonce": asked["nonce"] });
        match self.wrong {
            Wrong::Nonce | Wrong::NonceOnce if hit => echoed["nonce"] = json!("another"),
            Wrong::Text if hit => echoed["text"] = json!("another"),
            _ => {}
        }
        echoed
    }
}

fn response(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let bytes = if body.is_null() {
        Bytes::new()
    } else {
        Bytes::from(body.to_string())
    };
    let mut response = Response::new(Full::new(bytes));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
        .headers_mut()
        .insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}
