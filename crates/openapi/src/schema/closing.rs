//! Closing of objects: which fields an input takes, and which it hides, seen through compositions.
//!
//! An object that declares fields refuses the others (mass assignment). Where it is composed of several schemas, only
//! the whole can refuse, so its parts stay open and the whole is closed by `unevaluatedProperties`.
//! Two parts that both declare one field that is an object close it twice: such a value is refused, never let through.

use std::collections::HashSet;

use model::{Object, Value};

use super::{Converter, Direction, Mode, Site};
use crate::blocker::NoteKind;
use crate::pointer::Pointer;
use crate::reference::reference_of;
use crate::shape::is_flagged;
use crate::text::excerpt;

/// How an object is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// Not here: the document says itself, or another part of the composition does.
    No,
    /// By `additionalProperties`.
    Additional,
    /// By `unevaluatedProperties`, which sees through a composition.
    Unevaluated,
}

/// The fields that a composition names.
#[derive(Default)]
struct Names<'d> {
    declared: HashSet<&'d str>,
    /// Those that every value must have.
    required: Vec<&'d str>,
    /// Whether the document itself says what other fields are.
    takes_others: bool,
}

/// Keywords that apply other schemas to the same value.
pub(crate) const COMPOSITION: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "$ref",
];

/// Whether the document itself says what undeclared fields are.
pub(super) fn is_open_by_word(object: &Object) -> bool {
    object.contains_key("additionalProperties") || object.contains_key("unevaluatedProperties")
}

impl<'d> Converter<'d, '_> {
    pub(super) fn closing(&mut self, object: &'d Object, mode: Mode) -> Closing {
        if mode != Mode::Closed || is_open_by_word(object) {
            return Closing::No;
        }
        let own = object.contains_key("properties");
        let is_composed = COMPOSITION.iter().any(|keyword| object.contains_key(*keyword));
        match (own, is_composed) {
            (false, false) => Closing::No,
            (true, false) => Closing::Additional,
            (true, true) => Closing::Unevaluated,
            (false, true) => {
                let parts = object
                    .get("allOf")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                let reference = object
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|reference| self.resolver.value(reference));
                let declares = parts.chain(reference).any(|part| self.declares(part, 0));
                if declares {
                    Closing::Unevaluated
                } else {
                    Closing::No
                }
            }
        }
    }

    /// Whether a part of a composition declares fields.
    fn declares(&mut self, schema: &'d Value, depth: usize) -> bool {
        if depth > 32 || !self.work.step() {
            return false;
        }
        let Some(object) = schema.as_object() else {
            return false;
        };
        if object.contains_key("properties") {
            return true;
        }
        let reference = reference_of(schema).and_then(|reference| self.resolver.value(reference));
        let members = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword)?.as_array())
            .flatten();
        members
            .chain(reference)
            .any(|member| self.declares(member, depth + 1))
    }

    /// Fields that must be given and that nothing declares. The document takes anything for them, so the closed object has to, or
    /// nothing would fit it.
    pub(super) fn declare_what_is_required(
        &mut self,
        at: &Pointer,
        out: &mut Object,
        object: &'d Object,
        hidden: &HashSet<&'d str>,
    ) {
        let mut names = Names::default();
        self.collect_names(object, true, &mut names, 0);
        if names.takes_others {
            return;
        }
        for name in names.required {
            if names.declared.contains(name) || hidden.contains(name) {
                continue;
            }
            let properties = out
                .entry("properties")
                .or_insert_with(|| Value::Object(Object::new()));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(name.to_owned(), Value::Object(Object::new()));
            }
            self.charge(name.len() + 8);
            self.note(
                NoteKind::SchemaFieldUndeclared,
                at,
                format!(
                    "the field `{}` is required and not declared; it takes anything",
                    excerpt(name)
                ),
            );
        }
    }

    fn collect_names(&mut self, object: &'d Object, applies: bool, names: &mut Names<'d>, depth: usize) {
        if depth > 32 || !self.work.step() {
            // What was not looked at may declare everything.
            names.takes_others = true;
            return;
        }
        let fields = object.get("properties").and_then(Value::as_object);
        names
            .declared
            .extend(fields.into_iter().flat_map(Object::keys).map(String::as_str));
        names.takes_others |= is_open_by_word(object) || object.contains_key("patternProperties");
        if applies {
            let required = object.get("required").and_then(Value::as_array);
            names
                .required
                .extend(required.into_iter().flatten().filter_map(Value::as_str));
        }
        let reference = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.resolver.value(reference));
        let list = |keyword: &str| {
            object
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        for part in list("allOf").chain(reference).filter_map(Value::as_object) {
            self.collect_names(part, applies, names, depth + 1);
        }
        let conditions = ["then", "else"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword));
        let dependent = object.get("dependentSchemas").and_then(Value::as_object);
        let others = list("anyOf")
            .chain(list("oneOf"))
            .chain(conditions)
            .chain(dependent.into_iter().flat_map(Object::values));
        for part in others.filter_map(Value::as_object) {
            self.collect_names(part, false, names, depth + 1);
        }
    }

    /// The fields that do not go this way: those of the composition around, and those that this schema or a part of it
    /// marks.
    pub(super) fn hidden(&mut self, object: &'d Object, site: &Site<'_, 'd>) -> HashSet<&'d str> {
        let mut hidden = site.hidden.clone();
        let is_relevant = ["properties", "allOf", "anyOf", "oneOf", "$ref"]
            .iter()
            .any(|keyword| object.contains_key(*keyword));
        // A condition is kept as it is, except that an output is all conditions.
        if is_relevant && (site.mode != Mode::Kept || self.direction == Direction::Output) {
            self.collect_hidden(object, &mut hidden, 0);
        }
        hidden
    }

    fn collect_hidden(&mut self, object: &'d Object, hidden: &mut HashSet<&'d str>, depth: usize) {
        let flag = match self.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        if depth > 32 || !self.work.step() {
            return;
        }
        for (name, property) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if is_flagged(self.resolver, self.work, property, flag) {
                hidden.insert(name);
            }
        }
        let reference = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.resolver.value(reference));
        let members = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword)?.as_array())
            .flatten();
        for member in members.chain(reference).filter_map(Value::as_object) {
            self.collect_hidden(member, hidden, depth + 1);
        }
    }
}
