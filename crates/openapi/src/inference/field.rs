//! Evidence in arguments and answers: names of fields, formats and media types. A schema is walked to a bounded depth
//! and number of fields; what lies beyond is not looked at, and so proves nothing.

use std::collections::HashSet;

use model::{Class, Exclusion, Value};

use super::word::words;
use super::{EvidenceKind, Found, Strength, vocabulary};
use crate::document::Document;
use crate::operation::{OperationRef, path_items};
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver, reference_of};

/// Fields that are looked at in all arguments, and in all answers, of one operation.
const FIELDS_MAX: usize = 400;
/// How deep schemas are followed, references counted.
const DEPTH_MAX: usize = 12;
/// Media types that are looked at in one body.
const MEDIA_TYPES_MAX: usize = 16;

/// What a body of files is sent as, by its beginning.
const FILES_SENT: [&str; 5] = [
    "multipart/",
    "application/octet-stream",
    "image/",
    "video/",
    "audio/",
];
/// What a file comes back as.
const FILES_GIVEN: [&str; 4] = [
    "application/octet-stream",
    "application/pdf",
    "application/zip",
    "application/gzip",
];

/// The arguments: addresses, queries in languages of their own, files.
pub(super) fn of_arguments(
    found: &mut Found<'_>,
    document: &Document,
    reference: &OperationRef,
    operation: &Located<'_>,
) {
    let resolver = document.resolver();
    let mut lists: Vec<Located<'_>> = operation.get("parameters").into_iter().collect();
    if let Some(item) = resolver.at(reference.path_item.clone()) {
        let (items, _) = path_items(resolver, item);
        lists.extend(items.iter().filter_map(|item| item.get("parameters")));
    }
    for list in &lists {
        for (index, value) in list
            .value
            .as_array()
            .into_iter()
            .flatten()
            .take(FIELDS_MAX)
            .enumerate()
        {
            let start = Located {
                pointer: list.pointer.item(index),
                value,
            };
            let Ok(parameter) = resolver.follow(start) else {
                continue;
            };
            if let Some(name) = parameter.value.get("name").and_then(Value::as_str) {
                of_argument(found, name, parameter.value.get("schema"), &parameter.pointer);
            }
        }
    }
    let body = operation
        .get("requestBody")
        .and_then(|body| resolver.follow(body).ok());
    let Some(content) = body.and_then(|body| body.get("content")) else {
        return;
    };
    let is_file = |media_type: &str| FILES_SENT.iter().any(|file| media_type.starts_with(file));
    each_schema(found, &content, is_file, |found, mut schema| {
        Walk::new(resolver).walk(&mut schema, 0, &mut |name, schema, at| {
            of_argument(found, name, Some(schema), at);
            Go::On
        });
    });
}

fn of_argument(found: &mut Found<'_>, name: &str, schema: Option<&Value>, at: &Pointer) {
    let kind = EvidenceKind::Argument;
    let words = words(name);
    let text = |key: &str| schema.and_then(|schema| schema.get(key)).and_then(Value::as_str);
    let is_text = text("type").is_none_or(|kind| kind == "string");
    if is_text && vocabulary::is_address(&words) || matches!(text("format"), Some("uri" | "url")) {
        found.exclusion(kind, Exclusion::Webhooks, Strength::Weak, at, name);
    }
    if is_text && vocabulary::is_language(&words) {
        found.exclusion(kind, Exclusion::Queries, Strength::Strong, at, name);
    }
    if matches!(text("format"), Some("binary")) {
        found.exclusion(kind, Exclusion::Files, Strength::Strong, at, name);
    }
}

/// The answers: sensitive fields, and media types of files.
pub(super) fn of_answers(found: &mut Found<'_>, document: &Document, operation: &Located<'_>) {
    let resolver = document.resolver();
    let Some(responses) = operation.get("responses") else {
        return;
    };
    let mut walk = Walk::new(resolver);
    for (status, value) in responses.object().into_iter().flatten().take(64) {
        let is_success = status.starts_with('2')
            || status == "default" && responses.object().is_some_and(|all| all.len() == 1);
        let start = Located {
            pointer: responses.pointer.child(status),
            value,
        };
        let Some(content) = Some(start)
            .filter(|_| is_success)
            .and_then(|start| resolver.follow(start).ok())
            .and_then(|response| response.get("content"))
        else {
            continue;
        };
        let is_file = |media_type: &str| FILES_GIVEN.contains(&media_type);
        each_schema(found, &content, is_file, |found, mut schema| {
            walk.walk(&mut schema, 0, &mut |name, _, at| {
                if !document.is_sensitive(name) {
                    return Go::On;
                }
                let class = Class::SensitiveRead;
                found.class(EvidenceKind::Answer, class, Strength::Weak, at, name);
                // One field says as much as all of them.
                Go::Stop
            });
        });
    }
}

/// Looks at what a body can be: a media type of files is evidence, and each schema is for `look`.
fn each_schema<'f, 'd>(
    found: &mut Found<'f>,
    content: &Located<'d>,
    is_file: impl Fn(&str) -> bool,
    mut look: impl FnMut(&mut Found<'f>, Located<'d>),
) {
    for (media_type, media) in content.object().into_iter().flatten().take(MEDIA_TYPES_MAX) {
        let at = content.pointer.child(media_type);
        if is_file(media_type) {
            let kind = EvidenceKind::MediaType;
            found.exclusion(kind, Exclusion::Files, Strength::Strong, &at, media_type);
        }
        if let Some(schema) = media.get("schema") {
            let pointer = at.child("schema");
            look(
                found,
                Located {
                    pointer,
                    value: schema,
                },
            );
        }
    }
}

/// Whether more fields are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

/// What is told of each field: its name, its schema and its place.
type See<'s, 'd> = &'s mut dyn FnMut(&str, &'d Value, &Pointer) -> Go;

/// A walk over the fields of schemas, each schema once.
struct Walk<'d> {
    resolver: Resolver<'d>,
    seen: HashSet<*const Value>,
    left: usize,
}

impl<'d> Walk<'d> {
    fn new(resolver: Resolver<'d>) -> Self {
        Self {
            resolver,
            seen: HashSet::new(),
            left: FIELDS_MAX,
        }
    }

    /// The place of `schema` is gone through step by step, and is at the end what it was.
    fn walk(&mut self, schema: &mut Located<'d>, depth: usize, see: See<'_, 'd>) {
        if depth > DEPTH_MAX || self.left == 0 || !self.seen.insert(std::ptr::from_ref(schema.value)) {
            return;
        }
        if let Some(reference) = reference_of(schema.value) {
            if let Ok(mut target) = self.resolver.target(reference) {
                self.walk(&mut target, depth + 1, see);
            }
            return;
        }
        let Some(object) = schema.object() else { return };
        if let Some(properties) = object.get("properties").and_then(Value::as_object) {
            let start = schema.pointer.push("properties");
            for (name, value) in properties {
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
                let before = schema.pointer.push(name);
                if see(name, value, &schema.pointer) == Go::Stop {
                    self.left = 0;
                }
                self.inside(schema, value, depth, see);
                schema.pointer.back(before);
            }
            schema.pointer.back(start);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = object.get(key) {
                let before = schema.pointer.push(key);
                self.inside(schema, inner, depth, see);
                schema.pointer.back(before);
            }
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let Some(branches) = object.get(key).and_then(Value::as_array) else {
                continue;
            };
            let start = schema.pointer.push(key);
            for (index, value) in branches.iter().take(64).enumerate() {
                let before = schema.pointer.push_index(index);
                self.inside(schema, value, depth, see);
                schema.pointer.back(before);
            }
            schema.pointer.back(start);
        }
    }

    /// Goes on with a value at the place where the walk stands.
    fn inside(&mut self, at: &mut Located<'d>, value: &'d Value, depth: usize, see: See<'_, 'd>) {
        let outer = std::mem::replace(&mut at.value, value);
        self.walk(at, depth + 1, see);
        at.value = outer;
    }
}
