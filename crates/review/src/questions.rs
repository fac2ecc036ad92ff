//! The questions that a reviewer has to answer for each operation before it can be a tool: as comments of a configuration,
//! with everything held. What stands there is taken out of its comment by a person, and refused until it is filled in.

use std::fmt::Write as _;

use config::Approved;
use model::{Class, Exclusion};

use crate::report::{Report, Row};
use crate::text::visible;

/// Comments for the operations of a report that are not `known`, in the order of the document.
///
/// Every line is empty or begins with `#`, whatever the document says.
#[must_use]
pub fn questions(report: &Report, upstream: &str, known: &dyn Fn(&Row) -> bool) -> String {
    let mut out = String::new();
    for row in report.tools.iter().filter(|row| !known(row)) {
        out.push('\n');
        for line in of_operation(row, upstream) {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", format!("# {}", one_line(&line)).trim_end());
        }
    }
    out
}

/// How a configuration names an operation: by its id where that is all it takes, else by method and path.
#[must_use]
pub fn key_of(row: &Row) -> String {
    match &row.operation_id {
        Some(id) if !id.trim().is_empty() && id.trim() == id && !id.contains(char::is_control) => id.clone(),
        Some(_) | None => format!("{} {}", row.method, row.path),
    }
}

fn of_operation(row: &Row, upstream: &str) -> Vec<String> {
    let mut lines = vec![format!("--- {} {}", row.method, row.path)];
    if !row.blockers.is_empty() {
        lines.push("It cannot be a tool yet:".to_owned());
        for block in &row.blockers {
            lines.push(format!("  {} ({}): {}", block.text, block.pointer, block.clears));
        }
        lines.push(format!("operation = {}", quoted(&key_of(row))));
        return lines;
    }
    let mut number = 0;
    let mut ask = |lines: &mut Vec<String>, question: String| {
        number += 1;
        lines.push(format!("{number}. {question}"));
    };
    match row.class.inferred {
        Some(class) => ask(
            &mut lines,
            format!(
                "What can a call do to the world? The document suggests at least `{class}`{}.",
                because(row, class)
            ),
        ),
        None => ask(
            &mut lines,
            "What can a call do to the world? The document shows nothing, and a GET proves nothing."
                .to_owned(),
        ),
    }
    let names_a_thing = row.path.contains('{');
    if names_a_thing {
        ask(
            &mut lines,
            "Whose is the thing that the path names, and which source knows that before the call?".to_owned(),
        );
    } else {
        ask(
            &mut lines,
            "Does it list things of several owners? What bounds the list to the caller's own?".to_owned(),
        );
    }
    ask(&mut lines, "Which fields of the answer may leave?".to_owned());
    for exclusion in &row.exclusions {
        ask(
            &mut lines,
            format!(
                "It {}{}. Who answers for it, why, until when, for whom?",
                exclusion.meaning(),
                words_for(row, *exclusion)
            ),
        );
    }
    let name = row.name.trim_start_matches(&format!("{upstream}_")).to_owned();
    lines.push(format!("[upstream.{upstream}.tool.{name}]"));
    lines.push(format!("operation = {}", quoted(&key_of(row))));
    lines.push("class = \"\"".to_owned());
    if names_a_thing {
        lines.push("resource = { type = \"\", id = \"$.\" }".to_owned());
        lines.push("owner = { source = \"\", query = \"\" }".to_owned());
    } else {
        lines.push("resource = { type = \"\", scope = \"\" }".to_owned());
        lines.push("scope = { argument = \"\" }".to_owned());
    }
    lines.push("returns = { }".to_owned());
    for exclusion in &row.exclusions {
        let what = Approved::Exclusion(*exclusion);
        lines.push(format!(
            "approval.{what} = {{ by = \"\", because = \"\", until = \"\", for = [\"\"] }}"
        ));
    }
    lines
}

fn because(row: &Row, class: Class) -> String {
    let found = row
        .evidence
        .iter()
        .find(|evidence| evidence.says == openapi::Shown::Class(class));
    found.map_or_else(String::new, |evidence| {
        format!(" (`{}` at {})", evidence.quote, evidence.pointer)
    })
}

fn words_for(row: &Row, exclusion: Exclusion) -> String {
    let found = row
        .evidence
        .iter()
        .find(|evidence| evidence.says == openapi::Shown::Exclusion(exclusion));
    found.map_or_else(String::new, |evidence| {
        format!(" (`{}` at {})", evidence.quote, evidence.pointer)
    })
}

/// A text in quotes, as TOML writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text that ends no comment.
fn one_line(text: &str) -> String {
    visible(text)
        .chars()
        .map(|character| {
            if character.is_control() || matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}') {
                ' '
            } else {
                character
            }
        })
        .collect()
}
