//! The request body of an operation: JSON, as fields beside the parameters where it is a plain object, else as one
//! argument. Source: OpenAPI 3.1.1 section 4.8.13.

use model::{Object, Value};

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::document::Family;
use crate::media;
use crate::operation::Method;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::schema::{COMPOSITION, settle};
use crate::shape::{Work, is_flagged};
use crate::text::excerpt;

/// Fields that are laid beside the parameters; a body with more is one argument.
const FIELDS_MAX: usize = 256;

/// A body that a tool can send.
#[derive(Debug)]
pub(crate) struct Body<'d> {
    pub(crate) content_type: String,
    /// Whether a request without it is wrong.
    pub(crate) required: bool,
    pub(crate) form: Form<'d>,
}

/// How the body appears among the arguments.
#[derive(Debug)]
pub(crate) enum Form<'d> {
    /// Each field is an argument.
    Fields(Vec<Field<'d>>),
    /// The whole body is one argument. Without a schema it can be anything.
    Whole {
        /// Its schema.
        schema: Option<Located<'d>>,
        /// What describes it where there is no schema.
        pointer: Pointer,
    },
}

/// A field of a body that is an object.
#[derive(Debug)]
pub(crate) struct Field<'d> {
    pub(crate) name: &'d str,
    pub(crate) schema: Located<'d>,
    /// Whether a body without it is wrong.
    pub(crate) required: bool,
}

/// Reads the body. `None` where there is none, it has no effect, or a blocker was found.
pub(crate) fn read<'d>(
    resolver: Resolver<'d>,
    family: Family,
    work: &mut Work,
    operation: &Located<'d>,
    method: Method,
    findings: &mut Findings,
) -> Option<Body<'d>> {
    let start = operation.get("requestBody")?;
    let found = match resolver.follow(start.clone()) {
        Ok(found) => found,
        Err(fault) => {
            findings.block(fault.blocker(&start.pointer));
            return None;
        }
    };
    let required = found.value.get("required") == Some(&Value::Bool(true));
    if !has_body(&found, method, required, findings) {
        return None;
    }
    let content = found.get("content");
    let Some(content) = content
        .as_ref()
        .and_then(|content| Some((content, content.object()?)))
    else {
        findings.block(Blocker::new(
            BlockerCause::BodyMalformed,
            &found.pointer,
            "the request body has no `content`",
            "describe it by a media type",
        ));
        return None;
    };
    let (place, content) = content;
    let Some(media) = media::json(content) else {
        let declared: Vec<String> = content
            .keys()
            .take(4)
            .map(|key| format!("`{}`", excerpt(key)))
            .collect();
        findings.block(Blocker::new(
            BlockerCause::BodyMediaType,
            &place.pointer,
            format!("no media type of the body is JSON: {}", declared.join(", ")),
            "let the API take `application/json`",
        ));
        return None;
    };
    let place = place.pointer.child(media.key);
    if media.is_choice {
        findings.note(
            NoteKind::BodyMediaTypeChosen,
            &place,
            format!("the body is sent as `{}`", media.content_type),
        );
    }
    let schema = media.value.get("schema").map(|value| Located {
        pointer: place.child("schema"),
        value,
    });
    Some(Body {
        content_type: media.content_type,
        required,
        form: form(resolver, family, work, schema, place),
    })
}

/// GET and HEAD have no body that means something. DELETE has none by RFC 9110 either, but APIs that declare one read
/// it.
fn has_body(found: &Located<'_>, method: Method, required: bool, findings: &mut Findings) -> bool {
    match method {
        Method::Post | Method::Put | Method::Patch | Method::Delete | Method::Options => true,
        Method::Get | Method::Head | Method::Trace => {
            if required {
                findings.block(Blocker::new(
                    BlockerCause::BodyMethod,
                    &found.pointer,
                    format!("the body of a {method} is required, and a {method} has none"),
                    "let the API take it by POST",
                ));
            } else {
                findings.note(
                    NoteKind::BodyIgnored,
                    &found.pointer,
                    format!("the body was left out: a {method} has none"),
                );
            }
            false
        }
    }
}

fn form<'d>(
    resolver: Resolver<'d>,
    family: Family,
    work: &mut Work,
    schema: Option<Located<'d>>,
    pointer: Pointer,
) -> Form<'d> {
    let settled = schema
        .clone()
        .and_then(|schema| settle(resolver, family, schema).ok());
    let Some((place, object)) = settled.as_ref().and_then(|settled| {
        Some((
            &settled.pointer,
            settled.object().filter(|object| is_plain(object))?,
        ))
    }) else {
        return Form::Whole { schema, pointer };
    };
    let required: Vec<&str> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let place = place.child("properties");
    let mut fields = Vec::new();
    for (name, value) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if !is_flagged(resolver, work, value, "readOnly") {
            fields.push(Field {
                name,
                schema: Located {
                    pointer: place.child(name),
                    value,
                },
                required: required.contains(&name.as_str()),
            });
        }
    }
    Form::Fields(fields)
}

/// Whether laying out the fields says everything that the schema says: an object of known fields and nothing else.
fn is_plain(object: &Object) -> bool {
    let is_object = match object.get("type") {
        None => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.as_slice() == [Value::from("object")],
        Some(_) => false,
    };
    let properties = object.get("properties").and_then(Value::as_object);
    let declared = |name: &Value| {
        name.as_str()
            .is_some_and(|name| properties.is_some_and(|properties| properties.contains_key(name)))
    };
    // A name that is required and not declared can never be given; the whole schema says so to the caller.
    let required = match object.get("required") {
        None => true,
        Some(Value::Array(names)) => names.iter().all(declared),
        Some(_) => false,
    };
    let says_no_more = object.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "properties" | "required" | "title" | "description" | "default" | "example" | "examples"
        | "deprecated" | "xml" | "externalDocs" | "discriminator" | "$comment" | "$schema" | "readOnly"
        | "writeOnly" => true,
        "additionalProperties" | "nullable" => value == &Value::Bool(false),
        other => other.starts_with("x-") && !COMPOSITION.contains(&other),
    });
    is_object
        && required
        && says_no_more
        && properties.is_some_and(|properties| !properties.is_empty() && properties.len() <= FIELDS_MAX)
}
