//! `Host` and `Origin` at the HTTP port of the built binary: who is let in, and what pages of which origin may read.

use e2e::client::{Http, MODERN, Mcp, opening};
use e2e::desk::{Plan, list};
use e2e::house::close;
use e2e::socket::Socket;
use http::Method;

#[tokio::test]
async fn hl_18_hm_12_sec_07_only_known_hosts_and_origins_are_let_in() {
    let (desk, gate) = Plan::new()
        .line("allowed_hosts = [\"internal.example:8443\"]")
        .line("allowed_origins = [\"https://app.example\"]")
        .serve()
        .await;
    let ada = desk.modern(&gate, "ada");
    let port = gate.authority().rsplit(':').next().unwrap().to_owned();
    let here = format!("localhost:{port}");
    let page = format!("http://127.0.0.1:{port}");
    for (host, origin, status) in [
        (None, None, 200),
        (Some(here.as_str()), None, 200),
        (Some("internal.example:8443"), None, 200),
        (Some("internal.example"), None, 403),
        (Some("127.0.0.1"), None, 403),
        (Some("evil.example"), None, 403),
        (None, Some("https://app.example"), 200),
        (None, Some(page.as_str()), 200),
        (None, Some("null"), 403),
        (None, Some("https://app.example.evil.example"), 403),
        (None, Some("http://localhost:3000"), 403),
    ] {
        for revision in ["2025-11-25", MODERN] {
            let mut change = Vec::new();
            change.extend(host.map(|host| ("host", Some(host))));
            change.extend(origin.map(|origin| ("origin", Some(origin))));
            let message = if revision == MODERN {
                list(&ada)
            } else {
                opening(revision)
            };
            let client = Mcp {
                revision: revision.to_owned(),
                ..ada.clone()
            };
            let answer = client.post_with(&message, &change).await;
            assert_eq!(answer.status, status, "{host:?} {origin:?}: {}", answer.text());
            assert_eq!(
                answer.header("access-control-allow-origin"),
                origin.filter(|_| status == 200),
                "{host:?} {origin:?}"
            );
        }
    }
    // No `Host` at all, and one that the request line contradicts.
    let mut socket = Socket::open(gate.authority()).await;
    socket
        .write("POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(socket.response().await.unwrap().status, 400);
    let mut socket = Socket::open(gate.authority()).await;
    let request = format!(
        "GET http://evil.example/mcp HTTP/1.1\r\nHost: {}\r\n\r\n",
        gate.authority()
    );
    socket.write(request).await;
    assert_eq!(socket.response().await.unwrap().status, 400);
    close(gate).await;
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_gets_its_preflight_and_no_other_does() {
    let (desk, gate) = Plan::new()
        .line("allowed_origins = [\"https://app.example\"]")
        .serve()
        .await;
    let http = Http::new();
    let ask = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization, content-type, mcp-method, Mcp-Param-Region, x-other",
            ),
        ];
        http.send(Method::OPTIONS, &gate.url, &headers, "").await
    };
    let allowed = ask("https://app.example").await;
    assert_eq!(allowed.status, 204);
    assert_eq!(
        allowed.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(allowed.header("vary"), Some("Origin"));
    assert!(allowed.header("access-control-allow-credentials").is_none());
    let words = |name: &str| allowed.header(name).unwrap_or_default().to_ascii_lowercase();
    for verb in ["get", "post", "delete"] {
        assert!(words("access-control-allow-methods").contains(verb), "{verb}");
    }
    let allowed_names: Vec<&str> = allowed
        .headers
        .get_all("access-control-allow-headers")
        .iter()
        .map(|value| value.to_str().unwrap())
        .collect();
    assert!(allowed_names.contains(&"Mcp-Param-Region"), "{allowed_names:?}");
    assert!(!allowed_names.join(",").contains("x-other"), "{allowed_names:?}");
    for name in [
        "authorization",
        "content-type",
        "accept",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "last-event-id",
    ] {
        assert!(words("access-control-allow-headers").contains(name), "{name}");
    }
    let refused = ask("https://evil.example").await;
    assert_eq!(refused.status, 403);
    assert!(refused.header("access-control-allow-origin").is_none());
    // The answer itself can be read by the page, with what it needs to go on.
    let client = Mcp {
        revision: "2025-11-25".to_owned(),
        ..desk.modern(&gate, "ada")
    };
    let answer = client
        .post_with(&opening("2025-11-25"), &[("origin", Some("https://app.example"))])
        .await;
    assert_eq!(answer.status, 200);
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"));
    close(gate).await;
}
