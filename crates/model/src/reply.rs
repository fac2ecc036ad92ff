//! What an upstream answered, in our own words, before and after it was checked.

use crate::json::{Object, Value};

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
    /// What an MCP server said beside that and no revision knows, whole: its `_meta` without what belongs to one hop, and
    /// members of other names. Empty for what we made ourselves.
    pub beside: Beside,
}

/// What an MCP server said beside its content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// The `_meta` of the result.
    pub meta: Object,
    /// Members of the result that no revision has.
    pub others: Object,
}

/// One content block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Bytes that are no text.
    Media(Media),
    /// A block of an MCP server, whole, with all members that it came with. It has a `type`, which is a text.
    Carried(Object),
}

/// Bytes that are no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What a client can do with it.
    pub kind: MediaKind,
    /// The media type, in lower case and without parameters.
    pub media_type: String,
    /// The bytes as base64 (RFC 4648 section 4), with padding.
    pub data: String,
    /// How many bytes there are.
    pub bytes: usize,
    /// A name for it that no other result has, as a URI.
    pub uri: String,
}

/// What a client can do with media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// Show it.
    Image,
    /// Play it.
    Audio,
    /// Keep it.
    Other,
}

impl Reply {
    /// A reply of one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: None,
            is_error: false,
            beside: Beside::default(),
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
        let text = value.to_string();
        Self {
            structured: Some(value),
            ..Self::text(text)
        }
    }
}
