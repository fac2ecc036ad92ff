//! From an operation to a tool: the definition that a model reads, and the plan that a call follows.
//!
//! This file orders the steps; each step has a file of its own. It decides nothing about risk: the method is reported,
//! the class is a person's. Read next: `parameter` and `body` for what is read, `schema` for what it becomes, `plan`.

use model::{Digest, Object, Value};
use serde_json::json;

use crate::blocker::{Blocker, BlockerCause, Findings, Note, NoteKind};
use crate::body::{self, Form};
use crate::document::Document;
use crate::expansion;
use crate::name::{self, WireName};
use crate::operation::{Method, OperationKey, OperationRef, path_items};
use crate::parameter::{self, Parameter, Parameters, Place};
use crate::plan::{Argument, ArgumentPlace, BodyPlan, RequestPlan};
use crate::pointer::Pointer;
use crate::projection::Projection;
use crate::prose;
use crate::reference::Located;
use crate::resolved;
use crate::response;
use crate::schema::{Converter, Direction, compile, is_known_dialect};
use crate::security;
use crate::shape::{self, Shape, Work};
use crate::template::Template;
use crate::text::excerpt;

/// How many times larger than a tool's schema an answer's may be before it is projected.
const PROJECTED_FACTOR: usize = 16;

/// What the operator says about a tool.
#[derive(Debug, Clone)]
pub struct ToolOptions {
    /// The title, instead of the document's summary.
    pub title: Option<String>,
    /// The description, instead of the document's.
    pub description: Option<String>,
    /// Names of arguments that the operator gives and no caller can: they are not in the input schema.
    pub inject: Vec<String>,
    /// The fields that are kept of an answer; the output schema is then theirs.
    pub returns: Option<Projection>,
    /// The largest schema, in bytes of JSON, of the input and of the output.
    pub schema_bytes_max: usize,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            title: None,
            description: None,
            inject: Vec::new(),
            returns: None,
            schema_bytes_max: 64 << 10,
        }
    }
}

/// A tool made of an operation.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Method and path.
    pub operation: OperationKey,
    /// Everything in the document that the operation depends on: what a pin covers.
    pub operation_digest: Digest,
    /// The operator's title, else the document's summary.
    pub title: Option<String>,
    /// The operator's description, else the document's, cleaned and at most 1,024 bytes; else method and path.
    pub description: String,
    /// JSON Schema 2020-12: an object, closed, every reference inside it.
    pub input_schema: Value,
    /// JSON Schema 2020-12 of every success; an object. `None` where there is none: a note says why.
    pub output_schema: Option<Value>,
    /// The arguments in the input schema, in its order.
    pub argument_names: Vec<String>,
    /// How a call becomes a request.
    pub plan: RequestPlan,
    /// What a reviewer should know.
    pub notes: Vec<Note>,
    /// Whether the method is idempotent by RFC 9110. It says nothing about the handler.
    pub idempotent: bool,
    /// Whether the method is safe by RFC 9110. A GET proves nothing.
    pub safe_method: bool,
}

pub(crate) fn generate(
    document: &Document,
    reference: &OperationRef,
    options: &ToolOptions,
) -> Result<Generated, Vec<Blocker>> {
    let mut findings = Findings::default();
    let made = make(document, reference, options, &mut findings);
    let (mut blockers, notes) = findings.into_parts();
    match made {
        Some(made) if blockers.is_empty() => Ok(Generated { notes, ..made }),
        _ => {
            // Nothing fails without saying why.
            if blockers.is_empty() {
                blockers.push(Blocker::new(
                    BlockerCause::OperationMalformed,
                    &reference.place,
                    "the operation cannot be read",
                    "correct the operation",
                ));
            }
            Err(blockers)
        }
    }
}

fn make(
    document: &Document,
    reference: &OperationRef,
    options: &ToolOptions,
    findings: &mut Findings,
) -> Option<Generated> {
    let resolver = document.resolver();
    let method = reference.key().method();
    let operation = located(document, reference, findings)?;
    let template = template(reference, method, findings);
    let mut work = Work::new();
    let dialect = resolver.root().get("jsonSchemaDialect").and_then(Value::as_str);
    if dialect.is_some_and(|dialect| !is_known_dialect(dialect)) {
        findings.note(
            NoteKind::SchemaDialect,
            &Pointer::root().child("jsonSchemaDialect"),
            "the document names another dialect; its schemas are read as 2020-12",
        );
    }

    let inherited = inherited(document, reference);
    let mut lists: Vec<Located<'_>> = operation.get("parameters").into_iter().collect();
    lists.extend(inherited.iter().cloned());
    let credentials = security::credentials(resolver);
    let parameters = parameter::read(resolver, &mut work, &lists, &credentials, findings);
    let parameters = in_template(parameters, template.as_ref(), &reference.path_item, findings);
    let body = body::read(
        resolver,
        document.family(),
        &mut work,
        &operation,
        method,
        findings,
    );

    let mut drafts: Vec<Draft<'_>> = parameters.into_iter().map(Draft::of_parameter).collect();
    let body = body.map(|body| Draft::of_body(body, &mut drafts));
    name_all(&mut drafts, &operation.pointer, findings)?;
    inject(&mut drafts, &options.inject, &operation.pointer, findings);
    let body_is_sent = body.as_ref().is_some_and(|body| body.required)
        || drafts
            .iter()
            .any(|draft| draft.injected && draft.place == ArgumentPlace::Field);
    if findings.is_blocked() {
        return None;
    }

    let schema_site = SchemaSite {
        document,
        operation: &operation,
        bytes_max: options.schema_bytes_max,
    };
    let input_schema = input_schema(&schema_site, &drafts, body_is_sent, &mut work, findings);
    let success = response::read(resolver, document.family(), &operation);
    let output_schema = output_schema(&schema_site, &success, options.returns.as_ref(), findings);
    let operation_digest = resolved::digest(document, reference, &operation, &inherited);
    if operation_digest.is_none() {
        findings.block(Blocker::new(
            BlockerCause::OperationOverBudget,
            &operation.pointer,
            "the operation refers to more of the document than is looked at",
            "simplify what it refers to",
        ));
    }
    let (title, description) = words(reference, &operation, options, findings);
    let body = match body {
        None => BodyPlan::None,
        Some(body) if body.is_whole => BodyPlan::Whole {
            content_type: body.content_type,
        },
        Some(body) => BodyPlan::Fields {
            content_type: body.content_type,
            always: body_is_sent,
        },
    };
    Some(Generated {
        operation: reference.key().clone(),
        operation_digest: operation_digest?,
        title,
        description,
        input_schema: input_schema?,
        output_schema,
        argument_names: drafts
            .iter()
            .filter(|draft| !draft.injected)
            .map(|draft| draft.name.clone())
            .collect(),
        plan: RequestPlan {
            operation: reference.key().clone(),
            template: template?,
            arguments: drafts.into_iter().map(Draft::into_argument).collect(),
            accept: success.accept,
            body,
        },
        notes: Vec::new(),
        idempotent: method.is_idempotent(),
        safe_method: method.is_safe(),
    })
}

fn located<'d>(
    document: &'d Document,
    reference: &OperationRef,
    findings: &mut Findings,
) -> Option<Located<'d>> {
    let operation = document
        .resolver()
        .at(reference.place.clone())
        .filter(|operation| operation.object().is_some());
    if operation.is_none() {
        findings.block(Blocker::new(
            BlockerCause::OperationMalformed,
            &reference.place,
            "the operation is not an object",
            "describe the operation",
        ));
    }
    operation
}

fn template(reference: &OperationRef, method: Method, findings: &mut Findings) -> Option<Template> {
    if method == Method::Trace {
        findings.block(Blocker::new(
            BlockerCause::OperationMethod,
            &reference.place,
            "TRACE answers with the request, credentials included",
            "offer another operation",
        ));
    }
    match Template::parse(reference.path()) {
        Ok(template) => Some(template),
        Err(fault) => {
            findings.block(Blocker::new(
                BlockerCause::PathMalformed,
                &reference.path_item,
                fault.to_string(),
                "write a path as `/invoices/{id}`",
            ));
            None
        }
    }
}

/// The parameters of the path item and of the ones behind its `$ref`, nearest first.
fn inherited<'d>(document: &'d Document, reference: &OperationRef) -> Vec<Located<'d>> {
    let resolver = document.resolver();
    let Some(item) = resolver.at(reference.path_item.clone()) else {
        return Vec::new();
    };
    let (items, _) = path_items(resolver, item);
    items.iter().filter_map(|item| item.get("parameters")).collect()
}

/// Parameters and variables of the path, held against each other.
fn in_template<'d>(
    parameters: Parameters<'d>,
    template: Option<&Template>,
    path_item: &Pointer,
    findings: &mut Findings,
) -> Vec<Parameter<'d>> {
    let Some(template) = template else {
        return parameters.usable;
    };
    for variable in template
        .variables()
        .filter(|name| !parameters.in_path.contains(name))
    {
        findings.block(Blocker::new(
            BlockerCause::PathUndeclaredVariable,
            path_item,
            format!(
                "no parameter declares the path variable `{{{}}}`",
                excerpt(variable)
            ),
            "declare it as a parameter `in: path`",
        ));
    }
    parameters
        .usable
        .into_iter()
        .filter(|parameter| {
            let is_used = parameter.place != Place::Path
                || template.variables().any(|variable| variable == parameter.name);
            if !is_used {
                findings.note(
                    NoteKind::ParameterUnused,
                    &parameter.pointer,
                    format!(
                        "the path has no `{{{}}}`; the parameter was left out",
                        excerpt(parameter.name)
                    ),
                );
            }
            is_used
        })
        .collect()
}

// === arguments ===

/// An argument on its way: where it goes, and what describes it.
struct Draft<'d> {
    name: String,
    wire: &'d str,
    place: ArgumentPlace,
    required: bool,
    nullable: bool,
    injected: bool,
    pointer: Pointer,
    schema: Option<Located<'d>>,
    description: Option<&'d Value>,
    is_deprecated: bool,
}

/// What is left of a body once its arguments are drafted.
struct BodyDraft {
    content_type: String,
    required: bool,
    is_whole: bool,
}

impl<'d> Draft<'d> {
    fn of_parameter(parameter: Parameter<'d>) -> Self {
        Self {
            name: String::new(),
            wire: parameter.name,
            place: match parameter.place {
                Place::Path => ArgumentPlace::Path,
                Place::Query => ArgumentPlace::Query {
                    explode: parameter.explode,
                },
                Place::Header => ArgumentPlace::Header,
            },
            required: parameter.required,
            nullable: parameter.nullable,
            injected: false,
            pointer: parameter.pointer,
            schema: Some(parameter.schema),
            description: parameter.description,
            is_deprecated: parameter.is_deprecated,
        }
    }

    fn of_body(body: body::Body<'d>, drafts: &mut Vec<Self>) -> BodyDraft {
        let mut add = |wire, place, required, pointer, schema| {
            drafts.push(Self {
                name: String::new(),
                wire,
                place,
                required,
                nullable: false,
                injected: false,
                pointer,
                schema,
                description: None,
                is_deprecated: false,
            });
        };
        let is_whole = match body.form {
            Form::Fields(fields) => {
                for field in fields {
                    let pointer = field.schema.pointer.clone();
                    add(
                        field.name,
                        ArgumentPlace::Field,
                        field.required,
                        pointer,
                        Some(field.schema),
                    );
                }
                false
            }
            Form::Whole { schema, pointer } => {
                add("body", ArgumentPlace::Body, body.required, pointer, schema);
                true
            }
        };
        BodyDraft {
            content_type: body.content_type,
            required: body.required,
            is_whole,
        }
    }

    fn wire_name(&self) -> WireName<'d> {
        WireName {
            prefix: match self.place {
                ArgumentPlace::Path => "path",
                ArgumentPlace::Query { .. } => "query",
                ArgumentPlace::Header => "header",
                ArgumentPlace::Field => "body",
                ArgumentPlace::Body => "request",
            },
            name: self.wire,
        }
    }

    fn into_argument(self) -> Argument {
        Argument {
            name: self.name,
            wire: self.wire.to_owned(),
            place: self.place,
            required: self.required,
            nullable: self.nullable,
            injected: self.injected,
        }
    }
}

fn name_all(drafts: &mut [Draft<'_>], operation: &Pointer, findings: &mut Findings) -> Option<()> {
    let wires: Vec<WireName<'_>> = drafts.iter().map(Draft::wire_name).collect();
    let Some(names) = name::assign(&wires) else {
        findings.block(Blocker::new(
            BlockerCause::ArgumentCollision,
            operation,
            "two arguments cannot be given different names",
            "rename one of them",
        ));
        return None;
    };
    for (draft, name) in drafts.iter_mut().zip(names) {
        if name != draft.wire {
            findings.note(
                NoteKind::ArgumentRenamed,
                &draft.pointer,
                format!("`{}` is the argument `{name}`", excerpt(draft.wire)),
            );
        }
        draft.name = name;
    }
    Some(())
}

fn inject(drafts: &mut [Draft<'_>], names: &[String], operation: &Pointer, findings: &mut Findings) {
    for name in names {
        if let Some(draft) = drafts.iter_mut().find(|draft| draft.name == *name) {
            draft.injected = true;
            continue;
        }
        let known: Vec<String> = drafts
            .iter()
            .take(16)
            .map(|draft| format!("`{}`", draft.name))
            .collect();
        findings.block(Blocker::new(
            BlockerCause::ArgumentUnknown,
            operation,
            format!("there is no argument `{}` to inject", excerpt(name)),
            if known.is_empty() {
                "the operation has no arguments".to_owned()
            } else {
                format!("inject one of {}", known.join(", "))
            },
        ));
    }
}

// === schemas ===

struct SchemaSite<'d, 's> {
    document: &'d Document,
    operation: &'s Located<'d>,
    bytes_max: usize,
}

fn input_schema<'d>(
    site: &SchemaSite<'d, '_>,
    drafts: &[Draft<'d>],
    body_is_sent: bool,
    work: &mut Work,
    findings: &mut Findings,
) -> Option<Value> {
    let mut converter = Converter::new(
        site.document.resolver(),
        site.document.family(),
        Direction::Input,
        &site.operation.pointer,
        site.bytes_max,
        work,
        findings,
    );
    let mut properties = Object::new();
    let mut required = Vec::new();
    for draft in drafts.iter().filter(|draft| !draft.injected) {
        let schema = draft
            .schema
            .as_ref()
            .map_or_else(|| json!({}), |schema| converter.convert(schema));
        properties.insert(draft.name.clone(), described(schema, draft));
        if draft.required && (draft.place != ArgumentPlace::Field || body_is_sent) {
            required.push(Value::from(draft.name.as_str()));
        }
    }
    let definitions = converter.finish();
    let mut root = Object::new();
    root.insert("type".to_owned(), Value::from("object"));
    if !properties.is_empty() {
        root.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    let together = together(drafts, body_is_sent);
    if !together.is_empty() {
        findings.note(
            NoteKind::BodyOptional,
            &site.operation.pointer.child("requestBody"),
            "the body may be left out, but has required fields: they are required once one field is given",
        );
        root.insert("dependentRequired".to_owned(), Value::Object(together));
    }
    root.insert("additionalProperties".to_owned(), Value::Bool(false));
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    sound(Value::Object(root), site, findings)
}

/// The schema of a parameter with what the parameter says beside it.
fn described(mut schema: Value, draft: &Draft<'_>) -> Value {
    if let Some(object) = schema.as_object_mut() {
        if let Some(text) = draft
            .description
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
        {
            object.insert(
                "description".to_owned(),
                Value::String(prose::clean(text).into_owned()),
            );
        }
        if draft.is_deprecated {
            object.insert("deprecated".to_owned(), Value::Bool(true));
        }
    }
    schema
}

/// For a body that may be left out: each field asks for the required ones.
fn together(drafts: &[Draft<'_>], body_is_sent: bool) -> Object {
    let fields = || drafts.iter().filter(|draft| draft.place == ArgumentPlace::Field);
    let required: Vec<&str> = fields()
        .filter(|draft| draft.required)
        .map(|draft| draft.name.as_str())
        .collect();
    if body_is_sent || required.is_empty() {
        return Object::new();
    }
    fields()
        .map(|draft| {
            let others = required
                .iter()
                .copied()
                .filter(|name| *name != draft.name)
                .map(Value::from);
            (draft.name.clone(), others.collect::<Value>())
        })
        .filter(|(_, others)| others.as_array().is_some_and(|others| !others.is_empty()))
        .collect()
}

/// The last look at a finished schema: its size, its cost, and whether the gateway's validator takes it.
fn sound(schema: Value, site: &SchemaSite<'_, '_>, findings: &mut Findings) -> Option<Value> {
    if findings.is_blocked() {
        return None;
    }
    let length = schema.to_string().len();
    let (cause, text, clears) = if length > site.bytes_max {
        (
            BlockerCause::SchemaOverBudget,
            format!(
                "the schema has {length} bytes; a tool may have {}",
                site.bytes_max
            ),
            "offer a smaller operation, or raise the limit",
        )
    } else if let Err(fault) = expansion::check(&schema) {
        let cause = match fault {
            expansion::ExpansionFault::Cycle(_) => BlockerCause::ReferenceCyclic,
            expansion::ExpansionFault::Wide => BlockerCause::SchemaOverBudget,
            expansion::ExpansionFault::Dangling(_) => BlockerCause::ReferenceUnresolved,
        };
        (
            cause,
            fault.to_string(),
            "simplify the schemas that refer to each other",
        )
    } else if let Err(fault) = compiles(&schema) {
        (BlockerCause::SchemaMalformed, fault, "correct the schema")
    } else {
        return Some(schema);
    };
    findings.block(Blocker::new(cause, &site.operation.pointer, text, clears));
    None
}

fn compiles(schema: &Value) -> Result<(), String> {
    match compile(schema) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "{} at `{}` of the schema",
            excerpt(&error.to_string()),
            error.instance_path()
        )),
    }
}

/// The output schema, or `None` and a note that says why. Nothing about an answer blocks a tool.
fn output_schema<'d>(
    site: &SchemaSite<'d, '_>,
    success: &response::Success<'d>,
    returns: Option<&Projection>,
    findings: &mut Findings,
) -> Option<Value> {
    let (place, reason) = match output(site, success, returns, findings) {
        Ok(schema) => return Some(schema),
        Err(why) => why,
    };
    findings.note(
        NoteKind::OutputLeftOut,
        &place,
        format!("the tool has no output schema: {reason}"),
    );
    // What is kept is known even where nothing is known about the answer.
    returns.and_then(|returns| returns.output_schema_of(&Value::Bool(true)))
}

fn output<'d>(
    site: &SchemaSite<'d, '_>,
    success: &response::Success<'d>,
    returns: Option<&Projection>,
    findings: &mut Findings,
) -> Result<Value, (Pointer, String)> {
    let schema = match &success.schema {
        Ok(schema) => schema,
        Err((place, reason)) => return Err((place.clone(), reason.clone())),
    };
    let resolver = site.document.resolver();
    let mut work = Work::new();
    if returns.is_none() && shape::of(resolver, &mut work, schema.value) != Shape::OBJECT {
        let object = schema.object();
        let is_object =
            object.is_some_and(|object| object.contains_key("properties") && !object.contains_key("type"));
        if !is_object {
            return Err((
                schema.pointer.clone(),
                "the answer is not only an object".to_owned(),
            ));
        }
    }
    let bytes_max = match returns {
        Some(_) => site.bytes_max.saturating_mul(PROJECTED_FACTOR),
        None => site.bytes_max,
    };
    // Blockers of an answer's schema are no blockers of the tool: they are the reason why it has none.
    let mut own = Findings::default();
    let mut converter = Converter::new(
        resolver,
        site.document.family(),
        Direction::Output,
        &schema.pointer,
        bytes_max,
        &mut work,
        &mut own,
    );
    let mut root = converter.convert(schema);
    let definitions = converter.finish();
    if let Some(object) = root.as_object_mut() {
        if returns.is_none() {
            object.insert("type".to_owned(), Value::from("object"));
        }
        if !definitions.is_empty() {
            object.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    if !own.is_blocked()
        && let Some(returns) = returns
    {
        root = returns.output_schema_of(&root).ok_or_else(|| {
            (
                schema.pointer.clone(),
                "the schema of the kept fields is too large".to_owned(),
            )
        })?;
    }
    let made = sound(root, site, &mut own);
    let (blockers, notes) = own.into_parts();
    match (made, blockers.into_iter().next()) {
        (Some(made), None) => {
            for note in notes {
                findings.keep(note);
            }
            Ok(made)
        }
        (_, Some(blocker)) => Err((
            schema.pointer.clone(),
            format!("{} ({})", blocker.text, blocker.cause),
        )),
        (None, None) => Err((schema.pointer.clone(), "it cannot be read".to_owned())),
    }
}

// === words ===

/// Title and description: the operator's as they are; the document's cleaned and cut.
fn words(
    reference: &OperationRef,
    operation: &Located<'_>,
    options: &ToolOptions,
    findings: &mut Findings,
) -> (Option<String>, String) {
    let mut text = |key: &str| {
        let text = operation.value.get(key)?.as_str()?;
        let cleaned = prose::clean(text);
        if cleaned.len() != text.len() {
            findings.note(
                NoteKind::TextCleaned,
                &operation.pointer.child(key),
                "invisible characters or comments were taken out",
            );
        }
        let trimmed = cleaned.trim();
        (!trimmed.is_empty()).then(|| trimmed.to_owned())
    };
    let (summary, written) = (text("summary"), text("description"));
    if operation.value.get("deprecated") == Some(&Value::Bool(true)) {
        findings.note(
            NoteKind::OperationDeprecated,
            &operation.pointer,
            "the operation is marked as deprecated",
        );
    }
    let description = options
        .description
        .clone()
        .or_else(|| {
            written
                .or_else(|| summary.clone())
                .map(|text| cut(text, &operation.pointer, findings))
        })
        .unwrap_or_else(|| {
            findings.note(
                NoteKind::DescriptionMissing,
                &operation.pointer,
                "there is no description; the tool says method and path",
            );
            reference.key().to_string()
        });
    let title = options.title.clone().or_else(|| {
        let line = summary?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(prose::cut(&line, TITLE_BYTES_MAX).map_or(line.clone(), str::to_owned))
    });
    (title, description)
}

/// The longest title, in bytes: it is shown in lists.
const TITLE_BYTES_MAX: usize = 120;

fn cut(text: String, operation: &Pointer, findings: &mut Findings) -> String {
    match prose::cut(&text, prose::DESCRIPTION_BYTES_MAX) {
        None => text,
        Some(head) => {
            findings.note(
                NoteKind::DescriptionCut,
                operation,
                format!(
                    "the description has {} bytes and was cut to {}",
                    text.len(),
                    head.len()
                ),
            );
            head.to_owned()
        }
    }
}
