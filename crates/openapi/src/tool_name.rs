//! Names of tools, proposed for every operation of a document: legal everywhere, unique, and stable.
//!
//! A name comes from the `operationId`, else from method and path, never from prose. It does not depend on the order
//! of the document. A lock keeps what was named once: a name never moves to another operation. It names nothing by
//! itself: a person writes the names of the tools that are offered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::Digest;
use serde::Serialize;

use crate::operation::OperationRef;
use crate::text::excerpt;

/// The longest name that every revision and every provider takes, in bytes, with its prefix.
pub const TOOL_NAME_BYTES_MAX: usize = 64;
/// The longest prefix, in bytes.
pub const TOOL_PREFIX_BYTES_MAX: usize = 33;
/// Hexadecimal digits of a digest in a name.
const DIGEST_CHARS: usize = 8;

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameSource {
    /// It was named before.
    Lock,
    /// The `operationId` as it is.
    OperationId,
    /// The `operationId`, made legal, shorter, or distinct.
    OperationIdChanged,
    /// Method and path: there is no `operationId`, or none that can be written in ASCII.
    MethodAndPath,
}

/// One operation and its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolNaming {
    /// Method and path, as `GET /invoices/{id}`.
    pub operation: String,
    /// The name, with the prefix.
    pub name: String,
    /// Where it comes from.
    pub source: NameSource,
}

/// Names that were given before, by operation. Also of operations that are gone: nothing else gets their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameLock {
    by_operation: BTreeMap<String, String>,
}

/// Why names cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamingFault {
    /// A prefix that is no beginning of a name.
    #[error(
        "`{0}` cannot start the names of tools; write at most {TOOL_PREFIX_BYTES_MAX} letters, digits, `_` and `-`, a letter first"
    )]
    Prefix(String),
    /// A name in the lock that is no name of a tool, or does not fit the prefix.
    #[error(
        "the lock names `{operation}` `{name}`, which is no name of a tool here; correct or remove the line"
    )]
    Locked {
        /// The operation.
        operation: String,
        /// The name.
        name: String,
    },
    /// Two operations with one name in the lock.
    #[error("the lock gives the name `{name}` to `{first}` and to `{second}`; remove one of them")]
    LockedTwice {
        /// The name.
        name: String,
        /// One operation.
        first: String,
        /// The other.
        second: String,
    },
    /// Operations that cannot be told apart: the same method and path twice.
    #[error("`{0}` is in the list of operations twice")]
    Twice(String),
}

impl NameLock {
    /// A lock of operations (`GET /invoices/{id}`) and their names.
    ///
    /// # Errors
    /// [`NamingFault::Locked`] for a text that is no name, [`NamingFault::LockedTwice`].
    pub fn new(names: impl IntoIterator<Item = (String, String)>) -> Result<Self, NamingFault> {
        let mut by_operation = BTreeMap::new();
        let mut by_name: BTreeMap<String, String> = BTreeMap::new();
        for (operation, name) in names {
            if !is_tool_name(&name) {
                return Err(NamingFault::Locked {
                    operation: excerpt(&operation),
                    name: excerpt(&name),
                });
            }
            if let Some(first) = by_name.insert(name.clone(), operation.clone())
                && first != operation
            {
                return Err(NamingFault::LockedTwice {
                    name,
                    first: excerpt(&first),
                    second: excerpt(&operation),
                });
            }
            by_operation.insert(operation, name);
        }
        Ok(Self { by_operation })
    }

    /// The lock with more names in it. What is locked stays.
    #[must_use]
    pub fn with(mut self, names: &[ToolNaming]) -> Self {
        for naming in names {
            self.by_operation
                .entry(naming.operation.clone())
                .or_insert_with(|| naming.name.clone());
        }
        self
    }

    /// Operations and their names, by operation.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_operation
            .iter()
            .map(|(operation, name)| (operation.as_str(), name.as_str()))
    }
}

impl fmt::Display for NameLock {
    /// One line for each operation, `name operation`, so that a diff shows what moved.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (operation, name) in self.iter() {
            writeln!(f, "{name} {operation}")?;
        }
        Ok(())
    }
}

/// Whether OpenAI, Anthropic, Gemini and every revision of MCP take the name: letters, digits, `_` and `-`, a letter or
/// `_` first, at most 64 bytes.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    name.len() <= TOOL_NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(is_legal)
}

const fn is_legal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Proposes a name for each operation, in their order.
///
/// `prefix`: what every new name starts with, as `billing_`; may be empty. Names depend on which operations there are,
/// on the prefix and on the lock, and on nothing else.
///
/// # Errors
/// [`NamingFault::Prefix`], [`NamingFault::Locked`] for a locked name without the prefix, [`NamingFault::Twice`].
pub fn tool_names<'o>(
    operations: impl IntoIterator<Item = &'o OperationRef>,
    prefix: &str,
    lock: &NameLock,
) -> Result<Vec<ToolNaming>, NamingFault> {
    let is_prefix = prefix.is_empty() || is_tool_name(prefix) && prefix.len() <= TOOL_PREFIX_BYTES_MAX;
    if !is_prefix {
        return Err(NamingFault::Prefix(excerpt(prefix)));
    }
    let reserved: BTreeSet<&str> = lock.by_operation.values().map(String::as_str).collect();
    let mut wanted = Vec::new();
    let mut seen = BTreeSet::new();
    for operation in operations {
        let key = operation.key().to_string();
        if !seen.insert(key.clone()) {
            return Err(NamingFault::Twice(excerpt(&key)));
        }
        let locked = lock.by_operation.get(&key).cloned();
        if let Some(name) = locked.as_ref().filter(|name| !name.starts_with(prefix)) {
            return Err(NamingFault::Locked {
                operation: excerpt(&key),
                name: name.clone(),
            });
        }
        wanted.push(Wanted::new(operation, key, prefix, locked));
    }
    loop {
        let mut claims: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, one) in wanted.iter().enumerate() {
            claims.entry(one.name()).or_default().push(index);
        }
        let mut lifted = false;
        for (name, rivals) in claims {
            if rivals.len() < 2 && !reserved.contains(name.as_str()) {
                continue;
            }
            let stays = keeper(&wanted, &rivals, &name, &reserved);
            for rival in rivals.into_iter().filter(|rival| Some(*rival) != stays) {
                if let Some(one) = wanted.get_mut(rival) {
                    lifted |= one.lift();
                }
            }
        }
        if !lifted {
            return Ok(wanted.into_iter().map(Wanted::named).collect());
        }
    }
}

/// Among rivals for a name: the one that has it by the lock; else, where nothing reserves the name, the only one whose
/// `operationId` is written so.
fn keeper(wanted: &[Wanted<'_>], rivals: &[usize], name: &str, reserved: &BTreeSet<&str>) -> Option<usize> {
    let pick = |fits: &dyn Fn(&Wanted<'_>) -> bool| {
        let mut found = rivals
            .iter()
            .copied()
            .filter(|rival| wanted.get(*rival).is_some_and(fits));
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    };
    if reserved.contains(name) {
        return pick(&|one| one.locked.is_some());
    }
    pick(&|one| one.is_literal())
}

/// An operation on its way to a name.
struct Wanted<'o> {
    id: Option<&'o str>,
    key: String,
    prefix: String,
    /// In legal characters; perhaps too long.
    base: String,
    locked: Option<String>,
    /// 0: the base; each level above adds more of a digest of method and path.
    level: usize,
}

impl<'o> Wanted<'o> {
    fn new(operation: &'o OperationRef, key: String, prefix: &str, locked: Option<String>) -> Self {
        let id = operation
            .operation_id()
            .filter(|id| id.is_ascii() && id.bytes().any(|b| b.is_ascii_alphanumeric()));
        let base = match id {
            Some(id) => legal(id),
            None => of_path(operation),
        };
        let is_start =
            !prefix.is_empty() || base.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        Self {
            id,
            key,
            prefix: prefix.to_owned(),
            base: if is_start { base } else { format!("_{base}") },
            locked,
            level: 0,
        }
    }

    fn name(&self) -> String {
        if let Some(locked) = &self.locked {
            return locked.clone();
        }
        let room = TOOL_NAME_BYTES_MAX.saturating_sub(self.prefix.len());
        let (digest, count) = match self.level {
            0 if self.base.len() <= room => return format!("{}{}", self.prefix, self.base),
            // What was cut off has to count.
            0 => (
                Digest::of("openapi-tool-name-v1", &[self.base.as_bytes()]),
                DIGEST_CHARS,
            ),
            level => (
                Digest::of("openapi-tool-key-v1", &[self.key.as_bytes()]),
                DIGEST_CHARS.saturating_mul(level),
            ),
        };
        let text = digest.to_string();
        let hex: String = text
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .chars()
            .take(count)
            .collect();
        let head = room.saturating_sub(hex.len() + 1);
        let head = self.base.get(..head).unwrap_or(&self.base).trim_end_matches('_');
        format!("{}{head}_{hex}", self.prefix)
    }

    /// Whether the name is what the document says, letter by letter.
    fn is_literal(&self) -> bool {
        self.level == 0 && self.id == Some(self.base.as_str())
    }

    fn lift(&mut self) -> bool {
        let may = self.locked.is_none() && self.level < 3;
        if may {
            self.level += 1;
        }
        may
    }

    fn named(self) -> ToolNaming {
        let name = self.name();
        let source = match (&self.locked, self.id) {
            (Some(_), _) => NameSource::Lock,
            (None, None) => NameSource::MethodAndPath,
            (None, Some(id)) if name.strip_prefix(self.prefix.as_str()) == Some(id) => {
                NameSource::OperationId
            }
            (None, Some(_)) => NameSource::OperationIdChanged,
        };
        ToolNaming {
            operation: self.key,
            name,
            source,
        }
    }
}

/// A text in legal characters: each run of others is one `_`.
fn legal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let is_legal = u8::try_from(character).is_ok_and(is_legal);
        if is_legal {
            out.push(character);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').to_owned()
}

/// `GET /v1/things/{id}` as `get_v1_things_by_id`.
fn of_path(operation: &OperationRef) -> String {
    let mut words = vec![operation.method().to_ascii_lowercase()];
    for segment in operation.path().split('/') {
        let segment = segment.replace('{', "/by_").replace('}', "/");
        words.extend(segment.split('/').map(str::to_owned));
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| legal(word))
        .filter(|word| !word.is_empty())
        .collect();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::{Document, DocumentLimits};

    fn document(operations: &[(&str, &str, Option<&str>)]) -> Document {
        let mut paths = serde_json::json!({});
        for (method, path, id) in operations {
            paths[path][method.to_lowercase()] = match id {
                Some(id) => serde_json::json!({ "operationId": id }),
                None => serde_json::json!({}),
            };
        }
        let text = serde_json::json!({"openapi": "3.1.0", "paths": paths}).to_string();
        Document::read(text.as_bytes(), &DocumentLimits::default()).unwrap()
    }

    fn names(
        operations: &[(&str, &str, Option<&str>)],
        prefix: &str,
        lock: &NameLock,
    ) -> BTreeMap<String, String> {
        let document = document(operations);
        let operations: Vec<_> = document.operations().collect();
        tool_names(&operations, prefix, lock)
            .unwrap()
            .into_iter()
            .map(|naming| (naming.operation, naming.name))
            .collect()
    }

    #[test]
    fn a_name_comes_from_the_id_or_from_method_and_path() {
        let none = NameLock::default();
        let found = names(
            &[
                ("GET", "/v1/things/{id}", None),
                ("POST", "/v1/things/{id}.json", None),
                ("GET", "/x", Some("repos/list-for.user@v1")),
                ("GET", "/y", Some("ユーザー取得")),
                ("GET", "/n", Some("2fa")),
                ("GET", "/", None),
            ],
            "",
            &none,
        );
        for (operation, name) in [
            ("GET /v1/things/{id}", "get_v1_things_by_id"),
            ("POST /v1/things/{id}.json", "post_v1_things_by_id_json"),
            ("GET /x", "repos_list-for_user_v1"),
            ("GET /y", "get_y"),
            ("GET /n", "_2fa"),
            ("GET /", "get"),
        ] {
            assert_eq!(found[operation], name);
        }
    }

    #[test]
    fn a_long_name_is_cut_by_what_is_left_beside_the_prefix_and_stays_its_own() {
        let long = "listOrganizationSubscriptionInvoicesForBillingAccountWithExpandedLineItems";
        let other = format!("{long}2");
        let operations = [("GET", "/a", Some(long)), ("GET", "/b", Some(other.as_str()))];
        for prefix in ["", "billing_", &"p".repeat(TOOL_PREFIX_BYTES_MAX)] {
            let found = names(&operations, prefix, &NameLock::default());
            for name in found.values() {
                assert!(
                    name.len() <= TOOL_NAME_BYTES_MAX && name.starts_with(prefix),
                    "{name}"
                );
            }
            assert_ne!(found["GET /a"], found["GET /b"]);
        }
        let fits = "x".repeat(64);
        assert_eq!(
            names(&[("GET", "/a", Some(&fits))], "", &NameLock::default())["GET /a"],
            fits
        );
        let past = "x".repeat(65);
        let cut = &names(&[("GET", "/a", Some(&past))], "", &NameLock::default())["GET /a"];
        assert!(cut.len() == 64 && *cut != "x".repeat(64), "{cut}");
    }

    #[test]
    fn an_id_that_stands_twice_is_told_apart_by_the_operation_and_not_by_order() {
        let two = [
            ("GET", "/a", Some("dup")),
            ("GET", "/b", Some("dup")),
            ("GET", "/c", Some("dup_2")),
        ];
        let before = names(&two, "", &NameLock::default());
        assert_eq!(before["GET /c"], "dup_2");
        assert!(before["GET /a"].starts_with("dup_") && before["GET /a"] != before["GET /b"]);
        let three = [("GET", "/0", Some("dup")), two[2], two[1], two[0]];
        let after = names(&three, "", &NameLock::default());
        for (operation, name) in &before {
            assert_eq!(&after[operation], name);
        }
        // What is written so keeps its name against what is only made so.
        let made = names(
            &[("GET", "/a", Some("a/b")), ("GET", "/b", Some("a_b"))],
            "",
            &NameLock::default(),
        );
        assert_eq!(made["GET /b"], "a_b");
    }

    #[test]
    fn a_locked_name_never_moves_to_another_operation() {
        let first = [("GET", "/a", Some("get"))];
        let document = document(&first);
        let operations: Vec<_> = document.operations().collect();
        let named = tool_names(&operations, "x_", &NameLock::default()).unwrap();
        let lock = NameLock::default().with(&named);
        assert_eq!(lock.to_string(), "x_get GET /a\n");
        // Another operation takes over the id; the first gets another one, or goes.
        let found = names(
            &[("GET", "/b", Some("get")), ("GET", "/a", Some("read"))],
            "x_",
            &lock,
        );
        assert_eq!(found["GET /a"], "x_get");
        assert_ne!(found["GET /b"], "x_get");
        let found = names(&[("GET", "/b", Some("get"))], "x_", &lock);
        assert_ne!(found["GET /b"], "x_get");
        assert!(matches!(
            tool_names(&operations, "y_", &lock),
            Err(NamingFault::Locked { .. })
        ));
        let twice = [("GET /a", "n"), ("GET /b", "n")].map(|(o, n)| (o.to_owned(), n.to_owned()));
        assert!(matches!(
            NameLock::new(twice),
            Err(NamingFault::LockedTwice { .. })
        ));
        for name in ["", "a b", "a.b", "-a", "1a", &"a".repeat(65)] {
            let lock = NameLock::new([("GET /a".to_owned(), name.to_owned())]);
            assert!(matches!(lock, Err(NamingFault::Locked { .. })), "{name}");
        }
        for prefix in ["a b", "1", "-", &"p".repeat(TOOL_PREFIX_BYTES_MAX + 1)] {
            assert!(matches!(
                tool_names(&operations, prefix, &NameLock::default()),
                Err(NamingFault::Prefix(_))
            ));
        }
    }

    proptest! {
        #[test]
        fn names_are_legal_distinct_and_do_not_depend_on_order(
            ids in prop::collection::vec(prop::option::of("(dup|a/b|a_b|dup_[0-9]|é|-|[a-z./ ]{0,80})"), 1..12),
            prefix in "(|[a-z]_|[a-z]{30})",
        ) {
            let paths: Vec<String> = (0..ids.len()).map(|n| format!("/p{}", n % 7)).collect();
            let methods = ["GET", "POST"];
            let operations: Vec<_> = ids
                .iter()
                .enumerate()
                .map(|(n, id)| (methods[n / 7], paths[n].as_str(), id.as_deref()))
                .collect();
            let lock = NameLock::default();
            let before = names(&operations, &prefix, &lock);
            let reversed: Vec<_> = operations.iter().rev().copied().collect();
            prop_assert_eq!(&before, &names(&reversed, &prefix, &lock));
            let distinct: BTreeSet<_> = before.values().collect();
            prop_assert_eq!(distinct.len(), before.len());
            prop_assert!(before.values().all(|name| is_tool_name(name)), "{:?}", before);
        }
    }
}
