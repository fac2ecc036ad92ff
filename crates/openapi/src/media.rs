//! Media types of bodies and answers: which of those that a document declares is JSON, and what else can be sent.

use model::{Object, Value};

use crate::parameter::is_token;

/// The longest media type that is sent, in bytes.
const BYTES_MAX: usize = 256;

/// The JSON media type that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonMedia<'d> {
    /// The key in the document.
    pub(crate) key: &'d str,
    /// What goes into a header: as declared, or `application/json` for a range.
    pub(crate) content_type: String,
    /// The media type object.
    pub(crate) value: &'d Value,
    /// Whether the document declares others too, or a range.
    pub(crate) is_choice: bool,
}

/// The best JSON media type: `application/json`, then one with parameters, then `+json`, then a range that covers
/// JSON. Among equals the first in the alphabet, so that the order in the document does not matter.
pub(crate) fn json(content: &Object) -> Option<JsonMedia<'_>> {
    let (_, key, value) = content
        .iter()
        .filter_map(|(key, value)| Some((rank(key)?, key.as_str(), value)))
        .min_by_key(|(rank, key, _)| (*rank, *key))?;
    let is_range = key.contains('*');
    let content_type = if is_range { "application/json" } else { key.trim() };
    Some(JsonMedia {
        key,
        content_type: content_type.to_owned(),
        value,
        is_choice: is_range || content.len() > 1,
    })
}

/// What kind of body a media type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Json,
    Urlencoded,
    Multipart,
    /// Text that is sent as it is.
    Text,
    /// Bytes, which an argument holds as base64.
    Bytes,
}

/// The media type of a body that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyMedia<'d> {
    pub(crate) kind: Kind,
    pub(crate) key: &'d str,
    /// What goes into `content-type`. A multipart body gets its boundary when it is built.
    pub(crate) content_type: String,
    pub(crate) value: &'d Value,
    pub(crate) is_choice: bool,
}

/// The best media type of a request body: JSON, then forms, text, bytes. Among equals the first in the alphabet.
pub(crate) fn body(content: &Object) -> Option<BodyMedia<'_>> {
    if let Some(media) = json(content) {
        return Some(BodyMedia {
            kind: Kind::Json,
            key: media.key,
            content_type: media.content_type,
            value: media.value,
            is_choice: media.is_choice,
        });
    }
    let (kind, key, value) = content
        .iter()
        .filter_map(|(key, value)| Some((other_kind(key)?, key.as_str(), value)))
        .min_by_key(|(kind, key, _)| (*kind, *key))?;
    let is_range = key.contains('*');
    Some(BodyMedia {
        kind,
        key,
        content_type: if is_range {
            "text/plain".to_owned()
        } else {
            key.trim().to_owned()
        },
        value,
        is_choice: is_range || content.len() > 1,
    })
}

/// The media type that the operator chose, of those that the document declares. `None` where it declares no such one,
/// or none that can be sent.
pub(crate) fn chosen<'d>(content: &'d Object, choice: &str) -> Option<BodyMedia<'d>> {
    let (key, value) = content
        .iter()
        .find(|(key, _)| key.trim().eq_ignore_ascii_case(choice.trim()))?;
    let kind = if is_json(key) {
        Kind::Json
    } else {
        other_kind(key)?
    };
    (!key.contains('*')).then(|| BodyMedia {
        kind,
        key,
        content_type: key.trim().to_owned(),
        value,
        is_choice: false,
    })
}

/// A media type as answers are compared with it: in lower case, without parameters. Also a range, as `image/*`.
pub(crate) fn essence(media_type: &str) -> Option<String> {
    let essence = media_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let (kind, subtype) = essence.split_once('/')?;
    let is_plain = essence.len() <= BYTES_MAX && is_token(kind) && is_token(subtype);
    is_plain.then_some(essence)
}

/// Types beside `text/…` and `…+xml` whose bodies are text.
const TEXTS: [&str; 12] = [
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/graphql",
    "application/javascript",
    "application/jsonl",
    "application/x-ndjson",
    "application/ndjson",
    "application/sql",
    "application/toml",
    "application/x-jsonlines",
    "application/jwt",
];

fn other_kind(media_type: &str) -> Option<Kind> {
    if media_type.len() > BYTES_MAX {
        return None;
    }
    let (essence, parameters) = media_type.split_once(';').unwrap_or((media_type, ""));
    let essence = essence.trim().to_ascii_lowercase();
    if !parameters.is_empty() && !parameters.split(';').all(is_harmless) {
        return None;
    }
    let (kind, subtype) = essence.split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    match essence.as_str() {
        "application/x-www-form-urlencoded" => Some(Kind::Urlencoded),
        // A boundary of the document's is none of ours.
        "multipart/form-data" => parameters.is_empty().then_some(Kind::Multipart),
        "text/*" => Some(Kind::Text),
        _ if essence.contains('*') || kind == "multipart" || kind == "message" => None,
        // Other JSON did not fit above: a charset, or a sequence.
        _ if subtype == "json" || subtype.ends_with("+json") || subtype == "json-seq" => None,
        other if kind == "text" || subtype.ends_with("+xml") || TEXTS.contains(&other) => Some(Kind::Text),
        _ => Some(Kind::Bytes),
    }
}

/// Whether a text is one media type without parameters, as a header can hold it.
pub(crate) fn is_media_type(text: &str) -> bool {
    text.len() <= BYTES_MAX
        && !text.contains('*')
        && text
            .split_once('/')
            .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Whether a media type is JSON.
pub(crate) fn is_json(media_type: &str) -> bool {
    rank(media_type).is_some_and(|rank| rank < 3)
}

fn rank(media_type: &str) -> Option<u8> {
    if media_type.len() > BYTES_MAX {
        return None;
    }
    let (essence, parameters) = media_type
        .split_once(';')
        .map_or((media_type, None), |(essence, parameters)| {
            (essence, Some(parameters))
        });
    let essence = essence.trim().to_ascii_lowercase();
    if let Some(parameters) = parameters
        && !parameters.split(';').all(is_harmless)
    {
        return None;
    }
    if essence == "*/*" || essence == "application/*" {
        return Some(3);
    }
    let (kind, subtype) = essence.split_once('/')?;
    if !is_token(kind) || !is_token(subtype) || essence.contains('*') {
        return None;
    }
    match (essence.as_str(), parameters) {
        ("application/json", None) => Some(0),
        ("application/json", Some(_)) => Some(1),
        _ if subtype.ends_with("+json") => Some(2),
        _ => None,
    }
}

/// A parameter that can be sent as it is. JSON is UTF-8, so another charset is not.
fn is_harmless(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let value = value.trim().trim_matches('"');
    let is_plain = value
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'));
    is_token(name.trim())
        && is_plain
        && (!name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(content: &Value) -> Option<String> {
        json(content.as_object().unwrap()).map(|media| media.content_type)
    }

    #[test]
    fn json_is_chosen_before_its_relatives_and_nothing_else_is() {
        for (content, expected) in [
            (
                json!({"text/plain": {}, "application/json": {}}),
                Some("application/json"),
            ),
            (
                json!({"application/vnd.a+json": {}, "application/json; charset=utf-8": {}}),
                Some("application/json; charset=utf-8"),
            ),
            (
                json!({"application/vnd.b+json": {}, "application/vnd.a+json": {}}),
                Some("application/vnd.a+json"),
            ),
            (
                json!({"Application/Merge-Patch+JSON": {}}),
                Some("Application/Merge-Patch+JSON"),
            ),
            (json!({"*/*": {}}), Some("application/json")),
            (json!({"application/xml": {}, "text/csv": {}}), None),
            (json!({"application/x-ndjson": {}}), None),
            (json!({"application/json; charset=latin1": {}}), None),
            (json!({"application/json\r\nX-Evil: 1": {}}), None),
            (json!({"application/json; x=a\r\nX-Evil: 1": {}}), None),
            (json!({"text/*": {}}), None),
            (json!({"json": {}}), None),
            (json!({}), None),
        ] {
            assert_eq!(chosen(&content).as_deref(), expected, "{content}");
        }
    }
}
