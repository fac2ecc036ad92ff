//! The first reader of the table of keys: is every key known, every value of its kind, every needed key there?
//!
//! What several settings mean together is judged where the settings are made, not here.

use std::collections::BTreeMap;

use crate::address;
use crate::amount;
use crate::datum;
use crate::fault::{ConfigFault, FaultKind, Faults, Wrong};
use crate::form::Form;
use crate::key::{Case, Choice, Key, Kind, Need, Section, one_of};
use crate::place::{Lines, Place};
use crate::raw::{Entry, Node, Table, Value};
use crate::suggest;
use crate::table;

/// One text and what is found in it.
pub(crate) struct Check<'t> {
    pub(crate) file: &'t str,
    pub(crate) lines: &'t Lines,
    pub(crate) faults: &'t mut Faults,
    /// Where each known key stands: its path, and the offset of the key.
    pub(crate) places: &'t mut BTreeMap<String, usize>,
}

/// A path of keys with one more.
pub(crate) fn below(path: &str, name: &str) -> String {
    let name = quoted(name);
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// One part of a path of keys, as [`crate::Settings::place`] takes it: in quotes where it is no bare word.
#[must_use]
pub fn quoted(name: &str) -> String {
    let bare = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare {
        name.to_owned()
    } else {
        format!("\"{}\"", excerpt(name))
    }
}

/// The start of a text, with everything that is not plainly seen escaped.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARACTERS_MAX).map(escaped).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// A path as faults show it: whole, and escaped.
pub(crate) fn whole(path: &std::path::Path) -> String {
    path.display().to_string().chars().map(escaped).collect()
}

fn escaped(c: char) -> String {
    if c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric() {
        c.to_string()
    } else {
        c.escape_default().to_string()
    }
}

/// Where a value stands: in the text, and in the tree of keys.
#[derive(Clone, Copy)]
struct At<'p> {
    offset: Option<usize>,
    path: &'p str,
}

impl Check<'_> {
    /// Checks a table against its section. `header` is where the table is opened; `None` for the root.
    pub(crate) fn section(
        &mut self,
        section: &'static Section,
        table: &Table,
        header: Option<usize>,
        path: &str,
    ) {
        for entry in &table.entries {
            let path = below(path, &entry.name);
            match section.key(&entry.name) {
                Some(key) => {
                    self.places.insert(path.clone(), entry.span.start);
                    self.value(&key.kind, &entry.node, &path);
                }
                None => self.unknown(section, entry, &path),
            }
        }
        for key in section.keys() {
            if matches!(key.need, Need::Required) && table.entry(key.name).is_none() {
                self.missing(
                    key,
                    At {
                        offset: header,
                        path: &below(path, key.name),
                    },
                );
            }
        }
        for choice in section.choices {
            self.choice(choice, table, At { offset: header, path });
        }
    }

    fn missing(&mut self, key: &Key, at: At<'_>) {
        let expected = match key.kind.sections().first() {
            Some(section) if key.example.is_empty() => format!("a table [{}]", section.place()),
            Some(_) | None => format!("it, as `{} = {}`", key.name, key.example),
        };
        let fault = self.fault(at, FaultKind::Missing, "this key is missing");
        self.faults.push(fault.expected(expected));
    }

    fn choice(&mut self, choice: &Choice, table: &Table, at: At<'_>) {
        let keys = choice.keys;
        let mut present = table
            .entries
            .iter()
            .filter(|entry| keys.contains(&entry.name.as_str()));
        match (present.next(), present.next()) {
            (Some(first), Some(second)) => {
                let problem = format!("`{}` and `{}` exclude each other", first.name, second.name);
                let at = At {
                    offset: Some(second.span.start),
                    path: &below(at.path, &second.name),
                };
                let fault = self.fault(at, FaultKind::Conflict, problem);
                self.faults.push(fault.expected(format!("only {}", one_of(keys))));
            }
            (None, _) if choice.required => {
                let fault = self.fault(at, FaultKind::Missing, "this table says nothing");
                self.faults
                    .push(fault.expected(format!("{} into it", one_of(keys))));
            }
            (Some(_) | None, _) => {}
        }
    }

    /// A table that can have several sections.
    fn cases(&mut self, cases: &'static [Case], kind: &Kind, table: &Table, at: At<'_>) {
        let Some(section) = kind.section_of(table) else {
            return;
        };
        let by: Vec<&'static str> = cases.iter().map(|case| case.by).collect();
        let told: Vec<&Entry> = table
            .entries
            .iter()
            .filter(|entry| by.contains(&entry.name.as_str()))
            .collect();
        match told.as_slice() {
            [] => {
                let fault = self.fault(at, FaultKind::Missing, "nothing says what this is");
                self.faults
                    .push(fault.expected(format!("{} into it", one_of(&by))));
            }
            [first, second, ..] => {
                let problem = format!("`{}` and `{}` exclude each other", first.name, second.name);
                let at = At {
                    offset: Some(second.span.start),
                    path: &below(at.path, &second.name),
                };
                let fault = self.fault(at, FaultKind::Conflict, problem);
                self.faults.push(fault.expected(format!("only {}", one_of(&by))));
            }
            // With no key that tells, and with two, every other fault could be one of another case.
            [_] => self.section(section, table, at.offset, at.path),
        }
    }

    fn unknown(&mut self, section: &'static Section, entry: &Entry, path: &str) {
        if self.faults.full() {
            return self.faults.count();
        }
        let at = At {
            offset: Some(entry.span.start),
            path,
        };
        let fault = self.fault(at, FaultKind::UnknownKey, "this key is not known");
        let names = section.keys().iter().map(|key| key.name);
        let hint = if let Some(meant) = suggest::closest(&entry.name, names.clone()) {
            format!("did you mean `{meant}`?")
        } else if let Some(other) = table::ROOT
            .tree()
            .iter()
            .find(|other| other.key(&entry.name).is_some())
        {
            if let Some((at, which)) = other.at.split_once(' ') {
                format!("`{}` belongs into [{at}] {which}", entry.name)
            } else if other.at.is_empty() {
                format!("`{}` stands above the first table", entry.name)
            } else {
                format!("`{}` belongs into [{}]", entry.name, other.at)
            }
        } else {
            let few: Vec<_> = names.take(20).collect();
            format!("known here: {}", few.join(", "))
        };
        self.faults.push(fault.hint(hint));
    }

    /// Checks one value against its kind.
    pub(crate) fn value(&mut self, kind: &Kind, node: &Node, path: &str) {
        let at = At {
            offset: Some(node.span.start),
            path,
        };
        match (kind, &node.value) {
            (Kind::Text(form) | Kind::OneOrMany { of: form, .. }, Value::Text(text)) => {
                self.text(form, text, at)
            }
            (Kind::Truth, Value::Truth(_)) => {}
            (Kind::Count { min, max }, Value::Integer(number, shown)) => {
                self.bounds(natural(*number), (*min, *max), |n| n.to_string(), shown, at);
            }
            (Kind::Size { min, max }, Value::Integer(number, shown)) => {
                self.bounds(natural(*number), (*min, *max), amount::bytes_text, shown, at);
            }
            (Kind::Size { min, max }, Value::Text(text)) => match amount::bytes(text) {
                Ok(bytes) => self.bounds(Some(bytes), (*min, *max), amount::bytes_text, text, at),
                Err(wrong) => self.wrong(&wrong, text, at),
            },
            (Kind::Span { min, max }, Value::Text(text)) => match amount::millis(text) {
                Ok(millis) => self.bounds(Some(millis), (*min, *max), amount::millis_text, text, at),
                Err(wrong) => self.wrong(&wrong, text, at),
            },
            (Kind::Number, value) if datum::number(value).is_some() => {}
            (Kind::Datum { lists: true }, value) if datum::value(value).is_some() => {}
            (Kind::Datum { lists: false }, value) if datum::single(value).is_some() => {}
            (Kind::Word { what, words }, Value::Text(text)) => self.word(what, words, text, at),
            (Kind::List { of, min, max }, Value::List(items)) => {
                if self.length(items.len(), (*min, *max), "items", at) {
                    self.items(of, items, path);
                }
            }
            (Kind::OneOrMany { of, max }, Value::List(items)) => {
                if self.length(items.len(), (1, *max), "items", at) {
                    self.items(&Kind::Text(of), items, path);
                }
            }
            (Kind::Table(section), Value::Table(table)) => self.section(section, table, at.offset, path),
            (Kind::Cases(cases), Value::Table(table)) => self.cases(cases, kind, table, at),
            (Kind::Named { name, of, min, max }, Value::Table(table)) => {
                if self.length(table.entries.len(), (*min, *max), "entries", at) {
                    for entry in &table.entries {
                        self.named(name, of, entry, &below(path, &entry.name));
                    }
                }
            }
            _ => self.wrong_type(kind, &node.value, at),
        }
    }

    fn items(&mut self, kind: &Kind, items: &[Node], path: &str) {
        for (index, item) in items.iter().enumerate() {
            self.value(kind, item, &format!("{path}[{index}]"));
        }
    }

    /// One entry of a table whose keys the operator chooses.
    fn named(&mut self, form: &Form, of: &Kind, entry: &Entry, path: &str) {
        if let Err(wrong) = (form.judge)(&entry.name) {
            let name = excerpt(&entry.name);
            let problem = format!("{} `{name}` {}", form.what, wrong.problem);
            let at = At {
                offset: Some(entry.span.start),
                path,
            };
            let fault = self.fault(at, FaultKind::WrongValue, problem).found(Some(name));
            self.faults.push(advise(fault, &wrong, form.expected));
        }
        self.places.insert(path.to_owned(), entry.span.start);
        self.value(of, &entry.node, path);
    }

    fn text(&mut self, form: &Form, text: &str, at: At<'_>) {
        if let Err(wrong) = form.written(text) {
            let problem = format!("{} {}", subject(form, text), wrong.problem);
            let found = (!form.hidden).then(|| shown(form, text));
            let fault = self.fault(at, FaultKind::WrongValue, problem).found(found);
            self.faults.push(advise(fault, &wrong, form.expected));
        }
    }

    fn word(&mut self, what: &str, words: &[&str], text: &str, at: At<'_>) {
        if !words.contains(&text) {
            let problem = format!("`{}` is no {what}", excerpt(text));
            let fault = self
                .fault(at, FaultKind::WrongValue, problem)
                .found(Some(excerpt(text)));
            self.faults.push(fault.expected(one_of(words)));
        }
    }

    fn wrong(&mut self, wrong: &Wrong, text: &str, at: At<'_>) {
        let problem = format!("`{}` {}", excerpt(text), wrong.problem);
        let fault = self
            .fault(at, FaultKind::WrongValue, problem)
            .found(Some(excerpt(text)));
        self.faults.push(advise(fault, wrong, ""));
    }

    fn bounds(
        &mut self,
        number: Option<u64>,
        (min, max): (u64, u64),
        show: fn(u64) -> String,
        found: &str,
        at: At<'_>,
    ) {
        if !number.is_some_and(|number| (min..=max).contains(&number)) {
            let problem = format!("`{}` is out of bounds", excerpt(found));
            let fault = self
                .fault(at, FaultKind::OutOfRange, problem)
                .found(Some(excerpt(found)));
            self.faults
                .push(fault.expected(format!("a value from {} to {}", show(min), show(max))));
        }
    }

    /// Whether a list or table has a length that is worth looking into.
    fn length(&mut self, length: usize, (min, max): (usize, usize), what: &str, at: At<'_>) -> bool {
        if length < min {
            let fault = self.fault(at, FaultKind::OutOfRange, "this is empty");
            self.faults.push(fault.hint(format!("at least {min} is needed")));
        } else if length > max {
            let fault = self.fault(at, FaultKind::OutOfRange, format!("this has {length} {what}"));
            self.faults.push(fault.hint(format!("at most {max} are allowed")));
        }
        (min..=max).contains(&length)
    }

    fn wrong_type(&mut self, kind: &Kind, value: &Value, at: At<'_>) {
        let (what, text) = match value {
            Value::Text(text) => ("a text", Some(format!("\"{text}\""))),
            Value::Integer(_, text) => ("an integer", Some(text.clone())),
            Value::Float(text) => ("a number with a point", Some(text.clone())),
            Value::Truth(truth) => ("a truth value", Some(truth.to_string())),
            Value::Time(text) => ("a date or time", Some(text.clone())),
            Value::List(_) => ("a list", None),
            Value::Table(_) => ("a table", None),
            Value::Deep => ("nested too deep", None),
        };
        let found = text.filter(|_| !kind.hidden()).map(|text| excerpt(&text));
        let subject = found
            .as_ref()
            .map_or_else(|| "this".to_owned(), |found| format!("`{found}`"));
        let fault = self.fault(at, FaultKind::WrongType, format!("{subject} is {what}"));
        self.faults.push(
            fault
                .found(found.or_else(|| Some(what.to_owned())))
                .expected(kind.expected()),
        );
    }

    fn fault(&self, at: At<'_>, kind: FaultKind, problem: impl Into<String>) -> ConfigFault {
        let fault = ConfigFault::of_file(self.file, kind, problem).key(at.path);
        match at.offset {
            Some(offset) => fault.at(&place(self.file, self.lines, offset)),
            None => fault,
        }
    }
}

pub(crate) fn place(file: &str, lines: &Lines, offset: usize) -> Place {
    let (line, column) = lines.find(offset);
    Place {
        file: file.to_owned(),
        line,
        column,
    }
}

/// A value as faults show it: shortened, escaped, and of a URL nothing that may be secret.
fn shown(form: &Form, text: &str) -> String {
    if form.url {
        excerpt(&address::redacted(text))
    } else {
        excerpt(text)
    }
}

/// How a fault speaks of a written value: by showing it, unless it may be secret.
fn subject(form: &Form, text: &str) -> String {
    if form.hidden || text.is_empty() {
        format!("this {}", form.what)
    } else {
        format!("`{}`", shown(form, text))
    }
}

/// Adds what the judge advises, or what the form expects.
pub(crate) fn advise(fault: ConfigFault, wrong: &Wrong, expected: &str) -> ConfigFault {
    let fault = match &wrong.expected {
        Some(expected) => fault.expected(expected),
        None if expected.is_empty() => fault,
        None => fault.expected(expected),
    };
    match &wrong.hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

fn natural(number: Option<i64>) -> Option<u64> {
    number.and_then(|number| u64::try_from(number).ok())
}
