//! Every room has the `clippy.toml` that the table of rooms gives it.

use xtask::repository;
use xtask::rooms::{ROOMS, World};

#[test]
fn every_room_is_closed_to_what_it_does_not_touch() {
    let faults: Vec<String> = ROOMS
        .iter()
        .filter_map(|room| room.clippy_file().fault())
        .collect();
    super::none(&faults);
}

#[test]
fn a_clippy_toml_is_valid_and_closes_exactly_what_the_room_does_not_touch() {
    for room in ROOMS {
        let file: toml::Table = room.clippy_toml().parse().unwrap();
        let paths = |key: &str| -> Vec<String> {
            let list = file[key].as_array().unwrap();
            list.iter()
                .map(|entry| entry["path"].as_str().unwrap().to_owned())
                .collect()
        };
        let (methods, types) = (paths("disallowed-methods"), paths("disallowed-types"));
        for world in World::ALL {
            let closed = !room.touches.contains(world);
            for path in world.methods() {
                assert_eq!(
                    methods.iter().any(|found| found == path),
                    closed,
                    "{} {path}",
                    room.name
                );
            }
            for path in world.types() {
                assert_eq!(
                    types.iter().any(|found| found == path),
                    closed,
                    "{} {path}",
                    room.name
                );
            }
        }
    }
}

#[test]
fn what_a_room_touches_is_said_once_and_in_order() {
    for room in ROOMS {
        let mut sorted = room.touches.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(room.touches, sorted, "{}", room.name);
    }
}

#[test]
fn a_door_is_opened_only_where_it_stands_open_and_with_a_reason() {
    // Outside tests, an exception names itself with `expect`, which warns once it is no longer needed. `allow` does not.
    let mut faults = Vec::new();
    for path in repository::files().unwrap() {
        let inside = ROOMS
            .iter()
            .any(|room| path.starts_with(&format!("crates/{}/src/", room.name)));
        if !inside || !path.ends_with(".rs") {
            continue;
        }
        let text = repository::read(&path).unwrap();
        // Tests may touch the world to set their scene.
        for (number, line) in super::before_tests(&text).lines().enumerate() {
            if line.contains("allow(clippy::disallowed") && !line.contains("cfg_attr(test") {
                faults.push(format!(
                    "{path}:{}: write `expect` with a reason instead of `allow`",
                    number + 1
                ));
            }
        }
    }
    super::none(&faults);
}
