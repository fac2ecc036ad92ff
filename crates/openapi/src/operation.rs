//! Operations of a document: which there are, raw and without judgement, and which one a key names.
//!
//! The enumeration never fails and never skips: it is what reports reconcile against. Whether an operation can be a
//! tool is decided in `tool`.

use std::fmt;

use model::Value;

use crate::blocker::{Blocker, BlockerCause};
use crate::document::Family;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver, reference_of};
use crate::text::excerpt;

/// The methods that a path item can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
    /// HEAD.
    Head,
    /// PATCH.
    Patch,
    /// TRACE. Never offered: it echoes the request, credentials and all.
    Trace,
    /// QUERY, of version 3.2: safe, with a body. Source: draft-ietf-httpbis-safe-method-w-body.
    Query,
    /// Another method, under `additionalOperations` of version 3.2. Its name stands in the key. Never offered: nothing
    /// is known of what it means.
    Additional,
}

impl Method {
    const ALL: [Self; 9] = [
        Self::Get,
        Self::Put,
        Self::Post,
        Self::Delete,
        Self::Options,
        Self::Head,
        Self::Patch,
        Self::Trace,
        Self::Query,
    ];

    /// As a request line writes it; `ADDITIONAL` for one that has its name in the key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Head => "HEAD",
            Self::Patch => "PATCH",
            Self::Trace => "TRACE",
            Self::Query => "QUERY",
            Self::Additional => "ADDITIONAL",
        }
    }

    /// As a path item writes it.
    const fn key(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
            Self::Options => "options",
            Self::Head => "head",
            Self::Patch => "patch",
            Self::Trace => "trace",
            Self::Query => "query",
            Self::Additional => "additionalOperations",
        }
    }

    fn from_key(key: &str, family: Family) -> Option<Self> {
        Self::ALL
            .into_iter()
            .filter(|method| *method != Self::Query || family == Family::V32)
            .find(|method| method.key() == key)
    }

    /// Whether a key of a path item of version 2.0 is a method.
    pub(crate) fn of_version_2(key: &str) -> bool {
        matches!(
            Self::from_key(key, Family::V30),
            Some(
                Self::Get
                    | Self::Put
                    | Self::Post
                    | Self::Delete
                    | Self::Options
                    | Self::Head
                    | Self::Patch
                    | Self::Trace
            )
        )
    }

    /// Whether a repetition has the effect of one request. Source: RFC 9110 section 9.2.2.
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Put | Self::Delete | Self::Options | Self::Trace | Self::Query => {
                true
            }
            Self::Post | Self::Patch | Self::Additional => false,
        }
    }

    /// Whether the method promises to change nothing. A promise of the protocol, not of the handler; a class is
    /// never taken from it. Source: RFC 9110 section 9.2.1.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        match self {
            Self::Get | Self::Head | Self::Options | Self::Trace | Self::Query => true,
            Self::Post | Self::Patch | Self::Put | Self::Delete | Self::Additional => false,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Method and path template, as `GET /invoices/{id}`: unique in a document, present without an `operationId`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationKey {
    method: Method,
    /// The name of an additional method.
    additional: Option<String>,
    path: String,
}

impl OperationKey {
    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The method, as a request line writes it.
    #[must_use]
    pub fn method_name(&self) -> &str {
        match &self.additional {
            Some(name) => name,
            None => self.method.as_str(),
        }
    }

    /// The path template.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn is_at(&self, method: &str, path: &str) -> bool {
        self.path == path
            && match &self.additional {
                // Names of methods have case; the ones that everybody knows are written in either.
                Some(name) => name == method,
                None => self.method.as_str().eq_ignore_ascii_case(method),
            }
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method_name(), self.path)
    }
}

impl serde::Serialize for OperationKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One operation, as it stands in the document. It may be malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRef {
    key: OperationKey,
    operation_id: Option<String>,
    /// Where the operation object stands; in another place than its path item where that is a reference.
    pub(crate) place: Pointer,
    /// Where its path item stands: `#/paths/~1invoices`.
    pub(crate) path_item: Pointer,
}

impl OperationRef {
    /// Method and path template.
    #[must_use]
    pub const fn key(&self) -> &OperationKey {
        &self.key
    }

    /// The method, as a request line writes it.
    #[must_use]
    pub fn method(&self) -> &str {
        self.key.method_name()
    }

    /// The path template.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.key.path
    }

    /// The `operationId`, where there is one.
    #[must_use]
    pub fn operation_id(&self) -> Option<&str> {
        self.operation_id.as_deref()
    }

    /// The place of the operation object, as `#/paths/~1invoices/get`.
    #[must_use]
    pub fn pointer(&self) -> &str {
        self.place.as_str()
    }
}

/// Why a key names no single operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindFault {
    /// No operation has this id or method and path.
    #[error(
        "no operation `{key}` in the document{}",
        if near.is_empty() {
            "; write an operationId, or method and path as `GET /invoices/{id}`".to_owned()
        } else {
            format!("; did you mean {}", near.iter().map(|near| format!("`{near}`")).collect::<Vec<_>>().join(" or "))
        }
    )]
    Unknown {
        /// What was asked for.
        key: String,
        /// Up to three keys that are spelled alike.
        near: Vec<String>,
    },
    /// More than one operation has this id.
    #[error("`{key}` names {} operations, at {}; write method and path, as `GET /invoices/{{id}}`", pointers.len(), pointers.join(" and "))]
    Ambiguous {
        /// What was asked for.
        key: String,
        /// Where they stand.
        pointers: Vec<String>,
    },
}

/// The operations of a document and the path items that could not be looked into.
#[derive(Debug, Default)]
pub(crate) struct Enumeration {
    pub(crate) operations: Vec<OperationRef>,
    pub(crate) unreadable: Vec<Blocker>,
    /// There are more operations than the limit.
    pub(crate) overflow: bool,
}

/// Every key that is a method, in every path item, in the order of the document.
pub(crate) fn enumerate(resolver: Resolver<'_>, family: Family, operations_max: usize) -> Enumeration {
    let mut found = Enumeration::default();
    let Some(paths) = resolver.root().get("paths").and_then(Value::as_object) else {
        return found;
    };
    let root = Pointer::root().child("paths");
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        let path_item = root.child(path);
        let start = Located {
            pointer: path_item.clone(),
            value: item,
        };
        let (items, fault) = path_items(resolver, start);
        found.unreadable.extend(fault);
        for (depth, item) in items.iter().enumerate() {
            let (nearer, _) = items.split_at(depth);
            for candidate in candidates(item, family) {
                let place = candidate.place_in(&item.pointer);
                let is_replaced = nearer
                    .iter()
                    .any(|item| candidate.place_in(&item.pointer).find(resolver.root()).is_some());
                if is_replaced {
                    continue;
                }
                if found.operations.len() >= operations_max {
                    found.overflow = true;
                    return found;
                }
                found.operations.push(OperationRef {
                    operation_id: candidate
                        .value
                        .get("operationId")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                    key: OperationKey {
                        method: candidate.method,
                        additional: candidate.additional.map(str::to_owned),
                        path: path.clone(),
                    },
                    place,
                    path_item: path_item.clone(),
                });
            }
        }
    }
    found
}

/// What stands where an operation stands.
struct Candidate<'d> {
    method: Method,
    additional: Option<&'d str>,
    value: &'d Value,
}

impl Candidate<'_> {
    fn place_in(&self, path_item: &Pointer) -> Pointer {
        let place = path_item.child(self.method.key());
        match self.additional {
            Some(name) => place.child(name),
            None => place,
        }
    }
}

fn candidates<'d>(item: &Located<'d>, family: Family) -> Vec<Candidate<'d>> {
    let mut candidates = Vec::new();
    for (key, value) in item.object().into_iter().flatten() {
        if let Some(method) = Method::from_key(key, family) {
            candidates.push(Candidate {
                method,
                additional: None,
                value,
            });
        } else if family == Family::V32 && key == Method::Additional.key() {
            for (name, value) in value.as_object().into_iter().flatten() {
                candidates.push(Candidate {
                    method: Method::Additional,
                    additional: Some(name),
                    value,
                });
            }
        }
    }
    candidates
}

/// A path item and the ones that its `$ref` leads to, nearest first, as far as they can be read.
pub(crate) fn path_items<'d>(
    resolver: Resolver<'d>,
    start: Located<'d>,
) -> (Vec<Located<'d>>, Option<Blocker>) {
    let mut items: Vec<Located<'d>> = Vec::new();
    let mut here = start;
    loop {
        if here.object().is_none() {
            let blocker = Blocker::new(
                BlockerCause::OperationMalformed,
                &here.pointer,
                "the path item is not an object",
                "write an object of methods",
            );
            return (items, Some(blocker));
        }
        let next = reference_of(here.value).map(|reference| {
            let next = resolver.target(reference)?;
            if items.iter().any(|item| item.pointer == next.pointer) || next.pointer == here.pointer {
                return Err(crate::reference::ReferenceFault::Cyclic(excerpt(reference)));
            }
            Ok(next)
        });
        match next {
            None => {
                items.push(here);
                return (items, None);
            }
            Some(Err(fault)) => {
                let blocker = fault.blocker(&here.pointer.child("$ref"));
                items.push(here);
                return (items, Some(blocker));
            }
            Some(Ok(next)) => items.push(std::mem::replace(&mut here, next)),
        }
    }
}

/// The one operation that a key names.
pub(crate) fn find(operations: &[OperationRef], key: &str) -> Result<OperationRef, FindFault> {
    let key = key.trim();
    let by_path = key.split_once(' ').map(|(method, path)| (method, path.trim()));
    let hits: Vec<&OperationRef> = operations
        .iter()
        .filter(|operation| {
            operation.operation_id() == Some(key)
                || by_path.is_some_and(|(method, path)| operation.key.is_at(method, path))
        })
        .collect();
    match hits.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(FindFault::Unknown {
            key: excerpt(key),
            near: near(operations, key),
        }),
        many => Err(FindFault::Ambiguous {
            key: excerpt(key),
            pointers: many
                .iter()
                .take(4)
                .map(|operation| operation.place.to_string())
                .collect(),
        }),
    }
}

/// Keys longer than this are not compared: the comparison is quadratic in their length.
const COMPARED_BYTES_MAX: usize = 200;

fn near(operations: &[OperationRef], key: &str) -> Vec<String> {
    if key.is_empty() || key.len() > COMPARED_BYTES_MAX {
        return Vec::new();
    }
    let wanted = key.to_lowercase();
    let mut scored: Vec<(f64, String)> = operations
        .iter()
        .flat_map(|operation| [operation.operation_id.clone(), Some(operation.key.to_string())])
        .flatten()
        .filter(|name| name.len() <= COMPARED_BYTES_MAX)
        .map(|name| {
            (
                strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &wanted),
                name,
            )
        })
        .filter(|(score, _)| *score >= 0.6)
        .collect();
    scored.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    scored.dedup_by(|(_, a), (_, b)| a == b);
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}
