//! Servers that the document names for an operation: for reports, so that a reviewer sees where the document would go.
//!
//! Requests never go there by the document's word: the destination is the operator's.
//! Source: OpenAPI 3.1.1 section 4.8.5.

use std::collections::{BTreeMap, BTreeSet};

use model::Value;
use serde::Serialize;
use url::Url;

use crate::document::Document;
use crate::operation::OperationRef;
use crate::pointer::Pointer;
use crate::text::excerpt;

/// Servers that are looked at.
const SERVERS_MAX: usize = 64;

/// One server, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Server {
    /// The URL, perhaps relative, with variables in braces.
    pub url: String,
    /// The place of the server in the document.
    pub pointer: String,
    /// Names and defaults of the variables in the URL.
    pub variables: Vec<(String, String)>,
    /// For variables that have some, the only values that they may have.
    pub choices: BTreeMap<String, Vec<String>>,
}

/// Why a URL of a server cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerFault {
    /// A variable without a value.
    #[error("the variable `{{{0}}}` of the server has no default; give it a value")]
    NoValue(String),
    /// A value that is none of those that the document allows.
    #[error("`{value}` is no value of the variable `{{{name}}}`; write one of {}", choices.join(", "))]
    NotOffered {
        /// The variable.
        name: String,
        /// The value.
        value: String,
        /// The values that there are.
        choices: Vec<String>,
    },
    /// A value for a variable that the URL does not have.
    #[error("the server has no variable `{{{0}}}`; remove it")]
    Unknown(String),
    /// A server that the operation does not have.
    #[error("the operation has no server `{url}`; it has {}", known.join(", "))]
    NotThere {
        /// What was asked for.
        url: String,
        /// The servers that there are.
        known: Vec<String>,
    },
    /// A URL without a path that could be used.
    #[error(
        "the server `{0}` has no path that can be used; its URL must be `/path` or `https://host/path`, without query"
    )]
    Path(String),
    /// Braces that do not match.
    #[error("the braces of the server URL `{0}` do not match")]
    Braces(String),
}

impl Server {
    /// The URL with its variables replaced: by the operator's `settings`, else by their defaults. Never by a caller's
    /// word.
    ///
    /// # Errors
    /// [`ServerFault`].
    pub fn resolve(&self, settings: &BTreeMap<String, String>) -> Result<String, ServerFault> {
        let mut out = String::new();
        let mut used: BTreeSet<&str> = BTreeSet::new();
        let mut rest = self.url.as_str();
        while let Some((fixed, tail)) = rest.split_once('{') {
            let (name, after) = tail
                .split_once('}')
                .ok_or_else(|| ServerFault::Braces(excerpt(&self.url)))?;
            out.push_str(fixed);
            out.push_str(self.value(name, settings)?);
            used.insert(name);
            rest = after;
        }
        out.push_str(rest);
        match settings.keys().find(|name| !used.contains(name.as_str())) {
            Some(name) => Err(ServerFault::Unknown(excerpt(name))),
            None => Ok(out),
        }
    }

    fn value<'s>(
        &'s self,
        name: &str,
        settings: &'s BTreeMap<String, String>,
    ) -> Result<&'s str, ServerFault> {
        let default = self.variables.iter().find(|(known, _)| known == name);
        let value = settings
            .get(name)
            .or(default.map(|(_, value)| value))
            .ok_or_else(|| ServerFault::NoValue(excerpt(name)))?;
        match self.choices.get(name) {
            Some(choices) if !choices.contains(value) => Err(ServerFault::NotOffered {
                name: excerpt(name),
                value: excerpt(value),
                choices: choices.iter().map(|choice| excerpt(choice)).collect(),
            }),
            _ => Ok(value),
        }
    }
}

/// Which server of an operation is meant, by the operator's word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerChoice {
    /// The server as the document writes it; else the first one.
    pub url: Option<String>,
    /// Values of the variables in its URL.
    pub variables: BTreeMap<String, String>,
}

/// The path of a server, without a slash at its end: what stands before the path of the operation.
///
/// Scheme, host and port are left to the operator's destination.
pub(crate) fn base_path(
    document: &Document,
    operation: &OperationRef,
    choice: &ServerChoice,
) -> Result<String, ServerFault> {
    let servers = effective(document, operation);
    let server = match &choice.url {
        None => servers.first(),
        Some(url) => servers.iter().find(|server| server.url == *url),
    };
    let Some(server) = server else {
        return Err(ServerFault::NotThere {
            url: excerpt(choice.url.as_deref().unwrap_or_default()),
            known: servers
                .iter()
                .take(8)
                .map(|server| format!("`{}`", excerpt(&server.url)))
                .collect(),
        });
    };
    let whole = server.resolve(&choice.variables)?;
    let fault = || ServerFault::Path(excerpt(&whole));
    // A relative URL begins at the host of the document, which is not known; only its path is used.
    let base = Url::parse("https://document.invalid/").map_err(|_| fault())?;
    let is_relative = whole.starts_with('/') && !whole.starts_with("//");
    let url = if is_relative {
        base.join(&whole)
    } else {
        Url::parse(&whole)
    };
    let url = url.map_err(|_| fault())?;
    let is_plain =
        matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    let path = url.path().trim_end_matches('/');
    if !is_plain
        || path.contains("//")
        || path
            .split('/')
            .any(|step| step.starts_with("%2e") || step.starts_with("%2E"))
    {
        return Err(fault());
    }
    Ok(path.to_owned())
}

/// One place that a document would send requests to, and how many operations it would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Destination {
    /// The URL, with the defaults of its variables; as it is written where they cannot be replaced.
    pub url: String,
    /// Operations that name it first.
    pub operations: usize,
    /// Places that name it, at most 16.
    pub pointers: Vec<String>,
}

/// The places that the operations of a document would go to, most used first.
pub(crate) fn destinations(document: &Document) -> Vec<Destination> {
    let mut found: BTreeMap<String, Destination> = BTreeMap::new();
    for operation in document.operations() {
        let Some(server) = effective(document, &operation).into_iter().next() else {
            continue;
        };
        let url = server
            .resolve(&BTreeMap::new())
            .unwrap_or_else(|_| server.url.clone());
        let one = found.entry(url.clone()).or_insert_with(|| Destination {
            url,
            operations: 0,
            pointers: Vec::new(),
        });
        one.operations += 1;
        let pointer = document.origin(&server.pointer);
        if one.pointers.len() < POINTERS_MAX && !one.pointers.contains(&pointer) {
            one.pointers.push(pointer);
        }
    }
    let mut all: Vec<Destination> = found.into_values().collect();
    all.sort_by(|a, b| b.operations.cmp(&a.operations).then_with(|| a.url.cmp(&b.url)));
    all
}

/// Whether an operation names servers of its own, or its path does.
pub(crate) fn has_own(document: &Document, operation: &OperationRef) -> bool {
    effective(document, operation)
        .first()
        .is_some_and(|server| !server.pointer.starts_with("#/servers") && server.pointer != "#")
}

/// Places that are listed for one destination.
const POINTERS_MAX: usize = 16;

/// The servers of the operation, else of the path item, else of the document; `/` where there are none.
pub(crate) fn effective(document: &Document, operation: &OperationRef) -> Vec<Server> {
    let resolver = document.resolver();
    let places = [
        operation.place.child("servers"),
        operation.path_item.child("servers"),
        Pointer::root().child("servers"),
    ];
    for place in places {
        let servers: Vec<Server> = resolver
            .at(place)
            .and_then(|list| {
                let servers = list.value.as_array()?;
                let read = servers
                    .iter()
                    .enumerate()
                    .take(SERVERS_MAX)
                    .filter_map(|(index, server)| one(server, &list.pointer.item(index)))
                    .collect();
                Some(read)
            })
            .unwrap_or_default();
        if !servers.is_empty() {
            return servers;
        }
    }
    vec![Server {
        url: "/".to_owned(),
        pointer: Pointer::root().to_string(),
        variables: Vec::new(),
        choices: BTreeMap::new(),
    }]
}

fn one(server: &Value, pointer: &Pointer) -> Option<Server> {
    let variables = server
        .get("variables")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .take(SERVERS_MAX)
        .filter_map(|(name, variable)| Some((name.clone(), variable.get("default")?.as_str()?.to_owned())))
        .collect();
    let choices = server
        .get("variables")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .take(SERVERS_MAX)
        .filter_map(|(name, variable)| {
            let values = variable.get("enum")?.as_array()?;
            let values = values
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            Some((name.clone(), values))
        })
        .collect();
    Some(Server {
        url: server.get("url")?.as_str()?.to_owned(),
        pointer: pointer.to_string(),
        variables,
        choices,
    })
}
