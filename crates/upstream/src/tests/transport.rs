//! Which HTTP transport a server speaks: found out with one opening message, which is sent once.

use std::time::Duration;

use model::Limits;

use super::far::{Far, Seen, Step, answer, bytes, link, say, stream_head, trip};
use crate::link_fault::LinkFault;
use crate::streamable::{Hearing, Post};
use crate::transport::{Reached, reach};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What `reach` finds, where POSTs are answered so and a GET opens a stream that begins so.
async fn reached(
    post: (&'static str, &'static str, &'static str),
    stream: Option<&'static str>,
) -> (String, Far) {
    let far = Far::start(move |_, seen: &Seen| match (seen.method.as_str(), stream) {
        ("GET", Some(stream)) => vec![stream_head(), say(stream), Step::Hang],
        ("GET", None) => answer("405 Method Not Allowed", "", ""),
        _ => {
            let (status, media, body) = post;
            answer(status, media, body)
        }
    })
    .await;
    let link = link(&far.url(), &Limits::default());
    let opening = Post {
        body: bytes(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#),
        ..Post::default()
    };
    let patience = Duration::from_millis(300);
    let found = reach(&link, opening, &trip(), patience, |_, message| {
        if message.starts_with(b"{\"jsonrpc\"") {
            Hearing::Answered
        } else {
            Hearing::GoOn
        }
    })
    .await;
    let found = match found {
        Ok(Reached::Streamable(exchanged)) => format!("streamable {}", exchanged.status.as_u16()),
        Ok(Reached::OldSse(..)) => "old".to_owned(),
        Err(LinkFault::Status { status, .. }) => format!("status {status}"),
        Err(LinkFault::Unauthorized { .. }) => "unauthorized".to_owned(),
        Err(LinkFault::Forbidden { .. }) => "forbidden".to_owned(),
        Err(LinkFault::OtherOrigin) => "other origin".to_owned(),
        Err(fault) => format!("{fault:?}"),
    };
    (found, far)
}

#[tokio::test]
async fn d5_sse_05_life_d06_life_d08_the_old_transport_is_tried_where_the_new_one_is_turned_away() {
    let endpoint = Some("event: endpoint\ndata: /m\n\n");
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no"}}"#;
    let json = "application/json";
    for (post, stream, expected, gets) in [
        (("200 OK", json, ANSWER), endpoint, "streamable 200", 0),
        // An error in words is an answer of the new transport.
        (("400 Bad Request", json, error), endpoint, "streamable 400", 0),
        (("404 Not Found", json, error), endpoint, "streamable 404", 0),
        (("400 Bad Request", "text/plain", "no"), endpoint, "old", 1),
        (
            ("404 Not Found", "text/html", "Cannot POST /mcp"),
            endpoint,
            "old",
            1,
        ),
        (
            ("405 Method Not Allowed", json, r#"{"detail":"x"}"#),
            endpoint,
            "old",
            1,
        ),
        (("406 Not Acceptable", "", ""), endpoint, "old", 1),
        // It is not there either; a stream without an endpoint is another one.
        (("405 Method Not Allowed", "", ""), None, "status 405", 1),
        (("404 Not Found", "", ""), Some("data: 1\n\n"), "status 404", 1),
        (("404 Not Found", "", ""), Some(""), "status 404", 1),
        (
            ("404 Not Found", "", ""),
            Some("event: endpoint\ndata: http://evil.example/\n\n"),
            "other origin",
            1,
        ),
        // These say nothing of the transport.
        (("401 Unauthorized", "", ""), endpoint, "unauthorized", 0),
        (("403 Forbidden", "", ""), endpoint, "forbidden", 0),
        (("429 Too Many Requests", "", ""), endpoint, "status 429", 0),
        (("500 Oh", "", ""), endpoint, "status 500", 0),
        (("302 Found", "", ""), endpoint, "status 302", 0),
    ] {
        let (found, far) = reached(post, stream).await;
        assert_eq!(found, expected, "{post:?}");
        let seen = far.seen();
        let of = |method: &str| seen.iter().filter(|seen| seen.method == method).count();
        assert_eq!((of("POST"), of("GET")), (1, gets), "{post:?}");
    }
}
