//! Work that takes longer than one request: the operations that look after it and call it off, and how its end is known.
//! It sends nothing; that is `upstream`.

use config::{CredentialSettings, DocumentServerSettings, LongRunningSettings};
use model::{Digest, Object, UpstreamName, Value};
use openapi::{
    BuildFault, Document, Generated, Prepared, Projection, ProjectionFault, RequestPlan, ToolOptions,
};

use crate::access::Access;
use crate::tool::base_path;

/// How the work of a tool is looked after.
#[derive(Debug)]
pub struct LongRunning {
    settings: LongRunningSettings,
    status: Step,
    cancel: Option<Step>,
    id: Projection,
    state: Projection,
    progress: Option<Projection>,
}

/// One operation that takes the name of the work, and nothing else.
#[derive(Debug)]
pub struct Step {
    plan: RequestPlan,
    argument: String,
    access: Access,
    /// Everything in the document that it depends on.
    digest: Digest,
    /// What stands before its path.
    base_path: String,
}

/// Where work stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It goes on.
    Running {
        /// How much is done, in percent, where the service says that.
        percent: Option<u8>,
    },
    /// It is done.
    Done,
    /// It failed, in this state of the configuration.
    Failed(String),
    /// The answer does not say.
    Unsaid,
}

/// Why work cannot be looked after so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct WorkFault {
    /// Which key is at fault: `status`, `cancel`, `id`, …
    pub part: &'static str,
    /// What is wrong, and what would clear it.
    pub text: String,
}

/// The name under which a single path gives its value.
const FIELD: &str = "value";

/// The longest name of a piece of work, in bytes.
const ID_BYTES_MAX: usize = 1_024;

impl LongRunning {
    /// Reads the bounds against the document. Gives also what the status operation is as a tool, whose answer is the
    /// result of the call.
    pub(crate) fn review(
        upstream: &UpstreamName,
        (settings, server): (&LongRunningSettings, Option<&DocumentServerSettings>),
        document: &Document,
        credentials: &CredentialSettings,
        returns: Option<Projection>,
    ) -> Result<(Self, Generated), WorkFault> {
        let reviewing = Reviewing {
            upstream,
            settings,
            server,
            document,
            credentials,
        };
        let (status, generated) = reviewing.step("status", &settings.status, returns)?;
        if !generated.safe_method {
            return Err(WorkFault {
                part: "status",
                text: format!(
                    "`{}` is no GET: looking after work must not change anything; name the operation that only tells of it",
                    generated.operation
                ),
            });
        }
        let cancel = match &settings.cancel {
            None => None,
            Some(cancel) => Some(reviewing.step("cancel", cancel, None)?.0),
        };
        let path = |part: &'static str, path: &String| {
            Projection::parse(&[(FIELD.to_owned(), path.clone())]).map_err(|fault: ProjectionFault| {
                WorkFault {
                    part,
                    text: fault.to_string(),
                }
            })
        };
        let reviewed = Self {
            status,
            cancel,
            id: path("id", &settings.id)?,
            state: path("state", &settings.state)?,
            progress: match &settings.progress {
                None => None,
                Some(progress) => Some(path("progress", progress)?),
            },
            settings: settings.clone(),
        };
        Ok((reviewed, generated))
    }

    /// The bounds, as the reviewer wrote them.
    #[must_use]
    pub const fn settings(&self) -> &LongRunningSettings {
        &self.settings
    }

    /// The operation that tells of the work.
    #[must_use]
    pub const fn status(&self) -> &Step {
        &self.status
    }

    /// The operation that calls it off.
    #[must_use]
    pub const fn cancel(&self) -> Option<&Step> {
        self.cancel.as_ref()
    }

    /// The name of the work, as the answer to the start gives it: a text that is not empty, or a whole number.
    #[must_use]
    pub fn id(&self, answer: &Value) -> Option<Value> {
        match single(&self.id, answer)? {
            Value::String(text) if !text.is_empty() && text.len() <= ID_BYTES_MAX => {
                Some(Value::String(text))
            }
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(Value::Number(number)),
            _ => None,
        }
    }

    /// Where the work stands, as an answer of the status operation says it.
    #[must_use]
    pub fn stage(&self, answer: &Value) -> Stage {
        let state = match single(&self.state, answer) {
            Some(Value::String(text)) => text,
            Some(Value::Bool(truth)) => truth.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Stage::Unsaid,
        };
        if self.settings.done.contains(&state) {
            return Stage::Done;
        }
        if self.settings.failed.contains(&state) {
            return Stage::Failed(state);
        }
        let percent = self
            .progress
            .as_ref()
            .and_then(|path| single(path, answer)?.as_f64())
            .filter(|percent| (0.0..=100.0).contains(percent));
        Stage::Running {
            percent: percent.and_then(|percent| format!("{percent:.0}").parse().ok()),
        }
    }
}

fn single(path: &Projection, answer: &Value) -> Option<Value> {
    let found = path.apply(answer).ok()?;
    found.get(FIELD).cloned()
}

// === impl Step ===

impl Step {
    /// The request about a piece of work.
    ///
    /// # Errors
    /// [`BuildFault`] where the name cannot be sent safely.
    pub fn prepare(&self, id: &Value) -> Result<Prepared, BuildFault> {
        let mut arguments = Object::new();
        arguments.insert(self.argument.clone(), id.clone());
        self.plan.build(&arguments, &Object::new())
    }

    /// Which credentials of the upstream the request carries.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }
}

struct Reviewing<'a> {
    upstream: &'a UpstreamName,
    settings: &'a LongRunningSettings,
    server: Option<&'a DocumentServerSettings>,
    document: &'a Document,
    credentials: &'a CredentialSettings,
}

impl Reviewing<'_> {
    fn step(
        &self,
        part: &'static str,
        operation: &str,
        returns: Option<Projection>,
    ) -> Result<(Step, Generated), WorkFault> {
        let fault = |text: String| WorkFault { part, text };
        let found = self
            .document
            .find(operation)
            .map_err(|error| fault(error.to_string()))?;
        let base_path =
            base_path(self.document, &found, self.server).map_err(|error| fault(error.to_string()))?;
        let digest = self
            .document
            .operation_digest(&found)
            .map_err(|blocker| fault(blocker.to_string()))?;
        let options = ToolOptions {
            returns,
            base_path: base_path.clone(),
            ..ToolOptions::default()
        };
        let generated = self.document.tool(&found, &options).map_err(|blockers| {
            let texts: Vec<String> = blockers.iter().map(ToString::to_string).collect();
            fault(texts.join("; "))
        })?;
        let required: Vec<&str> = generated
            .input_schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let argument = match (&self.settings.argument, required.as_slice()) {
            (Some(argument), []) if generated.argument_names.contains(argument) => argument.clone(),
            (Some(argument), [only]) if argument == only => argument.clone(),
            (None, [only]) => (*only).to_owned(),
            (argument, _) => {
                let named = argument.as_deref().unwrap_or("one that names the work");
                return Err(fault(format!(
                    "`{}` must take `{named}` and require nothing else; it requires {}; name another operation, or \
                     its argument in `argument`",
                    generated.operation,
                    if required.is_empty() {
                        "nothing".to_owned()
                    } else {
                        format!("`{}`", required.join("`, `"))
                    }
                )));
            }
        };
        let access = Access::choose(self.upstream, &self.document.security(&found), self.credentials)
            .map_err(|error| fault(error.to_string()))?;
        let step = Step {
            plan: generated.plan.clone(),
            argument,
            access,
            digest,
            base_path,
        };
        Ok((step, generated))
    }
}

/// What a pin covers of it: the bounds, and of both operations what they are and where they are sent.
pub(crate) fn pinned(work: &LongRunning) -> Value {
    let step = |step: &Step| serde_json::json!({ "operation": step.digest, "basePath": step.base_path });
    let cancel = work.cancel.as_ref().map(step);
    let status = step(&work.status);
    let work = &work.settings;
    serde_json::json!({
        "status": status,
        "id": work.id,
        "argument": work.argument,
        "state": work.state,
        "done": work.done,
        "failed": work.failed,
        "progress": work.progress,
        "cancel": cancel,
    })
}
