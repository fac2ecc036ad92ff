//! The table of threats names mechanisms and tests that are there, and says what is not covered.

use xtask::repository;

/// A row of a table of attacks.
struct Row<'a> {
    attack: &'a str,
    mechanism: &'a str,
    tests: &'a str,
}

fn document() -> String {
    repository::read("docs/threats.md").unwrap()
}

/// The rows of all tables with three columns.
fn rows(text: &str) -> Vec<Row<'_>> {
    text.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line
                .strip_prefix("| ")?
                .strip_suffix(" |")?
                .split(" | ")
                .collect();
            match cells.as_slice() {
                ["attack", ..] => None,
                [attack, mechanism, tests] => Some(Row {
                    attack,
                    mechanism,
                    tests,
                }),
                _ => None,
            }
        })
        .collect()
}

/// What stands between backticks.
pub(crate) fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Whether a text has a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else {
        return false;
    };
    // Its attributes, up to the item before it; inside `proptest!` a test has them too.
    let before = &text[..at];
    let attributes = before.rfind("\n\n").map_or(before, |from| &before[from..]);
    attributes.contains("#[test]") || attributes.contains("#[tokio::test")
}

/// Why a reference to a test is none.
pub(crate) fn fault(reference: &str) -> Option<String> {
    let Some(((room, file), name)) = reference
        .split_once("::")
        .and_then(|(place, name)| Some((place.split_once('/')?, name)))
    else {
        return Some(format!("`{reference}` is not ROOM/FILE::NAME"));
    };
    let places = [
        format!("crates/{room}/tests/it/{file}.rs"),
        format!("crates/{room}/src/{file}.rs"),
    ];
    let texts: Vec<String> = places
        .iter()
        .filter_map(|path| repository::read(path).ok())
        .collect();
    if texts.is_empty() {
        return Some(format!("`{reference}`: there is no such file"));
    }
    let found = texts.iter().any(|text| has_test(text, name));
    (!found).then(|| format!("`{reference}`: there is no such test"))
}

#[test]
fn every_attack_has_a_mechanism_and_a_test_that_are_there() {
    let text = document();
    let rows = rows(&text);
    assert!(rows.len() > 40, "{}", rows.len());
    let mut faults = Vec::new();
    for row in rows {
        let paths: Vec<&str> = code(row.mechanism)
            .into_iter()
            .filter(|code| code.starts_with("crates/"))
            .collect();
        if paths.is_empty() {
            faults.push(format!("{}: no file is named", row.attack));
        }
        for path in paths {
            if !repository::root().join(path).is_file() {
                faults.push(format!("{}: `{path}` is not there", row.attack));
            }
        }
        let tests = code(row.tests);
        if tests.is_empty() {
            faults.push(format!("{}: no test is named", row.attack));
        }
        for reference in tests {
            faults.extend(fault(reference).map(|fault| format!("{}: {fault}", row.attack)));
        }
    }
    super::none(&faults);
}

#[test]
fn what_is_not_covered_is_said() {
    let text = document();
    let (_, uncovered) = text.split_once("## What is not covered").unwrap();
    assert!(uncovered.lines().filter(|line| line.starts_with("| ")).count() > 5);
}

#[test]
fn a_test_that_is_not_there_is_found() {
    for reference in [
        "e2e/road",
        "nonsense",
        "e2e/nowhere::x",
        "e2e/road::no_such_test",
        "e2e/road::text_of",
        "xtask/threats::document",
    ] {
        assert!(fault(reference).is_some(), "{reference}");
    }
    assert_eq!(fault("xtask/threats::a_test_that_is_not_there_is_found"), None);
}
