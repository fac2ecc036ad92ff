//! Places in a document: JSON pointers (RFC 6901) as the fragment that a `$ref` writes, `#/paths/~1a/get`.
//!
//! A pointer is canonical: two spellings of one place (`%7E1`, `~1`) are one pointer. It does not fetch or follow.

use std::fmt;

use model::Value;

/// A place in the document, from its root.
///
/// Invariant: `#`, then for each step `/` and the key with `~` and `/` escaped; never percent-encoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Pointer(String);

impl Pointer {
    /// The whole document.
    pub(crate) fn root() -> Self {
        Self("#".to_owned())
    }

    /// Reads the fragment of a reference without its `#`: percent-escapes first, then the steps.
    ///
    /// `None` where it is no pointer: an anchor, a lone `%`, bytes that are no UTF-8, a `~` that escapes nothing.
    pub(crate) fn parse(fragment: &str) -> Option<Self> {
        if fragment.starts_with('/') && is_canonical(fragment) {
            return Some(Self(format!("#{fragment}")));
        }
        let text = decode_percent(fragment)?;
        if !text.is_empty() && !text.starts_with('/') {
            return None;
        }
        let mut pointer = Self::root();
        for step in text.split('/').skip(1) {
            pointer.push(&unescape(step)?);
        }
        Some(pointer)
    }

    /// Goes one step down; the result takes the step back with [`Self::back`].
    pub(crate) fn push(&mut self, key: &str) -> usize {
        let before = self.0.len();
        self.0.push('/');
        if !key.contains(['~', '/']) {
            self.0.push_str(key);
            return before;
        }
        for character in key.chars() {
            match character {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
        before
    }

    /// Goes one step down into an array.
    pub(crate) fn push_index(&mut self, index: usize) -> usize {
        self.push(&index.to_string())
    }

    /// Takes back what [`Self::push`] did.
    pub(crate) fn back(&mut self, before: usize) {
        self.0.truncate(before);
    }

    /// The place one step below.
    pub(crate) fn child(&self, key: &str) -> Self {
        let mut child = Self(String::with_capacity(self.0.len() + key.len() + 1));
        child.0.push_str(&self.0);
        child.push(key);
        child
    }

    /// The place of an item of an array.
    pub(crate) fn item(&self, index: usize) -> Self {
        let mut child = self.clone();
        child.push_index(index);
        child
    }

    /// Whether it is the whole document.
    pub(crate) fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// The last step, unescaped.
    pub(crate) fn last(&self) -> Option<String> {
        let (_, step) = self.0.rsplit_once('/')?;
        unescape(step)
    }

    /// The value at this place.
    pub(crate) fn find<'d>(&self, root: &'d Value) -> Option<&'d Value> {
        find(&self.0, root)
    }

    /// The value at a place that is written as a pointer is.
    pub(crate) fn find_at<'d>(place: &str, root: &'d Value) -> Option<&'d Value> {
        find(place, root)
    }

    /// The value that the fragment of a reference names, without a pointer to it.
    pub(crate) fn find_fragment<'d>(fragment: &str, root: &'d Value) -> Option<&'d Value> {
        if fragment.starts_with('/') && is_canonical(fragment) {
            return find(fragment, root);
        }
        Self::parse(fragment)?.find(root)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a fragment that starts with `/` is written as a pointer is: most are.
fn is_canonical(fragment: &str) -> bool {
    !fragment.contains(['%', '~'])
}

/// `steps`: as a pointer has them, each behind a `/`.
fn find<'d>(steps: &str, root: &'d Value) -> Option<&'d Value> {
    let mut value = root;
    for step in steps.split('/').skip(1) {
        value = match value {
            Value::Object(object) if step.contains('~') => object.get(&unescape(step)?)?,
            Value::Object(object) => object.get(step)?,
            Value::Array(array) => array.get(index(step)?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(value)
}

/// An index without leading zeros, as RFC 6901 writes it. `-` names no existing item.
fn index(step: &str) -> Option<usize> {
    let canonical = step == "0" || (!step.starts_with('0') && step.bytes().all(|b| b.is_ascii_digit()));
    canonical.then(|| step.parse().ok()).flatten()
}

fn unescape(step: &str) -> Option<String> {
    if !step.contains('~') {
        return Some(step.to_owned());
    }
    let mut out = String::with_capacity(step.len());
    let mut characters = step.chars();
    while let Some(character) = characters.next() {
        out.push(match character {
            '~' => match characters.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

fn decode_percent(text: &str) -> Option<String> {
    let mut rest = text.split('%');
    rest.next()?;
    let escaped = rest.all(|part| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2);
    if !escaped {
        return None;
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_is_decoded_once_and_in_the_right_order() {
        let root = json!({
            "a/b": 1, "m~n": 2, "~1": 3, "x y": 4, "%41": 5, "": {"": 6}, "é": 7,
            "list": ["zero", {"k": "one"}],
        });
        for (fragment, expected) in [
            ("", &root),
            ("/a~1b", &json!(1)),
            ("/a%7E1b", &json!(1)),
            ("/m~0n", &json!(2)),
            ("/~01", &json!(3)),
            ("/x%20y", &json!(4)),
            ("/%2541", &json!(5)),
            ("//", &json!(6)),
            ("/%C3%A9", &json!(7)),
            ("/é", &json!(7)),
            ("/list/0", &json!("zero")),
            ("/list/1/k", &json!("one")),
        ] {
            let pointer = Pointer::parse(fragment).unwrap();
            assert_eq!(pointer.find(&root), Some(expected), "{fragment}");
        }
        for fragment in [
            "/list/2",
            "/list/00",
            "/list/-",
            "/list/+1",
            "/list/0/x",
            "/nowhere",
            "/%41/x",
        ] {
            assert_eq!(Pointer::parse(fragment).unwrap().find(&root), None, "{fragment}");
        }
        for fragment in ["anchor", "/~2", "/~", "/%", "/%4", "/%zz", "/%ff"] {
            assert_eq!(Pointer::parse(fragment), None, "{fragment}");
        }
    }

    #[test]
    fn two_spellings_of_one_place_are_one_pointer() {
        assert_eq!(Pointer::parse("/a%7E1b"), Pointer::parse("/a~1b"));
        assert_eq!(Pointer::parse("/a~1b").unwrap().as_str(), "#/a~1b");
        assert_eq!(Pointer::parse("/a~1b").unwrap().last().as_deref(), Some("a/b"));
    }

    #[test]
    fn a_step_is_taken_back_exactly() {
        let mut pointer = Pointer::root();
        let before = pointer.push("a/b");
        pointer.push_index(3);
        assert_eq!(pointer.as_str(), "#/a~1b/3");
        pointer.back(before);
        assert!(pointer.is_root());
    }
}
