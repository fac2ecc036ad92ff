//! One fault of what a person wrote, wherever it was found: in the configuration, a document, a policy.

use std::fmt;

use config::{ConfigFault, Settings};
use policy::PolicyFault;
use serde::Serialize;

use crate::print::{counted, tell};

/// A fault, with its place and what to do about it.
///
/// As JSON: `{"file":"tollhouse.toml","line":12,"column":9,"key":"upstream.billing.destination","kind":"document",
/// "text":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The file that has to be changed.
    pub(crate) file: Option<String>,
    /// The line, counted from 1.
    pub(crate) line: Option<usize>,
    /// The column, counted from 1.
    pub(crate) column: Option<usize>,
    /// The key of the configuration.
    pub(crate) key: Option<String>,
    /// Which part of the house found it.
    pub(crate) kind: &'static str,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Problem {
    /// A fault that is found behind the configuration, at the key that led there.
    pub(crate) fn at(settings: &Settings, key: &str, kind: &'static str, text: impl Into<String>) -> Self {
        let place = settings.place(key);
        Self {
            file: Some(
                place
                    .as_ref()
                    .map_or_else(|| settings.path.display().to_string(), |place| place.file.clone()),
            ),
            line: place.as_ref().map(|place| place.line),
            column: place.as_ref().map(|place| place.column),
            key: Some(key.to_owned()),
            kind,
            text: text.into(),
        }
    }
}

impl From<&ConfigFault> for Problem {
    fn from(fault: &ConfigFault) -> Self {
        let mut text = fault.problem.clone();
        if let Some(expected) = &fault.expected {
            text.push_str(&format!("; write {expected}"));
        }
        if let Some(hint) = &fault.hint {
            text.push_str(&format!("; {hint}"));
        }
        Self {
            file: Some(fault.file.clone()),
            line: fault.line,
            column: fault.column,
            key: (!fault.key.is_empty()).then(|| fault.key.clone()),
            kind: "configuration",
            text,
        }
    }
}

impl From<&PolicyFault> for Problem {
    fn from(fault: &PolicyFault) -> Self {
        let (file, line, column) = match &fault.place {
            policy::Place::File { path, line, column } => (Some(path.clone()), Some(*line), Some(*column)),
            policy::Place::Tool(_) | policy::Place::Whole => (None, None, None),
        };
        let mut text = match &fault.place {
            policy::Place::Tool(tool) => format!("tool `{tool}`: {}", fault.text),
            policy::Place::File { .. } | policy::Place::Whole => fault.text.clone(),
        };
        if let Some(hint) = &fault.hint {
            text.push_str(&format!("; {hint}"));
        }
        Self {
            file,
            line,
            column,
            key: None,
            kind: "policy",
            text,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
            write!(f, ": ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}", self.text)
    }
}

/// Lists problems on standard error.
pub(crate) fn report(problems: &[Problem]) {
    for problem in problems {
        tell!("{problem}");
    }
    let faults = counted(problems.len(), "fault", "faults");
    tell!("tollhouse: {faults}; nothing was started");
}
