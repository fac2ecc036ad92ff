//! The report as a table for a spreadsheet: one line for each operation (RFC 4180). A cell that a spreadsheet would take
//! for a formula gets an apostrophe in front.

use std::fmt::Write as _;

use crate::report::Report;

/// The operations, one a line, behind a line of headings.
#[must_use]
pub fn csv(report: &Report) -> String {
    let mut out = String::from(
        "name,method,path,operation_id,status,declared,inferred,observed,exclusions,bytes,tokens,blockers,owners,approvals,pointer\r\n",
    );
    for row in &report.tools {
        let class = |class: Option<model::Class>| class.map(|class| class.to_string()).unwrap_or_default();
        let list = |items: Vec<String>| items.join("; ");
        let cells = [
            row.name.clone(),
            row.method.clone(),
            row.path.clone(),
            row.operation_id.clone().unwrap_or_default(),
            row.status.as_str().to_owned(),
            class(row.class.declared),
            class(row.class.inferred),
            class(row.class.observed),
            list(row.exclusions.iter().map(ToString::to_string).collect()),
            row.bytes.to_string(),
            row.tokens.to_string(),
            list(row.blockers.iter().map(|block| block.code.clone()).collect()),
            list(
                row.blockers
                    .iter()
                    .map(|block| block.owner.clone().unwrap_or_else(|| "nobody named".to_owned()))
                    .collect(),
            ),
            list(
                row.approvals
                    .iter()
                    .map(|one| format!("{} by {} until {}", one.what, one.by, one.until))
                    .collect(),
            ),
            row.pointer.clone(),
        ];
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        // Writing to a String cannot fail.
        let _ = write!(out, "{}\r\n", cells.join(","));
    }
    out
}

fn cell(text: &str) -> String {
    let text = crate::text::visible(text);
    let guarded = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text
    };
    if guarded.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("@cmd", "'@cmd"),
            ("#/paths", "#/paths"),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
