//! What an upstream answered: bytes from outside, with what is needed to check them.

use std::time::Duration;

use bytes::Bytes;

/// An answer, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body, in lower case and without parameters.
    pub media_type: Option<String>,
    /// The seconds of `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The values of `Link`, one behind the other.
    pub link: Option<String>,
    /// The body; at most `upstream_body_bytes_max` bytes.
    pub body: Bytes,
}

impl Answer {
    /// Whether the status says that it worked.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Whether the body says that it is JSON (RFC 6839 for `+json`).
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.media_type
            .as_deref()
            .is_some_and(|media| media == "application/json" || media.ends_with("+json"))
    }
}
