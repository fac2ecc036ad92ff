//! Inquiries for readers of older revisions: what they know by another form gets that form, and what they do not know is
//! not asked (C2, C4).

use model::{Object, Value};
use serde_json::json;

use crate::inquiry::InquiryKind;
use crate::revision::Revision;

/// The parameters as a client of this revision reads them.
///
/// # Errors
/// What it cannot be asked, in words.
pub(super) fn params(kind: InquiryKind, params: &Object, revision: Revision) -> Result<Object, String> {
    let mut params = params.clone();
    match kind {
        InquiryKind::Form if !revision.has_elicitation() => {
            return Err(format!("a client of revision {revision} knows no forms"));
        }
        InquiryKind::Url if !revision.has_modes_of_elicitation() => {
            return Err(format!("a client of revision {revision} knows no pages to open"));
        }
        InquiryKind::Form if !revision.has_modes_of_elicitation() => {
            let fields = params
                .get_mut("requestedSchema")
                .and_then(|schema| schema.get_mut("properties"))
                .and_then(Value::as_object_mut);
            for (_, field) in fields.into_iter().flatten() {
                plain_field(field, revision)?;
            }
        }
        InquiryKind::Sampling => {
            let messages = params.get_mut("messages").and_then(Value::as_array_mut);
            for message in messages.into_iter().flatten().filter_map(Value::as_object_mut) {
                collapse(message, revision)?;
            }
        }
        InquiryKind::Form | InquiryKind::Url | InquiryKind::Roots => {}
    }
    Ok(params)
}

/// A field as 2025-06-18 knows it: titled choices in `enumNames`, no defaults but those of truth values, no array.
fn plain_field(field: &mut Value, revision: Revision) -> Result<(), String> {
    let Some(field) = field.as_object_mut() else {
        return Ok(());
    };
    match field.get("type").and_then(Value::as_str) {
        Some("array") => {
            return Err(format!(
                "a client of revision {revision} cannot be asked for several choices"
            ));
        }
        Some("boolean") => {}
        Some(_) | None => {
            field.shift_remove("default");
        }
    }
    if let Some(Value::Array(named)) = field.shift_remove("oneOf") {
        let of = |key: &str| -> Vec<Value> {
            named
                .iter()
                .filter_map(|choice| choice.get(key).or_else(|| choice.get("const")).cloned())
                .collect()
        };
        let (values, names) = (of("const"), of("title"));
        field.insert("enum".to_owned(), json!(values));
        field.insert("enumNames".to_owned(), json!(names));
    }
    Ok(())
}

/// Makes one block of `content` where the revision knows no arrays (SAMP-04).
pub(super) fn collapse(message: &mut Object, revision: Revision) -> Result<(), String> {
    if !revision.has_modes_of_elicitation() {
        if let Some(Value::Array(blocks)) = message.get_mut("content") {
            let (Some(only), true) = (blocks.pop(), blocks.is_empty()) else {
                return Err(format!(
                    "revision {revision} knows one block in a message of sampling, and there are others"
                ));
            };
            message.insert("content".to_owned(), only);
        }
        if let Some(block) = message.get_mut("content").and_then(Value::as_object_mut) {
            block.shift_remove("_meta");
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_known = match kind {
                "text" | "image" => true,
                "audio" => revision.has_audio(),
                _ => false,
            };
            if !is_known {
                return Err(format!("revision {revision} knows no such block in sampling"));
            }
        }
    }
    Ok(())
}

/// Whether tools are in it, offered or used (SAMP-02).
pub(super) fn has_tools(params: &Object) -> bool {
    let is_of_a_tool = |block: &Value| {
        let kind = block.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind == "tool_use" || kind == "tool_result")
    };
    let messages = params.get("messages").and_then(Value::as_array);
    params.contains_key("tools")
        || params.contains_key("toolChoice")
        || messages
            .into_iter()
            .flatten()
            .filter_map(|message| message.get("content"))
            .any(|content| match content {
                Value::Array(blocks) => blocks.iter().any(is_of_a_tool),
                block => is_of_a_tool(block),
            })
}
