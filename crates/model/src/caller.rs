//! Who is calling, as plain facts. Facts grant nothing: the proof that they are true is `identity::Principal`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{ClientId, Digest, Role, Subject, TenantId};

/// What is known of a caller.
///
/// Shape in the ledger: `{"issuer":"corp","subject":"ada","tenant":"north","roles":["member"],"client":"ide"}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    /// Who vouches: the name of a configured issuer, `key` for an API key, `configuration` for stdio.
    pub issuer: String,
    /// Who it is, unique inside the issuer.
    pub subject: Subject,
    /// The organisation, where the issuer knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// Roles or groups.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<Role>,
    /// The client program, where the issuer names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
}

/// What sessions and other state are bound to: a digest over issuer, subject, tenant and client.
///
/// Roles are left out, so that a changed role ends no session; they are read afresh on each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallerKey(Digest);

impl Caller {
    /// The key that binds state to this caller.
    #[must_use]
    pub fn key(&self) -> CallerKey {
        // Each part goes in behind its length, so that no two different callers give the same bytes.
        let parts = [
            Some(self.issuer.as_str()),
            Some(self.subject.as_str()),
            self.tenant.as_ref().map(TenantId::as_str),
            self.client.as_ref().map(ClientId::as_str),
        ];
        let mut bytes = Vec::with_capacity(128);
        for part in parts {
            match part {
                None => bytes.push(0),
                Some(text) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
                    bytes.extend_from_slice(text.as_bytes());
                }
            }
        }
        CallerKey(Digest::of("tollhouse/caller/v1", &[&bytes]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(subject: &str, tenant: Option<&str>, client: Option<&str>) -> Caller {
        Caller {
            issuer: "corp".to_owned(),
            subject: Subject::parse(subject).unwrap(),
            tenant: tenant.map(|t| TenantId::parse(t).unwrap()),
            roles: BTreeSet::new(),
            client: client.map(|c| ClientId::parse(c).unwrap()),
        }
    }

    #[test]
    fn the_key_tells_callers_apart_and_ignores_roles() {
        let ada = caller("ada", Some("north"), None);
        let mut promoted = ada.clone();
        promoted.roles.insert(Role::parse("admin").unwrap());
        assert_eq!(ada.key(), promoted.key());
        for other in [
            caller("ada", Some("south"), None),
            caller("ada", None, None),
            caller("ada", None, Some("north")),
            caller("adan", Some("orth"), None),
            Caller {
                issuer: "corpada".into(),
                ..caller("x", Some("north"), None)
            },
        ] {
            assert_ne!(ada.key(), other.key(), "{other:?}");
        }
    }
}
