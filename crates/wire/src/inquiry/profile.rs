//! What a client can be asked, as a small set: what it declared, what an operator lets a server ask, and what both allow.

use model::{Object, Value};
use serde_json::json;

use crate::revision::Revision;

/// A set of things that somebody can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Profile(u8);

impl Profile {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Elicitation by a form.
    pub const FORM: Self = Self(1);
    /// Elicitation by a page to be opened.
    pub const URL: Self = Self(2);
    /// Sampling.
    pub const SAMPLING: Self = Self(4);
    /// Tools within sampling.
    pub const TOOLS: Self = Self(8);
    /// Roots.
    pub const ROOTS: Self = Self(16);

    /// What a client of this revision declares (ELIC-01, SAMP-02, ROOT-01). Older ones have no modes, and the oldest two no
    /// elicitation (C4).
    #[must_use]
    pub fn declared(capabilities: &Object, revision: Revision) -> Self {
        let mut profile = Self::NONE;
        let is_object = |value: Option<&Value>| value.is_some_and(Value::is_object);
        if let Some(Value::Object(elicitation)) = capabilities.get("elicitation")
            && revision.has_elicitation()
        {
            let url = revision.has_modes_of_elicitation() && is_object(elicitation.get("url"));
            // ELIC-01: a bare object is a form.
            if !url || is_object(elicitation.get("form")) {
                profile = profile.or(Self::FORM);
            }
            if url {
                profile = profile.or(Self::URL);
            }
        }
        if let Some(Value::Object(sampling)) = capabilities.get("sampling") {
            profile = profile.or(Self::SAMPLING);
            if revision.has_modes_of_elicitation() && is_object(sampling.get("tools")) {
                profile = profile.or(Self::TOOLS);
            }
        }
        if is_object(capabilities.get("roots")) {
            profile = profile.or(Self::ROOTS);
        }
        profile
    }

    /// Both together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of the other is in it.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The capabilities that say exactly this to a server (HOP-06).
    #[must_use]
    pub fn capabilities(self) -> Object {
        let mut capabilities = Object::new();
        let mut elicitation = Object::new();
        for (mode, name) in [(Self::FORM, "form"), (Self::URL, "url")] {
            if self.has(mode) {
                elicitation.insert(name.to_owned(), json!({}));
            }
        }
        if !elicitation.is_empty() {
            capabilities.insert("elicitation".to_owned(), Value::Object(elicitation));
        }
        if self.has(Self::SAMPLING) {
            let sampling = if self.has(Self::TOOLS) {
                json!({ "tools": {} })
            } else {
                json!({})
            };
            capabilities.insert("sampling".to_owned(), sampling);
        }
        if self.has(Self::ROOTS) {
            capabilities.insert("roots".to_owned(), json!({}));
        }
        capabilities
    }
}
