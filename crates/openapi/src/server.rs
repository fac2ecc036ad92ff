//! Servers that the document names for an operation: for reports, so that a reviewer sees where the document would go.
//!
//! Requests never go there by the document's word: the destination is the operator's.
//! Source: OpenAPI 3.1.1 section 4.8.5.

use model::Value;
use serde::Serialize;

use crate::document::Document;
use crate::operation::OperationRef;
use crate::pointer::Pointer;

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
}

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
    Some(Server {
        url: server.get("url")?.as_str()?.to_owned(),
        pointer: pointer.to_string(),
        variables,
    })
}
