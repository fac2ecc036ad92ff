//! What would become of a call, step by step, without making it: for the person who wrote the rules.
//!
//! Each step is the pipeline's own function. Nothing is sent and nothing is written to the ledger; sources of facts are
//! asked, because without them nothing can be decided.

use std::sync::Arc;

use identity::Principal;
use model::{Arguments, Call, CallId, Refusal, Target, Value};
use policy::Question;
use serde_json::json;
use tokio::time::Instant;
use upstream::{Errand, Far, Preview};

use crate::house::Gateway;
use crate::pipeline::{Asked, consent, unsafe_request};
use crate::wanted;

/// The road of one call, as far as it would come.
#[derive(Debug)]
pub struct Explanation {
    /// The steps, in order. The last one is where the call would stop, or the request.
    pub steps: Vec<Step>,
    /// What would be sent, if the call came that far.
    pub request: Option<Preview>,
    /// What would stop it.
    pub refusal: Option<Refusal>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number on the road.
    pub number: u8,
    /// What it asks, in few words.
    pub name: &'static str,
    /// How it came out.
    pub outcome: StepOutcome,
    /// What was found, for the operator.
    pub detail: String,
}

/// How a step came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The call goes on.
    Passed,
    /// The call stops here.
    Stopped,
}

impl Explanation {
    /// Whether the call would be made.
    #[must_use]
    pub const fn would_be_made(&self) -> bool {
        self.refusal.is_none()
    }

    /// The explanation as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let steps: Vec<Value> = self
            .steps
            .iter()
            .map(|step| {
                let passed = match step.outcome {
                    StepOutcome::Passed => true,
                    StepOutcome::Stopped => false,
                };
                json!({ "step": step.number, "name": step.name, "passed": passed, "detail": step.detail })
            })
            .collect();
        json!({
            "would_be_made": self.would_be_made(),
            "steps": steps,
            "request": self.request.as_ref().map(Preview::to_json),
            "refusal": self.refusal.as_ref().map(|refusal| json!({
                "code": refusal.code(),
                "for_agent": refusal.for_agent(),
                "for_operator": refusal.for_operator(),
            })),
        })
    }

    fn passed(&mut self, number: u8, name: &'static str, detail: impl Into<String>) {
        self.steps.push(Step {
            number,
            name,
            outcome: StepOutcome::Passed,
            detail: detail.into(),
        });
    }

    fn stopped(mut self, number: u8, name: &'static str, refusal: Refusal) -> Self {
        let detail = format!("{}: {}", refusal.code(), refusal.for_operator());
        self.steps.push(Step {
            number,
            name,
            outcome: StepOutcome::Stopped,
            detail,
        });
        self.refusal = Some(refusal);
        self
    }
}

impl Gateway {
    /// Walks a call's road up to the request and says what each step finds. Sends nothing, records nothing.
    pub async fn explain(&self, principal: &Principal, asked: Asked) -> Explanation {
        let mut explanation = Explanation {
            steps: Vec::new(),
            request: None,
            refusal: None,
        };
        let caller = principal.caller();
        let tenant = caller.tenant.as_ref().map_or("none", |tenant| tenant.as_str());
        explanation.passed(
            2,
            "caller",
            format!(
                "{} of tenant {tenant}, by {}",
                caller.subject,
                principal.credential()
            ),
        );

        let named = self.find(asked.wanted, &asked.mount);
        if let Some(refusal) = named.refused {
            return explanation.stopped(5, "tool", refusal);
        }
        let admitted = match self.catalog.admit(&named.name, principal.caller(), self.now()) {
            Ok(admitted) => admitted,
            Err(fault) => return explanation.stopped(5, "tool", wanted::refusal(&fault)),
        };
        let tool = admitted.shared();
        let listed = if self.policy.listable(caller, tool.name()) {
            "listed"
        } else {
            "not listed"
        };
        explanation.passed(
            5,
            "tool",
            format!(
                "{} ({}), {}, {listed} for this caller, pin {}",
                tool.name(),
                tool.origin(),
                tool.class(),
                tool.pin().short()
            ),
        );

        let arguments: Arc<Arguments> = Arc::new(named.arguments);
        if let Err(refusal) = self.schemas.check(&tool, &arguments) {
            return explanation.stopped(6, "arguments", refusal);
        }
        let id = CallId::new();
        let injected = match self.lookups.injected(&tool, principal, id) {
            Ok(injected) => injected,
            Err(refusal) => return explanation.stopped(6, "arguments", refusal),
        };
        let added = if injected.is_empty() {
            String::new()
        } else {
            format!("; added: {}", Value::Object(injected.clone()))
        };
        let call = Call {
            id,
            tool: tool.name().clone(),
            upstream: tool.upstream().clone(),
            arguments: Arc::clone(&arguments),
            injected,
            aim: named.aim,
        };
        let Some(far) = self.upstreams.get(tool.upstream()) else {
            let refusal = Refusal::new(
                model::RefusalCode::UpstreamUnreachable,
                "the tool's upstream is not there",
            );
            return explanation.stopped(6, "arguments", refusal);
        };
        let errand = match far.prepare(&tool, &call) {
            Ok(errand) => errand,
            Err(fault) => return explanation.stopped(6, "arguments", unsafe_request(&fault)),
        };
        explanation.passed(6, "arguments", format!("fit the schema{added}"));

        let deadline = Instant::now() + self.limits.source_timeout;
        let found = match self.lookups.find(&tool, principal, &arguments, deadline).await {
            Ok(found) => found,
            Err(refusal) => return explanation.stopped(7, "owner and facts", refusal),
        };
        let facts: Vec<String> = found
            .facts
            .iter()
            .map(|fact| format!("{} = {}", fact.name, fact.value))
            .collect();
        let target = found
            .target
            .as_ref()
            .map_or_else(|| "the tool itself".to_owned(), described);
        let facts = if facts.is_empty() {
            String::new()
        } else {
            format!("; {}", facts.join(", "))
        };
        explanation.passed(7, "owner and facts", format!("{target}{facts}"));

        let now = self.now();
        let name = tool.name().clone();
        let question = Question {
            caller,
            tool: &name,
            target: found.target.as_ref(),
            arguments: arguments.object(),
            facts: &found.facts,
            now,
        };
        match self.policy.decide((), &question) {
            Ok(permitted) => {
                let rules: Vec<&str> = permitted
                    .verdict()
                    .rules
                    .iter()
                    .map(|rule| rule.as_str())
                    .collect();
                explanation.passed(8, "rules", format!("permitted by {}", rules.join(", ")));
            }
            Err(denied) => {
                let refusal = Refusal::new(model::RefusalCode::NotPermitted, denied.to_string());
                return explanation.stopped(8, "rules", refusal);
            }
        }
        match consent(&tool, now) {
            Ok(None) => explanation.passed(9, "consent", "not needed: the tool changes nothing"),
            Ok(Some(waiver)) => explanation.passed(9, "consent", format!("waived: {waiver}")),
            Err(refusal) => return explanation.stopped(9, "consent", refusal),
        }
        explanation.passed(10, "record", "the intent would be written here");
        let preview = match (far, errand) {
            (Far::Service(service), Errand::Request(outgoing)) => service.preview(&outgoing),
            (Far::Peer(peer), _) => match tool.server_tool() {
                Some(offered) => peer.preview(offered, &call),
                None => return explanation,
            },
            (Far::Service(_), Errand::Call) => return explanation,
        };
        explanation.passed(11, "request", format!("{} {}", preview.method, preview.url));
        explanation.request = Some(preview);
        explanation
    }
}

fn described(target: &Target) -> String {
    let owner = target
        .owner
        .as_ref()
        .map_or("nobody known", |owner| owner.as_str());
    format!("{} `{}`, owned by {owner}", target.kind, target.id)
}
