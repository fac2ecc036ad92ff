//! Every fault and every warning, with the exact line that a person reads.

use std::path::Path;

use config::{PaperWorld, load};

use crate::world::world;

/// Lines 1 to 6 of most fixtures.
const BASE: &str = "\
[upstream.api]
openapi = \"billing.yaml\"
destination = \"https://api.example.com\"
[upstream.api.tool.get]
operation = \"getInvoice\"
class = \"read\"
";

/// A fixture that continues the table of the tool, or opens further tables, from line 7 on.
fn after(text: &str) -> String {
    format!("{BASE}{text}")
}

/// A fixture whose own lines come first.
fn before(text: &str) -> String {
    format!("{text}\n{BASE}")
}

fn faults_in(world: PaperWorld, text: &str) -> Vec<String> {
    let world = world.with_file("tollhouse.toml", text);
    let faults = load(Path::new("tollhouse.toml"), &world)
        .err()
        .unwrap_or_default();
    faults.iter().map(ToString::to_string).collect()
}

/// The text has exactly these faults.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = faults_in(world(), text);
    assert_eq!(found, expected, "\n{text}");
}

/// The text has no fault, and exactly these warnings.
#[track_caller]
fn check_warnings(text: &str, expected: &[&str]) {
    let world = world().with_file("tollhouse.toml", text);
    let loaded =
        load(Path::new("tollhouse.toml"), &world).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    let found: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "\n{text}");
}

#[test]
fn the_base_of_the_fixtures_has_no_fault_and_no_warning() {
    check_warnings(BASE, &[]);
}
