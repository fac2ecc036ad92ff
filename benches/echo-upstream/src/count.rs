//! What arrived, by kind: the witness for claims about how many requests a gate makes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `POST /echo` and its numbered siblings.
    Echo,
    /// `GET /items/{id}`.
    Item,
    /// `GET /openapi.json`.
    Document,
    /// The MCP method `tools/call`.
    ToolCall,
    /// The MCP method `tools/list`.
    ToolList,
    /// The MCP methods `initialize` and `server/discover`.
    Opening,
    /// Anything else.
    Other,
}

/// The counters.
#[derive(Default)]
pub(crate) struct Counts {
    echo: AtomicU64,
    item: AtomicU64,
    document: AtomicU64,
    tool_call: AtomicU64,
    tool_list: AtomicU64,
    opening: AtomicU64,
    other: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, kind: Kind) {
        let counter = match kind {
            Kind::Echo => &self.echo,
            Kind::Item => &self.item,
            Kind::Document => &self.document,
            Kind::ToolCall => &self.tool_call,
            Kind::ToolList => &self.tool_list,
            Kind::Opening => &self.opening,
            Kind::Other => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn table(&self) -> Value {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "echo": get(&self.echo),
            "item": get(&self.item),
            "document": get(&self.document),
            "tool_call": get(&self.tool_call),
            "tool_list": get(&self.tool_list),
            "opening": get(&self.opening),
            "other": get(&self.other),
        })
    }
}
