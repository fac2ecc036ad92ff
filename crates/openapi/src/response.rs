//! What an operation answers when it succeeds: the media type to ask for, and the one schema, where there is one.
//!
//! A tool with an output schema promises it for every success, so an operation with two kinds of success has none.
//! Source: MCP 2026-07-28 TOOL-06, OpenAPI 3.1.1 section 4.8.16.

use model::Value;

use crate::document::Family;
use crate::media;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::schema::settle;

/// What is known of the success of an operation.
#[derive(Debug)]
pub(crate) struct Success<'d> {
    /// What goes into `accept`.
    pub(crate) accept: String,
    /// The schema of every success, or why there is none.
    pub(crate) schema: Result<Located<'d>, (Pointer, String)>,
}

/// Reads the responses.
pub(crate) fn read<'d>(resolver: Resolver<'d>, family: Family, operation: &Located<'d>) -> Success<'d> {
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
            Err(fault) => return none(&place, fault.to_string()),
        }
    }
    let Some(first) = successes.first() else {
        return none(&place, "no successful response is described".to_owned());
    };
    let mut accept: Option<String> = None;
    let mut schemas: Vec<Located<'d>> = Vec::new();
    let mut reason: Option<(Pointer, String)> = None;
    for success in &successes {
        let content = success.get("content");
        let media = content
            .as_ref()
            .and_then(|content| Some((content, media::json(content.object()?)?)));
        let Some((content, media)) = media else {
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
    Success {
        accept: accept.unwrap_or_else(|| "application/json".to_owned()),
        schema,
    }
}

fn none<'d>(place: &Pointer, reason: String) -> Success<'d> {
    Success {
        accept: "application/json".to_owned(),
        schema: Err((place.clone(), reason)),
    }
}

fn is_success(status: &str) -> bool {
    let mut bytes = status.bytes();
    status.len() == 3
        && bytes.next() == Some(b'2')
        && (status.eq_ignore_ascii_case("2XX") || bytes.all(|b| b.is_ascii_digit()))
}
