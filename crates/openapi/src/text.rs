//! The text of a document to a tree of JSON values: JSON or YAML, told apart by the first character.
//!
//! Both readers feed one builder, so that a rule holds for both: a key stands once in an object (`200` and `'200'`
//! are one key), nesting and the number of nodes are bounded. It knows nothing of OpenAPI.
//! Unlike the messages on the road, a document may hold integers beyond 2^53 (`maximum: 9223372036854775807` is
//! common); they are dealt with where a schema is converted.

use std::cell::{Cell, RefCell};
use std::fmt;

use model::{Object, Value};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::DuplicateKeyPolicy;
use serde_saphyr::options::NonFiniteFloatPolicy;

use crate::document::{DocumentFault, DocumentLimits};

/// Events that aliases may add to a YAML document. An alias bomb needs millions; documents that people write have
/// a few hundred.
const REPLAYED_EVENTS_MAX: usize = 200_000;

/// The deepest YAML that is read, whatever the limits say: its reader takes up to 30 KiB of stack for each level in a
/// build without optimisation, and threads commonly have 2 MiB. The deepest public document has 25 levels.
const YAML_DEPTH_MAX: usize = 48;

/// The two notations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// The text starts with `{`.
    Json,
    /// Any other.
    Yaml,
}

impl fmt::Display for Notation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        })
    }
}

/// Reads the tree. A byte order mark of UTF-8 is skipped; other encodings are a fault.
pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Value, DocumentFault> {
    if bytes.len() > limits.bytes_max {
        return Err(DocumentFault::Size {
            length: bytes.len(),
            max: limits.bytes_max,
        });
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| DocumentFault::Encoding {
        at: error.valid_up_to(),
    })?;
    if text.trim_start().starts_with('{') {
        json(text, limits)
    } else {
        yaml(text, limits)
    }
}

fn json(text: &str, limits: &DocumentLimits) -> Result<Value, DocumentFault> {
    let rules = Rules::new(limits);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let tree = Tree {
        rules: &rules,
        depth: limits.depth_max,
    };
    let place = |error: &serde_json::Error| (to_u64(error.line()), to_u64(error.column()));
    let value = tree.deserialize(&mut deserializer).map_err(|error| {
        let deep = error.to_string().starts_with("recursion limit");
        let (line, column) = place(&error);
        rules.fault(Notation::Json, line, column, deep, || {
            let text = error.to_string();
            // serde_json appends ` at line L column C`, which the fault holds as numbers.
            text.rsplit_once(" at line ")
                .map_or(text.clone(), |(head, _)| head.to_owned())
        })
    })?;
    deserializer.end().map_err(|error| {
        let (line, column) = place(&error);
        DocumentFault::Syntax {
            notation: Notation::Json,
            line,
            column,
            detail: "something stands behind the end of the document".to_owned(),
        }
    })?;
    Ok(value)
}

fn yaml(text: &str, limits: &DocumentLimits) -> Result<Value, DocumentFault> {
    let limits = &DocumentLimits {
        depth_max: limits.depth_max.min(YAML_DEPTH_MAX),
        ..*limits
    };
    let rules = Rules::new(limits);
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.depth_max,
            flow_nesting_limit: limits.depth_max,
            max_nodes: limits.nodes_max,
            max_events: limits.nodes_max.saturating_mul(2),
            max_total_scalar_bytes: limits.bytes_max,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED_EVENTS_MAX,
        },
        emit_comments: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        // YAML 1.2: `no`, `on` and `y` are words.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    };
    let tree = Tree {
        rules: &rules,
        depth: limits.depth_max,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        tree.deserialize(deserializer)
    })
    .map_err(|error| yaml_fault(&error, &rules))
}

fn yaml_fault(error: &serde_saphyr::Error, rules: &Rules) -> DocumentFault {
    use serde_saphyr::Error;
    use serde_saphyr::budget::BudgetBreach;
    let (line, column) = error
        .location()
        .map_or((0, 0), |place| (place.line(), place.column()));
    let mut cause = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    match cause {
        Error::DuplicateMappingKey { key, .. } => DocumentFault::DuplicateKey {
            key: excerpt(key.as_deref().unwrap_or("?")),
            line,
            column,
        },
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => DocumentFault::Depth {
            max: rules.depth_max,
            line,
        },
        Error::Budget {
            breach:
                BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. },
            ..
        } => DocumentFault::Nodes {
            max: rules.nodes_max,
            line,
        },
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => DocumentFault::Aliases { line },
        _ => rules.fault(Notation::Yaml, line, column, false, || error.to_string()),
    }
}

/// The text of a top-level scalar of a YAML document in block style, as it is written: a number loses its trailing
/// zeros when it is read. `None` where it cannot be found so simply.
pub(crate) fn scalar_as_written(bytes: &[u8], key: &str) -> Option<String> {
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)).ok()?;
    let value = text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
        Some(rest.split(" #").next().unwrap_or_default().trim())
    })?;
    value
        .bytes()
        .all(|b| b.is_ascii_digit() || b == b'.')
        .then(|| value.to_owned())
}

/// The first 80 characters, with control characters spelled out.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

fn to_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

// === the builder ===

/// What the builder counts, and which rule it broke. A serde error is only a text; the rule travels beside it.
struct Rules {
    depth_max: usize,
    nodes_max: usize,
    nodes: Cell<usize>,
    broken: RefCell<Option<Broken>>,
}

enum Broken {
    Duplicate(String),
    Depth,
    Nodes,
}

impl Rules {
    fn new(limits: &DocumentLimits) -> Self {
        Self {
            depth_max: limits.depth_max,
            nodes_max: limits.nodes_max,
            nodes: Cell::new(0),
            broken: RefCell::new(None),
        }
    }

    fn breaks<E: serde::de::Error>(&self, broken: Broken) -> E {
        self.broken.replace(Some(broken));
        E::custom("a rule of the document reader is broken")
    }

    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        let nodes = self.nodes.get() + 1;
        if nodes > self.nodes_max {
            return Err(self.breaks(Broken::Nodes));
        }
        self.nodes.set(nodes);
        Ok(())
    }

    fn fault(
        &self,
        notation: Notation,
        line: u64,
        column: u64,
        deep: bool,
        detail: impl FnOnce() -> String,
    ) -> DocumentFault {
        match self.broken.take() {
            Some(Broken::Duplicate(key)) => DocumentFault::DuplicateKey { key, line, column },
            Some(Broken::Nodes) => DocumentFault::Nodes {
                max: self.nodes_max,
                line,
            },
            Some(Broken::Depth) => DocumentFault::Depth {
                max: self.depth_max,
                line,
            },
            None if deep => DocumentFault::Depth {
                max: self.depth_max,
                line,
            },
            None => DocumentFault::Syntax {
                notation,
                line,
                column,
                detail: detail().chars().take(300).collect(),
            },
        }
    }
}

#[derive(Clone, Copy)]
struct Tree<'r> {
    rules: &'r Rules,
    depth: usize,
}

impl Tree<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self
            .depth
            .checked_sub(1)
            .ok_or_else(|| self.rules.breaks(Broken::Depth))?;
        Ok(Self { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.rules.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::from(n))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::from(n))
    }
    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(Value::from(n))
    }
    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::from(s))
    }
    fn visit_string<E>(self, s: String) -> Result<Value, E> {
        Ok(Value::String(s))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut object = Object::new();
        while let Some(key) = entries.next_key::<String>()? {
            match object.entry(key) {
                serde_json::map::Entry::Occupied(taken) => {
                    return Err(self.rules.breaks(Broken::Duplicate(excerpt(taken.key()))));
                }
                serde_json::map::Entry::Vacant(free) => {
                    free.insert(entries.next_value_seed(inner)?);
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limits() -> DocumentLimits {
        DocumentLimits {
            bytes_max: 10_000,
            depth_max: 8,
            nodes_max: 500,
            files_max: 16,
        }
    }

    fn tree(text: &str) -> Result<Value, DocumentFault> {
        read(text.as_bytes(), &limits())
    }

    #[test]
    fn json_and_yaml_of_one_document_give_one_tree() {
        let expected = json!({"a": {"200": "x", "on": "no"}, "n": [1, -2, 0.5, true, null]});
        for text in [
            r#"{"a":{"200":"x","on":"no"},"n":[1,-2,0.5,true,null]}"#,
            "\u{FEFF} {\"a\":{\"200\":\"x\",\"on\":\"no\"},\"n\":[1,-2,0.5,true,null]}\n",
            "a:\n  200: x\n  on: no\nn: [1, -2, 0.5, true, null]\n",
            "\u{FEFF}a:\r\n  '200': x\r\n  \"on\": no\r\nn: [1, -2, 0.5, true, ~]\r\n",
            "a: &x {200: x, on: no}\nn:\n- 1\n- -2\n- 0.5\n- true\n-\n",
        ] {
            assert_eq!(tree(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn yaml_words_of_version_1_1_stay_words() {
        let value = tree("a: [no, on, yes, y, off, NO, 010, 1_000, 0X10]\nb: [true, False, 0x10]\n").unwrap();
        assert_eq!(
            value,
            json!({"a": ["no", "on", "yes", "y", "off", "NO", "010", "1_000", "0X10"], "b": [true, false, 16]})
        );
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_in_every_spelling() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"\u0062":2}}"#,
            "a: 1\na: 2\n",
            "a: 1\n'a': 2\n",
            "404: {d: a}\n'404': {d: b}\n",
            "a: [{b: 1, b: 2}]\n",
            "true: 1\n'true': 2\n",
        ] {
            assert!(
                matches!(tree(text), Err(DocumentFault::DuplicateKey { .. })),
                "{text}: {:?}",
                tree(text)
            );
        }
        for (text, place) in [
            ("a: 1\nb: 2\nb: 3\n", "line 3, column 1"),
            ("{\n\"b\": 1,\n \"b\": 2}", "line 3, column 4"),
        ] {
            let fault = tree(text).unwrap_err().to_string();
            assert!(fault.contains("`b`") && fault.contains(place), "{fault}");
        }
        let fault = tree("'404': 1\n404: 2\n").unwrap_err().to_string();
        assert!(fault.contains("`404`") && !fault.contains("line 0"), "{fault}");
    }

    #[test]
    fn integers_beyond_a_double_are_kept_exactly() {
        for text in [
            "{\"maximum\": 9223372036854775807}",
            "maximum: 9223372036854775807\n",
        ] {
            assert_eq!(
                tree(text).unwrap()["maximum"].as_u64(),
                Some(9_223_372_036_854_775_807)
            );
        }
    }

    #[test]
    fn a_text_is_read_at_each_limit_and_refused_one_past_it() {
        let nested = |n: usize| format!("{{\"a\":{}1{}}}", "[".repeat(n), "]".repeat(n));
        assert!(tree(&nested(7)).is_ok());
        assert!(matches!(
            tree(&nested(8)),
            Err(DocumentFault::Depth { max: 8, .. })
        ));
        let nested = |n: usize| format!("a: {}1{}\n", "[".repeat(n), "]".repeat(n));
        assert!(tree(&nested(7)).is_ok());
        assert!(matches!(
            tree(&nested(8)),
            Err(DocumentFault::Depth { .. } | DocumentFault::Syntax { .. })
        ));

        let wide = |n: usize| format!("{{\"a\":[{}]}}", vec!["1"; n].join(","));
        assert!(tree(&wide(498)).is_ok());
        assert!(matches!(
            tree(&wide(499)),
            Err(DocumentFault::Nodes { max: 500, .. })
        ));

        let long = |n: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(n - 8));
        assert!(tree(&long(10_000)).is_ok());
        assert!(matches!(
            tree(&long(10_001)),
            Err(DocumentFault::Size {
                length: 10_001,
                max: 10_000
            })
        ));
    }

    #[test]
    fn nesting_of_twenty_thousand_levels_ends_early() {
        let limits = DocumentLimits::default();
        for text in [
            format!("{{\"a\":{}", "[".repeat(20_000)),
            "{\"a\":".repeat(20_000),
            format!("a: {}", "[".repeat(20_000)),
            (0..2_000)
                .map(|n| format!("{}a:\n", " ".repeat(n)))
                .collect::<String>(),
            "- ".repeat(20_000),
        ] {
            assert!(read(text.as_bytes(), &limits).is_err());
        }
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..10 {
            let items = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{items}]\n"));
        }
        let fault = read(text.as_bytes(), &DocumentLimits::default()).unwrap_err();
        assert!(
            matches!(fault, DocumentFault::Aliases { .. } | DocumentFault::Nodes { .. }),
            "{fault:?}"
        );
    }

    #[test]
    fn what_is_no_text_of_one_document_is_refused() {
        for (text, line) in [
            (&b"\xFF\xFE{\0}\0"[..], 0),
            (b"{\"a\":1} x", 1),
            (b"{\"a\":1,}", 1),
            (b"a: 1\n---\nb: 2\n", 0),
            (b"a: *nowhere\n", 1),
            (b"a: &x [*x]\n", 1),
            (b"a: .nan\n", 1),
            (b"~: 1\n", 1),
            (b"[a]: 1\n", 1),
            (b"a: b: c\n", 1),
        ] {
            let fault = read(text, &limits()).expect_err(&String::from_utf8_lossy(text));
            if let DocumentFault::Syntax { line: found, .. } = &fault {
                assert!(line == 0 || *found == line, "{fault}");
            }
        }
    }
}
