//! References of schemas that name nothing: what becomes of an input that has them, and when they block it.
//!
//! What a call can be right without is left out, with a note: an optional field, and an alternative beside others. What
//! decides about the request blocks it. An answer is promised whole or not at all, so there every one of them blocks the
//! output schema, which costs the tool nothing but that.

use std::collections::{BTreeMap, BTreeSet};

use model::Object;

use super::{Converter, Direction, fold};
use crate::blocker::{Blocker, Note, NoteKind};
use crate::pointer::Pointer;
use crate::reference::ReferenceFault;

impl Converter<'_, '_> {
    /// The reference that stands for one that names nothing, until the whole is there to be looked at.
    pub(super) fn absent(&mut self, at: &Pointer, fault: &ReferenceFault) -> Option<String> {
        let blocker = fault.blocker(at);
        let can_be_without = match fault {
            ReferenceFault::External { .. }
            | ReferenceFault::NotAPointer(_)
            | ReferenceFault::Unresolved(_) => true,
            // What is there and leads in a circle is a fault of its own.
            ReferenceFault::Cyclic(_) => false,
        };
        if self.direction == Direction::Output || !can_be_without {
            self.findings.block(blocker);
            return None;
        }
        // No definition has such a name: none has a blank.
        let name = format!("absent {}", self.absent.len());
        let reference = format!("#/$defs/{name}");
        self.charge(reference.len());
        self.absent.insert(name, blocker);
        Some(reference)
    }

    /// Leaves out what can be left out for a reference that names nothing; what cannot be blocks the tool.
    pub(super) fn without_absent(
        &mut self,
        root: &mut Object,
        defs: &mut Object,
        keep: &dyn Fn(&str) -> bool,
    ) {
        if self.absent.is_empty() {
            return;
        }
        // By name: what is not there, and the definitions that cannot be without it, with the cause of each.
        let mut gone: BTreeMap<String, Blocker> = self.absent.clone();
        loop {
            fold::without(root, defs, keep, &|name| gone.contains_key(name));
            let spoilt: Vec<(String, Blocker)> = defs
                .iter()
                .filter(|(name, _)| !gone.contains_key(*name))
                .filter_map(|(name, definition)| {
                    let cause = fold::first_reference(definition, &|target| gone.contains_key(target))?;
                    Some((name.clone(), gone.get(cause)?.clone()))
                })
                .collect();
            if spoilt.is_empty() {
                break;
            }
            gone.extend(spoilt);
        }
        let mut needed = BTreeSet::new();
        fold::references(root, &mut |target| {
            if let Some(blocker) = gone.get(target) {
                needed.insert(blocker.pointer.clone());
            }
        });
        for blocker in self.absent.values() {
            if needed.contains(&blocker.pointer) {
                self.findings.block(blocker.clone());
            } else {
                self.findings.keep(Note {
                    pointer: blocker.pointer.clone(),
                    kind: NoteKind::SchemaReferenceLeftOut,
                    text: format!(
                        "{}; the optional field or the alternative that needs it was left out",
                        blocker.text
                    ),
                });
            }
        }
        defs.retain(|name, _| !gone.contains_key(name));
        fold::sweep(root, defs);
    }
}
