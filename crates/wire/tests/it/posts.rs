//! POST bodies and their headers: which era, which error, which status.

use model::Limits;
use serde_json::{Value, json};
use wire::http::{Post, Reject, Sorted, sort};
use wire::{Ask, Inbound, Notice, Revision};

use crate::{Headers, M};

fn limits() -> Limits {
    Limits {
        batch_messages_max: 3,
        body_bytes_max: 4_000,
        arguments_bytes_max: 1_000,
        json_depth_max: 16,
        ..Limits::default()
    }
}

/// Sorts a POST and says in a few words what came of it.
fn outcome(headers: &[(&str, &str)], body: &str) -> String {
    let headers = Headers::of(headers);
    match sort(&headers, body.as_bytes(), &limits()) {
        Err(reject) => refused(&reject),
        Ok(Sorted::Opening { id, opening }) => format!("open {id} {}", opening.revision),
        Ok(Sorted::InSession(_)) => "in session".to_owned(),
        Ok(Sorted::Stateless { revision, inbound }) => format!("{revision} {}", said(&inbound)),
    }
}

fn refused(reject: &Reject) -> String {
    format!(
        "{} {}",
        reject.status,
        reject.failure.code(Revision::NEWEST_STATELESS)
    )
}

fn said(inbound: &Inbound) -> String {
    match inbound {
        Inbound::Request(request) => match &request.ask {
            Ask::Open(_) => format!("open {}", request.id),
            Ask::Discover => format!("discover {}", request.id),
            Ask::Ping => format!("ping {}", request.id),
            Ask::List { cursor, .. } => format!("list {} {cursor:?}", request.id),
            Ask::CallTool { name, arguments } => {
                format!(
                    "call {} {name} {}",
                    request.id,
                    Value::Object(arguments.object().clone())
                )
            }
            other => format!("{other:?}"),
        },
        Inbound::Notice(Notice::Initialized) => "initialized".to_owned(),
        Inbound::Notice(Notice::Cancelled(cancel)) => format!("cancel {}", cancel.id),
        Inbound::Notice(Notice::Other) => "notice".to_owned(),
        Inbound::Response(_) => "response".to_owned(),
        Inbound::Refused { id, failure } => {
            format!(
                "refused {} {}",
                id.as_ref().map_or("-".to_owned(), ToString::to_string),
                failure.code(Revision::NEWEST_STATELESS)
            )
        }
    }
}

/// Binds a POST to a session of the given revision.
fn bound(revision: Revision, headers: &[(&str, &str)], body: &str) -> String {
    let headers = Headers::of(headers);
    match sort(&headers, body.as_bytes(), &limits()) {
        Ok(Sorted::InSession(pending)) => match pending.bind(revision, &limits()) {
            Err(reject) => refused(&reject),
            Ok(Post::One(inbound)) => said(&inbound),
            Ok(Post::Batch(messages)) => messages.iter().map(said).collect::<Vec<_>>().join(" + "),
        },
        Ok(other) => panic!("not for a session: {other:?}"),
        Err(reject) => refused(&reject),
    }
}

const V: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");
const LIST: (&str, &str) = ("Mcp-Method", "tools/list");
const CALL: (&str, &str) = ("Mcp-Method", "tools/call");

fn list() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{M}}}}}"#)
}

fn call(name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{M},"name":{name:?},"arguments":{{"a":1}}}}}}"#
    )
}

#[test]
fn base_13_hm_03_a_complete_request_is_served() {
    assert_eq!(outcome(&[V, LIST], &list()), "2026-07-28 list 1 None");
    assert_eq!(
        outcome(&[V, CALL, ("Mcp-Name", "t")], &call("t")),
        r#"2026-07-28 call 1 t {"a":1}"#
    );
    let discover =
        format!(r#"{{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{{"_meta":{M}}}}}"#);
    assert_eq!(
        outcome(&[V, ("Mcp-Method", "server/discover")], &discover),
        "2026-07-28 discover \"d\""
    );
}

#[test]
fn life_d02_d1_what_2026_removed_is_an_unknown_method_there() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "nonsense",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"_meta":{M}}}}}"#);
        assert_eq!(
            outcome(&[V, ("Mcp-Method", method)], &body),
            "404 -32601",
            "{method}"
        );
    }
}

#[test]
fn life_d03_life_l04_initialize_negotiates_a_revision_with_sessions() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
        ("", "2025-11-25"),
        ("banana", "2025-11-25"),
    ] {
        let body = json!({"jsonrpc":"2.0","id":7,"method":"initialize","params":{
            "protocolVersion":asked,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}});
        assert_eq!(
            outcome(&[], &body.to_string()),
            format!("open 7 {agreed}"),
            "{asked}"
        );
    }
}

#[test]
fn life_l01_an_incomplete_initialize_says_what_is_missing() {
    for (params, missing) in [
        (
            json!({"capabilities":{},"clientInfo":{"name":"x","version":"1"}}),
            "protocolVersion",
        ),
        (
            json!({"protocolVersion":"2025-06-18","clientInfo":{"name":"x","version":"1"}}),
            "capabilities",
        ),
        (
            json!({"protocolVersion":"2025-06-18","capabilities":{}}),
            "clientInfo",
        ),
        (
            json!({"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}),
            "protocolVersion",
        ),
        (
            json!({"protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"x","version":"1"}}),
            "capabilities",
        ),
        (
            json!({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x"}}),
            "version",
        ),
    ] {
        let body = json!({"jsonrpc":"2.0","id":7,"method":"initialize","params":params}).to_string();
        let headers = Headers::default();
        let reject = sort(&headers, body.as_bytes(), &limits()).unwrap_err();
        assert_eq!(
            reject.failure.code(Revision::NEWEST_STATELESS),
            -32602,
            "{params}"
        );
        assert!(
            reject.failure.to_string().contains(missing),
            "{params}: {}",
            reject.failure
        );
    }
}

#[test]
fn d2_hm_05_three_version_faults_have_three_errors() {
    let meta = |version: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    };
    assert_eq!(
        outcome(&[V, LIST], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        "400 -32602"
    );
    assert_eq!(
        outcome(
            &[V, LIST],
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}"#
        ),
        "400 -32602"
    );
    assert_eq!(outcome(&[V, LIST], &meta("2031-01-01")), "400 -32020");
    assert_eq!(
        outcome(
            &[("MCP-Protocol-Version", "2031-01-01"), LIST],
            &meta("2031-01-01")
        ),
        "400 -32022"
    );
    // LIFE-M02 also without any other metadata.
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}}"#;
    assert_eq!(
        outcome(&[("MCP-Protocol-Version", "2031-01-01"), LIST], bare),
        "400 -32022"
    );
}

#[test]
fn life_m04_the_versions_in_an_error_are_those_of_discover() {
    let body = |version: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}}}}}"#
        )
    };
    let supported = |version: &str| {
        let headers = Headers::of(&[("MCP-Protocol-Version", version), LIST]);
        let reject = sort(&headers, body(version).as_bytes(), &limits()).unwrap_err();
        assert_eq!(
            (reject.status, reject.failure.code(Revision::NEWEST_STATELESS)),
            (400, -32022),
            "{version}"
        );
        let data = reject.failure.data().unwrap();
        assert_eq!(data["requested"], version);
        data["supported"].clone()
    };
    assert_eq!(
        supported("2031-01-01"),
        json!([
            "2026-07-28",
            "2025-11-25",
            "2025-06-18",
            "2025-03-26",
            "2024-11-05"
        ])
    );
    // A revision with sessions is not served this way, so it is not offered this way.
    assert_eq!(supported("2025-11-25"), json!(["2026-07-28"]));
}

#[test]
fn d3_base_14_base_15_capabilities_are_required_and_identity_is_not() {
    let body = |meta: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#)
    };
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let info = r#""io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}"#;
    assert_eq!(
        outcome(&[V, LIST], &body(&format!("{version},{capabilities}"))),
        "2026-07-28 list 1 None"
    );
    assert_eq!(
        outcome(&[V, LIST], &body(&format!("{version},{capabilities},{info}"))),
        "2026-07-28 list 1 None"
    );
    for bad in [
        format!("{version},{info}"),
        format!(r#"{version},"io.modelcontextprotocol/clientCapabilities":[]"#),
        format!(r#"{version},{capabilities},"io.modelcontextprotocol/clientInfo":"x""#),
        format!(r#"{version},{capabilities},"io.modelcontextprotocol/clientInfo":{{"name":"x"}}"#),
        format!(r#"{capabilities},"io.modelcontextprotocol/protocolVersion":20260728"#),
        format!(r#"{version},{capabilities},"progressToken":1.5"#),
    ] {
        assert_eq!(outcome(&[V, LIST], &body(&bad)), "400 -32602", "{bad}");
    }
}

#[test]
fn log_03_a_level_that_is_none_is_told_and_one_that_is_changes_nothing() {
    let body = |level: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/logLevel":{level}}}}}}}"#
        )
    };
    for level in [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ] {
        let body = body(&format!("\"{level}\""));
        assert_eq!(outcome(&[V, LIST], &body), "2026-07-28 list 1 None", "{level}");
    }
    for level in ["\"trace\"", "\"Debug\"", "\"\"", "7", "null"] {
        assert_eq!(outcome(&[V, LIST], &body(level)), "400 -32602", "{level}");
    }
}

#[test]
fn hm_04_a_header_that_says_something_else_is_a_mismatch() {
    for (headers, why) in [
        (vec![LIST], "no version header (G11)"),
        (vec![V, V, LIST], "two version headers"),
        (
            vec![("MCP-Protocol-Version", "2025-11-25"), LIST],
            "older version header",
        ),
        (vec![V], "no method header"),
        (vec![V, CALL], "another method"),
        (vec![V, ("Mcp-Method", "TOOLS/LIST")], "another case (D18)"),
        (vec![V, ("Mcp-Method", "tools/list\u{fc}")], "not a header text"),
        (vec![V, LIST, LIST], "two method headers"),
    ] {
        assert_eq!(outcome(&headers, &list()), "400 -32020", "{why}");
    }
    // Whitespace around a value is not part of it.
    assert_eq!(
        outcome(
            &[
                ("MCP-Protocol-Version", " 2026-07-28 "),
                ("Mcp-Method", "\ttools/list ")
            ],
            &list()
        ),
        "2026-07-28 list 1 None"
    );
}

#[test]
fn hm_03_hm_15_d18_mcp_name_is_the_name_in_the_body() {
    for (name, header) in [
        ("t", "t"),
        ("t", "  t "),
        ("wetter_köln", "=?base64?d2V0dGVyX2vDtmxu?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
    ] {
        assert!(
            outcome(&[V, CALL, ("Mcp-Name", header)], &call(name)).starts_with("2026-07-28 call"),
            "{name}"
        );
    }
    for (name, headers) in [
        ("t", vec![V, CALL]),
        ("t", vec![V, CALL, ("Mcp-Name", "u")]),
        ("t", vec![V, CALL, ("Mcp-Name", "T")]),
        ("t", vec![V, CALL, ("Mcp-Name", "t"), ("Mcp-Name", "t")]),
        ("t", vec![V, CALL, ("Mcp-Name", "=?base64?%%?=")]),
        (
            "wetter_köln",
            vec![V, CALL, ("Mcp-Name", "=?BASE64?d2V0dGVyX2vDtmxu?=")],
        ),
    ] {
        assert_eq!(outcome(&headers, &call(name)), "400 -32020", "{headers:?}");
    }
}

#[test]
fn c1_the_checks_of_a_modern_request_come_in_their_order() {
    // Each request has every later fault too, and gets the first one's error.
    let bad_all = r#"{"jsonrpc":"2.0","id":1,"method":"nonsense","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert_eq!(outcome(&[V, ("Mcp-Method", "other")], bad_all), "400 -32602");
    let no_header = bad_all.replace(
        "{\"io",
        "{\"io.modelcontextprotocol/protocolVersion\":\"2031-01-01\",\"io",
    );
    assert_eq!(outcome(&[("Mcp-Method", "other")], &no_header), "400 -32020");
    assert_eq!(
        outcome(
            &[("MCP-Protocol-Version", "2031-01-01"), ("Mcp-Method", "other")],
            &no_header
        ),
        "400 -32022"
    );
    let unknown = no_header.replace("2031-01-01", "2026-07-28");
    assert_eq!(outcome(&[V, ("Mcp-Method", "other")], &unknown), "400 -32020");
    assert_eq!(outcome(&[V, ("Mcp-Method", "nonsense")], &unknown), "404 -32601");
    let bad_name = call("t").replace(r#""arguments":{"a":1}"#, r#""arguments":[1]"#);
    assert_eq!(outcome(&[V, CALL, ("Mcp-Name", "u")], &bad_name), "400 -32020");
    assert_eq!(outcome(&[V, CALL, ("Mcp-Name", "t")], &bad_name), "200 -32602");
}

#[test]
fn a_known_method_with_bad_parameters_is_never_passed_on_as_something_else() {
    for params in [
        r#"{"name":"t","arguments":[1]}"#,
        r#"{"name":"t","arguments":"x"}"#,
        r#"{"name":"t","arguments":null}"#,
        r#"{"name":7}"#,
        r#"{"arguments":{}}"#,
        r#"{"name":"t","arguments":{"a":9007199254740993}}"#,
        r#"{"name":"t","arguments":{"a":{"k":1,"k":2}}}"#,
        r#"{"name":"t","arguments":{},"requestState":"mine"}"#,
        "[]",
        "\"x\"",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(
            bound(Revision::V2025_11_25, &[], &body),
            "refused 1 -32602",
            "{params}"
        );
    }
}

#[test]
fn arguments_pass_at_their_limits_and_not_one_past_them() {
    let body = |length: usize| {
        let arguments = format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
        assert_eq!(arguments.len(), length);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        )
    };
    assert!(bound(Revision::V2025_11_25, &[], &body(1_000)).starts_with("call 1 t"));
    assert_eq!(
        bound(Revision::V2025_11_25, &[], &body(1_001)),
        "refused 1 -32602"
    );
    let nested = |depth: usize| {
        let arguments = format!(r#"{{"a":{}{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        )
    };
    assert!(bound(Revision::V2025_11_25, &[], &nested(16)).starts_with("call 1 t"));
    assert_eq!(bound(Revision::V2025_11_25, &[], &nested(17)), "refused 1 -32602");
}

#[test]
fn a_body_passes_at_its_limit_and_not_one_past_it() {
    let body = |length: usize| {
        let head = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        format!("{head}{}", " ".repeat(length - head.len()))
    };
    assert_eq!(bound(Revision::V2025_06_18, &[], &body(4_000)), "ping 1");
    assert_eq!(outcome(&[], &body(4_001)), "400 -32600");
}

#[test]
fn base_04_a_request_method_without_an_id_is_not_carried_out() {
    let body = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{}}}"#;
    assert_eq!(bound(Revision::V2025_11_25, &[], body), "notice");
    assert_eq!(outcome(&[V, CALL, ("Mcp-Name", "t")], body), "2026-07-28 notice");
}

#[test]
fn hm_07_a_notification_needs_no_headers() {
    let body = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"_meta":{M}}}}}"#);
    assert_eq!(outcome(&[], &body), "2026-07-28 notice");
    assert_eq!(
        outcome(&[V, ("Mcp-Method", "something/else")], &body),
        "2026-07-28 notice"
    );
    assert_eq!(
        outcome(&[V], r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        "2026-07-28 notice"
    );
    assert_eq!(
        outcome(&[], r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        "in session"
    );
}

#[test]
fn hm_02_a_response_is_no_body_of_the_stateless_era() {
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(outcome(&[V], body), "400 -32600");
    assert_eq!(
        bound(
            Revision::V2025_06_18,
            &[("MCP-Protocol-Version", "2025-06-18")],
            body
        ),
        "response"
    );
}

#[test]
fn d23_base_07_to_base_10_arrays_are_legal_in_exactly_one_revision() {
    let body = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#;
    assert_eq!(bound(Revision::V2025_03_26, &[], body), "ping 1 + initialized");
    for revision in Revision::ALL
        .into_iter()
        .filter(|r| *r != Revision::V2025_03_26 && r.has_sessions())
    {
        assert_eq!(bound(revision, &[], body), "400 -32600", "{revision}");
    }
    assert_eq!(outcome(&[V], body), "400 -32600");
}

#[test]
fn base_08_base_09_a_batch_is_read_whole_before_any_of_it_is_served() {
    let batch = |items: &str| bound(Revision::V2025_03_26, &[], &format!("[{items}]"));
    let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    assert_eq!(
        batch(&format!("{},{},{}", ping(1), ping(2), ping(3))),
        "ping 1 + ping 2 + ping 3"
    );
    assert_eq!(
        batch(&format!("{},{},{},{}", ping(1), ping(2), ping(3), ping(4))),
        "400 -32600"
    );
    assert_eq!(batch(""), "400 -32600");
    assert_eq!(batch(&format!("{},7", ping(1))), "ping 1 + refused - -32600");
    assert_eq!(
        batch(&format!(
            r#"{},{{"jsonrpc":"2.0","id":9,"method":"initialize","params":{{}}}}"#,
            ping(1)
        )),
        "400 -32600"
    );
    assert_eq!(batch(&format!("{},{{", ping(1))), "400 -32700");
    assert_eq!(
        bound(Revision::V2025_03_26, &[], &format!("[{}] x", ping(1))),
        "400 -32700"
    );
    assert_eq!(
        batch(
            r#"{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":""}}"#
        ),
        "response + response"
    );
}

#[test]
fn hl_16_hl_17_the_session_is_the_truth_about_the_version() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for revision in Revision::ALL.into_iter().filter(|r| r.has_sessions()) {
        assert_eq!(bound(revision, &[], body), "ping 1");
        assert_eq!(
            bound(revision, &[("MCP-Protocol-Version", revision.as_str())], body),
            "ping 1"
        );
        for wrong in ["2025-01-01", "banana", ""] {
            assert_eq!(
                bound(revision, &[("MCP-Protocol-Version", wrong)], body),
                "400 -32600",
                "{revision} {wrong}"
            );
        }
    }
    assert_eq!(
        bound(
            Revision::V2025_06_18,
            &[("MCP-Protocol-Version", "2025-11-25")],
            body
        ),
        "400 -32600"
    );
}

#[test]
fn a_legacy_session_serves_its_methods_and_no_others() {
    for (method, params, expected) in [
        ("ping", "{}", "ping 1"),
        ("tools/list", "{}", "list 1 None"),
        ("tools/list", r#"{"cursor":""}"#, r#"list 1 Some("")"#),
        ("tools/list", r#"{"cursor":7}"#, "refused 1 -32602"),
        ("server/discover", "{}", "refused 1 -32601"),
        ("resources/read", "{}", "refused 1 -32602"),
        ("resources/read", r#"{"uri":1}"#, "refused 1 -32602"),
        ("prompts/get", r#"{"arguments":{}}"#, "refused 1 -32602"),
        (
            "prompts/get",
            r#"{"name":"a","arguments":{"b":1}}"#,
            "refused 1 -32602",
        ),
        (
            "prompts/get",
            r#"{"name":"a","arguments":[]}"#,
            "refused 1 -32602",
        ),
        (
            "prompts/get",
            r#"{"name":"a","requestState":"x"}"#,
            "refused 1 -32602",
        ),
        (
            "resources/read",
            r#"{"uri":"a:b","requestState":"x"}"#,
            "refused 1 -32602",
        ),
        ("completion/complete", "{}", "refused 1 -32602"),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt"},"argument":{"name":"a","value":""}}"#,
            "refused 1 -32602",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/other","name":"x"},"argument":{"name":"a","value":""}}"#,
            "refused 1 -32602",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}}"#,
            "refused 1 -32602",
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""},"context":{"arguments":{"b":1}}}"#,
            "refused 1 -32602",
        ),
        ("resources/templates/list", r#"{"cursor":7}"#, "refused 1 -32602"),
        ("resources/nothing", "{}", "refused 1 -32601"),
        ("logging/setLevel", r#"{"level":"info"}"#, "SetLevel(Info)"),
        ("logging/setLevel", r#"{"level":"loud"}"#, "refused 1 -32602"),
        ("logging/setLevel", "{}", "refused 1 -32602"),
        ("notifications/initialized", "{}", "refused 1 -32601"),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let found = match sort(&Headers::default(), body.as_bytes(), &limits()) {
            Ok(Sorted::InSession(pending)) => match pending.bind(Revision::V2025_11_25, &limits()) {
                Ok(Post::One(inbound)) => said(&inbound),
                other => panic!("{other:?}"),
            },
            // `server/discover` belongs to the other era whoever sends it.
            Ok(other) => panic!("{method}: {other:?}"),
            Err(reject) => refused(&reject),
        };
        let expected = if method == "server/discover" {
            "400 -32602"
        } else {
            expected
        };
        assert_eq!(found, expected, "{method} {params}");
    }
}

#[test]
fn can_01_a_cancellation_names_its_request_with_its_type() {
    let cancel = |id: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"x"}}}}"#
        );
        bound(Revision::V2025_06_18, &[], &body)
    };
    assert_eq!(cancel("7"), "cancel 7");
    assert_eq!(cancel("\"7\""), "cancel \"7\"");
    for odd in ["null", "{}", "1.5"] {
        assert_eq!(cancel(odd), "notice", "{odd}");
    }
}
