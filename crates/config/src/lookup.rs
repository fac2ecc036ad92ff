//! What is looked up before a call: who owns a thing, and further facts. Nothing is asked here.

use std::collections::{BTreeMap, BTreeSet};

use model::SourceName;

use crate::check::excerpt;
use crate::fault::FaultKind;
use crate::query::{self, Bind};
use crate::reading::Reading;
use crate::suggest;
use crate::view::View;

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

/// What a tool may refer to.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Every source that is written, also one that has a fault of its own; `None` where it does not say what it is.
    pub(crate) sources: BTreeMap<String, Option<SourceKind>>,
    /// The claims that some caller can have.
    pub(crate) claims: BTreeSet<String>,
}

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    Sql,
    File,
}

/// The `owner` of a tool.
pub(crate) fn owner(reading: &mut Reading<'_>, view: &View<'_>) -> Option<OwnerSettings> {
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
        if !reading.known.claims.contains(claim.as_str()) {
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
    match source(reading, &owner)? {
        (source, SourceKind::Sql) => {
            let (query, bind) = query(reading, &owner, view, &["resource.id"])?;
            Some(OwnerSettings::Sql { source, query, bind })
        }
        (source, SourceKind::File) => {
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

/// One fact of a tool.
pub(crate) fn fact(
    reading: &mut Reading<'_>,
    name: &str,
    view: &View<'_>,
    tool: &View<'_>,
) -> Option<FactSettings> {
    let source = source(reading, view);
    if let Some((source, SourceKind::File)) = &source {
        let problem = format!("the source `{source}` is a file, which knows owners and no other facts");
        let fault = reading.fault_at(view, "source", FaultKind::Conflict, problem);
        reading.faults.push(fault.hint("name a source with `sql`"));
    }
    let asked = query(reading, view, tool, &[]);
    let kind = view.parsed("type", |text| match text {
        "truth" => Ok(FactKind::Truth),
        "integer" => Ok(FactKind::Integer),
        "text" => Ok(FactKind::Text),
        _ => Err(()),
    });
    let ((source, _), (query, bind)) = (source?, asked?);
    Some(FactSettings {
        name: name.to_owned(),
        source,
        query,
        bind,
        kind: kind?,
    })
}

/// The source that a table names, and what it is.
fn source(reading: &mut Reading<'_>, view: &View<'_>) -> Option<(SourceName, SourceKind)> {
    let text = view.text("source")?;
    let name = SourceName::parse(&text).ok()?;
    if let Some(kind) = reading.known.sources.get(&text) {
        return kind.map(|kind| (name, kind));
    }
    let names: Vec<String> = reading.known.sources.keys().cloned().collect();
    unknown_name(reading, view, "source", &text, names.iter().map(String::as_str));
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
    unknown_in(reading, (view, what), what, name, names);
}

/// The same at a key of another name than the thing.
pub(crate) fn unknown_in<'c>(
    reading: &mut Reading<'_>,
    (view, key): (&View<'_>, &str),
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = &'c str> + Clone,
) {
    let fault = reading
        .fault_at(
            view,
            key,
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
