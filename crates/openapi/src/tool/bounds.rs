//! What the operator says about single arguments: other names and words, fewer values, arguments that nobody gives.
//!
//! A bound only ever narrows what the document allows. One that would widen it, or that does not fit the argument, is a
//! blocker that names the argument.

use std::collections::BTreeMap;

use model::{Object, Value};
use serde_json::{Number, json};

use super::draft::Draft;
use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::plan::ArgumentPlace;
use crate::pointer::Pointer;
use crate::schema::compile;
use crate::text::excerpt;

/// What the operator says about one argument.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentBounds {
    /// The name that callers use, instead of the document's.
    pub rename: Option<String>,
    /// What models read of it, instead of the document's description.
    pub description: Option<String>,
    /// In what it is counted; stands behind the description.
    pub unit: Option<String>,
    /// Whether a call must give it, although the document lets it be left out.
    pub required: bool,
    /// Whether no call can give it. The argument is never sent then.
    pub hidden: bool,
    /// The only values that it may have; each one that the document allows.
    pub values: Option<Vec<Value>>,
    /// The smallest number.
    pub minimum: Option<Number>,
    /// The largest number.
    pub maximum: Option<Number>,
    /// The longest text, in characters.
    pub length_max: Option<u64>,
    /// The longest list.
    pub items_max: Option<u64>,
}

/// Schemas as the document has them, of the arguments that were given fewer values.
pub(super) type Originals = BTreeMap<String, Value>;

/// Applies what can be applied before there are schemas: names, and arguments that are left out.
pub(super) fn apply(
    drafts: &mut Vec<Draft<'_>>,
    bounds: &BTreeMap<String, ArgumentBounds>,
    operation: &Pointer,
    findings: &mut Findings,
) {
    let known: Vec<String> = drafts.iter().map(|draft| draft.name.clone()).collect();
    for (name, bounds) in bounds {
        let Some(draft) = drafts
            .iter_mut()
            .find(|draft| draft.bounds.is_none() && !draft.is_renamed && draft.name == *name)
        else {
            findings.block(unknown(name, &known, operation));
            continue;
        };
        if bounds.hidden && draft.required {
            let text = format!(
                "the argument `{}` is required and cannot be hidden",
                excerpt(name)
            );
            let clears = "give it by `fixed` or `from`, or let callers give it";
            findings.block(blocker(&draft.pointer, text, clears).of_argument(name));
        } else if bounds.hidden {
            findings.note(
                NoteKind::ArgumentHidden,
                &draft.pointer,
                format!("the argument `{}` was left out by its bounds", excerpt(name)),
            );
        }
        draft.required |= bounds.required;
        draft.is_asked_for = bounds.required;
        if let Some(rename) = &bounds.rename {
            draft.is_renamed = true;
            draft.name.clone_from(rename);
        }
        draft.bounds = Some((name.clone(), bounds.clone()));
    }
    drafts.retain(|draft| draft.bounds.as_ref().is_none_or(|(_, bounds)| !bounds.hidden));
    for draft in drafts.iter() {
        let twin = drafts.iter().filter(|other| other.name == draft.name).count() > 1;
        if let Some((name, _)) = draft.bounds.as_ref().filter(|_| twin && draft.is_renamed) {
            let text = format!("two arguments would be called `{}`", excerpt(&draft.name));
            findings.block(
                Blocker::new(
                    BlockerCause::ArgumentCollision,
                    &draft.pointer,
                    text,
                    "rename one of them to something else",
                )
                .of_argument(name),
            );
        }
    }
}

/// The blocker for a name that no argument has.
pub(super) fn unknown(name: &str, known: &[String], operation: &Pointer) -> Blocker {
    let near = known
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(known, name), known))
        .filter(|(likeness, _)| *likeness > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let listed: Vec<String> = known.iter().take(16).map(|known| format!("`{known}`")).collect();
    let clears = match near {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None if listed.is_empty() => "the operation has no arguments".to_owned(),
        None => format!("it has {}", listed.join(", ")),
    };
    Blocker::new(
        BlockerCause::ArgumentUnknown,
        operation,
        format!("the operation has no argument `{}`", excerpt(name)),
        clears,
    )
    .of_argument(name)
}

fn blocker(pointer: &Pointer, text: String, clears: &str) -> Blocker {
    Blocker::new(BlockerCause::ArgumentBounds, pointer, text, clears)
}

/// The schema of an argument within its bounds.
pub(super) fn bounded(
    schema: Value,
    draft: &Draft<'_>,
    originals: &mut Originals,
    findings: &mut Findings,
) -> Value {
    let Some((name, bounds)) = &draft.bounds else {
        return schema;
    };
    let mut object = match schema {
        Value::Object(object) => object,
        // `true` and `{}` say the same.
        _ => Object::new(),
    };
    if let Some(values) = &bounds.values {
        originals.insert(draft.name.clone(), Value::Object(object.clone()));
        object.insert("enum".to_owned(), Value::Array(values.clone()));
    }
    let mut narrow = |keyword: &str, kind: &[&str], value: Option<Number>, is_upper: bool| {
        let Some(value) = value else { return };
        if let Some(fault) = misfit(&object, keyword, kind, &value, is_upper) {
            findings.block(
                blocker(
                    &draft.pointer,
                    fault,
                    "a bound can only narrow what the document allows",
                )
                .of_argument(name),
            );
        }
        object.insert(keyword.to_owned(), Value::Number(value));
    };
    let numbers = &["number", "integer"];
    narrow("minimum", numbers, bounds.minimum.clone(), false);
    narrow("maximum", numbers, bounds.maximum.clone(), true);
    narrow(
        "maxLength",
        &["string"],
        bounds.length_max.map(Number::from),
        true,
    );
    narrow("maxItems", &["array"], bounds.items_max.map(Number::from), true);
    words(&mut object, bounds);
    Value::Object(object)
}

/// Why a keyword does not fit a schema: another type, or a bound that is already narrower.
fn misfit(object: &Object, keyword: &str, kinds: &[&str], value: &Number, is_upper: bool) -> Option<String> {
    let is_of = |kind: &Value| kind.as_str().is_some_and(|kind| kinds.contains(&kind));
    let fits = match object.get("type") {
        Some(Value::Array(all)) => all.iter().any(is_of),
        Some(kind) => is_of(kind),
        None => true,
    };
    if !fits {
        return Some(format!("`{keyword}` does not fit the type of the argument"));
    }
    let old = object.get(keyword).and_then(Value::as_f64)?;
    let new = value.as_f64()?;
    let is_wider = if is_upper { new > old } else { new < old };
    is_wider.then(|| format!("`{keyword}` of {value} is wider than that of the document, {old}"))
}

fn words(object: &mut Object, bounds: &ArgumentBounds) {
    if let Some(description) = &bounds.description {
        object.insert("description".to_owned(), Value::from(description.as_str()));
    }
    if let Some(unit) = &bounds.unit {
        let text = match object.get("description").and_then(Value::as_str) {
            Some(text) => format!("{} Unit: {unit}.", text.trim_end()),
            None => format!("Unit: {unit}."),
        };
        object.insert("description".to_owned(), Value::String(text));
    }
}

/// Whether the document allows every value that the operator chose.
pub(super) fn values_fit(root: &Value, drafts: &[Draft<'_>], originals: &Originals, findings: &mut Findings) {
    for (draft, original) in drafts
        .iter()
        .filter_map(|draft| Some((draft, originals.get(&draft.name)?)))
    {
        let Some((
            name,
            ArgumentBounds {
                values: Some(values), ..
            },
        )) = &draft.bounds
        else {
            continue;
        };
        let mut alone = json!({ "allOf": [original] });
        if let (Some(object), Some(definitions)) = (alone.as_object_mut(), root.get("$defs")) {
            object.insert("$defs".to_owned(), definitions.clone());
        }
        // What cannot be compiled has a blocker of its own.
        let Ok(validator) = compile(&alone) else { continue };
        for value in values.iter().filter(|value| !validator.is_valid(value)) {
            let text = format!(
                "the document does not allow the value `{}`",
                excerpt(&shown(value))
            );
            findings.block(blocker(&draft.pointer, text, "leave it out of `values`").of_argument(name));
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether the operator's bounds make a field of a body one that every call gives.
pub(super) fn asks_for_a_field(drafts: &[Draft<'_>]) -> bool {
    drafts
        .iter()
        .any(|draft| draft.is_asked_for && draft.place == ArgumentPlace::Field)
}
