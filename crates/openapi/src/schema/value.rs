//! Keywords whose value is no schema: types, bounds, patterns, names, words, with what version 3.0 writes in its own way.

use std::collections::HashSet;

use model::{Object, Value};
use serde_json::Number;

use super::closing::COMPOSITION;
use super::{Converter, Direction};
use crate::blocker::{Blocker, BlockerCause, NoteKind};
use crate::document::Family;
use crate::number::{all_exact, is_exact};
use crate::pointer::Pointer;
use crate::prose;
use crate::text::excerpt;

/// Different patterns in one tool: each is compiled here and again by every gateway.
const PATTERNS_MAX: usize = 256;
/// Patterns that may fail before no more are tried: failing can take long.
const PATTERNS_FAILED_MAX: usize = 16;
/// Examples that a schema keeps, and their length: they help a model, and are text that nobody asked for.
const EXAMPLES_MAX: usize = 3;
const EXAMPLE_BYTES_MAX: usize = 200;

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

impl<'d> Converter<'d, '_> {
    pub(super) fn types(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        let names: Option<Vec<&str>> = match value {
            Value::String(name) => Some(vec![name]),
            Value::Array(names) if !names.is_empty() => names
                .iter()
                // YAML reads an unquoted `null` as nothing, where the name of the type was meant.
                .map(|name| {
                    if name.is_null() {
                        Some("null")
                    } else {
                        name.as_str()
                    }
                })
                .collect(),
            _ => None,
        };
        let Some(mut names) = names.filter(|names| names.iter().all(|name| TYPES.contains(name))) else {
            self.malformed(
                at,
                &format!("`{}` is no type of JSON Schema", excerpt(&value.to_string())),
            );
            return;
        };
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        let types = match names.as_slice() {
            [one] => Value::from(*one),
            many => many.iter().copied().map(Value::from).collect(),
        };
        self.charge(8 * names.len());
        out.insert("type".to_owned(), types);
    }

    pub(super) fn enumeration(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        let Some(values) = value.as_array() else {
            self.malformed(at, "it is not a list");
            return;
        };
        // A caller cannot send, and the gateway does not take, a number that is not exact.
        let exact: Vec<Value> = values.iter().filter(|value| all_exact(value)).cloned().collect();
        if exact.len() < values.len() {
            self.note(
                NoteKind::SchemaNumberDropped,
                at,
                "values beyond 2^53 - 1 were left out of `enum`",
            );
        }
        self.charge(exact.iter().map(size).sum());
        out.insert("enum".to_owned(), Value::Array(exact));
    }

    pub(super) fn constant(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        if all_exact(value) {
            self.copy(out, "const", value);
        } else {
            self.inexact(at, value);
        }
    }

    pub(super) fn annotation(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        if all_exact(value) {
            self.copy(out, keyword, value);
        } else {
            self.note(
                NoteKind::SchemaNumberDropped,
                at,
                format!("`{keyword}` holds a number beyond 2^53 - 1 and was left out"),
            );
        }
    }

    pub(super) fn prose(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        let Some(text) = value.as_str() else {
            self.dropped(at, "it is not a text");
            return;
        };
        // A title of one word is the name of the field once more, or of a class in somebody's program.
        if keyword == "title" && (self.words_max.is_some() || !text.trim().contains(char::is_whitespace)) {
            return;
        }
        let spoken = prose::spoken(text);
        let cleaned = prose::clean(&spoken);
        if cleaned.len() != spoken.len() {
            self.note(
                NoteKind::TextCleaned,
                at,
                "invisible characters or comments were taken out",
            );
        }
        let kept = match self.words_max {
            Some(0) => return,
            Some(max) => prose::cut(&cleaned, max).unwrap_or(&cleaned).to_owned(),
            None => cleaned.into_owned(),
        };
        if kept.trim().is_empty() {
            return;
        }
        self.charge(kept.len() + 2);
        out.insert(keyword.to_owned(), Value::String(kept));
    }

    pub(super) fn examples(&mut self, out: &mut Object, keyword: &str, value: &'d Value) {
        if self.direction == Direction::Output || self.words_max.is_some() || out.contains_key("examples") {
            return;
        }
        let candidates: Vec<&Value> = match (keyword, value) {
            ("example", value) => vec![value],
            (_, Value::Array(values)) => values.iter().collect(),
            _ => Vec::new(),
        };
        let kept: Vec<Value> = candidates
            .into_iter()
            .filter(|value| !value.is_object() && !value.is_array() && !value.is_null())
            .filter(|value| size(value) <= EXAMPLE_BYTES_MAX && all_exact(value))
            .filter(|value| {
                value
                    .as_str()
                    .is_none_or(|text| prose::clean(text).len() == text.len())
            })
            .take(EXAMPLES_MAX)
            .cloned()
            .collect();
        if !kept.is_empty() {
            self.charge(kept.iter().map(size).sum());
            out.insert("examples".to_owned(), Value::Array(kept));
        }
    }

    /// A bound. One that lies beyond every exact number bounds nothing that can be sent or read, and is left out.
    pub(super) fn bound(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        match value {
            // Version 3.0; see `bounds`.
            Value::Bool(_) if keyword.starts_with("exclusive") => {}
            Value::Number(number) if is_exact(number) => self.copy(out, keyword, value),
            Value::Number(number) => {
                let is_upper = keyword.ends_with("aximum");
                if is_upper == is_positive(number) {
                    self.note(
                        NoteKind::SchemaNumberDropped,
                        at,
                        format!("the bound {number} is beyond every number that can be sent; left out"),
                    );
                } else {
                    self.inexact(at, value);
                }
            }
            _ => self.malformed(at, "it is not a number"),
        }
    }

    /// Version 3.0 writes `exclusiveMinimum: true` beside `minimum`. Real documents of 3.1 do too.
    pub(super) fn bounds(&mut self, at: &mut Pointer, out: &mut Object, object: &'d Object) {
        for (exclusive, plain) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            let Some(Value::Bool(is_exclusive)) = object.get(exclusive) else {
                continue;
            };
            if self.family != Family::V30 {
                let before = at.push(exclusive);
                self.note(
                    NoteKind::SchemaDialectMismatch,
                    at,
                    "a bound that is `true` or `false` is of version 3.0; carried over",
                );
                at.back(before);
            }
            // `remove` would reorder; order means nothing, but a stable one reads better.
            if *is_exclusive && let Some(bound) = out.shift_remove(plain) {
                out.insert(exclusive.to_owned(), bound);
            }
        }
    }

    pub(super) fn count(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        let whole = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole_number)),
            _ => None,
        };
        match whole {
            None => self.malformed(at, "it is not a number from 0"),
            Some(count) if is_exact(&Number::from(count)) => {
                self.charge(8);
                out.insert(keyword.to_owned(), Value::from(count));
            }
            Some(_) if keyword.starts_with("max") => self.note(
                NoteKind::SchemaNumberDropped,
                at,
                format!("the bound {value} is beyond every length; left out"),
            ),
            Some(_) => self.inexact(at, value),
        }
    }

    /// Whether a pattern is one, and none too many.
    pub(super) fn takes_pattern(&mut self, pattern: &str) -> bool {
        if let Some(fits) = self.patterns.get(pattern) {
            return *fits;
        }
        let failed = self.patterns.values().filter(|fits| !**fits).count();
        let may_try = self.patterns.len() < PATTERNS_MAX && failed < PATTERNS_FAILED_MAX;
        let fits = may_try && self.document.takes_pattern(pattern);
        self.patterns.insert(pattern.to_owned(), fits);
        fits
    }

    /// Whether a pattern may stay. Of an input it must: one that is left out lets more through.
    pub(super) fn pattern(&mut self, at: &Pointer, pattern: &'d str) -> bool {
        self.met.patterns.push(pattern);
        let fits = self.takes_pattern(pattern);
        if !fits {
            let text = unmatched(pattern);
            match self.direction {
                Direction::Input => self.findings.block(Blocker::new(
                    BlockerCause::SchemaPattern,
                    at,
                    text,
                    "write the pattern without look-around and back references",
                )),
                Direction::Output => {
                    self.note(NoteKind::SchemaPatternDropped, at, format!("{text}; left out"))
                }
            }
        }
        fits
    }

    pub(super) fn required(
        &mut self,
        at: &Pointer,
        out: &mut Object,
        value: &'d Value,
        hidden: &HashSet<&'d str>,
    ) {
        let Some(names) = value.as_array() else {
            if value.is_boolean() {
                self.dropped(at, "a field is required by its parent, not by itself");
            } else {
                self.malformed(at, "it is not a list of names");
            }
            return;
        };
        let names = self.names_of(at, names, hidden);
        if !names.is_empty() {
            out.insert("required".to_owned(), Value::Array(names));
        }
    }

    pub(super) fn dependent_required(
        &mut self,
        at: &Pointer,
        out: &mut Object,
        value: &'d Value,
        hidden: &HashSet<&'d str>,
    ) {
        let Some(dependencies) = value.as_object() else {
            self.malformed(at, "it is not an object");
            return;
        };
        let mut converted = Object::new();
        for (name, names) in dependencies {
            let Some(names) = names.as_array() else {
                self.malformed(at, "it is not a list of names");
                return;
            };
            self.charge(name.len() + 4);
            let names = self.names_of(at, names, hidden);
            converted.insert(name.clone(), Value::Array(names));
        }
        out.insert("dependentRequired".to_owned(), Value::Object(converted));
    }

    fn names_of(&mut self, at: &Pointer, names: &'d [Value], hidden: &HashSet<&'d str>) -> Vec<Value> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for name in names {
            let Some(name) = name.as_str() else {
                self.malformed(at, "it is not a list of names");
                return kept;
            };
            if !hidden.contains(name) && seen.insert(name) {
                self.charge(name.len() + 3);
                kept.push(Value::from(name));
            }
        }
        kept
    }

    /// `nullable: true` of version 3.0. It has an effect only where a type, or a composition, forbids null.
    pub(super) fn nullable(&mut self, at: &mut Pointer, mut out: Object) -> Value {
        if self.family != Family::V30 {
            self.note(
                NoteKind::SchemaDialectMismatch,
                at,
                "`nullable` is of version 3.0; carried over as a type",
            );
        }
        self.charge(24);
        if COMPOSITION.iter().any(|keyword| out.contains_key(*keyword)) || out.contains_key("const") {
            let mut wrapped = Object::new();
            for keyword in ["title", "description", "default", "deprecated"] {
                if let Some(value) = out.shift_remove(keyword) {
                    wrapped.insert(keyword.to_owned(), value);
                }
            }
            let either = serde_json::json!([out, {"type": "null"}]);
            wrapped.insert("anyOf".to_owned(), either);
            return Value::Object(wrapped);
        }
        let null = Value::from("null");
        let has_effect = match out.get_mut("type") {
            Some(Value::Array(types)) => {
                if !types.contains(&null) {
                    types.push(null);
                }
                true
            }
            Some(one) => {
                if *one != null {
                    *one = Value::Array(vec![one.take(), null]);
                }
                true
            }
            None => false,
        };
        let has_effect = match out.get_mut("enum") {
            Some(Value::Array(values)) => {
                if !values.contains(&Value::Null) {
                    values.push(Value::Null);
                }
                true
            }
            _ => has_effect,
        };
        if !has_effect {
            let before = at.push("nullable");
            self.dropped(at, "without a type it has no effect");
            at.back(before);
        }
        Value::Object(out)
    }
}

pub(super) fn unmatched(pattern: &str) -> String {
    format!(
        "the pattern `{}` is none, or cannot be matched in linear time",
        excerpt(pattern)
    )
}

fn is_positive(number: &Number) -> bool {
    number.as_f64().is_some_and(|n| n > 0.0)
}

/// A float that is a whole number which JSON readers hold exactly, as `1.0`.
fn whole_number(n: f64) -> Option<u64> {
    let is_whole = n.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&n);
    is_whole.then(|| format!("{n:.0}").parse().ok()).flatten()
}

/// About how many bytes a value takes in JSON. Never more than twice too low.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(object) => {
            2 + object
                .iter()
                .map(|(key, value)| key.len() + 4 + size(value))
                .sum::<usize>()
        }
    }
}
