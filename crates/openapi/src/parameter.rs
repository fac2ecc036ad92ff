//! Parameters of an operation: read with tolerance, merged over path item and operation, sorted by who may set them.
//!
//! A header that belongs to the gateway, a cookie, or the place of a credential is never an argument. What cannot be
//! serialised by the rules of the document is a blocker; nothing is guessed.
//! Sources: OpenAPI 3.0.4 section 4.7.12, OpenAPI 3.1.1 section 4.8.12.

use std::collections::BTreeSet;

use model::Value;

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::security::Credential;
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
}

/// A parameter that becomes an argument.
#[derive(Debug)]
pub(crate) struct Parameter<'d> {
    pub(crate) pointer: Pointer,
    pub(crate) name: &'d str,
    pub(crate) place: Place,
    pub(crate) required: bool,
    pub(crate) schema: Located<'d>,
    /// Repeated names instead of commas, in a query.
    pub(crate) explode: bool,
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
}

/// Reads the parameters of an operation: those of the path items, nearest first, replaced by the operation's own.
pub(crate) fn read<'d>(
    resolver: Resolver<'d>,
    work: &mut Work,
    lists: &[Located<'d>],
    credentials: &[Credential],
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
            parameters.usable.extend(one(
                resolver,
                work,
                &found,
                (name, location),
                credentials,
                findings,
            ));
        }
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
    credentials: &[Credential],
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
        "cookie" => {
            if required {
                findings.block(Blocker::new(
                    BlockerCause::ParameterCookie,
                    &found.pointer,
                    format!("the cookie `{shown}` is required, and no caller may set a cookie"),
                    "let the API take it as a credential, a header or a query parameter",
                ));
            } else {
                findings.note(
                    NoteKind::ParameterIgnored,
                    &found.pointer,
                    format!("the cookie `{shown}` was left out: no caller may set a cookie"),
                );
            }
            return None;
        }
        other => {
            findings.block(Blocker::new(
                BlockerCause::ParameterLocation,
                &found.pointer,
                format!("`in: {}` is not offered", excerpt(other)),
                "write `path`, `query` or `header`",
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
    let explode = serialisation(found, place, &shown, findings)?;
    let schema = found.get("schema");
    let Some(schema) = schema else {
        let (cause, text) = if found.value.get("content").is_some() {
            (
                BlockerCause::ParameterContent,
                "is described by `content`, which is not offered",
            )
        } else {
            (BlockerCause::ParameterMalformed, "has no `schema`")
        };
        findings.block(Blocker::new(
            cause,
            &found.pointer,
            format!("the parameter `{shown}` {text}"),
            "describe it by a `schema`",
        ));
        return None;
    };
    let shape = shape::of(resolver, work, schema.value);
    serialisable(resolver, work, &schema, shape, &shown, findings).then_some(())?;
    Some(Parameter {
        pointer: found.pointer.clone(),
        name,
        place,
        required,
        explode,
        nullable: shape.meets(Shape::NULL) && shape != Shape::ANY,
        description: found.value.get("description"),
        is_deprecated: found.value.get("deprecated") == Some(&Value::Bool(true)),
        schema,
    })
}

/// Whether values repeat their name. `None` where the style is not offered.
fn serialisation(found: &Located<'_>, place: Place, shown: &str, findings: &mut Findings) -> Option<bool> {
    let usual = match place {
        Place::Path | Place::Header => "simple",
        Place::Query => "form",
    };
    let style = found.value.get("style");
    if style.is_some_and(|style| style.as_str() != Some(usual)) {
        findings.block(Blocker::new(
            BlockerCause::ParameterStyle,
            &found.pointer,
            format!(
                "`style: {}` of the parameter `{shown}` is not offered",
                excerpt(&style.map(Value::to_string).unwrap_or_default())
            ),
            format!("write `style: {usual}`"),
        ));
        return None;
    }
    if found.value.get("allowReserved") == Some(&Value::Bool(true)) {
        findings.block(Blocker::new(
            BlockerCause::ParameterStyle,
            &found.pointer,
            format!("`allowReserved` of the parameter `{shown}` is not offered"),
            "remove `allowReserved`",
        ));
        return None;
    }
    match found.value.get("explode") {
        Some(Value::Bool(explode)) => Some(*explode),
        // The default follows the style: true for form alone.
        None => Some(place == Place::Query),
        Some(_) => {
            findings.block(malformed(
                &found.pointer,
                &format!("`explode` of the parameter `{shown}` is not `true` or `false`"),
            ));
            None
        }
    }
}

/// Whether every value that the schema lets through has a form on the wire.
fn serialisable(
    resolver: Resolver<'_>,
    work: &mut Work,
    schema: &Located<'_>,
    shape: Shape,
    shown: &str,
    findings: &mut Findings,
) -> bool {
    if shape == Shape::ANY {
        findings.note(
            NoteKind::ParameterUntyped,
            &schema.pointer,
            format!("the parameter `{shown}` does not say its type; objects are refused when it is sent"),
        );
        return true;
    }
    let items = shape
        .meets(Shape::ARRAY)
        .then(|| shape::of_items(resolver, work, schema.value))
        .flatten()
        .filter(|items| *items != Shape::ANY);
    let holds_objects =
        shape.meets(Shape::OBJECT) || items.is_some_and(|items| items.meets(Shape::ARRAY.or(Shape::OBJECT)));
    if holds_objects {
        findings.block(Blocker::new(
            BlockerCause::ParameterObject,
            &schema.pointer,
            format!(
                "the parameter `{shown}` can be, or hold, an object or a list of lists, which is not offered"
            ),
            "use single values and lists of single values",
        ));
    }
    !holds_objects
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
