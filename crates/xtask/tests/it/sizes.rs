//! A file is one noun. Nobody can say by a number whether it is, but past a thousand lines it never was.

use xtask::repository;

const LINES_MAX: usize = 1_000;

#[test]
fn no_source_file_is_longer_than_a_thousand_lines() {
    let mut sources = 0;
    let mut faults = Vec::new();
    for path in repository::files().unwrap() {
        if !path.ends_with(".rs") {
            continue;
        }
        sources += 1;
        let lines = repository::read(&path).unwrap().lines().count();
        if lines > LINES_MAX {
            faults.push(format!(
                "{path} has {lines} lines; look for the second noun in it"
            ));
        }
    }
    super::none(&faults);
    assert!(sources > 200, "{sources}");
}
