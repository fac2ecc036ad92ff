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
    /// Anything else.
    Media(Media),
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
