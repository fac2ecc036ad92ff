//! Results on standard output: tables for people, JSON for programs.

use comfy_table::{ContentArrangement, Table, presets};
use model::Value;
use serde::Serialize;

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
    // Cells are padded for columns that follow; at the end of a line that is only noise.
    for line in table.lines() {
        anstream::println!("{}", line.trim_end());
    }
}

/// One JSON value, for a person who pipes it.
pub(crate) fn json(value: &impl Serialize) {
    // Serialising our own shapes into text cannot fail.
    anstream::println!("{}", serde_json::to_string_pretty(value).unwrap_or_default());
}

/// One JSON value on one line.
pub(crate) fn json_line(value: &Value) {
    anstream::println!("{value}");
}
