//! The rules of the protocol in `docs/protocol.md` against the tests that cite them, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use xtask::repository;

const TABLE: &str = "docs/protocol.md";

/// The families of rules that the table holds.
const FAMILIES: [&str; 23] = [
    "AUTH", "BASE", "CACHE", "CAN", "CMP", "ELIC", "HL", "HM", "HOP", "LIFE", "LOG", "MRTR", "PAG", "PRM",
    "PROG", "RES", "ROOT", "SAMP", "SEC", "SSE", "STDIO", "SUB", "TOOL",
];

/// How many points there are that are easy to get wrong.
const TRAPS: u8 = 25;

/// A row: which tests it says that hold the rule; `None` where it says that nothing does yet.
type Table = BTreeMap<String, Option<Vec<String>>>;

/// Reads the rows of the table. Whatever looks like a row of a rule and is none is a fault.
fn table(text: &str, faults: &mut Vec<String>) -> Table {
    let mut table = Table::new();
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split(" | ")
            .map(str::trim)
            .collect();
        let (Some(id), Some(state)) = (cells.first(), cells.last()) else {
            continue;
        };
        if !line.starts_with('|') || !(is_rule(id) || trap(id).is_some()) {
            continue;
        }
        let at = format!("{TABLE}:{}: {id}", number + 1);
        let held = if let Some(held) = state.strip_prefix("held: ") {
            let files: Vec<String> = held
                .split(';')
                .next()
                .unwrap_or_default()
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            if files.is_empty() {
                faults.push(format!("{at} is held by no test; name one as `room/file`"));
            }
            Some(files)
        } else {
            let reason = state
                .strip_prefix("not yet: ")
                .or_else(|| state.strip_prefix("not ours: "));
            if reason.is_none_or(str::is_empty) {
                faults.push(format!(
                    "{at} has no state; write `held:`, `not yet:` or `not ours:`"
                ));
            }
            None
        };
        if table.insert((*id).to_owned(), held).is_some() {
            faults.push(format!("{at} stands twice"));
        }
    }
    table
}

/// Whether a text is the id of a rule, as `HL-06` or `LIFE-D02`.
fn is_rule(text: &str) -> bool {
    let Some((family, number)) = text.split_once('-') else {
        return false;
    };
    let digits = number.strip_prefix(['D', 'L', 'M']).unwrap_or(number);
    FAMILIES.contains(&family) && digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The rules that a text cites: `HL-06` in words, `hl_06` in the name of a function.
fn cited(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')) {
        if is_rule(word) {
            found.insert(word.to_owned());
        }
    }
    for name in text.split("fn ").skip(1) {
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let parts: Vec<String> = name[..end.unwrap_or(name.len())]
            .split('_')
            .map(str::to_ascii_uppercase)
            .collect();
        for pair in parts.windows(2) {
            let id = pair.join("-");
            if is_rule(&id) {
                found.insert(id);
            }
        }
        found.extend(parts.iter().filter_map(|part| trap(part)));
    }
    found
}

/// The point of the list of easy mistakes that a word is, as `D12`, where it is one.
fn trap(word: &str) -> Option<String> {
    let number = word.strip_prefix(['d', 'D'])?;
    let is_number = !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u8 = number.parse().ok().filter(|_| is_number)?;
    (1..=TRAPS).contains(&number).then(|| format!("D{number}"))
}

/// The part of a source that is tests: all of it in a folder of tests, else what stands behind the mark.
fn tests_of<'a>(path: &str, text: &'a str) -> &'a str {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return text;
    }
    &text[super::before_tests(text).len()..]
}

/// What each file of tests cites, by `room/file` or, in a folder, `room/folder/file`.
fn citations() -> BTreeMap<String, BTreeSet<String>> {
    let mut citations: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in repository::files().unwrap() {
        let Some(inside) = path.strip_prefix("crates/").filter(|path| path.ends_with(".rs")) else {
            continue;
        };
        // This file speaks of rules that are none.
        if inside == "xtask/tests/it/rules.rs" {
            continue;
        }
        let text = repository::read(&path).unwrap();
        let (room, file) = inside.split_once('/').unwrap();
        let file = file.trim_start_matches("src/").trim_start_matches("tests/it/");
        citations
            .entry(format!("{room}/{}", file.trim_end_matches(".rs")))
            .or_default()
            .extend(cited(tests_of(&path, &text)));
    }
    citations
}

/// What is wrong between a table and what tests cite.
fn compare(table: &Table, citations: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (id, held) in table {
        for file in held.iter().flatten() {
            // The name of a folder stands for all files in it.
            let mut files = citations
                .iter()
                .filter(|(path, _)| {
                    path.strip_prefix(file.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
                .map(|(_, ids)| ids)
                .peekable();
            if files.peek().is_none() {
                faults.push(format!("{id}: there is no `{file}`; name a file as `room/file`"));
            } else if !files.any(|ids| ids.contains(id)) {
                faults.push(format!(
                    "{id} is said to be held by `{file}`, which does not cite it"
                ));
            }
        }
    }
    for (file, ids) in citations {
        for id in ids.iter().filter(|id| !table.contains_key(*id)) {
            faults.push(format!("`{file}` cites {id}, which {TABLE} does not have"));
        }
    }
    faults
}

#[test]
fn every_rule_that_is_held_is_cited_by_its_tests_and_every_citation_is_a_rule() {
    let mut faults = Vec::new();
    let table = table(&repository::read(TABLE).unwrap(), &mut faults);
    assert!(table.len() > 100, "the table was not read: {} rules", table.len());
    let traps = table.keys().filter(|id| trap(id).is_some()).count();
    assert_eq!(traps, usize::from(TRAPS), "a point is missing");
    faults.extend(compare(&table, &citations()));
    super::none(&faults);
}

#[test]
fn a_row_without_a_state_or_a_test_is_found_and_so_is_a_rule_that_stands_twice() {
    let text = "\
        | id | rule | state |\n\
        | HL-01 | a | held: `e2e/posts`, `wire/posts`; and why |\n\
        | HL-02 | a | held: by nobody |\n\
        | HL-03 | a | perhaps |\n\
        | HL-04 | a | not yet: later |\n\
        | HL-04 | a | not ours:  |\n\
        | D26 | no point |\n";
    let mut faults = Vec::new();
    let read = table(text, &mut faults);
    assert_eq!(read["HL-01"].as_deref().unwrap(), ["e2e/posts", "wire/posts"]);
    assert_eq!((read.len(), read["HL-04"].is_none()), (4, true));
    assert_eq!(faults.len(), 4, "{faults:#?}");
    for (fault, part) in faults
        .iter()
        .zip([":3: HL-02", ":4: HL-03", ":6: HL-04 has", ":6: HL-04 stands"])
    {
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn a_rule_that_its_test_does_not_cite_and_a_citation_of_no_rule_are_found() {
    let mut none = Vec::new();
    let table = table(
        "| HL-01 | a | held: `e2e/a` |\n| HL-02 | a | held: `e2e/b` |\n",
        &mut none,
    );
    let citations = BTreeMap::from([("e2e/a".to_owned(), cited("// HM-01\nfn hl_02_x() {}"))]);
    let faults = compare(&table, &citations);
    assert_eq!(faults.len(), 3, "{faults:#?}");
    for (fault, part) in faults
        .iter()
        .zip(["HL-01 is said", "HL-02: there is no `e2e/b`", "cites HM-01"])
    {
        assert!(fault.contains(part), "{fault}");
    }
    assert!(none.is_empty());
    let good = BTreeMap::from([
        ("e2e/a".to_owned(), cited("fn a_hl_01_b() {}")),
        ("e2e/b/c".to_owned(), cited("// as HL-02 says")),
        ("e2e/bc".to_owned(), cited("")),
    ]);
    assert!(compare(&table, &good).is_empty());
}

#[test]
fn ids_are_read_in_words_and_names_and_nothing_else_is_one() {
    for (text, expected) in [
        (
            "// BASE-01, (HL-06); LIFE-D02",
            &["BASE-01", "HL-06", "LIFE-D02"][..],
        ),
        ("async fn life_d02_hm_01_what_it_says() {", &["HM-01", "LIFE-D02"]),
        ("fn d12_hm_01_a() { let d13 = 1; } // D14", &["D12", "HM-01"]),
        ("fn life_d01_d0_d26_d012_d() {}", &["LIFE-D01"]),
        ("SHA-25 UTF-8 XX-01 HL-6 HL-006 hl-06 HL-06-x", &[]),
        ("fn base_1_hl_6() { let hl_06 = 1; }", &[]),
    ] {
        let found: Vec<String> = cited(text).into_iter().collect();
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(
        tests_of(
            "crates/a/src/b.rs",
            "// HL-01\n#[cfg(test)]\nmod tests { // HL-02"
        ),
        "#[cfg(test)]\nmod tests { // HL-02"
    );
    assert_eq!(tests_of("crates/a/src/b.rs", "// HL-01"), "");
}
