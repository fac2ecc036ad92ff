//! Every fault and every warning, with the exact line that a person reads.
//!
//! The fixtures are in `faults/`, one file per sentence. A fixture is `=== after`, `=== before` or `=== alone`, a text,
//! `---`, and the lines that it must give; a line that begins with `warning: ` is a warning of a text without faults.
//! `UPDATE=1` writes what the room says now; then read the difference.

use std::fmt::Write;
use std::path::Path;

use config::{PaperWorld, ReadFault, load};

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

/// The world of all tests, and files with faults of their own.
fn files() -> PaperWorld {
    let owners = r#"{"In voice": {}, "Member": 5, "Invoice": {"a": 1, "b": "two words"}}"#;
    let mut world = world()
        .with_file("bad.json", r#"{"Invoice": {"inv-1": north}}"#)
        .with_file("list.json", "[]")
        .with_file("owners-bad.json", owners)
        .with_file(
            "duplicate.json",
            "{\"Invoice\": {\"inv-1\": \"north\",\n \"inv-1\": \"south\"}}",
        )
        .with_file("broken/a.cedar", vec![b'/', b'/', b'\n', b'x', 0xff])
        .with_file("broken/b.cedar", vec![b' '; (1 << 20) + 1])
        .with_file("broken/c.cedar", "")
        .with_file("norules/README.md", "");
    world.unreadable.insert("secret.pem".into(), ReadFault::Denied);
    world.unreadable.insert(
        "broken/c.cedar".into(),
        ReadFault::Other("input/output error".to_owned()),
    );
    world
}

/// What a person reads about a text.
fn lines_of(text: &str) -> Vec<String> {
    match load(
        Path::new("tollhouse.toml"),
        &files().with_file("tollhouse.toml", text),
    ) {
        Ok(loaded) => loaded
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}"))
            .collect(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

struct Fixture<'t> {
    head: &'t str,
    body: &'t str,
    expected: Vec<&'t str>,
}

impl Fixture<'_> {
    fn text(&self) -> String {
        match self.head {
            "after" => format!("{BASE}{}", self.body),
            "before" => format!("{}{BASE}", self.body),
            "alone" => self.body.to_owned(),
            other => panic!("`{other}` is no kind of fixture"),
        }
    }
}

fn fixtures(file: &str) -> Vec<Fixture<'_>> {
    file.split("=== ")
        .skip(1)
        .map(|part| {
            let (head, rest) = part.split_once('\n').expect("a head has a line");
            let (body, expected) = rest.split_once("---\n").expect("a fixture has a line `---`");
            Fixture {
                head,
                body,
                expected: expected.lines().filter(|line| !line.is_empty()).collect(),
            }
        })
        .collect()
}

#[test]
fn every_fixture_gives_exactly_its_lines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults");
    let (mut count, mut wrong) = (0, String::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::read_to_string(&path).unwrap();
        let mut updated = String::new();
        for fixture in fixtures(&file) {
            let found = lines_of(&fixture.text());
            count += 1;
            if found != fixture.expected {
                write!(
                    wrong,
                    "{}\n{}\nexpected {:#?}\nfound {found:#?}\n",
                    path.display(),
                    fixture.body,
                    fixture.expected
                )
                .unwrap();
            }
            write!(
                updated,
                "=== {}\n{}---\n{}\n\n",
                fixture.head,
                fixture.body,
                found.join("\n")
            )
            .unwrap();
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, updated.trim_end().to_owned() + "\n").unwrap();
        }
    }
    assert!(count > 100, "{count}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_base_of_the_fixtures_has_no_fault_and_no_warning() {
    assert_eq!(lines_of(BASE), Vec::<String>::new());
}
