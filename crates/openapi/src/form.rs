//! Bodies that are made of fields: `application/x-www-form-urlencoded` and `multipart/form-data`.
//!
//! A field is written by what its `encoding` says, else by the kind of its value: a single value as text, an object as
//! JSON, a list item by item. Sources: OpenAPI 3.1.1 section 4.8.15, RFC 7578, RFC 2046 section 5.1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::{Digest, Value};
use serde_json::json;

use crate::serial::{Serial, SerialFault, text};

/// The longest file name, in bytes.
const FILENAME_BYTES_MAX: usize = 255;

/// How one field is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldForm {
    /// By the kind of its value.
    Auto,
    /// By a style.
    Styled(Serial),
    /// As JSON.
    Json { content_type: String },
    /// As text of a media type, in a multipart body.
    Typed { content_type: String },
    /// A part for each member of an object, named `field[member]`, in a multipart body.
    Deep,
    /// As a file, or a list of files. `accepts`: media types and ranges; empty where the document names none.
    File { accepts: Vec<String> },
}

/// Why a field cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFault {
    Serial(SerialFault),
    Null,
    Base64,
    FileName,
    MediaType,
}

impl From<SerialFault> for FieldFault {
    fn from(fault: SerialFault) -> Self {
        Self::Serial(fault)
    }
}

/// Strict base64: padded, nothing left over, no line ends.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The schema of a file argument.
pub(crate) fn file_schema(accepts: &[String], is_list: bool, description: Option<&Value>) -> Value {
    let mut media_type = json!({
        "type": "string",
        "maxLength": 128,
        "pattern": "^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$",
        "examples": ["application/octet-stream"],
    });
    let is_closed = !accepts.is_empty() && accepts.iter().all(|accepted| !accepted.contains('*'));
    if is_closed && let Some(object) = media_type.as_object_mut() {
        object.insert(
            "enum".to_owned(),
            accepts.iter().map(|one| Value::from(one.as_str())).collect(),
        );
    }
    let mut file = json!({
        "type": "object",
        "properties": {
            "base64": {"type": "string", "contentEncoding": "base64", "description": "The bytes of the file in base64, with padding."},
            "filename": {
                "type": "string",
                "minLength": 1,
                "maxLength": FILENAME_BYTES_MAX,
                "pattern": r#"^[^/\\"\x00-\x1f\x7f]+$"#,
                "examples": ["report.pdf"],
            },
            "media_type": media_type,
        },
        "required": ["base64", "filename"],
        "additionalProperties": false,
    });
    if is_list {
        file = json!({"type": "array", "minItems": 1, "items": file});
    }
    if let (Some(object), Some(description)) = (file.as_object_mut(), description) {
        object.insert("description".to_owned(), description.clone());
    }
    file
}

/// One field of a urlencoded body.
pub(crate) fn urlencoded(
    form: &FieldForm,
    name: &str,
    value: &Value,
    taken: &dyn Fn(&str) -> bool,
    out: &mut Vec<String>,
) -> Result<(), FieldFault> {
    use crate::template::encode;
    if value.is_null() && !matches!(form, FieldForm::Json { .. }) {
        return Err(FieldFault::Null);
    }
    let mut push = |text: &str| out.push(format!("{}={}", encode(name), encode(text)));
    match (form, value) {
        (FieldForm::Styled(serial), value) => serial.query(name, value, taken, out)?,
        (FieldForm::Json { .. }, value) => push(&value.to_string()),
        (_, Value::Array(items)) if items.is_empty() => return Err(SerialFault::Empty.into()),
        (_, Value::Array(items)) => items.iter().for_each(|item| push(&item_text(item))),
        (_, value) => push(&item_text(value)),
    }
    Ok(())
}

/// A single value as text, anything else as JSON.
fn item_text(value: &Value) -> String {
    text(value).unwrap_or_else(|_| value.to_string())
}

/// One part of a multipart body.
pub(crate) struct Part {
    name: String,
    filename: Option<String>,
    content_type: Option<String>,
    bytes: Vec<u8>,
}

/// The parts of one field. `name` was checked when the plan was made: it has no quote and no line end.
pub(crate) fn parts(
    form: &FieldForm,
    name: &str,
    value: &Value,
    out: &mut Vec<Part>,
) -> Result<(), FieldFault> {
    let part = |content_type: Option<&str>, bytes: Vec<u8>| Part {
        name: name.to_owned(),
        filename: None,
        content_type: content_type.map(str::to_owned),
        bytes,
    };
    match (form, value) {
        (FieldForm::Json { content_type }, value) => {
            out.push(part(Some(content_type), value.to_string().into_bytes()));
        }
        (_, Value::Null) => return Err(FieldFault::Null),
        (_, Value::Array(items)) if items.is_empty() => return Err(SerialFault::Empty.into()),
        (form, Value::Array(items)) => {
            for item in items {
                // A list inside a list has no parts of its own.
                if item.is_array() {
                    out.push(part(Some("application/json"), item.to_string().into_bytes()));
                } else {
                    parts(form, name, item, out)?;
                }
            }
        }
        (FieldForm::Deep, Value::Object(members)) => {
            if members.is_empty() {
                return Err(SerialFault::Empty.into());
            }
            for (key, member) in members {
                let name = format!("{name}[{key}]");
                if !is_part_name(&name) {
                    return Err(SerialFault::Delimiter.into());
                }
                out.push(Part {
                    name,
                    ..part(None, text(member)?.into_bytes())
                });
            }
        }
        (FieldForm::File { accepts }, value) => out.push(file(accepts, name, value)?),
        (FieldForm::Typed { content_type }, value) => {
            out.push(part(Some(content_type), text(value)?.into_bytes()));
        }
        (_, Value::Object(_)) => out.push(part(Some("application/json"), value.to_string().into_bytes())),
        (_, single) => out.push(part(None, text(single)?.into_bytes())),
    }
    Ok(())
}

fn file(accepts: &[String], name: &str, value: &Value) -> Result<Part, FieldFault> {
    let member = |key: &str| value.get(key).and_then(Value::as_str);
    let bytes = member("base64").and_then(decode).ok_or(FieldFault::Base64)?;
    let filename = member("filename").ok_or(FieldFault::FileName)?;
    let is_name = !filename.is_empty()
        && filename.len() <= FILENAME_BYTES_MAX
        && !filename
            .chars()
            .any(|c| c.is_control() || matches!(c, '"' | '\\' | '/'))
        && !matches!(filename, "." | "..");
    if !is_name {
        return Err(FieldFault::FileName);
    }
    let media_type = match (member("media_type"), accepts) {
        (Some(given), _) => given,
        (None, [only]) if !only.contains('*') => only,
        (None, []) => "application/octet-stream",
        (None, _) => return Err(FieldFault::MediaType),
    };
    let essence = media_type.to_ascii_lowercase();
    let is_known = crate::media::is_media_type(media_type)
        && (accepts.is_empty() || accepts.iter().any(|range| covers(range, &essence)));
    if !is_known {
        return Err(FieldFault::MediaType);
    }
    Ok(Part {
        name: name.to_owned(),
        filename: Some(filename.to_owned()),
        content_type: Some(media_type.to_owned()),
        bytes,
    })
}

fn covers(range: &str, essence: &str) -> bool {
    let range = range.to_ascii_lowercase();
    match range.strip_suffix('*') {
        Some("*/") => true,
        Some(kind) => essence.starts_with(kind),
        None => range == essence,
    }
}

/// The body and its boundary. The boundary is made from the content, so that one call always makes the same request,
/// and is looked for in it, so that no content ends a part.
pub(crate) fn multipart(parts: &[Part]) -> (String, Vec<u8>) {
    let mut turn = 0_u32;
    loop {
        let turns = turn.to_string();
        let mut pieces: Vec<&[u8]> = vec![turns.as_bytes()];
        pieces.extend(parts.iter().map(|part| part.bytes.as_slice()));
        let digest = Digest::of("openapi-multipart-v1", &pieces).to_string();
        let hex: String = digest
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .rev()
            .take(32)
            .collect();
        let boundary = format!("tollhouse-{hex}");
        let clashes = parts.iter().any(|part| {
            part.bytes
                .windows(boundary.len())
                .any(|window| window == boundary.as_bytes())
        });
        if !clashes {
            return (boundary.clone(), written(parts, &boundary));
        }
        turn = turn.wrapping_add(1);
    }
}

fn written(parts: &[Part], boundary: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"",
            part.name
        );
        if let Some(filename) = &part.filename {
            head.push_str(&format!("; filename=\"{filename}\""));
        }
        head.push_str("\r\n");
        if let Some(content_type) = &part.content_type {
            head.push_str(&format!("content-type: {content_type}\r\n"));
        }
        head.push_str("\r\n");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&part.bytes);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    out
}

/// Whether a name can stand in the header of a part.
pub(crate) fn is_part_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_control() || matches!(c, '"' | '\\'))
}
