//! One fault of a configuration: where, what, what would be right, and what to do. It finds none itself.

use std::fmt;

use serde::Serialize;

use crate::place::Place;

/// What kind of fault it is. The words are part of the contract of `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A file or folder that cannot be read: missing, not permitted, too long, not text.
    Unreadable,
    /// Not TOML.
    Syntax,
    /// A key that stands twice in one table.
    Duplicate,
    /// A key that means nothing here.
    UnknownKey,
    /// A key that must be there and is not.
    Missing,
    /// A value of another type than the key takes.
    WrongType,
    /// A value of the right type that is not what the key takes.
    WrongValue,
    /// A number, size, duration or length beyond its bounds.
    OutOfRange,
    /// A credential written in clear.
    ClearText,
    /// An `env:` or `file:` value whose variable or file gives nothing usable.
    Unresolved,
    /// A name of a caller or source that is not configured.
    UnknownName,
    /// Two settings that contradict each other, or one that means nothing without another.
    Conflict,
    /// A choice that opens the gate further than it may be by accident.
    Unsafe,
    /// A date that has passed. A warning.
    Expired,
    /// Something that is allowed and does nothing, or less than it seems. A warning.
    Ineffective,
    /// Tollhouse could not understand what it had found to be right. A defect of Tollhouse.
    Internal,
}

/// One thing that is wrong with a configuration, or questionable where it is listed as a warning.
///
/// Shown on one line: ``tollhouse.toml:12:9: upstream.billing.tool.x.class: `reed` is no class; write one of read, …``.
/// As JSON: `{"file":"tollhouse.toml","line":12,"column":9,"key":"upstream.billing.tool.x.class","kind":"wrong-value",
/// "problem":"`reed` is no class","found":"reed","expected":"one of read, …","hint":null}`.
///
/// A value that may be a secret is never in it: not in `found`, not in `problem`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigFault {
    /// The file that has to be changed.
    pub file: String,
    /// The line, counted from 1. None where the fault is about the file as a whole.
    pub line: Option<usize>,
    /// The column in characters, counted from 1.
    pub column: Option<usize>,
    /// The path of the key, as `upstream.billing.openapi`; empty where no key is meant.
    pub key: String,
    /// The kind of fault.
    pub kind: FaultKind,
    /// What is wrong, as a sentence without its end.
    pub problem: String,
    /// What was written, shortened; None where it may be secret or where nothing was written.
    pub found: Option<String>,
    /// What would be right; completes "write …".
    pub expected: Option<String>,
    /// What to do or to know.
    pub hint: Option<String>,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.problem)?;
        if let Some(expected) = &self.expected {
            write!(f, "; write {expected}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFault {}

impl ConfigFault {
    /// A fault about `file` as a whole.
    pub(crate) fn of_file(file: &str, kind: FaultKind, problem: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            key: String::new(),
            kind,
            problem: problem.into(),
            found: None,
            expected: None,
            hint: None,
        }
    }

    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.line = Some(place.line);
        self.column = Some(place.column);
        self
    }

    pub(crate) fn key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    pub(crate) fn found(mut self, found: Option<String>) -> Self {
        self.found = found;
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What is wrong with one text, said about a subject that the one who reports it names: `` `x` `` + ` has no port`.
///
/// The subject is left out here so that one judgement serves values that may be shown and values that may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) problem: String,
    pub(crate) expected: Option<String>,
    pub(crate) hint: Option<String>,
}

pub(crate) fn wrong(problem: impl Into<String>) -> Wrong {
    Wrong {
        problem: problem.into(),
        expected: None,
        hint: None,
    }
}

impl Wrong {
    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The most faults that are reported of one configuration; what is beyond is counted. A file of a megabyte can hold
/// hundreds of thousands, and nobody reads past the first few.
pub(crate) const FAULTS_MAX: usize = 500;

/// Faults as they are found.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    list: Vec<ConfigFault>,
    beyond: usize,
}

impl Faults {
    pub(crate) fn push(&mut self, fault: ConfigFault) {
        if self.list.len() < FAULTS_MAX {
            self.list.push(fault);
        } else {
            self.count();
        }
    }

    /// Counts a fault that is not worth describing any more.
    pub(crate) fn count(&mut self) {
        self.beyond += 1;
    }

    pub(crate) fn full(&self) -> bool {
        self.list.len() >= FAULTS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The faults of `main` first, in the order of the file; then those of other files.
    pub(crate) fn in_order(mut self, main: &str) -> Vec<ConfigFault> {
        self.list.sort_by(|a, b| {
            let order =
                |fault: &ConfigFault| (fault.file != main, fault.file.clone(), fault.line, fault.column);
            order(a).cmp(&order(b))
        });
        if self.beyond > 0 {
            let problem = format!("{} more faults are not shown", self.beyond);
            self.list.push(
                ConfigFault::of_file(main, FaultKind::OutOfRange, problem).hint("mend those above first"),
            );
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: usize) -> ConfigFault {
        let place = Place {
            file: "a.toml".into(),
            line,
            column: 2,
        };
        ConfigFault::of_file("a.toml", FaultKind::Missing, "this key is missing")
            .at(&place)
            .key("store")
    }

    #[test]
    fn a_fault_is_one_line_with_place_key_cause_and_next_step() {
        assert_eq!(fault(3).to_string(), "a.toml:3:2: store: this key is missing");
        assert_eq!(
            fault(3).expected("a path").hint("or leave it out").to_string(),
            "a.toml:3:2: store: this key is missing; write a path; or leave it out"
        );
        assert_eq!(
            ConfigFault::of_file("a.toml", FaultKind::Unreadable, "this file is not there").to_string(),
            "a.toml: this file is not there"
        );
    }

    #[test]
    fn a_fault_is_an_object_with_the_documented_names() {
        let fault = fault(3).found(None).expected("a path");
        assert_eq!(
            serde_json::to_string(&fault).unwrap(),
            r#"{"file":"a.toml","line":3,"column":2,"key":"store","kind":"missing","problem":"this key is missing","found":null,"expected":"a path","hint":null}"#
        );
        assert_eq!(
            serde_json::to_string(&FaultKind::UnknownKey).unwrap(),
            "\"unknown-key\""
        );
    }

    #[test]
    fn faults_come_in_the_order_of_the_file_and_those_past_the_limit_are_counted() {
        let mut faults = Faults::default();
        for line in (1..=FAULTS_MAX).rev() {
            faults.push(fault(line));
        }
        let all = faults.in_order("a.toml");
        assert_eq!(all.len(), FAULTS_MAX);
        assert!(all.windows(2).all(|pair| pair[0].line < pair[1].line));

        let mut faults = Faults::default();
        for line in 1..=FAULTS_MAX + 1 {
            faults.push(fault(line));
        }
        let all = faults.in_order("a.toml");
        assert_eq!(all.len(), FAULTS_MAX + 1);
        assert_eq!(
            all.last().unwrap().to_string(),
            "a.toml: 1 more faults are not shown; mend those above first"
        );
    }
}
