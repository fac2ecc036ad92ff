//! How much of an answer is read: at the limit, and one byte past it.

use egress::{Client, ClientOptions, EgressFault, Part};

use crate::server::{Act, Server, answer, client, get, in_time, options, soon};

fn too_large(part: Part, max: usize) -> EgressFault {
    EgressFault::TooLarge { part, max }
}

#[tokio::test]
async fn a_body_is_read_at_its_greatest_size_and_not_one_byte_past_it() {
    const MAX: usize = 100_000;
    let announced = |n: usize| answer(&"x".repeat(n));
    let chunked = |n: usize| {
        // Two chunks, so that the limit is also met between them.
        let (first, second) = (n / 2, n - n / 2);
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{first:x}\r\n{}\r\n{second:x}\r\n{}\r\n0\r\n\r\n",
            "x".repeat(first),
            "x".repeat(second)
        )
        .into_bytes()
    };
    let until_closed = |n: usize| format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(n)).into_bytes();
    let server = Server::start(move |target| match target {
        "/announced/at" => Act::Say(announced(MAX)),
        "/announced/past" => Act::Say(announced(MAX + 1)),
        "/chunked/at" => Act::Say(chunked(MAX)),
        "/chunked/past" => Act::Say(chunked(MAX + 1)),
        "/closed/at" => Act::SayAndClose(until_closed(MAX)),
        "/closed/past" => Act::SayAndClose(until_closed(MAX + 1)),
        other => panic!("{other}"),
    })
    .await;
    let client = client();
    for form in ["announced", "chunked", "closed"] {
        let at = client
            .send(get(&server.url(&format!("/{form}/at"))), soon())
            .await
            .unwrap();
        let body = in_time(at.read(MAX, soon())).await.unwrap();
        assert_eq!(body.len(), MAX, "{form}");
        assert!(body.iter().all(|byte| *byte == b'x'));
        let past = client
            .send(get(&server.url(&format!("/{form}/past"))), soon())
            .await
            .unwrap();
        assert_eq!(
            in_time(past.read(MAX, soon())).await,
            Err(too_large(Part::Body, MAX)),
            "{form}"
        );
    }
}

#[tokio::test]
async fn a_body_in_one_piece_of_unknown_size_is_held_to_the_limit() {
    let server = Server::start(|_| {
        Act::Say(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n\r\n".to_vec(),
        )
    })
    .await;
    let client = client();
    let at = client.send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(at.read(10, soon()).await.unwrap(), "1234567890");
    let past = client.send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(past.read(9, soon()).await, Err(too_large(Part::Body, 9)));
}

#[tokio::test]
async fn an_announced_size_past_the_limit_is_refused_before_anything_is_read() {
    // The server announces and sends nothing: whoever wanted to read would wait.
    let server =
        Server::start(|_| Act::SayAndHang(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n".to_vec())).await;
    let answer = client().send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(
        in_time(answer.read(10, soon())).await,
        Err(too_large(Part::Body, 10))
    );
}

#[tokio::test]
async fn an_endless_body_is_given_up_at_the_limit() {
    let mut endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..1_000 {
        endless.extend_from_slice(format!("400\r\n{}\r\n", "x".repeat(1_024)).as_bytes());
    }
    let server = Server::start(move |_| Act::SayAndHang(endless.clone())).await;
    let answer = client().send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(
        in_time(answer.read(10_000, soon())).await,
        Err(too_large(Part::Body, 10_000))
    );
}

#[tokio::test]
async fn an_empty_body_fits_a_limit_of_nothing() {
    let server = Server::start(|target| match target {
        "/none" => Act::Say(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        "/empty" => Act::Say(answer("")),
        _ => Act::Say(answer("x")),
    })
    .await;
    let client = client();
    for path in ["/none", "/empty"] {
        let answer = client.send(get(&server.url(path)), soon()).await.unwrap();
        assert!(answer.read(0, soon()).await.unwrap().is_empty(), "{path}");
    }
    let one = client.send(get(&server.url("/one")), soon()).await.unwrap();
    assert_eq!(one.read(0, soon()).await, Err(too_large(Part::Body, 0)));
    // HEAD announces what it does not send.
    let mut head = get(&server.url("/one"));
    *head.method_mut() = http::Method::HEAD;
    let server = Server::start(|_| Act::Say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".to_vec())).await;
    *head.uri_mut() = server.url("/").parse().unwrap();
    let answer = client.send(head, soon()).await.unwrap();
    assert!(answer.read(0, soon()).await.unwrap().is_empty());
}

#[tokio::test]
async fn headers_are_read_at_their_greatest_size_and_not_one_byte_past_it() {
    // `content-length: 0` and the end of its line are 19 bytes, `x-fill: ` and the end of its line 10 more.
    for max in [200, 8_192, 65_536] {
        let with = |bytes: usize| {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-fill: {}\r\n\r\n",
                "x".repeat(bytes - 29)
            )
            .into_bytes()
        };
        let server = Server::start(move |target| match target {
            "/at" => Act::Say(with(max)),
            "/past" => Act::Say(with(max + 1)),
            _ => Act::Say(with(max * 10)),
        })
        .await;
        let client = Client::new(ClientOptions {
            headers_bytes_max: max,
            ..options()
        })
        .unwrap();
        let answer = client.send(get(&server.url("/at")), soon()).await.unwrap();
        assert_eq!(answer.headers["x-fill"].len(), max - 29);
        for path in ["/past", "/far-past"] {
            let fault = in_time(client.send(get(&server.url(path)), soon()))
                .await
                .unwrap_err();
            assert_eq!(fault, too_large(Part::Headers, max), "{path}");
            assert!(fault.sent());
        }
    }
}

#[tokio::test]
async fn a_header_without_end_is_given_up_before_it_fills_the_memory() {
    let head = format!("HTTP/1.1 200 OK\r\nx-fill: {}", "x".repeat(50_000)).into_bytes();
    let server = Server::start(move |_| Act::SayAndHang(head.clone())).await;
    let client = Client::new(ClientOptions {
        headers_bytes_max: 8_192,
        ..options()
    })
    .unwrap();
    let fault = in_time(client.send(get(&server.url("/")), soon()))
        .await
        .unwrap_err();
    assert_eq!(fault, too_large(Part::Headers, 8_192));
}

#[tokio::test]
async fn more_headers_than_anybody_needs_are_too_large() {
    let many = (0..200).map(|n| format!("x-{n}: y\r\n")).collect::<String>();
    let server =
        Server::start(move |_| Act::Say(format!("HTTP/1.1 200 OK\r\n{many}\r\n").into_bytes())).await;
    let fault = client().send(get(&server.url("/")), soon()).await.unwrap_err();
    assert_eq!(fault, too_large(Part::Headers, 65_536));
}

#[tokio::test]
async fn a_compressed_body_is_handed_on_as_it_is() {
    let server = Server::start(|_| {
        Act::Say(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08".to_vec(),
        )
    })
    .await;
    let answer = client().send(get(&server.url("/")), soon()).await.unwrap();
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert_eq!(&answer.read(3, soon()).await.unwrap()[..], b"\x1f\x8b\x08");
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(!head.contains("accept-encoding"), "{head}");
}
