//! Schemas of a document, of either version, to JSON Schema 2020-12 that stands alone in a tool.
//!
//! What a reference names becomes one entry of the tool's `$defs`, however often it is used: the result is linear in
//! what the operation reaches, and cycles stay cycles. Nothing is loosened on the way in: what cannot be carried
//! over is a blocker. Inputs are closed, so that a field which nobody declared is refused.
//! Sources: OpenAPI 3.0.4 section 4.7.24, OpenAPI 3.1.1 section 4.8.24, JSON Schema 2020-12.

use std::collections::{HashMap, HashSet, VecDeque};

use model::{Digest, Object, Value};
use serde_json::Number;

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::document::Family;
use crate::number::{all_exact, is_exact};
use crate::pointer::Pointer;
use crate::prose;
use crate::reference::{Located, ReferenceFault, Resolver, reference_of};
use crate::shape::{Work, is_flagged};
use crate::text::excerpt;

/// Different patterns in one tool: each is compiled here and again by every gateway.
const PATTERNS_MAX: usize = 256;
/// Patterns that may fail before no more are tried: failing can take long.
const PATTERNS_FAILED_MAX: usize = 16;
/// The largest automaton of one pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Examples that a schema keeps, and their length: they help a model, and are text that nobody asked for.
const EXAMPLES_MAX: usize = 3;
const EXAMPLE_BYTES_MAX: usize = 200;

/// Which way the described value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the caller: closed, without `readOnly` fields.
    Input,
    /// From the upstream: as open as the document says, without `writeOnly` fields.
    Output,
}

/// Whether an object refuses fields that it does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// It does, and so do the objects inside it.
    Closed,
    /// It is a part of a composition that does; the objects inside it do.
    Part,
    /// It is a condition (`not`, `if`): closing it would turn its meaning round.
    Kept,
}

/// Converts the schemas of one tool, in one direction.
#[derive(Debug)]
pub(crate) struct Converter<'d, 'f> {
    resolver: Resolver<'d>,
    family: Family,
    direction: Direction,
    home: &'f Pointer,
    bytes_max: usize,
    bytes_left: usize,
    work: &'f mut Work,
    findings: &'f mut Findings,
    names: HashMap<(Pointer, Mode), String>,
    taken: HashSet<String>,
    queue: VecDeque<(String, Located<'d>, Mode)>,
    patterns: HashMap<&'d str, bool>,
}

/// Where and how a schema is met.
struct Site<'s, 'd> {
    mode: Mode,
    /// Fields that the composition around it hides, so that none of its parts asks for them.
    hidden: &'s HashSet<&'d str>,
}

/// How an object is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// Not here: the document says itself, or another part of the composition does.
    No,
    /// By `additionalProperties`.
    Additional,
    /// By `unevaluatedProperties`, which sees through a composition.
    Unevaluated,
}

impl<'d, 'f> Converter<'d, 'f> {
    /// `home`: the place that is blamed where the whole is too large. `bytes_max`: where the conversion stops, with [`BlockerCause::SchemaOverBudget`]. The caller checks the exact
    /// length of what it builds.
    pub(crate) fn new(
        resolver: Resolver<'d>,
        family: Family,
        direction: Direction,
        home: &'f Pointer,
        bytes_max: usize,
        work: &'f mut Work,
        findings: &'f mut Findings,
    ) -> Self {
        Self {
            resolver,
            family,
            direction,
            home,
            bytes_max,
            bytes_left: bytes_max,
            work,
            findings,
            names: HashMap::new(),
            taken: HashSet::new(),
            queue: VecDeque::new(),
            patterns: HashMap::new(),
        }
    }

    /// Converts one schema; what it refers to follows with [`Self::finish`].
    pub(crate) fn convert(&mut self, schema: &Located<'d>) -> Value {
        let mut at = schema.pointer.clone();
        let site = Site {
            mode: self.start(),
            hidden: &HashSet::new(),
        };
        self.schema(&mut at, schema.value, &site)
    }

    /// Converts everything that was referred to, and gives the `$defs`; empty where there are none.
    pub(crate) fn finish(mut self) -> Object {
        let mut defs = Object::new();
        while let Some((name, target, mode)) = self.queue.pop_front() {
            if self.has_stopped() {
                break;
            }
            let mut at = target.pointer.clone();
            let site = Site {
                mode,
                hidden: &HashSet::new(),
            };
            self.charge(name.len() + 4);
            let converted = self.schema(&mut at, target.value, &site);
            defs.insert(name, converted);
        }
        if self.work.is_spent() {
            self.findings.block(Blocker::new(
                BlockerCause::OperationOverBudget,
                self.home,
                "the schemas of the operation refer to each other more often than is looked at",
                "simplify the schemas that it uses",
            ));
        }
        defs
    }

    fn start(&self) -> Mode {
        match self.direction {
            Direction::Input => Mode::Closed,
            Direction::Output => Mode::Kept,
        }
    }

    fn schema(&mut self, at: &mut Pointer, value: &'d Value, site: &Site<'_, 'd>) -> Value {
        self.charge(4);
        if self.has_stopped() {
            return Value::Bool(false);
        }
        match value {
            Value::Bool(all) => Value::Bool(*all),
            Value::Object(object) => self.object(at, object, site),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.malformed(at, "a schema is not an object");
                Value::Bool(false)
            }
        }
    }

    fn object(&mut self, at: &mut Pointer, object: &'d Object, site: &Site<'_, 'd>) -> Value {
        if let Some(reference) = object.get("$ref") {
            let Some(text) = reference.as_str() else {
                self.malformed(at, "`$ref` is not a text");
                return Value::Bool(false);
            };
            if self.family == Family::V30 || !object.keys().any(|key| says_something(key)) {
                return self.pure_reference(at, object, text, site.mode);
            }
        }
        let closing = self.closing(object, site.mode);
        let hidden = self.hidden(object, site);
        let inner = Inner {
            parts: Site {
                mode: match site.mode {
                    Mode::Kept => Mode::Kept,
                    Mode::Closed | Mode::Part => Mode::Part,
                },
                hidden: &hidden,
            },
            branches: Site {
                // Without fields of its own, each alternative is closed by itself.
                mode: match (site.mode, closing) {
                    (Mode::Kept, _) => Mode::Kept,
                    (Mode::Closed, Closing::No) if !is_open_by_word(object) => Mode::Closed,
                    _ => Mode::Part,
                },
                hidden: &hidden,
            },
            children: Site {
                mode: match site.mode {
                    Mode::Kept => Mode::Kept,
                    Mode::Closed | Mode::Part => Mode::Closed,
                },
                hidden: &HashSet::new(),
            },
            closing,
        };
        let mut out = Object::new();
        for (keyword, value) in object {
            let before = at.push(keyword);
            self.keyword(at, &mut out, object, (keyword, value), &inner);
            at.back(before);
        }
        self.bounds(at, &mut out, object);
        match closing {
            Closing::No => {}
            Closing::Additional => {
                out.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Closing::Unevaluated => {
                out.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
        }
        if object.get("nullable") == Some(&Value::Bool(true)) {
            return self.nullable(at, out);
        }
        Value::Object(out)
    }

    /// One keyword. Each arm carries it over, leaves it out, or blocks; what is no keyword of 2020-12 is left out.
    fn keyword(
        &mut self,
        at: &mut Pointer,
        out: &mut Object,
        object: &'d Object,
        (keyword, value): (&'d str, &'d Value),
        inner: &Inner<'_, 'd>,
    ) {
        self.charge(keyword.len() + 4);
        match keyword {
            "type" => self.types(at, out, value),
            "enum" => self.enumeration(at, out, value),
            "const" => self.constant(at, out, value),
            "default" => self.annotation(at, out, keyword, value),
            "title" | "description" => self.prose(at, out, keyword, value),
            "format" | "contentEncoding" | "contentMediaType" => match value {
                Value::String(_) => self.copy(out, keyword, value),
                _ => self.dropped(at, "it is not a text"),
            },
            "deprecated" => {
                if value == &Value::Bool(true) {
                    self.copy(out, keyword, value);
                }
            }
            "example" | "examples" => self.examples(out, keyword, value),
            "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => {
                self.bound(at, out, keyword, value);
            }
            "multipleOf" => match value {
                Value::Number(number) if is_exact(number) && number.as_f64().is_some_and(|n| n > 0.0) => {
                    self.copy(out, keyword, value);
                }
                _ => self.malformed(at, "it is not a positive number"),
            },
            "maxLength" | "maxItems" | "maxProperties" | "maxContains" | "minLength" | "minItems"
            | "minProperties" | "minContains" => self.count(at, out, keyword, value),
            "uniqueItems" => match value {
                Value::Bool(_) => self.copy(out, keyword, value),
                _ => self.malformed(at, "it is not `true` or `false`"),
            },
            "pattern" => match value.as_str() {
                Some(pattern) => {
                    if self.pattern(at, pattern) {
                        self.copy(out, keyword, value);
                    }
                }
                None => self.malformed(at, "it is not a text"),
            },
            "required" => self.required(at, out, value, inner.parts.hidden),
            "dependentRequired" => self.dependent_required(at, out, value, inner.parts.hidden),
            "properties" => self.properties(at, out, object, value, inner),
            "patternProperties" => self.pattern_properties(at, out, value, &inner.children),
            "dependentSchemas" => self.schemas(at, out, keyword, value, &inner.parts),
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
                let schema = self.schema(at, value, &inner.children);
                out.insert(keyword.to_owned(), schema);
            }
            "items" => self.items(at, out, value, &inner.children),
            "additionalItems" => {
                // Only beside a list of `items`, which older dialects have for `prefixItems`.
                if object.get("items").is_some_and(Value::is_array) {
                    let schema = self.schema(at, value, &inner.children);
                    out.insert("items".to_owned(), schema);
                }
            }
            "prefixItems" => self.list(at, out, keyword, value, &inner.children),
            "allOf" => self.list(at, out, keyword, value, &inner.parts),
            "anyOf" | "oneOf" => self.list(at, out, keyword, value, &inner.branches),
            "then" | "else" => {
                let schema = self.schema(at, value, &inner.parts);
                out.insert(keyword.to_owned(), schema);
            }
            "not" | "if" | "contains" | "propertyNames" => {
                let kept = Site {
                    mode: Mode::Kept,
                    hidden: &HashSet::new(),
                };
                let schema = self.schema(at, value, &kept);
                out.insert(keyword.to_owned(), schema);
            }
            "$ref" => {
                if let Some(target) = value
                    .as_str()
                    .and_then(|text| self.reference(at, text, inner.parts.mode))
                {
                    out.insert("$ref".to_owned(), Value::String(target));
                }
            }
            "$id" | "$dynamicRef" | "$recursiveRef" | "dependencies" => self.findings.block(Blocker::new(
                BlockerCause::SchemaKeyword,
                at,
                format!("the keyword `{keyword}` changes what others mean and is not carried over"),
                "write the schema without it",
            )),
            "$schema" => {
                if !matches!(value.as_str(), Some(dialect) if is_known_dialect(dialect)) {
                    self.note(
                        NoteKind::SchemaDialect,
                        at,
                        "`$schema` names another dialect; read as 2020-12",
                    );
                }
            }
            "discriminator" => self.dropped(at, "the alternatives are told apart by their own schemas"),
            // Read elsewhere, or without effect on which values fit.
            "nullable" | "readOnly" | "writeOnly" | "xml" | "externalDocs" | "$defs" | "definitions"
            | "$comment" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary"
            | "contentSchema" => {}
            other => {
                if !other.starts_with("x-") {
                    self.dropped(at, "it is no keyword of JSON Schema");
                }
            }
        }
    }

    // === references ===

    fn pure_reference(&mut self, at: &mut Pointer, object: &'d Object, text: &'d str, mode: Mode) -> Value {
        let mut out = Object::new();
        let before = at.push("$ref");
        let target = self.reference(at, text, mode);
        at.back(before);
        let Some(target) = target else {
            return Value::Bool(false);
        };
        out.insert("$ref".to_owned(), Value::String(target));
        if self.family == Family::V30 {
            if object.keys().any(|key| says_something(key)) {
                self.note(
                    NoteKind::SchemaSiblingsIgnored,
                    at,
                    "what stands beside `$ref` has no effect in version 3.0 and was left out",
                );
            }
        } else if let Some(description) = object.get("description") {
            self.prose(at, &mut out, "description", description);
        }
        Value::Object(out)
    }

    /// The `$defs` reference for what `text` names. Chains are followed here, so that no definition is only a
    /// reference: two that name each other would never end in a validator.
    fn reference(&mut self, at: &Pointer, text: &str, mode: Mode) -> Option<String> {
        let found = self
            .resolver
            .target(text)
            .and_then(|target| settle(self.resolver, self.family, target));
        let target = match found {
            Ok(target) => target,
            Err(fault) => {
                self.findings.block(fault.blocker(at));
                return None;
            }
        };
        // What holds no other schema is the same in every mode.
        let mode = if holds_schemas(target.value) {
            mode
        } else {
            self.start()
        };
        let key = (target.pointer.clone(), mode);
        if let Some(name) = self.names.get(&key) {
            let reference = format!("#/$defs/{name}");
            self.charge(reference.len());
            return Some(reference);
        }
        let name = self.definition_name(&target.pointer, mode);
        let reference = format!("#/$defs/{name}");
        self.charge(reference.len());
        self.names.insert(key, name.clone());
        self.queue.push_back((name, target, mode));
        Some(reference)
    }

    /// The component's own name where it is one, so that it does not depend on the order in which schemas are met.
    fn definition_name(&mut self, pointer: &Pointer, mode: Mode) -> String {
        let last = pointer.last().unwrap_or_default();
        let is_component = pointer.as_str().strip_prefix("#/components/schemas/") == Some(last.as_str());
        let is_plain = is_component && mode == self.start() && crate::name::is_legal(&last);
        let base = if is_plain {
            last
        } else {
            let word: String = last
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                .take(40)
                .collect();
            let mode = match mode {
                Mode::Closed => "closed",
                Mode::Part => "part",
                Mode::Kept => "kept",
            };
            let digest = Digest::of(
                "openapi-definition-v1",
                &[mode.as_bytes(), b" ", pointer.as_str().as_bytes()],
            );
            format!("{word}.{mode}.{}", digest.short())
        };
        // Only a document that is made to collide needs a second try.
        let mut name = base.clone();
        let mut turn = 1_usize;
        while !self.taken.insert(name.clone()) {
            turn += 1;
            name = format!("{base}.{turn}");
        }
        name
    }

    // === closing ===

    fn closing(&mut self, object: &'d Object, mode: Mode) -> Closing {
        if mode != Mode::Closed || is_open_by_word(object) {
            return Closing::No;
        }
        let own = object.contains_key("properties");
        let is_composed = COMPOSITION.iter().any(|keyword| object.contains_key(*keyword));
        match (own, is_composed) {
            (false, false) => Closing::No,
            (true, false) => Closing::Additional,
            (true, true) => Closing::Unevaluated,
            (false, true) => {
                let parts = object
                    .get("allOf")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                let reference = object
                    .get("$ref")
                    .and_then(Value::as_str)
                    .and_then(|reference| self.resolver.target(reference).ok())
                    .map(|target| target.value);
                let declares = parts.chain(reference).any(|part| self.declares(part, 0));
                if declares {
                    Closing::Unevaluated
                } else {
                    Closing::No
                }
            }
        }
    }

    /// Whether a part of a composition declares fields.
    fn declares(&mut self, schema: &'d Value, depth: usize) -> bool {
        if depth > 32 || !self.work.step() {
            return false;
        }
        let Some(object) = schema.as_object() else {
            return false;
        };
        if object.contains_key("properties") {
            return true;
        }
        let reference = reference_of(schema)
            .and_then(|reference| self.resolver.target(reference).ok())
            .map(|target| target.value);
        let members = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword)?.as_array())
            .flatten();
        members
            .chain(reference)
            .any(|member| self.declares(member, depth + 1))
    }

    /// The fields that do not go this way: those of the composition around, and those that this schema or a part of it
    /// marks.
    fn hidden(&mut self, object: &'d Object, site: &Site<'_, 'd>) -> HashSet<&'d str> {
        let mut hidden = site.hidden.clone();
        let is_relevant = ["properties", "allOf", "anyOf", "oneOf", "$ref"]
            .iter()
            .any(|keyword| object.contains_key(*keyword));
        // A condition is kept as it is, except that an output is all conditions.
        if is_relevant && (site.mode != Mode::Kept || self.direction == Direction::Output) {
            self.collect_hidden(object, &mut hidden, 0);
        }
        hidden
    }

    fn collect_hidden(&mut self, object: &'d Object, hidden: &mut HashSet<&'d str>, depth: usize) {
        let flag = match self.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        if depth > 32 || !self.work.step() {
            return;
        }
        for (name, property) in object
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if is_flagged(self.resolver, self.work, property, flag) {
                hidden.insert(name);
            }
        }
        let reference = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.resolver.target(reference).ok())
            .map(|target| target.value);
        let members = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .filter_map(|keyword| object.get(keyword)?.as_array())
            .flatten();
        for member in members.chain(reference).filter_map(Value::as_object) {
            self.collect_hidden(member, hidden, depth + 1);
        }
    }

    // === keywords that hold schemas ===

    fn properties(
        &mut self,
        at: &mut Pointer,
        out: &mut Object,
        object: &'d Object,
        value: &'d Value,
        inner: &Inner<'_, 'd>,
    ) {
        let Some(properties) = value.as_object() else {
            self.malformed(at, "it is not an object");
            return;
        };
        // An object that takes any field would also take a hidden one, if it were only left out.
        let takes_any = self.direction == Direction::Input
            && inner.closing == Closing::No
            && ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|keyword| {
                    object
                        .get(*keyword)
                        .is_some_and(|rest| rest != &Value::Bool(false))
                });
        let mut converted = Object::new();
        for (name, schema) in properties {
            if inner.parts.hidden.contains(name.as_str()) {
                if takes_any {
                    converted.insert(name.clone(), Value::Bool(false));
                }
                continue;
            }
            self.charge(name.len() + 4);
            let before = at.push(name);
            let schema = self.schema(at, schema, &inner.children);
            at.back(before);
            converted.insert(name.clone(), schema);
        }
        out.insert("properties".to_owned(), Value::Object(converted));
    }

    fn pattern_properties(
        &mut self,
        at: &mut Pointer,
        out: &mut Object,
        value: &'d Value,
        site: &Site<'_, 'd>,
    ) {
        for pattern in value.as_object().into_iter().flat_map(Object::keys) {
            if !self.pattern(at, pattern) && self.direction == Direction::Output {
                // Without it, a closed object would refuse fields that it takes.
                self.findings.block(Blocker::new(
                    BlockerCause::SchemaPattern,
                    at,
                    unmatched(pattern),
                    "write the pattern without look-around and back references",
                ));
            }
        }
        self.schemas(at, out, "patternProperties", value, site);
    }

    fn schemas(
        &mut self,
        at: &mut Pointer,
        out: &mut Object,
        keyword: &str,
        value: &'d Value,
        site: &Site<'_, 'd>,
    ) {
        let Some(schemas) = value.as_object() else {
            self.malformed(at, "it is not an object");
            return;
        };
        let mut converted = Object::new();
        for (name, schema) in schemas {
            self.charge(name.len() + 4);
            let before = at.push(name);
            let schema = self.schema(at, schema, site);
            at.back(before);
            converted.insert(name.clone(), schema);
        }
        out.insert(keyword.to_owned(), Value::Object(converted));
    }

    fn list(
        &mut self,
        at: &mut Pointer,
        out: &mut Object,
        keyword: &str,
        value: &'d Value,
        site: &Site<'_, 'd>,
    ) {
        let Some(schemas) = value.as_array().filter(|schemas| !schemas.is_empty()) else {
            self.malformed(at, "it is not a list of at least one schema");
            return;
        };
        let mut converted = Vec::with_capacity(schemas.len());
        for (index, schema) in schemas.iter().enumerate() {
            let before = at.push_index(index);
            converted.push(self.schema(at, schema, site));
            at.back(before);
        }
        out.insert(keyword.to_owned(), Value::Array(converted));
    }

    fn items(&mut self, at: &mut Pointer, out: &mut Object, value: &'d Value, site: &Site<'_, 'd>) {
        match value {
            Value::Array(items) if items.is_empty() => {}
            Value::Array(_) => {
                self.note(
                    NoteKind::SchemaDialectMismatch,
                    at,
                    "a list under `items` is of an older dialect; carried over as `prefixItems`",
                );
                self.list(at, out, "prefixItems", value, site);
            }
            _ => {
                let schema = self.schema(at, value, site);
                out.insert("items".to_owned(), schema);
            }
        }
    }

    // === keywords that hold values ===

    fn types(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        let names: Option<Vec<&str>> = match value {
            Value::String(name) => Some(vec![name]),
            Value::Array(names) if !names.is_empty() => names.iter().map(Value::as_str).collect(),
            _ => None,
        };
        let Some(mut names) = names.filter(|names| names.iter().all(|name| TYPES.contains(name))) else {
            self.malformed(
                at,
                &format!("`{}` is no type of JSON Schema", excerpt(&value.to_string())),
            );
            return;
        };
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        let types = match names.as_slice() {
            [one] => Value::from(*one),
            many => many.iter().copied().map(Value::from).collect(),
        };
        self.charge(8 * names.len());
        out.insert("type".to_owned(), types);
    }

    fn enumeration(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        let Some(values) = value.as_array() else {
            self.malformed(at, "it is not a list");
            return;
        };
        // A caller cannot send, and the gateway does not take, a number that is not exact.
        let exact: Vec<Value> = values.iter().filter(|value| all_exact(value)).cloned().collect();
        if exact.len() < values.len() {
            self.note(
                NoteKind::SchemaNumberDropped,
                at,
                "values beyond 2^53 - 1 were left out of `enum`",
            );
        }
        self.charge(exact.iter().map(size).sum());
        out.insert("enum".to_owned(), Value::Array(exact));
    }

    fn constant(&mut self, at: &Pointer, out: &mut Object, value: &'d Value) {
        if all_exact(value) {
            self.copy(out, "const", value);
        } else {
            self.inexact(at, value);
        }
    }

    fn annotation(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        if all_exact(value) {
            self.copy(out, keyword, value);
        } else {
            self.note(
                NoteKind::SchemaNumberDropped,
                at,
                format!("`{keyword}` holds a number beyond 2^53 - 1 and was left out"),
            );
        }
    }

    fn prose(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        let Some(text) = value.as_str() else {
            self.dropped(at, "it is not a text");
            return;
        };
        let cleaned = prose::clean(text);
        if cleaned.len() != text.len() {
            self.note(
                NoteKind::TextCleaned,
                at,
                "invisible characters or comments were taken out",
            );
        }
        self.charge(cleaned.len() + 2);
        out.insert(keyword.to_owned(), Value::String(cleaned.into_owned()));
    }

    fn examples(&mut self, out: &mut Object, keyword: &str, value: &'d Value) {
        if self.direction == Direction::Output || out.contains_key("examples") {
            return;
        }
        let candidates: Vec<&Value> = match (keyword, value) {
            ("example", value) => vec![value],
            (_, Value::Array(values)) => values.iter().collect(),
            _ => Vec::new(),
        };
        let kept: Vec<Value> = candidates
            .into_iter()
            .filter(|value| !value.is_object() && !value.is_array() && !value.is_null())
            .filter(|value| size(value) <= EXAMPLE_BYTES_MAX && all_exact(value))
            .filter(|value| {
                value
                    .as_str()
                    .is_none_or(|text| prose::clean(text).len() == text.len())
            })
            .take(EXAMPLES_MAX)
            .cloned()
            .collect();
        if !kept.is_empty() {
            self.charge(kept.iter().map(size).sum());
            out.insert("examples".to_owned(), Value::Array(kept));
        }
    }

    /// A bound. One that lies beyond every exact number bounds nothing that can be sent or read, and is left out.
    fn bound(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        match value {
            // Version 3.0; see `bounds`.
            Value::Bool(_) if keyword.starts_with("exclusive") => {}
            Value::Number(number) if is_exact(number) => self.copy(out, keyword, value),
            Value::Number(number) => {
                let is_upper = keyword.ends_with("aximum");
                if is_upper == is_positive(number) {
                    self.note(
                        NoteKind::SchemaNumberDropped,
                        at,
                        format!("the bound {number} is beyond every number that can be sent; left out"),
                    );
                } else {
                    self.inexact(at, value);
                }
            }
            _ => self.malformed(at, "it is not a number"),
        }
    }

    /// Version 3.0 writes `exclusiveMinimum: true` beside `minimum`. Real documents of 3.1 do too.
    fn bounds(&mut self, at: &mut Pointer, out: &mut Object, object: &'d Object) {
        for (exclusive, plain) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            let Some(Value::Bool(is_exclusive)) = object.get(exclusive) else {
                continue;
            };
            if self.family == Family::V31 {
                let before = at.push(exclusive);
                self.note(
                    NoteKind::SchemaDialectMismatch,
                    at,
                    "a bound that is `true` or `false` is of version 3.0; carried over",
                );
                at.back(before);
            }
            // `remove` would reorder; order means nothing, but a stable one reads better.
            if *is_exclusive && let Some(bound) = out.shift_remove(plain) {
                out.insert(exclusive.to_owned(), bound);
            }
        }
    }

    fn count(&mut self, at: &Pointer, out: &mut Object, keyword: &str, value: &'d Value) {
        let whole = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole_number)),
            _ => None,
        };
        match whole {
            None => self.malformed(at, "it is not a number from 0"),
            Some(count) if is_exact(&Number::from(count)) => {
                self.charge(8);
                out.insert(keyword.to_owned(), Value::from(count));
            }
            Some(_) if keyword.starts_with("max") => self.note(
                NoteKind::SchemaNumberDropped,
                at,
                format!("the bound {value} is beyond every length; left out"),
            ),
            Some(_) => self.inexact(at, value),
        }
    }

    /// Whether a pattern may stay. Of an input it must: one that is left out lets more through.
    fn pattern(&mut self, at: &Pointer, pattern: &'d str) -> bool {
        let fits = match self.patterns.get(pattern) {
            Some(fits) => *fits,
            None => {
                let failed = self.patterns.values().filter(|fits| !**fits).count();
                let may_try = self.patterns.len() < PATTERNS_MAX && failed < PATTERNS_FAILED_MAX;
                let fits = may_try && compile(&serde_json::json!({ "pattern": pattern })).is_ok();
                self.patterns.insert(pattern, fits);
                fits
            }
        };
        if !fits {
            let text = unmatched(pattern);
            match self.direction {
                Direction::Input => self.findings.block(Blocker::new(
                    BlockerCause::SchemaPattern,
                    at,
                    text,
                    "write the pattern without look-around and back references",
                )),
                Direction::Output => {
                    self.note(NoteKind::SchemaPatternDropped, at, format!("{text}; left out"))
                }
            }
        }
        fits
    }

    fn required(&mut self, at: &Pointer, out: &mut Object, value: &'d Value, hidden: &HashSet<&'d str>) {
        let Some(names) = value.as_array() else {
            if value.is_boolean() {
                self.dropped(at, "a field is required by its parent, not by itself");
            } else {
                self.malformed(at, "it is not a list of names");
            }
            return;
        };
        let names = self.names_of(at, names, hidden);
        if !names.is_empty() {
            out.insert("required".to_owned(), Value::Array(names));
        }
    }

    fn dependent_required(
        &mut self,
        at: &Pointer,
        out: &mut Object,
        value: &'d Value,
        hidden: &HashSet<&'d str>,
    ) {
        let Some(dependencies) = value.as_object() else {
            self.malformed(at, "it is not an object");
            return;
        };
        let mut converted = Object::new();
        for (name, names) in dependencies {
            let Some(names) = names.as_array() else {
                self.malformed(at, "it is not a list of names");
                return;
            };
            self.charge(name.len() + 4);
            let names = self.names_of(at, names, hidden);
            converted.insert(name.clone(), Value::Array(names));
        }
        out.insert("dependentRequired".to_owned(), Value::Object(converted));
    }

    fn names_of(&mut self, at: &Pointer, names: &'d [Value], hidden: &HashSet<&'d str>) -> Vec<Value> {
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for name in names {
            let Some(name) = name.as_str() else {
                self.malformed(at, "it is not a list of names");
                return kept;
            };
            if !hidden.contains(name) && seen.insert(name) {
                self.charge(name.len() + 3);
                kept.push(Value::from(name));
            }
        }
        kept
    }

    /// `nullable: true` of version 3.0. It has an effect only where a type, or a composition, forbids null.
    fn nullable(&mut self, at: &mut Pointer, mut out: Object) -> Value {
        if self.family == Family::V31 {
            self.note(
                NoteKind::SchemaDialectMismatch,
                at,
                "`nullable` is of version 3.0; carried over as a type",
            );
        }
        self.charge(24);
        if COMPOSITION.iter().any(|keyword| out.contains_key(*keyword)) || out.contains_key("const") {
            let mut wrapped = Object::new();
            for keyword in ["title", "description", "default", "deprecated"] {
                if let Some(value) = out.shift_remove(keyword) {
                    wrapped.insert(keyword.to_owned(), value);
                }
            }
            let either = serde_json::json!([out, {"type": "null"}]);
            wrapped.insert("anyOf".to_owned(), either);
            return Value::Object(wrapped);
        }
        let null = Value::from("null");
        let has_effect = match out.get_mut("type") {
            Some(Value::Array(types)) => {
                if !types.contains(&null) {
                    types.push(null);
                }
                true
            }
            Some(one) => {
                if *one != null {
                    *one = Value::Array(vec![one.take(), null]);
                }
                true
            }
            None => false,
        };
        let has_effect = match out.get_mut("enum") {
            Some(Value::Array(values)) => {
                if !values.contains(&Value::Null) {
                    values.push(Value::Null);
                }
                true
            }
            _ => has_effect,
        };
        if !has_effect {
            let before = at.push("nullable");
            self.dropped(at, "without a type it has no effect");
            at.back(before);
        }
        Value::Object(out)
    }

    // === findings ===

    fn copy(&mut self, out: &mut Object, keyword: &str, value: &Value) {
        self.charge(size(value));
        out.insert(keyword.to_owned(), value.clone());
    }

    fn note(&mut self, kind: NoteKind, at: &Pointer, text: impl Into<String>) {
        self.findings.note(kind, at, text);
    }

    fn dropped(&mut self, at: &Pointer, why: &str) {
        let keyword = at.last().unwrap_or_default();
        let text = format!("`{}` was left out: {why}", excerpt(&keyword));
        self.note(NoteKind::SchemaKeywordDropped, at, text);
    }

    fn malformed(&mut self, at: &Pointer, why: &str) {
        let keyword = at.last().unwrap_or_default();
        self.findings.block(Blocker::new(
            BlockerCause::SchemaMalformed,
            at,
            format!("`{}` cannot be read: {why}", excerpt(&keyword)),
            "correct the schema",
        ));
    }

    fn inexact(&mut self, at: &Pointer, value: &Value) {
        self.findings.block(Blocker::new(
            BlockerCause::SchemaNumber,
            at,
            format!("the number {} is beyond 2^53 - 1", excerpt(&value.to_string())),
            "describe the value as a string",
        ));
    }

    fn charge(&mut self, bytes: usize) {
        if self.bytes_left == 0 {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.bytes_left == 0 {
            self.findings.block(Blocker::new(
                BlockerCause::SchemaOverBudget,
                self.home,
                format!("the schema has more than {} bytes", self.bytes_max),
                "offer a smaller operation, or raise the limit",
            ));
        }
    }

    fn has_stopped(&self) -> bool {
        self.bytes_left == 0 || self.work.is_spent() || self.findings.is_full()
    }
}

/// The sites of what stands inside one schema.
struct Inner<'s, 'd> {
    /// Members of `allOf`, and conditions' results.
    parts: Site<'s, 'd>,
    /// Members of `anyOf` and `oneOf`.
    branches: Site<'s, 'd>,
    /// Fields and items: another value than the one that this schema describes.
    children: Site<'s, 'd>,
    closing: Closing,
}

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// Keywords that apply other schemas to the same value.
pub(crate) const COMPOSITION: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "$ref",
];

/// Follows a schema that is nothing but a reference to the one that says something.
///
/// In version 3.0 what stands beside `$ref` does not count, so any reference is nothing else.
pub(crate) fn settle<'d>(
    resolver: Resolver<'d>,
    family: Family,
    start: Located<'d>,
) -> Result<Located<'d>, ReferenceFault> {
    if family == Family::V30 {
        return resolver.follow(start);
    }
    let mut here = start;
    let mut visited: Vec<Pointer> = Vec::new();
    while let Some(reference) = reference_of(here.value) {
        if here
            .object()
            .is_some_and(|object| object.keys().any(|key| says_something(key)))
        {
            break;
        }
        if visited.contains(&here.pointer) || visited.len() >= 64 {
            return Err(ReferenceFault::Cyclic(excerpt(reference)));
        }
        visited.push(here.pointer.clone());
        here = resolver.target(reference)?;
    }
    Ok(here)
}

/// Whether a schema is made of others, so that how it is closed matters.
fn holds_schemas(schema: &Value) -> bool {
    const INSIDE: [&str; 11] = [
        "properties",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
        "propertyNames",
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "dependencies",
    ];
    schema.as_object().is_some_and(|object| {
        object
            .keys()
            .any(|key| INSIDE.contains(&key.as_str()) || COMPOSITION.contains(&key.as_str()))
    })
}

/// Whether the document itself says what undeclared fields are.
fn is_open_by_word(object: &Object) -> bool {
    object.contains_key("additionalProperties") || object.contains_key("unevaluatedProperties")
}

/// Whether a keyword beside `$ref` changes which values fit.
fn says_something(keyword: &str) -> bool {
    !keyword.starts_with("x-")
        && !matches!(
            keyword,
            "$ref"
                | "description"
                | "summary"
                | "title"
                | "default"
                | "example"
                | "examples"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "externalDocs"
                | "$comment"
                | "$defs"
                | "definitions"
        )
}

pub(crate) fn is_known_dialect(dialect: &str) -> bool {
    let dialect = dialect.trim_end_matches('#');
    dialect == "https://json-schema.org/draft/2020-12/schema"
        || dialect.starts_with("https://spec.openapis.org/oas/3.1/dialect/")
}

fn unmatched(pattern: &str) -> String {
    format!(
        "the pattern `{}` is none, or cannot be matched in linear time",
        excerpt(pattern)
    )
}

/// Compiles a schema as the gateway does: 2020-12, nothing is fetched, patterns run in linear time, so no look-around and
/// no back references.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .build(schema)
}

fn is_positive(number: &Number) -> bool {
    number.as_f64().is_some_and(|n| n > 0.0)
}

/// A float that is a whole number which JSON readers hold exactly, as `1.0`.
fn whole_number(n: f64) -> Option<u64> {
    let is_whole = n.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&n);
    is_whole.then(|| format!("{n:.0}").parse().ok()).flatten()
}

/// About how many bytes a value takes in JSON. Never more than twice too low.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(object) => {
            2 + object
                .iter()
                .map(|(key, value)| key.len() + 4 + size(value))
                .sum::<usize>()
        }
    }
}
