//! Facts that a decision rests on: the thing a call names, who owns it, and what else was looked up.
//!
//! Facts come from a source other than the protected call (DESIGN step 7). A missing fact is missing, never a guess.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ResourceType, TenantId};

/// The thing that a call names, and who owns it as far as a source knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its type, as policies name it.
    pub kind: ResourceType,
    /// Its id, as the call gave it. Scope tools, which name no single thing, use the tool's own name.
    pub id: String,
    /// Its owner. `None` where the source knows no such thing: rules then cannot say yes by ownership.
    pub owner: Option<TenantId>,
}

/// One looked-up fact, under the name that policies use: `context.facts.<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The name, a Cedar identifier.
    pub name: String,
    /// The value.
    pub value: FactValue,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FactValue {
    /// Yes or no.
    Truth(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(String),
}

// === impl FactValue ===

/// As a person writes it: `true`, `5`, `"text"`.
impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(truth) => write!(f, "{truth}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}
