//! What a schema loses where it would be too large: nothing that would let more through.
//!
//! It works on finished schemas: `root` with its `$defs` beside it. Fields of an input are left out whole; an answer is
//! described less deeply. What needs a definition that cannot be had is left out in the same way.

use std::collections::HashSet;

use model::{Object, Value};

/// Lets an answer be anything where a folded schema would describe it, and takes away what could then refuse it.
pub(super) fn open(root: &mut Object, defs: &mut Object, is_folded: &dyn Fn(&str) -> bool) {
    open_object(root, is_folded);
    for definition in defs.values_mut() {
        open_schema(definition, is_folded);
    }
}

fn open_schema(schema: &mut Value, is_folded: &dyn Fn(&str) -> bool) {
    if let Some(object) = schema.as_object_mut() {
        open_object(object, is_folded);
    }
}

fn open_object(object: &mut Object, is_folded: &dyn Fn(&str) -> bool) {
    if target(object).is_some_and(is_folded) {
        object.shift_remove("$ref");
    }
    // A part that lets everything through turns these into a refusal.
    for keyword in [
        "not",
        "if",
        "then",
        "else",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedProperties",
        "unevaluatedItems",
    ] {
        object.shift_remove(keyword);
    }
    // More than one alternative may fit once they are described less deeply.
    // Beside an `anyOf` of its own they are left out, which only says less.
    let alternatives = object.shift_remove("oneOf");
    if let Some(alternatives) = alternatives.filter(|_| !object.contains_key("anyOf")) {
        object.insert("anyOf".to_owned(), alternatives);
    }
    each_schema(object, &mut |schema| open_schema(schema, is_folded));
    // An alternative that lets everything through leaves nothing to say for the others.
    let says_nothing = |alternatives: &Value| {
        let alternatives = alternatives.as_array();
        alternatives.is_some_and(|alternatives| alternatives.iter().any(lets_everything_through))
    };
    if object.get("anyOf").is_some_and(says_nothing) {
        object.shift_remove("anyOf");
    }
}

fn lets_everything_through(schema: &Value) -> bool {
    const WORDS: [&str; 3] = ["title", "description", "deprecated"];
    match schema {
        Value::Bool(lets_through) => *lets_through,
        Value::Object(object) => object.keys().all(|key| WORDS.contains(&key.as_str())),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Leaves optional fields out that refer to a folded schema. `keep`: fields of `root` that stay.
pub(super) fn narrow(
    root: &mut Object,
    defs: &mut Object,
    keep: &dyn Fn(&str) -> bool,
    is_folded: &dyn Fn(&str) -> bool,
) {
    narrow_object(root, keep, is_folded);
    for definition in defs.values_mut() {
        narrow_schema(definition, is_folded);
    }
}

/// Leaves out what can be left out and needs a definition that is not there: optional fields, and alternatives beside others,
/// from the inside out, so that nothing goes for something that goes by itself. `keep`: fields of `root` that stay.
pub(super) fn without(
    root: &mut Object,
    defs: &mut Object,
    keep: &dyn Fn(&str) -> bool,
    is_gone: &dyn Fn(&str) -> bool,
) {
    without_object(root, keep, is_gone);
    for definition in defs.values_mut().filter_map(Value::as_object_mut) {
        without_object(definition, &|_| false, is_gone);
    }
}

fn without_object(object: &mut Object, keep: &dyn Fn(&str) -> bool, is_gone: &dyn Fn(&str) -> bool) {
    each_schema(object, &mut |schema| {
        if let Some(object) = schema.as_object_mut() {
            without_object(object, &|_| false, is_gone);
        }
    });
    let needs = |schema: &Value| first_reference(schema, is_gone).is_some();
    leave_out(object, keep, &needs);
    // Of a `oneOf`, a value that fits one of the others may fit the missing one, too; the document describes it all the same.
    // What leaves nothing but null has decided about the request.
    for keyword in ["anyOf", "oneOf"] {
        if let Some(ways) = object.get_mut(keyword).and_then(Value::as_array_mut)
            && ways.iter().any(|way| !needs(way) && !is_null(way))
        {
            ways.retain(|way| !needs(way));
        }
    }
}

fn is_null(schema: &Value) -> bool {
    let only = |keyword: &str, value: &Value| schema.get(keyword) == Some(value);
    only("type", &Value::from("null"))
        || only("const", &Value::Null)
        || only("enum", &Value::Array(vec![Value::Null]))
}

/// The first definition of some that a schema refers to, not looking behind its references.
pub(super) fn first_reference<'v>(schema: &'v Value, is_one: &dyn Fn(&str) -> bool) -> Option<&'v str> {
    let object = schema.as_object()?;
    if let Some(found) = target(object).filter(|target| is_one(target)) {
        return Some(found);
    }
    schemas(object).find_map(|schema| first_reference(schema, is_one))
}

/// Tells of every definition that a schema refers to, not looking behind its references.
pub(super) fn references(object: &Object, tell: &mut dyn FnMut(&str)) {
    if let Some(found) = target(object) {
        tell(found);
    }
    for schema in schemas(object).filter_map(Value::as_object) {
        references(schema, tell);
    }
}

fn narrow_schema(schema: &mut Value, is_folded: &dyn Fn(&str) -> bool) {
    if let Some(object) = schema.as_object_mut() {
        narrow_object(object, &|_| false, is_folded);
    }
}

fn narrow_object(object: &mut Object, keep: &dyn Fn(&str) -> bool, is_folded: &dyn Fn(&str) -> bool) {
    leave_out(object, keep, &|schema| {
        first_reference(schema, is_folded).is_some()
    });
    each_schema(object, &mut |schema| narrow_schema(schema, is_folded));
}

/// Leaves out the optional fields of one object whose schemas are of a kind.
fn leave_out(object: &mut Object, keep: &dyn Fn(&str) -> bool, is_one: &dyn Fn(&Value) -> bool) {
    let required: HashSet<String> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
    let mut gone: Vec<String> = Vec::new();
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, schema) in properties.iter_mut() {
            if !required.contains(name) && !keep(name) && is_one(schema) {
                // Where the object takes other fields, this one has to be refused by name.
                *schema = Value::Bool(false);
                if is_closed {
                    gone.push(name.clone());
                }
            }
        }
        for name in &gone {
            properties.shift_remove(name);
        }
    }
    if let Some(dependencies) = object.get_mut("dependentRequired").and_then(Value::as_object_mut) {
        for name in &gone {
            dependencies.shift_remove(name);
        }
    }
}

/// The definitions that are referred to from the root and are not there.
pub(super) fn missing(root: &Object, defs: &Object) -> Vec<String> {
    let mut missing = Vec::new();
    let mut seen = HashSet::new();
    reach(root, defs, &mut seen, &mut missing);
    missing
}

/// Takes away definitions that nothing refers to any more.
pub(super) fn sweep(root: &Object, defs: &mut Object) {
    let mut seen = HashSet::new();
    reach(root, defs, &mut seen, &mut Vec::new());
    let seen: HashSet<String> = seen.into_iter().map(str::to_owned).collect();
    defs.retain(|name, _| seen.contains(name));
}

fn reach<'v>(root: &'v Object, defs: &'v Object, seen: &mut HashSet<&'v str>, missing: &mut Vec<String>) {
    let mut open = vec![root];
    while let Some(object) = open.pop() {
        if let Some(name) = target(object)
            && seen.insert(name)
        {
            match defs.get(name) {
                Some(definition) => open.extend(definition.as_object()),
                None => missing.push(name.to_owned()),
            }
        }
        open.extend(schemas(object).filter_map(Value::as_object));
    }
}

fn target(object: &Object) -> Option<&str> {
    object.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// Keywords that hold an object of schemas.
const MAPS: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// Keywords that hold a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that hold a schema.
const SINGLES: [&str; 10] = [
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
];

fn schemas(object: &Object) -> impl Iterator<Item = &Value> {
    let maps = MAPS
        .iter()
        .filter_map(|keyword| object.get(*keyword)?.as_object())
        .flat_map(Object::values);
    let lists = LISTS
        .iter()
        .filter_map(|keyword| object.get(*keyword)?.as_array())
        .flatten();
    let singles = SINGLES.iter().filter_map(|keyword| object.get(*keyword));
    maps.chain(lists).chain(singles)
}

pub(super) fn each_schema(object: &mut Object, change: &mut dyn FnMut(&mut Value)) {
    for keyword in MAPS {
        if let Some(map) = object.get_mut(keyword).and_then(Value::as_object_mut) {
            map.values_mut().for_each(&mut *change);
        }
    }
    for keyword in LISTS {
        if let Some(list) = object.get_mut(keyword).and_then(Value::as_array_mut) {
            list.iter_mut().for_each(&mut *change);
        }
    }
    for keyword in SINGLES {
        if let Some(schema) = object.get_mut(keyword) {
            change(schema);
        }
    }
}
