//! Connections that break: before, while and after a request leaves. A request is never sent twice.

use std::io::{Read as _, Write as _};
use std::sync::mpsc;
use std::time::Duration;

use egress::EgressFault;
use tokio::net::TcpListener;

use crate::server::{Act, Server, answer, client, get, in_time, post, reset, soon};

#[tokio::test]
async fn a_closed_port_is_no_connection_and_nothing_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client();
    let fault = client
        .send(post(&format!("http://{address}/"), "x"), soon())
        .await
        .unwrap_err();
    assert!(
        matches!(&fault, EgressFault::Connect { host, .. } if host == "127.0.0.1"),
        "{fault:?}"
    );
    assert!(!fault.sent());
    assert_eq!(client.requests(), 0);
}

#[tokio::test]
async fn a_reset_in_the_handshake_is_nothing_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        reset(stream);
    });
    let client = client();
    let fault = in_time(client.send(post(&format!("https://{address}/"), "x"), soon()))
        .await
        .unwrap_err();
    assert!(matches!(fault, EgressFault::Tls { .. }), "{fault:?}");
    assert!(!fault.sent());
    assert_eq!(client.requests(), 0);
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_is_sent_and_not_tried_again() {
    for act in [
        Act::Reset,
        Act::SayAndClose(Vec::new()),
        Act::SayAndClose(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()),
        Act::SayAndClose(b"not HTTP at all\r\n\r\n".to_vec()),
    ] {
        let server = Server::start(move |_| act.clone()).await;
        for request in [get(&server.url("/")), post(&server.url("/"), "body")] {
            let client = client();
            let fault = in_time(client.send(request, soon())).await.unwrap_err();
            assert!(
                matches!(fault, EgressFault::Broken { sent: true, .. }),
                "{fault:?}"
            );
            assert_eq!(client.requests(), 1);
        }
        assert_eq!(server.heads().len(), 2, "each request was seen once");
    }
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_broken() {
    for body in [
        "content-length: 10\r\n\r\n12345",
        "transfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "transfer-encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        let server =
            Server::start(move |_| Act::SayAndClose(format!("HTTP/1.1 200 OK\r\n{body}").into_bytes())).await;
        let answer = client().send(get(&server.url("/")), soon()).await.unwrap();
        let fault = in_time(answer.read(100, soon())).await.unwrap_err();
        assert!(
            matches!(fault, EgressFault::Broken { sent: true, .. }),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn an_open_connection_that_breaks_under_a_request_is_not_tried_again() {
    // The first answer is good, so that the second request goes over a connection that worked.
    let first = std::sync::atomic::AtomicBool::new(true);
    let server = Server::start(move |_| {
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            Act::Say(answer("ok"))
        } else {
            Act::Reset
        }
    })
    .await;
    let client = client();
    let answer = client.send(get(&server.url("/")), soon()).await.unwrap();
    answer.read(2, soon()).await.unwrap();
    let fault = in_time(client.send(post(&server.url("/"), "x"), soon()))
        .await
        .unwrap_err();
    assert!(
        matches!(fault, EgressFault::Broken { sent: true, .. }),
        "{fault:?}"
    );
    assert_eq!((server.heads().len(), server.connections()), (2, 1));
    assert_eq!(client.requests(), 2);
}

/// On one thread, with the server on another: the connection is closed while its task here cannot notice, so that a
/// request is handed to a connection that is gone. hyper gives such a request back, and by default sends it again.
#[tokio::test(flavor = "current_thread")]
async fn a_request_for_a_connection_that_is_gone_is_given_back_unsent_and_not_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell_close, close) = mpsc::channel::<()>();
    let (tell_closed, closed) = mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4_096];
        let n = stream.read(&mut buffer).unwrap();
        assert!(buffer[..n].ends_with(b"\r\n\r\n"));
        stream.write_all(&answer("ok")).unwrap();
        close.recv().unwrap();
        drop(stream);
        tell_closed.send(()).unwrap();
        // A second connection would be a second try.
        listener.set_nonblocking(true).unwrap();
        listener
    });
    let client = client();
    let url = format!("http://{address}/");
    let answer = client.send(get(&url), soon()).await.unwrap();
    answer.read(2, soon()).await.unwrap();

    tell_close.send(()).unwrap();
    closed.recv_timeout(Duration::from_secs(20)).unwrap();
    let listener = server.join().unwrap();
    // The runtime learns that the socket has something to say, and this task, which is the runtime's first, goes on
    // before the connection's own task can listen.
    tokio::task::yield_now().await;
    let fault = in_time(client.send(post(&url, "x"), soon())).await.unwrap_err();
    assert!(
        matches!(fault, EgressFault::Broken { sent: false, .. }),
        "{fault:?}"
    );
    assert_eq!(client.requests(), 1);
    assert!(listener.accept().is_err(), "no second connection");
}
