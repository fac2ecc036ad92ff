//! The door: from an `Authorization` header to a caller, or to the challenge that says where to sign in.
//!
//! Who a caller is, is decided in `identity`; this file fetches a missing key set once and tries again.

use std::sync::Arc;

use gateway::Clock;
use identity::{
    KeyDirectory, Principal, ResourceMetadata, Tokens, Unauthenticated, bearer, challenge, looks_like_key,
    verify_key,
};

use crate::key_sets::KeySetKeeper;

/// How callers over HTTP are known.
pub struct Door {
    keys: Option<Arc<dyn KeyDirectory>>,
    tokens: Tokens,
    key_sets: Arc<KeySetKeeper>,
    metadata: ResourceMetadata,
    metadata_url: String,
    scope: Option<String>,
    clock: Clock,
}

/// What a [`Door`] is made of.
pub struct DoorParts {
    /// The API keys, where they are accepted.
    pub keys: Option<Arc<dyn KeyDirectory>>,
    /// The issuers of tokens.
    pub tokens: Tokens,
    /// Their key sets.
    pub key_sets: Arc<KeySetKeeper>,
    /// What clients read about where to sign in (RFC 9728).
    pub metadata: ResourceMetadata,
    /// Where they read it.
    pub metadata_url: String,
    /// What to ask for at the authorization server, as scopes with spaces between.
    pub scope: Option<String>,
    /// The time.
    pub clock: Clock,
}

impl Door {
    /// A door.
    #[must_use]
    pub fn new(parts: DoorParts) -> Self {
        let DoorParts {
            keys,
            tokens,
            key_sets,
            metadata,
            metadata_url,
            scope,
            clock,
        } = parts;
        Self {
            keys,
            tokens,
            key_sets,
            metadata,
            metadata_url,
            scope,
            clock,
        }
    }

    /// Who sends this header.
    ///
    /// A token whose key is not known causes one fetch of the issuer's key set, however many such tokens come at once.
    ///
    /// # Errors
    /// [`Unauthenticated`].
    pub async fn identify(&self, authorization: Option<&[u8]>) -> Result<Principal, Unauthenticated> {
        let presented = bearer(authorization)?;
        let now = (self.clock)();
        if looks_like_key(presented) {
            return match &self.keys {
                Some(keys) => verify_key(presented, &**keys, now),
                None => Err(Unauthenticated::Malformed {
                    what: "an access token; API keys are not accepted here",
                }),
            };
        }
        match self.tokens.verify(presented, &*self.key_sets, now) {
            Err(Unauthenticated::NoKeySet { issuer } | Unauthenticated::UnknownKey { issuer, .. }) => {
                self.key_sets.refresh(&issuer).await;
                self.tokens.verify(presented, &*self.key_sets, now)
            }
            verified => verified,
        }
    }

    /// The `WWW-Authenticate` header of a refusal (AUTH-02, AUTH-04).
    #[must_use]
    pub(crate) fn challenge(&self, cause: &Unauthenticated) -> String {
        challenge(Some(&self.metadata_url), cause, self.scope.as_deref())
    }

    /// The protected-resource metadata.
    #[must_use]
    pub(crate) fn metadata(&self) -> String {
        self.metadata.to_json()
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("keys", &self.keys.is_some())
            .field("issuers", &self.tokens.issuers().len())
            .finish_non_exhaustive()
    }
}
