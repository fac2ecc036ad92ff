//! Deadlines: whatever stalls, the request ends in time and says whether anything was sent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use egress::{BoxFuture, Client, ClientOptions, EgressFault, Phase, Resolve};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::server::{
    Act, Server, a_while, answer, client, get, in_time, never, now_ish, options, post, soon,
};

/// A listener whose queue is full, so that the next connection hangs. What fills it is kept in the first value.
pub(crate) async fn full_backlog(ip: &str, port: u16) -> (Vec<TcpStream>, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(ip.parse().unwrap(), port)).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => break,
        }
        assert!(held.len() < 100, "the queue does not fill");
    }
    // The listener must live on without anybody accepting.
    tokio::spawn(async move {
        let _listener = listener;
        std::future::pending::<()>().await;
    });
    (held, address)
}

struct Stalled;

impl Resolve for Stalled {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

const NOTHING_SENT: EgressFault = EgressFault::Timeout {
    sent: false,
    phase: Phase::Connect,
};

fn short_connect() -> ClientOptions {
    ClientOptions {
        connect_timeout: Duration::from_millis(100),
        ..options()
    }
}

#[tokio::test]
async fn a_stalled_resolver_ends_with_nothing_sent() {
    for (options, deadline) in [(options(), now_ish()), (short_connect(), never())] {
        let client = Client::with_resolver(options, Arc::new(Stalled)).unwrap();
        let fault = in_time(client.send(get("http://slow.example/"), deadline))
            .await
            .unwrap_err();
        assert_eq!(fault, NOTHING_SENT);
        assert_eq!(client.requests(), 0);
    }
}

#[tokio::test]
async fn a_stalled_connection_ends_with_nothing_sent() {
    let (_held, address) = full_backlog("127.0.0.1", 0).await;
    let url = format!("http://{address}/");
    let client = client();
    let fault = in_time(client.send(post(&url, "x"), now_ish()))
        .await
        .unwrap_err();
    assert_eq!(fault, NOTHING_SENT);
    assert_eq!(client.requests(), 0);

    // The time for connecting runs out first: the last address has used its share.
    let client = Client::new(short_connect()).unwrap();
    let fault = in_time(client.send(post(&url, "x"), never())).await.unwrap_err();
    assert!(!fault.sent(), "{fault:?}");
    assert!(
        matches!(fault, EgressFault::Timeout { .. } | EgressFault::Connect { .. }),
        "{fault:?}"
    );
    assert_eq!(client.requests(), 0);
}

#[tokio::test]
async fn a_stalled_handshake_ends_with_nothing_sent() {
    // It takes connections and says nothing, where a TLS server would answer.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    for (options, deadline) in [(options(), now_ish()), (short_connect(), never())] {
        let client = Client::new(options).unwrap();
        let fault = in_time(client.send(post(&url, "x"), deadline)).await.unwrap_err();
        assert_eq!(fault, NOTHING_SENT);
        assert_eq!(client.requests(), 0);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_ends_with_the_request_sent() {
    let server = Server::start(|_| Act::SayAndHang(Vec::new())).await;
    for request in [get(&server.url("/")), post(&server.url("/"), "body")] {
        let client = client();
        let fault = in_time(client.send(request, a_while())).await.unwrap_err();
        assert_eq!(
            fault,
            EgressFault::Timeout {
                sent: true,
                phase: Phase::Answer
            }
        );
        assert!(fault.sent());
        assert_eq!(client.requests(), 1);
    }
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn a_server_that_stops_inside_its_headers_ends_with_the_request_sent() {
    let server = Server::start(|_| Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec())).await;
    let client = client();
    let fault = in_time(client.send(get(&server.url("/")), a_while()))
        .await
        .unwrap_err();
    assert_eq!(
        fault,
        EgressFault::Timeout {
            sent: true,
            phase: Phase::Answer
        }
    );
}

#[tokio::test]
async fn a_server_that_stops_inside_its_body_ends_in_time() {
    let server =
        Server::start(|_| Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345".to_vec()))
            .await;
    let client = client();
    let answer = client.send(get(&server.url("/")), soon()).await.unwrap();
    let fault = in_time(answer.read(10, now_ish())).await.unwrap_err();
    assert_eq!(
        fault,
        EgressFault::Timeout {
            sent: true,
            phase: Phase::Body
        }
    );
}

#[tokio::test]
async fn a_stream_may_be_read_on_after_a_deadline() {
    let server = Server::start(|_| {
        Act::SayAndHang(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n".to_vec())
    })
    .await;
    let mut answer = client().send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(answer.chunk(soon()).await.unwrap().unwrap(), "12345");
    for _ in 0..2 {
        let fault = in_time(answer.chunk(now_ish())).await.unwrap_err();
        assert!(
            matches!(
                fault,
                EgressFault::Timeout {
                    phase: Phase::Body,
                    ..
                }
            ),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn nothing_is_sent_when_the_deadline_has_passed_before() {
    let server = Server::start(|_| Act::Say(answer("ok"))).await;
    let client = client();
    // An open connection, over which a request could leave at once.
    let answer = client.send(get(&server.url("/")), soon()).await.unwrap();
    answer.read(2, soon()).await.unwrap();
    let fault = client
        .send(get(&server.url("/")), Instant::now())
        .await
        .unwrap_err();
    assert_eq!(fault, NOTHING_SENT);
    assert_eq!((client.requests(), server.heads().len()), (1, 1));
}

#[tokio::test]
async fn a_request_that_is_dropped_while_it_waits_is_still_counted() {
    let server = Server::start(|_| Act::SayAndHang(Vec::new())).await;
    let client = client();
    tokio::select! {
        outcome = client.send(get(&server.url("/")), soon()) => panic!("{outcome:?}"),
        () = in_time(server.has_seen(1)) => {}
    }
    assert_eq!(client.requests(), 1);
}
