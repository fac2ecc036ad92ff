//! Parameters of an operation: read with tolerance, merged over path item and operation, sorted by who may set them.
//!
//! A header that belongs to the gateway, or the place of a credential, is never an argument, and a cookie only where
//! the operator gives it. What cannot be serialised by the rules of the document is a blocker; nothing is guessed.
//! Read next: `style` for what a style can write, `header` for whose a header is.
//! Sources: OpenAPI 3.0.4 section 4.7.12, OpenAPI 3.1.1 section 4.8.12.

mod header;
mod style;

use std::collections::BTreeSet;

use model::Value;

use header::{is_identity_header, may_set_header};
pub(crate) use header::{is_reserved_header, is_token};
pub(crate) use style::undefined_inside;
use style::{fits, style};

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::media;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::security::Credential;
use crate::serial::{Nesting, Serial, Style};
use crate::shape::{self, Shape, Work};
use crate::text::excerpt;

/// Parameters that one operation may have.
const PARAMETERS_MAX: usize = 512;
/// The longest name of a parameter, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
    /// Only where the operator gives it.
    Cookie,
    /// The whole query, of version 3.2.
    QueryString,
}

/// A parameter that becomes an argument.
#[derive(Debug)]
pub(crate) struct Parameter<'d> {
    pub(crate) pointer: Pointer,
    pub(crate) name: &'d str,
    pub(crate) place: Place,
    pub(crate) required: bool,
    pub(crate) schema: Located<'d>,
    pub(crate) serial: Serial,
    /// Whether only the operator may give it: a cookie, or a header that says who is calling.
    pub(crate) is_operators: bool,
    /// Whether it can be sent empty, which its schema does not say.
    pub(crate) may_be_empty: bool,
    /// Whether the schema lets null through; it is then the same as absent.
    pub(crate) nullable: bool,
    pub(crate) description: Option<&'d Value>,
    pub(crate) is_deprecated: bool,
}

/// The parameters of an operation.
#[derive(Debug, Default)]
pub(crate) struct Parameters<'d> {
    /// Those that become arguments.
    pub(crate) usable: Vec<Parameter<'d>>,
    /// The names of all that are `in: path`, usable or not: what is declared and has a blocker is not undeclared.
    pub(crate) in_path: BTreeSet<&'d str>,
    /// The names of all that are `in: query`, also those that are left out: no exploded object may use them.
    pub(crate) in_query: BTreeSet<&'d str>,
}

/// What the operator says about the wire of an API.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wire {
    pub(crate) allow_reserved: bool,
    pub(crate) nesting: Nesting,
}

/// Reads the parameters of an operation: those of the path items, nearest first, replaced by the operation's own.
pub(crate) fn read<'d>(
    resolver: Resolver<'d>,
    work: &mut Work,
    lists: &[Located<'d>],
    (credentials, wire): (&[Credential], Wire),
    findings: &mut Findings,
) -> Parameters<'d> {
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut parameters = Parameters::default();
    let mut count = 0_usize;
    for list in lists {
        let Some(items) = list.value.as_array() else {
            findings.block(malformed(&list.pointer, "`parameters` is not a list"));
            continue;
        };
        let mut here = BTreeSet::new();
        for (index, value) in items.iter().enumerate() {
            count += 1;
            if count > PARAMETERS_MAX || findings.is_full() {
                findings.block(malformed(
                    &list.pointer,
                    &format!("there are more than {PARAMETERS_MAX} parameters"),
                ));
                return parameters;
            }
            let start = Located {
                pointer: list.pointer.item(index),
                value,
            };
            let found = match resolver.follow(start) {
                Ok(found) => found,
                Err(fault) => {
                    findings.block(fault.blocker(&list.pointer.item(index)));
                    continue;
                }
            };
            let Some((name, location)) = identity(&found) else {
                findings.block(malformed(
                    &found.pointer,
                    "a parameter has no `name` and `in`, or too long ones",
                ));
                continue;
            };
            // Header names have no case.
            let folded = if location == "header" {
                name.to_ascii_lowercase()
            } else {
                name.to_owned()
            };
            let key = (location.to_owned(), folded);
            if !here.insert(key.clone()) {
                findings.block(Blocker::new(
                    BlockerCause::ParameterDuplicate,
                    &found.pointer,
                    format!(
                        "the {} parameter `{}` stands twice",
                        excerpt(location),
                        excerpt(name)
                    ),
                    "remove one of them",
                ));
                continue;
            }
            if !seen.insert(key) {
                continue;
            }
            if location == "path" {
                parameters.in_path.insert(name);
            }
            if location == "query" {
                parameters.in_query.insert(name);
            }
            parameters.usable.extend(one(
                resolver,
                work,
                &found,
                (name, location),
                (credentials, wire),
                findings,
            ));
        }
    }
    let has_string = parameters
        .usable
        .iter()
        .find(|one| one.place == Place::QueryString);
    if let Some(whole) = has_string
        && !parameters.in_query.is_empty()
    {
        findings.block(malformed(
            &whole.pointer,
            "a parameter is the whole query, and others are parts of it",
        ));
    }
    parameters
}

fn identity<'d>(parameter: &Located<'d>) -> Option<(&'d str, &'d str)> {
    let name = parameter.value.get("name")?.as_str()?;
    let location = parameter.value.get("in")?.as_str()?;
    (!name.is_empty() && name.len() <= NAME_BYTES_MAX).then_some((name, location))
}

fn one<'d>(
    resolver: Resolver<'d>,
    work: &mut Work,
    found: &Located<'d>,
    (name, location): (&'d str, &'d str),
    (credentials, wire): (&[Credential], Wire),
    findings: &mut Findings,
) -> Option<Parameter<'d>> {
    let mut required = found.value.get("required") == Some(&Value::Bool(true));
    let shown = excerpt(name);
    if credentials
        .iter()
        .any(|credential| credential.is_at(location, name))
    {
        findings.note(
            NoteKind::ParameterIgnored,
            &found.pointer,
            format!(
                "the {location} parameter `{shown}` is the place of a credential, which the operator's fills"
            ),
        );
        return None;
    }
    let place = match location {
        "path" => Place::Path,
        "query" => Place::Query,
        "header" => {
            if !may_set_header(found, name, required, findings) {
                return None;
            }
            Place::Header
        }
        "cookie" if is_token(name) => Place::Cookie,
        "cookie" => {
            findings.block(malformed(
                &found.pointer,
                &format!("`{shown}` is no name of a cookie"),
            ));
            return None;
        }
        "querystring" => Place::QueryString,
        other => {
            findings.block(Blocker::new(
                BlockerCause::ParameterLocation,
                &found.pointer,
                format!("`in: {}` is not offered", excerpt(other)),
                "write `path`, `query`, `header` or `cookie`",
            ));
            return None;
        }
    };
    if place == Place::Path && !required {
        required = true;
        findings.note(
            NoteKind::ParameterRequired,
            &found.pointer,
            format!("the path parameter `{shown}` is not marked as required; it is"),
        );
    }
    let (serial, schema) = match described(resolver, found, place, &shown, findings)? {
        Described::ByStyle(schema) => (style(found, place, wire, &shown, findings)?, schema),
        Described::ByMedia(serial, schema) => (serial, schema),
    };
    let shape = shape::of(resolver, work, schema.value);
    let mut serial = Serial {
        objects: shape.meets(Shape::OBJECT) && shape != Shape::ANY,
        ..serial
    };
    if place == Place::QueryString {
        serial.objects = true;
    }
    fits(
        resolver,
        work,
        &schema,
        (shape, serial, place, required),
        &shown,
        findings,
    )
    .then_some(())?;
    Some(Parameter {
        pointer: found.pointer.clone(),
        name,
        place,
        required,
        serial,
        is_operators: place == Place::Cookie || place == Place::Header && is_identity_header(name),
        may_be_empty: place == Place::Query
            && found.value.get("allowEmptyValue") == Some(&Value::Bool(true))
            && !shape.meets(Shape::STRING),
        nullable: shape.meets(Shape::NULL) && shape != Shape::ANY,
        description: found.value.get("description"),
        is_deprecated: found.value.get("deprecated") == Some(&Value::Bool(true)),
        schema,
    })
}

/// What describes the value of a parameter.
enum Described<'d> {
    /// A schema; style and explode say the rest.
    ByStyle(Located<'d>),
    /// A media type.
    ByMedia(Serial, Located<'d>),
}

/// Source: OpenAPI 3.1.1 section 4.8.12.4 (`content`), 3.2.0 section 4.12.1 (`querystring`).
fn described<'d>(
    resolver: Resolver<'d>,
    found: &Located<'d>,
    place: Place,
    shown: &str,
    findings: &mut Findings,
) -> Option<Described<'d>> {
    let content = found.get("content");
    if let (Some(schema), None) = (found.get("schema"), &content)
        && place != Place::QueryString
    {
        return Some(Described::ByStyle(schema));
    }
    let Some((content, media)) = content
        .as_ref()
        .and_then(|content| Some((content, content.object()?)))
    else {
        findings.block(Blocker::new(
            BlockerCause::ParameterMalformed,
            &found.pointer,
            format!("the parameter `{shown}` has no schema"),
            "describe it by a `schema`",
        ));
        return None;
    };
    let mut block = |text: String| {
        findings.block(Blocker::new(
            BlockerCause::ParameterContent,
            &content.pointer,
            text,
            "describe it by a `schema`, or by one media type that is JSON",
        ));
    };
    let mut entries = media.iter();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        block(format!("the parameter `{shown}` has not exactly one media type"));
        return None;
    };
    let start = Located {
        pointer: content.pointer.child(key),
        value,
    };
    let schema = resolver
        .follow(start)
        .ok()
        .filter(|media| media.get("encoding").is_none())
        .and_then(|media| media.get("schema"));
    let Some(schema) = schema else {
        block(format!(
            "the media type of the parameter `{shown}` has no schema, or says an encoding"
        ));
        return None;
    };
    let is_form = key
        .trim()
        .eq_ignore_ascii_case("application/x-www-form-urlencoded");
    let (style, explode) = match place {
        Place::QueryString if is_form => (Style::Form, true),
        Place::Path | Place::Query | Place::Header | Place::Cookie if media::is_json(key) => {
            (Style::Json, false)
        }
        Place::Path | Place::Query | Place::Header | Place::Cookie | Place::QueryString => {
            block(format!(
                "the media type `{}` of the parameter `{shown}` is not offered",
                excerpt(key)
            ));
            return None;
        }
    };
    let serial = Serial {
        style,
        explode,
        reserved: false,
        objects: true,
        nesting: Nesting::Refuse,
    };
    Some(Described::ByMedia(serial, schema))
}

fn malformed(pointer: &Pointer, text: &str) -> Blocker {
    Blocker::new(
        BlockerCause::ParameterMalformed,
        pointer,
        text,
        "correct the parameter",
    )
}
