//! What the making of settings carries along: the world, the place of things, the limits, and every fault so far.
//!
//! Here `env:` and `file:` values are resolved, one by one, as strings; what they hold is never read as configuration.

use std::path::{Path, PathBuf};

use model::{Limits, SecretText};

use crate::check::{advise, place, whole};
use crate::fault::{ConfigFault, FaultKind, Faults, Wrong};
use crate::form::{Form, Written};
use crate::key::Kind;
use crate::lookup::Known;
use crate::place::Lines;
use crate::view::View;
use crate::world::{ReadFault, World};

/// A file that was read whole. `Debug` shows its length, not its content.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentFile {
    /// Its path: as it was written, behind the folder of the configuration where it is relative.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for DocumentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentFile({:?}, {} bytes)", self.path, self.bytes.len())
    }
}

/// The making of settings.
pub(crate) struct Reading<'w> {
    pub(crate) world: &'w dyn World,
    pub(crate) file: String,
    pub(crate) folder: PathBuf,
    pub(crate) lines: Lines,
    pub(crate) faults: Faults,
    pub(crate) warnings: Faults,
    pub(crate) limits: Limits,
    /// Whether credentials may stand in the file in clear.
    pub(crate) clear_text: bool,
    /// What tools may refer to.
    pub(crate) known: Known,
}

/// A value after `env:` and `file:` were followed.
pub(crate) struct Resolved {
    pub(crate) text: String,
    /// The reference as it was written; `None` where the value itself stands in the file.
    pub(crate) from: Option<String>,
}

impl Resolved {
    pub(crate) fn into_secret(self) -> SecretText {
        SecretText::from(self.text)
    }
}

impl Reading<'_> {
    /// A fault at the value of a key, or at its table where it is not written.
    pub(crate) fn fault_at(
        &self,
        view: &View<'_>,
        name: &str,
        kind: FaultKind,
        problem: impl Into<String>,
    ) -> ConfigFault {
        self.fault(view.at(name), &view.key(name), kind, problem)
    }

    pub(crate) fn fault(
        &self,
        at: Option<usize>,
        key: &str,
        kind: FaultKind,
        problem: impl Into<String>,
    ) -> ConfigFault {
        let fault = ConfigFault::of_file(&self.file, kind, problem).key(key);
        match at {
            Some(offset) => fault.at(&place(&self.file, &self.lines, offset)),
            None => fault,
        }
    }

    /// Where a path of the configuration leads: relative ones are relative to its folder.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        self.folder.join(text)
    }

    /// The value of a key with `env:` or `file:` followed.
    pub(crate) fn resolve(&mut self, view: &View<'_>, name: &str) -> Option<Resolved> {
        let Some(Kind::Text(form)) = view.find(name).map(|key| key.kind) else {
            return None;
        };
        let text = view.text(name)?;
        self.followed(view, name, form, text)
    }

    /// The value of one entry of a table whose keys the operator chose, with `env:` or `file:` followed. `table` is the
    /// view of that table's parent, `name` its key.
    pub(crate) fn resolve_entry(
        &mut self,
        view: &View<'_>,
        name: &str,
        entry: &str,
        text: String,
    ) -> Option<Resolved> {
        let Some(Kind::Named {
            of: Kind::Text(form), ..
        }) = view.find(name).map(|key| key.kind)
        else {
            return None;
        };
        let entries = view.entries_view(name);
        self.followed(&entries, entry, form, text)
    }

    fn followed(&mut self, view: &View<'_>, name: &str, form: &Form, text: String) -> Option<Resolved> {
        // A text that is not of its form has a fault already.
        let (value, from) = match form.written(&text).ok()? {
            Written::Here(value) => {
                if form.credential && !self.clear_text {
                    let problem = format!("this {} is written in clear", form.what);
                    let fault = self.fault_at(view, name, FaultKind::ClearText, problem);
                    self.faults.push(
                        fault
                            .expected("env:NAME or file:PATH instead")
                            .hint("whoever reads this file could use it"),
                    );
                    return None;
                }
                return Some(Resolved {
                    text: value.to_owned(),
                    from: None,
                });
            }
            Written::Variable(variable) => (self.variable(view, name, variable)?, text.clone()),
            Written::File(path) => (self.secret_file(view, name, path)?, text.clone()),
        };
        let tidied = if form.lines { Ok(()) } else { tidy(&value) };
        match tidied.and_then(|()| (form.judge)(&value)) {
            Ok(()) => Some(Resolved {
                text: value,
                from: Some(from),
            }),
            Err(wrong) => {
                self.unresolved(view, name, form, &from, &wrong);
                None
            }
        }
    }

    fn variable(&mut self, view: &View<'_>, name: &str, variable: &str) -> Option<String> {
        let (problem, hint) = match self.world.variable(variable) {
            Ok(Some(value)) => return Some(value),
            Ok(None) => ("is not set", "set it before Tollhouse starts"),
            Err(crate::world::NotUnicode) => ("holds a value that is not Unicode", "set it to a text"),
        };
        let fault = self.fault_at(
            view,
            name,
            FaultKind::Unresolved,
            format!("the variable `{variable}` {problem}"),
        );
        self.faults
            .push(fault.found(Some(format!("env:{variable}"))).hint(hint));
        None
    }

    fn secret_file(&mut self, view: &View<'_>, name: &str, path: &str) -> Option<String> {
        let file = self.file_of(
            view,
            name,
            path,
            self.limits.config_bytes_max,
            FaultKind::Unresolved,
        )?;
        let Ok(mut text) = String::from_utf8(file.bytes) else {
            let problem = format!("`{}` is not UTF-8", whole(file.path.as_ref()));
            let fault = self.fault_at(view, name, FaultKind::Unresolved, problem);
            self.faults.push(fault.hint("write the value into it as text"));
            return None;
        };
        // Editors and `echo` end a file with a line break that is no part of the value.
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Some(text)
    }

    /// Says what is wrong with a value that stands elsewhere, and shows the reference instead of the value.
    fn unresolved(&mut self, view: &View<'_>, name: &str, form: &Form, from: &str, wrong: &Wrong) {
        let problem = format!("the value of `{from}` {}", wrong.problem);
        let fault = self
            .fault_at(view, name, FaultKind::Unresolved, problem)
            .found(Some(from.to_owned()));
        let fault = if form.hidden {
            fault
        } else {
            advise(fault, wrong, form.expected)
        };
        self.faults.push(fault);
    }

    /// Reads the file that a key names. A fault is reported at the key.
    pub(crate) fn file_of(
        &mut self,
        view: &View<'_>,
        name: &str,
        path: &str,
        bytes_max: usize,
        kind: FaultKind,
    ) -> Option<DocumentFile> {
        let path = self.path(path);
        match self.world.read(&path, bytes_max) {
            Ok(bytes) => Some(DocumentFile {
                path: path.display().to_string(),
                bytes,
            }),
            Err(read) => {
                let fault = self.fault_at(view, name, kind, unread(&path, &read, "bytes"));
                let fault = match read {
                    ReadFault::Missing => fault.hint("relative paths begin in the folder of this file"),
                    ReadFault::Denied
                    | ReadFault::Kind(_)
                    | ReadFault::Long { .. }
                    | ReadFault::Name
                    | ReadFault::Other(_) => fault,
                };
                self.faults.push(fault);
                None
            }
        }
    }
}

/// "`a.toml` is not there".
pub(crate) fn unread(path: &Path, fault: &ReadFault, unit: &str) -> String {
    let unit = if matches!(fault, ReadFault::Long { .. }) {
        format!(" {unit}")
    } else {
        String::new()
    };
    format!("`{}` {fault}{unit}", whole(path))
}

/// What a value from elsewhere must be before it is judged: a slip of `export` or of an editor is found here, where it
/// can be named, instead of in a refused sign-in.
fn tidy(value: &str) -> Result<(), Wrong> {
    if value.is_empty() {
        return Err(crate::fault::wrong("is empty"));
    }
    if value.trim() != value {
        return Err(crate::fault::wrong("has a space or a line break at an end"));
    }
    if value.chars().any(char::is_control) {
        return Err(crate::fault::wrong("has a control character or a line break"));
    }
    Ok(())
}
