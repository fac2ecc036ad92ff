//! Words that have no place in the project: paths and hosts of somebody's machine, and how somebody works.

use xtask::repository;

/// What may not be found in any file. Each is put together here, so that this file does not hold it.
fn unwanted() -> Vec<String> {
    [
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("/ho", "me/"),
        ("/Use", "rs/"),
        (".py", "env"),
        ("registry.npm", "js.org"),
        ("artifac", "tory"),
        ("files.python", "hosted.org"),
        ("bash_", "jobs"),
        ("sub", "agent"),
        ("helper ", "session"),
        ("CL", "AUDE.md"),
        (".lib", "rary/"),
    ]
    .iter()
    .map(|(start, end)| format!("{start}{end}"))
    .collect()
}

/// The lines of a text that hold an unwanted word.
fn found(text: &str, unwanted: &[String]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in unwanted {
            // Paths are as they are written: `/users/` is a path of many services.
            let there = if word.starts_with('/') {
                line.contains(word.as_str())
            } else {
                line.to_lowercase().contains(&word.to_lowercase())
            };
            if there {
                found.push((number + 1, word.clone()));
            }
        }
    }
    found
}

#[test]
fn no_file_names_a_machine_a_host_of_packages_or_a_way_of_working() {
    let unwanted = unwanted();
    let mut faults = Vec::new();
    for path in repository::files().unwrap() {
        // Corpora of fuzzers hold any bytes; text is what people wrote.
        let bytes = std::fs::read(repository::root().join(&path)).unwrap();
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        for (line, word) in found(&text, &unwanted) {
            faults.push(format!("{path}:{line}: `{word}` has no place here"));
        }
    }
    super::none(&faults);
}

#[test]
fn unwanted_words_are_found_in_any_case_and_paths_as_they_are() {
    let unwanted = unwanted();
    for word in &unwanted {
        assert_eq!(
            found(&format!("a\nsee {word} here\n"), &unwanted),
            [(2, word.clone())]
        );
        let shouted = found(&word.to_uppercase(), &unwanted);
        assert_eq!(shouted.is_empty(), word.starts_with('/'), "{word}");
    }
    assert!(found("a network of rooms under /users/", &unwanted).is_empty());
}
