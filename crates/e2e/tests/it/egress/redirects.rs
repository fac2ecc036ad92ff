//! Answers that point elsewhere.

use e2e::orders;
use e2e::raw::{Act, Raw, answer};
use e2e::service::Service;
use e2e::service::json as json_answer;
use serde_json::json;

use super::{Way, said};

/// A service that sends `/orders/o-1` elsewhere.
async fn redirecting(status: u16, to: String) -> Service {
    Service::start(move |arrived| {
        if arrived.target.starts_with("/orders/o-1") {
            axum::response::Response::builder()
                .status(status)
                .header("location", &to)
                .body(axum::body::Body::empty())
                .unwrap()
        } else {
            json_answer(200, &orders::order())
        }
    })
    .await
}

const SAME_ORIGIN: (&str, &str) = (
    "destination = \"env:ORDERS_URL\"",
    "destination = \"env:ORDERS_URL\"\nredirects = \"same-origin\"",
);

#[tokio::test]
async fn a_redirect_is_not_followed_unless_it_was_declared() {
    for status in [301, 302, 303, 307, 308] {
        let service = redirecting(status, "/elsewhere".to_owned()).await;
        let way = Way::to(&service.url()).await;
        let result = way.read().await;
        assert_eq!(result["isError"], true, "{status}: {result}");
        assert!(!said(&result).contains("elsewhere"), "{status}: {result}");
        assert_eq!(service.count(), 1, "{status}");
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "result-invalid", "{status}");
        assert_eq!(outcome["status"], status);
        assert_eq!(outcome["upstream_requests"], 1, "{status}");
        way.close().await;
    }
}

#[tokio::test]
async fn a_declared_redirect_leads_to_the_same_origin_and_every_request_of_it_is_counted() {
    let service = redirecting(307, "/elsewhere?x=1".to_owned()).await;
    let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
    let way = Way::of(house).await;
    let result = way.read().await;
    assert_eq!(result["structuredContent"], orders::order(), "{result}");
    let targets: Vec<String> = service.arrived().into_iter().map(|one| one.target).collect();
    assert_eq!(targets, ["/orders/o-1", "/elsewhere?x=1"]);
    assert_eq!(way.outcome().await["upstream_requests"], 2);

    // A call that changes state is not repeated elsewhere, declared or not.
    for (tool, arguments) in [
        ("orders_note", json!({"id":"o-1","text":"x"})),
        ("orders_drop", json!({"id":"o-1"})),
    ] {
        let before = service.count();
        let result = way.ada.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(service.count() - before, 1, "{tool}");
        assert_eq!(way.outcome().await["upstream_requests"], 1, "{tool}");
    }
    way.close().await;
}

#[tokio::test]
async fn a_declared_redirect_that_leads_round_in_circles_ends() {
    let service = redirecting(302, "/orders/o-1".to_owned()).await;
    let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
    let way = Way::of(house).await;
    let result = way.read().await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(service.count(), 4, "the request and three redirects");
    let outcome = way.outcome().await;
    assert_eq!(outcome["upstream_requests"], 4, "{outcome}");
    assert_eq!(outcome["refusal"], "result-invalid", "{outcome}");
    way.close().await;
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_never_followed() {
    let elsewhere = Raw::start(|_| Act::Say(answer("200 OK", "", "{}"))).await;
    let port = elsewhere.address.port();
    for to in [
        format!("http://127.0.0.1:{port}/orders/o-1"),
        format!("http://localhost:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("\\\\127.0.0.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://127.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
    ] {
        let service = redirecting(302, to.clone()).await;
        let house = orders::house(&service.url()).with_change("tollhouse.toml", SAME_ORIGIN.0, SAME_ORIGIN.1);
        let way = Way::of(house).await;
        let result = way.read().await;
        assert_eq!(result["isError"], true, "{to}: {result}");
        let outcome = way.outcome().await;
        assert_eq!(outcome["refusal"], "result-invalid", "{to}: {outcome}");
        assert_eq!(outcome["upstream_requests"], 1, "{to}: {outcome}");
        assert_eq!(service.count(), 1, "{to}");
        way.close().await;
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_redirect_whose_second_request_cannot_be_sent_is_not_told_as_nothing_sent() {
    // It answers once and is gone: the connection that the redirect needs cannot be made.
    let once = Raw::start_once(|_| {
        Act::SayAndClose(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .into(),
        )
    })
    .await;
    let house = orders::house(&format!("http://{}", once.address)).with_change(
        "tollhouse.toml",
        SAME_ORIGIN.0,
        SAME_ORIGIN.1,
    );
    let way = Way::of(house).await;
    let result = way.read().await;
    assert_eq!(said(&result), super::BROKE, "{result}");
    let outcome = way.outcome().await;
    assert_eq!(outcome["refusal"], "upstream-broken", "{outcome}");
    assert_eq!(
        (&outcome["state"], &outcome["upstream_requests"]),
        (&json!("unknown"), &json!(1)),
        "{outcome}"
    );
    way.close().await;
}
