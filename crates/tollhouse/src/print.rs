//! Everything that a command says: results on standard output, remarks on standard error.
//!
//! A reader may go away at any time, as `head` does. That is no defect and must not end a gate that runs, so nothing
//! here panics; [`ended`] says at the end whether everything arrived. Texts can come from services and documents, so
//! no character of theirs steers a terminal.

use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, Write as _};
use std::sync::OnceLock;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// Why standard output takes no more, once it does not.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a line of a result.
macro_rules! say {
    ($($text:tt)*) => { $crate::print::line(format_args!($($text)*)) };
}

/// Prints a remark for a person.
macro_rules! tell {
    ($($text:tt)*) => { $crate::print::remark(format_args!($($text)*)) };
}

pub(crate) use {say, tell};

/// A line on standard output. [`say!`] is shorter.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    bytes(format!("{}\n", visible(&text.to_string())).as_bytes());
}

/// A line on standard error. [`tell!`] is shorter. If nobody reads it, there is nobody to tell.
pub(crate) fn remark(text: fmt::Arguments<'_>) {
    let text = format!("{}\n", visible(&text.to_string()));
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Bytes on standard output, as they are: for what we made ourselves.
pub(crate) fn bytes(bytes: &[u8]) {
    if lost() {
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) {
        let _ = LOST.set(error);
    }
}

/// Whether standard output takes no more: whoever prints without end can stop.
pub(crate) fn lost() -> bool {
    LOST.get().is_some()
}

/// Whether what was printed has arrived. A reader who had enough is not a failure; a full disk is.
pub(crate) fn ended() -> Result<(), Failure> {
    match LOST.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Unavailable(format!(
            "standard output cannot be written: {error}"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A count with its noun, as `1 tool` and `5 tools`.
pub(crate) fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

/// A table without lines, as wide as the terminal.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    // Cells are padded on both sides: before the first column and behind the last that is only noise.
    for text in table.lines() {
        let text = text.trim_end();
        say!("{}", text.strip_prefix(' ').unwrap_or(text));
    }
}

/// One JSON value, for a person who pipes it.
pub(crate) fn json(value: &impl Serialize) {
    // Serialising our own shapes into text cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    bytes(format!("{}\n", escaped(&text)).as_bytes());
}

/// One JSON value as a text for a person or a file.
///
/// # Errors
/// Where the value cannot be written as JSON.
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| format!("{}\n", escaped(&text)))
}

/// One JSON value on one line.
pub(crate) fn json_line(value: &model::Value) {
    bytes(format!("{}\n", escaped(&value.to_string())).as_bytes());
}

/// A text in which characters that steer a terminal are written out, as `\u{1b}`.
fn visible(text: &str) -> String {
    rewritten(text, |out, character| {
        let _ = write!(out, "{}", character.escape_unicode());
    })
}

/// The same for JSON, where they can only stand in strings and have an escape of their own.
fn escaped(text: &str) -> String {
    rewritten(text, |out, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn rewritten(text: &str, write: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        let (plain, behind) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = behind.chars();
        if let Some(character) = characters.next() {
            write(&mut out, character);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out
}

/// Control characters, and those that change the direction in which a line reads.
fn steers(character: char) -> bool {
    let line = matches!(character, '\n' | '\t');
    let direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    (character.is_control() && !line) || direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_a_text_steers_a_terminal() {
        for (text, expected) in [
            ("plain äöü 漢字 🙂\n\tnext", "plain äöü 漢字 🙂\n\tnext"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            (
                "over\rwritten\u{7}\u{8}\u{7f}",
                "over\\u{d}written\\u{7}\\u{8}\\u{7f}",
            ),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("invoice\u{202e}fdp.exe", "invoice\\u{202e}fdp.exe"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn a_count_has_the_noun_that_goes_with_it() {
        let tools = |count: usize| counted(count, "tool", "tools");
        assert_eq!(
            (tools(0), tools(1), tools(21)),
            ("0 tools".into(), "1 tool".into(), "21 tools".into())
        );
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a\u{9b}": ["\u{1b}[31m\u{7f}\u{202e}\r\n", "漢字 🙂"] });
        let text = escaped(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.chars().any(steers), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
