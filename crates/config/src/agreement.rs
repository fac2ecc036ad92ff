//! Tests only: the four readers of the table of keys agree with each other.

use std::collections::BTreeMap;
use std::path::Path;

use jsonschema::Validator;
use serde_json::Value as Json;

use crate::check::{Check, below};
use crate::fault::{FAULTS_MAX, Faults};
use crate::key::{Key, Kind, Need, Section};
use crate::place::Lines;
use crate::raw::{Table, Value, read_value};
use crate::table::{CLASSES, ROOT};
use crate::view::reads;
use crate::{ConfigFault, FaultKind, load, reference, schema};

#[path = "../tests/it/world.rs"]
mod world;

const COMPLETE: &str = include_str!("../tests/it/complete.toml");

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

fn faults_of(text: &str) -> Vec<ConfigFault> {
    let world = world::world().with_file("tollhouse.toml", text);
    load(Path::new("tollhouse.toml"), &world)
        .err()
        .unwrap_or_default()
}

fn json_of(document: &toml::Table) -> Json {
    serde_json::to_value(document).unwrap()
}

/// What the check alone says of one value.
fn check(kind: &Kind, text: &str) -> Vec<ConfigFault> {
    let node = read_value(text).unwrap_or_else(|| panic!("{text} is no TOML value"));
    let (mut faults, mut places) = (Faults::default(), BTreeMap::new());
    Check {
        file: "table",
        lines: &Lines::of(text),
        faults: &mut faults,
        places: &mut places,
    }
    .value(kind, &node, "key");
    faults.in_order("table")
}

fn keys() -> impl Iterator<Item = (&'static Section, &'static Key)> {
    ROOT.tree()
        .into_iter()
        .flat_map(|section| section.keys().iter().map(move |key| (section, key)))
}

#[test]
fn every_example_and_every_default_is_a_value_of_its_key() {
    for (section, key) in keys() {
        let holds_keys = !key.kind.sections().is_empty();
        assert!(
            !key.example.is_empty() || holds_keys,
            "{}.{} has no example",
            section.at,
            key.name
        );
        for text in [
            key.example,
            if let Need::Default(text) = key.need {
                text
            } else {
                ""
            },
        ] {
            if !text.is_empty() {
                assert_eq!(check(&key.kind, text), [], "{}.{} = {text}", section.at, key.name);
            }
        }
        assert!(
            key.doc.ends_with('.') && section.doc.ends_with('.'),
            "{}.{}",
            section.at,
            key.name
        );
    }
}

#[test]
fn the_settings_read_every_key_of_the_table_and_no_other() {
    reads::take();
    assert_eq!(faults_of(COMPLETE), []);
    // The alternative of `id` and `scope`, `bind` of claims, and the like are all in the complete file.
    let reads = reads::take();
    for (section, key) in keys() {
        assert!(
            reads.contains(&(section.at, key.name.to_owned())),
            "nobody reads {}.{}",
            section.at,
            key.name
        );
    }
    for (at, name) in &reads {
        let section = ROOT.tree().into_iter().find(|section| section.at == *at).unwrap();
        assert!(section.key(name).is_some(), "{at}.{name} is read and is no key");
    }
}

#[test]
fn the_schema_is_valid_2020_12_and_every_example_and_default_fits_it() {
    let schema = schema();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    for (section, key) in keys() {
        let at = if section.at.is_empty() {
            "/properties".to_owned()
        } else {
            format!("/$defs/{}/properties", schema::name(section))
        };
        let property = schema
            .pointer(&at)
            .and_then(|all| all.get(key.name))
            .unwrap_or_else(|| panic!("{at}/{}", key.name));
        let mut alone = property.clone();
        alone["$defs"] = schema["$defs"].clone();
        let validator = jsonschema::draft202012::new(&alone).unwrap();
        let examples = property["examples"]
            .as_array()
            .into_iter()
            .flatten()
            .chain(property.get("default"));
        for example in examples {
            assert!(
                validator.is_valid(example),
                "{}.{}: {example}",
                section.at,
                key.name
            );
        }
        assert!(property.get("examples").is_some() || key.example.is_empty());
    }
}

#[test]
fn the_reference_lists_every_key_with_its_text() {
    let page = reference();
    for (section, key) in keys() {
        assert!(
            page.contains(&format!("| `{}` | ", key.name)),
            "{}.{}",
            section.at,
            key.name
        );
        assert!(page.contains(section.doc), "{}", section.at);
    }
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(bars, 5, "{line}");
    }
}

#[test]
fn the_classes_of_the_table_are_those_of_the_model() {
    let all: Vec<&str> = model::Class::ALL.iter().map(|class| class.as_str()).collect();
    assert_eq!(all, CLASSES);
}

#[test]
fn a_list_or_table_is_taken_at_its_longest_and_refused_one_past_it() {
    let too_long = |kind: &Kind, text: &str| {
        let faults = check(kind, text);
        faults
            .iter()
            .any(|fault| fault.key == "key" && fault.kind == FaultKind::OutOfRange)
    };
    let mut tried = 0;
    for (section, key) in keys() {
        let (max, item) = match key.kind {
            Kind::List { max, .. } => (
                max,
                format!(
                    "{}, ",
                    key.example.trim_matches(['[', ']']).split(", ").next().unwrap()
                ),
            ),
            Kind::OneOrMany { max, .. } => (max, format!("{}, ", key.example)),
            Kind::Named {
                max,
                of: Kind::Table(_),
                ..
            } => (max, "{}, ".to_owned()),
            Kind::Named { max, .. } => (max, "\"x\", ".to_owned()),
            _ => continue,
        };
        let named = matches!(key.kind, Kind::Named { .. });
        let text = |length: usize| {
            let items = (0..length).map(|n| {
                if named {
                    format!("k{n} = {item}")
                } else {
                    item.clone()
                }
            });
            let items: String = items.collect();
            if named {
                format!("{{ {items} }}")
            } else {
                format!("[{items}]")
            }
        };
        tried += 1;
        assert!(
            !too_long(&key.kind, &text(max)),
            "{}.{} at {max}",
            section.at,
            key.name
        );
        assert!(
            too_long(&key.kind, &text(max + 1)),
            "{}.{} past {max}",
            section.at,
            key.name
        );
    }
    assert!(tried >= 20, "{tried}");
}

// === loader and schema on the same documents ===

/// Everything that is written in the complete file: the path of a key, and its row.
fn written() -> Vec<(Vec<String>, Kind)> {
    fn kind(all: &mut Vec<(Vec<String>, Kind)>, path: &[String], of: Kind, value: &Value) {
        let of = match (of, value) {
            (Kind::Cases(_), Value::Table(table)) => Kind::Table(of.section_of(table).unwrap()),
            (of, _) => of,
        };
        all.push((path.to_vec(), of));
        match (of, value) {
            (Kind::Table(section), Value::Table(table)) => keys(all, path, section, table),
            (Kind::Named { of, .. }, Value::Table(table)) => {
                for entry in &table.entries {
                    kind(
                        all,
                        &[path, std::slice::from_ref(&entry.name)].concat(),
                        *of,
                        &entry.node.value,
                    );
                }
            }
            _ => {}
        }
    }
    fn keys(all: &mut Vec<(Vec<String>, Kind)>, path: &[String], section: &'static Section, table: &Table) {
        for entry in &table.entries {
            let key = section.key(&entry.name).unwrap();
            kind(
                all,
                &[path, std::slice::from_ref(&entry.name)].concat(),
                key.kind,
                &entry.node.value,
            );
        }
    }
    let mut all = Vec::new();
    keys(&mut all, &[], &ROOT, &crate::raw::read(COMPLETE).0);
    all
}

fn at<'t>(document: &'t mut toml::Table, path: &[String]) -> &'t mut toml::Table {
    path.iter().fold(document, |table, name| {
        table.get_mut(name).unwrap().as_table_mut().unwrap()
    })
}

/// Both readers refuse the document, and the loader says so of this key.
fn both_refuse(document: &toml::Table, path: &[String], kinds: &[FaultKind], validator: &Validator) {
    let text = toml::to_string(document).unwrap();
    let key = path.iter().fold(String::new(), |path, name| below(&path, name));
    let faults = faults_of(&text);
    assert!(
        faults
            .iter()
            .any(|fault| fault.key.starts_with(&key) && kinds.contains(&fault.kind)),
        "the loader takes {key} in\n{text}\n{faults:#?}"
    );
    assert!(
        !validator.is_valid(&json_of(document)),
        "the schema takes {key} in\n{text}"
    );
}

#[test]
fn loader_and_schema_take_the_complete_file() {
    let document: toml::Table = COMPLETE.parse().unwrap();
    let validator = validator();
    let errors: Vec<String> = validator
        .iter_errors(&json_of(&document))
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(faults_of(&toml::to_string(&document).unwrap()), []);
    // Every key but the limits is in it, so that what follows speaks of every key.
    let written: Vec<String> = written()
        .iter()
        .map(|(path, _)| path.last().unwrap().clone())
        .collect();
    for (section, key) in keys().filter(|(section, _)| section.at != crate::table::LIMITS_AT) {
        assert!(
            written.contains(&key.name.to_owned()),
            "{}.{} is not in the complete file",
            section.at,
            key.name
        );
    }
}

#[test]
fn loader_and_schema_refuse_a_value_of_another_type_at_every_key() {
    let validator = validator();
    let document: toml::Table = COMPLETE.parse().unwrap();
    let values = [
        toml::Value::Boolean(true),
        toml::Value::Float(7.5),
        toml::Value::Integer(-1),
        toml::Value::Table(toml::Table::new()),
        toml::Value::Array(vec![toml::Value::Array(Vec::new())]),
    ];
    for (path, kind) in written() {
        let (name, parent) = path.split_last().unwrap();
        for value in &values {
            if matches!(
                (&kind, value),
                (Kind::Truth, toml::Value::Boolean(_))
                    | (Kind::Table(_) | Kind::Named { .. }, toml::Value::Table(_))
                    | (Kind::Number, toml::Value::Float(_) | toml::Value::Integer(_))
                    | (
                        Kind::Datum { .. },
                        toml::Value::Boolean(_) | toml::Value::Float(_) | toml::Value::Integer(_)
                    )
            ) {
                continue;
            }
            let mut changed = document.clone();
            at(&mut changed, parent).insert(name.clone(), value.clone());
            both_refuse(
                &changed,
                &path,
                &[FaultKind::WrongType, FaultKind::OutOfRange],
                &validator,
            );
        }
    }
}

#[test]
fn loader_and_schema_refuse_a_limit_of_another_type_and_one_past_its_bounds() {
    let validator = validator();
    let mut document: toml::Table = COMPLETE.parse().unwrap();
    for limit in model::LIMITS {
        let path = ["limits".to_owned(), limit.name.to_owned()];
        for value in [
            toml::Value::Boolean(true),
            toml::Value::String("many".to_owned()),
            toml::Value::Integer(-1),
        ] {
            document.insert(
                "limits".to_owned(),
                toml::Value::Table([(limit.name.to_owned(), value)].into_iter().collect()),
            );
            both_refuse(
                &document,
                &path,
                &[FaultKind::WrongType, FaultKind::WrongValue, FaultKind::OutOfRange],
                &validator,
            );
        }
        let past = i64::try_from(limit.max + 1).unwrap();
        let (past, shown_in_schema) = match limit.unit {
            model::Unit::Count | model::Unit::Bytes => (toml::Value::Integer(past), true),
            model::Unit::Millis => (toml::Value::String(format!("{past}ms")), false),
        };
        document.insert(
            "limits".to_owned(),
            toml::Value::Table([(limit.name.to_owned(), past)].into_iter().collect()),
        );
        let faults = faults_of(&toml::to_string(&document).unwrap());
        assert!(
            faults
                .iter()
                .any(|fault| fault.kind == FaultKind::OutOfRange
                    && fault.key == format!("limits.{}", limit.name)),
            "{}",
            limit.name
        );
        assert_eq!(
            validator.is_valid(&json_of(&document)),
            !shown_in_schema,
            "{}",
            limit.name
        );
    }
}

#[test]
fn loader_and_schema_refuse_an_unknown_key_in_every_table() {
    let validator = validator();
    let document: toml::Table = COMPLETE.parse().unwrap();
    let tables = written()
        .into_iter()
        .filter(|(_, kind)| matches!(kind, Kind::Table(_)))
        .map(|(path, _)| path);
    for path in tables.chain([Vec::new()]) {
        let mut changed = document.clone();
        at(&mut changed, &path).insert("zzz".to_owned(), toml::Value::Boolean(true));
        both_refuse(
            &changed,
            &[path, vec!["zzz".to_owned()]].concat(),
            &[FaultKind::UnknownKey],
            &validator,
        );
    }
}

#[test]
fn loader_and_schema_refuse_a_table_without_a_key_that_it_needs() {
    let validator = validator();
    let document: toml::Table = COMPLETE.parse().unwrap();
    let mut removed = 0;
    for (path, kind) in written().into_iter().chain([(Vec::new(), Kind::Table(&ROOT))]) {
        let Kind::Table(section) = kind else { continue };
        for key in section
            .keys()
            .iter()
            .filter(|key| matches!(key.need, Need::Required))
        {
            let mut changed = document.clone();
            at(&mut changed, &path).remove(key.name);
            // Without the key that tells what a table is, the table is at fault.
            let tells = section.at.ends_with(&format!("with `{}`", key.name));
            let name = (!tells).then(|| key.name.to_owned());
            both_refuse(
                &changed,
                &[path.clone(), Vec::from_iter(name)].concat(),
                &[FaultKind::Missing],
                &validator,
            );
            removed += 1;
        }
        for choice in section.choices {
            if choice.required {
                let mut none = document.clone();
                for key in choice.keys {
                    at(&mut none, &path).remove(*key);
                }
                both_refuse(&none, &path, &[FaultKind::Missing], &validator);
            }
            let mut all = document.clone();
            for key in choice.keys {
                let example: toml::Value = format!("x = {}", section.key(key).unwrap().example)
                    .parse::<toml::Table>()
                    .unwrap()["x"]
                    .clone();
                at(&mut all, &path).insert((*key).to_owned(), example);
            }
            both_refuse(&all, &path, &[FaultKind::Conflict], &validator);
        }
    }
    assert!(removed > 20, "{removed}");
}

#[test]
fn loader_and_schema_refuse_a_name_that_cannot_be_one() {
    let validator = validator();
    let document: toml::Table = COMPLETE.parse().unwrap();
    for (path, kind) in written() {
        let Kind::Named { name, .. } = kind else { continue };
        if name.pattern.is_none() {
            continue;
        }
        let mut changed = document.clone();
        let table = at(&mut changed, &path);
        let value = table.values().next().unwrap().clone();
        table.insert("no name".to_owned(), value);
        both_refuse(
            &changed,
            &[path, vec!["no name".to_owned()]].concat(),
            &[FaultKind::WrongValue],
            &validator,
        );
    }
}

#[test]
fn a_text_that_fits_its_form_fits_the_pattern_of_the_schema() {
    // The other way round is not promised: a pattern is coarser than the judge.
    let validator = validator();
    let document: toml::Table = COMPLETE.parse().unwrap();
    for (key, values) in [
        (
            "listen",
            ["127.0.0.1:0", "[fe80::1%2]:80", "env:LISTEN"].as_slice(),
        ),
        (
            "public_url",
            &["http://127.0.0.1:7300", "https://h.example/base", "env:URL"],
        ),
        (
            "store",
            &["sqlite:a.db", "postgresql://h/db", "env:STORE", "file:/run/store"],
        ),
    ] {
        for value in values {
            let mut changed = document.clone();
            changed.insert(key.to_owned(), toml::Value::String((*value).to_owned()));
            assert!(validator.is_valid(&json_of(&changed)), "{key} = {value}");
        }
    }
}

#[test]
fn faults_past_the_limit_are_counted_not_listed() {
    let lines: String = (0..FAULTS_MAX + 20).map(|n| format!("zzz{n} = 1\n")).collect();
    let faults = faults_of(&format!("{lines}{COMPLETE}"));
    assert_eq!(faults.len(), FAULTS_MAX + 1);
    assert_eq!(faults.last().unwrap().problem, "20 more faults are not shown");
}
