//! Where a value stood before the document was rewritten: from places in the view that this room reads to places in
//! the files that a person wrote, and back.
//!
//! A document of version 2.0 is upgraded and a split one is put together before anything else is done; findings still
//! have to name the place that a person can correct. The longest prefix that is known decides; what is not known did
//! not move.

use std::collections::HashMap;

use crate::pointer::Pointer;

/// One rewriting of a document.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    to_old: HashMap<String, String>,
    to_new: HashMap<String, String>,
}

impl Trace {
    /// Says that what stands at `new` stood at `old`. The first new place of an old one is the one that references
    /// to it mean.
    pub(crate) fn moved(&mut self, new: &Pointer, old: &str) {
        let new = new.as_str().to_owned();
        self.to_new.entry(old.to_owned()).or_insert_with(|| new.clone());
        self.to_old.insert(new, old.to_owned());
    }

    /// Where the value at `new` stood. A place without a record did not move.
    pub(crate) fn before(&self, new: &str) -> String {
        translate(&self.to_old, new)
    }

    /// Where the value that stood at `old` is now.
    pub(crate) fn after(&self, old: &str) -> String {
        translate(&self.to_new, old)
    }
}

fn translate(places: &HashMap<String, String>, place: &str) -> String {
    let mut prefix = place;
    loop {
        if let Some(found) = places.get(prefix) {
            let rest = place.get(prefix.len()..).unwrap_or_default();
            return format!("{found}{rest}");
        }
        match prefix.rsplit_once('/') {
            Some((shorter, _)) => prefix = shorter,
            None => return place.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_prefix_decides_in_both_directions() {
        let mut trace = Trace::default();
        let schemas = Pointer::root().child("components").child("schemas");
        trace.moved(&schemas, "#/definitions");
        trace.moved(&schemas.child("Odd"), "#/elsewhere/Odd");
        for (new, old) in [
            ("#/components/schemas/A/type", "#/definitions/A/type"),
            ("#/components/schemas/Odd/type", "#/elsewhere/Odd/type"),
            ("#/paths/~1a", "#/paths/~1a"),
            ("#", "#"),
        ] {
            assert_eq!(trace.before(new), old);
            assert_eq!(trace.after(old), new);
        }
        // A prefix ends at a step, not within one.
        assert_eq!(trace.before("#/components/schemasX"), "#/components/schemasX");
    }
}
