//! A tool as a client sees it, and what each revision knows of it (C4 of `docs/protocol.md`).

use std::sync::Arc;

use model::{Object, ToolName, Value};

use crate::revision::Revision;

/// The definition of a tool, as it was reviewed.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The public name.
    pub name: ToolName,
    /// What people read.
    pub title: Option<String>,
    /// What the model reads.
    pub description: String,
    /// The schema of the arguments; its root has `type: object` (TOOL-05).
    pub input_schema: Arc<Value>,
    /// The schema of the structured result, if there is one (TOOL-06).
    pub output_schema: Option<Arc<Value>>,
    /// What the reviewer declared of its effects. Clients treat hints as hints (TOOL-09).
    pub hints: Hints,
    /// What the definition of an MCP server holds beside these: icons, `_meta`, members that no revision has.
    pub others: Object,
}

/// The behaviour hints of a tool, always all four, so that no client falls back on a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy.
    pub destructive: bool,
    /// Twice is the same as once.
    pub idempotent: bool,
    /// It reaches systems outside.
    pub open_world: bool,
}

/// One page of `tools/list`.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The tools, in a stable order (TOOL-02).
    pub tools: Vec<Arc<Definition>>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
    /// How much of each name is left out in front, in bytes: on the endpoint of one upstream, its name and what stands
    /// behind it.
    pub left_out: usize,
}

impl Definition {
    /// The definition as an object of the given revision: what the revision does not know is left out.
    #[must_use]
    pub fn write(&self, revision: Revision) -> Object {
        self.write_as(revision, self.name.as_str())
    }

    /// The same by another name.
    pub(crate) fn write_as(&self, revision: Revision, name: &str) -> Object {
        let mut object = Object::new();
        object.insert("name".to_owned(), Value::from(name));
        if knows_titles(revision)
            && let Some(title) = &self.title
        {
            object.insert("title".to_owned(), Value::from(title.as_str()));
        }
        if !self.description.is_empty() {
            object.insert("description".to_owned(), Value::from(self.description.as_str()));
        }
        object.insert("inputSchema".to_owned(), Value::clone(&self.input_schema));
        if let Some(schema) = &self.output_schema
            && knows_output_schema(revision, schema)
        {
            object.insert("outputSchema".to_owned(), Value::clone(schema));
        }
        if knows_hints(revision) {
            object.insert(
                "annotations".to_owned(),
                Value::Object(self.write_hints(revision)),
            );
        }
        for (key, value) in &self.others {
            if key != "icons" || revision.has_icons() {
                object.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        object
    }

    fn write_hints(&self, revision: Revision) -> Object {
        let mut hints = Object::new();
        if !knows_titles(revision)
            && let Some(title) = &self.title
        {
            hints.insert("title".to_owned(), Value::from(title.as_str()));
        }
        hints.insert("readOnlyHint".to_owned(), Value::from(self.hints.read_only));
        hints.insert("destructiveHint".to_owned(), Value::from(self.hints.destructive));
        hints.insert("idempotentHint".to_owned(), Value::from(self.hints.idempotent));
        hints.insert("openWorldHint".to_owned(), Value::from(self.hints.open_world));
        hints
    }
}

const fn knows_hints(revision: Revision) -> bool {
    match revision {
        Revision::V2024_11_05 => false,
        Revision::V2025_03_26 | Revision::V2025_06_18 | Revision::V2025_11_25 | Revision::V2026_07_28 => true,
    }
}

const fn knows_titles(revision: Revision) -> bool {
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => false,
        Revision::V2025_06_18 | Revision::V2025_11_25 | Revision::V2026_07_28 => true,
    }
}

/// Any schema is an output schema in the newest revision, only an object's in those before (TOOL-07).
fn knows_output_schema(revision: Revision, schema: &Value) -> bool {
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => false,
        Revision::V2025_06_18 | Revision::V2025_11_25 => {
            schema.get("type").and_then(Value::as_str) == Some("object")
        }
        Revision::V2026_07_28 => true,
    }
}

/// Whether a result may carry this structured content (TOOL-07, D22).
pub(crate) fn knows_structured(revision: Revision, value: &Value) -> bool {
    match revision {
        Revision::V2024_11_05 | Revision::V2025_03_26 => false,
        Revision::V2025_06_18 | Revision::V2025_11_25 => value.is_object(),
        Revision::V2026_07_28 => true,
    }
}
