//! A second, dumb counter: how many operations the bytes of a document hold, found without the reader that makes tools.
//!
//! It knows keys and nesting and nothing else: no types, no schemas, no versions but `query` of 3.2. What it finds is
//! held against what was read, so that an operation that a reader loses is noticed. It counts; it explains nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::outline::Outline;

/// The keys of a path item that are methods.
const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];
/// References that are followed from one path item.
const HOPS_MAX: usize = 16;

/// What the counter found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// So many operations.
    Operations(usize),
    /// It cannot tell, and why.
    Unknown(String),
}

/// Counts the operations in the bytes of a document. `files`: the other files of a split document, by their paths in
/// its folder, and `path` that of the document itself.
///
/// Linear in the bytes; at most eight levels of nesting are kept.
#[must_use]
pub fn count(bytes: &[u8], path: &str, files: &BTreeMap<String, Vec<u8>>) -> Count {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Count::Unknown("the document is not UTF-8".to_owned());
    };
    let mut counter = Counter {
        outlines: BTreeMap::from([(path.to_owned(), Outline::read(text))]),
        files,
        own: path.to_owned(),
    };
    counter.count()
}

struct Counter<'f> {
    outlines: BTreeMap<String, Outline>,
    files: &'f BTreeMap<String, Vec<u8>>,
    own: String,
}

impl Counter<'_> {
    fn count(&mut self) -> Count {
        let own = self.own.clone();
        let Some(outline) = self.outlines.get(&own) else {
            return Count::Unknown("nothing was read".to_owned());
        };
        let is_32 = outline
            .value(&["openapi"])
            .is_some_and(|version| version.starts_with("3.2"));
        let paths: Vec<String> = outline
            .keys(&["paths"])
            .into_iter()
            .filter(|path| !path.starts_with("x-"))
            .collect();
        let mut operations = 0;
        for path in paths {
            let mut found = BTreeSet::new();
            if let Err(why) = self.collect(&own, &["paths".to_owned(), path], is_32, &mut found) {
                return Count::Unknown(why);
            }
            operations += found.len();
        }
        Count::Operations(operations)
    }

    /// The methods of a path item and of those that it refers to.
    fn collect(
        &mut self,
        file: &str,
        place: &[String],
        is_32: bool,
        found: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let (mut file, mut place) = (file.to_owned(), place.to_vec());
        for _ in 0..HOPS_MAX {
            let Some(outline) = self.outlines.get(&file) else {
                return Err(format!("`{file}` was not read"));
            };
            let at: Vec<&str> = place.iter().map(String::as_str).collect();
            let keys = outline.keys(&at);
            for key in &keys {
                if METHODS.contains(&key.as_str()) || is_32 && key == "query" {
                    found.insert(key.clone());
                }
                if is_32 && key == "additionalOperations" {
                    let mut inner = at.clone();
                    inner.push(key);
                    found.extend(outline.keys(&inner).into_iter().map(|name| format!("+{name}")));
                }
            }
            if !keys.iter().any(|key| key == "$ref") {
                return Ok(());
            }
            let mut inner = at.clone();
            inner.push("$ref");
            let Some(reference) = outline.value(&inner) else {
                return Ok(());
            };
            let Some((next, steps)) = target(&file, reference) else {
                return Err(format!("the path item `{reference}` is not among the files"));
            };
            if !self.outlines.contains_key(&next) {
                let Some(text) = self
                    .files
                    .get(&next)
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                else {
                    // What is not there holds no operation that anybody could count.
                    return Ok(());
                };
                self.outlines.insert(next.clone(), Outline::read(text));
            }
            (file, place) = (next, steps);
        }
        Ok(())
    }
}

/// The file and the steps that a reference names. `None` for one that leads out.
fn target(file: &str, reference: &str) -> Option<(String, Vec<String>)> {
    let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    if name.contains("://") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    if name.is_empty() {
        parts.extend(file.split('/'));
    } else {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        for part in folder.split('/').chain(name.split('/')) {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
    }
    let steps = fragment
        .split('/')
        .skip(1)
        .map(|step| percent(step).replace("~1", "/").replace("~0", "~"))
        .collect();
    Some((parts.join("/"), steps))
}

fn percent(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Count {
        count(text.as_bytes(), "", &BTreeMap::new())
    }

    #[test]
    fn operations_are_counted_in_every_notation() {
        for (text, expected) in [
            (
                r#"{"openapi":"3.1.0","paths":{"/a":{"get":{},"post":{"get":{}},"parameters":[{"get":1}]},"/b":{"delete":null},"x-c":{"get":{}}}}"#,
                3,
            ),
            (
                "{ \"paths\" : { \"/a\\u002f\" : { \"get\" : \"}\\\"{\" } } , \"webhooks\":{\"x\":{\"post\":{}}}}",
                1,
            ),
            (
                "openapi: 3.0.0\npaths:\n  /a:\n    get:\n      summary: x\n    post: {}\n  '/b':\n    \"put\":\n      a: 1\n",
                3,
            ),
            (
                "paths:\n  /a:\n    parameters:\n    - name: get\n      get: 1\n    get:\n      description: |\n        paths:\n          /x:\n            get:\n      x: >-\n        delete:\n    patch:\n",
                2,
            ),
            (
                "paths:\n  /a: {get: {operationId: a, x: 'it''s }'}, post: {responses: {200: {description: ok}}}}\n  /b:\n    {\n      get: {},\n    }\n",
                3,
            ),
            (
                "paths:\n  # get:\n  /a: # a comment\n    get: # another\n      description: \"two\n        delete:\n        lines\"\n    head:\n",
                2,
            ),
            (
                "x-common: &common\n  get: {}\n  post: {}\npaths:\n  /a: *common\n  /b:\n    <<: *common\n    put: {}\n",
                5,
            ),
            (
                "openapi: 3.2.0\npaths:\n  /f:\n    query: {}\n    additionalOperations:\n      PURGE: {}\n      LINK: {}\n    get: {}\n",
                4,
            ),
            (
                "openapi: 3.1.0\npaths:\n  /f:\n    query: {}\n    additionalOperations: {PURGE: {}}\n",
                0,
            ),
            ("paths: {}\n", 0),
            ("", 0),
            ("nothing", 0),
            ("paths:\n  /a:\n    Get: {}\n    GET: {}\n", 0),
            (
                "%YAML 1.2\n---\npaths:\n    /a:\n        get:\n            tags:\n            - post:\n            -\n              put: 1\n",
                1,
            ),
        ] {
            assert_eq!(counted(text), Count::Operations(expected), "{text}");
        }
    }

    #[test]
    fn references_of_path_items_are_followed_and_what_is_nearer_wins() {
        let text = "paths:\n  /a:\n    $ref: '#/components/pathItems/P'\n    get: {}\n  /b: {$ref: '#/paths/~1a'}\n  /c:\n    $ref: 'paths/c.yaml#/items/x%20y'\n  /d:\n    $ref: paths/missing.yaml\ncomponents:\n  pathItems:\n    P:\n      get: {}\n      post: {}\n";
        let files = BTreeMap::from([(
            "spec/paths/c.yaml".to_owned(),
            b"items:\n  x y:\n    put: {}\n    delete: {}\n".to_vec(),
        )]);
        assert_eq!(
            count(text.as_bytes(), "spec/api.yaml", &files),
            Count::Operations(6)
        );
        let circle = "paths:\n  /a:\n    $ref: '#/paths/~1a'\n    get: {}\n";
        assert_eq!(counted(circle), Count::Operations(1));
        assert!(matches!(
            counted("paths:\n  /a:\n    $ref: https://x.example/a\n"),
            Count::Unknown(_)
        ));
        assert!(matches!(
            counted("paths:\n  /a:\n    $ref: ../a.yaml\n"),
            Count::Unknown(_)
        ));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_counted_without_a_panic(text in "[ \\n:{}\\[\\],'\"a-c#&*|>$/-]{0,200}") {
            let _ = counted(&format!("paths:\n{text}"));
            let _ = counted(&text);
        }
    }
}
