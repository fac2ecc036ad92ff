//! The built proxy between a client and an upstream that reports what it saw.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bare-proxy"));
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

async fn proxy(upstream: SocketAddr) -> (Child, String) {
    let mut child = command()
        .args(["--upstream", &upstream.to_string()])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.next_line().await.unwrap().unwrap();
    let url = ready.strip_prefix("listening on ").unwrap().to_owned();
    (child, url)
}

/// An upstream that answers with what it saw, as `METHOD path?query|x-probe|body`.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(report)));
        }
    });
    address
}

async fn report(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let probe = parts.headers["x-probe"].to_str().unwrap().to_owned();
    let seen = format!(
        "{} {}|{probe}|{}",
        parts.method,
        parts.uri,
        String::from_utf8_lossy(&body)
    );
    Ok(Response::builder()
        .status(418)
        .header("x-answer", "kept")
        .body(Full::new(Bytes::from(seen)))
        .unwrap())
}

async fn send(request: Request<Full<Bytes>>) -> Response<Bytes> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (parts, body) = client.request(request).await.unwrap().into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn method_path_headers_and_body_go_on_as_they_came_and_so_does_the_answer() {
    let (_child, url) = proxy(upstream().await).await;
    for (method, path, body) in [
        ("POST", "/echo?a=%2F&b", "a body"),
        ("GET", "/", ""),
        ("DELETE", "/%2e%2e/x", ""),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(format!("{url}{path}"))
            .header("x-probe", "seen")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let response = send(request).await;
        assert_eq!(response.status(), 418);
        assert_eq!(response.headers()["x-answer"], "kept");
        let expected = format!("{method} {path}|seen|{body}");
        assert_eq!(response.body().as_ref(), expected.as_bytes());
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_a_bad_gateway() {
    // A port that was free a moment ago and that nobody was told of.
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let (_child, url) = proxy(free).await;
    let response = send(Request::get(url).body(Full::default()).unwrap()).await;
    assert_eq!(response.status(), 502);
}

#[tokio::test]
async fn both_sides_stay_on_this_machine() {
    for arguments in [
        &["--upstream", "192.0.2.1:80"][..],
        &["--upstream", "127.0.0.1:80", "--listen", "0.0.0.0:0"],
    ] {
        let output = command().args(arguments).output().await.unwrap();
        assert!(!output.status.success());
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .contains("is not loopback")
        );
    }
}
