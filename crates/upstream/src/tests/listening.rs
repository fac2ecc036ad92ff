//! The listening stream of a legacy session: heard, taken up again, and over in time.

use std::time::Duration;

use model::Limits;

use super::far::{Far, PATIENCE, Seen, Step, answer, bytes, link, say, stream_head};
use crate::link_fault::LinkFault;
use crate::listening::Listening;

/// A link's listening stream at a far side.
async fn listen(far: &Far, limits: &Limits) -> Result<Option<Listening>, LinkFault> {
    let link = link(&far.url(), limits);
    link.listen(Some("s-1"), Some("v-legacy"), PATIENCE).await
}

async fn next(listening: &mut Listening) -> Result<String, LinkFault> {
    let next = tokio::time::timeout(PATIENCE, listening.next()).await;
    let message = next.expect("it goes on")?;
    Ok(String::from_utf8(message.to_vec()).unwrap())
}

#[tokio::test]
async fn hl_08_hl_13_hl_16_a_listening_stream_is_asked_for_by_get_and_read_message_by_message() {
    let far = Far::start(|_, _| {
        vec![
            stream_head(),
            say(": hello\n\ndata: {\"n\":1}\n\n"),
            say("data: {\"n\":2}\n\nevent: x\ndata: no\n\n"),
            Step::Await(1),
            say("data: {\"n\":3}\n\n"),
            Step::Hang,
        ]
    })
    .await;
    let mut listening = listen(&far, &Limits::default()).await.unwrap().unwrap();
    assert_eq!(next(&mut listening).await.unwrap(), "{\"n\":1}");
    assert_eq!(next(&mut listening).await.unwrap(), "{\"n\":2}");
    // Whoever looks away while nothing comes loses nothing.
    for _ in 0..3 {
        tokio::select! {
            biased;
            message = listening.next() => panic!("{message:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    far.go_on();
    assert_eq!(next(&mut listening).await.unwrap(), "{\"n\":3}");
    let seen = &far.seen()[0];
    assert_eq!((seen.method.as_str(), seen.body.len()), ("GET", 0));
    for (name, value) in [
        ("accept", Some("text/event-stream")),
        ("mcp-session-id", Some("s-1")),
        ("mcp-protocol-version", Some("v-legacy")),
        ("last-event-id", None),
    ] {
        assert_eq!(seen.header(name), value, "{name}");
    }
    drop(listening);
    far.until_closed(1).await;
}

#[tokio::test]
async fn hl_08_a_server_may_have_no_listening_stream_and_anything_else_is_a_fault() {
    for (status, expected) in [
        ("405 Method Not Allowed", Ok(false)),
        ("404 Not Found", Err(LinkFault::SessionLost)),
        (
            "500 Oh",
            Err(LinkFault::Status {
                status: 500,
                retry_after: None,
                excerpt: None,
            }),
        ),
        (
            "200 OK",
            Err(LinkFault::NotMcp {
                status: 200,
                media: None,
            }),
        ),
    ] {
        let far = Far::start(move |_, _| answer(status, "", "")).await;
        let listening = listen(&far, &Limits::default()).await;
        assert_eq!(listening.map(|listening| listening.is_some()), expected);
    }
}

#[tokio::test]
async fn hl_06_hl_11_a_listening_stream_goes_on_behind_its_last_event_until_its_session_ends() {
    let limits = Limits {
        upstream_idle_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let far = Far::start(|number, seen: &Seen| match number {
        // Ended, broken, silent, refused for a moment, and then without the session.
        0 => vec![stream_head(), say("retry: 50\nid: a\ndata: 1\n\n"), Step::Close],
        1 => vec![
            say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"),
            say("12\r\nid: b\ndata: 2\n\nda\r\n5\r\nta"),
            Step::Close,
        ],
        2 => vec![stream_head(), say("id\ndata: 3\n\n"), Step::Hang],
        3 => answer("503 Busy", "", ""),
        4 => vec![
            stream_head(),
            say(&format!("data: {:?}\n\n", seen.header("last-event-id"))),
            Step::Close,
        ],
        _ => answer("404 Not Found", "", ""),
    })
    .await;
    let mut listening = listen(&far, &limits).await.unwrap().unwrap();
    // The third event took the id back, so that nothing is asked for again.
    for expected in ["1", "2", "3", "None"] {
        assert_eq!(next(&mut listening).await.unwrap(), expected);
    }
    assert_eq!(next(&mut listening).await, Err(LinkFault::SessionLost));
    assert_eq!(next(&mut listening).await, Err(LinkFault::Cut { tries: 1 }));
    let seen = far.seen();
    let ids: Vec<Option<&str>> = seen.iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(ids, [None, Some("a"), Some("b"), None, None, None]);
    for pair in seen.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(50));
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_once_again_and_again_is_given_up() {
    let limits = Limits {
        upstream_resumes_max: 2,
        ..Limits::default()
    };
    let far = Far::start(|number, _| match number {
        0 => vec![stream_head(), say("retry: 50\n\n"), Step::Close],
        _ => vec![stream_head(), Step::Close],
    })
    .await;
    let mut listening = listen(&far, &limits).await.unwrap().unwrap();
    assert_eq!(next(&mut listening).await, Err(LinkFault::Cut { tries: 2 }));
    assert_eq!(far.seen().len(), 3);
}

#[tokio::test]
async fn a_server_that_floods_waits_until_it_is_read() {
    let far = Far::start(|_, _| vec![stream_head(), Step::Flood(b"data: {\"n\":1}\n\n".to_vec())]).await;
    let mut listening = listen(&far, &Limits::default()).await.unwrap().unwrap();
    for _ in 0..10_000 {
        assert_eq!(listening.next().await.unwrap(), bytes("{\"n\":1}"));
    }
    // What is no message is not for ever: each of these streams is longer than the limit, with messages in between.
    for flood in [": x\n\n", "event: x\ndata: x\n\n"] {
        let far = Far::start(move |_, _| {
            let quiet = flood.repeat(90_000 / flood.len());
            vec![
                stream_head(),
                say(&format!("{quiet}data: 1\n\n").repeat(5)),
                Step::Flood(flood.as_bytes().to_vec()),
            ]
        })
        .await;
        let limits = Limits {
            upstream_stream_bytes_max: 200_000,
            ..Limits::default()
        };
        let mut listening = listen(&far, &limits).await.unwrap().unwrap();
        for _ in 0..5 {
            assert_eq!(next(&mut listening).await.unwrap(), "1");
        }
        let expected = LinkFault::TooLarge {
            what: "an event stream",
            max: 200_000,
            key: "upstream_stream_bytes_max",
        };
        assert_eq!(next(&mut listening).await, Err(expected));
    }
    // A message without end is one too many.
    let far = Far::start(|_, _| vec![stream_head(), Step::Flood(b"data: xxxxxxxxxxx".to_vec())]).await;
    let limits = Limits {
        upstream_body_bytes_max: 100_000,
        ..Limits::default()
    };
    let mut listening = listen(&far, &limits).await.unwrap().unwrap();
    let long = LinkFault::TooLarge {
        what: "a message",
        max: 100_000,
        key: "upstream_body_bytes_max",
    };
    assert_eq!(next(&mut listening).await, Err(long));
    assert_eq!(far.seen().len(), 1, "what is wrong is not asked for again");
}
