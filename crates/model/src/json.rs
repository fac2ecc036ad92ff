//! JSON that two readers cannot understand differently: the I-JSON check, and RFC 8785 canonical bytes.
//!
//! A gate that checks one reading of a message and forwards another is no gate. So a text with duplicate keys, with
//! an integer that a double cannot hold, or nested beyond a limit is a fault, before anything is looked up in it.
//! Source: RFC 7493 (I-JSON), RFC 8785 (JCS), `docs/adr/0007-canonical-json.md`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// A JSON value. Key order is kept but never means anything; compare and hash [`canonical`] bytes.
pub use serde_json::Value;

/// A JSON object.
pub type Object = serde_json::Map<String, Value>;

/// The largest integer that every JSON reader holds exactly: 2^53 - 1 (RFC 7493 section 2.2).
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// How large and how deep a JSON text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// The longest text, in bytes.
    pub bytes_max: usize,
    /// The deepest nesting of arrays and objects; a scalar has depth 0. At most 120.
    pub depth_max: usize,
}

/// What is wrong with a JSON text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at line {line}, column {column}")]
pub struct JsonFault {
    /// What is wrong.
    pub kind: JsonFaultKind,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1; 0 where the line is empty.
    pub column: usize,
}

/// The ways a text can fail to be JSON that may pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonFaultKind {
    /// Not JSON at all.
    #[error("{0}")]
    Syntax(String),
    /// An object that says a key twice.
    #[error("the key `{0}` stands twice in one object")]
    DuplicateKey(String),
    /// A number that a double cannot hold exactly.
    #[error("the integer {0} is beyond 2^53 - 1; send it as a string")]
    Integer(String),
    /// Too many arrays and objects inside each other.
    #[error("nesting is deeper than {0}")]
    Depth(usize),
    /// Too long.
    #[error("the text has {length} bytes; at most {max} are read")]
    Size {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
}

/// Reads one JSON text that fills `bytes`.
///
/// # Errors
/// [`JsonFault`]: bad syntax or UTF-8, a lone surrogate, a duplicate key at any depth, an integer (or a number
/// with an integral value) outside ±(2^53 - 1), nesting or length past `limits`.
pub fn parse(bytes: &[u8], limits: JsonLimits) -> Result<Value, JsonFault> {
    read_with(
        bytes,
        limits,
        Build {
            depth: limits.depth_max,
            wide: false,
        },
    )
}

/// Reads one JSON text that somebody else's service wrote, and that will be written anew before it goes on.
///
/// As [`parse`], but every integer of 64 bits is taken as it is: services number their things with them, and what is
/// written anew has one reading. A larger one would lose digits and is a fault.
///
/// # Errors
/// As [`parse`], but for integers of 64 bits.
pub fn parse_foreign(bytes: &[u8], limits: JsonLimits) -> Result<Value, JsonFault> {
    let seed = Build {
        depth: limits.depth_max,
        wide: true,
    };
    read_with(bytes, limits, seed)
}

/// The same verdict as [`parse`] without building a value: for texts that are read in another shape afterwards.
///
/// # Errors
/// As [`parse`].
pub fn check(bytes: &[u8], limits: JsonLimits) -> Result<(), JsonFault> {
    read_with(
        bytes,
        limits,
        Scan {
            depth: limits.depth_max,
        },
    )
}

/// The RFC 8785 canonical bytes of a value that passed [`parse`].
///
/// No Unicode normalisation: a hidden character changes the bytes.
#[must_use]
pub fn canonical(value: &Value) -> Vec<u8> {
    // The canonicaliser fails only on non-finite floats, which `Value` cannot hold.
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

/// The shape of a value without its content: each scalar becomes its type's name, each array the shapes of its
/// first items (at most 3), each object its keys (at most 64); below depth 4 everything is `"…"`.
///
/// Key names stay. A caller that could smuggle data in key names is stopped before: undeclared keys are refused.
#[must_use]
pub fn shape(value: &Value) -> Value {
    fn at(value: &Value, depth: usize) -> Value {
        if depth == 0 && (value.is_array() || value.is_object()) {
            return Value::from("…");
        }
        match value {
            Value::Null => Value::from("null"),
            Value::Bool(_) => Value::from("boolean"),
            Value::Number(number) if number.is_f64() => Value::from("number"),
            Value::Number(_) => Value::from("integer"),
            Value::String(_) => Value::from("string"),
            Value::Array(items) => items.iter().take(3).map(|item| at(item, depth - 1)).collect(),
            Value::Object(object) => object
                .iter()
                .take(64)
                .map(|(key, item)| (key.clone(), at(item, depth - 1)))
                .collect(),
        }
    }
    at(value, 4)
}

/// Reads one JSON text that fills `bytes` into a shape of the caller's own.
///
/// The seed must hold what it takes to the same rules: [`Scan`] for what it passes over, [`Keys`] for the keys of
/// an object that it visits itself, [`parse`] or [`check`] for spans that it keeps raw.
///
/// # Errors
/// As [`parse`].
pub fn read_with<'de, S: DeserializeSeed<'de>>(
    bytes: &'de [u8],
    limits: JsonLimits,
    seed: S,
) -> Result<S::Value, JsonFault> {
    if bytes.len() > limits.bytes_max {
        let kind = JsonFaultKind::Size {
            length: bytes.len(),
            max: limits.bytes_max,
        };
        return Err(JsonFault {
            kind,
            line: 1,
            column: 1,
        });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = seed
        .deserialize(&mut deserializer)
        .map_err(|error| fault(&error, limits))?;
    deserializer.end().map_err(|error| fault(&error, limits))?;
    Ok(value)
}

// serde's errors are texts. Ours travel through it behind a mark that no JSON syntax error starts with.
const DUPLICATE: &str = "\u{1}duplicate ";
const INTEGER: &str = "\u{1}integer ";
const DEPTH: &str = "\u{1}depth";

fn fault(error: &serde_json::Error, limits: JsonLimits) -> JsonFault {
    let text = error.to_string();
    // serde_json appends ` at line L column C`, which the fault holds as numbers.
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(head, _)| head);
    let kind = if let Some(key) = text.strip_prefix(DUPLICATE) {
        JsonFaultKind::DuplicateKey(key.chars().take(80).collect())
    } else if let Some(number) = text.strip_prefix(INTEGER) {
        JsonFaultKind::Integer(number.to_owned())
    } else if text.starts_with(DEPTH) || text.starts_with("recursion limit") {
        JsonFaultKind::Depth(limits.depth_max)
    } else {
        JsonFaultKind::Syntax(text.to_owned())
    };
    JsonFault {
        kind,
        line: error.line(),
        column: error.column(),
    }
}

fn integer_fits<E: serde::de::Error>(fits: bool, shown: impl fmt::Display) -> Result<(), E> {
    if fits {
        Ok(())
    } else {
        Err(E::custom(format_args!("{INTEGER}{shown}")))
    }
}

fn unsigned_fits<E: serde::de::Error>(n: u64) -> Result<(), E> {
    integer_fits(n <= INTEGER_MAX, n)
}

fn signed_fits<E: serde::de::Error>(n: i64) -> Result<(), E> {
    integer_fits(n.unsigned_abs() <= INTEGER_MAX, n)
}

/// An integer literal past 64 bits reaches us as a float, so floats with an integral value are held to the same bound.
fn float_fits<E: serde::de::Error>(n: f64) -> Result<(), E> {
    const BOUND: f64 = 9_007_199_254_740_991.0;
    integer_fits(n.fract() != 0.0 || n.abs() <= BOUND, n)
}

fn deeper<E: serde::de::Error>(depth: usize) -> Result<usize, E> {
    depth.checked_sub(1).ok_or_else(|| E::custom(DEPTH))
}

// === the two readers ===

#[derive(Clone, Copy)]
struct Build {
    depth: usize,
    /// Whether integers of 64 bits pass.
    wide: bool,
}

impl<'de> DeserializeSeed<'de> for Build {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }
    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Value, E> {
        if !self.wide {
            unsigned_fits(n)?;
        }
        Ok(Value::from(n))
    }
    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Value, E> {
        if !self.wide {
            signed_fits(n)?;
        }
        Ok(Value::from(n))
    }
    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<Value, E> {
        float_fits(n)?;
        Ok(Value::from(n))
    }
    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::from(s))
    }
    fn visit_string<E>(self, s: String) -> Result<Value, E> {
        Ok(Value::String(s))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = Self {
            depth: deeper(self.depth)?,
            ..self
        };
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = Self {
            depth: deeper(self.depth)?,
            ..self
        };
        let mut object = Object::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE}{key}")));
            }
            let value = entries.next_value_seed(inner)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// Passes over one value and holds it to the rules of [`parse`].
#[derive(Debug, Clone, Copy)]
pub struct Scan {
    depth: usize,
}

impl Scan {
    /// A scan of a value in which at most `depth` arrays and objects may stand inside each other.
    #[must_use]
    pub const fn new(depth: usize) -> Self {
        Self { depth }
    }
}

impl<'de> DeserializeSeed<'de> for Scan {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scan {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<(), E> {
        unsigned_fits(n)
    }
    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<(), E> {
        signed_fits(n)
    }
    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<(), E> {
        float_fits(n)
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = Self {
            depth: deeper(self.depth)?,
        };
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = Self {
            depth: deeper(self.depth)?,
        };
        let mut seen = Keys::default();
        while seen.next(&mut entries)?.is_some() {
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// A key that is borrowed where it holds no escape (serde's `Cow` would always copy).
struct Key<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(s)))
            }
            fn visit_str<E>(self, s: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(s.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// The keys of one object, each of which may come once: a list while it is short, which is nearly always; a set beyond.
#[derive(Debug, Default)]
pub struct Keys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
    last: Cow<'de, str>,
}

impl<'de> Keys<'de> {
    const FEW: usize = 16;

    /// The next key of an object; its value is read by the caller.
    ///
    /// # Errors
    /// A key that came before, in whatever spelling.
    pub fn next<A: MapAccess<'de>>(&mut self, entries: &mut A) -> Result<Option<&str>, A::Error> {
        let Some(Key(key)) = entries.next_key()? else {
            return Ok(None);
        };
        if self.few.contains(&key) || self.many.contains(&key) {
            return Err(A::Error::custom(format_args!("{DUPLICATE}{key}")));
        }
        self.last.clone_from(&key);
        if self.few.len() < Self::FEW {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        Ok(Some(&self.last))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 10_000,
        depth_max: 8,
    };

    fn kind(text: &str) -> Option<JsonFaultKind> {
        let parsed = parse(text.as_bytes(), LIMITS).err();
        assert_eq!(
            parsed,
            check(text.as_bytes(), LIMITS).err(),
            "both readers agree on {text}"
        );
        parsed.map(|fault| fault.kind)
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth_and_under_any_spelling() {
        for text in [
            r#"{"to":"good","to":"evil"}"#,
            r#"{"a":[{"b":1,"c":2,"b":3}]}"#,
            r#"{"to":1,"\u0074o":2}"#,
            r#"{"":1,"":2}"#,
        ] {
            assert!(
                matches!(kind(text), Some(JsonFaultKind::DuplicateKey(_))),
                "{text}"
            );
        }
        assert_eq!(kind(r#"{"a":{"k":1},"b":{"k":1}}"#), None);
    }

    #[test]
    fn a_duplicate_is_found_in_a_large_object_too() {
        let mut keys: Vec<String> = (0..100).map(|n| format!("\"k{n}\":{n}")).collect();
        assert_eq!(kind(&format!("{{{}}}", keys.join(","))), None);
        keys.push("\"k55\":0".to_owned());
        assert_eq!(
            kind(&format!("{{{}}}", keys.join(","))),
            Some(JsonFaultKind::DuplicateKey("k55".into()))
        );
    }

    #[test]
    fn integers_pass_at_the_bound_and_not_one_past_it() {
        for text in ["9007199254740991", "-9007199254740991", "0.1", "1e3", "-0"] {
            assert_eq!(kind(text), None, "{text}");
        }
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740993",
            "18446744073709551616",
            "1e19",
            "[{\"account\":9007199254740993}]",
        ] {
            assert!(matches!(kind(text), Some(JsonFaultKind::Integer(_))), "{text}");
        }
    }

    #[test]
    fn a_foreign_text_may_number_with_64_bits_and_still_has_one_reading() {
        let foreign = |text: &str| parse_foreign(text.as_bytes(), LIMITS);
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            "[9007199254740993]",
        ] {
            assert_eq!(foreign(text).unwrap().to_string(), text);
        }
        for text in [
            "18446744073709551616",
            "1e19",
            r#"{"a":1,"a":2}"#,
            "[[[[[[[[[]]]]]]]]]",
            "{",
        ] {
            assert!(foreign(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_passes_at_the_limit_and_not_one_past_it() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(kind(&nested(8)), None);
        assert_eq!(kind(&nested(9)), Some(JsonFaultKind::Depth(8)));
        assert_eq!(kind(&nested(4_000)), Some(JsonFaultKind::Depth(8)));
    }

    #[test]
    fn length_passes_at_the_limit_and_not_one_past_it() {
        let text = |n: usize| format!("\"{}\"", "a".repeat(n - 2));
        assert_eq!(kind(&text(10_000)), None);
        assert_eq!(
            kind(&text(10_001)),
            Some(JsonFaultKind::Size {
                length: 10_001,
                max: 10_000
            })
        );
    }

    #[test]
    fn what_is_not_json_says_where() {
        for text in [
            "",
            "{",
            "{\"a\":}",
            "nul",
            "[1,]",
            "1 2",
            "\"\\ud800\"",
            "1e400",
            "{'a':1}",
            "\u{FEFF}1",
        ] {
            assert!(matches!(kind(text), Some(JsonFaultKind::Syntax(_))), "{text:?}");
        }
        assert!(check(b"\"\xff\"", LIMITS).is_err());
        let fault = parse(b"{\n \"a\": x1\n}", LIMITS).unwrap_err();
        assert_eq!((fault.line, fault.column > 0), (2, true), "{fault}");
    }

    #[test]
    fn canonical_bytes_ignore_key_order_and_keep_hidden_characters() {
        assert_eq!(
            canonical(&json!({"b":1,"a":[true,null]})),
            br#"{"a":[true,null],"b":1}"#
        );
        assert_ne!(canonical(&json!("e\u{301}")), canonical(&json!("\u{e9}")));
        assert_ne!(canonical(&json!("a\u{200B}")), canonical(&json!("a")));
    }

    #[test]
    fn a_shape_names_types_and_holds_no_value() {
        let value =
            json!({"id":"inv-1","n":3,"f":0.5,"ok":true,"tags":["a"],"deep":{"a":{"b":{"c":{"d":1}}}}});
        let text = shape(&value).to_string();
        assert_eq!(
            text,
            r#"{"id":"string","n":"integer","f":"number","ok":"boolean","tags":["string"],"deep":{"a":{"b":{"c":"…"}}}}"#
        );
    }

    proptest! {
        #[test]
        fn both_readers_agree_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(parse(&bytes, LIMITS).err(), check(&bytes, LIMITS).err());
        }

        #[test]
        fn both_readers_agree_on_texts_that_look_like_json(text in r#"[\[\]{}:,"0-9aeb\\u.+ -]{0,60}"#) {
            prop_assert_eq!(parse(text.as_bytes(), LIMITS).err(), check(text.as_bytes(), LIMITS).err());
        }

        #[test]
        fn what_passes_means_the_same_to_the_usual_reader(text in r#"\{("[abc]":[0-9]{1,17},){0,3}"d":[0-9]{1,17}\}"#) {
            if let Ok(value) = parse(text.as_bytes(), LIMITS) {
                prop_assert_eq!(&value, &serde_json::from_str::<Value>(&text).unwrap());
                prop_assert_eq!(canonical(&value), canonical(&parse(&canonical(&value), LIMITS).unwrap()));
            }
        }
    }
}
