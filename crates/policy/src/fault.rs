//! What is wrong with a policy, where, and what to write instead. It finds nothing itself.

use std::fmt;

use model::ToolName;

/// One thing that keeps a policy from loading.
///
/// Shown as one line for a person:
/// ``policy/billing.cedar:3:10: no resource type is called `Invoic`; did you mean `Invoice`?``
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {text}{}", Hint(.hint.as_deref()))]
pub struct PolicyFault {
    /// Where it stands.
    pub place: Place,
    /// Which kind of fault it is.
    pub kind: PolicyFaultKind,
    /// What is wrong, with the offending part in backticks.
    pub text: String,
    /// What to do about it, where that can be said.
    pub hint: Option<String>,
}

/// Where a fault stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a policy file.
    File {
        /// The path, as it was given with the text.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The column in characters, counted from 1.
        column: usize,
    },
    /// In the definition of a tool, whatever the policy says.
    Tool(ToolName),
    /// Nowhere in particular.
    Whole,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyFaultKind {
    /// A file, a rule, a nesting or the number of rules is past its limit.
    Limit,
    /// The text is not a rule of the language.
    Syntax,
    /// A template with `?principal` or `?resource`, which nobody would fill in.
    Template,
    /// The id of a rule cannot be an id, or stands twice.
    RuleId,
    /// No tool, group or type has this name.
    UnknownName,
    /// No such attribute, or one that rules cannot read.
    Attribute,
    /// Types that do not fit each other.
    Type,
    /// A rule that can never apply.
    Impossible,
    /// Characters that reorder the text on a screen, so that a reviewer reads another rule than the gate.
    Hidden,
    /// Two files under one path.
    Path,
    /// The definition of a tool cannot be put into words for rules.
    Tool,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
            Self::Tool(tool) => write!(f, "tool `{tool}`"),
            Self::Whole => f.write_str("policy"),
        }
    }
}

/// A fault of a file before its place is worked out, which takes time and is done only for those that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// In bytes of the file.
    pub(crate) offset: usize,
    pub(crate) kind: PolicyFaultKind,
    pub(crate) text: String,
    pub(crate) hint: Option<String>,
}

impl Finding {
    pub(crate) fn new(
        offset: usize,
        kind: PolicyFaultKind,
        text: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) -> Self {
        Self {
            offset,
            kind,
            text: text.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn at(self, lines: &Lines<'_>) -> PolicyFault {
        PolicyFault {
            place: lines.at(self.offset),
            kind: self.kind,
            text: self.text,
            hint: self.hint,
        }
    }
}

struct Hint<'a>(Option<&'a str>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(hint) => write!(f, "; {hint}"),
        }
    }
}

/// Turns byte offsets of one file into places.
pub(crate) struct Lines<'a> {
    path: &'a str,
    text: &'a str,
    /// Where each line starts, in bytes; the first at 0.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(path: &'a str, text: &'a str) -> Self {
        let starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self { path, text, starts }
    }

    /// The path of the file.
    pub(crate) const fn path(&self) -> &'a str {
        self.path
    }

    /// The line of a byte offset, counted from 1; the last line where the offset is past the end.
    pub(crate) fn line(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        self.starts.partition_point(|&start| start <= offset)
    }

    /// The place of a byte offset; the end of the text where the offset is past it. Takes time with the line's length.
    pub(crate) fn at(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.line(offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.starts.get(index))
            .copied()
            .unwrap_or_default();
        let column = self
            .text
            .get(start..)
            .unwrap_or_default()
            .char_indices()
            .take_while(|(at, _)| start + at < offset)
            .count();
        Place::File {
            path: self.path.to_owned(),
            line,
            column: column + 1,
        }
    }
}

/// The one of `known` that is most like `found`, where one is like it.
pub(crate) fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// From here on two names are one slip of the fingers apart, not two words.
    const ALIKE: f64 = 0.8;
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(found, name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| other.cmp(one)))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, offset: usize) -> (usize, usize) {
        match Lines::new("p", text).at(offset) {
            Place::File { line, column, .. } => (line, column),
            place @ (Place::Tool(_) | Place::Whole) => panic!("{place}"),
        }
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        for (text, offset, expected) in [
            ("", 0, (1, 1)),
            ("abc", 2, (1, 3)),
            ("a\nbc", 2, (2, 1)),
            ("a\r\nbc", 4, (2, 2)),
            ("éé x", 5, (1, 4)),
            ("a\n", 2, (2, 1)),
            ("a\n", 99, (2, 1)),
        ] {
            assert_eq!(place(text, offset), expected, "{text:?} at {offset}");
        }
    }

    #[test]
    fn a_name_is_suggested_only_where_it_is_like_what_was_written() {
        let known = ["Invoice", "Ticket", "Customer"];
        assert_eq!(nearest("Invoic", known), Some("Invoice"));
        assert_eq!(nearest("ticket", known), Some("Ticket"));
        assert_eq!(nearest("Zebra", known), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn a_fault_reads_as_one_line_with_place_cause_and_hint() {
        let mut fault = PolicyFault {
            place: Place::File {
                path: "policy/a.cedar".to_owned(),
                line: 3,
                column: 10,
            },
            kind: PolicyFaultKind::UnknownName,
            text: "no resource type is called `Invoic`".to_owned(),
            hint: Some("did you mean `Invoice`?".to_owned()),
        };
        assert_eq!(
            fault.to_string(),
            "policy/a.cedar:3:10: no resource type is called `Invoic`; did you mean `Invoice`?"
        );
        fault.hint = None;
        fault.place = Place::Tool(ToolName::parse("get").unwrap());
        assert_eq!(
            fault.to_string(),
            "tool `get`: no resource type is called `Invoic`"
        );
    }
}
