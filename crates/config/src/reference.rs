//! The fourth reader of the table of keys: the reference for people, in Markdown.

use std::fmt::Write;

use crate::amount::{bytes_text, millis_text};
use crate::form::{Form, Indirect};
use crate::key::{Key, Kind, Need, Section};
use crate::table::{LIMITS_AT, ROOT};

const HEAD: &str = "\
# Configuration

<!-- Generated from the table of keys in crates/config. Change it there. -->

Tollhouse reads one TOML file, `tollhouse.toml`. A key that is not listed here is a fault, and every fault is reported
at once, with its line. Relative paths begin in the folder of the file.

**Values from elsewhere.** Where a value may be `env:NAME`, the variable `NAME` holds it; where it may be `file:PATH`,
the file does, without the line break at its end. They are looked up after the file was parsed, one by one, as plain
text: what a variable holds can never become configuration. Credentials must be written so.

**Units.** Sizes are bytes, as `65536` or `\"64KiB\"`; units are `B`, `KiB`, `MiB`, `GiB`, `TiB`. Durations have a
unit: `\"250ms\"`, `\"5s\"`, `\"2m\"`, `\"1h\"`.

**Dangers.** A key that begins with `danger_` opens the gate further than is safe, and is reported at every start.
";

/// The reference of all keys, in Markdown, as `docs/config.md` has it.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for section in ROOT.tree() {
        let title = if section.at.is_empty() {
            "The first lines".to_owned()
        } else {
            match section.at.split_once(' ') {
                Some((at, which)) => format!("`[{at}]` {which}"),
                None => format!("`[{}]`", section.at),
            }
        };
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {title}\n\n{}\n", section.doc);
        for choice in section.choices {
            let keys: Vec<String> = choice.keys.iter().map(|key| format!("`{key}`")).collect();
            let need = if choice.required {
                "Exactly one"
            } else {
                "At most one"
            };
            let _ = write!(page, "\n{need} of {}.\n", keys.join(", "));
        }
        page.push_str("\n| key | value | default | what it does |\n|---|---|---|---|\n");
        for key in section.keys() {
            page.push_str(&row(section, key));
        }
    }
    page
}

fn row(section: &Section, key: &Key) -> String {
    let default = match key.need {
        Need::Required => "required".to_owned(),
        Need::Optional => String::new(),
        Need::Default(text) => format!("`{text}`"),
    };
    let example = if key.example.is_empty() || section.at == LIMITS_AT {
        String::new()
    } else {
        format!(" Example: `{} = {}`.", key.name, key.example)
    };
    format!(
        "| `{}` | {} | {} | {}{} |\n",
        key.name,
        cell(&value(&key.kind)),
        cell(&default),
        cell(key.doc),
        cell(&example)
    )
}

fn value(kind: &Kind) -> String {
    match kind {
        Kind::Text(form) => text(form),
        Kind::Truth => "`true` or `false`".to_owned(),
        Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Size { min, max } => format!("a size from {} to {}", bytes_text(*min), bytes_text(*max)),
        Kind::Span { min, max } => format!("a duration from {} to {}", millis_text(*min), millis_text(*max)),
        Kind::Number => "a number".to_owned(),
        Kind::Datum { lists: true } => "a text, a number, `true` or `false`, or a list of these".to_owned(),
        Kind::Datum { lists: false } => "a text, a number, `true` or `false`".to_owned(),
        Kind::Word { words, .. } => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            format!("one of {}", words.join(", "))
        }
        Kind::List { of, max, .. } => format!("a list of at most {max}, each {}", value(of)),
        Kind::OneOrMany { of, max } => format!("{}; or a list of at most {max} of them", text(of)),
        Kind::Table(section) => format!("a table, see `[{}]`", section.at),
        Kind::Cases(cases) => {
            let by: Vec<String> = cases.iter().map(|case| format!("`{}`", case.by)).collect();
            format!("a table with exactly one of {}", by.join(", "))
        }
        Kind::Named { name, of, .. } => match of.sections().first() {
            Some(section) => format!("tables `[{}]`; a name is {}", section.place(), name.expected),
            None => format!("a table; a name is {}, and a value {}", name.expected, value(of)),
        },
    }
}

fn text(form: &Form) -> String {
    let elsewhere = match form.indirect {
        Indirect::No => "",
        Indirect::Variable => "; or `env:NAME`",
        Indirect::VariableOrFile if form.credential => "",
        Indirect::VariableOrFile => "; or `env:NAME` or `file:PATH`",
    };
    format!("{}{elsewhere}", form.expected)
}

/// Text inside a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
