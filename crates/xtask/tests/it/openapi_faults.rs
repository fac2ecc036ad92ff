//! The list of reported faults of OpenAPI tools is whole, and names tests that are there.

use xtask::repository;

use crate::threats::{code, fault};

/// How many there are. They are numbered from 1.
const FAULTS: usize = 50;

#[test]
fn every_reported_fault_has_a_test_that_is_there() {
    let text = repository::read("docs/openapi-faults.md").unwrap();
    let mut numbers: Vec<usize> = Vec::new();
    let mut faults = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [reported, _, tests] = cells.as_slice() else {
            continue;
        };
        let Some(number) = reported
            .split_once(". ")
            .and_then(|(number, _)| number.parse().ok())
        else {
            continue;
        };
        numbers.push(number);
        let tests = code(tests);
        if tests.is_empty() {
            faults.push(format!("{number}: no test is named"));
        }
        faults.extend(
            tests
                .into_iter()
                .filter_map(fault)
                .map(|fault| format!("{number}: {fault}")),
        );
    }
    numbers.sort_unstable();
    let all: Vec<usize> = (1..=FAULTS).collect();
    assert_eq!(numbers, all);
    super::none(&faults);
}
