//! Schemas of a document, of either version, to JSON Schema 2020-12 that stands alone in a tool.
//!
//! What a reference names becomes one entry of the tool's `$defs`, however often it is used: the result is linear in
//! what the operation reaches, and cycles stay cycles. Nothing is loosened on the way in: what cannot be carried
//! over is a blocker. Inputs are closed, so that a field which nobody declared is refused.
//! Sources: OpenAPI 3.0.4 section 4.7.24, OpenAPI 3.1.1 section 4.8.24, JSON Schema 2020-12.

mod absent;
mod closing;
mod conversion;
mod definition;
mod discriminator;
mod fold;
pub(crate) mod sharing;
mod value;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use model::{Object, Value};

pub(crate) use closing::COMPOSITION;
use closing::{Closing, is_open_by_word};
pub(crate) use conversion::Conversions;
use conversion::Met;
use definition::says_something;
pub(crate) use definition::settle;
use value::{size, unmatched};

use crate::blocker::{Blocker, BlockerCause, Findings, NoteKind};
use crate::document::{Document, Family};
use crate::number::is_exact;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};
use crate::shape::Work;
use crate::text::excerpt;

/// The largest automaton of one pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Which way the described value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    document: &'d Document,
    /// The longest text, in bytes, where texts are cut short; 0 for none at all.
    words_max: Option<usize>,
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
    patterns: HashMap<String, bool>,
    /// References that name nothing, by the name that stands for each in the schema, with what they would block.
    absent: BTreeMap<String, Blocker>,
    /// What the definition that is being converted has met.
    met: Met<'d>,
}

/// Where and how a schema is met.
struct Site<'s, 'd> {
    mode: Mode,
    /// Fields that the composition around it hides, so that none of its parts asks for them.
    hidden: &'s HashSet<&'d str>,
}

impl<'d, 'f> Converter<'d, 'f> {
    /// `home`: the place that is blamed where the whole is too large. `bytes_max`: where the conversion stops, with [`BlockerCause::SchemaOverBudget`]. The caller checks the exact
    /// length of what it builds.
    pub(crate) fn new(
        document: &'d Document,
        direction: Direction,
        home: &'f Pointer,
        bytes_max: usize,
        work: &'f mut Work,
        findings: &'f mut Findings,
    ) -> Self {
        Self {
            document,
            resolver: document.resolver(),
            family: document.family(),
            direction,
            home,
            bytes_max,
            bytes_left: bytes_max,
            words_max: None,
            work,
            findings,
            names: HashMap::new(),
            taken: HashSet::new(),
            queue: VecDeque::new(),
            patterns: HashMap::new(),
            absent: BTreeMap::new(),
            met: Met::default(),
        }
    }

    /// Lets every text have at most so many bytes, and gives no examples.
    pub(crate) fn terse(mut self, words_max: usize) -> Self {
        self.words_max = Some(words_max);
        self
    }

    /// Converts one schema; what it refers to follows with [`Self::finish`].
    pub(crate) fn convert(&mut self, schema: &Located<'d>) -> Value {
        self.alone(&mut schema.pointer.clone(), schema.value, self.start())
    }

    /// Converts everything that was referred to, nearest first, and gives the whole: `root` with its `$defs`.
    ///
    /// What does not fit into `soft_bytes` is folded: an answer is not described deeper; of an input, optional fields
    /// that need more are left out, so that nobody can send what nobody checks. Gives the number of schemas that were
    /// folded away.
    pub(crate) fn finish(
        mut self,
        root: &mut Object,
        soft_bytes: usize,
        keep: &dyn Fn(&str) -> bool,
    ) -> usize {
        let mut defs = Object::new();
        let mut left: BTreeMap<String, (Located<'d>, Mode)> = BTreeMap::new();
        while !self.has_stopped() {
            let Some((name, target, mode)) = self.queue.pop_front() else {
                break;
            };
            let before = self.bytes_left;
            self.define(&mut defs, (name.clone(), target.clone(), mode));
            if self.bytes_max.saturating_sub(self.bytes_left) > soft_bytes && !self.has_stopped() {
                defs.shift_remove(&name);
                left.insert(name, (target, mode));
                self.bytes_left = before;
                break;
            }
        }
        left.extend(
            self.queue
                .drain(..)
                .map(|(name, target, mode)| (name, (target, mode))),
        );
        let folded = match self.direction {
            _ if left.is_empty() || self.has_stopped() => 0,
            Direction::Output => {
                fold::open(root, &mut defs, &|name| left.contains_key(name));
                left.len()
            }
            Direction::Input => {
                // A field that must be given needs its schema, whatever it costs; what that needs in turn may be
                // optional again.
                loop {
                    fold::narrow(root, &mut defs, keep, &|name| left.contains_key(name));
                    let mut needed = fold::missing(root, &defs);
                    needed.retain(|name| !self.absent.contains_key(name));
                    if needed.is_empty() || self.has_stopped() {
                        break;
                    }
                    for name in needed {
                        if let Some((target, mode)) = left.remove(&name) {
                            self.define(&mut defs, (name, target, mode));
                        }
                    }
                    left.extend(
                        self.queue
                            .drain(..)
                            .map(|(name, target, mode)| (name, (target, mode))),
                    );
                }
                fold::sweep(root, &mut defs);
                left.len()
            }
        };
        self.without_absent(root, &mut defs, keep);
        if !defs.is_empty() {
            root.insert("$defs".to_owned(), Value::Object(defs));
        }
        if self.work.is_spent() {
            self.findings.block(Blocker::new(
                BlockerCause::OperationOverBudget,
                self.home,
                "the schemas of the operation refer to each other more often than is looked at",
                "simplify the schemas that it uses",
            ));
        }
        folded
    }

    /// Converts a schema that stands for itself.
    fn alone(&mut self, at: &mut Pointer, value: &'d Value, mode: Mode) -> Value {
        let site = Site {
            mode,
            hidden: &HashSet::new(),
        };
        self.schema(at, value, &site)
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
        if let Some(anchor) = self.recursive(at, object) {
            self.note(
                NoteKind::SchemaDialectMismatch,
                at,
                format!(
                    "`$recursiveRef` is of an older dialect; carried over as a reference to `{}`",
                    excerpt(&anchor)
                ),
            );
            return self.pure_reference(at, object, &anchor, site.mode);
        }
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
        if closing != Closing::No {
            self.declare_what_is_required(at, &mut out, object, &hidden);
        }
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

    /// What `$recursiveRef: "#"` of 2019-09 means where it stands alone: the schema around it that says
    /// `$recursiveAnchor: true`, the nearest one.
    ///
    /// A schema further out, which refers to that one and says it as well, would be meant instead; such documents were not
    /// met, and a reviewer is told.
    fn recursive(&self, at: &Pointer, object: &'d Object) -> Option<String> {
        let is_alone = object.len() == 1 && object.get("$recursiveRef").and_then(Value::as_str) == Some("#");
        if !is_alone {
            return None;
        }
        let mut place = at.as_str();
        while let Some((outer, _)) = place.rsplit_once('/') {
            place = outer;
            let fragment = place.strip_prefix('#')?;
            let around = Pointer::find_at(place, self.resolver.root())?;
            if around.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
                return Some(format!("#{}", crate::swagger::fragment(fragment)));
            }
        }
        None
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
            "anyOf" | "oneOf" => {
                self.list(at, out, keyword, value, &inner.branches);
                self.discriminate(at, out, object, (keyword, value), inner.parts.mode);
            }
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
            "discriminator" => {
                if !object.contains_key("oneOf") && !object.contains_key("anyOf") {
                    self.dropped(at, "there are no alternatives beside it");
                }
            }
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

pub(crate) fn is_known_dialect(dialect: &str) -> bool {
    let dialect = dialect.trim_end_matches('#');
    dialect == "https://json-schema.org/draft/2020-12/schema"
        || dialect.starts_with("https://spec.openapis.org/oas/3.1/dialect/")
        || dialect.starts_with("https://spec.openapis.org/oas/3.2/dialect/")
}

/// Compiles a schema as the gateway does: 2020-12, nothing is fetched, patterns run in linear time, so no look-around and
/// no back references.
pub(crate) fn compile(schema: &Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
        .build(schema)
}
