//! Every source file says on its first line what its one job is, no room has unsafe code, and what is left to do has a
//! number.

use xtask::repository;

fn sources() -> Vec<String> {
    let files = repository::files().unwrap();
    let sources: Vec<String> = files.into_iter().filter(|path| path.ends_with(".rs")).collect();
    assert!(
        sources.len() > 200,
        "the files of the repository were read wrongly"
    );
    sources
}

#[test]
fn every_file_opens_with_its_one_job() {
    let faults: Vec<String> = sources()
        .iter()
        .filter(|path| !repository::read(path).unwrap().starts_with("//! "))
        .map(|path| format!("{path}:1: open the file with `//!` and its one job"))
        .collect();
    super::none(&faults);
}

#[test]
fn every_crate_forbids_unsafe_code_in_its_root() {
    let mut roots = 0;
    let mut faults = Vec::new();
    for path in sources() {
        // A package with a library and a command has two roots.
        if !(path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")) {
            continue;
        }
        roots += 1;
        let text = repository::read(&path).unwrap();
        // A fuzz target is given its entry point by a macro of libFuzzer.
        if !text.contains("#![forbid(unsafe_code)]") && !path.starts_with("fuzz/") {
            faults.push(format!(
                "{path}: write `#![forbid(unsafe_code)]` below the opening comment"
            ));
        }
    }
    super::none(&faults);
    assert!(roots >= 18, "{roots}");
}

/// The places in a text that leave something to do without naming an issue.
fn unnumbered(text: &str) -> Vec<usize> {
    let word = concat!("TO", "DO");
    let numbered = |behind: &str| {
        let Some(rest) = behind.strip_prefix("(#") else {
            return false;
        };
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        digits > 0 && rest.chars().nth(digits) == Some(')')
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| {
            line.match_indices(word)
                .any(|(at, _)| !numbered(&line[at + word.len()..]))
        })
        .map(|(number, _)| number + 1)
        .collect()
}

#[test]
fn what_is_left_to_do_names_an_issue() {
    let mut faults = Vec::new();
    for path in sources() {
        for line in unnumbered(&repository::read(&path).unwrap()) {
            faults.push(format!(
                "{path}:{line}: name the issue, as {}(#12)",
                concat!("TO", "DO")
            ));
        }
    }
    super::none(&faults);
}

#[test]
fn a_numbered_note_is_told_from_one_without() {
    let word = concat!("TO", "DO");
    assert!(unnumbered(&format!("// {word}(#12): later")).is_empty());
    for text in [
        format!("// {word}: later"),
        format!("// {word}(me): later"),
        format!("// {word}(#): later"),
    ] {
        assert_eq!(unnumbered(&text), [1], "{text}");
    }
}
