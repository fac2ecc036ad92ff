//! Parameters of an operation: read with tolerance, merged over path item and operation, sorted by who may set them.
//!
//! A header that belongs to the gateway, or the place of a credential, is never an argument, and a cookie only where
//! the operator gives it. What cannot be
//! serialised by the rules of the document is a blocker; nothing is guessed.
//! Sources: OpenAPI 3.0.4 section 4.7.12, OpenAPI 3.1.1 section 4.8.12.

use std::collections::BTreeSet;

use model::Value;

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

/// The style of a parameter that is described by a schema. `None` where it is not defined for the place.
fn style(
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
fn fits(
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

/// Headers that OpenAPI itself says are described elsewhere. Source: OpenAPI 3.1.1 section 4.8.12.1.
const DESCRIBED_ELSEWHERE: [&str; 3] = ["accept", "authorization", "content-type"];

/// Headers that the gateway, its operator or the connection own: who speaks, where to, how the message is framed, and
/// which method it really is. Sources: RFC 9110 sections 7.2, 7.6.1 and 7.8, RFC 7239; `*` stands for any ending.
const RESERVED: [&str; 33] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-transfer-encoding",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "mcp-*",
    "max-forwards",
    "origin",
    "proxy-*",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-client-ip",
    "x-forwarded-*",
    "x-forwarded",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-*",
    "x-real-ip",
    "x-rewrite-url",
];

/// Headers by which services are told who is calling, or that they may believe it. A caller who could set one would be
/// whoever it likes.
const IDENTITY: [&str; 30] = [
    "api-key",
    "apikey",
    "remote-user",
    "sudo",
    "x-access-token",
    "x-act-as",
    "x-api-key",
    "x-auth-token",
    "x-authenticated-user",
    "x-client-cert",
    "x-forwarded-user",
    "x-groups",
    "x-impersonate",
    "x-impersonate-user",
    "x-on-behalf-of",
    "x-org-id",
    "x-organization-id",
    "x-principal",
    "x-remote-user",
    "x-role",
    "x-roles",
    "x-subject",
    "x-sudo",
    "x-tenant",
    "x-tenant-id",
    "x-tenantid",
    "x-user",
    "x-user-email",
    "x-user-id",
    "x-username",
];

fn is_identity_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    IDENTITY.contains(&name.as_str())
}

/// Whether no caller may set a header.
pub(crate) fn is_reserved_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DESCRIBED_ELSEWHERE.contains(&name.as_str())
        || RESERVED.iter().any(|reserved| match reserved.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *reserved,
        })
}

fn may_set_header(found: &Located<'_>, name: &str, required: bool, findings: &mut Findings) -> bool {
    let shown = excerpt(name);
    if !is_token(name) {
        findings.block(malformed(
            &found.pointer,
            &format!("`{shown}` is no name of a header"),
        ));
        return false;
    }
    if !is_reserved_header(name) {
        return true;
    }
    let is_described_elsewhere = DESCRIBED_ELSEWHERE
        .iter()
        .any(|described| name.eq_ignore_ascii_case(described));
    if required && !is_described_elsewhere {
        findings.block(Blocker::new(
            BlockerCause::ParameterReserved,
            &found.pointer,
            format!("the header `{shown}` is required, and no caller may set it"),
            "let the API do without it, or take it from the operator",
        ));
    } else {
        findings.note(
            NoteKind::ParameterIgnored,
            &found.pointer,
            format!("the header `{shown}` was left out: no caller may set it"),
        );
    }
    false
}

/// A token of RFC 9110 section 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn malformed(pointer: &Pointer, text: &str) -> Blocker {
    Blocker::new(
        BlockerCause::ParameterMalformed,
        pointer,
        text,
        "correct the parameter",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_gateway_and_the_connection_are_reserved_in_every_case() {
        for name in [
            "Authorization",
            "accept",
            "CONTENT-TYPE",
            "Cookie",
            "Host",
            "content-length",
            "Proxy-Authorization",
            "proxy-connection",
            "Mcp-Session-Id",
            "mcp-name",
            "X-Forwarded-For",
            "X-Forwarded-Anything",
            "Forwarded",
            "Transfer-Encoding",
            "TE",
            "Connection",
            "Upgrade",
            "X-HTTP-Method-Override",
        ] {
            assert!(is_reserved_header(name), "{name}");
        }
        for name in [
            "If-Match",
            "X-Tenant",
            "Idempotency-Key",
            "X-Request-Id",
            "Accept-Language",
            "Range",
        ] {
            assert!(!is_reserved_header(name), "{name}");
        }
    }

    #[test]
    fn a_header_name_is_a_token() {
        assert!(is_token("X-A_b.1"));
        for name in ["", "a b", "a:b", "a\r\nb", "ä", "a\0", "a(b)"] {
            assert!(!is_token(name), "{name:?}");
        }
    }
}
