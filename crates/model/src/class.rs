//! What a tool can do to the world, as a person declared it. Not a guess from an HTTP verb.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The class of a tool, from least to most dangerous. The order is meant: `a > b` means `a` needs more care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Reads what the caller's own organisation would show any of its members.
    Read,
    /// Reads secrets, personal data, exports, or anything that needs separate approval.
    SensitiveRead,
    /// Changes state in a way that can be changed back.
    Write,
    /// Deletes, pays, publishes, or cannot be undone.
    Destructive,
}

/// A text that names no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no class; write one of read, sensitive-read, write, destructive")]
pub struct ClassFault {
    /// What was written.
    pub found: String,
}

impl Class {
    /// All classes, least dangerous first.
    pub const ALL: [Self; 4] = [Self::Read, Self::SensitiveRead, Self::Write, Self::Destructive];

    /// The class as configuration and ledger write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::SensitiveRead => "sensitive-read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    /// Whether a call of this class may change state. Consent, retry and durability turn on it.
    #[must_use]
    pub const fn changes_state(self) -> bool {
        match self {
            Self::Read | Self::SensitiveRead => false,
            Self::Write | Self::Destructive => true,
        }
    }
}

impl FromStr for Class {
    type Err = ClassFault;
    fn from_str(text: &str) -> Result<Self, ClassFault> {
        Self::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or_else(|| ClassFault {
                found: text.to_owned(),
            })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_read_back_and_no_other_word_is_one() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
        }
        for text in ["", "READ", "safe", "read ", "delete"] {
            assert!(text.parse::<Class>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn classes_are_ordered_by_danger() {
        assert!(Class::Read < Class::SensitiveRead && Class::SensitiveRead < Class::Write);
        assert!(Class::Write < Class::Destructive);
    }
}
