//! Who may do what: the worked example, every reason for a no, and how several rules combine.

use model::{Caller, FactValue, TenantId};
use policy::{DeniedWhy, Effect, Policy, Verdict};
use serde_json::json;

use crate::world::{
    Asked, EXAMPLE, ada, fact, file, fleet, ping, policy, refund, search, status, target, tool, with_roles,
};

fn rules(verdict: &Verdict) -> Vec<&str> {
    verdict.rules.iter().map(model::RuleId::as_str).collect()
}

/// The ids of the permits that decided, or why not.
fn asked(text: &str, question: &Asked) -> Result<Vec<String>, DeniedWhy> {
    let policy = policy(text);
    match question.of(&policy) {
        Ok(permitted) => {
            assert_eq!(permitted.get(), &"the call");
            assert_eq!(permitted.verdict().policy, policy.version());
            let (subject, verdict) = permitted.into_parts();
            assert_eq!(subject, "the call");
            Ok(rules(&verdict).into_iter().map(str::to_owned).collect())
        }
        Err(denied) => {
            assert_eq!(denied.policy, policy.version());
            Err(denied.why)
        }
    }
}

fn says_yes(text: &str, question: &Asked) -> bool {
    asked(text, question).is_ok()
}

/// The rules that failed, by id.
fn failed(text: &str, question: &Asked) -> Vec<String> {
    match asked(text, question) {
        Err(DeniedWhy::RuleFailed(failures)) => failures.iter().map(|(rule, _)| rule.to_string()).collect(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_member_reads_an_invoice_of_their_own_organisation_and_of_no_other() {
    assert_eq!(asked(EXAMPLE, &status()), Ok(vec!["a.cedar#0".to_owned()]));
    let other = Asked {
        target: Some(target("Invoice", "inv-1", Some("south"))),
        ..status()
    };
    assert_eq!(asked(EXAMPLE, &other), Err(DeniedWhy::NothingPermits));
    let stranger = Asked {
        caller: Caller {
            tenant: Some(TenantId::parse("south").unwrap()),
            ..ada()
        },
        ..status()
    };
    assert_eq!(asked(EXAMPLE, &stranger), Err(DeniedWhy::NothingPermits));
}

#[test]
fn nothing_is_permitted_that_no_rule_permits() {
    assert_eq!(asked("", &status()), Err(DeniedWhy::NothingPermits));
    assert_eq!(asked(EXAMPLE, &refund()), Err(DeniedWhy::NothingPermits));
    assert_eq!(asked(EXAMPLE, &ping()), Err(DeniedWhy::NothingPermits));
    let forbid = "forbid (principal, action, resource) when { principal.roles.contains(\"guest\") };";
    assert_eq!(asked(forbid, &status()), Err(DeniedWhy::NothingPermits));
}

#[test]
fn a_tool_that_is_not_enabled_is_unknown_to_every_rule() {
    let everything = policy("permit (principal, action, resource);");
    let unknown = Asked {
        tool: tool("billing_deleteEverything"),
        ..status()
    };
    assert_eq!(unknown.of(&everything).unwrap_err().why, DeniedWhy::UnknownAction);
    assert!(status().of(&everything).is_ok());
}

#[test]
fn a_sealed_policy_refuses_everything_and_says_why() {
    let sealed = Policy::sealed("policy/a.cedar:1:1: unexpected token `x`".to_owned());
    let denied = status().of(&sealed).unwrap_err();
    assert_eq!(
        denied.why,
        DeniedWhy::Sealed("policy/a.cedar:1:1: unexpected token `x`".to_owned())
    );
    assert!(denied.to_string().contains("unexpected token `x`"), "{denied}");
    assert!(!sealed.listable(&ada(), &tool("billing_getInvoiceStatus")));
    assert!(sealed.is_empty());
    assert_eq!(
        sealed.sealed_why(),
        Some("policy/a.cedar:1:1: unexpected token `x`")
    );
    assert_ne!(
        sealed.version(),
        Policy::sealed("another reason".to_owned()).version()
    );
}

#[test]
fn a_forbid_beats_every_permit_and_is_named() {
    let text = r#"
        permit (principal, action, resource);
        @id("frozen-accounts")
        forbid (principal, action == Action::"billing_refund", resource) when { context.facts.frozen };
        @id("large-refunds")
        forbid (principal, action == Action::"billing_refund", resource) when { context.arguments.cents > 100 };
    "#;
    let frozen = Asked {
        facts: vec![fact("frozen", FactValue::Truth(true))],
        ..refund()
    };
    match asked(text, &frozen) {
        Err(DeniedWhy::Forbidden(rules)) => {
            let rules: Vec<_> = rules.iter().map(model::RuleId::as_str).collect();
            assert_eq!(
                rules,
                ["frozen-accounts", "large-refunds"],
                "both, in the order of the file"
            );
        }
        other => panic!("{other:?}"),
    }
    let small = Asked {
        arguments: crate::world::object(json!({"invoiceId": "inv-1", "cents": 100})),
        ..refund()
    };
    assert_eq!(asked(text, &small), Ok(vec!["a.cedar#0".to_owned()]));
}

#[test]
fn every_permit_that_holds_is_named_in_the_order_of_the_files() {
    let files = [
        file(
            "policy/b.cedar",
            "permit (principal, action in Action::\"class:read\", resource);",
        ),
        file(
            "policy/a.cedar",
            "@id(\"z\") permit (principal, action, resource);\n@id(\"never\") permit (principal, action, resource) when { principal.subject == \"eve\" };",
        ),
        file("policy/c.cedar", EXAMPLE),
    ];
    let policy = Policy::load(&files, &fleet()).unwrap();
    let permitted = status().of(&policy).unwrap();
    assert_eq!(rules(permitted.verdict()), ["z", "b.cedar#0", "c.cedar#0"]);
}

#[test]
fn a_permit_that_fails_denies_although_another_permits() {
    let text = format!("permit (principal, action, resource); {EXAMPLE}");
    assert!(says_yes(&text, &status()));
    let homeless = Asked {
        caller: Caller {
            tenant: None,
            ..ada()
        },
        ..status()
    };
    assert_eq!(failed(&text, &homeless), ["a.cedar#1"]);
    let unowned = Asked {
        target: Some(target("Invoice", "inv-1", None)),
        ..status()
    };
    assert_eq!(failed(&text, &unowned), ["a.cedar#1"]);
}

#[test]
fn a_forbid_that_fails_denies_although_another_permits() {
    let text = r#"
        permit (principal, action, resource);
        @id("guard") forbid (principal, action, resource) when { principal.client == "bad-client" };
    "#;
    assert!(says_yes(text, &status()));
    let unnamed = Asked {
        caller: Caller {
            client: None,
            ..ada()
        },
        ..status()
    };
    assert_eq!(failed(text, &unnamed), ["guard"]);
    let denied = unnamed.of(&policy(text)).unwrap_err();
    assert_eq!(denied.rules().len(), 1);
    assert!(
        denied.to_string().contains("`guard` could not be evaluated"),
        "{denied}"
    );
    assert!(denied.to_string().contains("client"), "{denied}");
}

#[test]
fn a_forbid_that_holds_is_the_reason_even_where_another_rule_fails() {
    let text = r#"
        permit (principal, action, resource);
        forbid (principal, action, resource) when { principal.client == "bad-client" };
        @id("no-ada") forbid (principal, action, resource) when { principal.subject == "ada" };
    "#;
    let unnamed = Asked {
        caller: Caller {
            client: None,
            ..ada()
        },
        ..status()
    };
    match asked(text, &unnamed) {
        Err(DeniedWhy::Forbidden(rules)) => assert_eq!(rules[0].as_str(), "no-ada"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sum_beyond_64_bits_fails_and_denies() {
    let text = r#"
        permit (principal, action == Action::"billing_refund", resource);
        forbid (principal, action == Action::"billing_refund", resource)
        when { context.facts.balance + context.arguments.cents > 1000000 };
    "#;
    assert!(says_yes(text, &refund()));
    let huge = Asked {
        facts: vec![fact("balance", FactValue::Integer(i64::MAX))],
        ..refund()
    };
    assert_eq!(failed(text, &huge), ["a.cedar#1"]);
}

#[test]
fn a_failure_is_told_without_values() {
    let sum = "permit (principal, action == Action::\"billing_refund\", resource) when { context.facts.balance + context.arguments.cents > 0 };";
    let owner = "permit (principal, action == Action::\"billing_refund\", resource) when { resource.owner == \"north\" };";
    let tenant = "permit (principal, action, resource) when { principal.tenant == \"north\" };";
    let other = "permit (principal, action, resource) when { Invoice::\"secret-id\".owner == \"north\" };";
    let later = "permit (principal, action == Action::\"billing_refund\", resource) when { context.now.offset(duration(\"106751991167d\")) > context.now };";
    let question = Asked {
        caller: Caller {
            tenant: None,
            ..ada()
        },
        target: Some(target("Invoice", "` does not have the attribute `secret", None)),
        facts: vec![fact("balance", FactValue::Integer(i64::MAX - 77))],
        ..refund()
    };
    for (text, expected) in [
        (sum, "a number is beyond 64 bits"),
        (owner, "the `Invoice` does not have the attribute `owner`"),
        (tenant, "the `Caller` does not have the attribute `tenant`"),
        (
            other,
            "it reads from something that is neither the caller nor the resource",
        ),
        (later, "`offset` failed"),
    ] {
        let denied = question.of(&policy(text)).unwrap_err();
        assert_eq!(
            denied.to_string(),
            format!("rule `a.cedar#0` could not be evaluated: {expected}"),
            "{text}"
        );
    }
}

#[test]
fn a_policy_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Policy>();
}

#[test]
fn a_rule_that_asks_first_neither_fails_nor_permits_where_something_is_missing() {
    let text = r#"
        permit (principal, action, resource is Invoice)
        when { principal has tenant && resource has owner && resource.owner == principal.tenant };
        permit (principal, action, resource is Project) when { principal has client };
        forbid (principal, action == Action::"tracker_search", resource) unless { resource has owner };
    "#;
    assert!(says_yes(text, &status()));
    let homeless = Asked {
        caller: Caller {
            tenant: None,
            ..ada()
        },
        ..status()
    };
    assert_eq!(asked(text, &homeless), Err(DeniedWhy::NothingPermits));
    let unowned = Asked {
        target: Some(target("Invoice", "inv-1", None)),
        ..status()
    };
    assert_eq!(asked(text, &unowned), Err(DeniedWhy::NothingPermits));
    assert!(says_yes(text, &search(json!({"query": "x"}))));
    let unowned = Asked {
        target: Some(target("Project", "p-1", None)),
        ..search(json!({"query": "x"}))
    };
    assert!(matches!(asked(text, &unowned), Err(DeniedWhy::Forbidden(_))));
}

#[test]
fn a_missing_fact_is_missing_and_denies_the_rule_that_reads_it() {
    let text = r#"permit (principal, action == Action::"billing_refund", resource) when { context.facts.region == "eu" };"#;
    assert!(says_yes(text, &refund()));
    let unknown = Asked {
        facts: vec![fact("balance", FactValue::Integer(1))],
        ..refund()
    };
    assert_eq!(failed(text, &unknown), ["a.cedar#0"]);
    let elsewhere = Asked {
        facts: vec![fact("region", FactValue::Text("us".to_owned()))],
        ..refund()
    };
    assert_eq!(asked(text, &elsewhere), Err(DeniedWhy::NothingPermits));
}

#[test]
fn groups_hold_the_tools_of_a_class_and_of_an_upstream() {
    let questions = [status(), refund(), search(json!({"query": "x"})), ping()];
    for (scope, expected) in [
        ("action in Action::\"class:read\"", [true, false, true, true]),
        (
            "action in Action::\"class:destructive\"",
            [false, true, false, false],
        ),
        ("action in Action::\"class:write\"", [false, false, false, false]),
        (
            "action in Action::\"upstream:billing\"",
            [true, true, false, false],
        ),
        (
            "action in Action::\"upstream:tracker\"",
            [false, false, true, true],
        ),
        (
            "action in [Action::\"upstream:billing\", Action::\"tracker_ping\"]",
            [true, true, false, true],
        ),
        ("action in Action::\"tracker_ping\"", [false, false, false, true]),
        (
            "action == Action::\"billing_refund\"",
            [false, true, false, false],
        ),
        ("action", [true, true, true, true]),
    ] {
        let policy = policy(&format!("permit (principal, {scope}, resource);"));
        let found: Vec<_> = questions
            .iter()
            .map(|question| question.of(&policy).is_ok())
            .collect();
        assert_eq!(found, expected, "{scope}");
    }
}

#[test]
fn a_condition_can_ask_for_the_action_and_its_groups() {
    let questions = [status(), refund(), search(json!({"query": "x"})), ping()];
    for (condition, expected) in [
        ("action == Action::\"tracker_ping\"", [false, false, false, true]),
        ("action in Action::\"class:read\"", [true, false, true, true]),
        (
            "action in [Action::\"upstream:billing\", Action::\"tracker_ping\"]",
            [true, true, false, true],
        ),
        ("context.class == \"destructive\"", [false, true, false, false]),
        ("context.upstream == \"tracker\"", [false, false, true, true]),
        ("resource is Invoice", [true, true, false, false]),
        ("resource == Tool::\"tracker_ping\"", [false, false, false, true]),
        ("resource == Invoice::\"inv-1\"", [true, true, false, false]),
        (
            "resource is Project && resource.id == \"p-1\"",
            [false, false, true, false],
        ),
    ] {
        let policy = policy(&format!(
            "permit (principal, action, resource) when {{ {condition} }};"
        ));
        let found: Vec<_> = questions
            .iter()
            .map(|question| question.of(&policy).is_ok())
            .collect();
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn the_caller_is_read_as_issuer_and_subject_and_by_attributes() {
    for (condition, expected) in [
        ("principal == Caller::\"corp/ada\"", true),
        ("principal == Caller::\"corp/eve\"", false),
        ("principal == Caller::\"ada\"", false),
        ("principal.subject == \"ada\"", true),
        ("principal.issuer == \"corp\"", true),
        ("principal.issuer == \"key\"", false),
        ("principal.tenant == \"north\"", true),
        ("principal.client == \"ide\"", true),
        ("principal.roles.contains(\"member\")", true),
        ("principal.roles.contains(\"admin\")", false),
        ("principal.roles.containsAny([\"admin\", \"member\"])", true),
        ("principal.roles.isEmpty()", false),
        ("Caller::\"corp/ada\".tenant == \"north\"", true),
    ] {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        assert_eq!(says_yes(&text, &status()), expected, "{condition}");
    }
    let scoped = "permit (principal == Caller::\"corp/ada\", action, resource);";
    assert!(says_yes(scoped, &status()));
    let other = Asked {
        caller: Caller {
            issuer: "key".to_owned(),
            ..ada()
        },
        ..status()
    };
    assert!(!says_yes(scoped, &other));
    assert!(!says_yes(
        "permit (principal, action, resource) when { principal.roles.contains(\"member\") };",
        &Asked {
            caller: with_roles(&[]),
            ..status()
        }
    ));
}

#[test]
fn two_callers_cannot_share_an_id_through_a_slash_in_an_issuer() {
    let everything = policy("permit (principal, action, resource);");
    let slashed = Asked {
        caller: Caller {
            issuer: "corp/x".to_owned(),
            ..ada()
        },
        ..status()
    };
    assert!(matches!(
        slashed.of(&everything).unwrap_err().why,
        DeniedWhy::Unfit(_)
    ));
}

#[test]
fn arguments_are_read_with_their_declared_types() {
    let arguments = json!({
        "query": "open bugs", "limit": 20, "closed": false, "labels": ["a", "b", "a"],
        "filter": {"from": "2026", "depth": 2}, "page-size": 10, "callback": "https://evil.example", "score": 0.5,
    });
    for (condition, expected) in [
        ("context.arguments.query == \"open bugs\"", true),
        ("context.arguments.query like \"open*\"", true),
        (
            "context.arguments has limit && context.arguments.limit <= 20",
            true,
        ),
        (
            "context.arguments has limit && context.arguments.limit < 20",
            false,
        ),
        ("context.arguments has closed && !context.arguments.closed", true),
        (
            "context.arguments has labels && context.arguments.labels == [\"b\", \"a\"]",
            true,
        ),
        (
            "context.arguments has labels && context.arguments.labels.containsAll([\"a\"])",
            true,
        ),
        (
            "context.arguments has filter && context.arguments.filter.from == \"2026\"",
            true,
        ),
        (
            "context.arguments has filter.depth && context.arguments.filter.depth > 2",
            false,
        ),
        (
            "context.arguments has \"page-size\" && context.arguments[\"page-size\"] == 10",
            true,
        ),
        ("context.now == datetime(\"2026-11-30T12:00:00Z\")", true),
        ("context.now < datetime(\"2026-11-30\")", false),
        ("context.now.toTime() < duration(\"18h\")", true),
    ] {
        let text = format!(
            "permit (principal, action == Action::\"tracker_search\", resource) when {{ {condition} }};"
        );
        assert_eq!(
            says_yes(&text, &search(arguments.clone())),
            expected,
            "{condition}"
        );
    }
    let asks = "permit (principal, action == Action::\"tracker_search\", resource) when { context.arguments has limit };";
    assert!(!says_yes(asks, &search(json!({"query": "x"}))));
    let whole = "permit (principal, action == Action::\"tracker_search\", resource) when { context.arguments has limit && context.arguments.limit == 3 };";
    assert!(
        says_yes(whole, &search(json!({"query": "x", "limit": 3.0}))),
        "3.0 is an integer to JSON Schema"
    );
}

#[test]
fn now_is_passed_in_and_read_in_whole_milliseconds() {
    let text =
        "permit (principal, action, resource) when { context.now < datetime(\"2026-11-30T12:00:00.124Z\") };";
    for (now, expected) in [
        ("2026-11-30T12:00:00.123999999Z", true),
        ("2026-11-30T12:00:00.124Z", false),
        ("1969-07-20T20:17:40Z", true),
        ("0000-01-01T00:00:00Z", true),
    ] {
        let question = Asked {
            now: now.parse().unwrap(),
            ..status()
        };
        assert_eq!(says_yes(text, &question), expected, "{now}");
    }
    let before_counting = Asked {
        now: "-000001-01-01T00:00:00Z".parse().unwrap(),
        ..status()
    };
    assert!(matches!(asked(text, &before_counting), Err(DeniedWhy::Unfit(_))));
}

#[test]
fn a_question_that_does_not_fit_its_tool_is_denied_and_says_where() {
    let everything = policy("permit (principal, action, resource);");
    let unfit = |question: Asked| match question.of(&everything) {
        Err(denied) => match denied.why {
            DeniedWhy::Unfit(text) => text,
            other => panic!("{other:?}"),
        },
        Ok(_) => panic!("permitted: {question:?}"),
    };
    assert!(status().of(&everything).is_ok());
    assert!(
        unfit(Asked {
            target: None,
            ..status()
        })
        .contains("`Invoice`")
    );
    assert!(
        unfit(Asked {
            target: Some(target("Project", "p", None)),
            ..status()
        })
        .contains("`Project`")
    );
    assert!(
        unfit(Asked {
            target: Some(target("Invoice", "i", None)),
            ..ping()
        })
        .contains("`Invoice`")
    );

    assert!(search(json!({"query": "x"})).of(&everything).is_ok());
    for (arguments, place) in [
        (json!({}), "`query` is missing"),
        (json!({"query": 1}), "`query` is a number"),
        (json!({"query": null}), "`query` is null"),
        (json!({"query": "x", "limit": "1"}), "`limit` is a text"),
        (json!({"query": "x", "limit": 1.5}), "`limit` is a number"),
        (json!({"query": "x", "limit": 1e300}), "`limit` is a number"),
        (json!({"query": "x", "limit": u64::MAX}), "`limit` is a number"),
        (json!({"query": "x", "closed": "no"}), "`closed` is a text"),
        (json!({"query": "x", "labels": "a"}), "`labels` is a text"),
        (json!({"query": "x", "labels": ["a", 1]}), "`labels` is an array"),
        (json!({"query": "x", "filter": []}), "`filter` is an array"),
        (json!({"query": "x", "filter": {}}), "`filter.from` is missing"),
        (
            json!({"query": "x", "filter": {"from": "a", "depth": true}}),
            "`filter.depth` is a truth value",
        ),
    ] {
        let text = unfit(search(arguments.clone()));
        assert!(text.contains(place), "{arguments}: {text}");
    }

    assert!(refund().of(&everything).is_ok());
    let wrong = Asked {
        facts: vec![fact("frozen", FactValue::Text("no".to_owned()))],
        ..refund()
    };
    assert!(unfit(wrong).contains("`frozen`"));
    let twice = vec![
        fact("frozen", FactValue::Truth(true)),
        fact("frozen", FactValue::Truth(false)),
    ];
    assert!(
        unfit(Asked {
            facts: twice,
            ..refund()
        })
        .contains("twice")
    );
}

#[test]
fn what_is_not_declared_is_not_passed() {
    let everything = policy("permit (principal, action, resource);");
    let more = Asked {
        facts: vec![fact("gossip", FactValue::Integer(1))],
        arguments: crate::world::object(json!({"invoiceId": "inv-1", "invoice": {"id": 3}})),
        ..status()
    };
    assert!(more.of(&everything).is_ok());
}

#[test]
fn the_version_changes_with_paths_texts_and_tools_and_not_with_their_order() {
    let (one, other) = (file("a.cedar", EXAMPLE), file("b.cedar", "// none\n"));
    let version = |files: &[policy::PolicyFile], tools: &[policy::Action]| {
        Policy::load(files, tools).unwrap().version()
    };
    let tools = fleet();
    let base = version(&[one.clone(), other.clone()], &tools);
    let backwards: Vec<_> = tools.iter().rev().cloned().collect();
    assert_eq!(base, version(&[other.clone(), one.clone()], &backwards));
    assert_ne!(base, version(std::slice::from_ref(&one), &tools));
    assert_ne!(
        base,
        version(&[one.clone(), file("c.cedar", "// none\n")], &tools)
    );
    assert_ne!(
        base,
        version(&[one.clone(), file("b.cedar", "// none\n ")], &tools)
    );
    assert_ne!(base, version(&[one, other], &tools[..3]));
}

#[test]
fn rules_are_listed_per_tool_with_effect_file_and_line() {
    let files = [
        file(
            "policy/b.cedar",
            "\n\n@id(\"guard\") forbid (principal, action in Action::\"class:read\", resource) when { principal.subject == \"eve\" };",
        ),
        file("policy/a.cedar", EXAMPLE),
        file(
            "policy/c.cedar",
            "permit (principal, action in Action::\"class:write\", resource);",
        ),
    ];
    let policy = Policy::load(&files, &fleet()).unwrap();
    let listed = |name: &str| -> Vec<(String, Effect, String, usize)> {
        policy
            .rules_for(&tool(name))
            .into_iter()
            .map(|rule| (rule.id.to_string(), rule.effect, rule.file, rule.line))
            .collect()
    };
    let guard = ("guard".to_owned(), Effect::Forbid, "policy/b.cedar".to_owned(), 3);
    let example = (
        "a.cedar#0".to_owned(),
        Effect::Permit,
        "policy/a.cedar".to_owned(),
        2,
    );
    assert_eq!(listed("billing_getInvoiceStatus"), [example, guard.clone()]);
    assert_eq!(listed("tracker_ping"), [guard]);
    assert_eq!(listed("billing_refund"), []);
    assert_eq!(listed("nothing"), []);
    assert_eq!(
        policy
            .idle_rules()
            .iter()
            .map(|rule| rule.id.as_str())
            .collect::<Vec<_>>(),
        ["c.cedar#0"]
    );
}

#[test]
fn a_policy_without_rules_loads_and_says_that_it_is_empty() {
    assert!(Policy::load(&[], &fleet()).unwrap().is_empty());
    assert!(policy("// nothing yet\n").is_empty());
    assert!(Policy::load(&[], &[]).unwrap().is_empty());
    assert!(!policy(EXAMPLE).is_empty());
    assert!(!policy("forbid (principal, action in Action::\"class:write\", resource);").is_empty());
}
