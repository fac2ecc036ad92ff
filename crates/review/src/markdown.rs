//! The report in Markdown, for a pull request. Every text of a document is escaped, so that it stays text.

use std::fmt::Write as _;

use crate::report::{Report, Row, Status};

/// Rows of long tables that are written; the whole is in the JSON form.
const ROWS_MAX: usize = 2_000;

/// The report as one Markdown document.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let title = report.subject.title.as_deref().unwrap_or(&report.subject.path);
    let _ = writeln!(out, "# Readiness of {}\n", text(title));
    let word = if report.verdict.ready {
        "ready"
    } else {
        "not ready"
    };
    let _ = writeln!(out, "**{word}**, by {}\n", text(&report.verdict.build));
    for reason in &report.verdict.reasons {
        let _ = writeln!(out, "- {}", text(reason));
    }
    let summary = &report.summary;
    let counted = summary
        .counted
        .map_or_else(|| "unknown".to_owned(), |counted| counted.to_string());
    let _ = writeln!(
        out,
        "\n| operations | exposed | excluded | blocked | unreviewed | in the bytes |\n|---|---|---|---|---|---|\n| {} | {} | {} | {} | {} | {counted} |",
        summary.operations, summary.exposed, summary.excluded, summary.blocked, summary.unreviewed
    );
    digests(&mut out, report);
    exposed(&mut out, report);
    blockers(&mut out, report);
    if let Some(changes) = &report.changes {
        let _ = writeln!(
            out,
            "\n## Changes\n\n| change | operation | detail | revokes |\n|---|---|---|---|"
        );
        for change in changes.iter().take(ROWS_MAX) {
            row(
                &mut out,
                &[
                    change.kind.as_str(),
                    &change.operation,
                    &change.detail,
                    &change.revokes.join(", "),
                ],
            );
        }
    }
    reconciliation(&mut out, report);
    access(&mut out, report);
    let _ = writeln!(
        out,
        "\n## Texts to look at\n\n{} texts are marked.\n",
        report.texts_marked
    );
    if !report.texts.is_empty() {
        let _ = writeln!(out, "| place | found | text |\n|---|---|---|");
    }
    for marked in &report.texts {
        let found: Vec<String> = marked
            .marks
            .iter()
            .map(|mark| format!("{}: {}", mark.kind, mark.quote))
            .collect();
        row(&mut out, &[&marked.pointer, &found.join(", "), &marked.text]);
    }
    operations(&mut out, report);
    out
}

fn digests(out: &mut String, report: &Report) {
    let verdict = &report.verdict;
    let _ = writeln!(out, "\n| bound to | digest |\n|---|---|");
    for (name, digest) in [
        ("verdict", Some(&verdict.digest)),
        ("document", Some(&verdict.document)),
        ("configuration", verdict.configuration.as_ref()),
        ("catalogue", verdict.catalogue.as_ref()),
        ("rules", verdict.policy.as_ref()),
    ] {
        row(out, &[name, digest.map_or("none", String::as_str)]);
    }
    if let Some(until) = &verdict.until {
        let _ = writeln!(out, "\nThe first approval ends on {until}.");
    }
}

fn exposed(out: &mut String, report: &Report) {
    let _ = writeln!(out, "\n## Exposed\n");
    let rows: Vec<&Row> = report
        .tools
        .iter()
        .filter(|row| row.status == Status::Exposed)
        .collect();
    if rows.is_empty() {
        let _ = writeln!(out, "Nothing.");
        return;
    }
    let _ = writeln!(
        out,
        "| tool | operation | declared | inferred | observed | bytes | seen by |\n|---|---|---|---|---|---|---|"
    );
    for one in &rows {
        let class = |class: Option<model::Class>| class.map_or("–", model::Class::as_str);
        let (bytes, seen) = (one.bytes.to_string(), one.seen_by.join(", "));
        let operation = format!("{} {}", one.method, one.path);
        row(
            out,
            &[
                &one.name,
                &operation,
                class(one.class.declared),
                class(one.class.inferred),
                class(one.class.observed),
                &bytes,
                &seen,
            ],
        );
    }
    for one in rows {
        let _ = writeln!(out, "\n### {}\n", text(&one.name));
        for approval in &one.approvals {
            let _ = writeln!(
                out,
                "- approved for {}: {} by {} until {}: {}",
                text(&approval.audience.join(", ")),
                approval.what,
                text(&approval.by),
                approval.until,
                text(&approval.because)
            );
        }
        if let Some(request) = &one.request {
            let _ = writeln!(
                out,
                "- sends, for example, {}",
                code(&format!("{} {}", request.method, request.target))
            );
        }
        let _ = writeln!(out, "- real answers: {}", text(&one.contract));
        if let Some(observed) = &one.observed {
            let _ = writeln!(out, "- observed: {}", text(observed));
        }
        if let Some(words) = &one.text {
            let _ = writeln!(out, "- the document says: {}", text(words));
        }
    }
}

fn blockers(out: &mut String, report: &Report) {
    let _ = writeln!(out, "\n## Blockers\n");
    if report.blockers.is_empty() {
        let _ = writeln!(out, "None.");
        return;
    }
    let _ = writeln!(
        out,
        "| severity | what | operations | place | owner | clears |\n|---|---|---|---|---|---|"
    );
    for group in &report.blockers {
        let what = format!("{}: {}", group.code, group.text);
        row(
            out,
            &[
                group.severity.as_str(),
                &what,
                &group.count.to_string(),
                group.pointers.first().map_or("", String::as_str),
                &group.owner_in_words(),
                &group.clears,
            ],
        );
    }
}

fn reconciliation(out: &mut String, report: &Report) {
    let found = &report.reconciliation;
    let _ = writeln!(
        out,
        "\n## Document, catalogue, callers\n\n{} operations in the document, {} tools in the catalogue.\n",
        found.document,
        found.catalogue.len()
    );
    if !found.callers.is_empty() {
        let _ = writeln!(out, "| caller | sees |\n|---|---|");
    }
    for view in &found.callers {
        row(out, &[&view.caller, &view.sees.join(", ")]);
    }
    let _ = writeln!(
        out,
        "\n## Destinations\n\n| place | for | operations | approved |\n|---|---|---|---|"
    );
    for place in &report.destinations {
        let approved = if place.approved { "yes" } else { "no" };
        row(
            out,
            &[&place.url, place.role, &place.operations.to_string(), approved],
        );
    }
    let budget = &report.budget;
    let fits = if budget.fits { "" } else { ", which is too much" };
    let _ = writeln!(
        out,
        "\n## Budget\n\n{} tools, {} bytes, about {} tokens{fits}. A list of everything would have {} bytes.",
        budget.tools, budget.bytes, budget.tokens, budget.bytes_of_all
    );
    for (what, measure) in [
        ("longest description", &budget.longest_description),
        ("largest schema", &budget.largest_schema),
    ] {
        if let Some(measure) = measure {
            let _ = writeln!(
                out,
                "The {what}: {}, {} bytes.",
                text(&measure.tool),
                measure.bytes
            );
        }
    }
}

fn access(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "\n## Access\n\n| operation | asks for | look at |\n|---|---|---|"
    );
    for one in report.access.iter().take(ROWS_MAX) {
        let asks: Vec<String> = one.alternatives.iter().map(|all| all.join(" + ")).collect();
        let flags: Vec<String> = one
            .flags
            .iter()
            .map(|flag| {
                serde_json::to_value(flag)
                    .ok()
                    .and_then(|flag| flag.as_str().map(str::to_owned))
                    .unwrap_or_default()
            })
            .chain(one.concerns.iter().cloned())
            .collect();
        let asks = if asks.is_empty() {
            "nothing".to_owned()
        } else {
            asks.join(" or ")
        };
        row(out, &[&one.operation, &asks, &flags.join(", ")]);
    }
}

fn operations(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "\n## Operations\n\n| status | operation | name | inferred | left out for | words |\n|---|---|---|---|---|---|"
    );
    for one in report.tools.iter().take(ROWS_MAX) {
        let exclusions: Vec<String> = one.exclusions.iter().map(ToString::to_string).collect();
        let words = one
            .evidence
            .first()
            .map(|evidence| evidence.quote.clone())
            .unwrap_or_default();
        let operation = format!("{} {}", one.method, one.path);
        let inferred = one.class.inferred.map_or("unknown", model::Class::as_str);
        row(
            out,
            &[
                one.status.as_str(),
                &operation,
                &one.name,
                inferred,
                &exclusions.join(", "),
                &words,
            ],
        );
    }
    let left = report.tools.len().saturating_sub(ROWS_MAX);
    if left > 0 {
        let _ = writeln!(out, "\n{left} more operations are in the JSON form.");
    }
}

fn row(out: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| text(cell)).collect();
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// A text that stays a text: no markup, no link, one line.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in crate::text::visible(text).chars() {
        match character {
            '\n' | '\r' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|' | '~' => {
                out.push('\\');
                out.push(character);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A bare address becomes a link in some readers.
            ':' => out.push_str("&#58;"),
            _ => out.push(character),
        }
    }
    out
}

fn code(text: &str) -> String {
    format!(
        "`{}`",
        crate::text::visible(text).replace(['`', '\n', '\r', '|'], " ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_document_is_no_markup() {
        for hostile in [
            "<img src=x onerror=y>",
            "[x](http://a)",
            "| a | b |",
            "# h\n- x",
            "`code`",
            "http://a.example",
            "**b**",
        ] {
            let safe = text(hostile);
            for (at, character) in safe.char_indices() {
                let is_markup = matches!(character, '<' | '[' | ']' | '|' | '`' | '*' | '#');
                let escaped = at > 0 && safe[..at].ends_with('\\') || safe[..at].ends_with('&');
                assert!(!is_markup || escaped, "{safe}");
            }
            assert!(!safe.contains("://") && !safe.contains('\n'), "{safe}");
        }
    }
}
