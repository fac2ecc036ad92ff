//! The second reader of the table of keys: a checked table, read key by key, with the table's own defaults.
//!
//! A value that the check refused reads as absent: its fault is already known, and then no settings are made.

use std::borrow::Cow;
use std::time::Duration;

use crate::amount;
use crate::check::below;
use crate::datum;
use crate::key::{Key, Kind, Need, Section};
use crate::raw::{Node, Table, Value, read_value};

static EMPTY: Table = Table { entries: Vec::new() };

/// One table of the text together with the section that says what its keys are.
#[derive(Debug, Clone)]
pub(crate) struct View<'r> {
    pub(crate) section: &'static Section,
    pub(crate) table: &'r Table,
    /// Where the table is opened; `None` for the root and for a table that is not there.
    pub(crate) header: Option<usize>,
    /// The path of the table.
    pub(crate) path: String,
}

/// One text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) text: String,
    pub(crate) at: Option<usize>,
}

impl<'r> View<'r> {
    /// The path of one of its keys.
    pub(crate) fn key(&self, name: &str) -> String {
        below(&self.path, name)
    }

    /// Whether the key is written.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written(name).is_some()
    }

    /// Where the value of a key stands; where it is not written, the table.
    pub(crate) fn at(&self, name: &str) -> Option<usize> {
        self.written(name).map(|node| node.span.start).or(self.header)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        match self.value(name)?.into_owned().value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A text in the type that it means; its form was checked with the same parser.
    pub(crate) fn parsed<T, E>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        parse(&self.text(name)?).ok()
    }

    pub(crate) fn truth(&self, name: &str) -> Option<bool> {
        match self.value(name)?.value {
            Value::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    /// A number or a size.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.value(name).and_then(|node| number(&node))
    }

    /// A value of an argument.
    pub(crate) fn datum(&self, name: &str) -> Option<model::Value> {
        datum::value(&self.value(name)?.value)
    }

    /// The values of a list, where it is written.
    pub(crate) fn data(&self, name: &str) -> Option<Vec<model::Value>> {
        match &self.value(name)?.value {
            Value::List(items) => Some(
                items
                    .iter()
                    .filter_map(|item| datum::value(&item.value))
                    .collect(),
            ),
            _ => None,
        }
    }

    /// A number, whole or not.
    pub(crate) fn decimal(&self, name: &str) -> Option<serde_json::Number> {
        datum::number(&self.value(name)?.value)
    }

    /// A duration in milliseconds.
    pub(crate) fn millis(&self, name: &str) -> Option<u64> {
        self.parsed(name, amount::millis)
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.millis(name).map(Duration::from_millis)
    }

    /// The texts of a list, or the one text that stands in its place.
    pub(crate) fn texts(&self, name: &str) -> Vec<Placed> {
        self.value(name).map(|node| texts(&node)).unwrap_or_default()
    }

    /// The numbers of a list.
    pub(crate) fn counts(&self, name: &str) -> Vec<(u64, usize)> {
        match self.value(name).map(|node| node.into_owned().value) {
            Some(Value::List(items)) => items
                .iter()
                .filter_map(|item| Some((number(item)?, item.span.start)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The table of a key, where it is written.
    pub(crate) fn table(&self, name: &str) -> Option<View<'r>> {
        match (self.written(name), self.find(name)?.kind) {
            (
                Some(Node {
                    value: Value::Table(table),
                    span,
                }),
                Kind::Table(section),
            ) => Some(View {
                section,
                table,
                header: Some(span.start),
                path: self.key(name),
            }),
            _ => None,
        }
    }

    /// The table of a key; where it is not written, a table in which every default holds.
    pub(crate) fn table_or_defaults(&self, name: &str) -> Option<View<'r>> {
        match self.find(name)?.kind {
            Kind::Table(section) => {
                let none = View {
                    section,
                    table: &EMPTY,
                    header: None,
                    path: self.key(name),
                };
                Some(self.table(name).unwrap_or(none))
            }
            _ => None,
        }
    }

    /// The tables in a table whose keys the operator chose, in the order of the file.
    pub(crate) fn named(&self, name: &str) -> Vec<(&'r str, View<'r>)> {
        let Some(Kind::Named { of, .. }) = self.find(name).map(|key| key.kind) else {
            return Vec::new();
        };
        let path = self.key(name);
        let view = |(name, node): (&'r str, &'r Node)| match &node.value {
            Value::Table(table) => Some((
                name,
                View {
                    section: of.section_of(table)?,
                    table,
                    header: Some(node.span.start),
                    path: below(&path, name),
                },
            )),
            _ => None,
        };
        self.entries(name).filter_map(view).collect()
    }

    /// The texts in a table whose keys the operator chose: a name, its texts, and whether they stand in a list.
    pub(crate) fn named_texts(&self, name: &str) -> Vec<(&'r str, Vec<Placed>, bool)> {
        if self.find(name).is_none() {
            return Vec::new();
        }
        self.entries(name)
            .map(|(name, node)| (name, texts(node), matches!(node.value, Value::List(_))))
            .collect()
    }

    /// The table of a key whose entries the operator chose, as a view: for the places of faults alone, because its
    /// section is that of its parent.
    pub(crate) fn entries_view(&self, name: &str) -> View<'r> {
        let (table, header) = match self.written(name) {
            Some(Node {
                value: Value::Table(table),
                span,
            }) => (table, Some(span.start)),
            Some(_) | None => (&EMPTY, None),
        };
        View {
            section: self.section,
            table,
            header,
            path: self.key(name),
        }
    }

    fn entries(&self, name: &str) -> impl Iterator<Item = (&'r str, &'r Node)> + use<'r> {
        let table = match self.written(name).map(|node| &node.value) {
            Some(Value::Table(table)) => table,
            _ => &EMPTY,
        };
        table
            .entries
            .iter()
            .map(|entry| (entry.name.as_str(), &entry.node))
    }

    /// What is written, else what holds by default.
    fn value(&self, name: &str) -> Option<Cow<'r, Node>> {
        let key = self.find(name)?;
        match (self.written(name), key.need) {
            (Some(node), _) => Some(Cow::Borrowed(node)),
            (None, Need::Default(text)) => read_value(text).map(Cow::Owned),
            (None, Need::Required | Need::Optional) => None,
        }
    }

    fn written(&self, name: &str) -> Option<&'r Node> {
        self.table.entry(name).map(|entry| &entry.node)
    }

    /// The row of a key. A key that is not in the table cannot be read, and so would never hold.
    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        #[cfg(test)]
        reads::note(self.section, name);
        self.section.key(name)
    }
}

fn number(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Integer(number, _) => number.and_then(|number| u64::try_from(number).ok()),
        Value::Text(text) => amount::bytes(text).ok(),
        _ => None,
    }
}

fn texts(node: &Node) -> Vec<Placed> {
    let one = |node: &Node| match &node.value {
        Value::Text(text) => Some(Placed {
            text: text.clone(),
            at: Some(node.span.start),
        }),
        _ => None,
    };
    match &node.value {
        Value::List(items) => items.iter().filter_map(one).collect(),
        _ => one(node).into_iter().collect(),
    }
}

/// Which keys the settings read, so that a test can compare them with the table.
#[cfg(test)]
pub(crate) mod reads {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use crate::key::Section;

    thread_local! {
        static READS: RefCell<BTreeSet<(&'static str, String)>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub(crate) fn note(section: &Section, name: &str) {
        READS.with_borrow_mut(|reads| reads.insert((section.at, name.to_owned())));
    }

    pub(crate) fn take() -> BTreeSet<(&'static str, String)> {
        READS.take()
    }
}
