//! Split documents: files inside one root folder, put together under one root so that every reference is local.
//!
//! Each file that is reached stands as one tree under a key of its own, and references are rewritten to pointers into
//! it. This room reads no file and opens no connection: what a path or a URL holds is asked of [`Sources`], with paths
//! that cannot leave the folder. What [`Sources`] does not give stays as it is, and blocks the operations that need it
//! with the reason that was said (spec rule BASE-22).

use std::collections::{BTreeMap, HashMap, VecDeque};

use model::{Object, Value};
use url::Url;

use crate::blocker::{Blocker, BlockerCause};
use crate::document::DocumentLimits;
use crate::pointer::Pointer;
use crate::swagger::fragment;
use crate::text;
use crate::trace::Trace;

/// Where the other files stand in the tree.
const FILES_KEY: &str = "x-tollhouse-files";
/// Files whose absence is explained. Beyond them, a blocker says only that the reference leads out.
const ABSENCES_MAX: usize = 10_000;
/// The longest path or URL, in bytes.
const PATH_BYTES_MAX: usize = 1_024;

/// The other files of a document, by paths relative to their root folder, and by URLs.
pub trait Sources {
    /// The bytes of a file. `path`: steps with `/` between them; none of them empty, `.` or `..`; no backslash, no
    /// control character. Symbolic links must not be followed.
    ///
    /// # Errors
    /// [`Absent`] where there is no such file, or it must not be read.
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent>;

    /// The bytes behind a URL. `url`: `http` or `https`, without user, password and fragment.
    ///
    /// # Errors
    /// [`Absent`] where it is not allowed or could not be fetched. Nothing is allowed unless this says so.
    fn remote(&self, _url: &str) -> Result<Vec<u8>, Absent> {
        Err(Absent {
            text: "references to other servers are not followed".to_owned(),
            clears: "bundle the document, so that every reference starts with `#/`".to_owned(),
        })
    }
}

/// Why a file is not part of a document, for the blockers of the operations that need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The cause, as the end of a sentence: "there is no such file".
    pub text: String,
    /// What would clear it.
    pub clears: String,
}

impl Absent {
    fn new(text: impl Into<String>, clears: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            clears: clears.into(),
        }
    }

    fn missing() -> Self {
        Self::new(
            "there is no such file",
            "add the file, or bundle the document, so that every reference starts with `#/`",
        )
    }
}

/// A document that stands alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn file(&self, _path: &str) -> Result<Vec<u8>, Absent> {
        Err(Absent::new(
            "this document is read alone",
            "bundle the document, so that every reference starts with `#/`",
        ))
    }
}

impl Sources for BTreeMap<String, Vec<u8>> {
    fn file(&self, path: &str) -> Result<Vec<u8>, Absent> {
        self.get(path).cloned().ok_or_else(Absent::missing)
    }

    fn remote(&self, url: &str) -> Result<Vec<u8>, Absent> {
        self.get(url).cloned().ok_or_else(Absent::missing)
    }
}

/// Why references to other files lead nowhere, by the file that they name, as they name it.
pub(crate) type Absences = BTreeMap<String, Absent>;

/// What came of putting a document together.
#[derive(Debug, Default)]
pub(crate) struct Bundle {
    pub(crate) trace: Trace,
    /// Files that were found and cannot be read.
    pub(crate) unreadable: Vec<Blocker>,
    /// The files that are part of the document now, with their bytes, in the order of their paths.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) absent: Absences,
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
    /// Paths and URLs that were asked for, and why those that are not part of the document are not.
    known: HashMap<String, Option<Absent>>,
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
        let Some(home) = resolve(home, file) else {
            self.absent(
                file,
                Absent::new(
                    "it leads out of the root folder",
                    "name a file inside the root folder, or bundle the document",
                ),
            );
            return None;
        };
        if home.key() == self.own {
            return Some(format!("#{place}"));
        }
        match self.absence(&home) {
            None => Some(reference_into(home.key(), place)),
            Some(absent) => {
                self.absent(file, absent);
                None
            }
        }
    }

    fn absent(&mut self, file: &str, absent: Absent) {
        if self.bundle.absent.len() < ABSENCES_MAX {
            self.bundle.absent.insert(file.to_owned(), absent);
        }
    }

    /// Why a file is not part of the document; `None` where it is.
    fn absence(&mut self, home: &Home) -> Option<Absent> {
        if let Some(known) = self.known.get(home.key()) {
            return known.clone();
        }
        let absent = self.load(home).err();
        self.known.insert(home.key().to_owned(), absent.clone());
        absent
    }

    fn load(&mut self, home: &Home) -> Result<(), Absent> {
        let path = home.key();
        if self.known.len() >= self.limits.files_max {
            return Err(Absent::new(
                format!("a document may have {} other files", self.limits.files_max),
                "raise `limits.document_files_max`, or bundle the document",
            ));
        }
        let bytes = match home {
            Home::File(path) => self.sources.file(path)?,
            Home::Remote(url) => self.sources.remote(url)?,
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
                Ok(())
            }
            Err(fault) => {
                self.bundle.unreadable.push(Blocker {
                    pointer: format!("{}#", text::excerpt(path)),
                    cause: BlockerCause::ReferenceExternal,
                    text: fault.to_string(),
                    clears: "correct the file".to_owned(),
                    argument: None,
                });
                Err(Absent::new(fault.to_string(), "correct the file"))
            }
        }
    }
}

fn reference_into(path: &str, place: &str) -> String {
    let file = Pointer::root().child(FILES_KEY).child(path);
    format!("{}{place}", fragment(file.as_str()))
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Home {
    /// A path inside the root folder.
    File(String),
    /// A URL.
    Remote(String),
}

impl Home {
    /// The key of the file in the tree. A path has no colon, so it is never a URL.
    fn key(&self) -> &str {
        match self {
            Self::File(path) => path,
            Self::Remote(url) => url,
        }
    }
}

/// The file that a reference of the file at `home` names. `None` where it is neither inside the folder nor on a server.
///
/// What a server gave can name other files of servers only.
fn resolve(home: &str, file: &str) -> Option<Home> {
    if is_url(home) {
        return remote(Url::parse(home).ok()?.join(file).ok()?);
    }
    if is_url(file) {
        return remote(Url::parse(file).ok()?);
    }
    inside(home, file).map(Home::File)
}

fn is_url(text: &str) -> bool {
    let start = |scheme: &str| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    start("http://") || start("https://")
}

fn remote(mut url: Url) -> Option<Home> {
    url.set_fragment(None);
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.as_str().len() <= PATH_BYTES_MAX;
    is_plain.then(|| Home::Remote(url.into()))
}

/// The path that a reference names. `None` where it is no path inside the folder.
fn inside(home: &str, file: &str) -> Option<String> {
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
            assert_eq!(inside(home, file).as_deref(), path, "{home} {file}");
        }
    }

    #[test]
    fn a_url_is_a_url_and_what_a_server_gave_leads_to_servers_only() {
        let far = "https://s.example/a/b.yaml";
        for (home, file, url) in [
            ("", "https://s.example/x.yaml", Some("https://s.example/x.yaml")),
            (
                "a.yaml",
                "HTTP://s.example/x.yaml",
                Some("http://s.example/x.yaml"),
            ),
            ("", "https://u:p@s.example/x.yaml", None),
            ("", "https://u@s.example/x.yaml", None),
            ("", "https://", None),
            (far, "c.yaml", Some("https://s.example/a/c.yaml")),
            (far, "../../../c.yaml", Some("https://s.example/c.yaml")),
            (far, "/etc/passwd", Some("https://s.example/etc/passwd")),
            (far, "//t.example/c.yaml", Some("https://t.example/c.yaml")),
            (far, "file:///etc/passwd", None),
            (far, "data:text/plain,x", None),
        ] {
            let expected = url.map(|url| Home::Remote(url.to_owned()));
            assert_eq!(resolve(home, file), expected, "{home} {file}");
        }
        for file in ["file:///etc/passwd", "ftp://s.example/x", "data:text/plain,x"] {
            assert_eq!(resolve("", file), None, "{file}");
        }
        let long = format!("https://s.example/{}", "x".repeat(PATH_BYTES_MAX - 18));
        assert!(resolve("", &long).is_some());
        assert_eq!(resolve("", &format!("{long}x")), None);
    }
}
