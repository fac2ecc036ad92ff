//! Names of arguments: what the model writes, made from the names that the wire needs.
//!
//! Providers refuse a tool for one argument called `$filter`, and a path, a query and a body may each have an `id`.
//! So names are made legal and told apart here. The result is injective, and depends on which arguments there are,
//! never on their order in the document.

use std::collections::{BTreeMap, BTreeSet};

use model::Digest;

/// The longest argument name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// An argument as the wire names it: the prefix that tells its place, and the name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WireName<'a> {
    /// `path`, `query`, `header`, `body`, or `request` for a body that is one argument.
    pub(crate) prefix: &'static str,
    /// The name in that place.
    pub(crate) name: &'a str,
}

/// Whether every provider takes the name as it is.
pub(crate) fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// One name for each argument, in the same order. `None` where two arguments are one and the same.
///
/// A legal name that nothing else claims stays. Else the place is put before it, and if that is taken too, a digest
/// behind it.
pub(crate) fn assign(arguments: &[WireName<'_>]) -> Option<Vec<String>> {
    let distinct: BTreeSet<_> = arguments.iter().collect();
    if distinct.len() != arguments.len() {
        return None;
    }
    let mut levels = vec![0_u8; arguments.len()];
    // Each round lifts at least one argument, and none beyond level 2, so this ends.
    loop {
        let names: Vec<String> = arguments
            .iter()
            .zip(&levels)
            .map(|(argument, level)| candidate(*argument, *level))
            .collect();
        let mut claims: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            claims.entry(name).or_default().push(index);
        }
        let mut lifted = false;
        for rivals in claims.values().filter(|rivals| rivals.len() > 1) {
            let stays = keeper(arguments, &levels, rivals);
            for rival in rivals.iter().filter(|rival| Some(**rival) != stays) {
                if let Some(level) = levels.get_mut(*rival).filter(|level| **level < 2) {
                    *level += 1;
                    lifted = true;
                }
            }
        }
        if !lifted {
            let unique: BTreeSet<&String> = names.iter().collect();
            return (unique.len() == names.len()).then_some(names);
        }
    }
}

/// Among rivals for one name, the single one that the wire already calls so.
fn keeper(arguments: &[WireName<'_>], levels: &[u8], rivals: &[usize]) -> Option<usize> {
    let mut literal = rivals.iter().copied().filter(|rival| {
        levels.get(*rival) == Some(&0)
            && arguments
                .get(*rival)
                .is_some_and(|argument| is_legal(argument.name))
    });
    match (literal.next(), literal.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn candidate(argument: WireName<'_>, level: u8) -> String {
    let WireName { prefix, name } = argument;
    let plain = plain(name);
    match level {
        0 => shortened(&plain, NAME_BYTES_MAX),
        1 => shortened(&format!("{prefix}_{plain}"), NAME_BYTES_MAX),
        _ => {
            let digest = Digest::of("openapi-argument-v1", &[prefix.as_bytes(), b"/", name.as_bytes()]);
            let head = shortened(&format!("{prefix}_{plain}"), NAME_BYTES_MAX - 13);
            format!("{head}_{}", digest.short())
        }
    }
}

/// The name in legal characters. Not injective; collisions are solved by the caller.
fn plain(name: &str) -> String {
    if is_legal(name) {
        return name.to_owned();
    }
    let mapped: String = name
        .chars()
        .take(4 * NAME_BYTES_MAX)
        .map(|character| match u8::try_from(character) {
            Ok(byte) if is_legal_byte(byte) => character,
            _ => '_',
        })
        .collect();
    match mapped.trim_matches('_') {
        "" => "argument".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// ASCII only, so any byte is a boundary.
fn shortened(text: &str, bytes_max: usize) -> String {
    text.get(..bytes_max).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(arguments: &[(&'static str, &'static str)]) -> Vec<String> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|(prefix, name)| WireName { prefix, name })
            .collect();
        assign(&arguments).unwrap()
    }

    #[test]
    fn a_name_that_nothing_else_claims_stays() {
        assert_eq!(
            names(&[("path", "id"), ("query", "user.name"), ("body", "2fa-code")]),
            ["id", "user.name", "2fa-code"]
        );
    }

    #[test]
    fn names_that_meet_are_told_apart_by_their_place() {
        assert_eq!(
            names(&[
                ("path", "id"),
                ("query", "id"),
                ("query", "body"),
                ("request", "body")
            ]),
            ["path_id", "query_id", "query_body", "request_body"]
        );
        // The new names must not meet a third one.
        assert_eq!(
            names(&[("path", "id"), ("query", "id"), ("body", "path_id")])[2],
            "path_id",
            "the name that the wire has stays"
        );
    }

    #[test]
    fn illegal_characters_are_replaced_and_the_legal_twin_keeps_its_name() {
        assert_eq!(
            names(&[("query", "$filter"), ("query", "ids[]")]),
            ["filter", "ids"]
        );
        assert_eq!(
            names(&[("query", "$filter"), ("query", "filter")]),
            ["query_filter", "filter"]
        );
        assert_eq!(names(&[("query", "検索")]), ["argument"]);
        let twins = names(&[("query", "検索"), ("query", "名前")]);
        assert!(
            twins.iter().all(|name| name.starts_with("query_argument_")),
            "{twins:?}"
        );
        let long = "x".repeat(65);
        assert_eq!(
            assign(&[WireName {
                prefix: "query",
                name: &long
            }])
            .unwrap(),
            ["x".repeat(64)]
        );
    }

    #[test]
    fn one_argument_that_stands_twice_has_no_name() {
        let twice = WireName {
            prefix: "query",
            name: "a",
        };
        assert_eq!(assign(&[twice, twice]), None);
    }

    proptest! {
        #[test]
        fn names_are_legal_distinct_and_do_not_depend_on_order(
            wire in prop::collection::btree_set((0_usize..4, "(id|path_id|query_id|\\$?[ab]{1,2}|検|[ -~]{0,70})"), 1..12),
            turn in 0_usize..12,
        ) {
            let prefixes = ["path", "query", "header", "body"];
            let mut arguments: Vec<WireName<'_>> = wire
                .iter()
                .map(|(place, name)| WireName { prefix: prefixes[*place], name })
                .collect();
            let before: BTreeMap<_, _> = arguments.iter().copied().zip(assign(&arguments).unwrap()).collect();
            let turn = turn % arguments.len();
            arguments.rotate_left(turn);
            let after: BTreeMap<_, _> = arguments.iter().copied().zip(assign(&arguments).unwrap()).collect();
            prop_assert_eq!(&before, &after);
            let distinct: BTreeSet<_> = before.values().collect();
            prop_assert_eq!(distinct.len(), before.len());
            prop_assert!(before.values().all(|name| is_legal(name)), "{:?}", before);
        }
    }
}
