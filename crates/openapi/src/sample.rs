//! Arguments that fit the input schema of a tool: for a golden request, and to count the tools that can be called at all.
//!
//! A search and no solver: it follows the keywords, tries a few ways through alternatives, and what it gives was held against
//! the schema. Where it gives nothing, nothing is said about the schema.

use model::{Object, Value};
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::json;

use crate::schema::compile;

/// Ways that are tried for one schema.
const WAYS_MAX: usize = 12;
/// Schemas that are looked at on one way.
const STEPS_MAX: usize = 4_000;
/// Schemas inside each other.
const DEPTH_MAX: usize = 24;
/// The longest text and the longest list that is made.
const LENGTH_MAX: u64 = 4_096;

/// Arguments that the schema takes and that `is_wanted`, with few that need not be given. `None` where the search finds none.
///
/// `input_schema`: closed under its own `$defs`, as a tool has it. `is_wanted` is asked only of what the schema takes.
/// Bounded: 12 ways of 4,000 schemas at most.
pub fn valid_arguments(input_schema: &Value, is_wanted: &mut dyn FnMut(&Object) -> bool) -> Option<Object> {
    let validator = compile(input_schema).ok()?;
    (0..WAYS_MAX).find_map(|way| {
        let mut search = Search {
            root: input_schema,
            way,
            steps: STEPS_MAX,
            around: Vec::new(),
        };
        let found = search.value(input_schema, 0);
        match found {
            found if !validator.is_valid(&found) => None,
            Value::Object(arguments) if is_wanted(&arguments) => Some(arguments),
            _ => None,
        }
    })
}

struct Search<'s> {
    root: &'s Value,
    way: usize,
    steps: usize,
    /// The schemas around that apply to the same value: what one requires, another declares.
    around: Vec<&'s Object>,
}

impl<'s> Search<'s> {
    fn value(&mut self, schema: &'s Value, depth: usize) -> Value {
        self.steps = self.steps.saturating_sub(1);
        let Some(object) = schema.as_object().filter(|_| depth < DEPTH_MAX && self.steps > 0) else {
            return json!("a");
        };
        if let Some(value) = object.get("const") {
            return value.clone();
        }
        if let Some(values) = object
            .get("enum")
            .and_then(Value::as_array)
            .filter(|values| !values.is_empty())
        {
            return values.get(self.way % values.len()).cloned().unwrap_or_default();
        }
        let parts = self.parts(object, depth);
        if let Some(value) = parts.first().filter(|_| !says_its_own(object)) {
            return self.merged(value.clone(), parts.get(1..).unwrap_or_default());
        }
        let own = self.own(object, depth);
        self.merged(own, &parts)
    }

    /// A value for each schema that applies to the same value.
    fn parts(&mut self, object: &'s Object, depth: usize) -> Vec<Value> {
        self.around.push(object);
        let mut parts = Vec::new();
        for part in self.applied(object) {
            if says_anything(part) {
                parts.push(self.value(part, depth + 1));
            }
        }
        self.around.pop();
        parts
    }

    /// The schemas that apply to the same value, on this way.
    fn applied(&self, object: &'s Object) -> Vec<&'s Value> {
        let target = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.root.pointer(reference.strip_prefix('#')?));
        let list = |keyword: &str| {
            object
                .get(keyword)
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default()
        };
        let one_of = |ways: &'s [Value]| ways.get(self.way.checked_rem(ways.len())?);
        target
            .into_iter()
            .chain(list("allOf"))
            .chain(one_of(list("oneOf")))
            .chain(one_of(list("anyOf")))
            .collect()
    }

    /// What a field is, by the schema itself, those around it, or those that it is made of.
    fn declared(&self, object: &'s Object, name: &str) -> Option<&'s Value> {
        let mut left = 200_usize;
        let mut open: Vec<&'s Object> = std::iter::once(object)
            .chain(self.around.iter().copied())
            .collect();
        while let Some(object) = open.pop() {
            left = left.checked_sub(1)?;
            if let Some(found) = object.get("properties").and_then(|fields| fields.get(name)) {
                return Some(found);
            }
            open.extend(self.applied(object).into_iter().filter_map(Value::as_object));
        }
        None
    }

    /// A value inside of this one, to which nothing around applies.
    fn inside(&mut self, schema: &'s Value, depth: usize) -> Value {
        let around = std::mem::take(&mut self.around);
        let value = self.value(schema, depth + 1);
        self.around = around;
        value
    }

    /// The values as one, where they are objects; else the last that is no object, because it is said most closely.
    fn merged(&self, first: Value, others: &[Value]) -> Value {
        others.iter().fold(first, |whole, other| match (whole, other) {
            (Value::Object(mut whole), Value::Object(other)) => {
                for (name, value) in other {
                    let joined = match whole.shift_remove(name) {
                        Some(own) => self.merged(own, std::slice::from_ref(value)),
                        None => value.clone(),
                    };
                    whole.insert(name.clone(), joined);
                }
                Value::Object(whole)
            }
            (_, other) => other.clone(),
        })
    }

    fn own(&mut self, object: &'s Object, depth: usize) -> Value {
        let kind = match object.get("type") {
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null")
                .or(Some("null")),
            Some(kind) => kind.as_str(),
            None if object.contains_key("properties") || object.contains_key("required") => Some("object"),
            None if object.contains_key("items") => Some("array"),
            None => None,
        };
        match kind {
            Some("integer" | "number") => number(object),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some("array") => self.list(object, depth),
            Some("object") => self.fields(object, depth),
            _ => self.text(object),
        }
    }

    fn list(&mut self, object: &'s Object, depth: usize) -> Value {
        let items = object.get("items").unwrap_or(&Value::Bool(true));
        // A list of nothing cannot be written everywhere, so it has one item where it may.
        let most = count(object, "maxItems").unwrap_or(LENGTH_MAX);
        let length = count(object, "minItems")
            .unwrap_or(0)
            .max(1)
            .min(most)
            .min(LENGTH_MAX);
        let is_set = object.get("uniqueItems") == Some(&Value::Bool(true));
        let way = self.way;
        let list = (0..length)
            .map(|index| {
                if is_set {
                    self.way = way + usize::try_from(index).unwrap_or(0);
                }
                let item = self.inside(items, depth);
                match (item, is_set && index > 0) {
                    (Value::String(text), true)
                        if ["enum", "pattern", "$ref"]
                            .iter()
                            .all(|keyword| items.get(*keyword).is_none()) =>
                    {
                        json!(format!("{text}{index}"))
                    }
                    (item, _) => item,
                }
            })
            .collect();
        self.way = way;
        list
    }

    fn fields(&mut self, object: &'s Object, depth: usize) -> Value {
        let mut fields = Object::new();
        let properties = object.get("properties").and_then(Value::as_object);
        let is_bare = properties.is_none_or(Object::is_empty);
        let asked = object
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for name in asked.filter_map(Value::as_str) {
            let value = match self.declared(object, name) {
                Some(schema) => self.inside(schema, depth),
                None => self.rest(object, depth),
            };
            fields.insert(name.to_owned(), value);
        }
        let least = count(object, "minProperties").unwrap_or(0).min(64);
        // Later ways give more than what must be given: some alternatives ask for one field of several.
        let some = self.way / 3;
        for (index, (name, schema)) in properties.into_iter().flatten().enumerate() {
            let is_wanted = fields.len() < usize::try_from(least).unwrap_or(0) || depth > 0 && index < some;
            if is_wanted && !fields.contains_key(name) && schema != &Value::Bool(false) {
                let value = self.inside(schema, depth);
                fields.insert(name.clone(), value);
            }
        }
        let is_map = is_bare && object.get("additionalProperties") != Some(&Value::Bool(false));
        let least = if is_map && depth > 0 && some > 0 {
            least.max(1)
        } else {
            least
        };
        for index in fields.len()..usize::try_from(least).unwrap_or(0) {
            let value = self.rest(object, depth);
            fields.insert(format!("key{index}"), value);
        }
        Value::Object(fields)
    }

    /// A value of a field that is not declared.
    fn rest(&mut self, object: &'s Object, depth: usize) -> Value {
        match object.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => self.inside(schema, depth),
            _ => json!("a"),
        }
    }

    fn text(&self, object: &Object) -> Value {
        if object.get("contentEncoding").and_then(Value::as_str) == Some("base64") {
            return json!("YQ==");
        }
        let least = count(object, "minLength").unwrap_or(0).min(LENGTH_MAX);
        let most = count(object, "maxLength").unwrap_or(LENGTH_MAX);
        let fits_length = |text: &str| {
            let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
            least <= length && length <= most
        };
        let Some(pattern) = object.get("pattern") else {
            let formatted = match object.get("format").and_then(Value::as_str) {
                Some("date") => Some("2026-01-31"),
                Some("date-time") => Some("2026-01-31T12:00:00Z"),
                Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
                Some("uri" | "url") => Some("https://example.com/a"),
                Some("email") => Some("user@example.com"),
                _ => None,
            };
            if let Some(text) = formatted.filter(|text| fits_length(text)) {
                return json!(text);
            }
            let length = usize::try_from(least.max(1).min(most)).unwrap_or(1);
            return json!("a".repeat(length));
        };
        let Ok(matches) = compile(&json!({"type": "string", "pattern": pattern})) else {
            return json!("a");
        };
        let fits = |value: &Value| value.as_str().is_some_and(&fits_length) && matches.is_valid(value);
        let told = ["default", "example"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword))
            .chain(
                object
                    .get("examples")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        if let Some(value) = told.into_iter().find(|value| fits(value)) {
            return value.clone();
        }
        let Some(hir) = pattern
            .as_str()
            .and_then(|pattern| regex_syntax::parse(pattern).ok())
        else {
            return json!("a");
        };
        // What is matched may stand anywhere in the text, so a longer text may have to follow it.
        (0..4)
            .filter_map(|more| {
                let mut text = String::new();
                written(&hir, (more + least, self.way), &mut text)?;
                let short = usize::try_from(least).ok()?.saturating_sub(text.chars().count());
                let padded = format!("{text}{}", "a".repeat(short));
                [text, padded]
                    .into_iter()
                    .map(Value::from)
                    .find(|value| fits(value))
            })
            .next()
            .unwrap_or_else(|| json!("a"))
    }
}

/// Writes a text that a pattern matches: of alternatives the first, of repetitions as few as there must be, or as many as
/// a text of `length` may need.
fn written(hir: &Hir, (length, way): (u64, usize), text: &mut String) -> Option<()> {
    if u64::try_from(text.len()).ok()? > LENGTH_MAX {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let has = |wanted: &char| {
                class
                    .ranges()
                    .iter()
                    .any(|range| range.start() <= *wanted && *wanted <= range.end())
            };
            let first = || class.ranges().first().map(|range| range.start());
            let few = ['a', '1', '2', 'A', '-'];
            text.push(
                few.into_iter()
                    .cycle()
                    .skip(way)
                    .take(few.len())
                    .find(has)
                    .or_else(first)?,
            );
        }
        HirKind::Class(Class::Bytes(class)) => text.push(char::from(class.ranges().first()?.start())),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.map_or(LENGTH_MAX, u64::from);
            for _ in 0..length.clamp(u64::from(repetition.min), most.max(u64::from(repetition.min))) {
                written(&repetition.sub, (length, way), text)?;
            }
        }
        HirKind::Capture(capture) => written(&capture.sub, (length, way), text)?,
        HirKind::Concat(parts) => parts
            .iter()
            .try_for_each(|part| written(part, (length, way), text))?,
        HirKind::Alternation(ways) => written(ways.first()?, (length, way), text)?,
    }
    Some(())
}

/// Whether a schema says what its value is.
fn says_anything(schema: &Value) -> bool {
    const SAYS: [&str; 11] = [
        "type",
        "properties",
        "required",
        "pattern",
        "items",
        "enum",
        "const",
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
    ];
    schema
        .as_object()
        .is_some_and(|object| SAYS.iter().any(|keyword| object.contains_key(*keyword)))
}

/// Whether a schema says something of its value beside what it refers to.
fn says_its_own(object: &Object) -> bool {
    ["type", "properties", "required", "pattern", "items"]
        .iter()
        .any(|keyword| object.contains_key(*keyword))
}

fn count(object: &Object, keyword: &str) -> Option<u64> {
    let value = object.get(keyword)?;
    value.as_u64().or_else(|| {
        let whole = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{whole:.0}").parse().ok()
    })
}

/// A number within its bounds, as near to 1 as they let it be.
fn number(object: &Object) -> Value {
    let bound = |keyword: &str| object.get(keyword).and_then(Value::as_f64);
    let is_whole = object.get("type") != Some(&Value::from("number"));
    let step = bound("multipleOf").unwrap_or(if is_whole { 1.0 } else { 0.5 });
    let mut found: f64 = 1.0;
    if let Some(least) = bound("minimum") {
        found = found.max(least);
    }
    if let Some(least) = bound("exclusiveMinimum") {
        found = found.max(least + step);
    }
    if let Some(most) = bound("maximum") {
        found = found.min(most);
    }
    if let Some(most) = bound("exclusiveMaximum") {
        found = found.min(most - step);
    }
    if object.contains_key("multipleOf") {
        found = (found / step).ceil() * step;
    }
    let text = if is_whole {
        format!("{found:.0}")
    } else {
        found.to_string()
    };
    serde_json::from_str(&text).unwrap_or_else(|_| json!(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_fits_the_schema() {
        for schema in [
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 3}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 7, "multipleOf": 5}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "number", "exclusiveMaximum": 0}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^(AC|ac)[0-9]{12}-\\w+$"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^[a-z]+$", "minLength": 7}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "x|y", "minLength": 7}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 2, "uniqueItems": true,
                "items": {"type": "string", "enum": ["x", "y"]}}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}},
                "$defs": {"A": {"allOf": [{"type": "object", "required": ["b"], "properties": {"b": {"const": 1}}},
                    {"type": "object", "required": ["c"], "properties": {"c": {"type": ["null", "string"]}}}]}}}),
            // What one part requires, another declares.
            json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}),
            json!({"type": "object", "required": ["c"], "properties": {"c": {"type": "object", "required": ["a"],
                "allOf": [{"properties": {"a": {"type": "boolean"}}}]}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 2, "uniqueItems": true,
                "items": {"$ref": "#/$defs/Id"}}}, "$defs": {"Id": {"type": "string", "pattern": "^[0-9]+$"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"minProperties": 1, "type": "object",
                "additionalProperties": {"type": "boolean"}}}}),
            // The second alternative is the first that works.
            json!({"type": "object", "required": ["a"], "properties": {"a": {"oneOf": [false, {"type": "integer"}]}}}),
        ] {
            assert!(valid_arguments(&schema, &mut |_| true).is_some(), "{schema}");
            assert_eq!(valid_arguments(&schema, &mut |_| false), None, "{schema}");
        }
    }

    #[test]
    fn nothing_is_given_that_does_not_fit() {
        for schema in [
            json!({"type": "object", "required": ["a"], "properties": {"a": false}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^a$", "minLength": 2}}}),
            json!({"type": "string"}),
            json!({"type": 7}),
        ] {
            assert_eq!(valid_arguments(&schema, &mut |_| true), None, "{schema}");
        }
    }

    #[test]
    fn the_search_ends_where_a_schema_has_no_end() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "array", "minItems": 3, "items": {"$ref": "#/$defs/A"}}}});
        assert_eq!(valid_arguments(&schema, &mut |_| true), None);
    }
}
