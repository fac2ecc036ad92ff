//! Conversions that were done before: a component that thousands of operations refer to is converted once for a document,
//! and copied for each of their tools.
//!
//! A conversion depends on the place, the direction, the mode and the length of texts, and on nothing of the tool but
//! what is checked here again: names of definitions that were given, patterns that were tried, and what is left of its
//! budgets. Where one of them is not as it was, the schema is converted anew. So a tool is the same whichever was made
//! before it.

use std::collections::HashMap;
use std::sync::Arc;

use model::{Object, Value};

use super::{Converter, Direction, Mode};
use crate::blocker::Note;
use crate::pointer::Pointer;
use crate::reference::Located;

/// The conversions that are kept of one document, in bytes of what they were charged.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// What a conversion depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    place: Pointer,
    mode: Mode,
    direction: Direction,
    words_max: Option<usize>,
}

/// What a conversion gave, and what it took.
#[derive(Debug)]
pub(super) struct Conversion {
    schema: Value,
    /// Places that it refers to, in the order in which they were met, with their names.
    references: Vec<(Pointer, Mode, String)>,
    patterns: Vec<String>,
    notes: Vec<Note>,
    bytes: usize,
    steps: usize,
}

/// The conversions of one document. Bounded.
#[derive(Debug, Default)]
pub(crate) struct Conversions {
    known: HashMap<Question, Arc<Conversion>>,
    bytes: usize,
}

/// What one conversion meets, as it is done.
#[derive(Debug, Default)]
pub(super) struct Met<'d> {
    pub(super) references: Vec<(Pointer, Mode, String)>,
    pub(super) patterns: Vec<&'d str>,
}

impl<'d> Converter<'d, '_> {
    /// Converts what a definition names, or takes the conversion that was done before.
    pub(super) fn define(&mut self, defs: &mut Object, (name, target, mode): (String, Located<'d>, Mode)) {
        self.charge(name.len() + 4);
        let question = Question {
            place: target.pointer.clone(),
            mode,
            direction: self.direction,
            words_max: self.words_max,
        };
        let known = self.document.conversions().known.get(&question).map(Arc::clone);
        if let Some(known) = known
            && self.recall(&known)
        {
            defs.insert(name, known.schema.clone());
            return;
        }
        let before = (self.bytes_left, self.work.left());
        let absent = self.absent.len();
        let outer = std::mem::take(self.findings);
        self.met = Met::default();
        let mut at = target.pointer;
        let schema = self.alone(&mut at, target.value, mode);
        let met = std::mem::take(&mut self.met);
        let own = std::mem::replace(self.findings, outer);
        // What leads nowhere is met anew by each tool, which leaves it out or is blocked by it.
        if !own.is_blocked() && !self.has_stopped() && self.absent.len() == absent {
            let conversion = Conversion {
                schema: schema.clone(),
                references: met.references,
                patterns: met.patterns.into_iter().map(str::to_owned).collect(),
                notes: own.notes().to_vec(),
                bytes: before.0.saturating_sub(self.bytes_left),
                steps: before.1.saturating_sub(self.work.left()),
            };
            self.document.conversions().keep(question, conversion);
        }
        self.findings.take(own);
        defs.insert(name, schema);
    }

    /// Does to this tool what the conversion would do; `false` where it would not go the same way.
    fn recall(&mut self, known: &Conversion) -> bool {
        if self.bytes_left <= known.bytes || self.work.left() <= known.steps || self.has_stopped() {
            return false;
        }
        let fits = known.patterns.iter().all(|pattern| self.takes_pattern(pattern));
        if !fits {
            return false;
        }
        for (place, mode, name) in &known.references {
            // Names that were given on the way are given again when it is converted anew.
            let Some(target) = self.resolver.at(place.clone()) else {
                return false;
            };
            if self.name_of(target, *mode) != *name {
                return false;
            }
        }
        for note in &known.notes {
            self.findings.keep(note.clone());
        }
        self.charge(known.bytes);
        self.work.spend(known.steps);
        true
    }
}

impl Conversions {
    fn keep(&mut self, question: Question, conversion: Conversion) {
        let bytes = self.bytes.saturating_add(conversion.bytes);
        if bytes <= KEPT_BYTES_MAX {
            self.bytes = bytes;
            self.known.insert(question, Arc::new(conversion));
        }
    }
}
