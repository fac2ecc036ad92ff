//! The whole way of a hostile policy text, from file to decision, for the fuzzer and for property tests.

use jiff::Timestamp;
use model::{
    Caller, Class, NameFault, Object, ResourceType, Subject, Target, TenantId, ToolName, UpstreamName,
};
use serde_json::json;

use crate::{Action, FactType, Policy, PolicyFile, Question};

/// Loads any text as a policy file; if it loads, decides and lists with it.
///
/// It ends without a panic and without exhausting a stack of 2 MiB, whatever the text. Gives whether the text loaded.
#[doc(hidden)]
pub fn read_anything(text: &str) -> bool {
    read(text).unwrap_or_default()
}

fn read(text: &str) -> Result<bool, NameFault> {
    let actions = tools()?;
    let file = PolicyFile {
        path: "fuzzed.cedar".to_owned(),
        text: text.to_owned(),
    };
    let Ok(policy) = Policy::load(&[file], &actions) else {
        return Ok(false);
    };
    let caller = Caller {
        issuer: "corp".to_owned(),
        subject: Subject::parse("ada")?,
        tenant: Some(TenantId::parse("north")?),
        roles: [].into(),
        client: None,
    };
    let arguments = Object::from_iter([
        ("invoiceId".to_owned(), json!("inv-1")),
        ("cents".to_owned(), json!(7)),
    ]);
    for action in &actions {
        let target = action.resource.clone().map(|kind| Target {
            kind,
            id: "inv-1".to_owned(),
            owner: Some(caller.tenant.clone()).flatten(),
        });
        let question = Question {
            caller: &caller,
            tool: &action.tool,
            target: target.as_ref(),
            arguments: &arguments,
            facts: &[],
            now: Timestamp::UNIX_EPOCH,
        };
        let permitted = policy.decide((), &question).is_ok();
        let listed = policy.listable(&caller, &action.tool);
        assert!(listed || !permitted, "a tool that may be called is hidden");
    }
    Ok(true)
}

fn tools() -> Result<[Action; 2], NameFault> {
    let refund = Action {
        tool: ToolName::parse("billing_refund")?,
        upstream: UpstreamName::parse("billing")?,
        class: Class::Destructive,
        resource: Some(ResourceType::parse("Invoice")?),
        input_schema: json!({
            "type": "object",
            "properties": {"invoiceId": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["invoiceId"],
        }),
        facts: vec![("frozen".to_owned(), FactType::Truth)],
    };
    let ping = Action {
        tool: ToolName::parse("ping")?,
        class: Class::Read,
        resource: None,
        ..refund.clone()
    };
    Ok([refund, ping])
}
