//! Lines on stdio, in both eras on one pipe.

use model::Limits;
use wire::stdio::{Line, sort};
use wire::{Ask, Inbound, Notice, Revision};

use crate::M;

fn outcome(session: Option<Revision>, line: &str) -> String {
    let limits = Limits {
        batch_messages_max: 3,
        ..Limits::default()
    };
    match sort(line.as_bytes(), session, &limits) {
        Line::Opening { id, opening } => format!("open {id} {}", opening.revision),
        Line::Batch { revision, messages } => format!("{revision} batch of {}", messages.len()),
        Line::One { revision, inbound } => format!(
            "{revision} {}",
            match inbound {
                Inbound::Request(request) => match request.ask {
                    Ask::Open(_) => "open".to_owned(),
                    Ask::Ping => format!("ping {}", request.id),
                    Ask::Discover => format!("discover {}", request.id),
                    Ask::List { .. } => format!("list {}", request.id),
                    Ask::CallTool { name, .. } => format!("call {} {name}", request.id),
                    other => format!("{other:?}"),
                },
                Inbound::Notice(Notice::Cancelled(cancel)) => format!("cancel {}", cancel.id),
                Inbound::Notice(_) => "notice".to_owned(),
                Inbound::Response(_) => "response".to_owned(),
                Inbound::Refused { id, failure } => format!(
                    "refused {} {}",
                    id.map_or("-".to_owned(), |id| id.to_string()),
                    failure.code(Revision::NEWEST_STATELESS)
                ),
            }
        ),
    }
}

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;

#[test]
fn life_d01_both_eras_share_one_pipe() {
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{M}}}}}"#);
    assert_eq!(outcome(None, OPEN), "open 0 2025-06-18");
    assert_eq!(outcome(None, &list), "2026-07-28 list 1");
    assert_eq!(outcome(Some(Revision::V2025_06_18), &list), "2026-07-28 list 1");
    assert_eq!(
        outcome(
            Some(Revision::V2025_06_18),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
        ),
        "2025-06-18 list 1"
    );
}

#[test]
fn life_l02_only_a_ping_comes_before_initialize() {
    assert_eq!(
        outcome(None, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        "2025-11-25 ping 1"
    );
    for method in ["tools/list", "tools/call", "nonsense"] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(outcome(None, &line), "2025-11-25 refused 1 -32600", "{method}");
    }
    assert_eq!(
        outcome(Some(Revision::V2025_06_18), OPEN),
        "2025-06-18 refused 0 -32600"
    );
}

#[test]
fn life_d05_a_probe_is_answered_so_that_a_client_can_tell_the_era() {
    let probe =
        format!(r#"{{"jsonrpc":"2.0","id":"p","method":"server/discover","params":{{"_meta":{M}}}}}"#);
    assert_eq!(outcome(None, &probe), "2026-07-28 discover \"p\"");
    assert_eq!(
        outcome(None, &probe.replace("2026-07-28", "2031-01-01")),
        "2026-07-28 refused \"p\" -32022"
    );
    assert_eq!(
        outcome(None, r#"{"jsonrpc":"2.0","id":"p","method":"server/discover"}"#),
        "2026-07-28 refused \"p\" -32602"
    );
}

#[test]
fn stdio_06_a_cancellation_is_read_in_both_eras() {
    let line = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
    assert_eq!(outcome(None, line), "2026-07-28 cancel \"a\"");
    assert_eq!(
        outcome(Some(Revision::V2025_03_26), line),
        "2025-03-26 cancel \"a\""
    );
}

#[test]
fn d23_an_array_is_a_line_in_one_revision() {
    let line = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    assert_eq!(
        outcome(Some(Revision::V2025_03_26), line),
        "2025-03-26 batch of 1"
    );
    assert_eq!(
        outcome(Some(Revision::V2025_06_18), line),
        "2025-06-18 refused - -32600"
    );
    assert_eq!(outcome(None, line), "2026-07-28 refused - -32600");
    assert_eq!(
        outcome(Some(Revision::V2025_03_26), "[]"),
        "2025-03-26 refused - -32600"
    );
}

#[test]
fn what_is_no_message_gets_an_error_and_nothing_is_carried_out() {
    for (line, expected) in [
        ("", "refused - -32700"),
        ("hello", "refused - -32700"),
        ("{}", "refused - -32600"),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "refused - -32600",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":1}"#,
            "refused - -32600",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#,
            "notice",
        ),
        (r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, "response"),
    ] {
        assert_eq!(outcome(None, line), format!("2026-07-28 {expected}"), "{line}");
    }
}
