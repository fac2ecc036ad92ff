//! Texts and arguments that somebody wrote to break the gate: each ends in a fault or a decision, never in a crash.

use std::time::{Duration, Instant};

use model::Object;
use policy::{Policy, PolicyFaultKind as Kind, read_anything};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{Asked, load, policy, search, status};

fn when(condition: &str) -> String {
    format!("permit (principal, action, resource) when {{ {condition} }};")
}

/// Neighbours of one kind count once.
fn kinds(text: &str) -> Vec<Kind> {
    let mut kinds: Vec<_> = load(text)
        .err()
        .unwrap_or_default()
        .iter()
        .map(|fault| fault.kind)
        .collect();
    kinds.dedup();
    kinds
}

/// A thread of the runtime has 2 MiB of stack. Debug builds of Cedar's evaluator need sixteen times as much.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 32 << 20 } else { 2 << 20 };

fn on_a_small_stack(stack_bytes: usize, what: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(stack_bytes)
        .spawn(what)
        .unwrap();
    thread.join().unwrap();
}

#[test]
fn rules_load_at_the_depth_limit_and_are_a_fault_past_it() {
    // The braces of `when` are two deep, `when` itself is one.
    on_a_small_stack(256 << 10, || {
        let chain =
            |operators: usize, term: &str, operator: &str| when(&vec![term; operators + 1].join(operator));
        for operator in [" || ", " && "] {
            assert_eq!(
                kinds(&chain(97, "principal", operator)),
                [Kind::Type],
                "{operator}"
            );
            assert_eq!(
                kinds(&chain(98, "principal", operator)),
                [Kind::Limit],
                "{operator}"
            );
            assert_eq!(
                kinds(&chain(95, "principal.subject == \"a\"", operator)),
                [],
                "{operator}"
            );
            assert_eq!(
                kinds(&chain(96, "principal.subject == \"a\"", operator)),
                [Kind::Limit],
                "{operator}"
            );
        }
        let nested = |depth: usize| {
            when(&format!(
                "{}principal has tenant{}",
                "(".repeat(depth),
                ")".repeat(depth)
            ))
        };
        assert_eq!(kinds(&nested(48)), []);
        assert_eq!(kinds(&nested(49)), [Kind::Limit]);
        let branches = |depth: usize| {
            when(&format!(
                "{}true",
                "if principal has tenant then false else ".repeat(depth)
            ))
        };
        assert_eq!(kinds(&branches(96)), []);
        assert_eq!(kinds(&branches(97)), [Kind::Limit]);
    });
}

#[test]
fn bottomless_rules_are_faults() {
    on_a_small_stack(256 << 10, || {
        for open in [
            "(",
            "[",
            "{a:",
            "if true then ",
            "!(",
            "-(",
            "a.b(",
            "a[",
            "{\"a\":[",
        ] {
            for depth in [101, 1_000, 100_000] {
                assert_eq!(
                    kinds(&when(&open.repeat(depth))),
                    [Kind::Limit],
                    "{open} × {depth}"
                );
            }
        }
        for chain in [
            " && true",
            " || true",
            " + 1",
            " - 1",
            " * 1",
            ".a",
            " == 1",
            " in 1",
            " has a",
            " is A",
            "[\"a\"]",
            "()",
            " unless { true } when { true ",
            " else if true then true",
        ] {
            for length in [101, 100_000] {
                assert_eq!(
                    kinds(&when(&format!("if true then true{}", chain.repeat(length)))),
                    [Kind::Limit],
                    "{chain} × {length}"
                );
            }
        }
        assert_eq!(
            kinds(&format!(
                "permit (principal, action, resource) {};",
                "when { true }".repeat(101)
            )),
            [Kind::Limit]
        );
    });
}

#[test]
fn a_rule_at_the_depth_limit_decides() {
    on_a_small_stack(STACK_BYTES, || {
        let shapes = [
            when(&vec!["principal.subject == \"x\""; 96].join(" || ")),
            when(&vec!["principal.subject != \"x\""; 96].join(" && ")),
            when(&format!(
                "{}!principal.roles.isEmpty(){}",
                "!(!(".repeat(15),
                "))".repeat(15)
            )),
            when(&format!(
                "{}false",
                "if principal has tenant then principal.subject == \"ada\" else ".repeat(94)
            )),
        ];
        for (text, expected) in shapes.into_iter().zip([false, true, true, true]) {
            let policy = policy(&text);
            assert_eq!(status().of(&policy).is_ok(), expected, "{text}");
            assert_eq!(
                policy.listable(
                    &crate::world::ada(),
                    &crate::world::tool("billing_getInvoiceStatus")
                ),
                expected,
                "{text}"
            );
        }
    });
}

#[test]
fn a_long_list_is_no_chain() {
    let names: Vec<String> = (0..20_000).map(|n| format!("\"r{n}\"")).collect();
    let policy = policy(&when(&format!(
        "[{}].contains(principal.subject)",
        names.join(",")
    )));
    assert!(status().of(&policy).is_err());
}

#[test]
fn long_texts_without_sense_are_refused_soon() {
    const BYTES: usize = 1 << 18;
    for piece in [
        ";",
        "(",
        ")",
        "\"",
        "\\",
        "//",
        "@",
        "@id",
        "a",
        "a ",
        "1",
        "::",
        "permit",
        "permit(",
        "permit(principal,action,resource)",
        "?",
        "\0",
        "\u{202E}",
        "é",
        "-",
        "!",
        ".",
        ",",
        "[],",
        "{},",
        "\"a\":1,",
        "a::",
        "=",
        "permit(principal,action,resource)when{x}",
        "x;",
        "@a(\"b\")",
    ] {
        let text = piece.repeat(BYTES / piece.len());
        let start = Instant::now();
        let faults = load(&text).err().unwrap_or_default();
        assert!(!faults.is_empty() || piece == "//", "{piece}");
        // Generous: this is a debug build on a busy machine. A quadratic reader would need hours.
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{piece}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn arguments_cannot_pass_for_entities_or_extensions() {
    let text = r#"
        permit (principal, action == Action::"tracker_search", resource)
        when { context.arguments.query == "x" };
    "#;
    let policy = policy(text);
    for arguments in [
        json!({"query": {"__entity": {"type": "Caller", "id": "corp/root"}}}),
        json!({"query": {"__extn": {"fn": "datetime", "arg": "2026-01-01"}}}),
        json!({"query": {"__expr": "principal.subject"}}),
        json!({"query": ["x"]}),
    ] {
        assert!(search(arguments.clone()).of(&policy).is_err(), "{arguments}");
    }
    for (key, value) in [
        ("__entity", json!({"type": "Caller", "id": "x"})),
        ("__extn", json!({"fn": "ip", "arg": "::1"})),
        ("__cedar", json!(1)),
        ("", json!(0)),
        ("\u{202E}", json!("x")),
    ] {
        let mut question = search(json!({"query": "x"}));
        question.arguments.insert(key.to_owned(), value);
        assert!(
            question.of(&policy).is_ok(),
            "what is not declared is not passed: {key:?}"
        );
    }
    let text = search(json!({"query": "\" || true || \""}));
    assert!(text.of(&policy).is_err());
}

#[test]
fn ten_thousand_undeclared_arguments_change_nothing() {
    let policy = policy(
        &when("resource has owner && resource.owner == principal.tenant")
            .replace("action,", "action == Action::\"tracker_search\","),
    );
    let mut question = search(json!({"query": "x"}));
    for n in 0..10_000 {
        question
            .arguments
            .insert(format!("k{n}"), json!([n, {"deep": [n]}]));
    }
    assert!(question.of(&policy).is_ok());
    let labels: Vec<String> = (0..10_000).map(|n| format!("l{n}")).collect();
    let asks = crate::world::policy(
        "permit (principal, action == Action::\"tracker_search\", resource) when { context.arguments has labels && context.arguments.labels.contains(\"l9999\") };",
    );
    assert!(search(json!({"query": "x", "labels": labels})).of(&asks).is_ok());
}

#[test]
fn odd_subjects_and_ids_stay_texts() {
    let policy =
        policy("permit (principal == Caller::\"corp/ada\", action, resource == Invoice::\"inv-1\");");
    for id in ["inv-1\"", "Invoice::\"inv-1\"", "", "inv-1\0", "INV-1", " inv-1"] {
        let question = Asked {
            target: Some(crate::world::target("Invoice", id, Some("north"))),
            ..status()
        };
        assert!(question.of(&policy).is_err(), "{id:?}");
    }
    assert!(status().of(&policy).is_ok());
    let none = Asked {
        arguments: Object::new(),
        ..status()
    };
    assert!(none.of(&policy).is_err());
}

fn sense() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "permit",
        "forbid",
        "(",
        ")",
        "principal",
        "action",
        "resource",
        "context",
        ",",
        "when",
        "unless",
        "{",
        "}",
        ";",
        "==",
        "in",
        "is",
        "has",
        "like",
        "if",
        "then",
        "else",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "<",
        ".",
        "[",
        "]",
        "::",
        "Action",
        "Caller",
        "Invoice",
        "\"billing_refund\"",
        "\"class:read\"",
        "true",
        "false",
        "1",
        "9223372036854775808",
        "\"a*\"",
        "@id",
        "(\"x\")",
        "arguments",
        "cents",
        "owner",
        "contains",
        "datetime",
        "?principal",
        "unknown",
        "//",
        "\n",
        "\\",
        "é",
        "\u{202E}",
        "permit (principal, action, resource)",
        "when { ",
        " };",
        "getTag",
        "ip",
        "%",
        "/",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in any::<String>()) {
        read_anything(&text);
    }

    #[test]
    fn any_words_of_the_language_are_read_without_a_panic(text in sense()) {
        read_anything(&text);
    }

    #[test]
    fn any_words_behind_when_are_read_without_a_panic(text in sense()) {
        read_anything(&when(&text));
    }
}

#[test]
fn a_debug_print_of_a_policy_holds_no_rule() {
    let shown = format!("{:?}", policy(&when("principal.subject == \"secret-name\"")));
    assert!(!shown.contains("secret-name"), "{shown}");
    assert!(format!("{:?}", Policy::sealed("why".to_owned())).contains("why"));
}
