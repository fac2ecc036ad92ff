//! A small fleet of tools, callers and things for the tests to ask about.

use model::{
    Caller, Class, ClientId, Fact, FactValue, Object, ResourceType, Role, Subject, Target, TenantId,
    ToolName, UpstreamName, Value,
};
use policy::{Action, Denied, FactType, Permitted, Policy, PolicyFault, PolicyFile, Question};
use serde_json::json;

/// The rule of the worked example, as the design has it.
pub(crate) const EXAMPLE: &str = r#"
permit (
  principal is Caller,
  action == Action::"billing_getInvoiceStatus",
  resource is Invoice
) when { resource.owner == principal.tenant };
"#;

pub(crate) fn tool(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

pub(crate) fn action(
    name: &str,
    upstream: &str,
    class: Class,
    resource: Option<&str>,
    schema: Value,
) -> Action {
    Action {
        tool: tool(name),
        upstream: UpstreamName::parse(upstream).unwrap(),
        class,
        resource: resource.map(|kind| ResourceType::parse(kind).unwrap()),
        input_schema: schema,
        facts: vec![],
    }
}

/// Four tools of two upstreams, of three classes, with three kinds of resources and every type of argument.
pub(crate) fn fleet() -> Vec<Action> {
    let invoice = json!({
        "type": "object",
        "properties": {"invoiceId": {"type": "string"}},
        "required": ["invoiceId"],
        "additionalProperties": false,
    });
    let search = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "closed": {"type": "boolean"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "filter": {
                "type": "object",
                "properties": {"from": {"type": "string"}, "depth": {"type": "integer"}},
                "required": ["from"],
                "additionalProperties": false,
            },
            "page-size": {"type": "integer"},
            "callback": {"type": ["string", "null"]},
            "score": {"type": "number"},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let mut refund = action(
        "billing_refund",
        "billing",
        Class::Destructive,
        Some("Invoice"),
        json!({
            "type": "object",
            "properties": {"invoiceId": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["invoiceId", "cents"],
            "additionalProperties": false,
        }),
    );
    refund.facts = vec![
        ("frozen".to_owned(), FactType::Truth),
        ("balance".to_owned(), FactType::Integer),
        ("region".to_owned(), FactType::Text),
    ];
    vec![
        action(
            "billing_getInvoiceStatus",
            "billing",
            Class::Read,
            Some("Invoice"),
            invoice,
        ),
        refund,
        action("tracker_search", "tracker", Class::Read, Some("Project"), search),
        action(
            "tracker_ping",
            "tracker",
            Class::Read,
            None,
            json!({"type": "object", "properties": {}}),
        ),
    ]
}

pub(crate) fn file(path: &str, text: &str) -> PolicyFile {
    PolicyFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

pub(crate) fn load(text: &str) -> Result<Policy, Vec<PolicyFault>> {
    Policy::load(&[file("policy/a.cedar", text)], &fleet())
}

/// A policy that must load.
pub(crate) fn policy(text: &str) -> Policy {
    load(text).unwrap_or_else(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        panic!("{text}\n{}", faults.join("\n"))
    })
}

pub(crate) fn ada() -> Caller {
    Caller {
        issuer: "corp".to_owned(),
        subject: Subject::parse("ada").unwrap(),
        tenant: Some(TenantId::parse("north").unwrap()),
        roles: [Role::parse("member").unwrap()].into(),
        client: Some(ClientId::parse("ide").unwrap()),
    }
}

pub(crate) fn with_roles(roles: &[&str]) -> Caller {
    Caller {
        roles: roles.iter().map(|role| Role::parse(role).unwrap()).collect(),
        ..ada()
    }
}

pub(crate) fn target(kind: &str, id: &str, owner: Option<&str>) -> Target {
    Target {
        kind: ResourceType::parse(kind).unwrap(),
        id: id.to_owned(),
        owner: owner.map(|owner| TenantId::parse(owner).unwrap()),
    }
}

pub(crate) fn fact(name: &str, value: FactValue) -> Fact {
    Fact {
        name: name.to_owned(),
        value,
    }
}

pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// A question that owns its parts.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) tool: ToolName,
    pub(crate) target: Option<Target>,
    pub(crate) arguments: Object,
    pub(crate) facts: Vec<Fact>,
    pub(crate) now: jiff::Timestamp,
}

impl Asked {
    pub(crate) fn of(&self, policy: &Policy) -> Result<Permitted<&'static str>, Denied> {
        policy.decide("the call", &self.question())
    }

    pub(crate) fn question(&self) -> Question<'_> {
        Question {
            caller: &self.caller,
            tool: &self.tool,
            target: self.target.as_ref(),
            arguments: &self.arguments,
            facts: &self.facts,
            now: self.now,
        }
    }
}

/// Ada asks for the status of her own organisation's invoice.
pub(crate) fn status() -> Asked {
    Asked {
        caller: ada(),
        tool: tool("billing_getInvoiceStatus"),
        target: Some(target("Invoice", "inv-1", Some("north"))),
        arguments: object(json!({"invoiceId": "inv-1"})),
        facts: vec![],
        now: "2026-11-30T12:00:00Z".parse().unwrap(),
    }
}

/// Ada refunds 500 cents of that invoice.
pub(crate) fn refund() -> Asked {
    Asked {
        tool: tool("billing_refund"),
        arguments: object(json!({"invoiceId": "inv-1", "cents": 500})),
        facts: vec![
            fact("frozen", FactValue::Truth(false)),
            fact("balance", FactValue::Integer(1_000)),
            fact("region", FactValue::Text("eu".to_owned())),
        ],
        ..status()
    }
}

/// Ada searches a project, with these arguments.
pub(crate) fn search(arguments: Value) -> Asked {
    Asked {
        tool: tool("tracker_search"),
        target: Some(target("Project", "p-1", Some("north"))),
        arguments: object(arguments),
        ..status()
    }
}

/// Ada pings.
pub(crate) fn ping() -> Asked {
    Asked {
        tool: tool("tracker_ping"),
        target: None,
        arguments: Object::new(),
        ..status()
    }
}
