//! The proof that a caller was authenticated, and the caller that an operator wrote into the configuration.
//!
//! This file makes the proof from facts that are already verified; the verifying is in `token` and `api_key`.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use model::{Caller, CallerKey, CallerName, IssuerName, KeyId, Object};

/// What [`Caller::issuer`] says of a caller with an API key.
pub const ISSUER_OF_KEYS: &str = "key";

/// What [`Caller::issuer`] says of the caller on stdio.
pub const ISSUER_OF_CONFIGURED: &str = "configuration";

/// The proof that this caller was authenticated, for this audience, at the time that was passed in.
///
/// Only this room makes one. It cannot be copied, so that a proof is good for the one request that it was made for.
///
/// A struct literal does not compile outside this room, nor does a clone or a default:
///
/// ```compile_fail,E0451
/// fn forge(caller: std::sync::Arc<model::Caller>, key: model::CallerKey) -> identity::Principal {
///     let claims = std::sync::Arc::new(model::Object::new());
///     let credential = identity::Credential::Configured(model::CallerName::parse("eve").unwrap());
///     identity::Principal { caller, key, claims, credential, expires: None }
/// }
/// ```
///
/// ```compile_fail,E0277
/// fn wants_clone<T: Clone>() {}
/// wants_clone::<identity::Principal>();
/// ```
///
/// ```compile_fail,E0277
/// fn wants_default<T: Default>() {}
/// wants_default::<identity::Principal>();
/// ```
#[must_use = "a principal is the proof that the next step asks for"]
#[derive(Debug)]
pub struct Principal {
    /// Invariant: what the credential's keeper (an issuer, the key directory, the operator) says, unchanged.
    pub(crate) caller: Arc<Caller>,
    /// Invariant: `caller.key()`, computed once for the many requests of a cached token.
    pub(crate) key: CallerKey,
    /// Invariant: only names that the operator listed in the claim map or wrote himself.
    pub(crate) claims: Arc<Object>,
    pub(crate) credential: Credential,
    pub(crate) expires: Option<Timestamp>,
}

/// By what a caller was authenticated, as the ledger writes it: `key:3f9c…`, `token:corp`, `configured:local`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key, named by its public half.
    ApiKey(KeyId),
    /// A token of this issuer.
    Token(IssuerName),
    /// The operator's configuration: stdio, where whoever starts the process is the caller.
    Configured(CallerName),
}

/// A caller as the operator configured it: whom an API key stands for, or who is on the other end of stdio.
///
/// Whoever builds one sets `caller.issuer` to [`ISSUER_OF_KEYS`] or [`ISSUER_OF_CONFIGURED`], so that no configured
/// caller has the key of a caller whom an identity provider vouches for.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredCaller {
    /// The name in the configuration.
    pub name: CallerName,
    /// What is known of the caller.
    pub caller: Arc<Caller>,
    /// Further facts that policies may read, as the operator wrote them: name to text or array of texts.
    pub claims: Arc<Object>,
}

/// The principal of a configured caller. For stdio: the operator's configuration is the authority.
///
/// ```
/// use std::sync::Arc;
/// let caller = identity::ConfiguredCaller {
///     name: model::CallerName::parse("local").unwrap(),
///     caller: Arc::new(model::Caller {
///         issuer: identity::ISSUER_OF_CONFIGURED.to_owned(),
///         subject: model::Subject::parse("ada").unwrap(),
///         tenant: None,
///         roles: Default::default(),
///         client: None,
///     }),
///     claims: Arc::new(model::Object::new()),
/// };
/// assert_eq!(identity::configured(&caller).credential().to_string(), "configured:local");
/// ```
pub fn configured(caller: &ConfiguredCaller) -> Principal {
    Principal {
        caller: Arc::clone(&caller.caller),
        key: caller.caller.key(),
        claims: Arc::clone(&caller.claims),
        credential: Credential::Configured(caller.name.clone()),
        expires: None,
    }
}

// === impl Principal ===

impl Principal {
    /// What is known of the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The same facts, shared: for whoever keeps them longer than the request.
    #[must_use]
    pub fn shared(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }

    /// What sessions and other state are bound to.
    #[must_use]
    pub const fn key(&self) -> CallerKey {
        self.key
    }

    /// Further facts that the operator asked for by name.
    ///
    /// Shape: name to text or array of texts, as `{"department":"finance","groups":["a","b"]}`.
    #[must_use]
    pub fn claims(&self) -> &Object {
        &self.claims
    }

    /// By what the caller was authenticated.
    #[must_use]
    pub const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// When the credential ends by itself. A stream that lives longer than this must end with it.
    #[must_use]
    pub const fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

// === impl Credential ===

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(id) => write!(f, "key:{id}"),
            Self::Token(issuer) => write!(f, "token:{issuer}"),
            Self::Configured(name) => write!(f, "configured:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Subject;

    use super::*;

    #[test]
    fn a_configured_caller_is_exactly_what_the_operator_wrote() {
        let caller = ConfiguredCaller {
            name: CallerName::parse("local").unwrap(),
            caller: Arc::new(Caller {
                issuer: ISSUER_OF_CONFIGURED.to_owned(),
                subject: Subject::parse("ada").unwrap(),
                tenant: None,
                roles: BTreeSet::new(),
                client: None,
            }),
            claims: Arc::new(Object::from_iter([("department".to_owned(), "finance".into())])),
        };
        let principal = configured(&caller);
        assert_eq!(principal.caller(), &*caller.caller);
        assert_eq!(principal.key(), caller.caller.key());
        assert_eq!(principal.claims(), &*caller.claims);
        assert_eq!(
            principal.credential(),
            &Credential::Configured(caller.name.clone())
        );
        assert_eq!(principal.expires(), None);
        assert!(Arc::ptr_eq(&principal.shared(), &caller.caller), "no deep copy");
    }

    #[test]
    fn the_ledger_tells_kinds_of_credentials_apart() {
        let texts = [
            Credential::ApiKey(KeyId::parse("x").unwrap()).to_string(),
            Credential::Token(IssuerName::parse("x").unwrap()).to_string(),
            Credential::Configured(CallerName::parse("x").unwrap()).to_string(),
        ];
        assert_eq!(texts, ["key:x", "token:x", "configured:x"]);
    }
}
