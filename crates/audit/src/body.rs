//! The text of an entry, written once and in canonical order (RFC 8785), without a tree of values in between.
//!
//! The two facts that only the writer knows, the chain and the place in it, are filled in last.

use std::fmt::{Display, Write as _};

use uuid::Uuid;

/// The text of an entry that does not yet know its place.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    text: String,
    /// Where the chain's id goes, in bytes.
    chain_at: usize,
    /// Where the number goes, in bytes. Invariant: not before `chain_at`.
    seq_at: usize,
}

impl Body {
    /// Writes an entry. `members` writes all members in the order of their names, with [`Members::chain`] and
    /// [`Members::seq`] among them.
    pub(crate) fn write(members: impl FnOnce(&mut Members<'_>)) -> Self {
        let mut body = Self {
            text: String::with_capacity(1_024),
            chain_at: 0,
            seq_at: 0,
        };
        let (mut chain_at, mut seq_at) = (0, 0);
        body.text.push('{');
        let mut writer = Members {
            text: &mut body.text,
            first: true,
            last: "",
            chain_at: &mut chain_at,
            seq_at: &mut seq_at,
        };
        members(&mut writer);
        body.text.push('}');
        debug_assert!(
            0 < chain_at && chain_at < seq_at,
            "an entry has a chain and a place"
        );
        body.chain_at = chain_at;
        body.seq_at = seq_at;
        body
    }

    /// The finished text.
    pub(crate) fn seal(&self, chain: Uuid, seq: u64) -> String {
        let mut text = String::with_capacity(self.text.len() + 56);
        // Both places are ends of ASCII texts that `write` wrote.
        let (head, rest) = self
            .text
            .split_at_checked(self.chain_at)
            .unwrap_or((&self.text, ""));
        let (middle, tail) = rest
            .split_at_checked(self.seq_at - self.chain_at)
            .unwrap_or((rest, ""));
        text.push_str(head);
        text.push_str(chain.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        text.push_str(middle);
        push_number(&mut text, seq);
        text.push_str(tail);
        text
    }
}

/// Writes the members of one object.
///
/// The caller names them in canonical order: by UTF-16 code units, which for the plain words used here is the order of
/// bytes. Debug builds check it.
pub(crate) struct Members<'a> {
    text: &'a mut String,
    first: bool,
    last: &'static str,
    chain_at: &'a mut usize,
    seq_at: &'a mut usize,
}

impl Members<'_> {
    fn key(&mut self, key: &'static str) {
        debug_assert!(self.last < key, "`{key}` comes before `{}`", self.last);
        self.last = key;
        if !self.first {
            self.text.push(',');
        }
        self.first = false;
        push_string(self.text, key);
        self.text.push(':');
    }

    /// `chain`, whose value comes later.
    pub(crate) fn chain(&mut self) {
        self.key("chain");
        self.text.push('"');
        *self.chain_at = self.text.len();
        self.text.push('"');
    }

    /// `seq`, whose value comes later.
    pub(crate) fn seq(&mut self) {
        self.key("seq");
        *self.seq_at = self.text.len();
    }

    pub(crate) fn string(&mut self, key: &'static str, value: &str) {
        self.key(key);
        push_string(self.text, value);
    }

    pub(crate) fn string_if(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(key, value);
        }
    }

    /// A value whose text needs no escape: a digest, an id, a time.
    pub(crate) fn plain(&mut self, key: &'static str, value: impl Display) {
        self.key(key);
        // Writing to a string does not fail.
        let _ = write!(self.text, "\"{value}\"");
    }

    /// At most 2^53 - 1, as every number of a call's record is: sizes, counts, durations.
    pub(crate) fn number(&mut self, key: &'static str, value: u64) {
        self.key(key);
        push_number(self.text, value.min((1 << 53) - 1));
    }

    pub(crate) fn truth(&mut self, key: &'static str, value: bool) {
        self.key(key);
        self.text.push_str(if value { "true" } else { "false" });
    }

    pub(crate) fn strings<'s>(&mut self, key: &'static str, values: impl IntoIterator<Item = &'s str>) {
        self.key(key);
        self.text.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            push_string(self.text, value);
        }
        self.text.push(']');
    }

    /// A value that `write` writes in canonical form.
    pub(crate) fn canonical(&mut self, key: &'static str, write: impl FnOnce(&mut String)) {
        self.key(key);
        write(self.text);
    }

    pub(crate) fn object(&mut self, key: &'static str, members: impl FnOnce(&mut Members<'_>)) {
        self.key(key);
        self.text.push('{');
        members(&mut Members {
            text: self.text,
            first: true,
            last: "",
            chain_at: self.chain_at,
            seq_at: self.seq_at,
        });
        self.text.push('}');
    }
}

fn push_number(text: &mut String, value: u64) {
    let _ = write!(text, "{value}");
}

/// A JSON string as RFC 8785 section 3.2.2.2 has it: the short escapes where there is one, `\u00xx` for other control
/// characters, everything else as it is.
pub(crate) fn push_string(text: &mut String, value: &str) {
    text.push('"');
    let mut rest = value;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(plain);
        let mut characters = special.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\u{8}') => text.push_str("\\b"),
            Some('\t') => text.push_str("\\t"),
            Some('\n') => text.push_str("\\n"),
            Some('\u{c}') => text.push_str("\\f"),
            Some('\r') => text.push_str("\\r"),
            Some(other) => {
                let _ = write!(text, "\\u{:04x}", u32::from(other));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_string_is_written_as_the_canonicaliser_writes_it(value in any::<String>()) {
            let mut text = String::new();
            push_string(&mut text, &value);
            let expected = model::canonical(&model::Value::from(value));
            prop_assert_eq!(text.as_bytes(), expected.as_slice());
        }

        #[test]
        fn a_body_is_canonical_whatever_it_holds(
            text in any::<String>(), list in prop::collection::vec(any::<String>(), 0..3), number in any::<u64>(), seq in 0..1_u64 << 53,
        ) {
            let body = Body::write(|m| {
                m.string("a", &text);
                m.chain();
                m.object("inner", |m| {
                    m.string_if("none", None);
                    m.strings("x", list.iter().map(String::as_str));
                    m.truth("yes", true);
                });
                m.number("number", number);
                m.plain("plain", "p");
                m.seq();
                m.canonical("z", |text| text.push_str("[]"));
            });
            let chain = Uuid::now_v7();
            let sealed = body.seal(chain, seq);
            let value: model::Value = serde_json::from_str(&sealed).unwrap();
            let expected = model::canonical(&value);
            prop_assert_eq!(sealed.as_bytes(), expected.as_slice());
            prop_assert_eq!(&value["chain"], &model::Value::from(chain.to_string()));
            prop_assert_eq!(&value["seq"], &model::Value::from(seq));
            prop_assert_eq!(&value["a"], &model::Value::from(text));
        }
    }

    #[test]
    #[should_panic(expected = "`a` comes before `b`")]
    fn members_out_of_order_are_found_by_any_debug_build() {
        Body::write(|m| {
            m.string("b", "");
            m.string("a", "");
        });
    }
}
