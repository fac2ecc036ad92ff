//! The schemas against which every answer is held, compared with the copies in the source package of the official Python
//! SDK: what we hold ourselves to is not something that we wrote.

use std::collections::BTreeSet;
use std::path::PathBuf;

use e2e::driver::{self, HOW};
use e2e::peer;
use serde_json::{Map, Value};

/// Where ours have moved on: the SDK's copies are of earlier commits of the specification. A number's bounds need not be
/// whole, and of the stream of subscriptions a definition was named anew and one was added.
const NEWER: [(&str, &[&str]); 2] = [
    (
        "2025-11-25",
        &[
            "/$defs/NumberSchema/properties/default/type",
            "/$defs/NumberSchema/properties/maximum/type",
            "/$defs/NumberSchema/properties/minimum/type",
        ],
    ),
    (
        "2026-07-28",
        &[
            "/$defs/SubscriptionsListenResult/properties/_meta/$ref",
            "/$defs/SubscriptionsListenResultMeta",
            "/$defs/SubscriptionsListenResultMetaObject",
            "/$defs/SubscriptionsListenResultResponse",
        ],
    ),
];

/// The folder of schemas in the source package; `None` where it is not installed.
fn schemas() -> Option<PathBuf> {
    let unpacked = std::fs::read_dir(driver::peers().join("source")).ok()?;
    let mut schemas = unpacked.filter_map(|entry| {
        let folder = entry.unwrap().path().join("schema");
        folder.is_dir().then_some(folder)
    });
    schemas.next()
}

/// Leaves out the prose. `named` says that the keys are names that somebody chose, of properties or definitions.
fn bare(schema: &Value, named: bool) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| named || *key != "description");
            let kept: Map<String, Value> = kept
                .map(|(key, member)| {
                    let names = !named && matches!(key.as_str(), "properties" | "$defs");
                    (key.clone(), bare(member, names))
                })
                .collect();
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(|item| bare(item, false)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// The places in which two schemas differ, as JSON pointers.
fn differences(one: &Value, other: &Value, place: &str, found: &mut BTreeSet<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let place = format!("{place}/{key}");
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => differences(one, other, &place, found),
                    (None, _) | (_, None) => {
                        found.insert(place);
                    }
                }
            }
        }
        (one, other) if one == other => {}
        _ => {
            found.insert(place.to_owned());
        }
    }
}

#[test]
fn our_schemas_are_the_official_ones_without_their_prose() {
    let Some(official) = schemas() else {
        peer::missing("the source package of the Python SDK", HOW);
        return;
    };
    for (revision, newer) in NEWER {
        let file = format!("{revision}.json");
        let theirs = std::fs::read(official.join(&file)).unwrap();
        let theirs: Value = serde_json::from_slice(&theirs).unwrap();
        assert!(
            theirs["$defs"]["CallToolResult"]["description"].is_string(),
            "{revision}: it is the whole one"
        );
        let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../wire/tests/schema")
            .join(&file);
        let ours: Value = serde_json::from_slice(&std::fs::read(ours).unwrap()).unwrap();
        assert!(ours["$defs"].as_object().unwrap().len() > 140, "{revision}");
        let mut found = BTreeSet::new();
        differences(&bare(&theirs, false), &ours, "", &mut found);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, newer, "{revision}");
    }
}
