//! Who may ask for what and where requests can go: the tables of access and of destinations. They describe; what is
//! asked and attached is the catalogue's to decide.

use std::collections::{BTreeMap, BTreeSet};

use catalog::Tool;
use config::CredentialSettings;
use model::{Class, Exclusion, Value};
use openapi::{Means, Requirement, Security};
use url::Url;

use crate::report::{Access, Place, Row, Status};
use crate::survey::{Inputs, Tools};
use crate::text::visible;

/// What each operation asks of a caller, and what that leaves open.
pub(crate) fn access(inputs: &Inputs<'_>, rows: &[Row], tools: &Tools) -> Vec<Access> {
    let exposed: Vec<&Row> = rows.iter().filter(|row| row.status == Status::Exposed).collect();
    let changes = |row: &&&Row| row.class.declared.is_some_and(Class::changes_state);
    let shares =
        inputs.configured.as_ref().is_some_and(|configured| {
            matches!(configured.upstream.credentials, CredentialSettings::Every(_))
        }) && exposed.iter().any(|row| changes(&row))
            && exposed.iter().any(|row| !changes(&row));
    let accesses = inputs.document.access();
    let ordinary: BTreeSet<Asks> = rows
        .iter()
        .zip(&accesses)
        .filter(|(row, _)| !is_high(row))
        .map(|(_, access)| asks(&access.security))
        .collect();
    let mut table = Vec::new();
    for (row, access) in rows.iter().zip(accesses) {
        if inputs.configured.is_some() && row.class.declared.is_none() {
            continue;
        }
        let key = access.operation.to_string();
        let mut concerns = Vec::new();
        for tool in tools.get(&key).into_iter().flatten() {
            concerns.extend(concerns_of(tool));
        }
        if shares && row.status == Status::Exposed {
            concerns.push("one credential reads and changes".to_owned());
        }
        concerns.extend(of_body(row));
        if is_high(row) && !told_apart(row) && ordinary.contains(&asks(&access.security)) {
            concerns.push("nothing tells its callers from those of ordinary operations".to_owned());
        }
        if row.exclusions.contains(&Exclusion::Webhooks) {
            concerns.push("an argument is an address".to_owned());
        }
        concerns.sort_unstable();
        concerns.dedup();
        table.push(Access {
            operation: key,
            own: access.security.is_own,
            alternatives: access
                .security
                .alternatives
                .iter()
                .map(|all| {
                    all.iter()
                        .map(|one| match &one.kind {
                            Some(kind) => visible(&format!("{} ({kind})", one.scheme)),
                            None => visible(&one.scheme),
                        })
                        .collect()
                })
                .collect(),
            scopes: access.caller_scopes,
            flags: access.flags,
            concerns,
        });
    }
    table
}

/// What a requirement asks for: the schemes and scopes of each alternative, whatever their order.
type Asks = BTreeSet<BTreeSet<(String, BTreeSet<String>)>>;

fn asks(security: &Security) -> Asks {
    let one = |asked: &Requirement| (asked.scheme.clone(), asked.scopes.iter().cloned().collect());
    security
        .alternatives
        .iter()
        .map(|all| all.iter().map(one).collect())
        .collect()
}

/// Whether an operation is for few: it administers, or acts as somebody else (OWASP API5).
fn is_high(row: &Row) -> bool {
    let few = [Exclusion::Administration, Exclusion::Impersonation];
    few.iter().any(|exclusion| row.exclusions.contains(exclusion))
}

/// Whether its approvals are for somebody in particular.
fn told_apart(row: &Row) -> bool {
    row.approvals
        .iter()
        .any(|approval| !approval.audience.iter().any(|audience| audience == "everyone"))
}

/// What a caller sets that a service may mean to decide (OWASP API3).
fn of_body(row: &Row) -> impl Iterator<Item = String> {
    let decisive = row
        .decisive
        .iter()
        .map(|place| format!("a caller sets `{place}`, which decides about rights, owners or money"));
    let undeclared = row.undeclared.iter().map(|place| {
        if place.is_empty() {
            "the body takes fields that nobody declared".to_owned()
        } else {
            format!("`{place}` takes fields that nobody declared")
        }
    });
    decisive.chain(undeclared)
}

/// What a configured tool leaves open.
fn concerns_of(tool: &Tool) -> Vec<String> {
    let mut concerns = Vec::new();
    let names_a_thing = tool
        .operation()
        .is_some_and(|operation| operation.plan().template().contains('{'));
    if names_a_thing && tool.bounds().owner.is_none() {
        concerns.push("nobody asks whose the thing in the path is".to_owned());
    }
    let properties = tool
        .definition()
        .input_schema
        .get("properties")
        .and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let lower = name.to_ascii_lowercase().replace(['_', '-'], "");
        let is_size = [
            "limit",
            "pagesize",
            "perpage",
            "count",
            "maxresults",
            "top",
            "size",
        ]
        .contains(&lower.as_str());
        if is_size && schema.get("maximum").is_none() && schema.get("enum").is_none() {
            concerns.push(format!("`{name}` has no maximum"));
        }
    }
    concerns
}

/// Every origin that requests and credentials can go to.
pub(crate) fn destinations(inputs: &Inputs<'_>) -> Vec<Place> {
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let approved = inputs
        .configured
        .as_ref()
        .and_then(|configured| origin(&configured.upstream.destination))
        .filter(url::Origin::is_tuple);
    let is_approved = |url: &str| approved.is_some() && origin(url) == approved;
    let mut places: Vec<Place> = inputs
        .document
        .destinations()
        .into_iter()
        .map(|destination| Place {
            approved: is_approved(&destination.url),
            url: visible(&destination.url),
            role: "operations",
            operations: destination.operations,
        })
        .collect();
    let mut tokens: BTreeMap<String, usize> = BTreeMap::new();
    for access in inputs.document.access() {
        let mut of_operation = BTreeSet::new();
        for requirement in access.security.alternatives.into_iter().flatten() {
            match requirement.means {
                Means::OAuth2(flows) => {
                    for flow in flows {
                        of_operation.extend(flow.token_url);
                        of_operation.extend(flow.authorization_url);
                    }
                }
                Means::OpenIdConnect(url) => {
                    of_operation.insert(url);
                }
                Means::ApiKey { .. }
                | Means::Basic
                | Means::Bearer
                | Means::Http(_)
                | Means::MutualTls
                | Means::Unknown(_)
                | Means::Undeclared => {}
            }
        }
        for url in of_operation {
            *tokens.entry(url).or_default() += 1;
        }
    }
    places.extend(tokens.into_iter().map(|(url, operations)| Place {
        approved: is_approved(&url),
        url: visible(&url),
        role: "tokens",
        operations,
    }));
    places
}
