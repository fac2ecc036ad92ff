//! What holds for every set of rules and every question, against a second opinion: Cedar itself, asked the slow way.
//!
//! The second opinion evaluates all rules as they are written, in one set, over everything that is known, with
//! entities and context read from JSON. It shares nothing with the room but the rule that a failure denies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, EntityUid, PolicyId, PolicySet, Request, Schema,
    ValidationMode, Validator,
};
use model::{Caller, ClientId, FactValue, Role, TenantId};
use policy::{DeniedWhy, Policy};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Asked, ada, fact, file, fleet, object, ping, refund, search, status, target};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Policy::load(&[], &fleet())
        .unwrap()
        .schema_text()
        .parse()
        .unwrap()
});

// === random rules ===

fn atom() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "true",
        "false",
        "principal has tenant",
        "principal.tenant == \"north\"",
        "principal.client == \"ide\"",
        "principal has client && principal.client like \"i*\"",
        "principal.subject == \"ada\"",
        "principal.roles.contains(\"admin\")",
        "principal == Caller::\"corp/ada\"",
        "principal is Caller",
        "Caller::\"corp/ada\".issuer == \"corp\"",
        "action == Action::\"tracker_search\"",
        "action in Action::\"class:read\"",
        "action in [Action::\"upstream:billing\", Action::\"tracker_ping\"]",
        "resource is Invoice",
        "resource is Invoice && resource.owner == principal.tenant",
        "resource has owner && resource.owner == \"north\"",
        "resource has id && resource.id == \"inv-1\"",
        "resource == Invoice::\"inv-1\"",
        "resource == Tool::\"tracker_ping\"",
        "Invoice::\"inv-1\".owner == \"north\"",
        "Project::\"p-1\" has owner",
        "context.class == \"read\"",
        "context.upstream != \"billing\"",
        "context.now < datetime(\"2026-06-01\")",
        "context.arguments has limit",
        "context.arguments has limit && context.arguments.limit * 2 > 9",
        "context.arguments has closed && context.arguments.closed",
        "context.arguments has filter.depth && context.arguments.filter.depth == 1",
        "context.arguments has labels && context.arguments.labels.contains(\"a\")",
        "context.arguments has cents && context.arguments.cents + 9223372036854775000 > 0",
        "context.arguments.cents > 100",
        "context.arguments has \"page-size\" && context.arguments[\"page-size\"] < 5",
        "context.facts.frozen",
        "context.facts.balance - 1 > 10",
        "[1, 2].contains(1)",
        "principal is Caller in Caller::\"corp/ada\"",
        "principal.subject like \"a\\*\"",
        "principal.subject like \"*d*\"",
        "-9223372036854775808 < -(5)",
        "ip(\"10.0.0.1\").isInRange(ip(\"10.0.0.0/8\"))",
        "decimal(\"1.5\").lessThan(decimal(\"2.0\"))",
        "context.now.offset(duration(\"1d\")) > datetime(\"2026-12-01\")",
        "{a: principal.subject}.a == \"ada\"",
        "(if principal has tenant then principal else Caller::\"corp/eve\") == Caller::\"corp/ada\"",
        "(if principal has client then principal else Caller::\"corp/eve\").subject == \"ada\"",
        "[principal, Caller::\"corp/eve\"].contains(Caller::\"corp/ada\")",
    ])
}

fn condition() -> impl Strategy<Value = String> {
    atom()
        .prop_map(|atom| format!("({atom})"))
        .prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
                inner.clone().prop_map(|a| format!("!{a}")),
                (inner.clone(), inner.clone(), inner)
                    .prop_map(|(a, b, c)| format!("(if {a} then {b} else {c})")),
            ]
        })
}

fn rule() -> impl Strategy<Value = String> {
    let principal = prop::sample::select(vec![
        "principal",
        "principal",
        "principal is Caller",
        "principal == Caller::\"corp/ada\"",
    ]);
    let action = prop::sample::select(vec![
        "action",
        "action",
        "action == Action::\"billing_refund\"",
        "action == Action::\"tracker_search\"",
        "action == Action::\"tracker_ping\"",
        "action in Action::\"class:read\"",
        "action in Action::\"class:destructive\"",
        "action in Action::\"upstream:tracker\"",
        "action in [Action::\"tracker_ping\", Action::\"upstream:billing\"]",
    ]);
    let resource = prop::sample::select(vec![
        "resource",
        "resource",
        "resource is Invoice",
        "resource is Project",
        "resource == Invoice::\"inv-1\"",
        "resource is Tool",
    ]);
    let effect = prop::sample::select(vec!["permit", "permit", "forbid"]);
    let clause = prop::sample::select(vec!["when", "when", "unless"]);
    (
        effect,
        principal,
        action,
        resource,
        prop::collection::vec((clause, condition()), 0..3),
    )
        .prop_map(|(effect, principal, action, resource, clauses)| {
            let clauses: String = clauses
                .iter()
                .map(|(clause, condition)| format!(" {clause} {{ {condition} }}"))
                .collect();
            format!("{effect} ({principal}, {action}, {resource}){clauses};")
        })
}

/// Rules that load, each by itself.
fn rules() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(rule(), 1..8).prop_map(|rules| {
        rules
            .into_iter()
            .filter(|rule| Policy::load(&[file("a.cedar", rule)], &fleet()).is_ok())
            .collect()
    })
}

// === random questions ===

fn caller() -> impl Strategy<Value = Caller> {
    (
        prop::sample::select(vec!["ada", "eve"]),
        prop::option::of(prop::sample::select(vec!["north", "south"])),
        prop::option::of(Just("ide")),
        prop::bool::ANY,
    )
        .prop_map(|(subject, tenant, client, admin)| Caller {
            subject: model::Subject::parse(subject).unwrap(),
            tenant: tenant.map(|tenant| TenantId::parse(tenant).unwrap()),
            client: client.map(|client| ClientId::parse(client).unwrap()),
            roles: admin.then(|| Role::parse("admin").unwrap()).into_iter().collect(),
            ..ada()
        })
}

fn arguments() -> impl Strategy<Value = Value> {
    let maybe = |value: Value| prop::option::of(Just(value));
    (
        prop::option::of(0..8_i64),
        prop::option::of(prop::bool::ANY),
        maybe(json!(["a", "b"])),
        prop::option::of(prop::sample::select(vec![
            json!({"from": "x"}),
            json!({"from": "x", "depth": 1}),
        ])),
        prop::option::of(0..8_i64),
    )
        .prop_map(|(limit, closed, labels, filter, page)| {
            let mut arguments = object(json!({"query": "x"}));
            for (name, value) in [
                ("limit", limit.map(Value::from)),
                ("closed", closed.map(Value::from)),
                ("labels", labels),
                ("filter", filter),
                ("page-size", page.map(Value::from)),
            ] {
                if let Some(value) = value {
                    arguments.insert(name.to_owned(), value);
                }
            }
            Value::Object(arguments)
        })
}

fn question() -> impl Strategy<Value = Asked> {
    let owner = prop::option::of(prop::sample::select(vec!["north", "south"]));
    let id = prop::sample::select(vec!["inv-1", "p-1", "other"]);
    let facts = (
        prop::option::of(prop::bool::ANY),
        prop::option::of(prop::sample::select(vec![0, 100, i64::MIN])),
    );
    let now = prop::sample::select(vec!["2026-01-01T00:00:00Z", "2026-11-30T12:00:00.5Z"]);
    (
        0..4_usize,
        caller(),
        arguments(),
        owner,
        id,
        facts,
        now,
        0..2_000_i64,
    )
        .prop_map(
            |(which, caller, arguments, owner, id, (frozen, balance), now, cents)| {
                let base = match which {
                    0 => status(),
                    1 => Asked {
                        arguments: object(json!({"invoiceId": id, "cents": cents})),
                        facts: [
                            frozen.map(|frozen| fact("frozen", FactValue::Truth(frozen))),
                            balance.map(|balance| fact("balance", FactValue::Integer(balance))),
                        ]
                        .into_iter()
                        .flatten()
                        .collect(),
                        ..refund()
                    },
                    2 => search(arguments),
                    _ => ping(),
                };
                let target = base
                    .target
                    .as_ref()
                    .map(|known| target(known.kind.as_str(), id, owner));
                Asked {
                    caller,
                    target,
                    now: now.parse().unwrap(),
                    ..base
                }
            },
        )
}

// === the second opinion ===

#[derive(Debug, PartialEq, Eq)]
enum Opinion {
    Permitted(BTreeSet<usize>),
    Forbidden(BTreeSet<usize>),
    Failed(BTreeSet<usize>),
    Nothing,
}

fn cedar(rules: &[String], asked: &Asked) -> Opinion {
    let set = PolicySet::from_policies(rules.iter().enumerate().map(|(number, rule)| {
        cedar_policy::Policy::parse(Some(PolicyId::new(number.to_string())), rule).unwrap()
    }))
    .unwrap();
    let uid = |kind: &str, id: &str| EntityUid::from_json(json!({"type": kind, "id": id})).unwrap();
    let caller = &asked.caller;
    let caller_id = format!("{}/{}", caller.issuer, caller.subject);
    let mut attributes =
        object(json!({"subject": caller.subject, "issuer": caller.issuer, "roles": caller.roles}));
    attributes.extend(
        caller
            .tenant
            .iter()
            .map(|tenant| ("tenant".to_owned(), json!(tenant))),
    );
    attributes.extend(
        caller
            .client
            .iter()
            .map(|client| ("client".to_owned(), json!(client))),
    );
    let (kind, id) = asked
        .target
        .as_ref()
        .map_or(("Tool", asked.tool.as_str()), |target| {
            (target.kind.as_str(), target.id.as_str())
        });
    let mut thing = object(json!({}));
    if let Some(target) = &asked.target {
        thing.insert("id".to_owned(), json!(target.id));
        thing.extend(
            target
                .owner
                .iter()
                .map(|owner| ("owner".to_owned(), json!(owner))),
        );
    }
    let entities = json!([
        {"uid": {"type": "Caller", "id": caller_id}, "attrs": attributes, "parents": []},
        {"uid": {"type": kind, "id": id}, "attrs": thing, "parents": []},
    ]);
    let entities = SCHEMA
        .action_entities()
        .unwrap()
        .add_entities_from_json_value(entities, None)
        .unwrap();
    let tool = fleet()
        .into_iter()
        .find(|action| action.tool == asked.tool)
        .unwrap();
    let facts: serde_json::Map<String, Value> = asked
        .facts
        .iter()
        .map(|fact| (fact.name.clone(), json!(fact.value)))
        .collect();
    let context = json!({
        "class": tool.class, "upstream": tool.upstream, "arguments": asked.arguments, "facts": facts,
        "now": {"__extn": {"fn": "datetime", "arg": asked.now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()}},
    });
    let context = Context::from_json_value(context, None).unwrap();
    let request = Request::new(
        uid("Caller", &caller_id),
        uid("Action", asked.tool.as_str()),
        uid(kind, id),
        context,
        None,
    )
    .unwrap();
    let response = Authorizer::new().is_authorized(&request, &set, &entities);

    let number = |id: &PolicyId| id.to_string().parse::<usize>().unwrap();
    let reasons: BTreeSet<usize> = response.diagnostics().reason().map(number).collect();
    let failed: BTreeSet<usize> = response
        .diagnostics()
        .errors()
        .map(|AuthorizationError::PolicyEvaluationError(error)| number(error.policy_id()))
        .collect();
    match (response.decision(), reasons.is_empty(), failed.is_empty()) {
        (Decision::Deny, false, _) => Opinion::Forbidden(reasons),
        (_, _, false) => Opinion::Failed(failed),
        (Decision::Allow, _, true) => Opinion::Permitted(reasons),
        (Decision::Deny, true, true) => Opinion::Nothing,
    }
}

fn ours(policy: &Policy, asked: &Asked) -> Opinion {
    let number = |id: &model::RuleId| id.as_str().rsplit('#').next().unwrap().parse::<usize>().unwrap();
    match asked.of(policy) {
        Ok(permitted) => Opinion::Permitted(permitted.verdict().rules.iter().map(number).collect()),
        Err(denied) => match denied.why {
            DeniedWhy::Forbidden(rules) => Opinion::Forbidden(rules.iter().map(number).collect()),
            DeniedWhy::RuleFailed(rules) => {
                Opinion::Failed(rules.iter().map(|(rule, _)| number(rule)).collect())
            }
            DeniedWhy::NothingPermits => Opinion::Nothing,
            other @ (DeniedWhy::Sealed(_) | DeniedWhy::UnknownAction | DeniedWhy::Unfit(_)) => {
                panic!("{other:?}")
            }
        },
    }
}

fn whole(rules: &[String]) -> Policy {
    Policy::load(&[file("a.cedar", &rules.join("\n"))], &fleet()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_decision_over_the_tools_own_rules_is_the_decision_over_all_rules(
        rules in rules(),
        questions in prop::collection::vec(question(), 1..8),
    ) {
        let policy = whole(&rules);
        // Twice: what was worked out for the first answer is remembered for the second.
        for asked in questions.iter().chain(&questions) {
            prop_assert_eq!(ours(&policy, asked), cedar(&rules, asked), "{:#?} {:?}", &rules, asked);
        }
    }

    #[test]
    fn a_tool_with_a_call_that_is_permitted_is_shown(
        rules in rules(),
        questions in prop::collection::vec(question(), 1..16),
    ) {
        let policy = whole(&rules);
        for asked in &questions {
            if asked.of(&policy).is_ok() {
                prop_assert!(policy.listable(&asked.caller, &asked.tool), "{:#?} {:?}", &rules, asked);
            }
        }
    }

    /// What the room finds beyond Cedar are the ways of reading that Cedar lets pass; nothing goes the other way.
    #[test]
    fn a_rule_loads_where_cedar_finds_nothing_against_the_whole_schema(rule in rule()) {
        let set = PolicySet::from_policies([cedar_policy::Policy::parse(None, &rule).unwrap()]).unwrap();
        let result = Validator::new(SCHEMA.clone()).validate(&set, ValidationMode::Strict);
        let sound = result.validation_passed_without_warnings();
        let faults = Policy::load(&[file("a.cedar", &rule)], &fleet()).err().unwrap_or_default();
        let own = |fault: &policy::PolicyFault| fault.text.starts_with("no attribute `") || fault.text.starts_with("rules cannot read");
        prop_assert!(sound || !faults.is_empty(), "{}\n{}", rule, result);
        prop_assert!(!sound || faults.iter().all(own), "{}\n{:?}", rule, faults);
    }
}
