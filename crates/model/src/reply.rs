//! What an upstream answered, in our own words, before and after it was checked.

use crate::json::Value;

/// An answer of a tool.
///
/// It is data from outside. Only a `gateway::Released` reply may go to a caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The content blocks, in order.
    pub content: Vec<Content>,
    /// The structured content, where the tool has an output schema.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed. The model reads the content and can act on it.
    pub is_error: bool,
}

/// One content block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
}

impl Reply {
    /// A reply of one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: None,
            is_error: false,
        }
    }

    /// A failure that the model can read and act on (TOOL-08).
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// A structured reply, with its serialisation as the text block that older clients read (TOOL-06).
    #[must_use]
    pub fn structured(value: Value) -> Self {
        Self {
            content: vec![Content::Text(value.to_string())],
            structured: Some(value),
            is_error: false,
        }
    }
}
