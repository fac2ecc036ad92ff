//! Names: of tools, upstreams, callers, tenants, rules. Each is parsed once and then trusted.
//!
//! Names carry no authority. A [`TenantId`] is a word, whoever said it; who may say it is decided in `identity`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not the name it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// The text has no characters.
    #[error("{what} is empty; write {expected}")]
    Empty {
        /// Which kind of name, as `tool name`.
        what: &'static str,
        /// What a valid one looks like.
        expected: &'static str,
    },
    /// The text is longer than the kind allows.
    #[error("{what} `{found}` has {length} bytes; at most {max} are allowed")]
    Long {
        /// Which kind of name.
        what: &'static str,
        /// The first 40 characters of what was written.
        found: String,
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A character that this kind of name cannot have.
    #[error("{what} `{found}` has the character {character:?} at byte {at}; write {expected}")]
    Character {
        /// Which kind of name.
        what: &'static str,
        /// The first 40 characters of what was written.
        found: String,
        /// The offending character.
        character: char,
        /// Its byte offset.
        at: usize,
        /// What a valid one looks like.
        expected: &'static str,
    },
}

fn excerpt(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}

/// Checks a text against a kind of name: length in bytes, first character, the rest.
fn check(
    text: &str,
    what: &'static str,
    expected: &'static str,
    max: usize,
    first: fn(char) -> bool,
    rest: fn(char) -> bool,
) -> Result<(), NameFault> {
    if text.is_empty() {
        return Err(NameFault::Empty { what, expected });
    }
    if text.len() > max {
        return Err(NameFault::Long {
            what,
            found: excerpt(text),
            length: text.len(),
            max,
        });
    }
    for (index, (at, character)) in text.char_indices().enumerate() {
        let fits = if index == 0 {
            first(character)
        } else {
            rest(character)
        };
        if !fits {
            return Err(NameFault::Character {
                what,
                found: excerpt(text),
                character,
                at,
                expected,
            });
        }
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:literal, max $max:literal, $first:expr, $rest:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// Invariant: passed `parse`.
            Arc<str>,
        );

        impl $name {
            /// The longest name of this kind, in bytes.
            pub const BYTES_MAX: usize = $max;

            #[doc = concat!("Parses a ", $what, ": ", $expected, ".")]
            ///
            /// # Errors
            /// [`NameFault`] with the offending part and what would be valid.
            pub fn parse(text: &str) -> Result<Self, NameFault> {
                check(text, $what, $expected, $max, $first, $rest)?;
                Ok(Self(Arc::from(text)))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &*self.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameFault;
            fn from_str(text: &str) -> Result<Self, NameFault> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

fn letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}
fn letter_or_underscore(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
fn lower(c: char) -> bool {
    c.is_ascii_lowercase()
}
fn word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
fn lower_word(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}
fn alphanumeric(c: char) -> bool {
    c.is_ascii_alphanumeric()
}
/// An identifier that somebody else minted: printable, no control, format or separator characters.
fn foreign(c: char) -> bool {
    !c.is_control()
        && !c.is_whitespace()
        && !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}
fn foreign_or_space(c: char) -> bool {
    foreign(c) || c == ' '
}

name!(
    /// The public name of a tool: legal in every MCP revision (TOOL-03) and in the function calling of OpenAI,
    /// Anthropic and Gemini.
    ///
    /// ```
    /// use model::ToolName;
    /// assert!(ToolName::parse("billing_getInvoiceStatus").is_ok());
    /// assert!(ToolName::parse("billing/getInvoiceStatus").is_err());
    /// ```
    ToolName, "tool name", "a letter or `_`, then letters, digits, `_` and `-`, at most 64", max 64, letter_or_underscore, word
);
name!(
    /// The name of an upstream in the configuration; it becomes the prefix of its tools' public names.
    UpstreamName, "upstream name", "a lower-case letter, then lower-case letters, digits and `-`, at most 32", max 32, lower, lower_word
);
name!(
    /// The name of a caller in the configuration, for API keys and for stdio.
    CallerName, "caller name", "a letter, then letters, digits, `_` and `-`, at most 64", max 64, letter, word
);
name!(
    /// The name of a source of facts in the configuration.
    SourceName, "source name", "a letter, then letters, digits, `_` and `-`, at most 64", max 64, letter, word
);
name!(
    /// The name of a token issuer in the configuration (not its URL).
    IssuerName, "issuer name", "a letter, then letters, digits, `_` and `-`, at most 64", max 64, letter, word
);
name!(
    /// The type of a protected thing, as policies name it: `Invoice`.
    ResourceType, "resource type", "a letter, then letters and digits, at most 64, as `Invoice`", max 64, letter, alphanumeric
);
name!(
    /// Who a caller is, inside its issuer: the `sub` of a token, or what the configuration says.
    Subject, "subject", "printable characters, at most 256", max 256, foreign, foreign_or_space
);
name!(
    /// Which organisation a caller or a thing belongs to.
    TenantId, "tenant", "printable characters without spaces, at most 256", max 256, foreign, foreign
);
name!(
    /// A role or group of a caller.
    Role, "role", "printable characters, at most 256", max 256, foreign, foreign_or_space
);
name!(
    /// Which client program a caller uses, as its token says.
    ClientId, "client id", "printable characters, at most 512", max 512, foreign, foreign
);
name!(
    /// The public half of an API key: it names the key in lists, logs and the ledger.
    KeyId, "key id", "letters and digits, at most 32", max 32, alphanumeric, alphanumeric
);
name!(
    /// The id of one rule of a policy: what its `@id` says, else `file.cedar#3`, counted from 0.
    RuleId, "rule id", "printable characters without spaces, at most 256", max 256, foreign, foreign
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_accepted_at_its_limit_and_refused_one_past_it() {
        assert!(ToolName::parse(&"a".repeat(64)).is_ok());
        assert!(matches!(
            ToolName::parse(&"a".repeat(65)),
            Err(NameFault::Long {
                length: 65,
                max: 64,
                ..
            })
        ));
        assert!(UpstreamName::parse(&"a".repeat(32)).is_ok());
        assert!(UpstreamName::parse(&"a".repeat(33)).is_err());
        assert!(TenantId::parse(&"a".repeat(256)).is_ok());
        assert!(TenantId::parse(&"a".repeat(257)).is_err());
    }

    #[test]
    fn a_name_with_a_foreign_character_says_which_and_where() {
        for (text, at) in [
            ("get invoice", 3),
            ("get/invoice", 3),
            ("-x", 0),
            ("a\u{200B}b", 1),
            ("ünder", 0),
        ] {
            match ToolName::parse(text) {
                Err(NameFault::Character { at: found, .. }) => assert_eq!(found, at, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn identifiers_of_others_cannot_hide_characters() {
        for text in ["", "a\nb", "a\u{202E}b", "a\u{FEFF}", "\u{2066}x", "a\u{0}"] {
            assert!(TenantId::parse(text).is_err(), "{text:?}");
            assert!(Subject::parse(text).is_err(), "{text:?}");
        }
        assert!(Subject::parse("Ada Lovelace").is_ok());
        assert!(TenantId::parse("Ada Lovelace").is_err());
    }

    #[test]
    fn a_name_keeps_its_parse_when_it_is_read_from_json() {
        assert!(serde_json::from_str::<ToolName>("\"ok\"").is_ok());
        assert!(serde_json::from_str::<ToolName>("\"not ok\"").is_err());
    }
}
