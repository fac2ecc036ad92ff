//! What is tried again, how often, and what is never sent twice.

use e2e::house::House;
use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use serde_json::json;

use super::{BROKE, JSON, Way, said};

#[tokio::test]
async fn a_write_whose_connection_breaks_is_not_sent_again_and_is_unknown() {
    let broken = |act: Act| Raw::start(move |_| act.clone());
    let half = b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\n{".to_vec();
    for (what, act) in [
        ("a reset", Act::Reset),
        ("an end", Act::SayAndClose(Vec::new())),
        ("an end in the answer", Act::SayAndClose(half)),
    ] {
        for (tool, arguments) in [
            ("orders_note", json!({"id":"o-1","text":"x"})),
            ("orders_drop", json!({"id":"o-1"})),
        ] {
            let service = broken(act.clone()).await;
            let way = Way::to(&service.url()).await;
            let result = way.ada.call(tool, arguments).await;
            assert_eq!(said(&result), BROKE, "{what} {tool}: {result}");
            let outcome = way.outcome().await;
            assert_eq!(outcome["state"], "unknown", "{what} {tool}");
            assert_eq!(outcome["refusal"], "upstream-broken", "{what} {tool}");
            assert_eq!(outcome["upstream_requests"], 1, "{what} {tool}");
            way.close().await;
            assert_eq!(service.requests(), 1, "{what} {tool}");
        }
    }
}

#[tokio::test]
async fn a_write_on_a_connection_that_was_kept_and_just_ended_is_not_sent_twice() {
    // The first request is answered and its connection kept; the second one is read, and the connection ends.
    let service = Raw::start(|number| match number {
        0 => Act::Say(answer("201 Created", JSON, "{\"note\":\"n\"}")),
        1 => Act::Reset,
        _ => Act::Say(answer("201 Created", JSON, "{\"note\":\"again\"}")),
    })
    .await;
    let way = Way::to(&service.url()).await;
    let note = json!({"id":"o-1","text":"x"});
    let first = way.ada.call("orders_note", note.clone()).await;
    assert_eq!(first["structuredContent"]["note"], "n", "{first}");
    let second = way.ada.call("orders_note", note).await;
    assert_eq!(said(&second), BROKE, "{second}");
    assert_eq!(way.outcome().await["state"], "unknown");
    way.close().await;
    assert_eq!(
        (service.requests(), service.connections()),
        (2, 1),
        "on one connection, and no more"
    );
}

/// A house whose reading tool is tried again.
fn retrying(url: &str, retry: &str) -> House {
    orders::house(url).with_change(
        "tollhouse.toml",
        "[upstream.orders.tool.read]\n",
        &format!("[upstream.orders.tool.read]\nretry = {retry}\n"),
    )
}

#[tokio::test]
async fn a_read_is_tried_again_as_its_reviewer_wrote_and_never_more_often() {
    let busy = || answer("503 Service Unavailable", "", "");
    let good = || answer("200 OK", JSON, "{\"id\":\"o-1\"}");
    let retry = "{ attempts = 3, on = [503] }";
    for (what, retry, script, requests, reads) in [
        ("good at once", retry, vec![good()], 1, "o-1"),
        (
            "good at the third try",
            retry,
            vec![busy(), busy(), good()],
            3,
            "o-1",
        ),
        (
            "never good",
            retry,
            vec![busy(), busy(), busy(), good()],
            3,
            "503",
        ),
        (
            "no retry configured",
            "{ attempts = 1, on = [503] }",
            vec![busy(), good()],
            1,
            "503",
        ),
        (
            "a status that is not listed",
            retry,
            vec![answer("502 Bad Gateway", "", ""), good()],
            1,
            "502",
        ),
        (
            "a fault of the caller",
            retry,
            vec![answer("404 Not Found", "", ""), good()],
            1,
            "404",
        ),
        (
            "broken after it was sent",
            retry,
            vec![Vec::new(), good()],
            1,
            "whether it acted is unknown",
        ),
        (
            "told to wait longer than there is time",
            retry,
            vec![
                answer("503 Service Unavailable", "retry-after: 3600\r\n", ""),
                good(),
            ],
            1,
            "503",
        ),
    ] {
        let service = Raw::start(move |number| match script.get(number) {
            Some(bytes) if bytes.is_empty() => Act::Reset,
            Some(bytes) => Act::Say(bytes.clone()),
            None => Act::Reset,
        })
        .await;
        let way = Way::of(retrying(&service.url(), retry)).await;
        let result = way.read().await;
        assert!(said(&result).contains(reads), "{what}: {result}");
        assert_eq!(service.requests(), requests, "{what}");
        assert_eq!(way.outcome().await["upstream_requests"], requests, "{what}");
        way.close().await;
    }
}

#[tokio::test]
async fn a_read_waits_as_long_as_the_service_asks_before_it_tries_again() {
    let service = Raw::start(|number| match number {
        0 => Act::Say(answer("503 Service Unavailable", "retry-after: 2\r\n", "")),
        _ => Act::Say(answer("200 OK", JSON, "{\"id\":\"o-1\"}")),
    })
    .await;
    let way = Way::of(retrying(&service.url(), "{ attempts = 2, on = [503] }")).await;
    let began = std::time::Instant::now();
    let result = way.read().await;
    assert_eq!(result["structuredContent"]["id"], "o-1", "{result}");
    assert!(began.elapsed().as_millis() >= 2_000, "{:?}", began.elapsed());
    assert_eq!(service.requests(), 2);
    way.close().await;
}

#[tokio::test]
async fn a_service_that_is_not_there_got_nothing_and_the_ledger_says_so() {
    let port = {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        taken.local_addr().unwrap().port()
    };
    let way = Way::of(retrying(
        &format!("http://127.0.0.1:{port}"),
        "{ attempts = 2, on = [503] }",
    ))
    .await;
    for (tool, arguments) in [
        ("orders_read", json!({"id":"o-1"})),
        ("orders_note", json!({"id":"o-1","text":"x"})),
    ] {
        let result = way.ada.call(tool, arguments).await;
        assert_eq!(
            said(&result),
            "the service behind this tool could not be reached; nothing was sent",
            "{result}"
        );
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "upstream-unreachable");
        assert_eq!(outcome["state"], "failed");
        assert_eq!(outcome["upstream_requests"], 0);
    }
    way.close().await;
}
