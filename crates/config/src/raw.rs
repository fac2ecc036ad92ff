//! The text as it was written: TOML to a tree in which every value knows where it stands. It knows no key.
//!
//! The only file that knows the `toml` crate. Start at [`read`].

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The most parts of one dotted key. The longest key there is has seven.
///
/// The parser bounds nesting by 80 brackets and a dotted key by 80 parts, each for itself. Together they make trees
/// 6,000 deep out of 12 KB, and dropping such a tree overflows the stack. With this bound it cannot get that deep.
pub(crate) const KEY_PARTS_MAX: usize = 10;

/// The deepest value that is kept. No key of the table takes a value even half as deep.
const DEPTH_MAX: usize = 16;

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Bytes of the text. For a table that a header opens, the header.
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A value as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// An integer. `None` where it does not fit 64 bits.
    Integer(Option<i64>, String),
    Float(String),
    Truth(bool),
    Time(String),
    List(Vec<Node>),
    Table(Table),
    /// Below [`DEPTH_MAX`].
    Deep,
}

/// The entries of a table in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// One key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Where the key stands.
    pub(crate) span: Range<usize>,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }
}

/// Something that is not TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxFault {
    pub(crate) at: usize,
    /// What is wrong; of a duplicate, the key.
    pub(crate) problem: String,
    /// Only a key that stands twice: the rest of the text can be understood all the same.
    pub(crate) duplicate: bool,
}

/// Reads a whole text. What can be understood is in the table, whatever is wrong with the rest.
pub(crate) fn read(text: &str) -> (Table, Vec<SyntaxFault>) {
    if let Some(at) = long_key(text) {
        let problem = format!("this key has more than {KEY_PARTS_MAX} parts");
        return (
            Table::default(),
            vec![SyntaxFault {
                at,
                problem,
                duplicate: false,
            }],
        );
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    let faults = errors.iter().map(|error| {
        let span = error.span().unwrap_or(0..0);
        let duplicate = error.message() == "duplicate key";
        let problem = if duplicate {
            text.get(span.clone()).unwrap_or_default().to_owned()
        } else {
            lower(error.message()).replace(", expected nothing", "")
        };
        SyntaxFault {
            at: span.start,
            problem,
            duplicate,
        }
    });
    (table(root.get_ref(), DEPTH_MAX), faults.collect())
}

/// Reads one value alone, as the defaults and examples of the table of keys are written.
pub(crate) fn read_value(text: &str) -> Option<Node> {
    let value = DeValue::parse(text).ok()?;
    Some(Node {
        span: value.span(),
        value: self::value(value.get_ref(), DEPTH_MAX),
    })
}

fn lower(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

// === tree ===

fn table(from: &DeTable<'_>, depth: usize) -> Table {
    let mut entries: Vec<Entry> = from
        .iter()
        .map(|(key, node)| Entry {
            name: key.get_ref().to_string(),
            span: key.span(),
            node: Node {
                span: node.span(),
                value: value(node.get_ref(), depth),
            },
        })
        .collect();
    entries.sort_by_key(|entry| entry.span.start);
    Table { entries }
}

fn value(from: &DeValue<'_>, depth: usize) -> Value {
    let below = depth.checked_sub(1);
    match from {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
            Value::Integer(number, integer.to_string())
        }
        DeValue::Float(float) => Value::Float(float.to_string()),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(items) => below.map_or(Value::Deep, |depth| {
            let node = |item: &toml::Spanned<DeValue<'_>>| Node {
                span: item.span(),
                value: value(item.get_ref(), depth),
            };
            Value::List(items.iter().map(node).collect())
        }),
        DeValue::Table(entries) => below.map_or(Value::Deep, |depth| Value::Table(table(entries, depth))),
    }
}

// === the bound on keys ===

/// Where a dotted key has more than [`KEY_PARTS_MAX`] parts.
///
/// Counts the dots outside of strings and comments since the last character that ends a key for certain. Strings and
/// comments end here exactly where the parser's lexer ends them, also in texts that are not TOML; a line break ends
/// no key here, so that no recovery from an error can join what was counted apart.
fn long_key(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut parts) = (0, 1);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'.' => {
                parts += 1;
                if parts > KEY_PARTS_MAX {
                    return Some(at);
                }
            }
            b'=' | b',' | b'{' | b'}' | b'[' | b']' => parts = 1,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'#' => {
                at = find(bytes, at, b"\r\n");
                continue;
            }
            b'"' | b'\'' => {
                at = string_end(bytes, at, *byte);
                continue;
            }
            // A word. A quotation mark inside of one opens no string.
            _ => {
                at = find(bytes, at, b".=,[]{} \t#\r\n");
                continue;
            }
        }
        at += 1;
    }
    None
}

/// The offset behind the string that starts at `start`, or at the end of its line where it is not closed.
fn string_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let escapes = quote == b'"';
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let long = rest(start).starts_with(&[quote; 3]);
    let mut at = start + if long { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        if *byte == b'\\' && escapes {
            // The lexer passes over an escaped backslash or quote only; a line break behind a backslash ends the line.
            at += if matches!(bytes.get(at + 1), Some(b'\\' | b'"')) {
                2
            } else {
                1
            };
        } else if long && rest(at).starts_with(&[quote; 3]) {
            let extra = rest(at + 3)
                .iter()
                .take(2)
                .take_while(|byte| **byte == quote)
                .count();
            return at + 3 + extra;
        } else if !long && *byte == quote {
            return at + 1;
        } else if !long && *byte == b'\n' {
            return at;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The offset of the next byte that is one of `ends`.
fn find(bytes: &[u8], start: usize, ends: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start
        + rest
            .iter()
            .position(|byte| ends.contains(byte))
            .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_know_where_they_stand_and_tables_keep_the_order_of_the_file() {
        let text = "z = 1\n[b.c]\nx = { y = [true, \"é\"] }\n[a]\n";
        let (root, faults) = read(text);
        assert_eq!(faults, []);
        let names: Vec<_> = root.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["z", "b", "a"]);
        let Value::Table(b) = &root.entries[1].node.value else {
            panic!()
        };
        let c = &b.entries[0];
        assert_eq!(&text[c.node.span.clone()], "[b.c]");
        let Value::Table(c) = &c.node.value else { panic!() };
        assert_eq!(&text[c.entries[0].node.span.clone()], "{ y = [true, \"é\"] }");
    }

    #[test]
    fn integers_of_every_spelling_are_read_and_those_past_64_bits_are_kept_as_text() {
        let (root, _) = read("a = 0x1F\nb = 1_000\nc = -5\nd = 99999999999999999999\ne = +7\n");
        let integers: Vec<_> = root.entries.iter().map(|entry| &entry.node.value).collect();
        let expected = [
            Value::Integer(Some(31), "0x1F".into()),
            Value::Integer(Some(1_000), "1000".into()),
            Value::Integer(Some(-5), "-5".into()),
            Value::Integer(None, "99999999999999999999".into()),
            Value::Integer(Some(7), "+7".into()),
        ];
        assert_eq!(integers, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_key_is_read_at_its_limit_of_parts_and_refused_one_past_it() {
        let key = |parts: usize| vec!["a"; parts].join(".");
        for text in [
            format!("{} = 1", key(KEY_PARTS_MAX)),
            format!("[{}]", key(KEY_PARTS_MAX)),
            format!("x = {{ {} = 1.5 }}", key(KEY_PARTS_MAX)),
        ] {
            assert_eq!(read(&text).1, [], "{text}");
        }
        for text in [
            format!("{} = 1", key(KEY_PARTS_MAX + 1)),
            format!("[{}]", key(KEY_PARTS_MAX + 1)),
            format!("x = {{ \"a\" . '.' .{} = 1 }}", key(KEY_PARTS_MAX)),
            format!("{} = 1", key(100_000)),
            format!("b\" {} = 1", key(KEY_PARTS_MAX + 1)),
            format!("b' .{} = 1", key(KEY_PARTS_MAX + 1)),
            format!("\"b\n{} = 1", key(KEY_PARTS_MAX + 1)),
            format!("# \r{} = 1", key(KEY_PARTS_MAX + 1)),
        ] {
            let faults = read(&text).1;
            assert_eq!(faults.len(), 1, "{text:.80}");
            assert_eq!(faults[0].problem, "this key has more than 10 parts");
        }
    }

    #[test]
    fn dots_in_strings_comments_and_numbers_are_no_parts_of_a_key() {
        let dots = ".".repeat(40);
        let text = format!(
            "# {dots}\na = \"{dots}\\\"{dots}\"\nb = '{dots}\\'\nc = \"\"\"\n{dots}\"\"{dots}\\\"\"\"\"\"\nd = '''{dots}'''''\ne = [{}]\n",
            "1.5, 2.5, ".repeat(40)
        );
        assert_eq!(read(&text).1, []);
    }

    #[test]
    fn a_tree_as_deep_as_the_parser_allows_fits_the_stack() {
        let key = ["a"; KEY_PARTS_MAX].join(".");
        let text = format!(
            "x = {}1{}\nx = 1\n",
            format!("{{{key} = ").repeat(79),
            "}".repeat(79)
        );
        let (_, faults) = read(&text);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].duplicate);
        for text in [
            "[".repeat(100_000),
            format!("x = {}", "{a=".repeat(100_000)),
            format!("x = {}", "[".repeat(100_000)),
        ] {
            assert!(!read(&text).1.is_empty());
        }
    }

    fn depth(value: &DeValue<'_>) -> usize {
        match value {
            DeValue::Table(table) => {
                1 + table
                    .values()
                    .map(|node| depth(node.get_ref()))
                    .max()
                    .unwrap_or(0)
            }
            DeValue::Array(items) => 1 + items.iter().map(|node| depth(node.get_ref())).max().unwrap_or(0),
            _ => 0,
        }
    }

    proptest! {
        /// The scan must see at least the dots that the parser sees, also in a text that is not TOML.
        #[test]
        fn whatever_passes_the_scan_has_short_keys(text in r#"(["'\\\n\r#=,{}\[\] a.]|"""|'''|\\"|(a\.){30}a = ){0,12}"#) {
            if long_key(&text).is_none() {
                let (root, _) = DeTable::parse_recoverable(&text);
                let brackets = text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
                let depth = depth(&DeValue::Table(root.into_inner()));
                prop_assert!(depth <= (brackets + 2) * KEY_PARTS_MAX, "depth {} in {:?}", depth, text);
            }
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in r#"[a-c.="'\[\]{}#\n ,0-9:\\_-]{0,80}"#) {
            let _ = read(&text);
            let _ = read_value(&text);
        }
    }
}
