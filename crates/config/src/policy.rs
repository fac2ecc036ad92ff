//! The texts of the rules, found and read. What they say is judged in the `policy` room.

use crate::fault::{ConfigFault, FaultKind};
use crate::place::{Lines, Place};
use crate::reading::{Reading, unread};
use crate::view::View;
use crate::world::ReadFault;

/// The most rule files of one folder.
pub(crate) const POLICY_FILES_MAX: usize = 1_000;

/// One file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyText {
    /// Its path: the folder as it was written, and the name.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Every `*.cedar` file of the policy folder, in the order of their names.
pub(crate) fn read(reading: &mut Reading<'_>, root: &View<'_>) -> Option<Vec<PolicyText>> {
    let view = root.table_or_defaults("policy")?;
    let folder = reading.path(&view.text("folder")?);
    let mut names = match reading.world.list(&folder) {
        Ok(names) => names,
        Err(fault) => {
            let fault_here = reading.fault_at(
                &view,
                "folder",
                FaultKind::Unreadable,
                unread(&folder, &fault, "entries"),
            );
            reading.faults.push(match fault {
                ReadFault::Missing => {
                    fault_here.hint("make the folder and put rules into it; what no rule permits is refused")
                }
                ReadFault::Denied
                | ReadFault::Kind(_)
                | ReadFault::Long { .. }
                | ReadFault::Name
                | ReadFault::Other(_) => fault_here,
            });
            return None;
        }
    };
    names.retain(|name| name.ends_with(".cedar"));
    names.sort_unstable();
    if names.len() > POLICY_FILES_MAX {
        let problem = format!("`{}` holds {} rule files", folder.display(), names.len());
        let fault = reading.fault_at(&view, "folder", FaultKind::OutOfRange, problem);
        reading
            .faults
            .push(fault.hint(format!("at most {POLICY_FILES_MAX} are read")));
        return None;
    }
    if names.is_empty() {
        let problem = format!("`{}` holds no `*.cedar` file", folder.display());
        let warning = reading.fault_at(&view, "folder", FaultKind::Ineffective, problem);
        reading
            .warnings
            .push(warning.hint("without a rule that permits it, every call is refused"));
    }
    // Every file is tried, so that the faults of all of them are known at once.
    let texts: Vec<Option<PolicyText>> = names
        .iter()
        .map(|name| text(reading, &folder.join(name)))
        .collect();
    texts.into_iter().collect()
}

fn text(reading: &mut Reading<'_>, path: &std::path::Path) -> Option<PolicyText> {
    let shown = path.display().to_string();
    let fault =
        |problem: String| ConfigFault::of_file(&shown, FaultKind::Unreadable, problem).key("policy.folder");
    let found = match reading.world.read(path, reading.limits.config_bytes_max) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|error| {
            let at = not_utf8(&shown, error.as_bytes(), error.utf8_error().valid_up_to());
            fault("this file is not UTF-8".to_owned()).at(&at)
        }),
        Err(ReadFault::Long { max }) => Err(fault(format!("this file is longer than {max} bytes"))
            .hint("split it, or raise `limits.config_bytes_max`")),
        Err(other) => Err(fault(format!("this file {other}"))),
    };
    match found {
        Ok(text) => Some(PolicyText { path: shown, text }),
        Err(fault) => {
            reading.faults.push(fault);
            None
        }
    }
}

/// The place of the first byte of a text that is not UTF-8.
pub(crate) fn not_utf8(file: &str, bytes: &[u8], valid: usize) -> Place {
    let before = bytes
        .get(..valid)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default();
    let (line, column) = Lines::of(before).find(valid);
    Place {
        file: file.to_owned(),
        line,
        column,
    }
}
