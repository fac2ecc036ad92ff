//! From a path to settings: reads the text, reports every fault of it, and hands on what it means.

use std::collections::BTreeMap;
use std::path::Path;

use model::{LimitKey, Limits};

use crate::check::{Check, excerpt, place};
use crate::fault::{ConfigFault, FaultKind, Faults};
use crate::lookup::Known;
use crate::place::Lines;
use crate::policy::not_utf8;
use crate::raw;
use crate::reading::Reading;
use crate::settings::{self, Settings};
use crate::table::ROOT;
use crate::view::View;
use crate::world::{ReadFault, World};

/// A configuration that can be used, and what is questionable about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it means.
    pub settings: Settings,
    /// What a person should know: things that are allowed and probably not meant.
    pub warnings: Vec<ConfigFault>,
}

/// Reads a configuration, and every file that it names.
///
/// # Errors
/// Every fault at once, in the order of the file. Where the text is not TOML, only that is reported: what a broken
/// text means is a guess.
pub fn load(path: &Path, world: &dyn World) -> Result<Loaded, Vec<ConfigFault>> {
    let file = path.display().to_string();
    let text = read_text(path, &file, world)?;
    let lines = Lines::of(&text);
    let (root, syntax) = raw::read(&text);
    let mut faults = Faults::default();
    for fault in one_per_line(&syntax, &lines) {
        faults.push(syntax_fault(&file, &lines, fault));
    }
    if syntax.iter().any(|fault| !fault.duplicate) {
        return Err(faults.in_order(&file));
    }
    let mut offsets = BTreeMap::new();
    Check {
        file: &file,
        lines: &lines,
        faults: &mut faults,
        places: &mut offsets,
    }
    .section(&ROOT, &root, None, "");

    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut reading = Reading {
        world,
        file: file.clone(),
        folder,
        lines,
        faults,
        warnings: Faults::default(),
        limits: Limits::default(),
        clear_text: false,
        known: Known::default(),
    };
    let view = View {
        section: &ROOT,
        table: &root,
        header: None,
        path: String::new(),
    };
    let settings = settings::read(&mut reading, &view, path, &text, offsets);
    let Reading { faults, warnings, .. } = reading;
    match settings {
        Some(settings) if faults.is_empty() => Ok(Loaded {
            settings,
            warnings: warnings.in_order(&file),
        }),
        None if faults.is_empty() => {
            let problem = "this configuration has no fault and yet no meaning; this is a defect of tollhouse";
            Err(vec![
                ConfigFault::of_file(&file, FaultKind::Internal, problem)
                    .hint("please report it with the file"),
            ])
        }
        Some(_) | None => Err(faults.in_order(&file)),
    }
}

// === text ===

/// The text of the file itself, within `limits.config_bytes_max`, which the same file sets.
///
/// A file past the default is read at all only where it speaks of that limit; whether it is within it is judged
/// later, when the limit is known.
fn read_text(path: &Path, file: &str, world: &dyn World) -> Result<String, Vec<ConfigFault>> {
    let fault = |problem: String| ConfigFault::of_file(file, FaultKind::Unreadable, problem);
    let key = config_bytes_max();
    let most = key.map_or(usize::MAX, |key| usize::try_from(key.max).unwrap_or(usize::MAX));
    let bytes = world.read(path, most).map_err(|read| {
        vec![match read {
            ReadFault::Missing => fault("this file is not there".to_owned())
                .hint("check its path, or write a first one with `tollhouse init`"),
            ReadFault::Long { max } => fault(format!("this file is longer than {max} bytes")),
            ReadFault::Denied | ReadFault::Kind(_) | ReadFault::Name | ReadFault::Other(_) => {
                fault(format!("this file {read}"))
            }
        }]
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = not_utf8(file, error.as_bytes(), error.utf8_error().valid_up_to());
        vec![fault("this file is not UTF-8".to_owned()).at(&at)]
    })?;
    let default = Limits::default().config_bytes_max;
    if text.len() > default && !text.contains("config_bytes_max") {
        return Err(vec![too_long(file, text.len(), default)]);
    }
    Ok(text)
}

fn config_bytes_max() -> Option<&'static LimitKey> {
    LimitKey::find("config_bytes_max")
}

pub(crate) fn too_long(file: &str, length: usize, max: usize) -> ConfigFault {
    ConfigFault::of_file(
        file,
        FaultKind::Unreadable,
        format!("this file has {length} bytes; at most {max} are read"),
    )
    .hint("raise `limits.config_bytes_max` in it")
}

/// One mistake often confuses a parser for the rest of its line.
fn one_per_line<'s>(syntax: &'s [raw::SyntaxFault], lines: &Lines) -> Vec<&'s raw::SyntaxFault> {
    let mut faults: Vec<_> = syntax.iter().collect();
    faults.sort_by_key(|fault| fault.at);
    faults.dedup_by_key(|fault| lines.find(fault.at).0);
    faults
}

fn syntax_fault(file: &str, lines: &Lines, fault: &raw::SyntaxFault) -> ConfigFault {
    let (kind, problem) = if fault.duplicate {
        (
            FaultKind::Duplicate,
            format!("`{}` stands twice in one table", excerpt(&fault.problem)),
        )
    } else {
        (FaultKind::Syntax, fault.problem.clone())
    };
    let found = ConfigFault::of_file(file, kind, problem).at(&place(file, lines, fault.at));
    // `listen = 127.0.0.1:7300` reads as a number that went wrong.
    let number = [
        "invalid float",
        "invalid integer",
        "invalid datetime",
        "invalid date",
    ];
    if number.iter().any(|start| fault.problem.starts_with(start)) {
        found.hint("a text stands in quotes")
    } else {
        found
    }
}
