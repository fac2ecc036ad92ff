//! Bodies and headers at the HTTP port: each limit at its value and one past it, what comes slowly, and bytes that two readers
//! could understand differently.

use e2e::client::{MODERN, verdict};
use e2e::desk::{Plan, list, look};
use e2e::house::close;
use e2e::socket::{Socket, post};
use serde_json::json;

// === sizes and times ===

#[tokio::test]
async fn a_body_passes_at_its_limit_and_not_one_byte_past_it_however_it_is_sent() {
    const MAX: usize = 2_048;
    let (desk, gate) = Plan::new().limit("body_bytes_max", MAX).serve().await;
    let ada = desk.modern(&gate, "ada");
    let message = list(&ada);
    let of_length = |length: usize| {
        let text = message.to_string();
        format!("{text}{}", " ".repeat(length - text.len()))
    };
    assert_eq!(ada.post_bytes(&message, of_length(MAX)).await.status, 200);
    let answer = ada.post_bytes(&message, of_length(MAX + 1)).await;
    assert_eq!(verdict(&answer), "413 -32600");

    let more = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\n");
    let chunked = async |length: usize| {
        let mut socket = Socket::open(gate.authority()).await;
        let head = post(
            gate.authority(),
            desk.key("ada"),
            &format!("{more}Transfer-Encoding: chunked\r\n"),
            b"",
        );
        socket.write(head).await;
        let body = of_length(length);
        for part in body.as_bytes().chunks(1_000) {
            socket
                .write([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat())
                .await;
        }
        socket.write("0\r\n\r\n").await;
        socket.response().await.unwrap().status
    };
    assert_eq!(chunked(MAX).await, 200);
    assert_eq!(chunked(MAX + 1).await, 413);
    // A length that is announced is believed: nothing of the body is waited for.
    let mut socket = Socket::open(gate.authority()).await;
    let announced = format!("{more}Content-Length: {}\r\n", MAX + 1);
    socket
        .write(post(gate.authority(), desk.key("ada"), &announced, b""))
        .await;
    assert_eq!(socket.response().await.unwrap().status, 413);
    // A length that cannot be one is no reason to fall over.
    for length in ["99999999999999999999999", "-1", "x"] {
        let mut socket = Socket::open(gate.authority()).await;
        let announced = format!("{more}Content-Length: {length}\r\n");
        socket
            .write(post(gate.authority(), desk.key("ada"), &announced, b""))
            .await;
        assert_eq!(socket.response().await.unwrap().status, 400, "{length}");
    }
    // Two ways to say the length at once are how requests are smuggled.
    let mut socket = Socket::open(gate.authority()).await;
    let both = format!("{more}Content-Length: 5\r\nContent-Length: 6\r\n");
    socket
        .write(post(gate.authority(), desk.key("ada"), &both, b"hello"))
        .await;
    assert_eq!(socket.response().await.unwrap().status, 400);
    assert_eq!(ada.post(&message).await.status, 200, "and the gate goes on");
    close(gate).await;
}

#[tokio::test]
async fn headers_pass_at_their_limit_and_not_past_it() {
    const MAX: usize = 8_192;
    let (desk, gate) = Plan::new().limit("headers_bytes_max", MAX).serve().await;
    let ada = desk.modern(&gate, "ada");
    let body = list(&ada).to_string();
    let of_length = |length: usize| {
        let request = |padding: &str| {
            let more = format!(
                "MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\nContent-Length: {}\r\nX-Padding: {padding}\r\n",
                body.len()
            );
            post(gate.authority(), desk.key("ada"), &more, b"")
        };
        let padding = "x".repeat(length - request("").len());
        let head = request(&padding);
        assert_eq!(head.len(), length);
        head
    };
    let status = async |head: Vec<u8>| {
        let mut socket = Socket::open(gate.authority()).await;
        socket.write(head).await;
        socket.write(&body).await;
        socket.response().await.map(|response| response.status)
    };
    assert_eq!(status(of_length(MAX - 1)).await, Some(200));
    assert_eq!(status(of_length(MAX + 1)).await, Some(431));
    assert_eq!(status(of_length(20 * MAX)).await, Some(431));
    let many = |count: usize| {
        let more: String = (0..count).map(|index| format!("X-{index}: y\r\n")).collect();
        let fixed = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\n");
        post(
            gate.authority(),
            desk.key("ada"),
            &format!("{fixed}Content-Length: {}\r\n{more}", body.len()),
            b"",
        )
    };
    // Seven headers are there already.
    assert_eq!(status(many(93)).await, Some(200));
    assert_eq!(status(many(94)).await, Some(431));
    assert_eq!(ada.post(&list(&ada)).await.status, 200, "and the gate goes on");
    close(gate).await;
}

#[tokio::test]
async fn a_client_that_sends_slowly_or_nothing_does_not_hold_its_place_for_ever() {
    let (desk, gate) = Plan::new()
        .limit("headers_timeout", "\"200ms\"")
        .limit("body_timeout", "\"200ms\"")
        .limit("connections_max", 2)
        .serve()
        .await;
    let ada = desk.modern(&gate, "ada");
    // Whatever was sent before the silence: the connection ends, with an error or without.
    for start in [
        "",
        "P",
        "PRI * HT",
        "POST /mcp HT",
        "POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    ] {
        let mut socket = Socket::open(gate.authority()).await;
        socket.write(start).await;
        let said = String::from_utf8(socket.end().await).unwrap();
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 4"),
            "{start:?}: {said}"
        );
    }
    // A body that does not come is answered.
    let more = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/list\r\nContent-Length: 500\r\n");
    let mut socket = Socket::open(gate.authority()).await;
    socket
        .write(post(gate.authority(), desk.key("ada"), &more, b"{\"jsonrpc\":"))
        .await;
    assert_eq!(socket.response().await.unwrap().status, 408);
    // One that breaks off harms nobody.
    let mut socket = Socket::open(gate.authority()).await;
    socket
        .write(post(gate.authority(), desk.key("ada"), &more, b"{\"jsonrpc\":"))
        .await;
    drop(socket);
    assert_eq!(
        ada.post(&list(&ada)).await.status,
        200,
        "both places are free again"
    );
    close(gate).await;
}

// === bytes ===

#[tokio::test]
async fn bytes_that_two_readers_could_understand_differently_are_refused() {
    let (desk, gate) = Plan::new().limit("json_depth_max", 8).serve().await;
    let ada = desk.modern(&gate, "ada");
    let good = look(&ada, 1);
    let text = good.to_string();
    let arguments = |arguments: &str| text.replace(r#"{"id":"a"}"#, arguments);
    for (body, expected, what) in [
        (b"\xff\xfe".to_vec(), "400 -32700", "no UTF-8"),
        (
            text.replace('a', "\u{0}").into_bytes(),
            "400 -32700",
            "a raw control character",
        ),
        (
            [&text.as_bytes()[..20], b"\xc3\x28", &text.as_bytes()[20..]].concat(),
            "400 -32700",
            "broken UTF-8",
        ),
        (Vec::new(), "400 -32700", "nothing"),
        (b"{} {}".to_vec(), "400 -32700", "two values"),
        (b"7".to_vec(), "400 -32600", "no object"),
        (
            text.replacen(r#""id":1"#, r#""id":null"#, 1).into_bytes(),
            "400 -32600",
            "BASE-01: null is no id",
        ),
        (
            text.replacen(r#""id":1"#, r#""id":1.5"#, 1).into_bytes(),
            "400 -32600",
            "BASE-01: nor is a fraction",
        ),
        (
            text.replacen(r#""id":1"#, r#""id":1,"id":2"#, 1).into_bytes(),
            "400 -32600",
            "two ids",
        ),
        (
            text.replace(r#""jsonrpc":"2.0""#, r#""jsonrpc":"1.0""#)
                .into_bytes(),
            "400 -32600",
            "BASE-01",
        ),
        (
            text.replacen('{', r#"{"result":{},"#, 1).into_bytes(),
            "400 -32600",
            "BASE-05: request and response",
        ),
        (
            arguments(r#"{"id":"a","id":"b"}"#).into_bytes(),
            "200 -32602",
            "two values for one argument",
        ),
        (
            arguments(r#"{"id":9007199254740993}"#).into_bytes(),
            "200 -32602",
            "an integer past 2^53",
        ),
        (
            text.replacen('{', r#"{"x":{"k":1,"k":2},"#, 1).into_bytes(),
            "400 -32600",
            "two keys further in",
        ),
    ] {
        let answer = ada.post_bytes(&good, body).await;
        assert_eq!(verdict(&answer), expected, "{what}: {}", answer.text());
    }
    // Depth: the message is 1, its parameters 2, the arguments 3; and the arguments are counted from 1 again.
    let nested = |depth: usize| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    let envelope = |depth: usize| text.replacen('{', &format!(r#"{{"x":{},"#, nested(depth - 1)), 1);
    assert_eq!(verdict(&ada.post_bytes(&good, envelope(8)).await), "200 result");
    assert_eq!(verdict(&ada.post_bytes(&good, envelope(9)).await), "400 -32600");
    // Deep but read: the schema refuses it, as a failed result. One deeper is not read at all.
    let answer = ada.post_bytes(&good, arguments(&nested(8))).await;
    assert_eq!(answer.json()["result"]["isError"], true, "{}", answer.text());
    assert_eq!(
        verdict(&ada.post_bytes(&good, arguments(&nested(9))).await),
        "200 -32602"
    );
    assert_eq!(
        verdict(&ada.post_bytes(&good, "[".repeat(100_000)).await),
        "400 -32600"
    );
    assert_eq!(
        desk.service.count(),
        1,
        "only what was understood was carried out"
    );
    close(gate).await;
}

#[tokio::test]
async fn base_01_an_id_comes_back_with_its_own_type() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let old = desk.legacy(&gate, "ada", "2025-03-26").await;
    for client in [&ada, &old] {
        for id in [
            json!(0),
            json!(-7),
            json!(9_007_199_254_740_991_i64),
            json!("7"),
            json!(""),
            json!("ünï"),
        ] {
            for message in [
                list(client),
                look(client, 1),
                client.request(1, "nonsense", json!({})),
            ] {
                let mut message = message;
                message["id"] = id.clone();
                assert_eq!(client.post(&message).await.json()["id"], id);
            }
        }
    }
    close(gate).await;
}
