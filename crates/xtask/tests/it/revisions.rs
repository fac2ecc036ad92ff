//! Only `wire` knows a revision by name. A room that compared dates would have to be found again with every new one.

use xtask::repository;
use xtask::rooms::ROOMS;

/// The dated names, put together here so that this file does not break its own rule.
fn names() -> Vec<String> {
    [
        ("2024", "11-05"),
        ("2025", "03-26"),
        ("2025", "06-18"),
        ("2025", "11-25"),
        ("2026", "07-28"),
    ]
    .iter()
    .map(|(year, day)| format!("{year}-{day}"))
    .collect()
}

/// The lines of a source file outside comments and before its tests.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    super::before_tests(text)
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn no_room_but_wire_names_a_revision() {
    let names = names();
    let mut faults = Vec::new();
    for path in repository::files().unwrap() {
        let room = ROOMS
            .iter()
            .find(|room| path.starts_with(&format!("crates/{}/src/", room.name)));
        if !path.ends_with(".rs") || room.is_none_or(|room| room.name == "wire") {
            continue;
        }
        let text = repository::read(&path).unwrap();
        for (number, line) in code(&text) {
            let variant = line.contains("Revision::V");
            let quoted = names.iter().find(|name| line.contains(name.as_str()));
            if variant || quoted.is_some() {
                faults.push(format!(
                    "{path}:{number}: only `wire` knows a revision by name; ask it for what this revision has: {}",
                    line.trim()
                ));
            }
        }
    }
    super::none(&faults);
}

#[test]
fn comments_and_tests_may_name_a_revision_and_code_may_not() {
    let text = "//! doc\nlet a = 1;\n    // why\n#[cfg(test)]\nmod tests {\nlet b = 2;";
    let found: Vec<(usize, &str)> = code(text).collect();
    assert_eq!(found, [(2, "let a = 1;")]);
}
