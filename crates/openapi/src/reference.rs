//! References: from a `$ref` to the value that it names, inside this document and nowhere else.
//!
//! The resolver never reads a file or a URL: what `split` did not bring into the tree blocks the operations that need it
//! (spec rule BASE-22). Chains are followed with a list of the places visited, so a cycle ends.

use std::collections::HashSet;

use model::{Object, Value};

use crate::blocker::{Blocker, BlockerCause};
use crate::pointer::Pointer;
use crate::split::{Absences, Absent};
use crate::text::excerpt;

/// References followed in one chain. Documents that people write use one or two.
const HOPS_MAX: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Located<'d> {
    pub(crate) pointer: Pointer,
    pub(crate) value: &'d Value,
}

impl<'d> Located<'d> {
    /// The member of this object, where it is an object and has it.
    pub(crate) fn get(&self, key: &str) -> Option<Located<'d>> {
        Some(Located {
            pointer: self.pointer.child(key),
            value: self.value.get(key)?,
        })
    }

    /// The object, where it is one.
    pub(crate) fn object(&self) -> Option<&'d Object> {
        self.value.as_object()
    }
}

/// Why a reference leads nowhere. Each holds the text of the reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReferenceFault {
    /// It names a file or a URL that is no part of the document.
    #[error("the reference `{reference}` leads out of the document{}", because(.absent.as_ref()))]
    External {
        /// The reference.
        reference: String,
        /// Why the file is no part of it, where it was asked for.
        absent: Option<Absent>,
    },
    /// It is no JSON pointer: an anchor, or malformed.
    #[error("the reference `{0}` is no JSON pointer")]
    NotAPointer(String),
    /// Nothing stands there, or the whole document does.
    #[error("the reference `{0}` names nothing that can stand here")]
    Unresolved(String),
    /// It leads back to itself.
    #[error("the reference `{0}` leads back to itself")]
    Cyclic(String),
}

impl ReferenceFault {
    /// The blocker on the operation that needs the reference at `pointer`.
    pub(crate) fn blocker(&self, pointer: &Pointer) -> Blocker {
        let (cause, clears) = match self {
            Self::External { absent, .. } => (
                BlockerCause::ReferenceExternal,
                absent.as_ref().map_or(
                    "bundle the document, so that every reference starts with `#/`",
                    |absent| absent.clears.as_str(),
                ),
            ),
            Self::NotAPointer(_) => (
                BlockerCause::ReferenceUnresolved,
                "write a JSON pointer, as `#/components/schemas/Invoice`",
            ),
            Self::Unresolved(_) => (
                BlockerCause::ReferenceUnresolved,
                "add what is missing, or correct the reference",
            ),
            Self::Cyclic(_) => (
                BlockerCause::ReferenceCyclic,
                "let one of the references name a value instead of another reference",
            ),
        };
        Blocker::new(cause, pointer, self.to_string(), clears)
    }
}

/// "…: there is no such file".
fn because(absent: Option<&Absent>) -> String {
    absent.map_or_else(String::new, |absent| format!(": {}", absent.text))
}

/// Finds what references of one document name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver<'d> {
    root: &'d Value,
    absent: Option<&'d Absences>,
}

impl<'d> Resolver<'d> {
    pub(crate) const fn new(root: &'d Value) -> Self {
        Self { root, absent: None }
    }

    /// A resolver that knows why files are no part of the document.
    pub(crate) const fn knowing(root: &'d Value, absent: &'d Absences) -> Self {
        Self {
            root,
            absent: Some(absent),
        }
    }

    pub(crate) const fn root(&self) -> &'d Value {
        self.root
    }

    /// The value at a place.
    pub(crate) fn at(&self, pointer: Pointer) -> Option<Located<'d>> {
        let value = pointer.find(self.root)?;
        Some(Located { pointer, value })
    }

    /// What a reference names, without following a reference that stands there.
    pub(crate) fn target(&self, reference: &str) -> Result<Located<'d>, ReferenceFault> {
        let shown = || excerpt(reference);
        let fragment = reference
            .strip_prefix('#')
            .ok_or_else(|| ReferenceFault::External {
                reference: shown(),
                absent: self.absence(reference),
            })?;
        let pointer = Pointer::parse(fragment).ok_or_else(|| ReferenceFault::NotAPointer(shown()))?;
        if pointer.is_root() {
            return Err(ReferenceFault::Unresolved(shown()));
        }
        self.at(pointer)
            .ok_or_else(|| ReferenceFault::Unresolved(shown()))
    }

    fn absence(&self, reference: &str) -> Option<Absent> {
        let file = reference.split_once('#').map_or(reference, |(file, _)| file);
        self.absent?.get(file).cloned()
    }

    /// What a reference names, where it names something.
    pub(crate) fn value(&self, reference: &str) -> Option<&'d Value> {
        let fragment = reference
            .strip_prefix('#')
            .filter(|fragment| !fragment.is_empty())?;
        Pointer::find_fragment(fragment, self.root)
    }

    /// Follows references until a value that is none. A value that is no reference is given back as it is.
    pub(crate) fn follow(&self, start: Located<'d>) -> Result<Located<'d>, ReferenceFault> {
        let mut here = start;
        let mut visited = HashSet::new();
        while let Some(reference) = reference_of(here.value) {
            let next = self.target(reference)?;
            if visited.len() >= HOPS_MAX || !visited.insert(next.pointer.clone()) {
                return Err(ReferenceFault::Cyclic(excerpt(reference)));
            }
            here = next;
        }
        Ok(here)
    }
}

/// The text of the reference, where the value is one.
pub(crate) fn reference_of(value: &Value) -> Option<&str> {
    value.as_object()?.get("$ref")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn follow(root: &Value, reference: &str) -> Result<String, ReferenceFault> {
        let start = json!({ "$ref": reference });
        let resolver = Resolver::new(root);
        let found = resolver.target(start["$ref"].as_str().unwrap())?;
        resolver.follow(found).map(|found| found.pointer.to_string())
    }

    #[test]
    fn a_chain_of_references_ends_at_the_value() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/list/1"}, "list": [0, {"$ref": "#/c~1d"}], "c/d": {"v": 1}});
        assert_eq!(follow(&root, "#/a").unwrap(), "#/c~1d");
        assert_eq!(follow(&root, "#/c%7E1d/v").unwrap(), "#/c~1d/v");
    }

    #[test]
    fn references_that_lead_back_out_or_nowhere_are_told_apart() {
        let root =
            json!({"self": {"$ref": "#/self"}, "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "n": {"$ref": 1}});
        for reference in ["#/self", "#/a", "#/b"] {
            assert!(
                matches!(follow(&root, reference), Err(ReferenceFault::Cyclic(_))),
                "{reference}"
            );
        }
        for reference in ["#/nowhere", "#", "#/a/x", "#/a/$ref/x"] {
            assert!(
                matches!(follow(&root, reference), Err(ReferenceFault::Unresolved(_))),
                "{reference}"
            );
        }
        for reference in [
            "other.yaml#/a",
            "http://169.254.169.254/",
            "../../etc/passwd",
            "",
            "components/x",
        ] {
            assert!(
                matches!(follow(&root, reference), Err(ReferenceFault::External { .. })),
                "{reference}"
            );
        }
        assert!(matches!(
            follow(&root, "#anchor"),
            Err(ReferenceFault::NotAPointer(_))
        ));
        assert!(matches!(
            follow(&root, "#/%"),
            Err(ReferenceFault::NotAPointer(_))
        ));
        // A `$ref` that is no text is no reference.
        assert_eq!(follow(&root, "#/n").unwrap(), "#/n");
    }

    #[test]
    fn a_chain_is_followed_up_to_its_limit_and_not_past_it() {
        let chain = |length: usize| {
            let mut root = json!({});
            for n in 0..length {
                root[format!("r{n}")] = json!({"$ref": format!("#/r{}", n + 1)});
            }
            root[format!("r{length}")] = json!({"end": true});
            root
        };
        assert!(follow(&chain(HOPS_MAX), "#/r0").is_ok());
        assert!(matches!(
            follow(&chain(HOPS_MAX + 1), "#/r0"),
            Err(ReferenceFault::Cyclic(_))
        ));
    }
}
