//! Headers against body in the stateless era: what must agree, and what is required at all.

use e2e::client::{MODERN, verdict};
use e2e::desk::{Plan, look};
use e2e::house::close;
use e2e::schema::assert_answer;
use e2e::socket::{Socket, post};
use serde_json::{Value, json};

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
            .write(post(gate.authority(), desk.key("ada"), &more, body.as_bytes()))
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
            meta(json!({version:MODERN,capabilities:{"extensions":{"com.example/x":{}},"other":1}})),
            "200 result",
            "BASE-25",
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
