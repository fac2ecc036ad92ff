//! From an operation to a tool: the definition that a model reads, and the plan that a call follows.
//!
//! This file orders the steps; each step has a file of its own. It decides nothing about risk: the method is reported,
//! the class is a person's. Read next: `parameter` and `body` for what is read, `schema` for what it becomes, `plan`.

mod bounds;
mod draft;
mod possible;
mod schemas;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use model::{Digest, Value};

pub use bounds::ArgumentBounds;
use draft::{Draft, inject, name_all, without_the_operators};
use schemas::{SchemaSite, input_schema, output_schema};
use words::words;

use crate::blocker::{Blocker, BlockerCause, Findings, Note, NoteKind};
use crate::body::{self, BodySite};
use crate::document::Document;
use crate::operation::{Method, OperationKey, OperationRef, path_items};
use crate::parameter::{self, Parameter, Parameters, Place, Wire};
use crate::plan::{ArgumentPlace, BodyPlan, RequestPlan};
use crate::pointer::Pointer;
use crate::projection::Projection;
use crate::reference::Located;
use crate::resolved;
use crate::response;
use crate::schema::is_known_dialect;
use crate::security;
use crate::serial::Nesting;
use crate::server;
use crate::shape::Work;
use crate::template::{FixedQuery, Template};
use crate::text::excerpt;
use crate::written::{self, WriteOnly};

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
    /// Whether the schemas are compiled once as the gateway does, for a last look. A survey of a whole document may
    /// leave it out, which is most of its work; what is offered must not.
    pub compile: bool,
    /// Whether reserved characters of parameters that say `allowReserved` are sent as they are, as far as they cannot
    /// change what the query says; else they are encoded.
    pub allow_reserved: bool,
    /// How the API nests values in `deepObject`.
    pub nesting: Nesting,
    /// What holds for single arguments, by the names that the document gives them.
    pub arguments: BTreeMap<String, ArgumentBounds>,
    /// The media type in which the body is sent, of those that the document declares; else JSON, where it is one.
    pub media_type: Option<String>,
    /// The media type in which the answer is asked for, of those that the document declares; else JSON, where it is one.
    pub accept: Option<String>,
    /// What stands before the path of every request: empty, or a path without a slash at its end.
    pub base_path: String,
    /// The largest schema, in bytes of JSON, of the input and of the output. What does not fit blocks the tool.
    pub schema_bytes_max: usize,
    /// Beyond this, in bytes of JSON, texts of an input are cut short and optional parts are left out, with a note; what must be
    /// given stays, as far as it fits into [`Self::schema_bytes_max`], which is the most that this can be.
    pub input_bytes_max: usize,
    /// Where an output schema is no longer followed deeper, in bytes of JSON, about.
    pub output_bytes_max: usize,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            title: None,
            description: None,
            inject: Vec::new(),
            returns: None,
            compile: true,
            allow_reserved: false,
            nesting: Nesting::Refuse,
            arguments: BTreeMap::new(),
            media_type: None,
            accept: None,
            base_path: String::new(),
            schema_bytes_max: 64 << 10,
            input_bytes_max: 64 << 10,
            output_bytes_max: 2 << 10,
        }
    }
}

/// A tool made of an operation.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Method and path.
    pub operation: OperationKey,
    /// The operator's title, else the document's summary.
    pub title: Option<String>,
    /// The operator's description, else the document's, cleaned and at most 1,024 bytes; else method and path.
    pub description: String,
    /// JSON Schema 2020-12: an object, closed, every reference inside it.
    pub input_schema: Value,
    /// JSON Schema 2020-12 of every success, with short texts; an object. `None` where there is none: a note says why.
    pub output_schema: Option<Value>,
    /// The length of both schemas as JSON, in bytes.
    pub schema_bytes: usize,
    /// The arguments in the input schema, in its order.
    pub argument_names: Vec<String>,
    /// Media types of successful answers beside JSON that the document declares, in lower case; `image/*` is a range.
    pub answers: Vec<String>,
    /// Whether a success can be without a body. Where there is an output schema, it takes an empty object then.
    pub may_be_empty: bool,
    /// The fields of an answer that the document marks `writeOnly`: none of them leaves.
    pub write_only: WriteOnly,
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
    let (template, fixed_query) = template(reference, method, findings);
    let mut work = Work::new();
    let dialect = resolver.root().get("jsonSchemaDialect").and_then(Value::as_str);
    if dialect.is_some_and(|dialect| !is_known_dialect(dialect)) {
        findings.note(
            NoteKind::SchemaDialect,
            &Pointer::root().child("jsonSchemaDialect"),
            "the document names another dialect; its schemas are read as 2020-12",
        );
    }

    if server::has_own(document, reference) {
        findings.note(
            NoteKind::ServerOwn,
            &operation.pointer,
            "the document sends this operation to a server of its own; it goes where the operator says",
        );
    }
    let inherited = inherited(document, reference);
    let mut lists: Vec<Located<'_>> = operation.get("parameters").into_iter().collect();
    lists.extend(inherited.iter().cloned());
    let credentials = security::credentials(resolver);
    let wire = Wire {
        allow_reserved: options.allow_reserved,
        nesting: options.nesting,
    };
    let parameters = parameter::read(resolver, &mut work, &lists, (&credentials, wire), findings);
    let mut query_names: BTreeSet<String> = parameters
        .in_query
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    if let Some(fixed) = &fixed_query {
        fixed_apart(
            fixed,
            &mut query_names,
            &parameters,
            &reference.path_item,
            findings,
        );
    }
    let parameters = in_template(parameters, template.as_ref(), &reference.path_item, findings);
    let site = BodySite {
        resolver,
        family: document.family(),
        wire,
        work: &mut work,
        findings,
    };
    let body = body::read(site, &operation, method, options.media_type.as_deref());

    let mut drafts: Vec<Draft<'_>> = parameters.into_iter().map(Draft::of_parameter).collect();
    let body = body.map(|body| Draft::of_body(body, &mut drafts));
    name_all(&mut drafts, &operation.pointer, findings)?;
    inject(&mut drafts, &options.inject, &operation.pointer, findings);
    without_the_operators(&mut drafts, findings);
    bounds::apply(&mut drafts, &options.arguments, &operation.pointer, findings);
    let body_is_sent = body.as_ref().is_some_and(|body| body.required)
        || bounds::asks_for_a_field(&drafts)
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
        input_bytes_max: options.input_bytes_max.min(options.schema_bytes_max),
        output_bytes_max: options.output_bytes_max,
        compile: options.compile,
    };
    let (input_schema, input_bytes) = input_schema(&schema_site, &mut drafts, body_is_sent, findings)?;
    let success = response::read(resolver, document.family(), &operation, options.accept.as_deref());
    if let Some(fault) = &success.fault {
        findings.block(fault.clone());
        return None;
    }
    let (output_schema, output_bytes) =
        output_schema(&schema_site, &success, options.returns.as_ref(), findings).unzip();
    let (title, description) = words(reference, &operation, options, findings);
    let body = match body {
        None => BodyPlan::None,
        Some(body) => match body.whole {
            Some(fields) => BodyPlan::Whole {
                content_type: body.content_type,
                kind: body.kind,
                fields,
            },
            None => BodyPlan::Fields {
                content_type: body.content_type,
                kind: body.kind,
                always: body_is_sent,
            },
        },
    };
    Some(Generated {
        operation: reference.key().clone(),
        title,
        description,
        input_schema,
        schema_bytes: input_bytes + output_bytes.unwrap_or(0),
        output_schema,
        argument_names: drafts
            .iter()
            .filter(|draft| !draft.injected)
            .map(|draft| draft.name.clone())
            .collect(),
        answers: success.answers,
        may_be_empty: success.may_be_empty,
        write_only: written::of(document, reference, findings)?,
        plan: RequestPlan {
            operation: reference.key().clone(),
            base_path: options.base_path.clone(),
            template: template?,
            fixed_query,
            arguments: drafts.into_iter().map(Draft::into_argument).collect(),
            accept: success.accept,
            query_names,
            body,
        },
        notes: Vec::new(),
        idempotent: method.is_idempotent(),
        safe_method: method.is_safe(),
    })
}

/// The digest of everything in the document that an operation depends on.
pub(crate) fn digest(document: &Document, reference: &OperationRef) -> Result<Digest, Blocker> {
    let blocker = |text: &str, clears: &str| {
        Blocker::new(BlockerCause::OperationOverBudget, &reference.place, text, clears)
    };
    let operation = document
        .resolver()
        .at(reference.place.clone())
        .ok_or_else(|| blocker("the operation is not there", "take it from this document"))?;
    resolved::digest(document, reference, &operation, &inherited(document, reference)).ok_or_else(|| {
        blocker(
            "the operation refers to more of the document than is looked at",
            "simplify what it refers to",
        )
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

/// Lets nothing that a caller sends take the place of what the path has fixed in the query.
fn fixed_apart(
    fixed: &FixedQuery,
    names: &mut BTreeSet<String>,
    parameters: &Parameters<'_>,
    path_item: &Pointer,
    findings: &mut Findings,
) {
    let is_whole = parameters
        .usable
        .iter()
        .any(|parameter| parameter.place == Place::QueryString);
    for name in fixed.names() {
        if is_whole || !names.insert(name.clone()) {
            findings.block(Blocker::new(
                BlockerCause::PathMalformed,
                path_item,
                format!(
                    "the path fixes `{}` of the query, and a parameter sets it, too",
                    excerpt(&name)
                ),
                "leave it out of the path, or of the parameters",
            ));
        }
    }
}

/// The path, and the query that a document wrote into it.
fn template(
    reference: &OperationRef,
    method: Method,
    findings: &mut Findings,
) -> (Option<Template>, Option<FixedQuery>) {
    if method == Method::Additional {
        findings.block(Blocker::new(
            BlockerCause::OperationMethod,
            &reference.place,
            format!(
                "nothing is known of what the method `{}` does",
                excerpt(reference.method())
            ),
            "offer another operation",
        ));
    }
    if method == Method::Trace {
        findings.block(Blocker::new(
            BlockerCause::OperationMethod,
            &reference.place,
            "TRACE answers with the request, credentials included",
            "offer another operation",
        ));
    }
    // A fragment is never sent; some documents tell operations of one path apart by it.
    let (path, fragment) = reference.path().split_once('#').unwrap_or((reference.path(), ""));
    // One that goes on as a path is no mark: without it, the request would go elsewhere.
    if fragment.contains('{') || (fragment.contains('/') && !fragment.contains('=')) {
        findings.block(Blocker::new(
            BlockerCause::PathMalformed,
            &reference.path_item,
            format!(
                "a part of the path stands behind `#`, which is never sent: `#{}`",
                excerpt(fragment)
            ),
            "write the path without `#`",
        ));
    } else if !fragment.is_empty() {
        findings.note(
            NoteKind::PathFragment,
            &reference.path_item,
            format!("`#{}` of the path is not sent", excerpt(fragment)),
        );
    }
    // What cannot be read as a query stays where the template refuses it.
    let (path, query) = match path
        .split_once('?')
        .map(|(path, query)| (path, FixedQuery::parse(query)))
    {
        Some((path, Some(query))) => (path, Some(query)),
        Some((_, None)) | None => (path, None),
    };
    if let Some(query) = &query {
        let pairs: Vec<String> = query.pairs().collect();
        findings.note(
            NoteKind::PathQuery,
            &reference.path_item,
            format!(
                "`{}` of the path is sent with every request",
                excerpt(&pairs.join("&"))
            ),
        );
    }
    let template = Template::parse(path).map_err(|fault| {
        findings.block(Blocker::new(
            BlockerCause::PathMalformed,
            &reference.path_item,
            fault.to_string(),
            "write a path as `/invoices/{id}`",
        ));
    });
    (template.ok(), query)
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
