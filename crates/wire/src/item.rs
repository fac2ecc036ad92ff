//! A prompt, a resource or a template as a client sees it: the definition that was approved, whole, in the reader's revision.

use std::sync::Arc;

use model::{Object, Value};

use crate::revision::Revision;
use crate::surface::Surface;

/// What stands in a list beside tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// In which list.
    pub surface: Surface,
    /// The definition. The `name` of a prompt is its public name; everything else is what was approved.
    pub whole: Object,
}

/// One page of a list of items.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemPage {
    /// Of what.
    pub surface: Surface,
    /// The items, in a stable order.
    pub items: Vec<Arc<Item>>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
    /// How much of the name of each prompt is left out in front, in bytes; see [`crate::Page::left_out`].
    pub left_out: usize,
}

impl Item {
    /// The definition as an object of the given revision: what the revision does not know is left out (C4).
    pub(crate) fn write(&self, revision: Revision, left_out: usize) -> Object {
        let mut object = Object::new();
        for (key, value) in &self.whole {
            let value = match (key.as_str(), value) {
                ("icons", _) if !revision.has_icons() => continue,
                ("title", _) if !revision.has_titles() => continue,
                ("name", Value::String(name)) if self.surface == Surface::Prompts => {
                    Value::from(name.get(left_out..).unwrap_or(name))
                }
                ("annotations", Value::Object(annotations)) if !revision.has_resource_links() => {
                    let mut older = annotations.clone();
                    older.shift_remove("lastModified");
                    Value::Object(older)
                }
                (_, value) => value.clone(),
            };
            object.insert(key.clone(), value);
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_revision_does_not_know_is_left_out_and_all_else_is_whole() {
        let Value::Object(whole) = json!({
            "name": "far_ask", "title": "Ask", "icons": [], "vendor": { "b": 1, "a": 2 },
            "annotations": { "priority": 1, "lastModified": "2025-01-01T00:00:00Z" },
        }) else {
            panic!()
        };
        let item = |surface| Item {
            surface,
            whole: whole.clone(),
        };
        let newest = Value::Object(item(Surface::Prompts).write(Revision::V2026_07_28, 4));
        assert_eq!(newest["name"], "ask");
        assert_eq!(newest["title"], "Ask");
        assert_eq!(newest["icons"], json!([]));
        let oldest = Value::Object(item(Surface::Resources).write(Revision::V2024_11_05, 4));
        assert_eq!(
            oldest,
            json!({ "name": "far_ask", "vendor": { "b": 1, "a": 2 }, "annotations": { "priority": 1 } }),
            "a resource has its own name everywhere"
        );
    }
}
