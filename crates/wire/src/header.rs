//! The header fields of MCP over HTTP: their names, and the escape form for values that a header cannot hold (HM-15).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Which version the body is in.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Which method the body calls (HM-03).
pub const METHOD: &str = "mcp-method";
/// Which tool the body names (HM-03).
pub const NAME: &str = "mcp-name";
/// How the headers begin that repeat an argument (HM-14).
pub const PARAM: &str = "mcp-param-";
/// The session of the legacy era (HL-12).
pub const SESSION: &str = "mcp-session-id";
/// Where a client wants to resume a stream (HL-11).
pub const LAST_EVENT: &str = "last-event-id";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// The header fields of a request, by lower-case name.
pub trait Fields {
    /// The field with this name.
    fn field(&self, name: &str) -> Field<'_>;
}

/// One header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    /// Not sent.
    Absent,
    /// Sent once. Whitespace around the value is not part of it (HM-04).
    One(&'a [u8]),
    /// Sent more than once: which one would count?
    Many,
}

/// Reads the value of `Mcp-Name` or `Mcp-Param-*`, undoing the escape form.
///
/// `None`: bytes that are no header text, or an escape form with bad base64 or bad UTF-8 inside (HM-16). A value that
/// has not both markers, in lower case, is literal.
#[must_use]
pub fn decode(value: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if !text.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E)) {
        return None;
    }
    match text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        None => Some(Cow::Borrowed(text)),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?)
            .ok()
            .map(Cow::Owned),
    }
}

/// Writes a value so that a header can hold it and [`decode`] gives it back.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    let fits = value.bytes().all(|byte| matches!(byte, 0x20..=0x7E));
    let trimmed = value.trim_matches(' ').len() == value.len();
    let looks_escaped = value.starts_with(OPEN) && value.ends_with(CLOSE);
    let plain = fits && trimmed && !looks_escaped;
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hm_15_values_that_a_header_cannot_hold_are_escaped() {
        for (value, expected) in [
            ("forecast", "forecast"),
            ("two words", "two words"),
            ("", ""),
            ("wetter_köln", "=?base64?d2V0dGVyX2vDtmxu?="),
            ("  north", "=?base64?ICBub3J0aA==?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("=?base64?x", "=?base64?x"),
            ("a\nb", "=?base64?YQpi?="),
        ] {
            assert_eq!(encode(value), expected, "{value:?}");
            assert_eq!(decode(expected.as_bytes()).unwrap(), value, "{value:?}");
        }
    }

    #[test]
    fn hm_16_a_bad_escape_is_refused_and_half_an_escape_is_literal() {
        for bad in [
            "=?base64?%%%?=",
            "=?base64?YQ?=",
            "=?base64?/w==?=",
            "=?base64?YQ ==?=",
        ] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
        for literal in ["=?BASE64?YQ==?=", "=?base64?YQ==", "YQ==?=", "=?base64?="] {
            assert_eq!(decode(literal.as_bytes()).as_deref(), Some(literal));
        }
        assert_eq!(decode(b"  forecast\t").as_deref(), Some("forecast"));
        assert_eq!(decode("köln".as_bytes()), None);
        assert_eq!(decode(b"a\x00b"), None);
    }

    proptest! {
        #[test]
        fn hm_15_every_text_survives_the_header(text in ".{0,40}") {
            let encoded = encode(&text);
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, 0x20..=0x7E)));
            prop_assert_eq!(&decode(encoded.as_bytes()).unwrap(), &text);
        }

        #[test]
        fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&bytes);
        }
    }
}
