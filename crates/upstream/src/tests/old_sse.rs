//! The transport of 2024-11-05: where messages go, in which order, and what a stream may not say.

use std::time::Duration;

use bytes::Bytes;
use model::Limits;
use tokio::time::Instant;

use super::far::{Far, PATIENCE, SECRET, Seen, Step, answer, bytes, link, say, stream_head};
use crate::link_fault::LinkFault;
use crate::old_sse::{self, OldSseReceiver, OldSseSender};

async fn open(far: &Far, path: &str, limits: &Limits) -> Result<(OldSseSender, OldSseReceiver), LinkFault> {
    let link = link(&format!("http://{}{path}", far.address), limits);
    old_sse::open(link.endpoint(), Instant::now() + Duration::from_secs(2)).await
}

/// A far side whose stream begins like this and then waits, and whose POSTs are taken.
async fn begins(stream: String) -> Far {
    Far::start(move |_, seen: &Seen| match seen.method.as_str() {
        "GET" => vec![stream_head(), say(&stream), Step::Hang],
        _ => answer("202 Accepted", "", "Accepted"),
    })
    .await
}

async fn next(receiver: &mut OldSseReceiver) -> Result<Option<Bytes>, LinkFault> {
    let next = tokio::time::timeout(PATIENCE, receiver.next()).await;
    next.expect("it goes on")
}

#[tokio::test]
async fn sse_01_sse_02_sse_03_messages_go_where_the_stream_says_and_everything_comes_on_it() {
    let far = Far::start(|_, seen: &Seen| match seen.method.as_str() {
        "GET" => vec![
            stream_head(),
            say(": hi\n\nevent: endpoint\ndata: /messages/?session_id=a1&x=%20\n\n"),
            Step::Await(1),
            say("event: message\ndata: {\"id\":1}\n\nevent: other\ndata: no\n\ndata: {\"id\":2}\n\n"),
            Step::Close,
        ],
        // Whatever is answered here is no message.
        _ => answer("200 OK", "application/json", "{\"id\":1}"),
    })
    .await;
    let (sender, mut receiver) = open(&far, "/sse", &Limits::default()).await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    for n in 0..3 {
        sender
            .send(bytes(&format!("{{\"n\":{n}}}")), deadline)
            .await
            .unwrap();
    }
    far.go_on();
    assert_eq!(next(&mut receiver).await, Ok(Some(bytes("{\"id\":1}"))));
    assert_eq!(next(&mut receiver).await, Ok(Some(bytes("{\"id\":2}"))));
    assert_eq!(next(&mut receiver).await, Ok(None));
    let seen = far.seen();
    assert_eq!(
        (seen[0].method.as_str(), seen[0].target.as_str()),
        ("GET", "/sse")
    );
    assert_eq!(seen[0].header("accept"), Some("text/event-stream"));
    for (n, seen) in seen[1..].iter().enumerate() {
        assert_eq!(seen.method, "POST");
        assert_eq!(seen.target, "/messages/?session_id=a1&x=%20");
        assert_eq!(seen.body, format!("{{\"n\":{n}}}").as_bytes());
        assert_eq!(seen.header("content-type"), Some("application/json"));
    }
    for seen in &seen {
        assert_eq!(seen.header("authorization").unwrap(), format!("Bearer {SECRET}"));
    }
}

#[tokio::test]
async fn sse_06_a_place_of_another_origin_is_refused_and_nothing_is_sent_there() {
    let elsewhere = Far::start(|_, _| answer("202 Accepted", "", "")).await;
    for named in [
        format!("http://{}/m", elsewhere.address),
        format!("//{}/m", elsewhere.address),
        format!("\\\\{}/m", elsewhere.address),
        "https://127.0.0.1/m".to_owned(),
        "http://169.254.169.254/latest".to_owned(),
        "http://127.0.0.1.evil.example/m".to_owned(),
        "http://user@SELF/m".to_owned(),
        "http://SELF@evil.example/m".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://[::1".to_owned(),
    ] {
        let far = Far::start(move |_, seen: &Seen| {
            let own = seen.header("host").unwrap();
            let named = named.replace("SELF", own);
            vec![
                stream_head(),
                say(&format!("event: endpoint\ndata: {named}\n\n")),
                Step::Hang,
            ]
        })
        .await;
        let opened = open(&far, "/sse", &Limits::default()).await;
        assert_eq!(opened.map(|_| ()), Err(LinkFault::OtherOrigin));
        far.until_closed(1).await;
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn sse_06_every_spelling_of_the_same_origin_is_followed() {
    for (named, target) in [
        ("/m", "/m"),
        ("m?x", "/a/m?x"),
        ("?s=1", "/a/sse?s=1"),
        ("http://SELF/m", "/m"),
        ("  /m \t", "/m"),
        ("../../m", "/m"),
    ] {
        let far = Far::start(move |_, seen: &Seen| match seen.method.as_str() {
            "GET" => {
                let named = named.replace("SELF", seen.header("host").unwrap());
                vec![
                    stream_head(),
                    say(&format!("event: endpoint\ndata: {named}\n\n")),
                    Step::Hang,
                ]
            }
            _ => answer("202 Accepted", "", ""),
        })
        .await;
        let (sender, _receiver) = open(&far, "/a/sse", &Limits::default()).await.unwrap();
        sender.send(bytes("{}"), Instant::now() + PATIENCE).await.unwrap();
        assert_eq!(far.seen()[1].target, target, "{named}");
    }
}

#[tokio::test]
async fn sse_01_a_stream_that_begins_otherwise_is_none_of_this_transport() {
    for stream in [
        "data: {\"id\":1}\n\n",
        "event: message\ndata: /m\n\n",
        "id: 1\n\n",
        // Nothing until the deadline, and a first event that is never whole.
        "",
        "event: endpoint\ndata: /m\n",
    ] {
        let far = begins(stream.to_owned()).await;
        let opened = open(&far, "/sse", &Limits::default()).await;
        assert_eq!(opened.map(|_| ()), Err(LinkFault::NoEndpoint), "{stream:?}");
        far.until_closed(1).await;
    }
    for (status, media, is_status) in [("404 Not Found", "", true), ("200 OK", "text/html", false)] {
        let far = Far::start(move |_, _| answer(status, media, "x")).await;
        let opened = open(&far, "/sse", &Limits::default()).await.map(|_| ());
        match opened {
            Err(LinkFault::Status { status: 404, .. }) => assert!(is_status),
            Err(LinkFault::NotMcp { status: 200, .. }) => assert!(!is_status),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_message_that_is_not_taken_is_told_and_the_next_one_is_sent() {
    let far = Far::start(|number, seen: &Seen| match (seen.method.as_str(), number) {
        ("GET", _) => vec![stream_head(), say("event: endpoint\ndata: /m\n\n"), Step::Hang],
        (_, 1) => answer("400 Bad Request", "text/plain", "no"),
        (_, 2) => vec![Step::Close],
        _ => answer("202 Accepted", "", ""),
    })
    .await;
    let (sender, receiver) = open(&far, "/sse", &Limits::default()).await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    let refused = sender.send(bytes("1"), deadline).await.unwrap_err();
    assert!(
        matches!(refused, LinkFault::Status { status: 400, .. }),
        "{refused:?}"
    );
    let broken = sender.send(bytes("2"), deadline).await.unwrap_err();
    assert!(broken.sent(), "{broken:?}");
    sender.send(bytes("3"), deadline).await.unwrap();
    let late = sender.send(bytes("4"), Instant::now()).await.unwrap_err();
    assert!(!late.sent());
    let bodies: Vec<Vec<u8>> = far.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, [&b""[..], b"1", b"2", b"3"], "nothing is sent twice");
    drop(receiver);
    far.until_closed(1).await;
}

#[tokio::test]
async fn messages_leave_in_the_order_in_which_they_were_given() {
    let far = begins("event: endpoint\ndata: /m\n\n".to_owned()).await;
    let (sender, _receiver) = open(&far, "/sse", &Limits::default()).await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    let sent = (0..50).map(|n| {
        let sender = sender.clone();
        async move { sender.send(bytes(&n.to_string()), deadline).await }
    });
    // Tasks of one thread take their turns in the order in which they were spawned.
    let tasks: Vec<_> = sent.map(tokio::spawn).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let bodies: Vec<String> = far.seen()[1..]
        .iter()
        .map(|seen| String::from_utf8(seen.body.clone()).unwrap())
        .collect();
    let expected: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn a_stream_that_says_nothing_at_length_is_given_up() {
    let far = Far::start(|_, _| {
        vec![
            stream_head(),
            say("event: endpoint\ndata: /m\n\ndata: 1\n\n"),
            Step::Flood(b": x\n\n".to_vec()),
        ]
    })
    .await;
    let limits = Limits {
        upstream_stream_bytes_max: 200_000,
        ..Limits::default()
    };
    let (_sender, mut receiver) = open(&far, "/sse", &limits).await.unwrap();
    assert_eq!(next(&mut receiver).await, Ok(Some(bytes("1"))));
    let long = LinkFault::TooLarge {
        what: "an event stream",
        max: 200_000,
        key: "upstream_stream_bytes_max",
    };
    assert_eq!(next(&mut receiver).await, Err(long));
}
