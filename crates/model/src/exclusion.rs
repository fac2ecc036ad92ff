//! What is left out of a list of tools by default: kinds of operations that each need an approval of their own. Which
//! operation is of which kind is found by the room that reads documents; that it was approved, by configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of operation that is no tool unless somebody answers for exactly that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusion {
    /// Keys, tokens, passwords and other secrets.
    Keys,
    /// Lists of people: members, users, customers, contacts.
    Members,
    /// Exports, dumps and bulk reads.
    Exports,
    /// Bills, payments and money.
    Billing,
    /// Administration, roles, permissions and membership.
    Administration,
    /// Acting as somebody else.
    Impersonation,
    /// Addresses that the service calls: webhooks, callbacks, any argument that is a URL.
    Webhooks,
    /// Running commands, and passing requests on to other systems.
    Execution,
    /// Sending and fetching files.
    Files,
    /// Queries in a language of their own.
    Queries,
    /// Everything that changes state.
    Mutations,
}

/// A text that names no kind of operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no default exclusion; write one of {}", Exclusion::ALL.map(Exclusion::as_str).join(", "))]
pub struct ExclusionFault {
    /// What was written.
    pub found: String,
}

impl Exclusion {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Keys,
        Self::Members,
        Self::Exports,
        Self::Billing,
        Self::Administration,
        Self::Impersonation,
        Self::Webhooks,
        Self::Execution,
        Self::Files,
        Self::Queries,
        Self::Mutations,
    ];

    /// The kind as configuration and reports write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Members => "members",
            Self::Exports => "exports",
            Self::Billing => "billing",
            Self::Administration => "administration",
            Self::Impersonation => "impersonation",
            Self::Webhooks => "webhooks",
            Self::Execution => "execution",
            Self::Files => "files",
            Self::Queries => "queries",
            Self::Mutations => "mutations",
        }
    }

    /// What it means, for a person: completes "this operation …".
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Keys => "deals with keys, tokens or secrets",
            Self::Members => "lists people",
            Self::Exports => "exports or reads in bulk",
            Self::Billing => "deals with bills or money",
            Self::Administration => "administers roles, permissions or members",
            Self::Impersonation => "acts as somebody else",
            Self::Webhooks => "takes an address that the service may call",
            Self::Execution => "runs commands or passes requests on",
            Self::Files => "sends or fetches files",
            Self::Queries => "takes a query in a language of its own",
            Self::Mutations => "changes state",
        }
    }
}

impl FromStr for Exclusion {
    type Err = ExclusionFault;
    fn from_str(text: &str) -> Result<Self, ExclusionFault> {
        Self::ALL
            .into_iter()
            .find(|exclusion| exclusion.as_str() == text)
            .ok_or_else(|| ExclusionFault {
                found: text.to_owned(),
            })
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exclusion_is_read_back_and_no_other_word_is_one() {
        for exclusion in Exclusion::ALL {
            assert_eq!(exclusion.as_str().parse(), Ok(exclusion));
            assert_eq!(
                serde_json::to_value(exclusion).unwrap(),
                serde_json::json!(exclusion.as_str())
            );
        }
        for text in ["", "Keys", "all", "mutation", "*"] {
            assert!(text.parse::<Exclusion>().is_err(), "{text:?}");
        }
    }
}
