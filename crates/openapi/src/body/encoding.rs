//! How the fields of a form are written: the `encoding` of a media type, else the defaults of the standard.
//!
//! Sources: OpenAPI 3.0.4 section 4.7.15, OpenAPI 3.1.1 section 4.8.15.

use model::Value;

use super::BodySite;
use crate::blocker::NoteKind;
use crate::document::Family;
use crate::form::{self, FieldForm};
use crate::media::{self, Kind};
use crate::parameter::undefined_inside;
use crate::reference::{Located, reference_of};
use crate::serial::{Nesting, Serial, Style};
use crate::shape::{self, Shape};

/// Media types that one file may have.
const ACCEPTS_MAX: usize = 16;

/// The encodings of one form.
pub(super) struct Encodings<'d> {
    kind: Kind,
    encoding: Option<&'d Value>,
}

impl<'d> Encodings<'d> {
    pub(super) fn new(kind: Kind, media: &Located<'d>) -> Self {
        Self {
            kind,
            encoding: media.value.get("encoding"),
        }
    }

    /// How a field is written, with a schema of our own where the document's does not say what the caller gives.
    /// The error says why it cannot be written.
    pub(super) fn of(
        &self,
        site: &mut BodySite<'d, '_>,
        name: &str,
        schema: &Located<'d>,
    ) -> Result<(FieldForm, Option<Value>), &'static str> {
        let encoding = self.encoding.and_then(|encoding| encoding.get(name));
        match self.kind {
            Kind::Multipart => part(site, name, schema, encoding),
            Kind::Urlencoded | Kind::Json | Kind::Text | Kind::Bytes => pair(site, name, schema, encoding),
        }
    }
}

fn pair<'d>(
    site: &mut BodySite<'d, '_>,
    name: &str,
    schema: &Located<'d>,
    encoding: Option<&Value>,
) -> Result<(FieldForm, Option<Value>), &'static str> {
    let shape = shape::of(site.resolver, site.work, schema.value);
    if let Some((style, explode)) = styled(encoding)? {
        let is_compound = shape.meets(Shape::ARRAY.or(Shape::OBJECT)) && shape != Shape::ANY;
        if explode && is_compound && matches!(style, Style::Space | Style::Pipe) {
            return Err("its style is not defined with `explode: true`");
        }
        let serial = Serial {
            style,
            explode,
            reserved: false,
            objects: true,
            nesting: site.wire.nesting,
        };
        if shape != Shape::ANY
            && undefined_inside(site.resolver, site.work, schema.value, shape, serial).is_some()
        {
            return Err("its style does not define lists or objects inside it");
        }
        return Ok((FieldForm::Styled(serial), None));
    }
    let content_type = encoding.and_then(|encoding| encoding.get("contentType")?.as_str());
    if content_type.is_some_and(media::is_json) {
        let content_type = "application/json".to_owned();
        return Ok((FieldForm::Json { content_type }, None));
    }
    let items = shape::of_items(site.resolver, site.work, schema.value);
    let holds_objects = |shape: Shape| shape != Shape::ANY && shape.meets(Shape::OBJECT);
    if holds_objects(shape) || items.is_some_and(holds_objects) {
        site.findings.note(
            NoteKind::BodyFieldJson,
            &schema.pointer,
            format!(
                "an object in the field `{}` is sent as JSON text",
                crate::text::excerpt(name)
            ),
        );
    }
    Ok((FieldForm::Auto, None))
}

/// The style of a field and whether it is exploded, where its encoding says anything of the kind.
fn styled(encoding: Option<&Value>) -> Result<Option<(Style, bool)>, &'static str> {
    let Some(encoding) = encoding.filter(|encoding| {
        ["style", "explode", "allowReserved"]
            .iter()
            .any(|key| encoding.get(*key).is_some())
    }) else {
        return Ok(None);
    };
    let style = match encoding.get("style").map_or(Some("form"), Value::as_str) {
        Some("form") => Style::Form,
        Some("spaceDelimited") => Style::Space,
        Some("pipeDelimited") => Style::Pipe,
        Some("deepObject") => Style::Deep,
        _ => return Err("its style is none of a form"),
    };
    let explode = match encoding.get("explode") {
        Some(Value::Bool(explode)) => *explode,
        None => style == Style::Form,
        Some(_) => return Err("its `explode` is not `true` or `false`"),
    };
    Ok(Some((style, explode)))
}

fn part<'d>(
    site: &mut BodySite<'d, '_>,
    name: &str,
    schema: &Located<'d>,
    encoding: Option<&Value>,
) -> Result<(FieldForm, Option<Value>), &'static str> {
    if !form::is_part_name(name) {
        return Err("its name cannot stand in a header");
    }
    let shape = shape::of(site.resolver, site.work, schema.value);
    // In version 3.0 a style is for urlencoded forms alone. How values are joined in a part, and whether they are encoded there, no
    // version says; one part for each of them leaves no doubt.
    if site.family != Family::V30
        && shape != Shape::ANY
        && shape.meets(Shape::ARRAY.or(Shape::OBJECT))
        && let Some((style, explode)) = styled(encoding)?
    {
        match (shape.meets(Shape::OBJECT), style, explode) {
            (false, Style::Form, true) => {}
            (true, Style::Deep, _) if !shape.meets(Shape::ARRAY) => {
                let serial = Serial {
                    style,
                    explode: true,
                    reserved: false,
                    objects: true,
                    nesting: Nesting::Refuse,
                };
                return match undefined_inside(site.resolver, site.work, schema.value, shape, serial) {
                    Some(_) => Err("its style does not define lists or objects inside it"),
                    None => Ok((FieldForm::Deep, None)),
                };
            }
            _ => return Err("its style is not defined for the parts of a form"),
        }
    }
    let content_type = encoding.and_then(|encoding| encoding.get("contentType")?.as_str());
    if let Some(content_type) = content_type.filter(|content_type| media::is_json(content_type)) {
        let content_type = content_type.trim().to_owned();
        return Ok((FieldForm::Json { content_type }, None));
    }
    let accepts: Vec<String> = content_type
        .into_iter()
        .flat_map(|types| types.split(','))
        .map(str::trim)
        .filter(|one| media::is_media_type(&one.replace('*', "x")))
        .take(ACCEPTS_MAX)
        .map(str::to_owned)
        .collect();
    let mut binary = Binary::default();
    look(site, schema, 0, false, &mut binary);
    let is_text = |accepted: &String| accepted.starts_with("text/") || accepted.ends_with("xml");
    let is_file_by_type = content_type.is_some() && !accepts.is_empty() && !accepts.iter().all(is_text);
    if binary.is_one || binary.is_list || (is_file_by_type && shape.meets(Shape::STRING)) {
        let is_list = binary.is_list || (!binary.is_one && shape.meets(Shape::ARRAY) && shape != Shape::ANY);
        site.findings.note(
            NoteKind::BodyFile,
            &schema.pointer,
            format!(
                "the field `{}` is a file that the caller gives in base64",
                crate::text::excerpt(name)
            ),
        );
        let description = schema.value.get("description");
        let fixed = match (binary.is_one, is_list) {
            (true, true) => serde_json::json!({"anyOf": [
                form::file_schema(&accepts, false, description),
                form::file_schema(&accepts, true, None),
            ]}),
            (_, is_list) => form::file_schema(&accepts, is_list, description),
        };
        return Ok((FieldForm::File { accepts }, Some(fixed)));
    }
    match accepts.first() {
        Some(content_type) if media::is_media_type(content_type) && !shape.meets(Shape::OBJECT) => Ok((
            FieldForm::Typed {
                content_type: content_type.clone(),
            },
            None,
        )),
        _ => Ok((FieldForm::Auto, None)),
    }
}

/// Which forms of a file a schema lets through.
#[derive(Default)]
struct Binary {
    is_one: bool,
    is_list: bool,
}

fn look<'d>(
    site: &mut BodySite<'d, '_>,
    schema: &Located<'d>,
    depth: usize,
    in_list: bool,
    binary: &mut Binary,
) {
    if depth > 8 || !site.work.step() {
        return;
    }
    let Some(object) = schema.object() else {
        return;
    };
    if let Some(target) = reference_of(schema.value).and_then(|text| site.resolver.target(text).ok()) {
        look(site, &target, depth + 1, in_list, binary);
    }
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    // Version 3.0 says it by `format`, later ones by a media type without an encoding.
    let by_media = site.family != Family::V30
        && object.get("contentEncoding").is_none()
        && text("contentMediaType")
            .is_some_and(|media| !media.starts_with("text/") && !media::is_json(media));
    if text("format") == Some("binary") || by_media {
        if in_list {
            binary.is_list = true;
        } else {
            binary.is_one = true;
        }
    }
    if let Some(items) = schema.get("items") {
        look(site, &items, depth + 1, true, binary);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        if let Some(list) = schema.get(keyword) {
            for (index, value) in list.value.as_array().into_iter().flatten().enumerate() {
                let member = Located {
                    pointer: list.pointer.item(index),
                    value,
                };
                look(site, &member, depth + 1, in_list, binary);
            }
        }
    }
}
