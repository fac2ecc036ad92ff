//! A document: bytes that were read once, the version that they speak, and the operations in it.
//!
//! The tree stays raw. There is no typed model of OpenAPI: real documents are dirty, and a field that one operation
//! gets wrong must not take the others with it. Read next: `operation` for what is there, `tool` for what it becomes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use model::{Digest, Limits, Value};

use crate::blocker::Blocker;
use crate::inference::{self, Inference};
use crate::list::ToolList;
use crate::operation::{self, FindFault, OperationRef};
use crate::overlay::{self, OverlayAction, OverlayFault};
use crate::reference::Resolver;
use crate::resolved::Closures;
use crate::schema::{self, Conversions};
use crate::security::{AccessRow, Means, Security};
use crate::server::{Destination, Server, ServerChoice, ServerFault};
use crate::split::{self, Absences, NoSources, Sources};
use crate::swagger;
use crate::tag::Tag;
use crate::text::{self, Notation};
use crate::tool::{self, Generated, ToolOptions};
use crate::trace::Trace;
use crate::written;

/// How large a document may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The longest text, in bytes.
    pub bytes_max: usize,
    /// The deepest nesting of arrays and objects; a scalar has depth 0. JSON is read to 120 at most, YAML to 48.
    pub depth_max: usize,
    /// Values in the tree, with what YAML aliases add to it.
    pub nodes_max: usize,
    /// Other files of one document. A large public document has about 3,000.
    pub files_max: usize,
}

/// Operations in one document. The largest public document has about 11,000.
const OPERATIONS_MAX: usize = 50_000;

impl From<&Limits> for DocumentLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            bytes_max: limits.document_bytes_max,
            files_max: limits.document_files_max,
            ..Self::default()
        }
    }
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            bytes_max: Limits::default().document_bytes_max,
            depth_max: 64,
            nodes_max: 4_000_000,
            files_max: Limits::default().document_files_max,
        }
    }
}

/// Why bytes are no document that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentFault {
    /// Too long.
    #[error("the document has {length} bytes; at most {max} are read (`document_bytes_max`)")]
    Size {
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Not UTF-8.
    #[error("the document is not UTF-8 at byte {at}; save it as UTF-8")]
    Encoding {
        /// The first byte that does not fit.
        at: usize,
    },
    /// Not JSON, or not YAML.
    #[error("the document is not {notation}{}: {detail}", at(*line, *column))]
    Syntax {
        /// JSON where the text starts with `{`, else YAML.
        notation: Notation,
        /// The line, counted from 1; 0 where it is not known.
        line: u64,
        /// The column, counted from 1; 0 where it is not known.
        column: u64,
        /// What the reader says.
        detail: String,
    },
    /// An object that says a key twice.
    #[error("the key `{key}` stands twice in one object, the second time{}; remove one", at(*line, *column))]
    DuplicateKey {
        /// The key, as a text: `200` and `'200'` are one key.
        key: String,
        /// The line of the second; 0 where it is not known.
        line: u64,
        /// The column of the second; 0 where it is not known.
        column: u64,
    },
    /// Too many arrays and objects inside each other.
    #[error("the document is nested deeper than {max} at line {line}")]
    Depth {
        /// The limit.
        max: usize,
        /// The line where it is passed.
        line: u64,
    },
    /// Too many values.
    #[error("the document holds more than {max} values at line {line}")]
    Nodes {
        /// The limit.
        max: usize,
        /// The line where it is passed.
        line: u64,
    },
    /// YAML aliases that add up to too much.
    #[error(
        "the YAML aliases of the document expand too far at line {line}; write the values out, or use `$ref`"
    )]
    Aliases {
        /// The line where the limit is passed.
        line: u64,
    },
    /// Too many operations.
    #[error("the document has more than {max} operations; split it")]
    Operations {
        /// The limit.
        max: usize,
    },
    /// Not an object, or one without a version.
    #[error("the document has no `openapi` member; an OpenAPI document starts with `openapi: 3.1.0`")]
    NoVersion,
    /// An overlay that cannot be applied.
    #[error("overlay {number}: {fault}")]
    Overlay {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong.
        fault: OverlayFault,
    },
    /// A version that is not read.
    #[error(
        "the document says `{field}: {found}`; versions 2.0, 3.0, 3.1 and 3.2 are read, so convert it to one of them"
    )]
    Version {
        /// `openapi` or `swagger`.
        field: &'static str,
        /// What it says.
        found: String,
    },
}

/// A place in the text, where it is known.
fn at(line: u64, column: u64) -> String {
    match line {
        0 => " at an unknown place".to_owned(),
        _ => format!(" at line {line}, column {column}"),
    }
}

/// The version family. It decides what stands beside a `$ref`; other differences are dealt with keyword by keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Also 2.0, once it is upgraded.
    V30,
    V31,
    /// Reads as 3.1, with more methods and places.
    V32,
}

/// What is read beside the document itself.
#[derive(Clone, Copy)]
pub struct Reading<'r> {
    /// How large it may be, all files together.
    pub limits: DocumentLimits,
    /// The path of the document itself in the folder of its files, as `spec/api.yaml`; empty where it has no files.
    pub path: &'r str,
    /// The other files of a split document.
    pub sources: &'r dyn Sources,
    /// Overlays, applied in this order to the document itself before its references are followed.
    pub overlays: &'r [&'r [u8]],
}

impl Default for Reading<'_> {
    fn default() -> Self {
        Self {
            limits: DocumentLimits::default(),
            path: "",
            sources: &NoSources,
            overlays: &[],
        }
    }
}

/// A document that was read.
///
/// ```
/// use openapi::{Document, DocumentLimits, ToolOptions};
/// let text = br#"{"openapi": "3.1.0", "info": {"title": "Billing", "version": "1"}, "paths": {
///   "/invoices/{id}": {"get": {"operationId": "getInvoice", "parameters": [
///     {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}}}"#;
/// let document = Document::read(text, &DocumentLimits::default())?;
/// let operation = document.find("getInvoice")?;
/// let tool = document.tool(&operation, &ToolOptions::default()).map_err(|blockers| blockers[0].clone())?;
/// let arguments = serde_json::json!({"id": "a/b"});
/// let request = tool.plan.build(arguments.as_object().unwrap(), &Default::default())?;
/// assert_eq!((request.method, request.path_and_query.as_str()), ("GET", "/invoices/a%2Fb"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Document {
    root: Value,
    digest: Digest,
    version: String,
    family: Family,
    operations: Vec<OperationRef>,
    unreadable: Vec<Blocker>,
    overlaid: Vec<OverlayAction>,
    files: Vec<String>,
    absent: Absences,
    /// The rewritings that made the tree, in the order in which they were done.
    traces: Vec<Trace>,
    closures: Mutex<Closures>,
    /// Whether patterns can be matched in linear time. Real documents repeat a few on thousands of operations.
    patterns: Mutex<HashMap<String, bool>>,
    /// Whether names of fields are sensitive. They repeat as often.
    sensitive: Mutex<HashMap<String, bool>>,
    conversions: Mutex<Conversions>,
    /// Whether anything in it is `writeOnly`.
    write_only: OnceLock<bool>,
}

impl Document {
    /// Reads a document in JSON or YAML; a text that starts with `{` is JSON. Nothing is fetched.
    ///
    /// `bytes`: UTF-8, with or without a byte order mark, at most `limits.bytes_max`.
    /// YAML is read as version 1.2: `no` and `on` are words. Merge keys are applied, aliases within a budget.
    ///
    /// # Errors
    /// [`DocumentFault`]: what is no text of one document, a key that stands twice, a limit that is passed, a version
    /// other than 2.0, 3.0.x, 3.1.x and 3.2.x. What is wrong inside an operation is no fault of the document.
    ///
    /// Source: OpenAPI 3.1.1 section 4.3 (format), section 4.1 (versions).
    pub fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<Self, DocumentFault> {
        Self::read_with(
            bytes,
            &Reading {
                limits: *limits,
                ..Reading::default()
            },
        )
    }

    /// Reads a document with its overlays and its other files.
    ///
    /// # Errors
    /// As [`Self::read`], and an overlay that cannot be applied. A file that is missing or cannot be read is no fault
    /// of the document: it blocks the operations that need it, and [`Self::unreadable`] says why.
    pub fn read_with(bytes: &[u8], reading: &Reading<'_>) -> Result<Self, DocumentFault> {
        let limits = &reading.limits;
        let mut root = text::read(bytes, limits)?;
        let mut overlaid = Vec::new();
        for (index, overlay) in reading.overlays.iter().enumerate() {
            let done = overlay::apply(&mut root, index, overlay, limits).map_err(|fault| {
                DocumentFault::Overlay {
                    number: index + 1,
                    fault,
                }
            })?;
            overlaid.extend(done);
        }
        let (version, family) = version(&root, bytes)?;
        let bundle = split::bundle(&mut root, reading.path, reading.sources, limits);
        let mut traces = vec![bundle.trace];
        if version == SWAGGER {
            let (view, trace) = swagger::upgrade(&root, limits.nodes_max).ok_or(DocumentFault::Nodes {
                max: limits.nodes_max,
                line: 0,
            })?;
            root = view;
            traces.push(trace);
        }
        let found = operation::enumerate(Resolver::knowing(&root, &bundle.absent), family, OPERATIONS_MAX);
        if found.overflow {
            return Err(DocumentFault::Operations { max: OPERATIONS_MAX });
        }
        let mut document = Self {
            digest: digest(bytes, reading.overlays, &bundle.files),
            version,
            family,
            operations: found.operations,
            unreadable: found.unreadable,
            overlaid,
            files: bundle.files.into_keys().collect(),
            absent: bundle.absent,
            traces,
            closures: Mutex::default(),
            patterns: Mutex::default(),
            sensitive: Mutex::default(),
            conversions: Mutex::default(),
            write_only: OnceLock::new(),
            root,
        };
        let mut unreadable = std::mem::take(&mut document.unreadable);
        unreadable
            .iter_mut()
            .for_each(|blocker| blocker.pointer = document.origin(&blocker.pointer));
        unreadable.extend(bundle.unreadable);
        document.unreadable = unreadable;
        Ok(document)
    }

    /// The whole document in the view that this room reads: after its overlays, with its files, and 2.0 as 3.0.
    #[must_use]
    pub const fn raw(&self) -> &Value {
        &self.root
    }

    /// Where a person wrote what stands at a place of [`Self::raw`]: a pointer into the document as its overlays leave
    /// it, or `paths/a.yaml#/get` for another file.
    #[must_use]
    pub fn origin(&self, pointer: &str) -> String {
        self.traces
            .iter()
            .rev()
            .fold(pointer.to_owned(), |place, trace| trace.before(&place))
    }

    /// What the overlays did, action by action.
    #[must_use]
    pub fn overlaid(&self) -> &[OverlayAction] {
        &self.overlaid
    }

    /// The other files that are part of the document, in the order of their paths.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The digest of the bytes that were read: of the document, and of its overlays and files where it has some.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// What the document says under `openapi`, as `3.0.3`, or under `swagger`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the document says under `info.title`.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.root.get("info")?.get("title")?.as_str()
    }

    /// Every operation under `paths`, raw, in the order of the document, also those that cannot become tools.
    ///
    /// Callbacks and webhooks are not operations of this service and are not counted.
    pub fn operations(&self) -> impl Iterator<Item = OperationRef> {
        self.operations.iter().cloned()
    }

    /// Path items that could not be looked into, so that operations may be missing in [`Self::operations`], and other
    /// files that could not be read.
    #[must_use]
    pub fn unreadable(&self) -> &[Blocker] {
        &self.unreadable
    }

    /// The operation that `key` names: an `operationId`, or method and path as `GET /invoices/{id}`.
    ///
    /// # Errors
    /// [`FindFault::Unknown`] with keys that are spelled alike; [`FindFault::Ambiguous`] with every place of an id
    /// that stands twice.
    pub fn find(&self, key: &str) -> Result<OperationRef, FindFault> {
        let mut found = operation::find(&self.operations, key);
        if let Err(FindFault::Ambiguous { pointers, .. }) = &mut found {
            for pointer in pointers {
                *pointer = self.origin(pointer);
            }
        }
        found
    }

    /// Makes a tool of an operation: its definition, and the plan by which a call becomes a request.
    ///
    /// The same document and options always give the same tool. Linear in what the operation reaches; bounded.
    ///
    /// # Errors
    /// Every blocker that was found, at most 32; never empty.
    pub fn tool(&self, operation: &OperationRef, options: &ToolOptions) -> Result<Generated, Vec<Blocker>> {
        let mut made = tool::generate(self, operation, options);
        match &mut made {
            Ok(tool) => tool
                .notes
                .iter_mut()
                .for_each(|note| note.pointer = self.origin(&note.pointer)),
            Err(blockers) => blockers
                .iter_mut()
                .for_each(|blocker| blocker.pointer = self.origin(&blocker.pointer)),
        }
        made
    }

    /// The digest of everything in the document that an operation depends on: what a pin covers.
    ///
    /// It does not change with what cannot reach the operation, nor with the order of keys.
    ///
    /// # Errors
    /// The blocker of an operation that refers to more than is looked at.
    pub fn operation_digest(&self, operation: &OperationRef) -> Result<Digest, Blocker> {
        tool::digest(self, operation).map_err(|mut blocker| {
            blocker.pointer = self.origin(&blocker.pointer);
            blocker
        })
    }

    /// Makes the tools of a list, each as small as it has to be for the list to have at most `bytes_max` bytes of JSON.
    ///
    /// A tool is not dropped and not blocked for the list: where even the smallest schemas are too large together,
    /// [`ToolList::fits`] says so. At most ten times the work of one list.
    #[must_use]
    pub fn tools_within(
        &self,
        operations: &[OperationRef],
        options: &ToolOptions,
        bytes_max: usize,
    ) -> ToolList {
        crate::list::within(self, operations, options, bytes_max)
    }

    /// The servers that the document names for an operation: its own, else those of its path, else the document's.
    ///
    /// For reports. The destination is the operator's and never the document's.
    #[must_use]
    pub fn servers(&self, operation: &OperationRef) -> Vec<Server> {
        crate::server::effective(self, operation)
    }

    /// The path of the server that the operator chose for an operation, as [`ToolOptions::base_path`] takes it.
    ///
    /// # Errors
    /// [`ServerFault`]: no such server, or a URL that is none once its variables are replaced.
    pub fn base_path(&self, operation: &OperationRef, choice: &ServerChoice) -> Result<String, ServerFault> {
        crate::server::base_path(self, operation, choice)
    }

    /// The security requirement that holds for an operation: its own, else the document's. For reports.
    #[must_use]
    pub fn security(&self, operation: &OperationRef) -> Security {
        crate::security::effective(self, operation)
    }

    /// What the document shows of the danger of an operation: evidence that can only raise a class. For reviewers.
    ///
    /// Bounded; linear in what is looked at.
    #[must_use]
    pub fn inference(&self, operation: &OperationRef) -> Inference {
        crate::inference::infer(self, operation)
    }

    /// Every security scheme that the document declares, by its name.
    #[must_use]
    pub fn security_schemes(&self) -> Vec<(String, Means)> {
        crate::security::schemes(self.resolver())
    }

    /// The table of access: for each operation what is required, and what a reviewer should look at.
    #[must_use]
    pub fn access(&self) -> Vec<AccessRow> {
        crate::security::table(self)
    }

    /// The places that the document would send requests to, most used first. For an operator to approve.
    #[must_use]
    pub fn destinations(&self) -> Vec<Destination> {
        crate::server::destinations(self)
    }

    /// The tags that the document declares.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        crate::tag::declared(self)
    }

    /// The names of an operation's tags, each followed by those that it is a part of.
    #[must_use]
    pub fn tags_of(&self, operation: &OperationRef) -> Vec<String> {
        crate::tag::of(self, operation)
    }

    pub(crate) const fn resolver(&self) -> Resolver<'_> {
        Resolver::knowing(&self.root, &self.absent)
    }

    /// Whether a pattern of the document can be matched in linear time.
    pub(crate) fn takes_pattern(&self, pattern: &str) -> bool {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = patterns.get(pattern) {
            return *known;
        }
        let fits = schema::compile(&serde_json::json!({ "pattern": pattern })).is_ok();
        patterns.insert(pattern.to_owned(), fits);
        fits
    }

    /// Whether a name of a field makes a reading sensitive.
    pub(crate) fn is_sensitive(&self, name: &str) -> bool {
        let mut known = self.sensitive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(name) {
            return *known;
        }
        let is_sensitive = inference::is_sensitive_name(name);
        known.insert(name.to_owned(), is_sensitive);
        is_sensitive
    }

    /// Schemas that were converted before.
    pub(crate) fn conversions(&self) -> MutexGuard<'_, Conversions> {
        self.conversions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_write_only(&self) -> bool {
        *self.write_only.get_or_init(|| written::is_in(&self.root))
    }

    pub(crate) fn closures(&self) -> MutexGuard<'_, Closures> {
        // What was noted before a panic elsewhere is still true.
        self.closures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn family(&self) -> Family {
        self.family
    }
}

/// The one version of Swagger that is read.
const SWAGGER: &str = "2.0";

fn version(root: &Value, bytes: &[u8]) -> Result<(String, Family), DocumentFault> {
    let scalar = |field: &str| match root.get(field)? {
        Value::String(text) => Some(text.clone()),
        // YAML reads an unquoted `3.0` as a number, and `3.10` as the same one as `3.1`.
        Value::Number(number) => {
            Some(text::scalar_as_written(bytes, field).unwrap_or_else(|| number.to_string()))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Some("?".to_owned()),
    };
    if let Some(found) = scalar("swagger") {
        // A document that says both is one or the other, and nobody knows which.
        if found == SWAGGER && root.get("openapi").is_none() {
            return Ok((found, Family::V30));
        }
        return Err(DocumentFault::Version {
            field: "swagger",
            found: text::excerpt(&found),
        });
    }
    let found = scalar("openapi").ok_or(DocumentFault::NoVersion)?;
    let family = [("3.0", Family::V30), ("3.1", Family::V31), ("3.2", Family::V32)]
        .into_iter()
        .find(|(prefix, _)| {
            found.strip_prefix(prefix).is_some_and(|patch| {
                patch.is_empty()
                    || patch.strip_prefix('.').is_some_and(|patch| {
                        patch.len() <= 20
                            && patch.starts_with(|first: char| first.is_ascii_digit())
                            && patch
                                .chars()
                                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
                    })
            })
        })
        .map(|(_, family)| family);
    match family {
        Some(family) => Ok((found, family)),
        None => Err(DocumentFault::Version {
            field: "openapi",
            found: text::excerpt(&found),
        }),
    }
}

/// A document without overlays and files has the digest of its bytes, so that adding neither changes no pin.
fn digest(bytes: &[u8], overlays: &[&[u8]], files: &BTreeMap<String, Vec<u8>>) -> Digest {
    let own = Digest::of("openapi-document-v1", &[bytes]);
    if overlays.is_empty() && files.is_empty() {
        return own;
    }
    let mut lines = format!("{own}\n");
    for overlay in overlays {
        lines.push_str(&format!(
            "overlay {}\n",
            Digest::of("openapi-overlay-v1", &[overlay])
        ));
    }
    for (path, bytes) in files {
        let digest = Digest::of("openapi-file-v1", &[path.as_bytes(), b"\0", bytes]);
        lines.push_str(&format!("file {digest}\n"));
    }
    Digest::of("openapi-bundle-v1", &[lines.as_bytes()])
}
