//! Security requirements that hold for an operation, as the document says them: for reports, and to know which
//! parameters are places of credentials.
//!
//! It grants nothing. Whether a caller may call is decided by policy, and which credential goes upstream by the
//! operator. Source: OpenAPI 3.1.1 sections 4.8.27 and 4.8.30.

use model::Value;
use serde::Serialize;

use crate::document::Document;
use crate::operation::OperationRef;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};

/// Alternatives and schemes that are looked at.
const ALTERNATIVES_MAX: usize = 64;
const SCHEMES_MAX: usize = 256;

/// The requirement of an operation: any one of `alternatives` suffices.
///
/// No alternative at all means that nothing is required; an empty one means that a call without credentials is enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Security {
    /// Whether the operation says it itself (`true`), or the document for all of its operations.
    pub is_own: bool,
    /// The alternatives, in the order of the document; all requirements of one hold together.
    pub alternatives: Vec<Vec<Requirement>>,
}

impl Security {
    /// Whether the document lets a caller without any credential through.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.alternatives.is_empty() || self.alternatives.iter().any(Vec::is_empty)
    }
}

/// One scheme that must be satisfied, with its scopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirement {
    /// The name under `components.securitySchemes`.
    pub scheme: String,
    /// Scopes or roles.
    pub scopes: Vec<String>,
    /// What the scheme says it is, as `http bearer` or `apiKey in header X-Key`. `None` where it is not declared.
    pub kind: Option<String>,
}

/// The effective requirement.
pub(crate) fn effective(document: &Document, operation: &OperationRef) -> Security {
    let resolver = document.resolver();
    let own = resolver
        .at(operation.place.clone())
        .and_then(|operation| operation.get("security"));
    let is_own = own.is_some();
    let list = own.or_else(|| resolver.at(Pointer::root().child("security")));
    let alternatives = list
        .as_ref()
        .and_then(|list| list.value.as_array())
        .into_iter()
        .flatten()
        .take(ALTERNATIVES_MAX)
        .map(|alternative| requirements(resolver, alternative))
        .collect();
    Security { is_own, alternatives }
}

fn requirements(resolver: Resolver<'_>, alternative: &Value) -> Vec<Requirement> {
    alternative
        .as_object()
        .into_iter()
        .flatten()
        .take(SCHEMES_MAX)
        .map(|(name, scopes)| Requirement {
            scheme: name.clone(),
            scopes: scopes
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .take(SCHEMES_MAX)
                .map(str::to_owned)
                .collect(),
            kind: scheme(resolver, name).and_then(|scheme| kind(&scheme)),
        })
        .collect()
}

fn scheme<'d>(resolver: Resolver<'d>, name: &str) -> Option<Located<'d>> {
    let schemes = Pointer::root().child("components").child("securitySchemes");
    resolver.follow(resolver.at(schemes.child(name))?).ok()
}

fn kind(scheme: &Located<'_>) -> Option<String> {
    let text = |key: &str| scheme.value.get(key).and_then(Value::as_str).unwrap_or("?");
    let kind = scheme.value.get("type")?.as_str()?;
    Some(match kind {
        "apiKey" => format!("apiKey in {} {}", text("in"), text("name")),
        "http" => format!("http {}", text("scheme")),
        other => other.to_owned(),
    })
}

/// A place in a request that a credential of the operator fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    location: String,
    name: String,
}

impl Credential {
    pub(crate) fn is_at(&self, location: &str, name: &str) -> bool {
        self.location == location
            && (self.name == name || location == "header" && self.name.eq_ignore_ascii_case(name))
    }
}

/// The places of all API keys that the document declares, whether or not this operation asks for them: a key is no
/// argument anywhere.
pub(crate) fn credentials(resolver: Resolver<'_>) -> Vec<Credential> {
    let schemes = Pointer::root().child("components").child("securitySchemes");
    let Some(schemes) = resolver.at(schemes) else {
        return Vec::new();
    };
    schemes
        .object()
        .into_iter()
        .flatten()
        .take(SCHEMES_MAX)
        .filter_map(|(name, _)| scheme(resolver, name))
        .filter(|scheme| scheme.value.get("type").and_then(Value::as_str) == Some("apiKey"))
        .filter_map(|scheme| {
            Some(Credential {
                location: scheme.value.get("in")?.as_str()?.to_owned(),
                name: scheme.value.get("name")?.as_str()?.to_owned(),
            })
        })
        .collect()
}
