//! Callers that the configuration names, as facts. What they may do is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use model::{CallerName, ClientId, Object, Role, Subject, TenantId, Value};

use crate::view::View;

/// A caller for API keys and for standard input and output: `[caller.<name>]`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallerSettings {
    /// Its name in the configuration.
    pub name: CallerName,
    /// Who it is; the name where nothing else is written.
    pub subject: Subject,
    /// The organisation that it belongs to.
    pub tenant: Option<TenantId>,
    /// Its roles.
    pub roles: BTreeSet<Role>,
    /// The client program that it uses.
    pub client: Option<ClientId>,
    /// Further facts. Shape: `{"accounts":["a1","a2"],"region":"eu"}`.
    pub claims: Object,
}

/// All callers. Those that cannot be read are left out; their faults are known.
pub(crate) fn read(root: &View<'_>) -> BTreeMap<CallerName, CallerSettings> {
    root.named("caller")
        .iter()
        .filter_map(|(name, view)| one(name, view))
        .map(|caller| (caller.name.clone(), caller))
        .collect()
}

fn one(name: &str, view: &View<'_>) -> Option<CallerSettings> {
    let subject = view.text("subject").unwrap_or_else(|| name.to_owned());
    let claims = view
        .named_texts("claims")
        .into_iter()
        .map(|(claim, texts, list)| {
            let mut values = texts.into_iter().map(|placed| Value::from(placed.text));
            let value = if list {
                Value::Array(values.collect())
            } else {
                values.next().unwrap_or_default()
            };
            (claim.to_owned(), value)
        });
    Some(CallerSettings {
        name: CallerName::parse(name).ok()?,
        subject: Subject::parse(&subject).ok()?,
        tenant: view.parsed("tenant", TenantId::parse),
        roles: view
            .texts("roles")
            .iter()
            .filter_map(|role| Role::parse(&role.text).ok())
            .collect(),
        client: view.parsed("client", ClientId::parse),
        claims: claims.collect(),
    })
}
