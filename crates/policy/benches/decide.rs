//! What a decision costs, and what loading a large policy costs.
//!
//! `cargo bench -p tollhouse-policy` prints a table: the best of several batches, in microseconds on the wall clock.
//! With a case and a number behind `--`, as `cargo bench -p tollhouse-policy -- ten-rules 1000`, it runs that case so
//! often and prints nothing, for tools that count instructions.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for developers"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use model::{Caller, Class, Object, ResourceType, Role, Subject, Target, TenantId, ToolName, UpstreamName};
use policy::{Action, Policy, PolicyFile, Question};
use serde_json::json;

const OWNER: &str = "permit (principal is Caller, action == Action::\"billing_get\", resource is Invoice) when { resource.owner == principal.tenant };\n";

/// Ten rules of the kinds that people write; three of them hold.
const MIXED: &str = r#"
permit (principal is Caller, action == Action::"billing_get", resource is Invoice) when { resource.owner == principal.tenant };
permit (principal, action in Action::"class:read", resource) when { principal.roles.contains("auditor") };
permit (principal, action in Action::"upstream:billing", resource) when { principal.roles.contains("billing-admin") };
permit (principal == Caller::"corp/root", action, resource);
permit (principal, action in Action::"class:read", resource is Invoice) when { context.arguments.limit <= 100 && resource has owner && resource.owner == principal.tenant };
permit (principal, action, resource) when { principal.roles.contains("support") && context.arguments.limit <= 10 };
forbid (principal, action, resource) when { principal.roles.contains("suspended") };
forbid (principal, action in Action::"class:destructive", resource) unless { principal.roles.contains("admin") };
forbid (principal, action in Action::"class:read", resource is Invoice) when { context.arguments.limit > 1000 };
permit (principal, action in Action::"upstream:billing", resource is Invoice) when { principal has tenant && resource.owner == principal.tenant };
"#;

fn action(name: &str, upstream: &str, class: Class, kind: &str) -> Action {
    Action {
        tool: ToolName::parse(name).unwrap(),
        upstream: UpstreamName::parse(upstream).unwrap(),
        class,
        resource: Some(ResourceType::parse(kind).unwrap()),
        input_schema: json!({
            "type": "object",
            "properties": {
                "invoiceId": {"type": "string"}, "limit": {"type": "integer"}, "query": {"type": "string"},
                "labels": {"type": "array", "items": {"type": "string"}}, "open": {"type": "boolean"},
            },
            "required": ["invoiceId", "limit"],
            "additionalProperties": false,
        }),
        facts: vec![],
    }
}

fn load(text: &str, actions: &[Action]) -> Policy {
    let file = PolicyFile {
        path: "bench.cedar".to_owned(),
        text: text.to_owned(),
    };
    Policy::load(&[file], actions).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// The question that every case asks: about an invoice of the caller's own organisation.
struct Asked {
    caller: Caller,
    tool: ToolName,
    target: Target,
    arguments: Object,
}

impl Asked {
    fn new() -> Self {
        Self {
            caller: Caller {
                issuer: "corp".to_owned(),
                subject: Subject::parse("ada").unwrap(),
                tenant: Some(TenantId::parse("north").unwrap()),
                roles: ["auditor", "member"]
                    .map(|role| Role::parse(role).unwrap())
                    .into(),
                client: None,
            },
            tool: ToolName::parse("billing_get").unwrap(),
            target: Target {
                kind: ResourceType::parse("Invoice").unwrap(),
                id: "inv-1".to_owned(),
                owner: Some(TenantId::parse("north").unwrap()),
            },
            arguments: json!({"invoiceId": "inv-1", "limit": 20, "labels": ["a", "b"]})
                .as_object()
                .unwrap()
                .clone(),
        }
    }

    fn decide(&self, policy: &Policy) -> usize {
        let question = Question {
            caller: &self.caller,
            tool: &self.tool,
            target: Some(&self.target),
            arguments: &self.arguments,
            facts: &[],
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        policy.decide((), &question).unwrap().verdict().rules.len()
    }
}

fn main() {
    // Cargo adds `--bench`.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let asked = Asked::new();
    let tools = [action("billing_get", "billing", Class::Read, "Invoice")];
    let one = load(OWNER, &tools);
    let ten = load(&OWNER.repeat(10), &tools);
    let mixed = load(MIXED, &tools);
    let timed = load(
        &format!(
            "{OWNER}forbid (principal, action, resource) when {{ context.now < datetime(\"1969-01-01\") }};"
        ),
        &tools,
    );
    let cases: [(&str, &dyn Fn() -> usize); 6] = [
        ("one-rule", &|| asked.decide(&one)),
        ("ten-rules", &|| asked.decide(&ten)),
        ("ten-mixed", &|| asked.decide(&mixed)),
        ("two-with-time", &|| asked.decide(&timed)),
        ("list-one", &|| {
            usize::from(one.listable(&asked.caller, &asked.tool))
        }),
        ("list-mixed", &|| {
            usize::from(mixed.listable(&asked.caller, &asked.tool))
        }),
    ];
    match words.as_slice() {
        [] => {
            for (name, case) in cases {
                println!("{name:<16} {:>9.2} µs", best(case).as_secs_f64() * 1e6);
            }
            large();
        }
        [name, count] => {
            let (_, case) = cases
                .iter()
                .find(|(known, _)| known == name)
                .expect("a case by this name");
            for _ in 0..count.parse::<usize>().unwrap() {
                black_box(case());
            }
        }
        _ => panic!("nothing, or a case and a number"),
    }
}

/// The best of many short batches, per call: short, so that on a busy machine some batch runs undisturbed.
fn best(case: &dyn Fn() -> usize) -> Duration {
    const CALLS: u32 = 20;
    (0..1_000)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                black_box(case());
            }
            start.elapsed() / CALLS
        })
        .min()
        .unwrap()
}

/// 1 000 tools of 20 upstreams with 25 types of resources, and 200 rules of four kinds.
fn large() {
    let classes = Class::ALL;
    let tools: Vec<Action> = (0..1_000)
        .map(|n| {
            action(
                &format!("tool{n}"),
                &format!("upstream{}", n % 20),
                classes[n % 4],
                &format!("Type{}", n % 25),
            )
        })
        .collect();
    let mut text = String::new();
    for n in 0..50 {
        let (class, tool, upstream) = (classes[n % 4], n * 17, n % 20);
        writeln!(text, "permit (principal, action == Action::\"tool{tool}\", resource) when {{ resource.owner == principal.tenant }};").unwrap();
        writeln!(text, "permit (principal, action in Action::\"class:{class}\", resource) when {{ principal.roles.contains(\"r{n}\") && context.arguments.limit < {n} }};").unwrap();
        writeln!(text, "permit (principal, action in Action::\"upstream:upstream{upstream}\", resource) when {{ resource.owner == principal.tenant && principal.roles.contains(\"r{n}\") }};").unwrap();
        writeln!(text, "forbid (principal, action, resource) when {{ principal.roles.contains(\"x{n}\") && context.arguments has labels && context.arguments.labels.contains(\"secret\") }};").unwrap();
    }
    let start = Instant::now();
    let policy = load(&text, &tools);
    println!(
        "load 1000 tools, 200 rules: {:>7.0} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    let caller = Asked::new().caller;
    let start = Instant::now();
    let mut listing = policy.listing(&caller);
    let shown = tools.iter().filter(|tool| listing.shows(&tool.tool)).count();
    println!(
        "list 1000 tools, {shown} shown: {:>7.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
}
