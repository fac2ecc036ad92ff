//! What the words of a document say about the danger of an operation: evidence, each with the place and the words that
//! it was found in.
//!
//! It only ever raises. A name, a method or a text can show that an operation changes state or reads something
//! sensitive; nothing in a document can show that it does not, so what has no evidence stays unknown and a GET proves
//! nothing. It decides nothing: what follows from the evidence is for configuration, catalogue and report.

mod field;
mod vocabulary;
mod word;

use std::collections::BTreeSet;

use model::{Class, Exclusion, Object, Value};
use serde::Serialize;

use crate::document::Document;
use crate::operation::{Method, OperationRef};
use crate::pointer::Pointer;
use crate::reference::Located;
use vocabulary::{CHANGES, CHANGES_IN_FRONT, DESTROYS, FOR_GOOD, READS};
use word::{Word, words};

/// Pieces of evidence that are kept for one operation. More would not help a reviewer.
const EVIDENCE_MAX: usize = 48;
/// How much of a text is read: a summary says in its first sentence what an operation does.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// What a document shows of one operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Inference {
    /// What was found, in the order in which it was looked for.
    pub evidence: Vec<Evidence>,
}

/// One thing in a document that shows something of an operation.
///
/// As JSON: `{"kind":"operation-id","says":{"class":"destructive"},"strength":"strong","pointer":"#/paths/~1a/get","quote":"Delete"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Where it was looked for.
    pub kind: EvidenceKind,
    /// What it shows.
    pub says: Shown,
    /// How much it proves.
    pub strength: Strength,
    /// The place in the document, as a person wrote it.
    pub pointer: String,
    /// The words that were found there.
    pub quote: String,
}

/// What evidence shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// It is of this class, at least.
    Class(Class),
    /// It is one of these, which are left out by default.
    Exclusion(Exclusion),
}

/// How much a piece of evidence proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// People use these words for other things, too.
    Weak,
    /// A standard or a plain name says it.
    Strong,
}

/// Where evidence was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// The method.
    Method,
    /// The `operationId`.
    OperationId,
    /// The path.
    Path,
    /// A tag.
    Tag,
    /// The summary or the description.
    Text,
    /// A parameter, or a field of the request body.
    Argument,
    /// A field of a successful answer.
    Answer,
    /// A media type.
    MediaType,
    /// An extension of a vendor.
    Extension,
    /// The name of a tool of an MCP server.
    Name,
    /// A hint of an MCP server.
    Hint,
}

impl Inference {
    /// The least class that the evidence allows; `None` where there is none, which proves nothing.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.class_where(|_| true)
    }

    /// The same for a tool that lets only chosen parts of the answer leave: what the rest of the answer holds does not
    /// count.
    #[must_use]
    pub fn class_without_answer(&self) -> Option<Class> {
        self.class_where(|evidence| evidence.kind != EvidenceKind::Answer)
    }

    fn class_where(&self, counts: impl Fn(&Evidence) -> bool) -> Option<Class> {
        self.evidence
            .iter()
            .filter(|evidence| counts(evidence))
            .filter_map(|evidence| match evidence.says {
                Shown::Class(class) => Some(class),
                Shown::Exclusion(_) => None,
            })
            .max()
    }

    /// What the operation is left out for by default. Everything that changes state is a mutation.
    #[must_use]
    pub fn exclusions(&self) -> BTreeSet<Exclusion> {
        let mut exclusions: BTreeSet<Exclusion> = self
            .evidence
            .iter()
            .filter_map(|evidence| match evidence.says {
                Shown::Exclusion(exclusion) => Some(exclusion),
                Shown::Class(_) => None,
            })
            .collect();
        if self.class().is_some_and(Class::changes_state) {
            exclusions.insert(Exclusion::Mutations);
        }
        exclusions
    }

    /// The strongest evidence for a class of at least `class`, the first of equals.
    #[must_use]
    pub fn best(&self, class: Class) -> Option<&Evidence> {
        self.strongest(|says| matches!(says, Shown::Class(shown) if shown >= class))
    }

    /// The strongest evidence for an exclusion, the first of equals.
    #[must_use]
    pub fn best_for(&self, exclusion: Exclusion) -> Option<&Evidence> {
        self.strongest(|says| match says {
            Shown::Exclusion(shown) => shown == exclusion,
            Shown::Class(class) => exclusion == Exclusion::Mutations && class.changes_state(),
        })
    }

    fn strongest(&self, shows: impl Fn(Shown) -> bool) -> Option<&Evidence> {
        self.evidence
            .iter()
            .rev()
            .filter(|evidence| shows(evidence.says))
            .max_by_key(|evidence| evidence.strength)
    }
}

/// Whether a name, or a path of names, is one of a field that makes a reading sensitive, as `$.account.iban`.
#[must_use]
pub fn is_sensitive_name(name: &str) -> bool {
    vocabulary::is_sensitive(&words(name))
}

/// Looks for evidence, in time linear in what is looked at, which is bounded.
pub(crate) fn infer(document: &Document, reference: &OperationRef) -> Inference {
    let resolver = document.resolver();
    let mut found = Found {
        document: Some(document),
        evidence: Vec::new(),
    };
    let method = reference.key().method();
    of_method(&mut found, reference, method);
    of_path(&mut found, reference, method);
    if let Some(operation) = resolver.at(reference.place.clone()) {
        if let Some(id) = reference.operation_id() {
            of_id(&mut found, id, &operation.pointer.child("operationId"));
        }
        of_tags(&mut found, &operation);
        of_texts(&mut found, &operation);
        of_extensions(&mut found, &operation);
        field::of_arguments(&mut found, document, reference, &operation);
        field::of_answers(&mut found, document, &operation);
    }
    Inference {
        evidence: found.evidence,
    }
}

/// Looks for evidence in the definition of a tool of an MCP server: in its name, and in its hints where they warn. A hint
/// that reassures shows nothing, because it is the server's own word (TOOL-09).
#[must_use]
pub fn infer_tool(definition: &Object) -> Inference {
    let mut found = Found {
        document: None,
        evidence: Vec::new(),
    };
    let root = Pointer::root();
    if let Some(name) = definition.get("name").and_then(Value::as_str) {
        of_name(&mut found, EvidenceKind::Name, name, &root.child("name"));
    }
    let hint = |key: &str| definition.get("annotations").and_then(|hints| hints.get(key));
    let at = |key: &str| root.child("annotations").child(key);
    let mut note = |key: &str, class: Class, quote: &str| {
        found.class(EvidenceKind::Hint, class, Strength::Strong, &at(key), quote);
    };
    // A tool that only reads cannot destroy, whatever the other hint says (the hints' own documentation).
    let reads = hint("readOnlyHint") == Some(&Value::Bool(true));
    if hint("destructiveHint") == Some(&Value::Bool(true)) && !reads {
        note("destructiveHint", Class::Destructive, "destructiveHint: true");
    }
    if hint("readOnlyHint") == Some(&Value::Bool(false)) {
        note("readOnlyHint", Class::Write, "readOnlyHint: false");
    }
    Inference {
        evidence: found.evidence,
    }
}

/// What was found so far. Bounded; one quote for one thing from one kind of place is enough.
struct Found<'d> {
    document: Option<&'d Document>,
    evidence: Vec<Evidence>,
}

impl Found<'_> {
    fn note(&mut self, kind: EvidenceKind, says: Shown, strength: Strength, pointer: &Pointer, quote: &str) {
        let is_known = self
            .evidence
            .iter()
            .any(|known| known.kind == kind && known.says == says && known.strength >= strength);
        if is_known || self.evidence.len() >= EVIDENCE_MAX {
            return;
        }
        self.evidence.push(Evidence {
            kind,
            says,
            strength,
            pointer: match self.document {
                Some(document) => document.origin(pointer.as_str()),
                None => pointer.as_str().to_owned(),
            },
            quote: crate::text::excerpt(quote),
        });
    }

    fn class(&mut self, kind: EvidenceKind, class: Class, strength: Strength, at: &Pointer, quote: &str) {
        self.note(kind, Shown::Class(class), strength, at, quote);
    }

    fn exclusion(
        &mut self,
        kind: EvidenceKind,
        what: Exclusion,
        strength: Strength,
        at: &Pointer,
        quote: &str,
    ) {
        self.note(kind, Shown::Exclusion(what), strength, at, quote);
        // Reading secrets, people or everything at once is never an ordinary reading.
        if matches!(what, Exclusion::Keys | Exclusion::Members | Exclusion::Exports) {
            self.note(kind, Shown::Class(Class::SensitiveRead), strength, at, quote);
        }
        if matches!(what, Exclusion::Execution | Exclusion::Impersonation) {
            self.note(kind, Shown::Class(Class::Write), strength, at, quote);
        }
    }
}

// === method, name and path ===

fn of_method(found: &mut Found<'_>, reference: &OperationRef, method: Method) {
    // RFC 9110 section 9.3: what a method that is not safe asks for is a change. POST can be a search all the same, and
    // an additional method can be anything.
    let (class, strength) = match method {
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::Query => return,
        Method::Delete => (Class::Destructive, Strength::Strong),
        Method::Put | Method::Patch => (Class::Write, Strength::Strong),
        Method::Post | Method::Additional => (Class::Write, Strength::Weak),
    };
    found.class(
        EvidenceKind::Method,
        class,
        strength,
        &reference.place,
        reference.method(),
    );
}

fn of_id(found: &mut Found<'_>, id: &str, at: &Pointer) {
    of_name(found, EvidenceKind::OperationId, id, at);
}

fn of_name(found: &mut Found<'_>, kind: EvidenceKind, id: &str, at: &Pointer) {
    let words = words(id);
    let own = own_words(id, &words);
    verbs(found, kind, own, at);
    names(found, kind, own, at);
    let lists = own
        .first()
        .is_some_and(|word| ["list", "search", "find", "browse", "export"].contains(&word.lower.as_str()));
    if lists
        && let Some(last) = own
            .last()
            .filter(|word| vocabulary::is_people(word) && word.singular != word.lower)
    {
        found.exclusion(kind, Exclusion::Members, Strength::Strong, at, last.raw);
    }
}

/// The words of an id without the method that a generator put in front: `GET_DeleteSnapshot`.
fn own_words<'w>(id: &str, words: &'w [Word<'w>]) -> &'w [Word<'w>] {
    let generated = id
        .split_once('_')
        .is_some_and(|(method, _)| ["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"].contains(&method));
    match words.split_first() {
        Some((_, rest)) if generated => rest,
        Some(_) | None => words,
    }
}

/// A verb counts at the front of a name, behind a namespace, and at its end where the front is no verb of reading:
/// `DeleteSnapshot`, `repos/create-fork`, `chat_delete`, but not `getDeleteStatus`.
fn verbs(found: &mut Found<'_>, kind: EvidenceKind, words: &[Word<'_>], at: &Pointer) {
    let Some(last) = words.len().checked_sub(1) else {
        return;
    };
    let opening = words.iter().rposition(|word| word.opens).unwrap_or(0);
    let reads = words
        .get(opening)
        .or_else(|| words.first())
        .is_some_and(|word| READS.contains(&word.lower.as_str()));
    for (index, word) in words.iter().enumerate() {
        let in_front = index == opening || index == 0 && opening == 0;
        if in_front {
            verb(found, kind, word, true, at);
        } else if index == last && !reads {
            verb(found, kind, word, false, at);
        }
    }
}

fn verb(found: &mut Found<'_>, kind: EvidenceKind, word: &Word<'_>, in_front: bool, at: &Pointer) {
    let is = |verbs: &[&str]| verbs.contains(&word.lower.as_str());
    if is(DESTROYS) {
        found.class(kind, Class::Destructive, Strength::Strong, at, word.raw);
    } else if is(CHANGES) {
        found.class(kind, Class::Write, Strength::Strong, at, word.raw);
    } else if in_front && is(CHANGES_IN_FRONT) {
        found.class(kind, Class::Write, Strength::Weak, at, word.raw);
    }
}

/// Names of things that are left out by default.
fn names(found: &mut Found<'_>, kind: EvidenceKind, words: &[Word<'_>], at: &Pointer) {
    for (exclusion, start, length) in vocabulary::named(words) {
        if exclusion == Exclusion::Keys && length == 1 && vocabulary::is_place_token(words, start) {
            continue;
        }
        let quote = words.get(start..start + length).unwrap_or_default();
        let quote: Vec<&str> = quote.iter().map(|word| word.raw).collect();
        let strength = if kind == EvidenceKind::Tag {
            Strength::Weak
        } else {
            Strength::Strong
        };
        found.exclusion(kind, exclusion, strength, at, &quote.join(" "));
    }
}

fn of_path(found: &mut Found<'_>, reference: &OperationRef, method: Method) {
    let path = reference.path().split('#').next().unwrap_or_default();
    let at = &reference.path_item;
    let segments: Vec<&str> = path
        .split('/')
        .map(|segment| segment.rsplit('}').next().unwrap_or(segment))
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in &segments {
        names(found, EvidenceKind::Path, &words(segment), at);
    }
    let Some(last) = segments.last() else { return };
    let last_words = words(last);
    // `/files/delete`, `/servers/{id}/reboot`, `/projects/{id}:undelete`: the end of a path is what is done.
    if let Some(word) = last_words.iter().rfind(|word| word.opens) {
        let is = |verbs: &[&str]| verbs.contains(&word.lower.as_str());
        if is(DESTROYS) || is(CHANGES) {
            verb(found, EvidenceKind::Path, word, false, at);
        }
    }
    let end = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let ends_in_collection = end == *last;
    if let Some(word) = last_words.last().filter(|_| ends_in_collection) {
        let is_plural = word.lower != word.singular || matches!(word.lower.as_str(), "people" | "staff");
        if method.is_safe() && is_plural && vocabulary::is_people(word) {
            found.exclusion(
                EvidenceKind::Path,
                Exclusion::Members,
                Strength::Strong,
                at,
                word.raw,
            );
        }
        if last_words.last().is_some_and(|word| word.lower == "keys") {
            found.exclusion(EvidenceKind::Path, Exclusion::Keys, Strength::Weak, at, word.raw);
        }
        if last_words.len() == 1 && word.lower == "query" && !method.is_safe() {
            found.exclusion(
                EvidenceKind::Path,
                Exclusion::Queries,
                Strength::Weak,
                at,
                word.raw,
            );
        }
        // Kubernetes attaches to a running container, where others attach a disk: both change something.
        if last_words.len() == 1 && word.lower == "attach" {
            found.exclusion(
                EvidenceKind::Path,
                Exclusion::Execution,
                Strength::Strong,
                at,
                word.raw,
            );
        }
    }
}

// === tags, texts, extensions ===

fn of_tags(found: &mut Found<'_>, operation: &Located<'_>) {
    let Some(tags) = operation.get("tags") else { return };
    for (index, tag) in tags.value.as_array().into_iter().flatten().take(16).enumerate() {
        if let Some(tag) = tag.as_str().filter(|tag| tag.len() <= 256) {
            names(found, EvidenceKind::Tag, &words(tag), &tags.pointer.item(index));
        }
    }
}

fn of_texts(found: &mut Found<'_>, operation: &Located<'_>) {
    for key in ["summary", "description"] {
        let Some((text, at)) = operation
            .get(key)
            .and_then(|text| Some((text.value.as_str()?, text.pointer)))
        else {
            continue;
        };
        let text = text
            .get(..text.floor_char_boundary(TEXT_BYTES_MAX))
            .unwrap_or_default();
        let first = text.split_whitespace().next().unwrap_or_default();
        if let [word] = words(first).as_slice() {
            of_first_word(found, word, &at);
        }
        let lower = text.to_lowercase();
        if let Some(phrase) = FOR_GOOD.iter().find(|phrase| lower.contains(*phrase)) {
            found.class(
                EvidenceKind::Text,
                Class::Destructive,
                Strength::Weak,
                &at,
                phrase,
            );
        }
    }
}

/// "Deletes a key", "Delete a key".
fn of_first_word(found: &mut Found<'_>, word: &Word<'_>, at: &Pointer) {
    let is = |verbs: &[&str]| verbs.contains(&word.lower.as_str()) || verbs.contains(&word.singular.as_str());
    if is(DESTROYS) {
        found.class(
            EvidenceKind::Text,
            Class::Destructive,
            Strength::Weak,
            at,
            word.raw,
        );
    } else if is(CHANGES) {
        found.class(EvidenceKind::Text, Class::Write, Strength::Weak, at, word.raw);
    }
}

/// What vendors say in extensions. A claim that there is no danger counts for nothing.
fn of_extensions(found: &mut Found<'_>, operation: &Located<'_>) {
    let kind = EvidenceKind::Extension;
    let text = |key: &str| {
        operation
            .get(key)
            .and_then(|value| Some((value.value.as_str()?, value.pointer)))
    };
    if let Some((action, at)) = text("x-kubernetes-action") {
        match action {
            "delete" | "deletecollection" => {
                found.class(kind, Class::Destructive, Strength::Strong, &at, action);
            }
            "post" | "put" | "patch" => found.class(kind, Class::Write, Strength::Strong, &at, action),
            "connect" => found.exclusion(kind, Exclusion::Execution, Strength::Strong, &at, action),
            _ => {}
        }
    }
    if let Some((grant, at)) = text("x-linode-grant").filter(|(grant, _)| *grant == "read_write") {
        found.class(kind, Class::Write, Strength::Strong, &at, grant);
    }
    if let Some((action, at)) = text("x-ms-docs-operation-type").filter(|(action, _)| *action == "action") {
        found.class(kind, Class::Write, Strength::Weak, &at, action);
    }
    for (key, exclusion) in [
        ("x-linode-charge", Exclusion::Billing),
        ("x-box-requires-admin", Exclusion::Administration),
    ] {
        if let Some(value) = operation
            .get(key)
            .filter(|value| value.value == &Value::Bool(true))
        {
            found.exclusion(kind, exclusion, Strength::Strong, &value.pointer, key);
        }
    }
    for key in ["x-mcp-annotations", "x-mcp"] {
        let Some(claims) = operation.get(key) else {
            continue;
        };
        for (hint, harm, class) in [
            ("destructiveHint", true, Class::Destructive),
            ("readOnlyHint", false, Class::Write),
        ] {
            let claim = claims.get(hint).filter(|claim| claim.value == &Value::Bool(harm));
            if let Some(claim) = claim {
                found.class(kind, class, Strength::Strong, &claim.pointer, hint);
            }
        }
    }
}
