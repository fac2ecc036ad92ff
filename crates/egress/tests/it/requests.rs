//! What a request may look like, and what arrives of it.

use bytes::Bytes;
use egress::{Destination, EgressFault};
use http::{Method, Request, Version};
use http_body_util::Full;

use crate::server::{Act, Server, answer, client, get, post, soon};

#[tokio::test]
async fn a_request_arrives_as_it_was_made() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let destination = Destination::parse(&format!("http://{}/v2", server.address)).unwrap();
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(destination.uri("/a%2Fb?x=1").unwrap())
        .header("x-one", "1")
        .body(Full::new(Bytes::from_static(b"body")))
        .unwrap();
    let answer = client().send(request, soon()).await.unwrap();
    assert_eq!(answer.read(2, soon()).await.unwrap(), "ok");
    let head = server.heads()[0].clone();
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "PATCH /v2/a%2Fb?x=1 HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", server.address);
    assert_eq!(lines, ["content-length: 4", host.as_str(), "x-one: 1"]);
}

#[tokio::test]
async fn a_request_that_is_no_plain_message_to_its_host_is_refused() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let client = client();
    for (name, value) in [
        ("host", "other.example"),
        ("content-length", "3"),
        ("content-length", "x"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("connection", "x-secret"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("proxy-authorization", "Basic x"),
        ("upgrade", "websocket"),
        ("expect", "100-continue"),
        ("te", "trailers"),
        ("trailer", "x"),
    ] {
        let mut request = post(&server.url("/"), "four");
        request
            .headers_mut()
            .insert(http::HeaderName::from_static(name), value.parse().unwrap());
        let fault = client.send(request, soon()).await.unwrap_err();
        assert!(
            matches!(&fault, EgressFault::Request(why) if why.contains(name)),
            "{name}: {fault:?}"
        );
        assert!(!fault.sent());
    }
    for method in [Method::CONNECT, Method::TRACE] {
        let mut request = get(&server.url("/"));
        *request.method_mut() = method.clone();
        let fault = client.send(request, soon()).await.unwrap_err();
        assert!(matches!(fault, EgressFault::Request(_)), "{method}: {fault:?}");
    }
    for uri in [
        "/relative",
        "example.com:80",
        "ftp://example.com/",
        "ws://127.0.0.1/",
        "*",
    ] {
        let fault = client.send(get(uri), soon()).await.unwrap_err();
        assert!(matches!(fault, EgressFault::Request(_)), "{uri}: {fault:?}");
    }
    assert_eq!((server.connections(), client.requests()), (0, 0));
}

#[tokio::test]
async fn headers_that_say_the_truth_about_host_and_length_are_let_through() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let mut request = post(&server.url("/"), "four");
    let host = server.address.to_string();
    request.headers_mut().insert("host", host.parse().unwrap());
    request
        .headers_mut()
        .insert("content-length", "4".parse().unwrap());
    assert_eq!(client().send(request, soon()).await.unwrap().status, 200);
}

#[tokio::test]
async fn the_version_is_what_the_connection_speaks() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    for version in [
        Version::HTTP_09,
        Version::HTTP_10,
        Version::HTTP_2,
        Version::HTTP_3,
    ] {
        let mut request = get(&server.url("/"));
        *request.version_mut() = version;
        let answer = client().send(request, soon()).await.unwrap();
        assert_eq!(answer.status, 200, "{version:?}");
    }
    for head in server.heads() {
        assert!(head.starts_with("GET / HTTP/1.1"), "{head}");
    }
}

#[tokio::test]
async fn ports_that_are_none_are_refused() {
    let client = client();
    for uri in [
        "http://127.0.0.1:0/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:/",
    ] {
        let Ok(uri) = uri.parse::<http::Uri>() else {
            continue;
        };
        let mut request = get("http://127.0.0.1/");
        *request.uri_mut() = uri.clone();
        let fault = client.send(request, soon()).await.unwrap_err();
        assert!(matches!(fault, EgressFault::Request(_)), "{uri}: {fault:?}");
    }
}
