//! POSTs through the HTTP port of the built binary: the order of the checks, verbs, media types, what is not a request, and
//! connections. Every message that comes back is held against its revision's schema.

use e2e::client::{Change, Http, LEGACY, MODERN, Mcp, opening, verdict};
use e2e::desk::{Desk, Plan, list, look};
use e2e::house::close;
use e2e::schema::{assert_answer, assert_message};
use e2e::socket::{Response, Socket, post};
use http::Method;
use serde_json::{Value, json};

// === the order ===

#[tokio::test]
async fn c1_the_checks_of_a_post_come_in_their_order() {
    let (desk, gate) = Plan::new().limit("body_bytes_max", 2_000).serve().await;
    let ada = desk.modern(&gate, "ada");
    let good = look(&ada, 1);
    // A request with every fault at once; each step takes the first of them away.
    let (large, no_json) = ("x".repeat(2_001), "{".to_owned());
    let foreign = [
        ("host", Some("evil.example")),
        ("origin", Some("https://evil.example")),
    ];
    let unsigned = ("authorization", None);
    let text = ("content-type", Some("text/plain"));
    let html = ("accept", Some("text/html"));
    let origin = [foreign[1]];
    let tell = async |method: Method, change: &[(&'static str, Option<&str>)], body: &str| {
        let sent = ada.send(method, &good, change, body.to_owned());
        sent.await.whole().await
    };
    let put = Method::PUT;
    let steps: [(&str, &Method, Change<'_>, &str, u16); 7] = [
        (
            "Host",
            &put,
            &[foreign[0], foreign[1], unsigned, text, html],
            &large,
            403,
        ),
        ("Origin", &put, &[origin[0], unsigned, text, html], &large, 403),
        ("who it is", &put, &[unsigned, text, html], &large, 401),
        ("the verb", &put, &[text, html], &large, 405),
        ("the media type", &Method::POST, &[text, html], &large, 415),
        ("what is accepted", &Method::POST, &[html], &large, 406),
        ("the size", &Method::POST, &[], &large, 413),
    ];
    for (what, method, change, body, status) in steps {
        let answer = tell(method.clone(), change, body).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert_eq!(
            answer.header("www-authenticate").is_some(),
            status == 401,
            "{what}"
        );
        if status != 401 {
            assert_message(MODERN, &answer.json());
        }
    }
    let answer = tell(Method::POST, &[], &no_json).await;
    assert_eq!(verdict(&answer), "400 -32700");
    assert!(answer.json().get("id").is_none(), "BASE-06");
    let array = format!("[{good}]");
    assert_eq!(verdict(&tell(Method::POST, &[], &array).await), "400 -32600");

    // From here on the body is JSON, and the faults are inside.
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let mut message = good.clone();
    message["method"] = json!("nonsense");
    message["params"]["_meta"] = json!({});
    let wrong: [(&'static str, Option<&str>); 2] = [
        ("mcp-protocol-version", Some("2031-01-01")),
        ("mcp-method", Some("other")),
    ];
    let mut change = wrong.to_vec();
    let mut steps = Vec::new();
    steps.push(verdict(&ada.post_with(&message, &change).await));
    message["params"]["_meta"][version] = json!("2032-01-01");
    steps.push(verdict(&ada.post_with(&message, &change).await));
    message["params"]["_meta"][version] = json!("2031-01-01");
    steps.push(verdict(&ada.post_with(&message, &change).await));
    change.remove(0);
    message["params"]["_meta"][version] = json!(MODERN);
    steps.push(verdict(&ada.post_with(&message, &change).await));
    message["params"]["_meta"][capabilities] = json!({});
    steps.push(verdict(&ada.post_with(&message, &change).await));
    change[0].1 = Some("nonsense");
    steps.push(verdict(&ada.post_with(&message, &change).await));
    message["method"] = json!("tools/call");
    message["params"]["arguments"] = json!([1]);
    change[0].1 = Some("tools/call");
    change.push(("mcp-name", Some("other")));
    steps.push(verdict(&ada.post_with(&message, &change).await));
    change.pop();
    steps.push(verdict(&ada.post_with(&message, &change).await));
    message["params"]["arguments"] = json!({"id":"a"});
    steps.push(verdict(&ada.post_with(&message, &change).await));
    assert_eq!(
        steps,
        [
            "400 -32602", // no version in the body
            "400 -32020", // header and body name two versions
            "400 -32022", // one that is not served
            "400 -32602", // no capabilities
            "400 -32020", // another method in the header
            "404 -32601", // an unknown method
            "400 -32020", // another name in the header
            "200 -32602", // arguments that are none
            "200 result",
        ]
    );
    assert_eq!(desk.service.count(), 1, "only the last one reached the service");
    close(gate).await;
}

#[tokio::test]
async fn hl_01_hm_01_hl_08_each_verb_has_its_answer_in_each_era() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let old = desk.legacy(&gate, "ada", "2025-11-25").await;
    let none = Mcp {
        session: None,
        revision: "2025-11-25".to_owned(),
        ..ada.clone()
    };
    for (client, era) in [(&ada, "stateless"), (&none, "no session"), (&old, "in a session")] {
        for method in [
            Method::PUT,
            Method::PATCH,
            Method::HEAD,
            Method::TRACE,
            Method::GET,
            Method::DELETE,
        ] {
            if era == "in a session" && matches!(method, Method::GET | Method::DELETE) {
                continue;
            }
            let answer = client
                .send(
                    method.clone(),
                    &Value::Null,
                    &[("accept", Some("text/event-stream"))],
                    "",
                )
                .await
                .whole()
                .await;
            assert_eq!(answer.status, 405, "{era} {method}");
            let allow = answer.header("allow").unwrap();
            assert!(allow.contains("POST"), "{era} {method}: {allow}");
            if matches!(method, Method::GET | Method::DELETE) {
                assert!(!allow.contains(method.as_str()), "{era} {method}: {allow}");
            }
        }
        let answer = client
            .send(Method::OPTIONS, &Value::Null, &[], "")
            .await
            .whole()
            .await;
        assert_eq!(answer.status, 204, "{era}");
    }
    // HL-08: with a session, GET opens a stream, for a reader of streams only.
    let answer = old
        .send(
            Method::GET,
            &Value::Null,
            &[("accept", Some("application/json"))],
            "",
        )
        .await
        .whole()
        .await;
    assert_eq!(answer.status, 406);
    let stream = old.listen(None).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    drop(stream);
    assert_eq!(old.end().await.status, 204);
    // Other paths are not the endpoint.
    for path in ["/", "/mcp/", "/mcp/x", "/sse"] {
        let url = format!("{}{path}", gate.base());
        let answer = Http::new().send(Method::POST, &url, &[], "{}").await;
        assert_eq!(answer.status, 404, "{path}");
    }
    close(gate).await;
}

// === media types ===

#[tokio::test]
async fn hl_02_hl_04_hm_08_an_answer_comes_in_a_form_that_the_client_takes() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let old = desk.legacy(&gate, "ada", "2025-06-18").await;
    for client in [&ada, &old] {
        // What is wrong with a request, but told with 200, comes in the same form.
        let wrong = client.request(1, "tools/list", json!({"cursor":"x"}));
        let odd = client.request(1, "tools/list", json!({"cursor":7}));
        for message in [list(client), look(client, 1), wrong, odd] {
            let method = message["method"].as_str().unwrap();
            for (accept, media) in [
                (Some("application/json, text/event-stream"), "application/json"),
                (
                    Some("text/event-stream, application/json;q=0.1"),
                    "application/json",
                ),
                (Some("*/*"), "application/json"),
                (Some("application/*"), "application/json"),
                (None, "application/json"),
                (Some("application/json"), "application/json"),
                (Some("text/event-stream"), "text/event-stream"),
                (
                    Some("application/json;q=0, text/event-stream"),
                    "text/event-stream",
                ),
            ] {
                let answer = client.post_with(&message, &[("accept", accept)]).await;
                assert_eq!(answer.status, 200, "{accept:?}: {}", answer.text());
                assert_eq!(answer.header("content-type"), Some(media), "{accept:?}");
                assert_answer(&client.revision, method, &answer.json());
                assert_eq!(answer.header("cache-control"), Some("no-store"), "CACHE-07");
                assert_eq!(
                    answer.header("x-accel-buffering"),
                    (media == "text/event-stream").then_some("no"),
                    "HM-10"
                );
            }
        }
        for accept in ["text/html", "application/json;q=0", "application/xml, text/plain"] {
            let answer = client.post_with(&list(client), &[("accept", Some(accept))]).await;
            assert_eq!(answer.status, 406, "{accept}");
        }
        for media in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=x"),
            Some("application/jsonx"),
        ] {
            let answer = client.post_with(&list(client), &[("content-type", media)]).await;
            assert_eq!(answer.status, 415, "{media:?}");
        }
        let utf8 = [("content-type", Some("application/json; charset=utf-8"))];
        assert_eq!(client.post_with(&list(client), &utf8).await.status, 200);
    }
    // So does the answer to the handshake.
    for revision in LEGACY {
        let client = Mcp {
            session: None,
            revision: revision.to_owned(),
            ..ada.clone()
        };
        for media in ["application/json", "text/event-stream"] {
            let answer = client
                .post_with(&opening(revision), &[("accept", Some(media))])
                .await;
            assert_eq!(answer.header("content-type"), Some(media), "{revision}");
            assert_answer(revision, "initialize", &answer.json());
            assert!(answer.header("mcp-session-id").is_some(), "{revision}");
        }
    }
    close(gate).await;
}

// === what is not a request ===

#[tokio::test]
async fn base_04_hl_03_hm_07_notifications_and_responses_are_accepted_without_a_word() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let notice = |method: &str, params: Value| json!({"jsonrpc":"2.0","method":method,"params":params});
    let mut call = look(&ada, 1);
    call.as_object_mut().unwrap().remove("id");
    let mut clients = vec![ada.clone()];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    for client in &clients {
        let mut messages = vec![
            notice("notifications/initialized", json!({})),
            notice("notifications/cancelled", json!({"requestId":404,"reason":"x"})),
            notice("notifications/cancelled", json!({"requestId":{"no":"id"}})),
            notice("notifications/nonsense", json!({})),
            // A request method without an id is a notification: it is not carried out.
            call.clone(),
        ];
        if client.revision != MODERN {
            messages.push(json!({"jsonrpc":"2.0","id":77,"result":{}}));
            messages.push(json!({"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}));
        }
        for message in messages {
            let answer = client.post(&message).await;
            assert_eq!(
                (answer.status.as_u16(), answer.text()),
                (202, String::new()),
                "{message}"
            );
        }
    }
    // HM-07: in 2026 the header rules do not hold for notifications. HM-02: and a response is none of its bodies.
    let bare = ada
        .post_with(
            &notice("notifications/x", json!({})),
            &[("mcp-method", Some("something/else"))],
        )
        .await;
    assert_eq!(bare.status, 202);
    let answer = ada.post(&json!({"jsonrpc":"2.0","id":77,"result":{}})).await;
    assert_eq!(verdict(&answer), "400 -32600");
    assert_eq!(desk.service.count(), 0, "nothing was carried out");
    // The same with an id is, so the zero means something.
    ada.call("desk_look", json!({"id":"a"})).await;
    assert_eq!(desk.service.count(), 1);
    close(gate).await;
}

#[tokio::test]
async fn tool_08_mrtr_06_what_is_wrong_with_a_call_is_told_in_the_form_that_fits() {
    let (desk, gate) = Plan::new().serve().await;
    let mut clients = vec![desk.modern(&gate, "ada")];
    for revision in LEGACY {
        clients.push(desk.legacy(&gate, "ada", revision).await);
    }
    for client in &clients {
        let call = async |params: Value| {
            let answer = client.post(&client.request(1, "tools/call", params)).await;
            assert_eq!(answer.status, 200);
            assert_answer(&client.revision, "tools/call", &answer.json());
            answer.json()
        };
        // An error of the protocol: the call itself is malformed, or there is no such tool.
        for params in [
            json!({"name":"desk_nothing","arguments":{}}),
            json!({"name":"","arguments":{}}),
            json!({"name":"desk_look","arguments":[1]}),
            json!({"name":"desk_look","arguments":null}),
            json!({"arguments":{}}),
            json!({"name":"desk_look","arguments":{"id":"a"},"requestState":"mine"}),
        ] {
            let message = call(params.clone()).await;
            assert_eq!(message["error"]["code"], -32602, "{} {params}", client.revision);
        }
        // A failed result, which the model can read and act on: everything behind that.
        for (arguments, word) in [
            (json!({}), "id"),
            (json!({"id":7}), "id"),
            (json!({"id":"a","tenant":"north"}), "tenant"),
        ] {
            let message = call(json!({"name":"desk_look","arguments":arguments})).await;
            assert_eq!(message["result"]["isError"], true, "{}", client.revision);
            let text = message["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(word), "{text}");
        }
    }
    assert_eq!(desk.service.count(), 0);
    close(gate).await;
}

// === connections ===

#[tokio::test]
async fn http_2_is_spoken_to_whoever_begins_with_it() {
    let (desk, gate) = Plan::new().serve().await;
    let one = desk.modern(&gate, "ada");
    let two = Mcp {
        http: Http::two(),
        ..one.clone()
    };
    let calls = (0..20).map(|index| {
        let two = two.clone();
        async move { two.call("desk_look", json!({"id":format!("t{index}")})).await }
    });
    for (index, result) in futures_util::future::join_all(calls)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(result["structuredContent"]["id"], format!("t{index}"));
    }
    let stranger = Mcp {
        token: None,
        ..two.clone()
    };
    assert_eq!(stranger.post(&list(&stranger)).await.status, 401);
    let foreign = two
        .post_with(&list(&two), &[("origin", Some("https://evil.example"))])
        .await;
    assert_eq!(foreign.status, 403);
    // A session over both: the connection is not what it hangs on.
    let over_two = Mcp {
        http: Http::two(),
        ..desk.legacy(&gate, "ada", "2025-11-25").await
    };
    assert_eq!(over_two.ask("ping", json!({})).await["result"], json!({}));
    close(gate).await;
}

#[tokio::test]
async fn requests_that_come_together_on_one_connection_are_answered_in_their_order() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let mut bytes = Vec::new();
    for id in 0..5 {
        let body = look(&ada, id).to_string();
        let more = format!(
            "MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: desk_look\r\nContent-Length: {}\r\n",
            body.len()
        );
        bytes.extend(post(gate.authority(), desk.key("ada"), &more, body.as_bytes()));
    }
    let mut socket = Socket::open(gate.authority()).await;
    // In pieces that end anywhere.
    for piece in bytes.chunks(700) {
        socket.write(piece).await;
    }
    for id in 0..5 {
        let Response { status, .. } = {
            let response = socket.response().await.unwrap();
            assert_answer(MODERN, "tools/call", &response.json());
            assert_eq!(response.json()["id"], id);
            response
        };
        assert_eq!(status, 200);
    }
    assert_eq!(desk.service.count(), 5);
    close(gate).await;
}

#[tokio::test]
async fn auth_01_auth_02_auth_06_every_request_shows_who_it_is_also_inside_a_session() {
    let (desk, gate) = Plan::new().serve().await;
    let old = desk.legacy(&gate, "ada", "2025-11-25").await;
    let ping = old.request(1, "ping", json!({}));
    let key = desk.key("ada");
    let altered = format!("Bearer {}x", &key[..key.len() - 1]);
    for authorization in [
        None,
        Some("Bearer nonsense"),
        Some("Basic YTpi"),
        Some(altered.as_str()),
    ] {
        let change = [("authorization", authorization)];
        let posted = old.post_with(&ping, &change).await;
        let mut answers = vec![posted];
        for method in [Method::GET, Method::DELETE] {
            answers.push(old.send(method, &Value::Null, &change, "").await.whole().await);
        }
        for answer in answers {
            assert_eq!(answer.status, 401, "{authorization:?}");
            let challenge = answer.header("www-authenticate").unwrap();
            assert!(
                challenge.contains("/.well-known/oauth-protected-resource/mcp\""),
                "{challenge}"
            );
        }
    }
    // Never in the query.
    let url = format!("{}?access_token={key}", gate.url);
    let in_query = Mcp {
        url,
        token: None,
        ..old.clone()
    };
    assert_eq!(in_query.post(&ping).await.status, 401);
    assert_eq!(
        old.ask("ping", json!({})).await["result"],
        json!({}),
        "the session stands"
    );
    // The pointer leads somewhere.
    let url = format!("{}/.well-known/oauth-protected-resource/mcp", gate.base());
    let metadata = Http::new().send(Method::GET, &url, &[], "").await;
    assert_eq!(
        (metadata.status.as_u16(), &metadata.json()["resource"]),
        (200, &json!(gate.url))
    );
    close(gate).await;
    drop::<Desk>(desk);
}
