//! Discriminators: each alternative says which value of the field chooses it.
//!
//! OpenAPI says it beside the alternatives, JSON Schema has no word for it; so each alternative asks for its own value.
//! Only inputs: an answer that leaves the field out is still an answer. Source: OpenAPI 3.1.1 section 4.8.25.

use model::{Object, Value};
use serde_json::json;

use super::{Converter, Direction, Mode};
use crate::blocker::NoteKind;
use crate::pointer::Pointer;
use crate::reference::reference_of;

impl<'d> Converter<'d, '_> {
    pub(super) fn discriminate(
        &mut self,
        at: &Pointer,
        out: &mut Object,
        object: &'d Object,
        (keyword, value): (&str, &'d Value),
        mode: Mode,
    ) {
        if self.direction == Direction::Output || mode == Mode::Kept {
            return;
        }
        let Some(discriminator) = object.get("discriminator") else {
            return;
        };
        let Some(field) = discriminator.get("propertyName").and_then(Value::as_str) else {
            return;
        };
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let alternatives = value.as_array().into_iter().flatten();
        let converted = out.get_mut(keyword).and_then(Value::as_array_mut);
        let mut unnamed = false;
        for (alternative, converted) in alternatives.zip(converted.into_iter().flatten()) {
            // Null beside the alternatives has no field.
            let Some(reference) = reference_of(alternative) else {
                unnamed = true;
                continue;
            };
            let Some(place) = self.resolver.target(reference).ok().map(|target| target.pointer) else {
                continue;
            };
            let mut tags: Vec<Value> = mapping
                .into_iter()
                .flatten()
                .filter(|(_, target)| target.as_str().is_some_and(|target| names(target, &place)))
                .map(|(tag, _)| Value::from(tag.as_str()))
                .collect();
            if tags.is_empty() {
                tags.extend(place.last().map(Value::from));
            }
            let one = match tags.as_slice() {
                [only] => json!({ "const": only }),
                several => json!({ "enum": several }),
            };
            if let Some(converted) = converted.as_object_mut() {
                let mut tagged = Object::new();
                tagged.insert(field.to_owned(), one);
                converted.insert("properties".to_owned(), Value::Object(tagged));
                converted.insert("required".to_owned(), json!([field]));
            }
        }
        self.charge(32);
        if unnamed {
            self.note(
                NoteKind::SchemaKeywordDropped,
                at,
                "an alternative without a name of its own has no value of the discriminator",
            );
        }
    }
}

/// Whether a value of the mapping names a place: a reference, or the bare name of a schema.
fn names(target: &str, place: &Pointer) -> bool {
    let by_reference = target
        .strip_prefix('#')
        .and_then(Pointer::parse)
        .is_some_and(|pointer| pointer == *place);
    by_reference || Pointer::root().child("components").child("schemas").child(target) == *place
}
