//! References between schemas: each schema that is referred to becomes one entry of `$defs`, under a stable name.

use model::{Digest, Object, Value};

use super::closing::COMPOSITION;
use super::{Converter, Mode};
use crate::blocker::NoteKind;
use crate::document::Family;
use crate::pointer::Pointer;
use crate::reference::{Located, ReferenceFault, Resolver, reference_of};
use crate::text::excerpt;

impl<'d> Converter<'d, '_> {
    pub(super) fn pure_reference(
        &mut self,
        at: &mut Pointer,
        object: &'d Object,
        text: &str,
        mode: Mode,
    ) -> Value {
        let mut out = Object::new();
        let before = at.push("$ref");
        let target = self.reference(at, text, mode);
        at.back(before);
        let Some(target) = target else {
            return Value::Bool(false);
        };
        out.insert("$ref".to_owned(), Value::String(target));
        if self.family == Family::V30 {
            if object.keys().any(|key| says_something(key)) {
                self.note(
                    NoteKind::SchemaSiblingsIgnored,
                    at,
                    "what stands beside `$ref` has no effect in version 3.0 and was left out",
                );
            }
        } else if let Some(description) = object.get("description") {
            self.prose(at, &mut out, "description", description);
        }
        Value::Object(out)
    }

    /// The `$defs` reference for what `text` names. Chains are followed here, so that no definition is only a
    /// reference: two that name each other would never end in a validator.
    pub(super) fn reference(&mut self, at: &Pointer, text: &str, mode: Mode) -> Option<String> {
        let found = self
            .resolver
            .target(text)
            .and_then(|target| settle(self.resolver, self.family, target));
        let target = match found {
            Ok(target) => target,
            Err(fault) => return self.absent(at, &fault),
        };
        // What holds no other schema is the same in every mode.
        let mode = if holds_schemas(target.value) {
            mode
        } else {
            self.start()
        };
        let place = target.pointer.clone();
        let name = self.name_of(target, mode);
        let reference = format!("#/$defs/{name}");
        self.charge(reference.len());
        self.met.references.push((place, mode, name));
        Some(reference)
    }

    /// The name of a place in `$defs`. One that is new is converted later.
    pub(super) fn name_of(&mut self, target: Located<'d>, mode: Mode) -> String {
        let key = (target.pointer.clone(), mode);
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let name = self.definition_name(&target.pointer, mode);
        self.names.insert(key, name.clone());
        self.queue.push_back((name.clone(), target, mode));
        name
    }

    /// The component's own name where it is one, so that it does not depend on the order in which schemas are met.
    fn definition_name(&mut self, pointer: &Pointer, mode: Mode) -> String {
        let last = pointer.last().unwrap_or_default();
        let is_component = pointer.as_str().strip_prefix("#/components/schemas/") == Some(last.as_str());
        let is_plain = is_component && mode == self.start() && crate::name::is_legal(&last);
        let base = if is_plain {
            last
        } else {
            let word: String = last
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                .take(40)
                .collect();
            let mode = match mode {
                Mode::Closed => "closed",
                Mode::Part => "part",
                Mode::Kept => "kept",
            };
            let digest = Digest::of(
                "openapi-definition-v1",
                &[mode.as_bytes(), b" ", pointer.as_str().as_bytes()],
            );
            format!("{word}.{mode}.{}", digest.short())
        };
        // Only a document that is made to collide needs a second try.
        let mut name = base.clone();
        let mut turn = 1_usize;
        while !self.taken.insert(name.clone()) {
            turn += 1;
            name = format!("{base}.{turn}");
        }
        name
    }
}

/// Follows a schema that is nothing but a reference to the one that says something.
///
/// In version 3.0 what stands beside `$ref` does not count, so any reference is nothing else.
pub(crate) fn settle<'d>(
    resolver: Resolver<'d>,
    family: Family,
    start: Located<'d>,
) -> Result<Located<'d>, ReferenceFault> {
    if family == Family::V30 {
        return resolver.follow(start);
    }
    let mut here = start;
    let mut visited: Vec<Pointer> = Vec::new();
    while let Some(reference) = reference_of(here.value) {
        if here
            .object()
            .is_some_and(|object| object.keys().any(|key| says_something(key)))
        {
            break;
        }
        if visited.contains(&here.pointer) || visited.len() >= 64 {
            return Err(ReferenceFault::Cyclic(excerpt(reference)));
        }
        visited.push(here.pointer.clone());
        here = resolver.target(reference)?;
    }
    Ok(here)
}

/// Whether a schema is made of others, so that how it is closed matters.
fn holds_schemas(schema: &Value) -> bool {
    const INSIDE: [&str; 11] = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "dependencies",
    ];
    schema.as_object().is_some_and(|object| {
        object
            .keys()
            .any(|key| INSIDE.contains(&key.as_str()) || COMPOSITION.contains(&key.as_str()))
    })
}

/// Whether a keyword beside `$ref` changes which values fit.
pub(super) fn says_something(keyword: &str) -> bool {
    !keyword.starts_with("x-")
        && !matches!(
            keyword,
            "$ref"
                | "description"
                | "summary"
                | "title"
                | "default"
                | "example"
                | "examples"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "externalDocs"
                | "$comment"
                | "$defs"
                | "definitions"
        )
}
