//! The vocabulary of the table of keys: sections, keys, and the kinds of values. The table itself is in `table.rs`.
//!
//! Four readers go through one table: the check (`check.rs`), the settings (`view.rs`), the JSON Schema (`schema.rs`)
//! and the reference (`reference.rs`). What is not in the table is in none of them.

use crate::amount;
use crate::form::Form;
use crate::raw::Table;

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A text of one form.
    Text(&'static Form),
    /// `true` or `false`.
    Truth,
    /// A whole number.
    Count { min: u64, max: u64 },
    /// Bytes: an integer, or a text with a unit.
    Size { min: u64, max: u64 },
    /// Milliseconds: a text with a unit.
    Span { min: u64, max: u64 },
    /// A number, whole or not.
    Number,
    /// A value of an argument: a text, a number, `true` or `false`, or where lists are taken a list of these.
    Datum { lists: bool },
    /// One of a few words.
    Word {
        what: &'static str,
        words: &'static [&'static str],
    },
    /// A list.
    List {
        of: &'static Kind,
        min: usize,
        max: usize,
    },
    /// One text, or a list of them.
    OneOrMany { of: &'static Form, max: usize },
    /// A table with the keys of a section.
    Table(&'static Section),
    /// A table with the keys of one of several sections: a key that only one of them has tells which. Where none is
    /// written, the first section holds, and misses its own.
    Cases(&'static [Case]),
    /// A table whose keys the operator chooses.
    Named {
        name: &'static Form,
        of: &'static Kind,
        min: usize,
        max: usize,
    },
}

/// Whether a key has to be there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Required,
    Optional,
    /// What holds where the key is absent, as a TOML value.
    Default(&'static str),
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// What it does: whole sentences.
    pub(crate) doc: &'static str,
    /// A value that could stand there, as TOML. Empty for tables, whose keys have their own.
    pub(crate) example: &'static str,
}

/// A key that must be there.
pub(crate) const fn required(
    name: &'static str,
    kind: Kind,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        need: Need::Required,
        doc,
        example,
    }
}

/// A key that may be left out; then nothing of it holds.
pub(crate) const fn optional(
    name: &'static str,
    kind: Kind,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        need: Need::Optional,
        doc,
        example,
    }
}

/// A key that may be left out; then `default` holds.
pub(crate) const fn defaulted(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        need: Need::Default(default),
        doc,
        example,
    }
}

/// Keys of which only one may stand in a table.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) keys: &'static [&'static str],
    /// Whether one of them must.
    pub(crate) required: bool,
}

/// One of the sections that a table can have.
#[derive(Debug)]
pub(crate) struct Case {
    /// The key that tells; its section requires it, and no other case has it.
    pub(crate) by: &'static str,
    pub(crate) section: &'static Section,
}

/// The keys of one kind of table.
#[derive(Debug)]
pub(crate) struct Section {
    /// Where it stands, with `<name>` for what the operator chooses: `upstream.<name>.tool.<name>`. Behind a space, what
    /// tells it from others that stand there.
    pub(crate) at: &'static str,
    /// What it is for: whole sentences.
    pub(crate) doc: &'static str,
    pub(crate) keys: Keys,
    pub(crate) choices: &'static [Choice],
}

/// Where the keys of a section are listed.
#[derive(Debug)]
pub(crate) enum Keys {
    Here(&'static [Key]),
    /// In the table of limits of `model`, which has its own bounds and texts.
    Limits,
}

impl Section {
    /// Where it stands, without what tells it from others that stand there.
    pub(crate) fn place(&self) -> &'static str {
        self.at.split_once(' ').map_or(self.at, |(place, _)| place)
    }

    pub(crate) fn keys(&self) -> &'static [Key] {
        match self.keys {
            Keys::Here(keys) => keys,
            Keys::Limits => crate::table::limits(),
        }
    }

    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.name == name)
    }

    /// This section and all below it, each once, in the order of the table.
    pub(crate) fn tree(&'static self) -> Vec<&'static Self> {
        let mut all: Vec<&'static Self> = vec![self];
        for key in self.keys() {
            for section in key.kind.sections().into_iter().flat_map(Self::tree) {
                if !all.iter().any(|known| known.at == section.at) {
                    all.push(section);
                }
            }
        }
        all
    }
}

impl Kind {
    /// The sections that a table of this kind, or each table in it, can have.
    pub(crate) fn sections(&self) -> Vec<&'static Section> {
        match self {
            Self::Table(section) => vec![section],
            Self::Cases(cases) => cases.iter().map(|case| case.section).collect(),
            Self::Named { of, .. } | Self::List { of, .. } => of.sections(),
            Self::Text(_)
            | Self::Truth
            | Self::Count { .. }
            | Self::Size { .. }
            | Self::Span { .. }
            | Self::Number
            | Self::Datum { .. }
            | Self::Word { .. }
            | Self::OneOrMany { .. } => Vec::new(),
        }
    }

    /// The section of this table.
    pub(crate) fn section_of(&self, table: &Table) -> Option<&'static Section> {
        match self {
            Self::Table(section) => Some(section),
            Self::Cases(cases) => cases
                .iter()
                .find(|case| table.entry(case.by).is_some())
                .or(cases.first())
                .map(|case| case.section),
            Self::Text(_)
            | Self::Truth
            | Self::Count { .. }
            | Self::Size { .. }
            | Self::Span { .. }
            | Self::Number
            | Self::Datum { .. }
            | Self::Word { .. }
            | Self::List { .. }
            | Self::OneOrMany { .. }
            | Self::Named { .. } => None,
        }
    }

    /// Whether a value in the place of this kind may not be shown: a secret that stands one level too high is one.
    pub(crate) fn hidden(&self) -> bool {
        match self {
            Self::Text(form) | Self::OneOrMany { of: form, .. } => form.hidden,
            Self::List { of, .. } | Self::Named { of, .. } => of.hidden(),
            Self::Table(_) | Self::Cases(_) => {
                let keys = |section: &'static Section| section.keys().iter();
                self.sections()
                    .into_iter()
                    .flat_map(keys)
                    .any(|key| key.kind.hidden())
            }
            Self::Truth
            | Self::Count { .. }
            | Self::Size { .. }
            | Self::Span { .. }
            | Self::Number
            | Self::Datum { .. }
            | Self::Word { .. } => false,
        }
    }

    /// What a right value looks like; completes "write …".
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Text(form) => format!("a text in quotes: {}", form.expected),
            Self::Truth => "true or false".to_owned(),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Size { .. } => amount::SIZE_EXPECTED.to_owned(),
            Self::Span { .. } => amount::SPAN_EXPECTED.to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Datum { lists: true } => {
                "a text in quotes, a number, true or false, or a list of these".to_owned()
            }
            Self::Datum { lists: false } => "a text in quotes, a number, true or false".to_owned(),
            Self::Word { words, .. } => one_of(words),
            Self::List { .. } => "a list in square brackets".to_owned(),
            Self::OneOrMany { of, .. } => format!("a text in quotes or a list of them: {}", of.expected),
            Self::Table(_) | Self::Cases(_) | Self::Named { .. } => "a table".to_owned(),
        }
    }
}

/// "one of a, b, c".
pub(crate) fn one_of(words: &[&str]) -> String {
    format!("one of {}", words.join(", "))
}
