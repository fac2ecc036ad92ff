//! Which tools a caller is shown: hidden only where every call would be refused.

use model::{Caller, ToolName};
use policy::Policy;

use crate::world::{EXAMPLE, ada, policy, tool, with_roles};

fn shown(text: &str, caller: &Caller) -> Vec<&'static str> {
    let policy = policy(text);
    [
        "billing_getInvoiceStatus",
        "billing_refund",
        "tracker_search",
        "tracker_ping",
    ]
    .into_iter()
    .filter(|name| policy.listable(caller, &ToolName::parse(name).unwrap()))
    .collect()
}

/// Whether refunds are shown to Ada, under a rule that permits everything and this one.
fn refund_shown(rule: &str) -> bool {
    shown(rule, &with_roles(&["member"])).contains(&"billing_refund")
}

fn permit(condition: &str) -> String {
    format!("permit (principal, action == Action::\"billing_refund\", resource) when {{ {condition} }};")
}

fn forbid(condition: &str) -> String {
    format!(
        "permit (principal, action, resource);\nforbid (principal, action == Action::\"billing_refund\", resource) when {{ {condition} }};"
    )
}

#[test]
fn a_tool_is_shown_where_some_call_might_be_permitted() {
    assert_eq!(shown(EXAMPLE, &ada()), ["billing_getInvoiceStatus"]);
    assert_eq!(
        shown(
            "permit (principal, action in Action::\"upstream:tracker\", resource);",
            &ada()
        ),
        ["tracker_search", "tracker_ping"]
    );
    assert_eq!(shown("", &ada()), [""; 0]);
    for condition in [
        "principal.roles.contains(\"member\")",
        "context.arguments.cents < 100",
        "context.facts.frozen",
        "!context.facts.frozen && context.facts.balance > 3",
        "context.now < datetime(\"1970-01-01\")",
        "resource.owner == \"elsewhere\"",
        "resource == Invoice::\"inv-7\"",
        "Invoice::\"inv-7\".owner == \"north\"",
        "principal.roles.contains(\"admin\") || context.arguments.cents < 100",
        "if context.facts.frozen then principal.roles.contains(\"admin\") else principal.roles.contains(\"member\")",
    ] {
        assert!(refund_shown(&permit(condition)), "{condition}");
    }
}

#[test]
fn a_tool_is_hidden_where_no_permit_can_hold_for_this_caller() {
    for condition in [
        "principal.roles.contains(\"admin\")",
        "principal.tenant == \"south\"",
        "principal == Caller::\"corp/eve\"",
        "principal.roles.contains(\"admin\") && context.arguments.cents < 100",
        "context.arguments.cents < 100 && principal.roles.contains(\"admin\")",
        "context.facts.frozen && (principal.roles.contains(\"admin\") || principal.subject == \"eve\")",
        "!(context.facts.frozen || principal.roles.contains(\"member\"))",
        "if context.facts.frozen then principal.roles.contains(\"admin\") else false",
        "context.class == \"write\"",
    ] {
        assert!(!refund_shown(&permit(condition)), "{condition}");
    }
    let unless = "permit (principal, action == Action::\"billing_refund\", resource) when { context.facts.frozen } unless { principal.roles.contains(\"member\") };";
    assert!(!refund_shown(unless));
    assert!(shown(unless, &with_roles(&[])).contains(&"billing_refund"));
}

#[test]
fn a_tool_is_hidden_where_every_call_is_forbidden() {
    for condition in [
        "principal.roles.contains(\"member\")",
        "principal.roles.contains(\"member\") || context.facts.frozen",
        "context.facts.frozen || principal.roles.contains(\"member\")",
        "!(context.facts.frozen && principal.roles.contains(\"admin\"))",
    ] {
        assert!(!refund_shown(&forbid(condition)), "{condition}");
    }
    for condition in [
        "principal.roles.contains(\"admin\")",
        "context.facts.frozen",
        "principal.roles.contains(\"member\") && context.facts.frozen",
        "context.facts.frozen && principal.roles.contains(\"member\")",
    ] {
        assert!(refund_shown(&forbid(condition)), "{condition}");
    }
}

#[test]
fn a_tool_is_hidden_where_a_rule_fails_in_every_call() {
    let text = format!("permit (principal, action, resource); {EXAMPLE}");
    assert!(shown(&text, &ada()).contains(&"billing_getInvoiceStatus"));
    let homeless = Caller {
        tenant: None,
        ..ada()
    };
    assert_eq!(
        shown(&text, &homeless),
        ["billing_refund", "tracker_search", "tracker_ping"]
    );
}

#[test]
fn a_tool_that_is_not_enabled_is_hidden() {
    let everything = policy("permit (principal, action, resource);");
    assert!(everything.listable(&ada(), &tool("tracker_ping")));
    assert!(!everything.listable(&ada(), &tool("tracker_pong")));
    let slashed = Caller {
        issuer: "a/b".to_owned(),
        ..ada()
    };
    assert!(!everything.listable(&slashed, &tool("tracker_ping")));
}

#[test]
fn what_may_be_shown_may_be_asked_about_and_nothing_else_may() {
    let some = policy(
        "@id(\"some\") permit (principal, action == Action::\"tracker_ping\", resource);\n\
         @id(\"none\") forbid (principal, action == Action::\"tracker_search\", resource);",
    );
    let asked = some.decide_listable((), &ada(), &tool("tracker_ping")).unwrap();
    let rules: Vec<&str> = asked.verdict().rules.iter().map(model::RuleId::as_str).collect();
    assert_eq!(rules, ["some"]);
    assert_eq!(asked.verdict().policy, some.version());
    for name in ["tracker_search", "tracker_pong", "billing_refund"] {
        let denied = some.decide_listable((), &ada(), &tool(name)).unwrap_err();
        assert_eq!(denied.policy, some.version(), "{name}");
    }
    let sealed = Policy::sealed("broken".to_owned());
    assert!(sealed.decide_listable((), &ada(), &tool("tracker_ping")).is_err());
}
