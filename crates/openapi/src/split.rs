//! Split documents: files inside one root folder, put together under one root so that every reference is local.
//!
//! Each file that is reached stands as one tree under a key of its own, and references are rewritten to pointers into
//! it. This room reads no file: what a path holds is asked of [`Sources`], with paths that cannot leave the folder. A
//! reference to anything else stays as it is, and blocks the operations that need it (spec rule BASE-22).

use std::collections::{BTreeMap, HashMap, VecDeque};

use model::{Object, Value};

use crate::blocker::{Blocker, BlockerCause};
use crate::document::DocumentLimits;
use crate::pointer::Pointer;
use crate::swagger::fragment;
use crate::text;
use crate::trace::Trace;

/// Where the other files stand in the tree.
const FILES_KEY: &str = "x-tollhouse-files";
/// Files of one document. A large public document has about 3,000.
const FILES_MAX: usize = 10_000;
/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// The other files of a document, by paths relative to the folder of the document.
pub trait Sources {
    /// The bytes of a file. `path`: steps with `/` between them; none of them empty, `.` or `..`; no backslash, no
    /// control character. `None` where there is no such file, or it must not be read; symbolic links that lead out of
    /// the folder must not be followed.
    fn file(&self, path: &str) -> Option<Vec<u8>>;
}

/// A document that stands alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn file(&self, _path: &str) -> Option<Vec<u8>> {
        None
    }
}

impl Sources for BTreeMap<String, Vec<u8>> {
    fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.get(path).cloned()
    }
}

/// What came of putting a document together.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) trace: Trace,
    /// Files that were found and cannot be read.
    pub(crate) unreadable: Vec<Blocker>,
    /// The files that are part of the document now, with their bytes, in the order of their paths.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// Brings every file that the tree reaches into the tree. `own`: the path of the document itself.
pub(crate) fn bundle(root: &mut Value, own: &str, sources: &dyn Sources, limits: &DocumentLimits) -> Bundle {
    let mut bundler = Bundler {
        own,
        sources,
        limits,
        bytes_left: limits.bytes_max,
        known: HashMap::new(),
        queue: VecDeque::new(),
        bundle: Bundle::default(),
    };
    if let Some(object) = root.as_object_mut() {
        // References into it would else reach what only this step may put there.
        object.shift_remove(FILES_KEY);
    }
    bundler.rewrite(root, own);
    let mut files = Object::new();
    while let Some((path, mut tree)) = bundler.queue.pop_front() {
        bundler.rewrite(&mut tree, &path);
        let place = Pointer::root().child(FILES_KEY).child(&path);
        bundler.bundle.trace.moved(&place, &format!("{path}#"));
        files.insert(path, tree);
    }
    if let Some(object) = root.as_object_mut().filter(|_| !files.is_empty()) {
        object.insert(FILES_KEY.to_owned(), Value::Object(files));
    }
    bundler.bundle
}

struct Bundler<'s> {
    own: &'s str,
    sources: &'s dyn Sources,
    limits: &'s DocumentLimits,
    bytes_left: usize,
    /// Whether a path is part of the document.
    known: HashMap<String, bool>,
    queue: VecDeque<(String, Value)>,
    bundle: Bundle,
}

impl Bundler<'_> {
    /// Rewrites the references of the file at `home`.
    fn rewrite(&mut self, value: &mut Value, home: &str) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item, home)),
            Value::Object(object) => {
                for (key, value) in object.iter_mut() {
                    match value {
                        Value::String(text) if key == "$ref" => {
                            if let Some(local) = self.local(text, home) {
                                *text = local;
                            }
                        }
                        Value::Object(mapping) if key == "mapping" => {
                            for name in mapping.values_mut() {
                                let local = name.as_str().and_then(|text| self.local(text, home));
                                if let Some(local) = local {
                                    *name = Value::String(local);
                                }
                            }
                            mapping.values_mut().for_each(|value| self.rewrite(value, home));
                        }
                        value => self.rewrite(value, home),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The reference within the tree. `None` where it stays as it is.
    fn local(&mut self, reference: &str, home: &str) -> Option<String> {
        let (file, place) = reference.split_once('#').unwrap_or((reference, ""));
        if file.is_empty() {
            return (home != self.own && reference.starts_with('#')).then(|| reference_into(home, place));
        }
        let path = resolve(home, file)?;
        if path == self.own {
            return Some(format!("#{place}"));
        }
        self.is_part(&path).then(|| reference_into(&path, place))
    }

    fn is_part(&mut self, path: &str) -> bool {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let part = self.load(path);
        self.known.insert(path.to_owned(), part);
        part
    }

    fn load(&mut self, path: &str) -> bool {
        if self.known.len() >= FILES_MAX {
            return false;
        }
        let Some(bytes) = self.sources.file(path) else {
            return false;
        };
        let limits = DocumentLimits {
            bytes_max: self.bytes_left,
            ..*self.limits
        };
        match text::read(&bytes, &limits) {
            Ok(tree) => {
                self.bytes_left = self.bytes_left.saturating_sub(bytes.len());
                self.queue.push_back((path.to_owned(), tree));
                self.bundle.files.insert(path.to_owned(), bytes);
                true
            }
            Err(fault) => {
                self.bundle.unreadable.push(Blocker {
                    pointer: format!("{}#", text::excerpt(path)),
                    cause: BlockerCause::ReferenceExternal,
                    text: fault.to_string(),
                    clears: "correct the file".to_owned(),
                });
                false
            }
        }
    }
}

fn reference_into(path: &str, place: &str) -> String {
    let file = Pointer::root().child(FILES_KEY).child(path);
    format!("{}{place}", fragment(file.as_str()))
}

/// The path that a reference of the file at `home` names. `None` where it is no path inside the folder.
fn resolve(home: &str, file: &str) -> Option<String> {
    let file = percent_encoding::percent_decode_str(file).decode_utf8().ok()?;
    let is_plain = !file.starts_with('/')
        && !file.contains([':', '\\', '?'])
        && !file.chars().any(char::is_control)
        && file.len() <= PATH_BYTES_MAX;
    if !is_plain {
        return None;
    }
    let folder = home.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut steps: Vec<&str> = folder.split('/').filter(|step| !step.is_empty()).collect();
    for step in file.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop()?;
            }
            step => steps.push(step),
        }
    }
    let path = steps.join("/");
    (!path.is_empty() && path.len() <= PATH_BYTES_MAX).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside_the_folder_or_is_none() {
        for (home, file, path) in [
            ("", "a.yaml", Some("a.yaml")),
            ("", "./x/../a.yaml", Some("a.yaml")),
            ("x/y.yaml", "../a.yaml", Some("a.yaml")),
            ("x/y.yaml", "z/a%20b.yaml", Some("x/z/a b.yaml")),
            ("x/y.yaml", "../../a.yaml", None),
            ("", "../../etc/passwd", None),
            ("", "%2e%2e/a.yaml", None),
            ("", "/etc/passwd", None),
            ("", "//host/a.yaml", None),
            ("", "http://host/a.yaml", None),
            ("", "file:a.yaml", None),
            ("", "C:\\a.yaml", None),
            ("", "..\\a.yaml", None),
            ("", "a\n.yaml", None),
            ("", "a.yaml?x", None),
            ("", ".", None),
        ] {
            assert_eq!(resolve(home, file).as_deref(), path, "{home} {file}");
        }
    }
}
