//! Exchanges by Streamable HTTP: what is sent, what is heard, and what every misbehaviour of a server becomes.

use std::time::Duration;

use bytes::Bytes;
use egress::EgressFault;
use http::StatusCode;
use model::Limits;
use tokio::time::Instant;

use super::far::{
    Far, PATIENCE, SECRET, Seen, Step, answer, bytes, chunk, chunked_head, link, say, stream_head, trip,
};
use crate::link_fault::LinkFault;
use crate::outgoing::Trip;
use crate::streamable::{Exchanged, Hearing, Post};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;

fn post() -> Post<'static> {
    Post {
        body: bytes(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#),
        ..Post::default()
    }
}

/// A message of a legacy session, whose stream is taken up again.
fn legacy() -> Post<'static> {
    Post {
        version: Some("v-legacy"),
        session: Some("s-1"),
        resumes: true,
        ..post()
    }
}

/// What was heard, and how it ended. A message with `result` or `error` is the answer.
async fn exchange(
    far: &Far,
    post: Post<'_>,
    limits: &Limits,
    trip: &Trip,
) -> (Vec<String>, Result<Exchanged, LinkFault>) {
    let mut heard = Vec::new();
    let hear = |_: StatusCode, message: Bytes| {
        let text = String::from_utf8(message.to_vec()).unwrap();
        let is_answer = text.contains("\"result\"") || text.contains("\"error\"");
        heard.push(text);
        if is_answer {
            Hearing::Answered
        } else {
            Hearing::GoOn
        }
    };
    let link = link(&far.url(), limits);
    let exchanged = tokio::time::timeout(PATIENCE, link.exchange(post, trip, hear))
        .await
        .expect("it ends");
    (heard, exchanged)
}

/// One exchange with a far side that always does this.
async fn one(
    steps: Vec<Step>,
    post: Post<'_>,
    limits: &Limits,
) -> (Vec<String>, Result<Exchanged, LinkFault>) {
    let far = Far::start(move |_, _| steps.clone()).await;
    exchange(&far, post, limits, &trip()).await
}

fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

#[tokio::test]
async fn hl_02_hm_02_hm_03_hm_14_hm_15_a_message_is_a_post_and_its_headers_say_what_they_are_told_to() {
    let far = Far::start(|_, _| answer("200 OK", "application/json; charset=utf-8", ANSWER)).await;
    let params = [
        ("Region".to_owned(), "köln".to_owned()),
        ("Count".to_owned(), "42".to_owned()),
        ("Empty".to_owned(), String::new()),
    ];
    let modern = Post {
        version: Some("v-modern"),
        method: Some("tools/call"),
        name: Some(" wetter"),
        params: &params,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ..post()
    };
    let trip = trip();
    let (heard, exchanged) = exchange(&far, modern, &Limits::default(), &trip).await;
    let expected = Exchanged {
        status: StatusCode::OK,
        session: None,
        resumes: 0,
    };
    assert_eq!(
        (heard.as_slice(), exchanged),
        (&[ANSWER.to_owned()][..], Ok(expected))
    );
    exchange(&far, legacy(), &Limits::default(), &trip)
        .await
        .1
        .unwrap();
    exchange(&far, post(), &Limits::default(), &trip).await.1.unwrap();
    assert_eq!(trip.requests(), 3);
    let [modern, legacy, bare] = &far.seen()[..] else {
        panic!("three requests")
    };
    for seen in [modern, legacy, bare] {
        assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/mcp"));
        assert_eq!(seen.body, post().body);
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("x-own", "1"),
            ("user-agent", concat!("tollhouse/", env!("CARGO_PKG_VERSION"))),
        ] {
            assert_eq!(seen.header(name), Some(value));
        }
        assert_eq!(seen.header("authorization").unwrap(), format!("Bearer {SECRET}"));
    }
    for (name, of_modern, of_legacy) in [
        ("mcp-protocol-version", Some("v-modern"), Some("v-legacy")),
        ("mcp-session-id", None, Some("s-1")),
        ("mcp-method", Some("tools/call"), None),
        ("mcp-name", Some("=?base64?IHdldHRlcg==?="), None),
        ("mcp-param-region", Some("=?base64?a8O2bG4=?="), None),
        ("mcp-param-count", Some("42"), None),
        ("mcp-param-empty", Some(""), None),
        (
            "traceparent",
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            None,
        ),
        ("last-event-id", None, None),
    ] {
        assert_eq!(modern.header(name), of_modern, "{name}");
        assert_eq!(legacy.header(name), of_legacy, "{name}");
        assert_eq!(bare.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_a_header_is_not_sent() {
    let far = Far::start(|_, _| answer("200 OK", "application/json", ANSWER)).await;
    let twice = [("A".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())];
    let bad = [("a b".to_owned(), "1".to_owned())];
    for post in [
        Post {
            session: Some("a\r\nx: y"),
            ..post()
        },
        Post {
            version: Some("\0"),
            ..post()
        },
        Post {
            params: &twice,
            ..post()
        },
        Post {
            params: &bad,
            ..post()
        },
    ] {
        let trip = trip();
        let (_, exchanged) = exchange(&far, post.clone(), &Limits::default(), &trip).await;
        let fault = exchanged.unwrap_err();
        assert!(matches!(fault, LinkFault::Request(_)), "{post:?}: {fault:?}");
        assert_eq!((fault.sent(), trip.requests()), (false, 0));
    }
    assert!(far.seen().is_empty());
}

#[tokio::test]
async fn hl_04_hl_05_hm_08_hm_10_events_are_heard_in_order_up_to_the_answer_wherever_their_bytes_are_cut() {
    let body = format!(
        ": keep-alive\n\n{}event: other\ndata: no\n\n{}data: {{\"a\":\ndata: 1}}\r\n\r\n{}{}",
        event(NOTE),
        event("{\"x\":\"ü\"}"),
        event(ANSWER),
        event("{\"late\":1}")
    );
    let expected = [NOTE, "{\"x\":\"ü\"}", "{\"a\":\n1}", ANSWER];
    let whole = [chunked_head(), chunk(body.as_bytes()), chunk(b"")].concat();
    // Every boundary between two pieces, and every byte alone.
    let cuts = whole.len();
    let far = Far::start(move |cut, _| {
        let (start, end) = whole.split_at(cut);
        match cut {
            0 => vec![Step::Drip(whole.clone())],
            _ => vec![Step::Say(start.to_vec()), Step::Say(end.to_vec())],
        }
    })
    .await;
    let link = link(&far.url(), &Limits::default());
    for cut in 0..cuts {
        let mut heard = Vec::new();
        let hear = |_: StatusCode, message: Bytes| {
            heard.push(message);
            if heard.last().is_some_and(|last| last == ANSWER) {
                Hearing::Answered
            } else {
                Hearing::GoOn
            }
        };
        let exchanged = link.exchange(post(), &trip(), hear).await;
        assert!(exchanged.is_ok(), "{cut}: {exchanged:?}");
        assert_eq!(heard, expected, "{cut}");
    }
}

#[tokio::test]
async fn a_connection_whose_stream_ends_with_its_answer_is_used_again_and_no_other() {
    for (is_ended, linger, connections) in [(true, PATIENCE, 1), (false, Duration::from_millis(1), 2)] {
        let far = Far::start(move |number, _| {
            let mut steps = vec![
                Step::Say(chunked_head()),
                Step::Say(chunk(event(ANSWER).as_bytes())),
            ];
            // The end comes behind the answer, when that was heard.
            steps.push(Step::Await(number + 1));
            steps.push(if is_ended {
                Step::Say(chunk(b""))
            } else {
                Step::Hang
            });
            steps
        })
        .await;
        let link = link(&far.url(), &Limits::default()).lingering(linger);
        for _ in 0..2 {
            let hear = |_, _| {
                far.go_on();
                Hearing::Answered
            };
            assert!(link.exchange(post(), &trip(), hear).await.is_ok());
        }
        let used = far.seen().iter().map(|seen| seen.connection).max().unwrap() + 1;
        assert_eq!(used, connections);
    }
}

#[tokio::test]
async fn hl_12_a_session_id_is_visible_ascii_of_some_length_or_a_fault() {
    let long = "x".repeat(1_024);
    for (id, expected) in [
        ("a1-~!", Some("a1-~!")),
        (long.as_str(), Some(long.as_str())),
        (&format!("{long}x"), None),
        ("", None),
        ("a b", None),
        ("ä", None),
    ] {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {id}\r\ncontent-length: {}\r\n\r\n{ANSWER}",
            ANSWER.len()
        );
        let (_, exchanged) = one(vec![say(&head)], post(), &Limits::default()).await;
        match expected {
            Some(id) => assert_eq!(exchanged.unwrap().session.as_deref(), Some(id)),
            None => assert_eq!(exchanged, Err(LinkFault::SessionId { max: 1_024 }), "{id}"),
        }
    }
}

#[tokio::test]
async fn hl_14_auth_04_statuses_become_what_they_mean_and_errors_in_their_bodies_are_heard() {
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    let json = "application/json";
    // An error that a server tells in words is the answer, whatever the status.
    for status in ["400 Bad Request", "404 Not Found", "500 Internal Server Error"] {
        let (heard, exchanged) = one(answer(status, json, error), post(), &Limits::default()).await;
        assert_eq!(heard, [error]);
        assert_eq!(exchanged.unwrap().status.as_str(), &status[..3]);
    }
    // In a session, 404 says that it is lost.
    let (heard, exchanged) = one(answer("404 Not Found", json, error), legacy(), &Limits::default()).await;
    assert_eq!((heard.len(), exchanged), (0, Err(LinkFault::SessionLost)));
    let excerpt = |text: &str| Some(text.to_owned());
    for (status, media, body, expected) in [
        (
            "400 Bad Request",
            "text/plain",
            "no\u{1b}[31m good\n",
            Some(excerpt("no [31m good")),
        ),
        (
            "405 Method Not Allowed",
            json,
            r#"{"detail":"x"}"#,
            Some(excerpt(r#"{"detail":"x"}"#)),
        ),
        (
            "502 Bad Gateway",
            "text/event-stream",
            "data: x\n\n",
            Some(excerpt("data: x")),
        ),
        ("307 Temporary Redirect", json, ANSWER, Some(excerpt(ANSWER))),
        ("429 Too Many Requests", "", "", Some(None)),
        // What repeats the credential is not kept, not even its beginning.
        (
            "400 Bad Request",
            "text/plain",
            "you sent canary-7711-abcdef",
            Some(None),
        ),
        ("200 OK", "text/html", "<p>hello", None),
        ("200 OK", "application/json+x", ANSWER, None),
    ] {
        let (heard, exchanged) = one(answer(status, media, body), post(), &Limits::default()).await;
        // Whatever is heard of a failure is no answer here.
        assert!(
            heard.len() <= 1 && !heard.iter().any(|text| text == ANSWER),
            "{status}"
        );
        let number: u16 = status[..3].parse().unwrap();
        let fault = exchanged.unwrap_err();
        let expected = match expected {
            Some(excerpt) => LinkFault::Status {
                status: number,
                retry_after: None,
                excerpt,
            },
            None => LinkFault::NotMcp {
                status: number,
                media: Some(media.to_owned()),
            },
        };
        assert_eq!(fault, expected, "{status}");
        assert!(
            fault.sent() && !fault.to_string().contains(body.trim()) || body.is_empty(),
            "{fault}"
        );
    }
}

#[tokio::test]
async fn auth_04_auth_17_a_refused_credential_is_told_with_what_is_asked_for() {
    for (status, header, is_unauthorized) in [
        (
            "401 Unauthorized",
            "www-authenticate: Bearer scope=\"a b\"\r\n",
            true,
        ),
        (
            "403 Forbidden",
            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"a b\"\r\n",
            false,
        ),
    ] {
        let steps = vec![say(&format!(
            "HTTP/1.1 {status}\r\n{header}content-type: application/json\r\ncontent-length: {}\r\n\r\n{ANSWER}",
            ANSWER.len()
        ))];
        let (heard, exchanged) = one(steps, legacy(), &Limits::default()).await;
        assert!(heard.is_empty());
        let (challenge, unauthorized) = match exchanged.unwrap_err() {
            LinkFault::Unauthorized { challenge, renews } => {
                assert!(!renews, "a fixed token does not get better");
                (challenge, true)
            }
            LinkFault::Forbidden { challenge } => (challenge, false),
            fault => panic!("{fault:?}"),
        };
        assert_eq!(unauthorized, is_unauthorized);
        assert_eq!(challenge.unwrap().scope.as_deref(), Some("a b"));
    }
}

#[tokio::test]
async fn retry_after_is_kept_where_it_is_a_number() {
    for (value, expected) in [
        ("7", Some(7)),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-1", None),
    ] {
        let steps = vec![say(&format!(
            "HTTP/1.1 503 Busy\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n"
        ))];
        let (_, exchanged) = one(steps, post(), &Limits::default()).await;
        let Err(LinkFault::Status { retry_after, .. }) = exchanged else {
            panic!("{exchanged:?}")
        };
        assert_eq!(retry_after, expected.map(Duration::from_secs));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_compressed_bytes_are_not_read() {
    let far = Far::start(|_, _| {
        vec![say(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
        )]
    })
    .await;
    let (_, exchanged) = exchange(&far, post(), &Limits::default(), &trip()).await;
    assert!(matches!(exchanged, Err(LinkFault::Status { status: 307, .. })));
    assert_eq!(far.seen().len(), 1);
    let steps = vec![say(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx",
    )];
    let (heard, exchanged) = one(steps, post(), &Limits::default()).await;
    assert!(heard.is_empty());
    assert!(matches!(exchanged, Err(LinkFault::NotMcp { status: 200, .. })));
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_fault_in_time() {
    let cut = LinkFault::Cut { tries: 0 };
    for (steps, expected) in [
        // Taken as a notification is.
        (answer("202 Accepted", "", ""), cut.clone()),
        // Something else than the answer.
        (answer("200 OK", "application/json", NOTE), cut.clone()),
        // Ended, with and without a message that never was whole.
        (vec![stream_head(), Step::Close], cut.clone()),
        (vec![stream_head(), say(&event(NOTE)), Step::Close], cut.clone()),
        (
            vec![stream_head(), say(&format!("data: {ANSWER}\n")), Step::Close],
            cut.clone(),
        ),
        // Without ids there is nothing to take up; without a session era, no id helps (HM-11).
        (vec![stream_head(), say("id: 1\ndata:\n\n"), Step::Close], cut),
    ] {
        let (_, exchanged) = one(steps, post(), &Limits::default()).await;
        assert_eq!(exchanged, Err(expected.clone()));
    }
    // Broken inside a chunk, and inside a body of known length.
    for steps in [
        vec![Step::Say(chunked_head()), say("5\r\nda"), Step::Close],
        vec![
            say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{"),
            Step::Close,
        ],
        vec![Step::Close],
    ] {
        let (_, exchanged) = one(steps, post(), &Limits::default()).await;
        let fault = exchanged.unwrap_err();
        assert!(
            matches!(fault, LinkFault::Egress(EgressFault::Broken { sent: true, .. })),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn the_deadline_ends_a_silent_answer_and_the_limit_of_silence_a_stream_before_it() {
    let limits = Limits {
        upstream_idle_timeout: Duration::from_millis(80),
        ..Limits::default()
    };
    let quick = Trip::new(Instant::now() + Duration::from_millis(300), None);
    let far = Far::start(|_, _| vec![Step::Hang]).await;
    let (_, exchanged) = exchange(&far, post(), &limits, &quick).await;
    // Waiting for the head of an answer is no silence of a stream.
    assert!(Instant::now() >= quick.deadline);
    assert!(
        matches!(
            exchanged,
            Err(LinkFault::Egress(EgressFault::Timeout { sent: true, .. }))
        ),
        "{exchanged:?}"
    );
    let far = Far::start(|_, _| vec![stream_head(), say(&event(NOTE)), Step::Hang]).await;
    let (heard, exchanged) = exchange(&far, post(), &limits, &trip()).await;
    assert_eq!(heard, [NOTE]);
    let after = limits.upstream_idle_timeout;
    assert_eq!(exchanged, Err(LinkFault::Idle { after }));
    far.until_closed(1).await;
}

#[tokio::test]
async fn a_message_a_stream_and_their_number_pass_at_their_limit_and_not_one_past_it() {
    let exact = |bytes: usize| format!("{{\"result\":\"{}\"}}", "x".repeat(bytes - 13));
    let limits = Limits {
        upstream_body_bytes_max: 1_000,
        upstream_stream_bytes_max: 3_000,
        upstream_stream_messages_max: 4,
        ..Limits::default()
    };
    let message = Err(LinkFault::TooLarge {
        what: "a message",
        max: 1_000,
        key: "upstream_body_bytes_max",
    });
    let ok = Ok(());
    let line = 1_000 - "data: ".len();
    let note = |length: usize| format!("data: {}\n\n", "n".repeat(length));
    let answered = |notes: usize, length: usize| {
        let mut text = note(length).repeat(notes);
        text.push_str(&format!("data: {}\n\n", exact(20)));
        vec![stream_head(), say(&text), Step::Close]
    };
    let end = "data: \n\n".len() + 20;
    for (steps, expected) in [
        (answer("200 OK", "application/json", &exact(1_000)), ok.clone()),
        (
            answer("200 OK", "application/json", &exact(1_001)),
            message.clone(),
        ),
        (
            vec![
                stream_head(),
                say(&format!("data: {}\n\n", exact(line))),
                Step::Close,
            ],
            ok.clone(),
        ),
        (
            vec![
                stream_head(),
                say(&format!("data: {}\n\n", exact(line + 1))),
                Step::Hang,
            ],
            message.clone(),
        ),
        // Without an end, a line is given up as soon as it is too long.
        (
            vec![stream_head(), Step::Flood(b"data: x".to_vec())],
            message.clone(),
        ),
        (vec![stream_head(), Step::Flood(b": x".to_vec())], message),
        (answered(3, 10), ok.clone()),
        (answered(4, 10), Err(LinkFault::TooMany { max: 4 })),
        (answered(3, (3_000 - end) / 3 - "data: \n\n".len()), ok),
        (
            vec![stream_head(), Step::Flood(b": x\n\n".to_vec())],
            Err(LinkFault::TooLarge {
                what: "an event stream",
                max: 3_000,
                key: "upstream_stream_bytes_max",
            }),
        ),
    ] {
        let (_, exchanged) = one(steps, post(), &limits).await;
        assert_eq!(exchanged.map(|_| ()), expected);
    }
}

#[tokio::test]
async fn a_stream_that_is_no_text_is_given_up() {
    let steps = vec![stream_head(), Step::Say(b"data: \xff\n\n".to_vec()), Step::Hang];
    let (_, exchanged) = one(steps, post(), &Limits::default()).await;
    assert_eq!(exchanged, Err(LinkFault::Encoding));
}

#[tokio::test]
async fn hm_09_giving_an_exchange_up_closes_its_response() {
    let far = Far::start(|_, _| vec![stream_head(), say(&event(NOTE)), Step::Hang]).await;
    let link = link(&far.url(), &Limits::default());
    let trip = trip();
    let waiting = link.exchange(post(), &trip, |_, _| Hearing::GoOn);
    tokio::select! {
        ended = waiting => panic!("{ended:?}"),
        () = far.until(1) => {}
    }
    far.until_closed(1).await;
    assert_eq!(trip.requests(), 1, "it is known that it left");
}

/// Breaks the first stream behind an event with an id, and answers the GETs with `script`.
async fn broken(retry: &'static str, script: impl Fn(usize) -> Vec<Step> + Send + Sync + 'static) -> Far {
    Far::start(move |number, seen: &Seen| match seen.method.as_str() {
        "POST" => vec![
            stream_head(),
            say(&format!("id: p-1\n{retry}data:\n\n{}", event(NOTE))),
            say("id: p-2\ndata: {\"n\":2}\n\n"),
            Step::Close,
        ],
        _ => script(number),
    })
    .await
}

#[tokio::test]
async fn d24_hl_06_hl_11_hl_13_a_legacy_stream_that_breaks_is_taken_up_behind_its_last_event() {
    let far = broken("retry: 120\n", |number| match number {
        // Broken again, with a newer id and another time; then a server that fails for a moment.
        1 => vec![
            stream_head(),
            say("id: p-3\nretry: 60\ndata: {\"n\":3}\n\n"),
            Step::Close,
        ],
        2 => answer("503 Busy", "", ""),
        _ => vec![stream_head(), say(&event(ANSWER)), Step::Close],
    })
    .await;
    let trip = trip();
    let (heard, exchanged) = exchange(&far, legacy(), &Limits::default(), &trip).await;
    assert_eq!(heard, [NOTE, "{\"n\":2}", "{\"n\":3}", ANSWER]);
    assert_eq!(exchanged.unwrap().resumes, 2);
    let seen = far.seen();
    let methods: Vec<&str> = seen.iter().map(|seen| seen.method.as_str()).collect();
    assert_eq!(
        methods,
        ["POST", "GET", "GET", "GET"],
        "a POST is never sent twice"
    );
    assert_eq!(trip.requests(), 4);
    for (seen, last, pause) in [
        (&seen[1], "p-2", 120),
        (&seen[2], "p-3", 60),
        (&seen[3], "p-3", 120),
    ] {
        assert_eq!(seen.header("last-event-id"), Some(last));
        assert_eq!(seen.header("mcp-session-id"), Some("s-1"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("v-legacy"));
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        assert_eq!(seen.header("authorization").unwrap(), format!("Bearer {SECRET}"));
        assert_eq!(seen.header("content-type"), None);
        let _ = pause;
    }
    for (before, after, pause) in [(0, 1, 120), (1, 2, 60), (2, 3, 120)] {
        let waited = seen[after].at - seen[before].at;
        assert!(waited >= Duration::from_millis(pause), "{after}: {waited:?}");
    }
}

#[tokio::test]
async fn hm_11_in_the_stateless_era_nothing_is_taken_up() {
    let far = broken("", |_| vec![stream_head(), say(&event(ANSWER)), Step::Close]).await;
    let (heard, exchanged) = exchange(&far, post(), &Limits::default(), &trip()).await;
    assert_eq!((heard.len(), exchanged), (2, Err(LinkFault::Cut { tries: 0 })));
    assert_eq!(far.seen().len(), 1);
}

#[tokio::test]
async fn hl_11_taking_up_ends_with_its_tries_with_the_session_and_where_the_server_has_no_streams() {
    let limits = Limits {
        upstream_resumes_max: 2,
        ..Limits::default()
    };
    type Script = fn(usize) -> Vec<Step>;
    let cases: [(&str, Script, Result<(), LinkFault>, usize); 5] = [
        // Ends each time without a word: two tries in a row are all.
        (
            "retry: 50\n",
            |_| vec![stream_head(), Step::Close],
            Err(LinkFault::Cut { tries: 2 }),
            3,
        ),
        (
            "retry: 50\n",
            |_| answer("503 Busy", "", ""),
            Err(LinkFault::Status {
                status: 503,
                retry_after: None,
                excerpt: None,
            }),
            3,
        ),
        (
            "retry: 50\n",
            |_| answer("405 Method Not Allowed", "", ""),
            Err(LinkFault::Cut { tries: 1 }),
            2,
        ),
        (
            "retry: 50\n",
            |_| answer("404 Not Found", "", ""),
            Err(LinkFault::SessionLost),
            2,
        ),
        // More patience than is had.
        (
            "retry: 86400000\n",
            |_| Vec::new(),
            Err(LinkFault::Cut { tries: 0 }),
            1,
        ),
    ];
    for (retry, script, expected, requests) in cases {
        let far = broken(retry, script).await;
        let (_, exchanged) = exchange(&far, legacy(), &limits, &trip()).await;
        assert_eq!(exchanged.map(|_| ()), expected);
        assert_eq!(far.seen().len(), requests);
    }
}

#[tokio::test]
async fn limits_hold_over_all_streams_of_an_exchange_together() {
    let limits = Limits {
        upstream_stream_messages_max: 20,
        ..Limits::default()
    };
    // Something comes each time, so that the tries alone would never end.
    let far = broken("retry: 50\n", |_| {
        vec![stream_head(), say(&event(NOTE).repeat(5)), Step::Close]
    })
    .await;
    let (heard, exchanged) = exchange(&far, legacy(), &limits, &trip()).await;
    assert_eq!(
        (heard.len(), exchanged),
        (20, Err(LinkFault::TooMany { max: 20 }))
    );
}

#[tokio::test]
async fn hl_03_hm_07_a_message_without_an_answer_is_taken_with_any_success() {
    for (status, media, body, is_taken) in [
        ("202 Accepted", "", "", true),
        ("204 No Content", "", "", true),
        ("200 OK", "application/json", "{}", true),
        ("400 Bad Request", "application/json", r#"{"error":{}}"#, false),
        ("404 Not Found", "", "", false),
        ("307 Temporary Redirect", "", "", false),
    ] {
        let far = Far::start(move |_, _| answer(status, media, body)).await;
        let link = link(&far.url(), &Limits::default());
        let sent = link.notify(legacy(), None, Instant::now() + PATIENCE).await;
        assert_eq!(sent.is_ok(), is_taken, "{status}: {sent:?}");
        assert_eq!(sent == Err(LinkFault::SessionLost), status.starts_with("404"));
    }
    // A stream in place of an answer is not read.
    let far = Far::start(|_, _| vec![stream_head(), Step::Flood(event(NOTE).into_bytes())]).await;
    let link = link(&far.url(), &Limits::default());
    link.notify(post(), None, Instant::now() + PATIENCE)
        .await
        .unwrap();
    far.until_closed(1).await;
}

#[tokio::test]
async fn hl_15_a_session_is_ended_whatever_the_server_says_to_it() {
    for status in ["204 No Content", "405 Method Not Allowed", "500 Oh"] {
        let far = Far::start(move |_, _| answer(status, "", "")).await;
        let link = link(&far.url(), &Limits::default());
        link.end("s-1", Some("v-legacy"), Instant::now() + PATIENCE).await;
        let seen = &far.seen()[0];
        assert_eq!(seen.method, "DELETE");
        assert_eq!(seen.header("mcp-session-id"), Some("s-1"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("v-legacy"));
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_got_nothing() {
    let far = Far::start(|_, _| Vec::new()).await;
    let url = far.url().replace("127.0.0.1", "127.9.9.9");
    let link = link(&url, &Limits::default());
    let trip = trip();
    let fault = link
        .exchange(post(), &trip, |_, _| Hearing::Answered)
        .await
        .unwrap_err();
    assert!(
        matches!(fault, LinkFault::Egress(EgressFault::Connect { .. })),
        "{fault:?}"
    );
    assert_eq!((fault.sent(), trip.requests()), (false, 0));
}

#[test]
fn a_link_shows_neither_its_path_nor_its_credential() {
    let link = link("https://h.example/secret-path?key=hidden", &Limits::default());
    let shown = format!("{link:?}");
    assert!(shown.contains("https://h.example"), "{shown}");
    for hidden in ["secret-path", "hidden", SECRET] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    assert!(link.endpoint().reveals(format!("x {SECRET} y").as_bytes()));
    assert!(!link.endpoint().reveals(b"x y"));
}
