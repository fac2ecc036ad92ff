//! One reviewed tool: what stands behind it, within the bounds that a person set.

use std::sync::Arc;

use config::{
    ArgumentSettings, CredentialSettings, DocumentServerSettings, NestingRule, PagesBy, PagesSettings,
    ResourceBy, ToolSettings,
};
use jiff::Timestamp;
use model::{Caller, Class, Digest, Object, ToolName, UpstreamName, Value};
use openapi::{
    ArgumentBounds, Blocker, Document, FindFault, Generated, Inference, Nesting, OperationRef, Projection,
    ProjectionFault, ServerChoice, ServerFault, ToolOptions,
};
use serde_json::json;
use wire::{Definition, Hints, Surface};

use crate::access::{Access, AccessFault};
use crate::contract::Contract;
use crate::observation::{Observation, Observations};
use crate::operation::Operation;
use crate::pin;
use crate::server_tool::ServerTool;
use crate::standing::{self, Hold, Need, Objection};
use crate::work::{self, LongRunning, WorkFault};

/// A reviewed tool.
#[derive(Debug)]
pub struct Tool {
    pub(crate) upstream: UpstreamName,
    pub(crate) bounds: ToolSettings,
    pub(crate) definition: Arc<Definition>,
    pub(crate) argument_names: Vec<String>,
    pub(crate) projection: Option<Projection>,
    pub(crate) source: Source,
    pub(crate) inference: Inference,
    pub(crate) needs: Vec<Need>,
    pub(crate) observed: Option<Observation>,
    pub(crate) contract: Option<Contract>,
    pub(crate) pin: Digest,
}

/// What stands behind a tool.
#[derive(Debug)]
pub enum Source {
    /// An operation of an OpenAPI document.
    Operation(Box<Operation>),
    /// A tool of an MCP server.
    Server(Box<ServerTool>),
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
    #[error("`{}`: {}", blocked_key(.key, .blockers), listed_blockers(.blockers))]
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
    /// The operation has no such server, or its URL is none.
    #[error("`{key}.server`: {fault}")]
    Server {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: ServerFault,
    },
    /// A JSONPath in `returns` does not parse.
    #[error("`{key}.returns`: {fault}")]
    Returns {
        /// The tool's key.
        key: String,
        /// What is wrong.
        fault: ProjectionFault,
    },
    /// The tool cannot have the argument that says how many pages are read.
    #[error("`{key}.pages`: {why}")]
    Pages {
        /// The tool's key.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// The tool of a server has no input schema, so that nothing could be held against it.
    #[error("`{key}.tool`: the approved definition of `{tool}` has no `inputSchema`, which is an object")]
    NoSchema {
        /// The tool's key.
        key: String,
        /// The server's name of it.
        tool: String,
    },
    /// The approved definition of a prompt or a resource cannot be used.
    #[error("`{key}`: the approved definition of `{name}` cannot be used: {why}")]
    Unusable {
        /// The key of its table.
        key: String,
        /// The server's name of it.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The bounds name an argument that the tool has not.
    #[error("`{key}.{part}`: the tool has no argument `{argument}`; it has {}", listed(.known))]
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

/// The key of what blocks a tool: its bounds only where nothing else does.
fn blocked_key(key: &str, blockers: &[Blocker]) -> String {
    let bounded = blockers.iter().map(|blocker| blocker.argument.as_deref());
    match bounded.reduce(|one, other| one.and(other)) {
        Some(Some(name)) if name.contains('.') => format!("{key}.argument.\"{name}\""),
        Some(Some(name)) => format!("{key}.argument.{name}"),
        Some(None) | None => format!("{key}.operation"),
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
            Self::Blocked { key, blockers } => blocked_key(key, blockers),
            Self::Operation { key, .. } | Self::Access { key, .. } => format!("{key}.operation"),
            Self::LongRunning { key, fault } => format!("{key}.long_running.{}", fault.part),
            Self::Server { key, .. } => format!("{key}.server"),
            Self::Pages { key, .. } => format!("{key}.pages"),
            Self::NoSchema { key, .. } => format!("{key}.tool"),
            Self::Returns { key, .. } => format!("{key}.returns"),
            Self::Unusable { key, .. } => key.clone(),
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
        let projection = Self::projection_of(bounds)?;
        let key = || bounds.key.clone();
        let operation = document
            .find(&bounds.operation)
            .map_err(|fault| ReviewFault::Operation { key: key(), fault })?;
        let base_path = base_path(document, &operation, bounds.server.as_ref())
            .map_err(|fault| ReviewFault::Server { key: key(), fault })?;
        let options = ToolOptions {
            title: bounds.title.clone(),
            description: bounds.description.clone(),
            inject: injected(bounds),
            // Of long-running work, the result is what the last look says.
            returns: projection.clone().filter(|_| bounds.long_running.is_none()),
            arguments: bounds.arguments.iter().filter_map(of_argument).collect(),
            nesting: match bounds.nesting {
                NestingRule::Refuse => Nesting::Refuse,
                NestingRule::Indexed => Nesting::Indexed,
                NestingRule::Unindexed => Nesting::Unindexed,
            },
            allow_reserved: bounds.allow_reserved,
            media_type: bounds.media_type.clone(),
            accept: bounds.accept.clone(),
            base_path: base_path.clone(),
            input_bytes_max: bytes(bounds.input_bytes_max),
            output_bytes_max: bytes(bounds.output_bytes_max),
            ..ToolOptions::default()
        };
        let mut generated = document.tool(&operation, &options).map_err(|mut blockers| {
            for blocker in &mut blockers {
                // The argument of `scope` has no table of its own.
                if blocker.argument == bounds.scope_argument {
                    blocker.argument = None;
                }
            }
            ReviewFault::Blocked { key: key(), blockers }
        })?;
        let operation_digest =
            document
                .operation_digest(&operation)
                .map_err(|blocker| ReviewFault::Blocked {
                    key: key(),
                    blockers: vec![blocker],
                })?;
        Self::check_bounds(bounds, &generated.argument_names)?;
        if let Some(pages) = &bounds.pages {
            ask_for_pages(pages, &mut generated).map_err(|why| ReviewFault::Pages { key: key(), why })?;
        }
        let access = Access::choose(upstream, &document.security(&operation), credentials)
            .map_err(|fault| ReviewFault::Access { key: key(), fault })?;
        let (long_running, output_schema, write_only, pinned) = match &bounds.long_running {
            None => (None, generated.output_schema, generated.write_only, None),
            Some(settings) => {
                let (reviewed, status) = LongRunning::review(
                    upstream,
                    (settings, bounds.server.as_ref()),
                    document,
                    credentials,
                    projection.clone(),
                )
                .map_err(|fault| ReviewFault::LongRunning { key: key(), fault })?;
                let pinned = work::pinned(&reviewed);
                (
                    Some(reviewed),
                    status.output_schema,
                    status.write_only,
                    Some(pinned),
                )
            }
        };
        let definition = Definition {
            name: bounds.name.clone(),
            title: generated.title,
            description: generated.description,
            input_schema: Arc::new(generated.input_schema),
            output_schema: output_schema.map(Arc::new),
            hints: hints(bounds.class, generated.idempotent),
            others: Object::new(),
        };
        let inference = document.inference(&operation);
        let pin = pin::of(
            upstream,
            bounds,
            (&definition, &base_path),
            operation_digest,
            &access,
            pinned,
        );
        Ok(Self {
            upstream: upstream.clone(),
            definition: Arc::new(definition),
            argument_names: generated.argument_names,
            projection,
            source: Source::Operation(Box::new(Operation {
                name: generated.operation.to_string(),
                digest: operation_digest,
                answers: generated.answers,
                may_be_empty: generated.may_be_empty,
                write_only,
                plan: generated.plan,
                access,
                long_running,
                notes: generated.notes,
            })),
            pin,
            needs: standing::needs(bounds, &inference),
            observed: None,
            contract: None,
            inference,
            bounds: bounds.clone(),
        })
    }

    /// Which parts of an answer leave.
    pub(crate) fn projection_of(bounds: &ToolSettings) -> Result<Option<Projection>, ReviewFault> {
        let parse = |returns: &Vec<(String, String)>| {
            Projection::parse(returns).map_err(|fault| ReviewFault::Returns {
                key: bounds.key.clone(),
                fault,
            })
        };
        bounds.returns.as_ref().map(parse).transpose()
    }

    /// Every argument that the bounds name is one that a caller can send.
    pub(crate) fn check_bounds(bounds: &ToolSettings, known: &[String]) -> Result<(), ReviewFault> {
        let check = |part: &'static str, argument: &String| {
            if known.contains(argument) {
                return Ok(());
            }
            Err(ReviewFault::NoArgument {
                key: bounds.key.clone(),
                part,
                argument: argument.clone(),
                known: known.to_vec(),
            })
        };
        if let Some(resource) = &bounds.resource
            && let ResourceBy::Argument(argument) = &resource.by
        {
            check("resource.id", argument)?;
        }
        if let Some(pages) = &bounds.pages {
            check("pages.argument", &pages.argument)?;
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

    /// Which parts of an answer leave; `None`: all of it.
    #[must_use]
    pub const fn projection(&self) -> Option<&Projection> {
        self.projection.as_ref()
    }

    /// What stands behind it.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// The operation of a document behind it, if that is what stands there.
    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        match &self.source {
            Source::Operation(operation) => Some(operation),
            Source::Server(_) => None,
        }
    }

    /// The tool of an MCP server behind it, if that is what stands there.
    #[must_use]
    pub fn server_tool(&self) -> Option<&ServerTool> {
        match &self.source {
            Source::Operation(_) => None,
            Source::Server(tool) => Some(tool),
        }
    }

    /// What it is to clients: a tool, or something else that a server offers.
    #[must_use]
    pub fn surface(&self) -> Surface {
        self.server_tool().map_or(Surface::Tools, ServerTool::surface)
    }

    /// What stands behind it, in words: `GET /invoices/{id}`, or the server's own name of the tool.
    #[must_use]
    pub fn origin(&self) -> &str {
        match &self.source {
            Source::Operation(operation) => operation.name(),
            Source::Server(tool) => tool.name(),
        }
    }

    /// The digest of what stands behind it: of everything in a document that an operation depends on, or of the definition
    /// that a server gave.
    #[must_use]
    pub fn origin_digest(&self) -> Digest {
        match &self.source {
            Source::Operation(operation) => operation.digest(),
            Source::Server(tool) => tool.digest(),
        }
    }

    /// How its work is looked after, where it takes longer than one request.
    #[must_use]
    pub fn long_running(&self) -> Option<&LongRunning> {
        self.operation().and_then(Operation::long_running)
    }

    /// What arguments are held against: the schema that clients see, without room for what it does not declare.
    #[must_use]
    pub fn arguments_schema(&self) -> &Value {
        match &self.source {
            Source::Operation(_) => &self.definition.input_schema,
            Source::Server(tool) => tool.closed_schema(),
        }
    }

    /// What the document shows of its danger.
    #[must_use]
    pub const fn inference(&self) -> &Inference {
        &self.inference
    }

    /// Takes note of what was observed of it, as far as that is fresh.
    pub fn observe(&mut self, observations: &Observations) {
        self.observed = observations.fresh(self).cloned();
        self.contract = observations.contract(self).cloned();
    }

    /// What is known of its real answers.
    #[must_use]
    pub const fn contract(&self) -> Option<&Contract> {
        self.contract.as_ref()
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

    /// What speaks against offering it at a time to a caller; without one, to anybody. `None`: nothing.
    ///
    /// The one answer for lists, calls and reports.
    #[must_use]
    pub fn objection(&self, caller: Option<&Caller>, now: Timestamp) -> Option<Objection<'_>> {
        if let Some(drift) = self.server_tool().and_then(ServerTool::drift) {
            return Some(Objection::Drifted(drift));
        }
        self.contradiction().map(Objection::Observed).or_else(|| {
            standing::holds(&self.needs, &self.bounds.approvals, caller, now)
                .next()
                .map(Objection::Unanswered)
        })
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

/// A size of the configuration, which is far below what a machine can count.
fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// What stands before the path of an operation: the path of the server that the operator chose.
pub(crate) fn base_path(
    document: &Document,
    operation: &OperationRef,
    server: Option<&DocumentServerSettings>,
) -> Result<String, ServerFault> {
    let Some(server) = server else {
        return Ok(String::new());
    };
    let choice = ServerChoice {
        url: server.url.clone(),
        variables: server.variables.clone(),
    };
    document.base_path(operation, &choice)
}

/// Gives the tool the argument by which a caller says how many pages it wants.
fn ask_for_pages(pages: &PagesSettings, generated: &mut Generated) -> Result<(), String> {
    if generated.argument_names.contains(&pages.asked) {
        return Err(format!(
            "the tool has an argument `{}` already; choose another name by `as`",
            pages.asked
        ));
    }
    if pages.by == PagesBy::Link && generated.plan.query_name(&pages.argument).is_none() {
        return Err(format!(
            "the argument `{}` does not stand in the query, so no link can carry it",
            pages.argument
        ));
    }
    let properties = generated
        .input_schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .ok_or("the tool has no arguments")?;
    let description = format!(
        "How many pages to read with this call, from 1 to {}. The rows of all of them come as one list.",
        pages.pages_max
    );
    properties.insert(
        pages.asked.clone(),
        json!({
            "type": "integer",
            "minimum": 1,
            "maximum": pages.pages_max,
            "default": 1,
            "description": description,
        }),
    );
    generated.argument_names.push(pages.asked.clone());
    Ok(())
}

/// The arguments that Tollhouse gives.
fn injected(bounds: &ToolSettings) -> Vec<String> {
    let given = bounds
        .arguments
        .iter()
        .filter(|argument| argument.given.is_some());
    bounds
        .scope_argument
        .iter()
        .cloned()
        .chain(given.map(|argument| argument.name.clone()))
        .collect()
}

/// The bounds of an argument that callers give, or that nobody gives.
fn of_argument(argument: &ArgumentSettings) -> Option<(String, ArgumentBounds)> {
    let bounds = ArgumentBounds {
        rename: argument.rename.clone(),
        description: argument.description.clone(),
        unit: argument.unit.clone(),
        required: argument.required,
        hidden: argument.hide,
        values: argument.values.clone(),
        minimum: argument.minimum.clone(),
        maximum: argument.maximum.clone(),
        length_max: argument.length_max,
        items_max: argument.items_max,
    };
    argument.given.is_none().then(|| (argument.name.clone(), bounds))
}

/// Hints from the declared class, never from an HTTP verb (DESIGN section 10: a GET proves nothing) or from a server.
pub(crate) fn hints(class: Class, idempotent: bool) -> Hints {
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
