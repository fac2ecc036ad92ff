//! The style of a parameter, as the document says it, and whether every value that its schema lets through has a form in
//! it. What has none is a blocker, or leaves out a parameter that no call needs. Writing is done in `serial`.

use model::Value;

use super::{Place, Wire, malformed};
use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::reference::{Located, Resolver};
use crate::serial::{Nesting, Serial, Style};
use crate::shape::{self, Shape, Work};
use crate::text::excerpt;

/// The style of a parameter that is described by a schema. `None` where it is not defined for the place.
pub(super) fn style(
    found: &Located<'_>,
    place: Place,
    wire: Wire,
    shown: &str,
    findings: &mut Findings,
) -> Option<Serial> {
    let (usual, style) = {
        let usual = match place {
            Place::Path | Place::Header => "simple",
            Place::Query | Place::Cookie | Place::QueryString => "form",
        };
        let named = found.value.get("style");
        (usual, named.map_or(Some(usual), Value::as_str))
    };
    let chosen = match (place, style) {
        (Place::Path | Place::Header, Some("simple")) => Some(Style::Simple),
        (Place::Path, Some("label")) => Some(Style::Label),
        (Place::Path, Some("matrix")) => Some(Style::Matrix),
        (Place::Query | Place::Cookie | Place::QueryString, Some("form")) => Some(Style::Form),
        (Place::Query, Some("spaceDelimited")) => Some(Style::Space),
        (Place::Query, Some("pipeDelimited")) => Some(Style::Pipe),
        (Place::Query, Some("deepObject")) => Some(Style::Deep),
        // Version 3.2: as it is, where `form` would encode. Nothing that needs encoding is sent in either.
        (Place::Cookie, Some("cookie")) => Some(Style::Form),
        _ => None,
    };
    let Some(chosen) = chosen else {
        let style = found.value.get("style").map(Value::to_string).unwrap_or_default();
        findings.block(Blocker::new(
            BlockerCause::ParameterStyle,
            &found.pointer,
            format!(
                "`style: {}` of the parameter `{shown}` is not defined for its place",
                excerpt(&style)
            ),
            format!("write `style: {usual}`"),
        ));
        return None;
    };
    let explode = match found.value.get("explode") {
        Some(Value::Bool(explode)) => *explode,
        // The default follows the style: true for form alone.
        None => chosen == Style::Form,
        Some(_) => {
            findings.block(malformed(
                &found.pointer,
                &format!("`explode` of the parameter `{shown}` is not `true` or `false`"),
            ));
            return None;
        }
    };
    let wants_reserved =
        found.value.get("allowReserved") == Some(&Value::Bool(true)) && place == Place::Query;
    if wants_reserved && !wire.allow_reserved {
        findings.note(
            NoteKind::ParameterReservedEncoded,
            &found.pointer,
            format!("reserved characters of `{shown}` are sent encoded; the operator can let them stand"),
        );
    }
    Some(Serial {
        style: chosen,
        explode,
        reserved: wants_reserved && wire.allow_reserved,
        objects: true,
        nesting: wire.nesting,
    })
}

/// Whether every value that the schema lets through has a form on the wire.
pub(super) fn fits(
    resolver: Resolver<'_>,
    work: &mut Work,
    schema: &Located<'_>,
    (shape, serial, place, required): (Shape, Serial, Place, bool),
    shown: &str,
    findings: &mut Findings,
) -> bool {
    // The whole query is a form, which has a way for every value.
    if serial.style == Style::Json || place == Place::QueryString {
        return true;
    }
    if shape == Shape::ANY {
        findings.note(
            NoteKind::ParameterUntyped,
            &schema.pointer,
            format!("the parameter `{shown}` does not say its type; objects are refused when it is sent"),
        );
        return true;
    }
    let mut block = |cause: BlockerCause, text: String, clears: &str| {
        findings.block(Blocker::new(cause, &schema.pointer, text, clears));
        false
    };
    let is_compound = shape.meets(Shape::ARRAY.or(Shape::OBJECT));
    if serial.explode && matches!(serial.style, Style::Space | Style::Pipe) && is_compound {
        return block(
            BlockerCause::ParameterStyle,
            format!("the style of the parameter `{shown}` is not defined with `explode: true`"),
            "write `explode: false`, or `style: form`",
        );
    }
    if place == Place::Cookie && serial.explode && is_compound {
        return block(
            BlockerCause::ParameterStyle,
            format!("a list or an object in the cookie `{shown}` is not defined with `explode: true`"),
            "write `explode: false`",
        );
    }
    match undefined_inside(resolver, work, schema.value, shape, serial) {
        None => true,
        // Every call is right without it, so it costs the parameter and not the operation. Not so a `deepObject` that
        // nests: there the API has a way of its own, and whoever knows it can say so.
        Some(what) if !(required || serial.style == Style::Deep && what == NESTED) => {
            findings.note(
                NoteKind::ParameterLeftOut,
                &schema.pointer,
                format!("`{shown}` was left out: it can hold {what}, which its style does not define"),
            );
            false
        }
        Some(what) => block(
            BlockerCause::ParameterObject,
            format!("the parameter `{shown}` can hold {what}, which its style does not define"),
            "use single values, or lists and objects of single values; or say how the API nests `deepObject`",
        ),
    }
}

const NESTED: &str = "an object of lists or objects";

/// What a schema lets through that a style has no form for.
pub(crate) fn undefined_inside(
    resolver: Resolver<'_>,
    work: &mut Work,
    schema: &Value,
    shape: Shape,
    serial: Serial,
) -> Option<&'static str> {
    if serial.style == Style::Json || serial.style == Style::Deep && serial.nesting != Nesting::Refuse {
        return None;
    }
    let compound = Shape::ARRAY.or(Shape::OBJECT);
    let holds =
        |inner: Option<Shape>| inner.is_some_and(|inner| inner != Shape::ANY && inner.meets(compound));
    if shape.meets(Shape::ARRAY) {
        if serial.style == Style::Deep {
            return Some("a list");
        }
        if holds(shape::of_items(resolver, work, schema)) {
            return Some("a list of lists or objects");
        }
    }
    if shape.meets(Shape::OBJECT) && holds(shape::of_members(resolver, work, schema)) {
        return Some(NESTED);
    }
    None
}
