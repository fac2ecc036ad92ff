//! What an operation answers when it succeeds: the media type to ask for, and the one schema, where there is one.
//!
//! A tool with an output schema promises it for every success, so an operation with two kinds of success has none.
//! Source: MCP 2026-07-28 TOOL-06, OpenAPI 3.1.1 section 4.8.16.

use model::Value;

use crate::blocker::{Blocker, BlockerCause};
use crate::document::Family;
use crate::media;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::schema::settle;
use crate::text::excerpt;

/// The most media types that are asked for at once.
const ACCEPTED_MAX: usize = 8;
/// The most media types that an operation can answer with.
const ANSWERS_MAX: usize = 32;

/// What is known of the success of an operation.
#[derive(Debug)]
pub(crate) struct Success<'d> {
    /// What goes into `accept`.
    pub(crate) accept: String,
    /// The schema of every success that has a body, or why there is none.
    pub(crate) schema: Result<Located<'d>, (Pointer, String)>,
    /// What else may come than JSON, without parameters.
    pub(crate) answers: Vec<String>,
    /// Whether a success can be without a body, beside others that have one.
    pub(crate) may_be_empty: bool,
    /// The operator asks for what the document does not declare.
    pub(crate) fault: Option<Blocker>,
}

/// Reads the responses. `choice`: the media type that the operator asks for.
pub(crate) fn read<'d>(
    resolver: Resolver<'d>,
    family: Family,
    operation: &Located<'d>,
    choice: Option<&str>,
) -> Success<'d> {
    let place = operation.pointer.child("responses");
    let mut successes: Vec<Located<'d>> = Vec::new();
    for (status, value) in operation
        .value
        .get("responses")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(status, _)| is_success(status))
    {
        let start = Located {
            pointer: place.child(status),
            value,
        };
        match resolver.follow(start) {
            Ok(found) => successes.push(found),
            Err(fault) => return none(&place, fault.to_string(), choice),
        }
    }
    let Some(first) = successes.first() else {
        return none(&place, "no successful response is described".to_owned(), choice);
    };
    let mut accept: Option<String> = None;
    let mut schemas: Vec<Located<'d>> = Vec::new();
    let mut reason: Option<(Pointer, String)> = None;
    let mut declared: Vec<String> = Vec::new();
    let mut empty = false;
    for success in &successes {
        let content = success.get("content");
        let content = content
            .as_ref()
            .and_then(|content| Some((content, content.object()?)));
        let Some((content, types)) = content.filter(|(_, types)| !types.is_empty()) else {
            empty = true;
            continue;
        };
        declared.extend(
            types
                .keys()
                .filter(|key| !media::is_json(key))
                .filter_map(|key| media::essence(key)),
        );
        let Some(media) =
            media::json(types).filter(|media| choice.is_none_or(|choice| is_chosen(media, choice)))
        else {
            reason.get_or_insert((
                success.pointer.clone(),
                "a successful response is not JSON".to_owned(),
            ));
            continue;
        };
        accept.get_or_insert(media.content_type);
        let schema = media.value.get("schema").map(|value| Located {
            pointer: content.pointer.child(media.key).child("schema"),
            value,
        });
        match schema.map(|schema| settle(resolver, family, schema)) {
            Some(Ok(schema)) => schemas.push(schema),
            Some(Err(fault)) => {
                reason.get_or_insert((success.pointer.clone(), fault.to_string()));
            }
            None => {
                reason.get_or_insert((
                    success.pointer.clone(),
                    "a successful response has no schema".to_owned(),
                ));
            }
        }
    }
    declared.sort();
    declared.dedup();
    declared.truncate(ANSWERS_MAX);
    let fault = choice
        .filter(|choice| accept.is_none() && !covers(&declared, choice))
        .map(|choice| undeclared(choice, &declared, &place));
    let schema = match (reason, schemas.first()) {
        (Some(reason), _) => Err(reason),
        (None, None) => Err((
            first.pointer.clone(),
            "no successful response has a schema".to_owned(),
        )),
        (None, Some(schema)) => {
            let is_one = schemas
                .iter()
                .all(|other| other.pointer == schema.pointer || other.value == schema.value);
            if is_one {
                Ok(schema.clone())
            } else {
                Err((place, "successful responses have different schemas".to_owned()))
            }
        }
    };
    let others = match (choice, &accept) {
        (Some(choice), None) => choice.trim().to_owned(),
        (None | Some(_), _) => declared
            .iter()
            .take(ACCEPTED_MAX)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    };
    Success {
        accept: accept.unwrap_or_else(|| {
            if others.is_empty() {
                "application/json".to_owned()
            } else {
                others
            }
        }),
        may_be_empty: empty,
        schema,
        answers: declared,
        fault,
    }
}

/// Whether the JSON that a response declares is what the operator asks for.
fn is_chosen(media: &media::JsonMedia<'_>, choice: &str) -> bool {
    media.content_type.eq_ignore_ascii_case(choice.trim())
}

/// Whether declared types, some of them ranges, hold a media type.
fn covers(declared: &[String], choice: &str) -> bool {
    let Some(choice) = media::essence(choice) else {
        return false;
    };
    declared.iter().any(|one| {
        *one == choice
            || one
                .strip_suffix('*')
                .is_some_and(|range| range.ends_with('/') && choice.starts_with(range))
    })
}

fn undeclared(choice: &str, declared: &[String], place: &Pointer) -> Blocker {
    let listed: Vec<String> = declared.iter().take(8).map(|one| format!("`{one}`")).collect();
    let clears = if listed.is_empty() {
        "leave `accept` out".to_owned()
    } else {
        format!("choose one of {}, or leave `accept` out", listed.join(", "))
    };
    let text = format!("no successful response is `{}`", excerpt(choice));
    Blocker::new(BlockerCause::ResponseMediaType, place, text, clears)
}

fn none<'d>(place: &Pointer, reason: String, choice: Option<&str>) -> Success<'d> {
    Success {
        accept: "application/json".to_owned(),
        schema: Err((place.clone(), reason)),
        answers: Vec::new(),
        may_be_empty: false,
        fault: choice.map(|choice| undeclared(choice, &[], place)),
    }
}

pub(crate) fn is_success(status: &str) -> bool {
    let mut bytes = status.bytes();
    status.len() == 3
        && bytes.next() == Some(b'2')
        && (status.eq_ignore_ascii_case("2XX") || bytes.all(|b| b.is_ascii_digit()))
}
