//! One reviewed tool: the operation of a document within the bounds that a person set.

use std::sync::Arc;

use config::{CredentialSettings, ResourceBy, ToolSettings};
use jiff::Timestamp;
use model::{Caller, Class, Digest, ToolName, UpstreamName};
use openapi::{
    Blocker, Document, FindFault, Generated, Inference, Note, Projection, ProjectionFault, RequestPlan,
    ToolOptions,
};
use wire::{Definition, Hints};

use crate::access::{Access, AccessFault};
use crate::observation::{Observation, Observations};
use crate::pin;
use crate::standing::{self, Hold, Need};
use crate::work::{self, LongRunning, WorkFault};

/// A reviewed tool.
#[derive(Debug)]
pub struct Tool {
    upstream: UpstreamName,
    bounds: ToolSettings,
    definition: Arc<Definition>,
    argument_names: Vec<String>,
    plan: RequestPlan,
    projection: Option<Projection>,
    access: Access,
    long_running: Option<LongRunning>,
    operation: String,
    notes: Vec<Note>,
    inference: Inference,
    needs: Vec<Need>,
    operation_digest: Digest,
    observed: Option<Observation>,
    pin: Digest,
}

/// Why an operation and its bounds do not make a tool. `key` is the configuration's, as `Settings::place` takes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewFault {
    /// The document has no such operation.
    #[error("`{key}.operation`: {fault}")]
    Operation {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: FindFault,
    },
    /// The operation cannot be a tool.
    #[error("`{key}.operation`: {}", listed_blockers(.blockers))]
    Blocked {
        /// The tool's key.
        key: String,
        /// Everything that is in the way.
        blockers: Vec<Blocker>,
    },
    /// No credential of the upstream meets what the operation asks for.
    #[error("`{key}.operation`: {fault}")]
    Access {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: AccessFault,
    },
    /// The operations that look after long-running work do not fit.
    #[error("`{key}.long_running.{}`: {fault}", .fault.part)]
    LongRunning {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: WorkFault,
    },
    /// A JSONPath in `returns` does not parse.
    #[error("`{key}.returns`: {fault}")]
    Returns {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: ProjectionFault,
    },
    /// The bounds name an argument that the operation has not.
    #[error("`{key}.{part}`: the operation has no argument `{argument}`; it has {}", listed(.known))]
    NoArgument {
        /// The tool's key.
        key: String,
        /// Which part of the bounds names it.
        part: &'static str,
        /// The name.
        argument: String,
        /// The names that there are.
        known: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        format!("`{}`", names.join("`, `"))
    }
}

fn listed_blockers(blockers: &[Blocker]) -> String {
    blockers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

impl ReviewFault {
    /// The key of the configuration that is at fault, as `Settings::place` takes it.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Operation { key, .. } | Self::Blocked { key, .. } | Self::Access { key, .. } => {
                format!("{key}.operation")
            }
            Self::LongRunning { key, fault } => format!("{key}.long_running.{}", fault.part),
            Self::Returns { key, .. } => format!("{key}.returns"),
            Self::NoArgument { key, part, .. } => format!("{key}.{part}"),
        }
    }
}

impl Tool {
    /// Makes a tool of an operation of a document and the bounds that a person set. `credentials` are the upstream's.
    ///
    /// # Errors
    /// [`ReviewFault`] where there is no such operation, it cannot be a tool, or the two do not fit together.
    pub fn review(
        upstream: &UpstreamName,
        bounds: &ToolSettings,
        document: &Document,
        credentials: &CredentialSettings,
    ) -> Result<Self, ReviewFault> {
        let projection = match &bounds.returns {
            None => None,
            Some(returns) => Some(Projection::parse(returns).map_err(|fault| ReviewFault::Returns {
                key: bounds.key.clone(),
                fault,
            })?),
        };
        let key = || bounds.key.clone();
        let operation = document
            .find(&bounds.operation)
            .map_err(|fault| ReviewFault::Operation { key: key(), fault })?;
        let options = ToolOptions {
            title: bounds.title.clone(),
            description: bounds.description.clone(),
            inject: bounds.scope_argument.iter().cloned().collect(),
            // Of long-running work, the result is what the last look says.
            returns: projection.clone().filter(|_| bounds.long_running.is_none()),
            ..ToolOptions::default()
        };
        let generated = document
            .tool(&operation, &options)
            .map_err(|blockers| ReviewFault::Blocked { key: key(), blockers })?;
        Self::check_arguments(bounds, &generated)?;
        let access = Access::choose(upstream, &document.security(&operation), credentials)
            .map_err(|fault| ReviewFault::Access { key: key(), fault })?;
        let (long_running, output_schema, pinned) = match &bounds.long_running {
            None => (None, generated.output_schema, None),
            Some(settings) => {
                let (reviewed, status) =
                    LongRunning::review(upstream, settings, document, credentials, projection.clone())
                        .map_err(|fault| ReviewFault::LongRunning { key: key(), fault })?;
                let pinned = work::pinned(settings, status.operation_digest);
                (Some(reviewed), status.output_schema, Some(pinned))
            }
        };
        let definition = Definition {
            name: bounds.name.clone(),
            title: generated.title,
            description: generated.description,
            input_schema: Arc::new(generated.input_schema),
            output_schema: output_schema.map(Arc::new),
            hints: hints(bounds.class, generated.idempotent),
        };
        let inference = document.inference(&operation);
        let pin = pin::of(
            upstream,
            bounds,
            &definition,
            generated.operation_digest,
            &access,
            pinned,
        );
        Ok(Self {
            upstream: upstream.clone(),
            definition: Arc::new(definition),
            argument_names: generated.argument_names,
            plan: generated.plan,
            projection,
            access,
            long_running,
            operation: generated.operation.to_string(),
            pin,
            notes: generated.notes,
            needs: standing::needs(bounds, &inference),
            operation_digest: generated.operation_digest,
            observed: None,
            inference,
            bounds: bounds.clone(),
        })
    }

    /// Every argument that the bounds name is one that a caller can send.
    fn check_arguments(bounds: &ToolSettings, generated: &Generated) -> Result<(), ReviewFault> {
        let known = &generated.argument_names;
        let check = |part: &'static str, argument: &String| {
            if known.contains(argument) {
                return Ok(());
            }
            Err(ReviewFault::NoArgument {
                key: bounds.key.clone(),
                part,
                argument: argument.clone(),
                known: known.clone(),
            })
        };
        if let Some(resource) = &bounds.resource
            && let ResourceBy::Argument(argument) = &resource.by
        {
            check("resource.id", argument)?;
        }
        for fact in &bounds.facts {
            for bind in &fact.bind {
                if let config::Bind::Argument(argument) = bind {
                    check("facts", argument)?;
                }
            }
        }
        if let Some(config::OwnerSettings::Sql { bind, .. }) = &bounds.owner {
            for bind in bind {
                if let config::Bind::Argument(argument) = bind {
                    check("owner.bind", argument)?;
                }
            }
        }
        Ok(())
    }

    /// The public name.
    #[must_use]
    pub fn name(&self) -> &ToolName {
        &self.definition.name
    }

    /// The upstream that serves it.
    #[must_use]
    pub const fn upstream(&self) -> &UpstreamName {
        &self.upstream
    }

    /// What it can do, as the reviewer declared it.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.bounds.class
    }

    /// The bounds, as the reviewer wrote them.
    #[must_use]
    pub const fn bounds(&self) -> &ToolSettings {
        &self.bounds
    }

    /// What clients see.
    #[must_use]
    pub const fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// The names of the arguments that callers can send: what the ledger may name.
    #[must_use]
    pub fn argument_names(&self) -> &[String] {
        &self.argument_names
    }

    /// How a call becomes a request.
    #[must_use]
    pub const fn plan(&self) -> &RequestPlan {
        &self.plan
    }

    /// Which parts of an answer leave; `None`: all of it.
    #[must_use]
    pub const fn projection(&self) -> Option<&Projection> {
        self.projection.as_ref()
    }

    /// Which credentials of the upstream its requests carry.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// How its work is looked after, where it takes longer than one request.
    #[must_use]
    pub const fn long_running(&self) -> Option<&LongRunning> {
        self.long_running.as_ref()
    }

    /// The operation behind it, as `GET /invoices/{id}`.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// What a reviewer should know of the operation.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What the document shows of its danger.
    #[must_use]
    pub const fn inference(&self) -> &Inference {
        &self.inference
    }

    /// The digest of everything in the document that the operation depends on.
    #[must_use]
    pub const fn operation_digest(&self) -> Digest {
        self.operation_digest
    }

    /// Takes note of what was observed of it, as far as that is fresh.
    pub fn observe(&mut self, observations: &Observations) {
        self.observed = observations.fresh(self).cloned();
    }

    /// What a fresh probe observed of it.
    #[must_use]
    pub const fn observed(&self) -> Option<&Observation> {
        self.observed.as_ref()
    }

    /// What was observed of it, where it contradicts the declared class: the tool is held until that class is declared, or
    /// the operation is changed and probed again. No approval is for that.
    #[must_use]
    pub fn contradiction(&self) -> Option<&Observation> {
        self.observed
            .as_ref()
            .filter(|observed| observed.class > self.class())
    }

    /// What it needs approvals for.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Why it is held at a time, for a caller; without one, why it is held for everybody. `None`: it is not.
    #[must_use]
    pub fn hold(&self, caller: Option<&Caller>, now: Timestamp) -> Option<Hold> {
        standing::holds(&self.needs, &self.bounds.approvals, caller, now).next()
    }

    /// Everything for which it is held for everybody at a time.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> Vec<Hold> {
        standing::holds(&self.needs, &self.bounds.approvals, None, now).collect()
    }

    /// The digest of everything that was approved.
    #[must_use]
    pub const fn pin(&self) -> Digest {
        self.pin
    }
}

/// Hints from the declared class, never from an HTTP verb (DESIGN section 10: a GET proves nothing).
fn hints(class: Class, idempotent: bool) -> Hints {
    match class {
        Class::Read | Class::SensitiveRead => Hints {
            read_only: true,
            destructive: false,
            idempotent: true,
            open_world: true,
        },
        Class::Write => Hints {
            read_only: false,
            destructive: false,
            idempotent,
            open_world: true,
        },
        Class::Destructive => Hints {
            read_only: false,
            destructive: true,
            idempotent,
            open_world: true,
        },
    }
}
