//! `tollhouse.names`: which operation each name of a tool belongs to, so that a name never comes to mean another one.
//!
//! A file beside the configuration, one line for each name: `billing_getInvoice billing GET /invoices/{id}`. Names of
//! operations that are gone stay in it. It is written by `tollhouse names --write` and belongs under version control;
//! without it, nothing is locked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use catalog::Tool;
use config::{ReadFault, Settings, UpstreamSettings, World};
use model::UpstreamName;
use openapi::{Document, NameLock, NamingFault, ToolNaming, is_tool_name, tool_names};

use crate::problem::Problem;

/// The name of the file.
pub(crate) const FILE: &str = "tollhouse.names";

/// What a name belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    upstream: String,
    /// Method and path, as `GET /invoices/{id}`.
    operation: String,
}

/// The names that were given so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    owners: BTreeMap<String, Owner>,
}

/// Where the file is.
pub(crate) fn path(settings: &Settings) -> PathBuf {
    // `./tollhouse.names` reads worse than `tollhouse.names`, and is the same file.
    if settings.folder == Path::new(".") {
        PathBuf::from(FILE)
    } else {
        settings.folder.join(FILE)
    }
}

impl Names {
    /// Reads the file; no file is no names.
    pub(crate) fn read(settings: &Settings, world: &dyn World) -> Result<Self, Problem> {
        let path = path(settings);
        let fault = |line: Option<usize>, text: String| Problem {
            file: Some(path.display().to_string()),
            line,
            column: line.map(|_| 1),
            key: None,
            kind: "names",
            text,
        };
        let bytes = match world.read(&path, settings.limits.document_bytes_max) {
            Ok(bytes) => bytes,
            Err(ReadFault::Missing) => return Ok(Self::default()),
            Err(other) => return Err(fault(None, format!("this file {other}"))),
        };
        let text = String::from_utf8(bytes).map_err(|_| fault(None, "this file is not UTF-8".to_owned()))?;
        Self::parse(&text).map_err(|(line, text)| fault(Some(line), text))
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut names = Self::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let (Some(name), Some(upstream), Some(operation)) = (words.next(), words.next(), words.next())
            else {
                return Err((
                    number,
                    "this line is not `NAME UPSTREAM METHOD PATH`; correct it, or take it out".to_owned(),
                ));
            };
            if !is_tool_name(name) {
                return Err((
                    number,
                    "this line gives a name that no tool can have; take it out".to_owned(),
                ));
            }
            let owner = Owner {
                upstream: upstream.to_owned(),
                operation: operation.to_owned(),
            };
            if names.owners.insert(name.to_owned(), owner).is_some() {
                return Err((
                    number,
                    format!("the name `{name}` stands twice; take one of the lines out"),
                ));
            }
        }
        Ok(names)
    }

    /// Why a tool cannot have its name; `None` where it can.
    pub(crate) fn objection(&self, tool: &Tool) -> Option<String> {
        let owner = self.owners.get(tool.name().as_str())?;
        let is_own = owner.upstream == tool.upstream().as_str() && owner.operation == tool.origin();
        (!is_own).then(|| {
            format!(
                "the name `{}` belongs to `{}` of the upstream `{}`, as `{FILE}` says; choose another name, or take the \
                 line out if nobody knows the name any more",
                tool.name(),
                owner.operation,
                owner.upstream
            )
        })
    }

    /// A name for every operation of a document: the one that it has, or one that nothing has had.
    pub(crate) fn of(
        &self,
        upstream: &UpstreamSettings,
        document: &Document,
    ) -> Result<Vec<ToolNaming>, NamingFault> {
        let prefix = format!("{}_", upstream.name);
        let mut lock: BTreeMap<String, String> = BTreeMap::new();
        for (name, owner) in &self.owners {
            if owner.upstream == upstream.name.as_str() && name.starts_with(&prefix) {
                lock.entry(owner.operation.clone())
                    .or_insert_with(|| name.clone());
            }
        }
        // A name that another operation has under a second name is taken as well.
        let reserved = self
            .owners
            .iter()
            .filter(|(name, owner)| lock.get(&owner.operation) != Some(*name))
            .map(|(name, _)| (format!("{FILE} {name}"), name.clone()))
            .collect::<Vec<_>>();
        let lock = NameLock::new(lock.into_iter().chain(reserved))?;
        let operations: Vec<_> = document.operations().collect();
        tool_names(&operations, &prefix, &lock)
    }

    /// Adds a name, where nothing has it.
    pub(crate) fn add(&mut self, name: &str, upstream: &UpstreamName, operation: &str) {
        self.owners.entry(name.to_owned()).or_insert_with(|| Owner {
            upstream: upstream.to_string(),
            operation: operation.to_owned(),
        });
    }

    /// Whether an operation has a name.
    pub(crate) fn names(&self, upstream: &UpstreamName, operation: &str) -> bool {
        self.owners
            .values()
            .any(|owner| owner.upstream == upstream.as_str() && owner.operation == operation)
    }

    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Which operation each name of a tool belongs to. Written by `tollhouse names --write`; keep it under version\n\
             # control. A name that is here never comes to mean another operation."
        )?;
        for (name, owner) in &self.owners {
            writeln!(f, "{name} {} {}", owner.upstream, owner.operation)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_each_fault_has_its_line() {
        let text = "# c\n\nb_x b GET /x y\na_x a POST /x/{id}\n";
        let names = Names::parse(text).unwrap();
        let written = names.to_string();
        assert!(
            written.ends_with("a_x a POST /x/{id}\nb_x b GET /x y\n"),
            "{written}"
        );
        assert_eq!(Names::parse(&written).unwrap().to_string(), written);
        for (text, line) in [
            ("a_x a\n", 1),
            ("a_x a GET /x\na_x b GET /y\n", 2),
            ("# c\na.x a GET /x\n", 2),
        ] {
            assert_eq!(Names::parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
