//! Tools, as a reviewer bounds them, and everything that must fit together in one. Whether the document has the
//! operation is known only to the room that reads documents.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use model::{Class, ResourceType, ToolName, UpstreamName};

use crate::approval::{self, Approval};
use crate::argument::{self, ArgumentSettings};
use crate::fault::FaultKind;
use crate::lookup::{self, FactSettings, OwnerSettings};
use crate::reading::Reading;
use crate::text::{self, of_name};
use crate::upstream::timeout;
use crate::view::View;
use crate::work::{self, LongRunningSettings};

/// The budgets of a tool that no document describes; it has the schemas that its server gave.
const INPUT_BYTES_MAX: u64 = 64 << 10;
const OUTPUT_BYTES_MAX: u64 = 2 << 10;

/// `[upstream.<name>.tool.<name>]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// The public name: that of the upstream, `_`, and the name in the configuration.
    pub name: ToolName,
    /// The path of its table, as [`crate::Settings::place`] takes it: `upstream.billing.tool.getInvoiceStatus`.
    pub key: String,
    /// The operation: an `operationId`, or a method and a path. Of an MCP server: its own name of the tool.
    pub operation: String,
    /// The name that people see.
    pub title: Option<String>,
    /// What models read.
    pub description: Option<String>,
    /// What a call can do to the world.
    pub class: Class,
    /// The thing that a call is about.
    pub resource: Option<ResourceSettings>,
    /// Who owns the thing. Some exactly where the resource is named by an argument.
    pub owner: Option<OwnerSettings>,
    /// The argument that Tollhouse sets to the caller's own scope.
    pub scope_argument: Option<String>,
    /// Which rows leave.
    pub rows: Option<RowsSettings>,
    /// Further facts, in the order of the file.
    pub facts: Vec<FactSettings>,
    /// Arguments that are bounded further, in the order of the file.
    pub arguments: Vec<ArgumentSettings>,
    /// How the API nests values in `deepObject`.
    pub nesting: NestingRule,
    /// Beyond this, in bytes of JSON, the input schema loses words, then optional fields.
    pub input_bytes_max: u64,
    /// Beyond this, in bytes of JSON, the output schema is not followed deeper.
    pub output_bytes_max: u64,
    /// Whether reserved characters may stand as they are in parameters that say so.
    pub allow_reserved: bool,
    /// The media type of the body.
    pub media_type: Option<String>,
    /// The media type that is asked for.
    pub accept: Option<String>,
    /// The server of the document whose path is used. `None`: no path but that of the destination.
    pub server: Option<DocumentServerSettings>,
    /// How several pages are read with one call.
    pub pages: Option<PagesSettings>,
    /// What a model reads of an error, by status: `404`, or `4xx` for all that have none of their own.
    pub errors: BTreeMap<String, String>,
    /// The only parts of the answer that leave, as name and JSONPath in the order of the file. `None`: all of it.
    pub returns: Option<Vec<(String, String)>>,
    /// The deadline of a call: its own, else that of its upstream; at most `call_timeout_max`.
    pub timeout: Option<Duration>,
    /// When a call is tried again. Only for classes that change nothing.
    pub retry: Option<RetrySettings>,
    /// How work is looked after that takes longer than one request.
    pub long_running: Option<LongRunningSettings>,
    /// The waiver of approval. Only for classes that change state. It may have expired: compare the date.
    pub consent: Option<ConsentWaiver>,
    /// What is approved of it, each thing at most once. They may have expired: compare the date.
    pub approvals: Vec<Approval>,
}

/// How an API writes values inside of `deepObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NestingRule {
    /// Not at all.
    Refuse,
    /// `a[b][c]`, and `a[0]` for items.
    Indexed,
    /// `a[b][c]`, and `a[]` for items.
    Unindexed,
}

/// A server of the document, for its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentServerSettings {
    /// The server as the document writes it; else the first one.
    pub url: Option<String>,
    /// Values of its variables.
    pub variables: BTreeMap<String, String>,
}

/// The thing that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSettings {
    /// Its type, as policies name it.
    pub kind: ResourceType,
    /// How the call names it.
    pub by: ResourceBy,
}

/// How a call names the thing that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBy {
    /// By this top-level argument.
    Argument(String),
    /// Not at all: it is what belongs to the caller.
    Scope(Scope),
}

/// What belongs to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// What belongs to the caller's organisation.
    Tenant,
    /// What belongs to the caller alone.
    Subject,
}

/// Which rows of an answer leave: JSONPaths, not yet parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsSettings {
    /// The list of rows in the answer.
    pub items: String,
    /// The owner in a row.
    pub owner: String,
}

/// How the pages of a list follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesSettings {
    /// The argument that names the page.
    pub argument: String,
    /// The argument by which a caller says how many pages it wants.
    pub asked: String,
    /// The list of rows in a page: a JSONPath, not yet parsed.
    pub items: String,
    /// The most pages of one call, 2 to 100.
    pub pages_max: u64,
    /// How the next page is found.
    pub by: PagesBy,
}

/// How the next page is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagesBy {
    /// The page names it here: a JSONPath, not yet parsed.
    Cursor(String),
    /// The header `Link` names it.
    Link,
    /// By counting, from this number on.
    Number(u64),
}

/// When a call is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySettings {
    /// How often a call is tried in all, 1 to 5.
    pub attempts: u32,
    /// The status codes after which it is tried again: 429 or 5xx.
    pub on: Vec<u16>,
}

/// Somebody answers for it that no person approves each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentWaiver {
    /// Who.
    pub waived_by: String,
    /// Why.
    pub because: String,
    /// The last day on which it holds, in UTC.
    pub until: Date,
}

impl ConsentWaiver {
    /// Whether it still holds at a time.
    #[must_use]
    pub fn holds(&self, now: jiff::Timestamp) -> bool {
        Offset::UTC.to_datetime(now).date() <= self.until
    }
}

/// One tool, prompt or resource of an MCP server, and every fault of it. What only a document has is as if it were not
/// written. `own` is what the server itself calls it.
pub(crate) fn of_server(
    reading: &mut Reading<'_>,
    (upstream, upstream_view): (Option<&UpstreamName>, &View<'_>),
    (name, own): (&str, String),
    view: &View<'_>,
) -> Option<ToolSettings> {
    let public = upstream.and_then(|upstream| public_name(reading, upstream, name, view));
    let class = view.parsed("class", str::parse::<Class>);
    let parts = match view.section.key("consent") {
        Some(_) => Parts::read(reading, view, class),
        None => Parts::of_offer(reading, view),
    };
    let parts = parts?;
    Some(ToolSettings {
        name: public?,
        key: view.path.clone(),
        operation: own,
        title: view.text("title"),
        description: view.text("description"),
        class: class?,
        resource: parts.resource,
        owner: parts.owner,
        scope_argument: None,
        rows: parts.rows,
        facts: parts.facts,
        arguments: Vec::new(),
        nesting: NestingRule::Refuse,
        input_bytes_max: INPUT_BYTES_MAX,
        output_bytes_max: OUTPUT_BYTES_MAX,
        allow_reserved: false,
        media_type: None,
        accept: None,
        server: None,
        pages: None,
        errors: BTreeMap::new(),
        returns: parts.returns,
        timeout: parts.timeout.or_else(|| upstream_view.duration("timeout")),
        retry: None,
        long_running: None,
        consent: parts.consent,
        approvals: parts.approvals,
    })
}

/// What a tool has, whatever stands behind it.
struct Parts {
    resource: Option<ResourceSettings>,
    owner: Option<OwnerSettings>,
    rows: Option<RowsSettings>,
    facts: Vec<FactSettings>,
    returns: Option<Vec<(String, String)>>,
    timeout: Option<Duration>,
    consent: Option<ConsentWaiver>,
    approvals: Vec<Approval>,
}

impl Parts {
    /// What is only got or read changes nothing, and needs no approval but its pin.
    fn of_offer(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Self> {
        let resource = resource(view);
        let owner = lookup::owner(reading, view);
        let facts = facts(reading, view);
        let timeout = timeout(reading, view);
        ownership(reading, view);
        Some(Self {
            resource,
            owner,
            rows: None,
            facts: facts?,
            returns: None,
            timeout,
            consent: None,
            approvals: Vec::new(),
        })
    }

    fn read(reading: &mut Reading<'_>, view: &View<'_>, class: Option<Class>) -> Option<Self> {
        let resource = resource(view);
        let owner = lookup::owner(reading, view);
        let facts = facts(reading, view);
        let rows = view.table("rows").map(|rows| {
            Some(RowsSettings {
                items: rows.text("items")?,
                owner: rows.text("owner")?,
            })
        });
        let consent = view
            .table("consent")
            .map(|consent_view| consent(reading, &consent_view));
        let approvals = approval::read(reading, view);
        let timeout = timeout(reading, view);
        let returns = view.has("returns").then(|| {
            let paths = view.named_texts("returns").into_iter();
            paths
                .filter_map(|(name, texts, _)| {
                    texts.into_iter().next().map(|path| (name.to_owned(), path.text))
                })
                .collect()
        });
        ownership(reading, view);
        effects(reading, view, class);
        Some(Self {
            resource,
            owner,
            rows: rows.map_or(Some(None), |rows| rows.map(Some))?,
            facts: facts?,
            returns,
            timeout,
            consent: consent.map_or(Some(None), |consent| consent.map(Some))?,
            approvals: approvals?,
        })
    }
}

fn facts(reading: &mut Reading<'_>, view: &View<'_>) -> Option<Vec<FactSettings>> {
    let facts: Vec<_> = view
        .named("facts")
        .into_iter()
        .map(|(name, fact_view)| lookup::fact(reading, name, &fact_view, view))
        .collect();
    facts.into_iter().collect()
}

/// One tool, and every fault of it.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    (upstream, upstream_view): (Option<&UpstreamName>, &View<'_>),
    name: &str,
    view: &View<'_>,
) -> Option<ToolSettings> {
    let public = upstream.and_then(|upstream| public_name(reading, upstream, name, view));
    let class = view.parsed("class", str::parse::<Class>);
    let parts = Parts::read(reading, view, class);
    let retry = view.table("retry").map(|retry_view| retry(reading, &retry_view));
    let long_running = work::read(reading, view);
    let arguments = argument::read(reading, view);
    let errors = view.named_texts("errors").into_iter();
    let errors = errors
        .filter_map(|(status, texts, _)| {
            texts
                .into_iter()
                .next()
                .map(|text| (status.to_owned(), text.text))
        })
        .collect();
    let server = view.table("server").or(upstream_view.table("server"));
    let parts = parts?;
    Some(ToolSettings {
        name: public?,
        key: view.path.clone(),
        operation: view.text("operation")?,
        title: view.text("title"),
        description: view.text("description"),
        class: class?,
        resource: parts.resource,
        owner: parts.owner,
        scope_argument: view.table("scope").and_then(|scope| scope.text("argument")),
        rows: parts.rows,
        facts: parts.facts,
        arguments,
        nesting: upstream_view.parsed("nesting", nesting)?,
        input_bytes_max: upstream_view.count("input_bytes_max")?,
        output_bytes_max: upstream_view.count("output_bytes_max")?,
        allow_reserved: view.truth("allow_reserved")?,
        media_type: view.text("media_type"),
        accept: view.text("accept"),
        server: server.map(|server| self::server(&server)),
        pages: view
            .table("pages")
            .map_or(Some(None), |pages| self::pages(&pages).map(Some))?,
        errors,
        returns: parts.returns,
        timeout: parts.timeout.or_else(|| upstream_view.duration("timeout")),
        retry: retry.map_or(Some(None), |retry| retry.map(Some))?,
        long_running: long_running?,
        consent: parts.consent,
        approvals: parts.approvals,
    })
}

fn nesting(text: &str) -> Result<NestingRule, ()> {
    match text {
        "refuse" => Ok(NestingRule::Refuse),
        "indexed" => Ok(NestingRule::Indexed),
        "unindexed" => Ok(NestingRule::Unindexed),
        _ => Err(()),
    }
}

fn pages(view: &View<'_>) -> Option<PagesSettings> {
    let by = match (view.text("next"), view.truth("link"), view.count("first")) {
        (Some(next), _, _) => PagesBy::Cursor(next),
        (None, Some(_), _) => PagesBy::Link,
        (None, None, first) => PagesBy::Number(first?),
    };
    Some(PagesSettings {
        argument: view.text("argument")?,
        asked: view.text("as")?,
        items: view.text("items")?,
        pages_max: view.count("pages_max")?,
        by,
    })
}

fn server(view: &View<'_>) -> DocumentServerSettings {
    let variables = view.named_texts("variables").into_iter();
    DocumentServerSettings {
        url: view.text("url"),
        variables: variables
            .filter_map(|(name, texts, _)| texts.into_iter().next().map(|text| (name.to_owned(), text.text)))
            .collect(),
    }
}

pub(crate) fn public_name(
    reading: &mut Reading<'_>,
    upstream: &UpstreamName,
    name: &str,
    view: &View<'_>,
) -> Option<ToolName> {
    ToolName::parse(name).ok()?;
    let public = format!("{upstream}_{name}");
    match ToolName::parse(&public) {
        Ok(name) => Some(name),
        Err(fault) => {
            let problem = format!("the public name `{public}` {}", of_name(&fault).problem);
            let fault = reading.fault(view.header, &view.path, FaultKind::OutOfRange, problem);
            reading
                .faults
                .push(fault.hint("shorten the name of the tool or of the upstream"));
            None
        }
    }
}

// === what belongs to whom ===

fn resource(view: &View<'_>) -> Option<ResourceSettings> {
    let resource = view.table("resource")?;
    let by = if let Some(argument) = resource.parsed("id", text::resource_id) {
        ResourceBy::Argument(argument)
    } else {
        ResourceBy::Scope(resource.parsed("scope", scope)?)
    };
    Some(ResourceSettings {
        kind: resource.parsed("type", ResourceType::parse)?,
        by,
    })
}

fn scope(text: &str) -> Result<Scope, ()> {
    match text {
        "tenant" => Ok(Scope::Tenant),
        "subject" => Ok(Scope::Subject),
        _ => Err(()),
    }
}

/// How `resource`, `owner`, `scope` and `rows` must fit together: what a call is about must have an owner that is
/// known before the call, and a list must be bounded to the caller's own.
fn ownership(reading: &mut Reading<'_>, view: &View<'_>) {
    let resource = view.table("resource");
    let by_id = resource.as_ref().is_some_and(|resource| resource.has("id"));
    let by_scope = resource.as_ref().is_some_and(|resource| resource.has("scope"));
    if by_id && !view.has("owner") {
        let fault = reading.fault(
            view.header,
            &view.key("owner"),
            FaultKind::Missing,
            "this key is missing: `resource` names a thing, and nothing says whose it is",
        );
        reading.faults.push(fault.expected("it, as `owner = { source = \"directory\", query = \"select tenant from invoice where id = $1\" }`"));
    }
    if view.has("owner") && !by_id {
        let problem = if by_scope {
            "a scope is the caller's own and needs no `owner`"
        } else {
            "`owner` says whose a thing is, and no `resource.id` names one"
        };
        let fault = reading.fault_at(view, "owner", FaultKind::Conflict, problem);
        reading.faults.push(if by_scope {
            fault.hint("leave `owner` out")
        } else {
            fault.expected("`resource = { type = \"Invoice\", id = \"$.invoiceId\" }`, too")
        });
    }
    if by_scope && !by_id && !view.has("scope") && !view.has("rows") {
        let problem = "this tool lists what belongs to the caller, and nothing bounds the list";
        let fault = reading.fault_at(view, "resource", FaultKind::Conflict, problem);
        reading.faults.push(fault.expected("`scope = { argument = \"tenant\" }`, or `rows = { items = \"$.invoices\", owner = \"$.tenant\" }`, too"));
    }
    for name in ["scope", "rows"] {
        if view.has(name) && !by_scope {
            let problem = format!(
                "`{name}` bounds a list to the caller's own, and no `resource.scope` says what that is"
            );
            let fault = reading.fault_at(view, name, FaultKind::Conflict, problem);
            reading
                .faults
                .push(fault.expected("`resource = { type = \"InvoiceList\", scope = \"tenant\" }`, too"));
        }
    }
}

// === what may be repeated, and what needs a person ===

fn effects(reading: &mut Reading<'_>, view: &View<'_>, class: Option<Class>) {
    let Some(class) = class else { return };
    if class.changes_state() && view.has("retry") {
        let problem = format!("a call of class `{class}` is never sent twice");
        let fault = reading.fault_at(view, "retry", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint(
            "leave `retry` out: after a broken connection nobody knows whether the first call took effect",
        ));
    }
    if class.changes_state() && view.has("pages") {
        let problem = format!("a call of class `{class}` is one request");
        let fault = reading.fault_at(view, "pages", FaultKind::Conflict, problem);
        reading
            .faults
            .push(fault.hint("leave `pages` out, or correct the class"));
    }
    if !class.changes_state() && view.has("consent") {
        let problem = format!("a call of class `{class}` needs no approval that could be waived");
        let fault = reading.fault_at(view, "consent", FaultKind::Conflict, problem);
        reading
            .faults
            .push(fault.hint("leave `consent` out, or correct the class"));
    }
}

fn retry(reading: &mut Reading<'_>, view: &View<'_>) -> Option<RetrySettings> {
    let mut on = Vec::new();
    for (status, at) in view.counts("on") {
        if status != 429 && !(500..=599).contains(&status) {
            let fault = reading.fault(
                Some(at),
                &view.key("on"),
                FaultKind::WrongValue,
                format!("`{status}` is no answer after which a second try can help"),
            );
            reading
                .faults
                .push(fault.expected("429, or codes from 500 to 599"));
        }
        on.extend(u16::try_from(status).ok());
    }
    Some(RetrySettings {
        attempts: view
            .count("attempts")
            .and_then(|count| u32::try_from(count).ok())?,
        on,
    })
}

fn consent(reading: &mut Reading<'_>, view: &View<'_>) -> Option<ConsentWaiver> {
    let waiver = ConsentWaiver {
        waived_by: view.text("waived_by")?,
        because: view.text("because")?,
        until: view.parsed("until", text::date)?,
    };
    if !waiver.holds(reading.world.now()) {
        let warning = reading.fault_at(
            view,
            "until",
            FaultKind::Expired,
            format!("this waiver ended on {}", waiver.until),
        );
        reading
            .warnings
            .push(warning.hint("the tool is refused until the waiver is renewed or taken out"));
    }
    Some(waiver)
}
