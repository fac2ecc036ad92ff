//! Tools, as a reviewer bounds them, and everything that must fit together in one. Whether the document has the
//! operation is known only to the room that reads documents.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use model::{Class, ResourceType, SourceName, ToolName, UpstreamName};

use crate::check::excerpt;
use crate::fault::FaultKind;
use crate::query::{self, Bind};
use crate::reading::Reading;
use crate::source::SourceSettings;
use crate::suggest;
use crate::text::{self, of_name};
use crate::upstream::timeout;
use crate::view::View;

/// `[upstream.<name>.tool.<name>]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// The public name: that of the upstream, `_`, and the name in the configuration.
    pub name: ToolName,
    /// The path of its table, as [`crate::Settings::place`] takes it: `upstream.billing.tool.getInvoiceStatus`.
    pub key: String,
    /// The operation: an `operationId`, or a method and a path.
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
    /// The only parts of the answer that leave, as name and JSONPath in the order of the file. `None`: all of it.
    pub returns: Option<Vec<(String, String)>>,
    /// The deadline of a call; at most `call_timeout_max`.
    pub timeout: Option<Duration>,
    /// When a call is tried again. Only for classes that change nothing.
    pub retry: Option<RetrySettings>,
    /// The waiver of approval. Only for classes that change state. It may have expired: compare the date.
    pub consent: Option<ConsentWaiver>,
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

/// Where the owner of a thing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerSettings {
    /// In a database.
    Sql {
        /// The source, which is configured and has `sql`.
        source: SourceName,
        /// The query; it has as many placeholders as `bind` has values.
        query: String,
        /// The values of its placeholders.
        bind: Vec<Bind>,
    },
    /// In a file of owners.
    File {
        /// The source, which is configured and has `file`.
        source: SourceName,
    },
    /// In the caller's own claims: things whose ids are listed belong to its tenant, or to its subject without one.
    Claims {
        /// The claim that lists ids.
        claim: String,
    },
}

/// Which rows of an answer leave: JSONPaths, not yet parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsSettings {
    /// The list of rows in the answer.
    pub items: String,
    /// The owner in a row.
    pub owner: String,
}

/// One further fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSettings {
    /// Its name: a Cedar identifier.
    pub name: String,
    /// The source, which is configured and has `sql`.
    pub source: SourceName,
    /// The query; it has as many placeholders as `bind` has values.
    pub query: String,
    /// The values of its placeholders.
    pub bind: Vec<Bind>,
    /// What it is.
    pub kind: FactKind,
}

/// The type of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// Yes or no.
    Truth,
    /// A whole number.
    Integer,
    /// A text.
    Text,
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

/// What a tool may refer to.
pub(crate) struct Known<'s> {
    pub(crate) sources: &'s BTreeMap<SourceName, SourceSettings>,
    /// The sources that are written, readable or not: a source that has a fault of its own is not unknown.
    pub(crate) written: BTreeSet<&'s str>,
    /// The claims that some caller or issuer can have.
    pub(crate) claims: BTreeSet<&'s str>,
}

/// One tool, and every fault of it.
pub(crate) fn read(
    reading: &mut Reading<'_>,
    upstream: Option<&UpstreamName>,
    name: &str,
    view: &View<'_>,
    known: &Known<'_>,
) -> Option<ToolSettings> {
    let public = upstream.and_then(|upstream| public_name(reading, upstream, name, view));
    let class = view.parsed("class", str::parse::<Class>);
    let resource = resource(view);
    let owner = owner(reading, view, known);
    let facts: Vec<_> = view
        .named("facts")
        .into_iter()
        .map(|(name, fact_view)| fact(reading, name, &fact_view, view, known))
        .collect();
    let rows = view.table("rows").map(|rows| {
        Some(RowsSettings {
            items: rows.text("items")?,
            owner: rows.text("owner")?,
        })
    });
    let retry = view.table("retry").map(|retry_view| retry(reading, &retry_view));
    let consent = view
        .table("consent")
        .map(|consent_view| consent(reading, &consent_view));
    let timeout = timeout(reading, view);
    let returns = view.has("returns").then(|| {
        let paths = view.named_texts("returns").into_iter();
        paths
            .filter_map(|(name, texts, _)| texts.into_iter().next().map(|path| (name.to_owned(), path.text)))
            .collect()
    });
    ownership(reading, view);
    effects(reading, view, class);
    Some(ToolSettings {
        name: public?,
        key: view.path.clone(),
        operation: view.text("operation")?,
        title: view.text("title"),
        description: view.text("description"),
        class: class?,
        resource,
        owner,
        scope_argument: view.table("scope").and_then(|scope| scope.text("argument")),
        rows: rows.map_or(Some(None), |rows| rows.map(Some))?,
        facts: facts.into_iter().collect::<Option<_>>()?,
        returns,
        timeout,
        retry: retry.map_or(Some(None), |retry| retry.map(Some))?,
        consent: consent.map_or(Some(None), |consent| consent.map(Some))?,
    })
}

fn public_name(
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

fn owner(reading: &mut Reading<'_>, view: &View<'_>, known: &Known<'_>) -> Option<OwnerSettings> {
    let owner = view.table("owner")?;
    if let Some(claim) = owner.text("claims") {
        for name in ["query", "bind"] {
            if owner.has(name) {
                let fault = reading.fault_at(
                    &owner,
                    name,
                    FaultKind::Conflict,
                    format!("`{name}` means nothing together with `claims`"),
                );
                reading.faults.push(fault.hint("leave it out"));
            }
        }
        if !known.claims.contains(claim.as_str()) {
            let warning = reading.fault_at(
                &owner,
                "claims",
                FaultKind::Ineffective,
                format!("no caller can have the claim `{}`", excerpt(&claim)),
            );
            reading
                .warnings
                .push(warning.hint("list it in `claims.extra` of an issuer, or in `claims` of a caller"));
        }
        return Some(OwnerSettings::Claims { claim });
    }
    match source(reading, &owner, known)? {
        (source, SourceSettings::Sql(_)) => {
            let (query, bind) = query(reading, &owner, view, &["resource.id"])?;
            Some(OwnerSettings::Sql { source, query, bind })
        }
        (source, SourceSettings::File(_)) => {
            for name in ["query", "bind"] {
                if owner.has(name) {
                    let problem = format!("the source `{source}` is a file, which has no `{name}`");
                    let fault = reading.fault_at(&owner, name, FaultKind::Conflict, problem);
                    reading
                        .faults
                        .push(fault.hint("leave it out, or name a source with `sql`"));
                }
            }
            Some(OwnerSettings::File { source })
        }
    }
}

fn fact(
    reading: &mut Reading<'_>,
    name: &str,
    view: &View<'_>,
    tool: &View<'_>,
    known: &Known<'_>,
) -> Option<FactSettings> {
    let (source, settings) = source(reading, view, known)?;
    if let SourceSettings::File(_) = settings {
        let problem = format!("the source `{source}` is a file, which knows owners and no other facts");
        let fault = reading.fault_at(view, "source", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("name a source with `sql`"));
        return None;
    }
    let asked = query(reading, view, tool, &[]);
    let kind = view.parsed("type", |text| match text {
        "truth" => Ok(FactKind::Truth),
        "integer" => Ok(FactKind::Integer),
        "text" => Ok(FactKind::Text),
        _ => Err(()),
    });
    let (query, bind) = asked?;
    Some(FactSettings {
        name: name.to_owned(),
        source,
        query,
        bind,
        kind: kind?,
    })
}

/// The source that a table names.
fn source<'k>(
    reading: &mut Reading<'_>,
    view: &View<'_>,
    known: &Known<'k>,
) -> Option<(SourceName, &'k SourceSettings)> {
    let name = view.text("source")?;
    if let Some((name, settings)) = known.sources.get_key_value(name.as_str()) {
        return Some((name.clone(), settings));
    }
    if !known.written.contains(name.as_str()) && SourceName::parse(&name).is_ok() {
        unknown_name(reading, view, "source", &name, known.written.iter().copied());
    }
    None
}

/// A name that refers to nothing.
pub(crate) fn unknown_name<'c>(
    reading: &mut Reading<'_>,
    view: &View<'_>,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = &'c str> + Clone,
) {
    let fault = reading
        .fault_at(
            view,
            what,
            FaultKind::UnknownName,
            format!("there is no {what} `{}`", excerpt(name)),
        )
        .found(Some(excerpt(name)));
    let hint = match suggest::closest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let known: Vec<&str> = names.into_iter().take(20).collect();
            if known.is_empty() {
                format!("add it as [{what}.{}]", excerpt(name))
            } else {
                format!("known are {}", known.join(", "))
            }
        }
    };
    reading.faults.push(fault.hint(hint));
}

/// A query and its bound values. `tool` tells whether a thing is named that `resource.id` could mean.
fn query(
    reading: &mut Reading<'_>,
    view: &View<'_>,
    tool: &View<'_>,
    default: &[&str],
) -> Option<(String, Vec<Bind>)> {
    let Some(query) = view.text("query") else {
        // In facts the key is required, and its fault is known.
        if !view.has("query") && view.section.at.ends_with(".owner") {
            let fault = reading.fault(
                view.header,
                &view.key("query"),
                FaultKind::Missing,
                "this key is missing: the source is a database",
            );
            reading
                .faults
                .push(fault.expected("it, as `query = \"select tenant from invoice where id = $1\"`"));
        }
        return None;
    };
    let written = view.texts("bind");
    let texts: Vec<&str> = if view.has("bind") {
        written.iter().map(|placed| placed.text.as_str()).collect()
    } else {
        default.to_vec()
    };
    let bind: Vec<Bind> = texts.iter().filter_map(|text| Bind::parse(text).ok()).collect();
    let names_thing = tool.table("resource").is_some_and(|resource| resource.has("id"));
    if bind.contains(&Bind::ResourceId) && view.has("bind") && !names_thing {
        let fault = reading.fault_at(
            view,
            "bind",
            FaultKind::Conflict,
            "`resource.id` means nothing here: this tool has no `resource.id`",
        );
        reading
            .faults
            .push(fault.expected("`resource = { type = \"Invoice\", id = \"$.invoiceId\" }`, too"));
    }
    // A query or a bound value that could not be read has a fault already, and then nothing can be counted.
    let count = query::placeholders(&query).ok()?;
    if bind.len() == texts.len() && bind.len() != count {
        let problem = format!("placeholders in the query: {count}, values bound: {}", bind.len());
        let fault = reading.fault_at(
            view,
            if view.has("bind") { "bind" } else { "query" },
            FaultKind::Conflict,
            problem,
        );
        reading
            .faults
            .push(fault.hint("name one value in `bind` for each of $1, $2, …"));
    }
    Some((query, bind))
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
