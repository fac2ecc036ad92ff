//! POSTs through the HTTP port of the built binary: the order of the checks, headers against body, limits at the limit and
//! one past it, both eras on one endpoint. Every message that comes back is held against its revision's schema.

use e2e::client::{Answer, Http, LEGACY, MODERN, Mcp, opening};
use e2e::desk::{Desk, Plan};
use e2e::house::Gate;
use e2e::schema::{assert_answer, assert_message};
use e2e::socket::{Response, Socket};
use http::Method;
use serde_json::{Value, json};

/// Headers that differ from those of a good request: another value, or none.
type Change<'a> = &'a [(&'static str, Option<&'a str>)];

/// `status code`, of an answer that is held against the newest schema; `status -` for one without a body.
fn verdict(answer: &Answer) -> String {
    if answer.body.is_empty() {
        return format!("{} -", answer.status.as_u16());
    }
    let message = answer.json();
    assert_message(MODERN, &message);
    match message["error"]["code"].as_i64() {
        Some(code) => format!("{} {code}", answer.status.as_u16()),
        None => format!("{} result", answer.status.as_u16()),
    }
}

fn look(client: &Mcp, id: impl Into<Value>) -> Value {
    client.request(
        id,
        "tools/call",
        json!({"name":"desk_look","arguments":{"id":"a"}}),
    )
}

fn list(client: &Mcp) -> Value {
    client.request(1, "tools/list", json!({}))
}

/// The text of a request as a browser or a program would write it, for a socket.
fn raw(gate: &Gate, token: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}\r\n",
        gate.authority()
    );
    [head.as_bytes(), body].concat()
}

async fn close(gate: Gate) {
    let (code, log) = gate.close().await;
    assert_eq!(code, Some(0), "{log}");
}

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
                "authorization, content-type, mcp-method",
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

// === headers against body ===

#[tokio::test]
async fn d2_hm_04_hm_05_headers_say_what_the_body_says_or_nothing_is_done() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let good = look(&ada, 1);
    for (change, what) in [
        (("mcp-protocol-version", None), "no version (G11)"),
        (("mcp-protocol-version", Some("2025-11-25")), "an older version"),
        (("mcp-method", None), "no method (HM-03)"),
        (("mcp-method", Some("TOOLS/CALL")), "another case (D18)"),
        (("mcp-method", Some("tools/list")), "another method"),
        (("mcp-name", None), "no name"),
        (("mcp-name", Some("desk_make")), "another name"),
        (("mcp-name", Some("DESK_LOOK")), "another case"),
        (("mcp-name", Some("=?base64?!!?=")), "a broken escape (HM-16)"),
        (("mcp-name", Some("=?BASE64?ZGVza19sb29r?=")), "no escape form"),
    ] {
        let answer = ada.post_with(&good, &[change]).await;
        assert_eq!(verdict(&answer), "400 -32020", "{what}");
        assert_eq!(answer.json()["id"], 1, "{what}");
    }
    for (change, what) in [
        (
            ("mcp-name", Some("  desk_look \t")),
            "whitespace around is no part of it",
        ),
        (
            ("mcp-name", Some("=?base64?ZGVza19sb29r?=")),
            "HM-15: an escape that was not needed",
        ),
    ] {
        assert_eq!(
            verdict(&ada.post_with(&good, &[change]).await),
            "200 result",
            "{what}"
        );
    }
    // A header twice: which one would count?
    for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        let value = match name {
            "MCP-Protocol-Version" => MODERN,
            "Mcp-Method" => "tools/call",
            _ => "desk_look",
        };
        let body = good.to_string();
        let more = format!(
            "MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: desk_look\r\n{name}: {value}\r\n\
             Content-Length: {}\r\n",
            body.len()
        );
        let mut socket = Socket::open(gate.authority()).await;
        socket
            .write(raw(&gate, desk.key("ada"), &more, body.as_bytes()))
            .await;
        let answer = socket.response().await.unwrap();
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (400, &json!(-32020)),
            "{name}"
        );
    }
    assert_eq!(desk.service.count(), 2, "only what agreed was carried out");

    // D18, HM-15: a name that a header cannot hold travels in the escape form, and is understood.
    let name = "wetter_köln";
    let message = ada.request(1, "tools/call", json!({"name":name,"arguments":{}}));
    assert_eq!(ada.headers(&message)["mcp-name"], "=?base64?d2V0dGVyX2vDtmxu?=");
    let answer = ada.post(&message).await;
    assert_eq!(
        verdict(&answer),
        "200 -32602",
        "understood, and no such tool (TOOL-08)"
    );
    close(gate).await;
}

#[tokio::test]
async fn d2_d3_version_and_capabilities_are_required_and_identity_is_not() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let meta = |meta: Value| json!({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":meta}});
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let info = "io.modelcontextprotocol/clientInfo";
    let person = json!({"name":"x","version":"1"});
    for (message, expected, what) in [
        (
            meta(json!({version:MODERN,capabilities:{}})),
            "200 result",
            "D3, BASE-14",
        ),
        (
            meta(json!({version:MODERN,capabilities:{},info:person})),
            "200 result",
            "BASE-14",
        ),
        (
            meta(json!({version:MODERN,capabilities:{},"com.example/x":[1],"baggage":"a=b"})),
            "200 result",
            "BASE-20",
        ),
        (
            meta(json!({version:MODERN,info:person})),
            "400 -32602",
            "D3, BASE-13",
        ),
        (
            meta(json!({version:MODERN,capabilities:[]})),
            "400 -32602",
            "BASE-15",
        ),
        (
            meta(json!({version:20_260_728,capabilities:{}})),
            "400 -32602",
            "BASE-15",
        ),
        (
            meta(json!({version:MODERN,capabilities:{},info:"x"})),
            "400 -32602",
            "BASE-15",
        ),
        (meta(json!({capabilities:{}})), "400 -32602", "D2"),
        (
            json!({"jsonrpc":"2.0","id":1,"method":"tools/list"}),
            "400 -32602",
            "D2: no metadata at all",
        ),
    ] {
        let answer = ada.post(&message).await;
        assert_eq!(verdict(&answer), expected, "{what}: {}", answer.text());
        if expected == "200 result" {
            assert_answer(MODERN, "tools/list", &answer.json());
        }
    }
    // D2, HM-05, LIFE-M02: both name the same version, and it is not served.
    let future = meta(json!({version:"2031-01-01",capabilities:{}}));
    let answer = ada
        .post_with(&future, &[("mcp-protocol-version", Some("2031-01-01"))])
        .await;
    assert_eq!(verdict(&answer), "400 -32022");
    let data = answer.json()["error"]["data"].clone();
    assert_eq!(data["requested"], "2031-01-01");
    let discovered = ada.ask("server/discover", json!({})).await;
    assert_eq!(
        data["supported"], discovered["result"]["supportedVersions"],
        "LIFE-M04"
    );
    // A revision with sessions is reached by `initialize` and not offered here again.
    let older = meta(json!({version:"2025-11-25",capabilities:{}}));
    let answer = ada
        .post_with(&older, &[("mcp-protocol-version", Some("2025-11-25"))])
        .await;
    assert_eq!(verdict(&answer), "400 -32022");
    assert_eq!(answer.json()["error"]["data"]["supported"], json!([MODERN]));
    close(gate).await;
}

// === two eras on one endpoint ===

#[tokio::test]
async fn d1_life_d02_life_d03_initialize_is_the_handshake_only_where_it_exists() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    // LIFE-D02: with modern metadata, what 2026 removed is unknown.
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "resources/list",
        "prompts/list",
        "subscriptions/listen",
        "nonsense",
    ] {
        let answer = ada.post(&ada.request(7, method, json!({}))).await;
        assert_eq!(verdict(&answer), "404 -32601", "{method}, D5, HM-06");
        assert_eq!(answer.json()["id"], 7);
        assert!(answer.header("mcp-session-id").is_none(), "{method}");
    }
    // LIFE-D03, LIFE-L04: without it, a version that cannot be had this way is answered with the newest that can.
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (MODERN, "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
        ("banana", "2025-11-25"),
    ] {
        let client = Mcp {
            revision: agreed.to_owned(),
            ..ada.clone()
        };
        let answer = client.post(&opening(asked)).await;
        assert_eq!(answer.status, 200, "{asked}");
        assert_answer(agreed, "initialize", &answer.json());
        assert_eq!(answer.json()["result"]["protocolVersion"], agreed, "{asked}");
        assert_eq!(
            answer.json()["result"]["capabilities"],
            json!({"tools":{}}),
            "TOOL-01"
        );
        assert!(answer.header("mcp-session-id").is_some(), "{asked}");
    }
    // LIFE-L01: an opening that lacks something says what.
    for missing in ["protocolVersion", "capabilities", "clientInfo"] {
        let mut message = opening("2025-11-25");
        message["params"].as_object_mut().unwrap().remove(missing);
        let client = Mcp {
            revision: "2025-11-25".to_owned(),
            ..ada.clone()
        };
        let answer = client.post(&message).await;
        assert_eq!(verdict(&answer), "200 -32602", "{missing}");
        assert!(answer.text().contains(missing), "{}", answer.text());
        assert!(answer.header("mcp-session-id").is_none());
    }
    close(gate).await;
}

#[tokio::test]
async fn life_d01_base_17_both_eras_are_served_side_by_side() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let old = desk.legacy(&gate, "ada", "2025-06-18").await;
    // A stateless request that also names a session is a stateless request (HM-01).
    let session = old.session.clone().unwrap();
    for change in [
        [
            ("mcp-session-id", Some(session.as_str())),
            ("last-event-id", Some("0-0")),
        ],
        [
            ("mcp-session-id", Some("nonsense")),
            ("last-event-id", Some("nonsense")),
        ],
    ] {
        let answer = ada.post_with(&list(&ada), &change).await;
        assert_answer(MODERN, "tools/list", &answer.json());
        assert_eq!(answer.status, 200);
        assert!(answer.header("mcp-session-id").is_none());
    }
    // And the session goes on as if nothing had been.
    let result = old.call("desk_look", json!({"id":"b"})).await;
    assert_eq!(result["structuredContent"], json!({"id":"b"}));
    // D7, BASE-11, BASE-16: what 2026 demands of every result is in every result there, and in none before.
    for client in [&ada, &old] {
        let modern = client.revision == MODERN;
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name":"desk_look","arguments":{"id":"a"}})),
        ] {
            let result = client.ask(method, params).await["result"].clone();
            assert_eq!(
                result.get("resultType"),
                modern.then_some(&json!("complete")),
                "{method}"
            );
            assert_eq!(result["_meta"].is_object(), modern, "{method}");
        }
    }
    assert_eq!(old.ask("ping", json!({})).await["result"], json!({}), "LIFE-L09");
    close(gate).await;
}

#[tokio::test]
async fn d5_an_unknown_method_is_404_only_where_that_does_not_mean_a_lost_session() {
    let (desk, gate) = Plan::new().serve().await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        for method in [
            "resources/list",
            "prompts/get",
            "completion/complete",
            "tasks/get",
            "nonsense",
        ] {
            let answer = client.post(&client.request("x", method, json!({}))).await;
            assert_eq!(answer.status, 200, "{revision} {method}");
            assert_message(revision, &answer.json());
            assert_eq!(answer.code(), Some(-32601), "{revision} {method}");
            assert_eq!(answer.json()["id"], "x");
        }
    }
    close(gate).await;
}

#[tokio::test]
async fn d4_life_m01_discovery_says_what_initialize_says_and_where_identity_lives() {
    let (desk, gate) = Plan::new().serve().await;
    let ada = desk.modern(&gate, "ada");
    let result = ada.ask("server/discover", json!({})).await["result"].clone();
    assert_eq!(
        result["supportedVersions"],
        json!([MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
    );
    assert_eq!(result["capabilities"], json!({"tools":{}}), "LIFE-M05");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "tollhouse"
    );
    assert!(result.get("serverInfo").is_none());
    assert!(
        result["ttlMs"].is_u64() && result["cacheScope"] == "private",
        "CACHE-01"
    );
    let client = Mcp {
        revision: "2025-11-25".to_owned(),
        ..ada.clone()
    };
    let opened = client.post(&opening("2025-11-25")).await.json()["result"].clone();
    for key in ["capabilities", "instructions"] {
        assert_eq!(opened[key], result[key], "{key}");
    }
    assert!(opened.get("ttlMs").is_none() && opened.get("resultType").is_none());
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
        for message in [list(client), look(client, 1)] {
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
    close(gate).await;
}

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
        let head = raw(
            &gate,
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
    socket.write(raw(&gate, desk.key("ada"), &announced, b"")).await;
    assert_eq!(socket.response().await.unwrap().status, 413);
    // A length that cannot be one is no reason to fall over.
    for length in ["99999999999999999999999", "-1", "x"] {
        let mut socket = Socket::open(gate.authority()).await;
        let announced = format!("{more}Content-Length: {length}\r\n");
        socket.write(raw(&gate, desk.key("ada"), &announced, b"")).await;
        assert_eq!(socket.response().await.unwrap().status, 400, "{length}");
    }
    // Two ways to say the length at once are how requests are smuggled.
    let mut socket = Socket::open(gate.authority()).await;
    let both = format!("{more}Content-Length: 5\r\nContent-Length: 6\r\n");
    socket.write(raw(&gate, desk.key("ada"), &both, b"hello")).await;
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
            raw(&gate, desk.key("ada"), &more, b"")
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
        raw(
            &gate,
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
        .write(raw(&gate, desk.key("ada"), &more, b"{\"jsonrpc\":"))
        .await;
    assert_eq!(socket.response().await.unwrap().status, 408);
    // One that breaks off harms nobody.
    let mut socket = Socket::open(gate.authority()).await;
    socket
        .write(raw(&gate, desk.key("ada"), &more, b"{\"jsonrpc\":"))
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

// === batches ===

#[tokio::test]
async fn d23_base_07_base_10_arrays_are_served_in_exactly_one_revision() {
    let (desk, gate) = Plan::new().limit("batch_messages_max", 3).serve().await;
    for revision in LEGACY {
        let client = desk.legacy(&gate, "ada", revision).await;
        let before = desk.service.count();
        let batch = json!([
            look(&client, 1),
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}},
            look(&client, "2"),
        ]);
        let answer = client.post(&batch).await;
        if revision != "2025-03-26" {
            assert_eq!(answer.status, 400, "{revision}");
            if !answer.body.is_empty() {
                assert_message(revision, &answer.json());
                assert_eq!(answer.code(), Some(-32600), "{revision}");
            }
            assert_eq!(
                desk.service.count(),
                before,
                "{revision}: nothing of it was carried out"
            );
            continue;
        }
        assert_eq!(answer.status, 200);
        let answers = answer.json();
        assert_message(revision, &answers);
        let mut ids: Vec<String> = Vec::new();
        for answer in answers.as_array().unwrap() {
            assert_answer(revision, "tools/call", answer);
            ids.push(answer["id"].to_string());
        }
        assert_eq!(ids, ["1", "\"2\""], "BASE-09");
        assert_eq!(desk.service.count() - before, 2);
        // For a reader of streams only: the same, as events.
        let streamed = client
            .post_with(&batch, &[("accept", Some("text/event-stream"))])
            .await;
        assert_eq!(streamed.header("content-type"), Some("text/event-stream"));
        assert_message(revision, &streamed.json());
    }
    let ada = desk.modern(&gate, "ada");
    let answer = ada.post_bytes(&list(&ada), format!("[{}]", list(&ada))).await;
    assert_eq!(verdict(&answer), "400 -32600", "BASE-10");
    close(gate).await;
}

#[tokio::test]
async fn base_08_base_09_a_batch_has_bounds_and_never_opens_a_session() {
    let (desk, gate) = Plan::new().limit("batch_messages_max", 3).serve().await;
    let client = desk.legacy(&gate, "ada", "2025-03-26").await;
    let ping = |id: u64| json!({"jsonrpc":"2.0","id":id,"method":"ping"});
    let notice = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
    let response = json!({"jsonrpc":"2.0","id":9,"result":{}});
    let tell = async |batch: Value| {
        let answer = client.post(&batch).await;
        if answer.status == 200 {
            assert_message("2025-03-26", &answer.json());
        }
        let answers = if answer.body.is_empty() {
            0
        } else {
            answer.json().as_array().map_or(0, Vec::len)
        };
        (answer.status.as_u16(), answers)
    };
    assert_eq!(
        tell(json!([ping(1), ping(2), ping(3)])).await,
        (200, 3),
        "at the limit"
    );
    assert_eq!(
        tell(json!([ping(1), ping(2), ping(3), ping(4)])).await,
        (400, 0),
        "and one past it"
    );
    assert_eq!(tell(json!([])).await, (400, 0), "empty");
    assert_eq!(
        tell(json!([ping(1), opening("2025-03-26")])).await,
        (400, 0),
        "BASE-08"
    );
    assert_eq!(tell(json!([notice, notice])).await, (202, 0), "BASE-09");
    assert_eq!(tell(json!([response, response])).await, (202, 0), "BASE-09");
    assert_eq!(tell(json!([notice, ping(1)])).await, (200, 1));
    // What cannot be read gets no answer in this revision, which has no error without an id; what can be read does.
    assert_eq!(tell(json!([7, ping(1)])).await, (200, 1));
    assert_eq!(tell(json!([7, 8])).await, (400, 0), "nothing of it was a message");
    // Two requests with one id in one batch: the second is refused while the first runs, whichever that is.
    desk.service.hold();
    let (first, second) = (look(&client, 5), look(&client, 5));
    let batch = json!([first, second]);
    let both = client.post(&batch);
    let held = async {
        desk.service.until(1).await;
        desk.service.let_go();
    };
    let (answer, ()) = tokio::join!(both, held);
    let answers = answer.json();
    assert_message("2025-03-26", &answers);
    let errors = answers
        .as_array()
        .unwrap()
        .iter()
        .filter(|answer| answer["error"]["code"] == -32600);
    assert_eq!(
        (answers.as_array().unwrap().len(), errors.count()),
        (2, 1),
        "BASE-02"
    );
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
        bytes.extend(raw(&gate, desk.key("ada"), &more, body.as_bytes()));
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
