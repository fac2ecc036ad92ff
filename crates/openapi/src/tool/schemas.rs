//! The two schemas of a tool: assembled from converted parts, then held to the limits of size and cost.

use model::{Object, Value};
use serde_json::json;

use super::bounds::{Originals, bounded, values_fit};
use super::draft::Draft;
use super::possible;
use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::document::Document;
use crate::expansion;
use crate::length::json_length;
use crate::plan::ArgumentPlace;
use crate::pointer::Pointer;
use crate::projection::Projection;
use crate::prose;
use crate::reference::Located;
use crate::response;
use crate::schema::{Converter, Direction, compile, sharing};
use crate::shape::{self, Shape, Work};
use crate::text::excerpt;

/// How many times larger than a tool's schema an answer's may be before it is projected.
const PROJECTED_FACTOR: usize = 16;

/// What both schemas are made from.
pub(super) struct SchemaSite<'d, 's> {
    pub(super) document: &'d Document,
    pub(super) operation: &'s Located<'d>,
    pub(super) bytes_max: usize,
    pub(super) input_bytes_max: usize,
    pub(super) output_bytes_max: usize,
    pub(super) compile: bool,
}

/// How often an input is made anew with less of it: once with short texts, then each time with half as much before
/// fields are left out.
const TRIES_MAX: u32 = 7;

/// The longest text in a schema that is made to be short, in bytes.
const TERSE_BYTES_MAX: usize = 120;

/// Beyond this, in bytes, texts of an input are short, whatever its budget is: nobody reads a page on each of a hundred fields.
const WORDY_BYTES_MAX: usize = 4 << 10;

/// The input schema with its length in bytes. Where it is too large, optional fields are left out of it, farthest first, and of `drafts`.
pub(super) fn input_schema<'d>(
    site: &SchemaSite<'d, '_>,
    drafts: &mut Vec<Draft<'d>>,
    body_is_sent: bool,
    findings: &mut Findings,
) -> Option<(Value, usize)> {
    // The first tries fold nothing away.
    let mut soft = usize::MAX;
    for turn in 0..TRIES_MAX {
        let is_last = turn + 1 == TRIES_MAX;
        let mut own = Findings::default();
        // Words go first: a model can do without some of them, and not without a field.
        let words_max = match turn {
            0 => None,
            1..=3 => Some(TERSE_BYTES_MAX),
            _ => Some(0),
        };
        let (root, folded, originals) = assembled(site, drafts, (body_is_sent, soft, words_max), &mut own);
        soft = if turn == 0 {
            soft
        } else {
            soft.min(site.input_bytes_max.saturating_mul(2)) / 2
        };
        let length = if own.is_blocked() { 0 } else { json_length(&root) };
        let bytes_max = match turn {
            0 => site.input_bytes_max.min(WORDY_BYTES_MAX),
            _ => site.input_bytes_max,
        };
        let is_large = own.is_only(BlockerCause::SchemaOverBudget) || length > bytes_max;
        if is_large && !is_last {
            continue;
        }
        if words_max.is_some() {
            own.note(
                NoteKind::SchemaTerse,
                &site.operation.pointer,
                "texts in the schema were cut short or left out, because it would be too large with them",
            );
        }
        let is_offered = |draft: &Draft<'_>| {
            draft.injected || root.get("properties").and_then(|p| p.get(&draft.name)).is_some()
        };
        if folded > 0 {
            let names = drafts
                .iter()
                .filter(|draft| !is_offered(draft))
                .map(|draft| draft.name.as_str());
            own.note(
                NoteKind::SchemaFolded,
                &site.operation.pointer,
                format!(
                    "optional fields were left out, because the schema would be too large with them{}",
                    listed(names)
                ),
            );
        }
        values_fit(&root, drafts, &originals, &mut own);
        findings.take(own);
        drafts.retain(is_offered);
        if !findings.is_blocked()
            && let Some(name) = possible::refused(&root)
        {
            findings.block(Blocker::new(
                BlockerCause::SchemaImpossible,
                &site.operation.pointer,
                format!(
                    "the field `{}` is required and refused, so no call fits",
                    excerpt(&name)
                ),
                "declare the field, or do not require it",
            ));
        }
        return sound(root, length, site, findings);
    }
    None
}

/// ": the arguments `a`, `b`", or nothing where fields deeper inside were left out only.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(": the arguments {}", names.join(", "))
    }
}

fn assembled<'d>(
    site: &SchemaSite<'d, '_>,
    drafts: &[Draft<'d>],
    (body_is_sent, soft, words_max): (bool, usize, Option<usize>),
    findings: &mut Findings,
) -> (Value, usize, Originals) {
    let mut originals = Originals::new();
    // Bounds are judged while the converter holds the findings.
    let mut misfits = Findings::default();
    let work = &mut Work::new();
    let converter = Converter::new(
        site.document,
        Direction::Input,
        &site.operation.pointer,
        // An estimate that is too high must not refuse what fits; `sound` measures.
        site.bytes_max.saturating_mul(2),
        work,
        findings,
    );
    let mut converter = match words_max {
        Some(words_max) => converter.terse(words_max),
        None => converter,
    };
    let mut properties = Object::new();
    let mut required = Vec::new();
    for draft in drafts.iter().filter(|draft| !draft.injected) {
        let schema = match (&draft.fixed, &draft.schema) {
            (Some(fixed), _) => fixed.clone(),
            (None, Some(schema)) => converter.convert(schema),
            (None, None) => json!({}),
        };
        let schema = if draft.may_be_empty {
            json!({"anyOf": [schema, {"const": ""}]})
        } else {
            schema
        };
        let schema = bounded(
            described(schema, draft, words_max),
            draft,
            &mut originals,
            &mut misfits,
        );
        properties.insert(draft.name.clone(), schema);
        if draft.required && (draft.place != ArgumentPlace::Field || body_is_sent) {
            required.push(Value::from(draft.name.as_str()));
        }
    }
    let mut root = Object::new();
    root.insert("type".to_owned(), Value::from("object"));
    // Strict readers refuse an object without it.
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    let together = together(drafts, body_is_sent);
    let is_together = !together.is_empty();
    if is_together {
        root.insert("dependentRequired".to_owned(), Value::Object(together));
    }
    root.insert("additionalProperties".to_owned(), Value::Bool(false));
    // A body that is one argument, and a field that a body must have, are not what is left out.
    let keep = |name: &str| {
        drafts.iter().any(|draft| {
            draft.name == name
                && (draft.required || draft.place == ArgumentPlace::Body || draft.bounds.is_some())
        })
    };
    let folded = converter.finish(&mut root, soft, &keep);
    sharing::share(&mut root);
    if is_together {
        findings.note(
            NoteKind::BodyOptional,
            &site.operation.pointer.child("requestBody"),
            "the body may be left out, but has required fields: they are required once one field is given",
        );
    }
    findings.take(misfits);
    (Value::Object(root), folded, originals)
}

/// The schema of a parameter with what the parameter says beside it.
fn described(mut schema: Value, draft: &Draft<'_>, words_max: Option<usize>) -> Value {
    if let Some(object) = schema.as_object_mut() {
        if let Some(text) = draft
            .description
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
        {
            let spoken = prose::spoken(text);
            let cleaned = prose::clean(&spoken);
            let kept = match words_max {
                Some(max) => prose::cut(&cleaned, max).unwrap_or(&cleaned),
                None => &cleaned,
            };
            if kept.trim().is_empty() {
                object.shift_remove("description");
            } else {
                object.insert("description".to_owned(), Value::String(kept.to_owned()));
            }
        }
        if draft.is_deprecated {
            object.insert("deprecated".to_owned(), Value::Bool(true));
        }
    }
    schema
}

/// For a body that may be left out: each field asks for the required ones.
fn together(drafts: &[Draft<'_>], body_is_sent: bool) -> Object {
    let fields = || drafts.iter().filter(|draft| draft.place == ArgumentPlace::Field);
    let required: Vec<&str> = fields()
        .filter(|draft| draft.required)
        .map(|draft| draft.name.as_str())
        .collect();
    if body_is_sent || required.is_empty() {
        return Object::new();
    }
    fields()
        .map(|draft| {
            let others = required
                .iter()
                .copied()
                .filter(|name| *name != draft.name)
                .map(Value::from);
            (draft.name.clone(), others.collect::<Value>())
        })
        .filter(|(_, others)| others.as_array().is_some_and(|others| !others.is_empty()))
        .collect()
}

/// The last look at a finished schema: its size, its cost, and whether the gateway's validator takes it.
///
/// `length`: that of the schema, in bytes, where nothing is blocked.
fn sound(
    schema: Value,
    length: usize,
    site: &SchemaSite<'_, '_>,
    findings: &mut Findings,
) -> Option<(Value, usize)> {
    if findings.is_blocked() {
        return None;
    }
    let (cause, text, clears) = if length > site.bytes_max {
        (
            BlockerCause::SchemaOverBudget,
            format!(
                "the schema has {length} bytes; a tool may have {}",
                site.bytes_max
            ),
            "offer a smaller operation, or raise the limit",
        )
    } else if let Err(fault) = expansion::check(&schema) {
        let cause = match fault {
            expansion::ExpansionFault::Cycle(_) => BlockerCause::ReferenceCyclic,
            expansion::ExpansionFault::Wide => BlockerCause::SchemaOverBudget,
            expansion::ExpansionFault::Dangling(_) => BlockerCause::ReferenceUnresolved,
        };
        (
            cause,
            fault.to_string(),
            "simplify the schemas that refer to each other",
        )
    } else if site.compile
        && let Err(fault) = compiles(&schema)
    {
        (BlockerCause::SchemaMalformed, fault, "correct the schema")
    } else {
        return Some((schema, length));
    };
    findings.block(Blocker::new(cause, &site.operation.pointer, text, clears));
    None
}

fn compiles(schema: &Value) -> Result<(), String> {
    match compile(schema) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "{} at `{}` of the schema",
            excerpt(&error.to_string()),
            error.instance_path()
        )),
    }
}

/// The output schema with its length in bytes, or `None` and a note that says why. Nothing about an answer blocks a tool.
pub(super) fn output_schema<'d>(
    site: &SchemaSite<'d, '_>,
    success: &response::Success<'d>,
    returns: Option<&Projection>,
    findings: &mut Findings,
) -> Option<(Value, usize)> {
    let mut own = Findings::default();
    let (place, reason) = match output(site, success, (returns, TERSE_BYTES_MAX), &mut own) {
        // Which fields there are is worth more to a reader than a sentence on each.
        Ok((_, length)) if returns.is_none() && length > site.output_bytes_max => {
            let made = output(site, success, (returns, 0), findings).ok()?;
            findings.note(
                NoteKind::SchemaTerse,
                &site.operation.pointer.child("responses"),
                "texts in the schema of the answer were left out, because it would be too large with them",
            );
            return Some(made);
        }
        Ok(schema) => {
            findings.take(own);
            return Some(schema);
        }
        Err(why) => why,
    };
    findings.note(
        NoteKind::OutputLeftOut,
        &place,
        format!("the tool has no output schema: {reason}"),
    );
    // What is kept is known even where nothing is known about the answer.
    let known = returns.and_then(|returns| returns.output_schema_of(&Value::Bool(true)))?;
    let known = if success.may_be_empty {
        or_empty(known)
    } else {
        known
    };
    let length = json_length(&known);
    Some((known, length))
}

fn output<'d>(
    site: &SchemaSite<'d, '_>,
    success: &response::Success<'d>,
    (returns, words_max): (Option<&Projection>, usize),
    findings: &mut Findings,
) -> Result<(Value, usize), (Pointer, String)> {
    let schema = match &success.schema {
        Ok(schema) => schema,
        Err((place, reason)) => return Err((place.clone(), reason.clone())),
    };
    let resolver = site.document.resolver();
    let mut work = Work::new();
    if returns.is_none() && shape::of(resolver, &mut work, schema.value) != Shape::OBJECT {
        let object = schema.object();
        let is_object =
            object.is_some_and(|object| object.contains_key("properties") && !object.contains_key("type"));
        if !is_object {
            return Err((
                schema.pointer.clone(),
                "the answer is not only an object".to_owned(),
            ));
        }
    }
    let bytes_max = match returns {
        Some(_) => site.bytes_max.saturating_mul(PROJECTED_FACTOR),
        None => site.bytes_max,
    };
    // Blockers of an answer's schema are no blockers of the tool: they are the reason why it has none.
    let mut own = Findings::default();
    let mut converter = Converter::new(
        site.document,
        Direction::Output,
        &schema.pointer,
        bytes_max,
        &mut work,
        &mut own,
    )
    .terse(words_max);
    let soft = match returns {
        Some(_) => bytes_max,
        None => site.output_bytes_max.min(bytes_max),
    };
    let mut root = match converter.convert(schema) {
        Value::Object(mut object) => {
            if returns.is_none() {
                object.insert("type".to_owned(), Value::from("object"));
            }
            let folded = converter.finish(&mut object, soft, &|_| false);
            sharing::share(&mut object);
            if folded > 0 {
                own.note(
                    NoteKind::OutputFolded,
                    &schema.pointer,
                    format!("the answer is described no deeper than {soft} bytes"),
                );
            }
            Value::Object(object)
        }
        other => other,
    };
    if !own.is_blocked()
        && let Some(returns) = returns
    {
        root = returns.output_schema_of(&root).ok_or_else(|| {
            (
                schema.pointer.clone(),
                "the schema of the kept fields is too large".to_owned(),
            )
        })?;
    }
    if success.may_be_empty && !own.is_blocked() {
        own.note(
            NoteKind::OutputEmpty,
            &schema.pointer,
            "a success can be without a body, which is told as an empty object",
        );
        root = or_empty(root);
    }
    let length = json_length(&root);
    let made = sound(root, length, site, &mut own);
    let (blockers, notes) = own.into_parts();
    match (made, blockers.into_iter().next()) {
        (Some(made), None) => {
            for note in notes {
                findings.keep(note);
            }
            Ok(made)
        }
        (_, Some(blocker)) => Err((
            schema.pointer.clone(),
            format!("{} ({})", blocker.text, blocker.cause),
        )),
        (None, None) => Err((schema.pointer.clone(), "it cannot be read".to_owned())),
    }
}

/// The schema, or an empty object.
fn or_empty(root: Value) -> Value {
    let Value::Object(mut object) = root else {
        return root;
    };
    const ASKS: [&str; 7] = [
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "minProperties",
        "if",
    ];
    if !ASKS.iter().any(|keyword| object.contains_key(*keyword)) {
        return Value::Object(object);
    }
    let definitions = object.shift_remove("$defs");
    let mut whole = Object::new();
    whole.insert("type".to_owned(), Value::from("object"));
    whole.insert("anyOf".to_owned(), json!([object, { "maxProperties": 0 }]));
    if let Some(definitions) = definitions {
        whole.insert("$defs".to_owned(), definitions);
    }
    Value::Object(whole)
}
