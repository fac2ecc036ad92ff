//! The request body of an operation: JSON or a form, as fields beside the parameters where it is a plain object, else
//! as one argument; text and bytes as one argument. Sources: OpenAPI 3.1.1 sections 4.8.13 to 4.8.15.

mod encoding;

use std::collections::BTreeMap;

use model::{Object, Value};
use serde_json::json;

use encoding::Encodings;

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::document::Family;
use crate::form::FieldForm;
use crate::media::{self, Kind};
use crate::operation::Method;
use crate::parameter::Wire;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::schema::{COMPOSITION, settle};
use crate::shape::{self, Shape, Work, is_flagged};
use crate::text::excerpt;

/// Fields that are laid beside the parameters; a body with more is one argument.
const FIELDS_MAX: usize = 256;

/// A body that a tool can send.
#[derive(Debug)]
pub(crate) struct Body<'d> {
    pub(crate) content_type: String,
    pub(crate) kind: Kind,
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
        /// A schema of our own that stands for it.
        fixed: Option<Value>,
        /// What describes it where there is no schema.
        pointer: Pointer,
        /// How its fields are written, where it is a form.
        fields: BTreeMap<String, FieldForm>,
    },
}

/// A field of a body that is an object.
#[derive(Debug)]
pub(crate) struct Field<'d> {
    pub(crate) name: &'d str,
    pub(crate) schema: Located<'d>,
    /// Whether a body without it is wrong.
    pub(crate) required: bool,
    /// How it is written, where the body is a form.
    pub(crate) form: FieldForm,
    /// A schema of our own that stands for it.
    pub(crate) fixed: Option<Value>,
}

/// What a body is read with.
pub(crate) struct BodySite<'d, 's> {
    pub(crate) resolver: Resolver<'d>,
    pub(crate) family: Family,
    pub(crate) wire: Wire,
    pub(crate) work: &'s mut Work,
    pub(crate) findings: &'s mut Findings,
}

/// Reads the body. `None` where there is none, it has no effect, or a blocker was found.
pub(crate) fn read<'d>(
    mut site: BodySite<'d, '_>,
    operation: &Located<'d>,
    method: Method,
    choice: Option<&str>,
) -> Option<Body<'d>> {
    let start = operation.get("requestBody")?;
    let found = match site.resolver.follow(start.clone()) {
        Ok(found) => found,
        Err(fault) => {
            site.findings.block(fault.blocker(&start.pointer));
            return None;
        }
    };
    let required = found.value.get("required") == Some(&Value::Bool(true));
    if !has_body(&found, method, required, site.findings) {
        return None;
    }
    let content = found.get("content");
    let Some((place, content)) = content
        .as_ref()
        .and_then(|content| Some((content, content.object()?)))
    else {
        site.findings.block(Blocker::new(
            BlockerCause::BodyMalformed,
            &found.pointer,
            "the request body has no `content`",
            "describe it by a media type",
        ));
        return None;
    };
    let found_media = match choice {
        Some(choice) => media::chosen(content, choice),
        None => media::body(content),
    };
    let Some(media) = found_media else {
        let declared: Vec<String> = content
            .keys()
            .take(4)
            .map(|key| format!("`{}`", excerpt(key)))
            .collect();
        site.findings.block(Blocker::new(
            BlockerCause::BodyMediaType,
            &place.pointer,
            match choice {
                Some(choice) => format!(
                    "the body cannot be sent as `{}`; the document declares {}",
                    excerpt(choice),
                    declared.join(", ")
                ),
                None => format!("no media type of the body can be sent: {}", declared.join(", ")),
            },
            match choice {
                Some(_) => "choose another one by `media_type`",
                None => "let the API take `application/json`",
            },
        ));
        return None;
    };
    if media.is_choice {
        site.findings.note(
            NoteKind::BodyMediaTypeChosen,
            &place.pointer.child(media.key),
            format!("the body is sent as `{}`", media.content_type),
        );
    }
    let start = Located {
        pointer: place.pointer.child(media.key),
        value: media.value,
    };
    // Version 3.2 lets a media type be a reference.
    let described = match site.resolver.follow(start.clone()) {
        Ok(described) => described,
        Err(fault) => {
            site.findings.block(fault.blocker(&start.pointer));
            return None;
        }
    };
    for keyword in ["itemSchema", "prefixEncoding", "itemEncoding"] {
        if let Some(sequence) = described.get(keyword) {
            site.findings.block(Blocker::new(
                BlockerCause::BodyMediaType,
                &sequence.pointer,
                format!("a body of a sequence (`{keyword}`) is not offered"),
                "let the API take `application/json`",
            ));
            return None;
        }
    }
    let form = match media.kind {
        Kind::Json => json_form(&mut site, described.get("schema"), &described.pointer),
        Kind::Urlencoded | Kind::Multipart => fields_form(&mut site, media.kind, &described)?,
        Kind::Text => text_form(&mut site, &described, &media.content_type),
        Kind::Bytes => bytes_form(&mut site, &described, &media.content_type),
    };
    Some(Body {
        content_type: media.content_type,
        kind: media.kind,
        required,
        form,
    })
}

/// GET and HEAD have no body that means something. DELETE has none by RFC 9110 either, but APIs that declare one read
/// it.
fn has_body(found: &Located<'_>, method: Method, required: bool, findings: &mut Findings) -> bool {
    match method {
        Method::Post
        | Method::Put
        | Method::Patch
        | Method::Delete
        | Method::Options
        | Method::Query
        | Method::Additional => true,
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

fn json_form<'d>(site: &mut BodySite<'d, '_>, schema: Option<Located<'d>>, pointer: &Pointer) -> Form<'d> {
    match plain_fields(site, schema.as_ref()) {
        Some(fields) => Form::Fields(
            fields
                .into_iter()
                .map(|(name, schema, required)| Field {
                    name,
                    schema,
                    required,
                    form: FieldForm::Auto,
                    fixed: None,
                })
                .collect(),
        ),
        None => Form::Whole {
            schema,
            fixed: None,
            pointer: pointer.clone(),
            fields: BTreeMap::new(),
        },
    }
}

/// A form. `None` where a field that must be given cannot be written.
fn fields_form<'d>(site: &mut BodySite<'d, '_>, kind: Kind, media: &Located<'d>) -> Option<Form<'d>> {
    let schema = media.get("schema");
    let encodings = Encodings::new(kind, media);
    if let Some(fields) = plain_fields(site, schema.as_ref()) {
        let mut written = Vec::with_capacity(fields.len());
        for (name, schema, required) in fields {
            match encodings.of(site, name, &schema) {
                Ok((form, fixed)) => written.push(Field {
                    name,
                    schema,
                    required,
                    form,
                    fixed,
                }),
                Err(why) => left_out(site, name, &schema, required, why),
            }
        }
        return (!site.findings.is_blocked()).then_some(Form::Fields(written));
    }
    let is_object = schema
        .as_ref()
        .is_none_or(|schema| shape::of(site.resolver, site.work, schema.value).meets(Shape::OBJECT));
    if !is_object {
        site.findings.block(Blocker::new(
            BlockerCause::BodyMalformed,
            &media.pointer,
            "the body is a form, and its schema is no object",
            "describe its fields",
        ));
        return None;
    }
    // A composition: what is known of its fields decides how they are written; the rest is written by its value.
    let mut fields = BTreeMap::new();
    for (name, schema) in composed_fields(site, schema.as_ref()) {
        match encodings.of(site, name, &schema) {
            Ok((form, None)) => {
                fields.insert(name.to_owned(), form);
            }
            Ok((_, Some(_))) => left_out(site, name, &schema, true, "a file among alternatives"),
            Err(why) => left_out(site, name, &schema, true, why),
        }
    }
    if site.findings.is_blocked() {
        return None;
    }
    Some(Form::Whole {
        fixed: schema.is_none().then(|| json!({"type": "object"})),
        schema,
        pointer: media.pointer.clone(),
        fields,
    })
}

fn left_out(site: &mut BodySite<'_, '_>, name: &str, schema: &Located<'_>, required: bool, why: &str) {
    let name = excerpt(name);
    if required {
        site.findings.block(Blocker::new(
            BlockerCause::BodyField,
            &schema.pointer,
            format!("the field `{name}` of the form cannot be written: {why}"),
            "say in `encoding` how it is written; for `deepObject`, say how the API nests it",
        ));
    } else {
        site.findings.note(
            NoteKind::BodyFieldLeftOut,
            &schema.pointer,
            format!("the field `{name}` was left out: {why}"),
        );
    }
}

fn text_form<'d>(site: &mut BodySite<'d, '_>, media: &Located<'d>, content_type: &str) -> Form<'d> {
    site.findings.note(
        NoteKind::BodyRaw,
        &media.pointer,
        format!("the body is `{content_type}`: a text that is sent as the caller gives it"),
    );
    let schema = media.get("schema");
    let is_single = schema.as_ref().is_some_and(|schema| {
        let shape = shape::of(site.resolver, site.work, schema.value);
        !shape.meets(Shape::ARRAY.or(Shape::OBJECT).or(Shape::NULL))
    });
    let fixed =
        json!({"type": "string", "description": format!("The body as {content_type}, sent as it is.")});
    Form::Whole {
        fixed: (!is_single).then_some(fixed),
        schema,
        pointer: media.pointer.clone(),
        fields: BTreeMap::new(),
    }
}

fn bytes_form<'d>(site: &mut BodySite<'d, '_>, media: &Located<'d>, content_type: &str) -> Form<'d> {
    site.findings.note(
        NoteKind::BodyFile,
        &media.pointer,
        format!("the body is `{content_type}`: bytes that the caller gives in base64"),
    );
    Form::Whole {
        schema: media.get("schema"),
        fixed: Some(json!({
            "type": "string",
            "contentEncoding": "base64",
            "description": format!("The bytes of the body ({content_type}) in base64, with padding."),
        })),
        pointer: media.pointer.clone(),
        fields: BTreeMap::new(),
    }
}

/// The fields of a plain object with their schemas, and whether each is required.
fn plain_fields<'d>(
    site: &mut BodySite<'d, '_>,
    schema: Option<&Located<'d>>,
) -> Option<Vec<(&'d str, Located<'d>, bool)>> {
    let settled = settle(site.resolver, site.family, schema?.clone()).ok()?;
    let object = settled.object().filter(|object| is_plain(object))?;
    let required: Vec<&str> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let place = settled.pointer.child("properties");
    let mut fields = Vec::new();
    for (name, value) in object
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if !is_flagged(site.resolver, site.work, value, "readOnly") {
            let schema = Located {
                pointer: place.child(name),
                value,
            };
            fields.push((name.as_str(), schema, required.contains(&name.as_str())));
        }
    }
    Some(fields)
}

/// The fields that a composition names, as far as they can be seen.
fn composed_fields<'d>(
    site: &mut BodySite<'d, '_>,
    schema: Option<&Located<'d>>,
) -> Vec<(&'d str, Located<'d>)> {
    let mut fields = Vec::new();
    let mut open: Vec<Located<'d>> = schema.cloned().into_iter().collect();
    while let Some(schema) = open.pop() {
        if !site.work.step() || fields.len() > FIELDS_MAX {
            break;
        }
        let Ok(schema) = site.resolver.follow(schema) else {
            continue;
        };
        let place = schema.pointer.child("properties");
        for (name, value) in schema
            .value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let located = Located {
                pointer: place.child(name),
                value,
            };
            fields.push((name.as_str(), located));
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if let Some(list) = schema.get(keyword) {
                for (index, value) in list.value.as_array().into_iter().flatten().enumerate() {
                    open.push(Located {
                        pointer: list.pointer.item(index),
                        value,
                    });
                }
            }
        }
    }
    fields
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
