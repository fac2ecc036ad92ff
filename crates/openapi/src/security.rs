//! Security requirements that hold for an operation, as the document says them: for reports, and to know which
//! parameters are places of credentials.
//!
//! It grants nothing. Whether a caller may call is decided by policy, and which credential goes upstream by the
//! operator. Source: OpenAPI 3.1.1 sections 4.8.27 and 4.8.30.

use std::collections::BTreeSet;

use model::Value;
use serde::Serialize;

use crate::document::Document;
use crate::operation::{OperationKey, OperationRef};
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
    /// Whether something there is no requirement. It is then read as one that nothing satisfies, never as none.
    pub is_malformed: bool,
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
    /// The same, as a value.
    pub means: Means,
}

/// By what a scheme lets a request through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Means {
    /// A key under a name in a place.
    ApiKey {
        /// Where.
        place: KeyPlace,
        /// The name there.
        name: String,
    },
    /// A name and a password.
    Basic,
    /// A token.
    Bearer,
    /// Another scheme of HTTP, by its name.
    Http(String),
    /// OAuth 2.0, by any of these flows.
    OAuth2(Vec<OAuthFlow>),
    /// OpenID Connect, with the address that describes it.
    OpenIdConnect(String),
    /// A certificate of the client.
    MutualTls,
    /// A type that this room does not know.
    Unknown(String),
    /// The document does not declare the scheme.
    Undeclared,
}

impl Means {
    /// What it is, in few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::ApiKey { place, name } => format!("a key in the {} `{name}`", place.as_str()),
            Self::Basic => "a user name and a password".to_owned(),
            Self::Bearer => "a bearer token".to_owned(),
            Self::Http(scheme) => format!("the HTTP scheme `{scheme}`"),
            Self::OAuth2(_) => "an OAuth 2.0 token".to_owned(),
            Self::OpenIdConnect(_) => "a token of OpenID Connect".to_owned(),
            Self::MutualTls => "a client certificate".to_owned(),
            Self::Unknown(kind) => format!("the unknown type `{kind}`"),
            Self::Undeclared => "a scheme that the document does not declare".to_owned(),
        }
    }
}

impl KeyPlace {
    /// Its name, as documents write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Query => "query",
            Self::Cookie => "cookie",
        }
    }
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPlace {
    /// A header.
    Header,
    /// The query, where logs and proxies see it.
    Query,
    /// A cookie.
    Cookie,
}

/// One flow of OAuth 2.0, as it is written. Its addresses are for a person to approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OAuthFlow {
    /// `clientCredentials`, `authorizationCode`, `implicit`, `password`, `deviceAuthorization`.
    pub flow: String,
    /// Where tokens come from.
    pub token_url: Option<String>,
    /// Where a person agrees.
    pub authorization_url: Option<String>,
    /// The scopes that it offers.
    pub scopes: Vec<String>,
}

/// What of a requirement an operator's credentials satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice<'s> {
    /// Nothing is required, or an alternative asks for nothing: no credential is attached.
    Nothing,
    /// All of one alternative, and nothing else.
    All(&'s [Requirement]),
    /// No alternative can be satisfied: the operation cannot be offered. Holds the schemes that are missing for the
    /// alternative that misses the fewest.
    Missing(Vec<String>),
}

impl Security {
    /// The first alternative that the operator's credentials satisfy. `has`: whether there is one for a scheme.
    #[must_use]
    pub fn choose(&self, has: &dyn Fn(&str) -> bool) -> Choice<'_> {
        let mut fewest: Option<Vec<String>> = None;
        if self.alternatives.is_empty() {
            return Choice::Nothing;
        }
        for alternative in &self.alternatives {
            let missing: Vec<String> = alternative
                .iter()
                .filter(|requirement| !has(&requirement.scheme))
                .map(|requirement| requirement.scheme.clone())
                .collect();
            if missing.is_empty() {
                return if alternative.is_empty() {
                    Choice::Nothing
                } else {
                    Choice::All(alternative)
                };
            }
            if fewest.as_ref().is_none_or(|fewest| missing.len() < fewest.len()) {
                fewest = Some(missing);
            }
        }
        Choice::Missing(fewest.unwrap_or_default())
    }
}

impl AccessFlag {
    /// The flag as reports write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsaid => "unsaid",
            Self::Open => "open",
            Self::OpenWrite => "open-write",
            Self::SchemeUndeclared => "scheme-undeclared",
            Self::ScopeUndeclared => "scope-undeclared",
            Self::KeyInQuery => "key-in-query",
            Self::Malformed => "malformed",
        }
    }
}

/// What a reviewer should look at in a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessFlag {
    /// The document says nothing about security, here or for all.
    Unsaid,
    /// A caller without any credential is let through.
    Open,
    /// The same, by a method that is not safe.
    OpenWrite,
    /// An alternative needs a scheme that is not declared.
    SchemeUndeclared,
    /// A scope that no flow of its scheme offers.
    ScopeUndeclared,
    /// A key travels in the query.
    KeyInQuery,
    /// Something that is no list of requirements.
    Malformed,
}

/// One line of the table of access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessRow {
    /// Method and path.
    pub operation: OperationKey,
    /// What is required.
    pub security: Security,
    /// What the document lets the gate ask of a caller: the scopes of each alternative. A delegated token must hold
    /// all of one of them.
    pub caller_scopes: Vec<Vec<String>>,
    /// What a reviewer should look at.
    pub flags: Vec<AccessFlag>,
}

/// The table of access of a document, in the order of its operations.
pub(crate) fn table(document: &Document) -> Vec<AccessRow> {
    document
        .operations()
        .map(|operation| {
            let security = effective(document, &operation);
            AccessRow {
                flags: flags(document, &operation, &security),
                caller_scopes: security.alternatives.iter().map(|all| scopes(all)).collect(),
                operation: operation.key().clone(),
                security,
            }
        })
        .collect()
}

fn scopes(alternative: &[Requirement]) -> Vec<String> {
    let mut scopes: Vec<String> = alternative
        .iter()
        .flat_map(|requirement| requirement.scopes.iter().cloned())
        .collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

fn flags(document: &Document, operation: &OperationRef, security: &Security) -> Vec<AccessFlag> {
    let mut flags = BTreeSet::new();
    let root = document.resolver().root();
    if !security.is_own && root.get("security").is_none() {
        flags.insert(AccessFlag::Unsaid);
    }
    if security.is_open() {
        let is_safe = operation.key().method().is_safe();
        flags.insert(if is_safe {
            AccessFlag::Open
        } else {
            AccessFlag::OpenWrite
        });
    }
    if security.is_malformed {
        flags.insert(AccessFlag::Malformed);
    }
    for requirement in security.alternatives.iter().flatten() {
        match &requirement.means {
            Means::Undeclared => {
                flags.insert(AccessFlag::SchemeUndeclared);
            }
            Means::ApiKey {
                place: KeyPlace::Query,
                ..
            } => {
                flags.insert(AccessFlag::KeyInQuery);
            }
            Means::OAuth2(flows) => {
                let offers = |scope: &String| flows.iter().any(|flow| flow.scopes.contains(scope));
                if !requirement.scopes.iter().all(offers) {
                    flags.insert(AccessFlag::ScopeUndeclared);
                }
            }
            Means::ApiKey { .. }
            | Means::Basic
            | Means::Bearer
            | Means::Http(_)
            | Means::OpenIdConnect(_)
            | Means::MutualTls
            | Means::Unknown(_) => {}
        }
    }
    flags.into_iter().collect()
}

fn means(scheme: Option<&Located<'_>>) -> Means {
    let Some(scheme) = scheme else {
        return Means::Undeclared;
    };
    let text = |key: &str| scheme.value.get(key).and_then(Value::as_str);
    match text("type") {
        Some("apiKey") => {
            let place = match text("in") {
                Some("header") => KeyPlace::Header,
                Some("query") => KeyPlace::Query,
                Some("cookie") => KeyPlace::Cookie,
                _ => return Means::Unknown("apiKey".to_owned()),
            };
            match text("name") {
                Some(name) => Means::ApiKey {
                    place,
                    name: name.to_owned(),
                },
                None => Means::Unknown("apiKey".to_owned()),
            }
        }
        Some("http") => match text("scheme").map(str::to_ascii_lowercase).as_deref() {
            Some("basic") => Means::Basic,
            Some("bearer") => Means::Bearer,
            Some(other) => Means::Http(other.to_owned()),
            None => Means::Unknown("http".to_owned()),
        },
        Some("oauth2") => Means::OAuth2(flows(scheme)),
        Some("openIdConnect") => match text("openIdConnectUrl") {
            Some(url) => Means::OpenIdConnect(url.to_owned()),
            None => Means::Unknown("openIdConnect".to_owned()),
        },
        Some("mutualTLS") => Means::MutualTls,
        other => Means::Unknown(crate::text::excerpt(other.unwrap_or("?"))),
    }
}

fn flows(scheme: &Located<'_>) -> Vec<OAuthFlow> {
    scheme
        .value
        .get("flows")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, flow)| flow.is_object())
        .take(SCHEMES_MAX)
        .map(|(name, flow)| {
            let text = |key: &str| flow.get(key).and_then(Value::as_str).map(str::to_owned);
            OAuthFlow {
                flow: name.clone(),
                token_url: text("tokenUrl"),
                authorization_url: text("authorizationUrl"),
                scopes: flow
                    .get("scopes")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                    .map(|(scope, _)| scope.clone())
                    .collect(),
            }
        })
        .collect()
}

/// The effective requirement.
pub(crate) fn effective(document: &Document, operation: &OperationRef) -> Security {
    let resolver = document.resolver();
    let own = resolver
        .at(operation.place.clone())
        .and_then(|operation| operation.get("security"));
    let is_own = own.is_some();
    let list = own.or_else(|| resolver.at(Pointer::root().child("security")));
    let mut is_malformed = false;
    let mut alternatives: Vec<Vec<Requirement>> = Vec::new();
    match list.as_ref().map(|list| list.value) {
        None => {}
        Some(Value::Array(list)) => {
            for alternative in list.iter().take(ALTERNATIVES_MAX) {
                match alternative.is_object() {
                    true => alternatives.push(requirements(resolver, alternative)),
                    false => is_malformed = true,
                }
            }
            is_malformed |= list.len() > ALTERNATIVES_MAX;
        }
        Some(_) => is_malformed = true,
    }
    if is_malformed {
        // One that is left out could have been all there was.
        alternatives.push(vec![Requirement {
            scheme: "?".to_owned(),
            scopes: Vec::new(),
            kind: None,
            means: Means::Undeclared,
        }]);
    }
    Security {
        is_own,
        alternatives,
        is_malformed,
    }
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
            means: means(scheme(resolver, name).as_ref()),
        })
        .collect()
}

/// Every scheme that the document declares, by its name.
pub(crate) fn schemes(resolver: Resolver<'_>) -> Vec<(String, Means)> {
    let all = resolver.at(Pointer::root().child("components").child("securitySchemes"));
    all.as_ref()
        .and_then(Located::object)
        .into_iter()
        .flatten()
        .take(SCHEMES_MAX)
        .map(|(name, _)| (name.clone(), means(scheme(resolver, name).as_ref())))
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
