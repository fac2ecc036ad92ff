//! Tests of the wire from outside: what a client sends and what it gets back, by the rules of the specification.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod answers;
mod lines;
mod posts;
mod schema;

use std::collections::HashMap;

use wire::header::{Field, Fields};

/// Header fields for a test.
#[derive(Debug, Default, Clone)]
pub(crate) struct Headers(HashMap<String, Vec<String>>);

impl Headers {
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let mut map: HashMap<String, Vec<String>> = HashMap::new();
        for (name, value) in pairs {
            map.entry(name.to_lowercase())
                .or_default()
                .push((*value).to_owned());
        }
        Self(map)
    }
}

impl Fields for Headers {
    fn field(&self, name: &str) -> Field<'_> {
        match self.0.get(name).map(Vec::as_slice) {
            None | Some([]) => Field::Absent,
            Some([one]) => Field::One(one.as_bytes()),
            Some(_) => Field::Many,
        }
    }
}

/// A complete modern `_meta`, as in part D of the protocol notes.
pub(crate) const M: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
