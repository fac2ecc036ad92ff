//! Both eras on one endpoint of the built binary: how each is opened, and what exists in one of them alone.

use e2e::client::{LEGACY, MODERN, Mcp, opening, verdict};
use e2e::desk::{Plan, list, look};
use e2e::house::close;
use e2e::schema::{assert_answer, assert_message};
use serde_json::json;

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
        "nonsense",
    ] {
        let params = json!({ "notifications": {} });
        let answer = ada.post(&ada.request(7, method, params)).await;
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
        // BASE-26: what a client can do beside what anybody knows is no fault.
        let mut message = opening(asked);
        message["params"]["capabilities"] = json!({"extensions":{"com.example/x":{}},"odd":[1]});
        let answer = client.post(&message).await;
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
    // HM-11: events have no ids here, so that nobody waits for the rest of a stream that broke off.
    for message in [list(&ada), look(&ada, 1)] {
        let events = ada
            .post_with(&message, &[("accept", Some("text/event-stream"))])
            .await;
        let text = events.text();
        assert!(
            text.contains("data: {") && !text.lines().any(|line| line.starts_with("id")),
            "{text}"
        );
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
        for (method, params) in [
            // LOG-02, RES-01, PRM-01, CMP-01: what is not declared is not there.
            ("logging/setLevel", json!({ "level": "info" })),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({ "uri": "a:b" })),
            ("prompts/list", json!({})),
            ("prompts/get", json!({ "name": "a" })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "b", "value": "" } }),
            ),
            ("tasks/get", json!({})),
            ("nonsense", json!({})),
        ] {
            let answer = client.post(&client.request("x", method, params)).await;
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
    assert_eq!(
        result["capabilities"],
        json!({"tools":{}}),
        "LIFE-M05, LOG-01, BASE-25"
    );
    let keys: Vec<&String> = result["_meta"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["io.modelcontextprotocol/serverInfo"], "BASE-19");
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
