//! Dependencies go down: every arrow between rooms ends on a lower floor, and every room is in the table, in the document
//! of the architecture, and nowhere else.

use std::collections::BTreeSet;

use xtask::repository;
use xtask::rooms::{KEPT, ROOMS, Room, WORKSHOPS};

/// A dependency that somebody wrote down.
#[derive(Debug)]
struct Arrow {
    from: String,
    to: String,
    dev: bool,
}

fn arrows() -> Vec<Arrow> {
    let metadata = repository::metadata().unwrap();
    let mut arrows = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            arrows.push(Arrow {
                from: package["name"].as_str().unwrap().to_owned(),
                to: dependency["name"].as_str().unwrap().to_owned(),
                dev: dependency["kind"] == "dev",
            });
        }
    }
    assert!(arrows.len() > 100, "cargo metadata was read wrongly");
    arrows
}

fn room(package: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.package() == package)
}

/// Why an arrow may not be, if it may not.
fn fault(from: &Room, to: &Room) -> Option<String> {
    let way = match to.floor.cmp(&from.floor) {
        std::cmp::Ordering::Less => return None,
        std::cmp::Ordering::Equal => "level",
        std::cmp::Ordering::Greater => "up",
    };
    Some(format!(
        "`{}` (floor {}) uses `{}` (floor {}): the arrow runs {way}; move the code down, or the room up",
        from.name, from.floor, to.name, to.floor
    ))
}

#[test]
fn every_arrow_goes_to_a_lower_floor() {
    let faults: Vec<String> = arrows()
        .iter()
        .filter_map(|arrow| fault(room(&arrow.from)?, room(&arrow.to)?))
        .collect();
    super::none(&faults);
}

#[test]
fn level_and_upward_arrows_are_faults_and_downward_ones_are_not() {
    let named = |name| Room::find(name).unwrap();
    assert!(fault(named("gateway"), named("policy")).is_none());
    assert!(fault(named("wire"), named("policy")).unwrap().contains("level"));
    assert!(fault(named("policy"), named("gateway")).unwrap().contains("up"));
}

#[test]
fn no_room_uses_a_workshop() {
    let faults: Vec<String> = arrows()
        .iter()
        .filter(|arrow| room(&arrow.from).is_some())
        .filter(|arrow| ["tollhouse-e2e", "xtask"].contains(&arrow.to.as_str()))
        .map(|arrow| {
            format!(
                "`{}` uses `{}`, which is no part of the product",
                arrow.from, arrow.to
            )
        })
        .collect();
    super::none(&faults);
}

#[test]
fn outside_crates_are_used_by_the_rooms_that_they_are_kept_for() {
    let mut faults = Vec::new();
    for arrow in arrows().iter().filter(|arrow| !arrow.dev) {
        let (Some(from), Some(kept)) = (
            room(&arrow.from),
            KEPT.iter().find(|kept| kept.package == arrow.to),
        ) else {
            continue;
        };
        if !kept.rooms.contains(&from.name) {
            faults.push(format!(
                "`{}` uses `{}`: {}",
                from.name, kept.package, kept.because
            ));
        }
    }
    super::none(&faults);
    for kept in KEPT {
        for name in kept.rooms {
            assert!(Room::find(name).is_some(), "{name}");
        }
    }
}

#[test]
fn every_crate_is_in_the_table_and_the_table_has_no_other() {
    let mut folders = BTreeSet::new();
    for entry in std::fs::read_dir(repository::root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Cargo.toml").is_file() {
            folders.insert(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    let known: BTreeSet<String> = ROOMS
        .iter()
        .map(|room| room.name)
        .chain(WORKSHOPS.iter().copied())
        .map(str::to_owned)
        .collect();
    assert_eq!(folders, known);
}

#[test]
fn the_document_of_the_architecture_has_the_same_table() {
    let page = repository::read("docs/architecture.md").unwrap();
    let mut written = BTreeSet::new();
    for line in page.lines() {
        // | 6 | `tollhouse` | its job | what it touches |
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [floor, name, _job, touches] = cells.as_slice() else {
            continue;
        };
        // The table of the steps has numbers in front as well; only there is more than one word in the second column.
        let name = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        let name = name.filter(|name| !name.contains('`'));
        if let (Ok(floor), Some(name)) = (floor.parse::<u8>(), name) {
            written.insert((name.to_owned(), floor, (*touches).to_owned()));
        }
    }
    let table: BTreeSet<(String, u8, String)> = ROOMS
        .iter()
        .map(|room| (room.name.to_owned(), room.floor, room.in_words()))
        .collect();
    assert_eq!(written, table);
}
