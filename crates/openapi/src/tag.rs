//! Tags: how a document groups its operations, with the parents that version 3.2 gives them. For reports.
//!
//! Source: OpenAPI 3.2.0 section 4.22.

use model::Value;
use serde::Serialize;

use crate::document::Document;
use crate::operation::OperationRef;

/// Tags that are looked at.
const TAGS_MAX: usize = 4_096;

/// A tag as the document declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// A short title.
    pub summary: Option<String>,
    /// The tag that this one is a part of. It need not be declared, and could lead back here.
    pub parent: Option<String>,
    /// What it is for, as `nav`.
    pub kind: Option<String>,
}

/// The declared tags, in their order.
pub(crate) fn declared(document: &Document) -> Vec<Tag> {
    document
        .raw()
        .get("tags")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(TAGS_MAX)
        .filter_map(|tag| {
            let text = |key: &str| tag.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(Tag {
                name: text("name")?,
                summary: text("summary"),
                parent: text("parent"),
                kind: text("kind"),
            })
        })
        .collect()
}

/// The names of an operation's tags, each followed by those that it is a part of; each once.
pub(crate) fn of(document: &Document, operation: &OperationRef) -> Vec<String> {
    let declared = declared(document);
    let mut names: Vec<String> = Vec::new();
    let own = document
        .resolver()
        .at(operation.place.clone())
        .and_then(|operation| operation.get("tags"));
    let own = own.as_ref().and_then(|tags| tags.value.as_array());
    for name in own.into_iter().flatten().take(TAGS_MAX).filter_map(Value::as_str) {
        let mut next = Some(name.to_owned());
        while let Some(name) = next.take().filter(|name| !names.contains(name)) {
            next = declared
                .iter()
                .find(|tag| tag.name == name)
                .and_then(|tag| tag.parent.clone());
            names.push(name);
        }
    }
    names
}
