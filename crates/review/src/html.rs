//! The report as one page that needs nothing else: no script, no address outside, dark and light, fit for printing. Every
//! text of a document is escaped by the template, and invisible characters are made visible first.

use maud::{DOCTYPE, Markup, html as page};

use crate::chart::{Bar, bars};
use crate::report::{Report, Row, Status};
use crate::text::visible;

/// Rows of long tables that are written; the whole is in the JSON form.
const ROWS_MAX: usize = 2_000;

const STYLE: &str = "
:root{color-scheme:light dark;--fg:#1b1f24;--bg:#fff;--soft:#f3f4f6;--line:#d0d7de;--good:#1a7f37;--bad:#b42318;--warn:#9a6700;--cool:#3b6ea8}
@media(prefers-color-scheme:dark){:root{--fg:#e6e8eb;--bg:#15181c;--soft:#1f242a;--line:#3a424b;--good:#4ac26b;--bad:#ff7b72;--warn:#d4a72c;--cool:#7fb0e6}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:0 auto;max-width:76rem;padding:1.5rem}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere;min-width:4.5rem}
th{font-weight:600}code,pre{font-family:ui-monospace,monospace;font-size:.85em;background:var(--soft);padding:.1em .3em;border-radius:3px;overflow-wrap:anywhere}
pre{padding:.6rem;white-space:pre-wrap}.verdict{font-size:1.1rem;padding:.6rem 1rem;border-left:6px solid var(--bad);background:var(--soft)}
.verdict.ready{border-color:var(--good)}.numbers{display:flex;gap:2rem;flex-wrap:wrap;margin:1rem 0}.numbers b{display:block;font-size:1.6rem}
.charts{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:.5rem 0}figcaption{font-weight:600;margin-bottom:.3rem}svg{max-width:100%}svg text{font-size:12px;fill:var(--fg)}
rect{fill:var(--cool)}rect.exposed{fill:var(--good)}rect.blocked,rect.destructive{fill:var(--bad)}rect.excluded,rect.write{fill:var(--warn)}
details{margin:.4rem 0}summary{cursor:pointer}.error{color:var(--bad)}.warning{color:var(--warn)}small{opacity:.75}
@media print{body{max-width:none;padding:0;font-size:11px}details>*{display:block}h2{break-after:avoid}tr{break-inside:avoid}}
";

/// The report as one self-contained page.
#[must_use]
pub fn html(report: &Report) -> String {
    let title = format!(
        "Readiness of {}",
        report.subject.title.as_deref().unwrap_or(&report.subject.path)
    );
    page! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Whatever a text of a document may contrive, the page loads and runs nothing.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (STYLE) }
            }
            body {
                h1 { (title) }
                (head(report))
                (charts(report))
                (exposed(report))
                (blockers(report))
                (changes(report))
                (reconciliation(report))
                (access(report))
                (destinations(report))
                (budget(report))
                (texts(report))
                (operations(report))
            }
        }
    }
    .into_string()
}

fn head(report: &Report) -> Markup {
    let (verdict, subject, summary) = (&report.verdict, &report.subject, &report.summary);
    page! {
        p { small { (visible(&subject.path)) ", OpenAPI " (subject.version) ", " (subject.bytes) " bytes" @if let Some(upstream) = &subject.upstream { ", upstream " (upstream) } } }
        div.verdict.ready[verdict.ready] {
            b { @if verdict.ready { "Ready" } @else { "Not ready" } }
            @if let Some(until) = &verdict.until { " · the first approval ends on " (until) }
            @if !verdict.reasons.is_empty() { ul { @for reason in &verdict.reasons { li { (reason) } } } }
        }
        div.numbers {
            @for (count, what) in [(summary.operations, "operations"), (summary.exposed, "exposed"), (summary.excluded, "excluded"), (summary.blocked, "blocked"), (summary.unreviewed, "unreviewed")] {
                div { b { (count) } (what) }
            }
            div { b { @if let Some(counted) = summary.counted { (counted) } @else { "?" } } "in the bytes" }
        }
        details {
            summary { "Bound to" }
            table {
                @for (name, digest) in [("verdict", Some(&verdict.digest)), ("document", Some(&verdict.document)), ("configuration", verdict.configuration.as_ref()), ("catalogue", verdict.catalogue.as_ref()), ("rules", verdict.policy.as_ref()), ("build", Some(&verdict.build))] {
                    tr { th { (name) } td { @if let Some(digest) = digest { code { (digest) } } @else { "none" } } }
                }
            }
        }
    }
}

fn charts(report: &Report) -> Markup {
    let statuses: Vec<Bar> = Status::ALL
        .into_iter()
        .map(|status| Bar {
            label: status.as_str().to_owned(),
            value: report.tools.iter().filter(|row| row.status == status).count(),
            kind: status.as_str(),
        })
        .collect();
    let classes: Vec<Bar> = ["read", "sensitive-read", "write", "destructive", "unknown"]
        .into_iter()
        .map(|class| Bar {
            label: class.to_owned(),
            value: report.summary.inferred.get(class).copied().unwrap_or(0),
            kind: class,
        })
        .collect();
    let exclusions: Vec<Bar> = report
        .summary
        .exclusions
        .iter()
        .map(|(what, count)| Bar {
            label: what.clone(),
            value: *count,
            kind: "excluded",
        })
        .collect();
    let mut largest: Vec<&Row> = report.tools.iter().filter(|row| row.bytes > 0).collect();
    largest.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    let sizes: Vec<Bar> = largest
        .into_iter()
        .take(8)
        .map(|row| Bar {
            label: row.name.chars().take(21).collect(),
            value: row.bytes,
            kind: row.status.as_str(),
        })
        .collect();
    page! {
        div.charts {
            (bars("What becomes of the operations", &statuses))
            (bars("Class by the words of the document, at least", &classes))
            @if !exclusions.is_empty() { (bars("Left out by default for", &exclusions)) }
            @if !sizes.is_empty() { (bars("Largest definitions, in bytes", &sizes)) }
        }
    }
}

fn exposed(report: &Report) -> Markup {
    let rows: Vec<&Row> = report
        .tools
        .iter()
        .filter(|row| row.class.declared.is_some())
        .collect();
    let class = |class: Option<model::Class>| class.map_or("–", model::Class::as_str);
    page! {
        h2 { "Configured tools" }
        @if rows.is_empty() { p { "None." } } @else {
            table {
                thead { tr { th { "tool" } th { "operation" } th { "status" } th { "declared" } th { "inferred" } th { "observed" } th { "bytes" } th { "seen by" } } }
                tbody { @for row in &rows {
                    tr { td { (row.name) } td { (row.method) " " (visible(&row.path)) } td { (row.status.as_str()) } td { (class(row.class.declared)) } td { (class(row.class.inferred)) } td { (class(row.class.observed)) } td { (row.bytes) } td { (row.seen_by.join(", ")) } }
                } }
            }
            @for row in &rows {
                details {
                    summary { (row.name) }
                    @for approval in &row.approvals {
                        p { b { (approval.what) } " approved by " (approval.by) " until " (approval.until) " for " (approval.audience.join(", ")) ": " (approval.because) @if !approval.holds { " " span.error { "(ended)" } } }
                    }
                    @if let Some(request) = &row.request {
                        pre { (request.method) " " (request.target) "\n" @for (name, value) in &request.headers { (name) ": " (value) "\n" } @if let Some(kind) = &request.content_type { "content-type: " (kind) "\n" } @if let Some(body) = &request.body { "\n" (body) } }
                    } @else { p { "No request could be made of what its schema suggests." } }
                    p { "Real answers: " (row.contract) }
                    @if let Some(observed) = &row.observed { p { "Observed: " (visible(observed)) } }
                    @if let Some(text) = &row.text { p { "The document says:" } pre { (text) } }
                    @for note in &row.notes { p { small { (visible(note)) } } }
                    @for evidence in &row.evidence { p { small { (visible(&evidence.quote)) " at " code { (visible(&evidence.pointer)) } } } }
                }
            }
        }
    }
}

fn blockers(report: &Report) -> Markup {
    page! {
        h2 { "Blockers" }
        @if report.blockers.is_empty() { p { "None." } } @else {
            table {
                thead { tr { th { "what" } th { "operations" } th { "place" } th { "owner" } th { "what clears it" } } }
                tbody { @for group in &report.blockers {
                    tr {
                        td { span class=(group.severity.as_str()) { (group.code) } br; (visible(&group.text)) }
                        td { (group.count) br; small { (visible(&group.operations.join(", "))) } }
                        td { @for pointer in group.pointers.iter().take(3) { code { (visible(pointer)) } br; } }
                        td class=[group.overdue.then_some("error")] { (visible(&group.owner_in_words())) }
                        td { (visible(&group.clears)) }
                    }
                } }
            }
        }
    }
}

fn changes(report: &Report) -> Markup {
    page! {
        @if let Some(changes) = &report.changes {
            h2 { "Changes" }
            @if changes.is_empty() { p { "None." } } @else {
                table {
                    thead { tr { th { "change" } th { "operation" } th { "detail" } th { "approvals that it takes away" } } }
                    tbody { @for change in changes.iter().take(ROWS_MAX) {
                        tr { td { (change.kind.as_str()) } td { (visible(&change.operation)) } td { (visible(&change.detail)) } td { (change.revokes.join(", ")) } }
                    } }
                }
            }
        }
    }
}

fn reconciliation(report: &Report) -> Markup {
    let found = &report.reconciliation;
    page! {
        h2 { "Document, catalogue, callers" }
        p { (found.document) " operations in the document, " (found.catalogue.len()) " tools in the catalogue, " (found.callers.len()) " callers in the configuration." }
        @if !found.callers.is_empty() {
            table {
                thead { tr { th { "caller" } th { "sees in tools/list" } } }
                tbody { @for view in &found.callers { tr { td { (view.caller) } td { (view.sees.join(", ")) } } } }
            }
        }
        @if !found.unseen.is_empty() { p.warning { "No caller sees: " (found.unseen.join(", ")) } }
        @if !found.strays.is_empty() { p.error { "Callers see what they should not: " (found.strays.join(", ")) } }
    }
}

fn access(report: &Report) -> Markup {
    page! {
        h2 { "Access" }
        table {
            thead { tr { th { "operation" } th { "asks for" } th { "look at" } } }
            tbody { @for one in report.access.iter().take(ROWS_MAX) {
                tr {
                    td { (visible(&one.operation)) }
                    td { @if one.alternatives.is_empty() { "nothing" } @for (index, all) in one.alternatives.iter().enumerate() { @if index > 0 { " or " } @if all.is_empty() { "nothing" } (all.join(" + ")) } }
                    td { @for flag in &one.flags { (serde_json::to_value(flag).ok().and_then(|flag| flag.as_str().map(str::to_owned)).unwrap_or_default()) br; } @for concern in &one.concerns { (visible(concern)) br; } }
                }
            } }
        }
    }
}

fn destinations(report: &Report) -> Markup {
    page! {
        h2 { "Destinations" }
        table {
            thead { tr { th { "place" } th { "for" } th { "operations" } th { "approved" } } }
            tbody { @for place in &report.destinations {
                tr { td { code { (place.url) } } td { (place.role) } td { (place.operations) } td { @if place.approved { "yes" } @else { "no" } } }
            } }
        }
    }
}

fn budget(report: &Report) -> Markup {
    let budget = &report.budget;
    page! {
        h2 { "Budget" }
        p {
            (budget.tools) " tools, " (budget.bytes) " bytes, about " (budget.tokens) " tokens (a quarter of the bytes)."
            @if !budget.fits { " " span.error { "That is more than " (budget.bytes_max) "." } }
            " A list of everything would have " (budget.bytes_of_all) " bytes."
        }
        @for (what, measure) in [("longest description", &budget.longest_description), ("largest schema", &budget.largest_schema)] {
            @if let Some(measure) = measure { p { "The " (what) ": " (measure.tool) ", " (measure.bytes) " bytes." } }
        }
    }
}

fn texts(report: &Report) -> Markup {
    page! {
        h2 { "Texts to look at" }
        p { (report.texts_marked) " texts hold invisible characters, comments, or phrases that speak to a model." }
        @if !report.texts.is_empty() {
            table {
                thead { tr { th { "place" } th { "found" } th { "text" } } }
                tbody { @for marked in &report.texts {
                    tr { td { code { (visible(&marked.pointer)) } } td { @for mark in &marked.marks { (mark.kind) ": " (visible(&mark.quote)) br; } } td { (marked.text) } }
                } }
            }
        }
    }
}

fn operations(report: &Report) -> Markup {
    page! {
        h2 { "Operations" }
        table {
            thead { tr { th { "status" } th { "operation" } th { "name" } th { "inferred" } th { "left out for" } th { "words" } } }
            tbody { @for row in report.tools.iter().take(ROWS_MAX) {
                tr {
                    td { (row.status.as_str()) }
                    td { (row.method) " " (visible(&row.path)) }
                    td { (row.name) }
                    td { (row.class.inferred.map_or("unknown", model::Class::as_str)) }
                    td { (row.exclusions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")) }
                    td { @for evidence in row.evidence.iter().take(3) { (visible(&evidence.quote)) " " } }
                }
            } }
        }
        @if report.tools.len() > ROWS_MAX { p { (report.tools.len() - ROWS_MAX) " more operations are in the JSON form." } }
    }
}
