//! The rows of a comparison: medians over the rounds, ratios within each round, and a table of both.

use std::fmt;
use std::fmt::Write as _;

use serde::Serialize;

use crate::compare::Run;
use crate::plan::{Cell, Plan};
use crate::run::RunReport;
use crate::tally::rounded;

/// The middle of a handful of numbers: median and quartiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) q1: f64,
    pub(crate) q3: f64,
}

/// One subject under one load.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    subject: String,
    cell: Cell,
    calls_per_second: Middle,
    p50_us: Middle,
    p99_us: Middle,
    /// CPU time of the subject's process and its descendants.
    cpu_us_per_call: Middle,
    rss_bytes_peak: u64,
    pss_bytes_peak: u64,
    errors: u64,
    unsent: u64,
    /// Against the first subject, and against the second.
    against: Vec<Against>,
}

/// A subject against another, each number the median over the rounds of what it was within a round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Against {
    subject: String,
    calls_per_second_ratio: f64,
    added_p50_us: f64,
    added_p99_us: f64,
}

/// The rows, cell by cell, subjects in the order of the plan.
pub(crate) fn rows(plan: &Plan, runs: &[Run]) -> Vec<Row> {
    let mut rows = Vec::new();
    for cell in &plan.cells {
        let of = |subject: &str| -> Vec<&Run> {
            runs.iter()
                .filter(|run| run.cell == *cell && run.subject == subject)
                .collect()
        };
        for (position, subject) in plan.subjects.iter().enumerate() {
            let mine = of(&subject.name);
            let against = plan
                .subjects
                .iter()
                .take(2.min(position))
                .map(|other| Against::of(&other.name, &mine, &of(&other.name)))
                .collect();
            rows.push(Row::of(&subject.name, *cell, &mine, against));
        }
    }
    rows
}

impl Row {
    fn of(subject: &str, cell: Cell, runs: &[&Run], against: Vec<Against>) -> Self {
        let middle =
            |part: fn(&RunReport) -> f64| Middle::of(runs.iter().map(|run| part(&run.report)).collect());
        let most = |part: fn(&RunReport) -> u64| runs.iter().map(|run| part(&run.report)).max().unwrap_or(0);
        Self {
            subject: subject.to_owned(),
            cell,
            calls_per_second: middle(|report| report.calls_per_second),
            p50_us: middle(|report| report.latency_us.p50),
            p99_us: middle(|report| report.latency_us.p99),
            cpu_us_per_call: middle(|report| {
                report.watched.iter().map(|watched| watched.cpu_us_per_call).sum()
            }),
            rss_bytes_peak: most(|report| report.watched.iter().map(|watched| watched.rss_bytes.peak).sum()),
            pss_bytes_peak: most(|report| report.watched.iter().map(|watched| watched.pss_bytes.peak).sum()),
            errors: runs
                .iter()
                .map(|run| run.report.errors + run.report.warm_up.errors)
                .sum(),
            unsent: runs.iter().map(|run| run.report.unsent).sum(),
            against,
        }
    }
}

impl Against {
    fn of(name: &str, mine: &[&Run], others: &[&Run]) -> Self {
        let pairs: Vec<(&RunReport, &RunReport)> = mine
            .iter()
            .filter_map(|run| {
                let other = others.iter().find(|other| other.round == run.round)?;
                Some((&run.report, &other.report))
            })
            .collect();
        let median = |part: fn(&RunReport, &RunReport) -> f64| {
            Middle::of(pairs.iter().map(|(mine, other)| part(mine, other)).collect()).median
        };
        Self {
            subject: name.to_owned(),
            calls_per_second_ratio: median(|mine, other| mine.calls_per_second / other.calls_per_second),
            added_p50_us: median(|mine, other| mine.latency_us.p50 - other.latency_us.p50),
            added_p99_us: median(|mine, other| mine.latency_us.p99 - other.latency_us.p99),
        }
    }
}

impl Middle {
    /// Median and quartiles by nearest rank; of an even count, the mean of the two in the middle.
    pub(crate) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.retain(|number| number.is_finite());
        numbers.sort_by(f64::total_cmp);
        let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        let count = numbers.len();
        let median = if count % 2 == 1 {
            at(count / 2)
        } else {
            f64::midpoint(at((count / 2).saturating_sub(1)), at(count / 2))
        };
        Self {
            median: rounded(median),
            q1: rounded(at(count.div_ceil(4).saturating_sub(1))),
            q3: rounded(at((count * 3).div_ceil(4).saturating_sub(1))),
        }
    }
}

/// The rows as a Markdown table.
pub(crate) fn markdown(plan: &Plan, rows: &[Row]) -> String {
    let others: Vec<&str> = plan
        .subjects
        .iter()
        .take(2)
        .map(|subject| subject.name.as_str())
        .collect();
    let mut text = String::from("| load | subject | calls/s | p50 µs | p99 µs | CPU µs/call | PSS MiB |");
    for other in &others {
        // Writing to a string cannot fail.
        let _ = write!(text, " calls/s against {other} | p50 added to {other} |");
    }
    text.push_str(" errors |\n|---|---|--:|--:|--:|--:|--:|");
    text.push_str(&"--:|--:|".repeat(others.len()));
    text.push_str("--:|\n");
    for row in rows {
        let _ = write!(
            text,
            "| {} | {} | {:.0} | {} | {} | {} | {:.1} |",
            row.cell,
            row.subject,
            row.calls_per_second,
            row.p50_us,
            row.p99_us,
            row.cpu_us_per_call,
            row.pss_bytes_peak as f64 / f64::from(1 << 20),
        );
        for other in &others {
            let _ = match row.against.iter().find(|against| against.subject == **other) {
                Some(against) => write!(
                    text,
                    " {:.2} | {:+.1} |",
                    against.calls_per_second_ratio, against.added_p50_us
                ),
                None => write!(text, " | |"),
            };
        }
        let _ = writeln!(text, " {} |", row.errors + row.unsent);
    }
    text
}

impl fmt::Display for Middle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(
            f,
            "{:.digits$} ({:.digits$}–{:.digits$})",
            self.median, self.q1, self.q3
        )
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.concurrency, self.bytes)?;
        match self.rate {
            Some(rate) => write!(f, "@{rate}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_numbers_is_theirs_whatever_their_order() {
        for (numbers, median, q1, q3) in [
            (vec![5.0, 1.0, 4.0, 2.0, 3.0], 3.0, 2.0, 4.0),
            (vec![2.0, 1.0], 1.5, 1.0, 2.0),
            (vec![7.0], 7.0, 7.0, 7.0),
            (vec![4.0, 3.0, 2.0, 1.0], 2.5, 1.0, 3.0),
            (vec![f64::NAN, 1.0, f64::INFINITY], 1.0, 1.0, 1.0),
            (vec![], 0.0, 0.0, 0.0),
        ] {
            let middle = Middle::of(numbers.clone());
            assert_eq!(middle, Middle { median, q1, q3 }, "{numbers:?}");
        }
    }

    fn run(round: u16, subject: &str, calls_per_second: f64, p50: f64, errors: u64) -> Run {
        let report = serde_json::json!({
            "target": "", "face": "http-plain", "concurrency": 1, "bytes": 100, "rate": null,
            "warm_up": { "verified": 1, "errors": 0 }, "seconds": 1.0, "calls": 1, "verified": 1,
            "errors": errors, "unsent": 0, "faults": {}, "connections": 1,
            "calls_per_second": calls_per_second,
            "latency_us": { "p50": p50, "p90": p50, "p99": p50, "p999": p50, "max": p50, "mean": p50 },
            "service_us": { "p50": p50, "p90": p50, "p99": p50, "p999": p50, "max": p50, "mean": p50 },
            "watched": [],
        });
        Run {
            round,
            subject: subject.to_owned(),
            cell: Cell {
                concurrency: 1,
                bytes: 100,
                rate: None,
            },
            report: serde_json::from_value(report).unwrap(),
        }
    }

    #[test]
    fn ratios_are_taken_within_a_round_and_not_between_medians() {
        let plan = Plan::parse(
            r#"{"upstream":["u"],"cells":[{"concurrency":1,"bytes":100}],"subjects":[
                {"name":"direct","process":"upstream","face":"http-plain","path":"/"},
                {"name":"gate","process":"upstream","face":"http-plain","path":"/"}]}"#,
        )
        .unwrap();
        // The machine was ten times as fast in the second round, for both.
        let runs = [
            run(1, "direct", 100.0, 100.0, 0),
            run(1, "gate", 50.0, 140.0, 0),
            run(2, "gate", 500.0, 14.0, 3),
            run(2, "direct", 1_000.0, 10.0, 0),
            run(3, "direct", 100.0, 100.0, 0),
            run(3, "gate", 50.0, 141.0, 0),
        ];
        let rows = rows(&plan, &runs);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].against.is_empty());
        let against = &rows[1].against[0];
        assert_eq!(against.subject, "direct");
        assert!((against.calls_per_second_ratio - 0.5).abs() < 1e-9);
        assert!((against.added_p50_us - 40.0).abs() < 1e-9);
        assert_eq!(rows[1].errors, 3);
        let table = markdown(&plan, &rows);
        assert!(
            table.contains("| 1x100 | gate | 50 (50–500) | 140.0 (14.0–141.0) |"),
            "{table}"
        );
        assert!(table.contains("| 0.50 | +40.0 |"), "{table}");
        let columns = |line: &str| line.matches('|').count();
        let mut lines = table.lines();
        let first = columns(lines.next().unwrap());
        assert!(lines.all(|line| columns(line) == first), "{table}");
    }
}
