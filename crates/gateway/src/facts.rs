//! The target of a call, its owner, and further facts: from sources that are not the protected call.
//!
//! A source that fails, is late, or gives two answers is a no. So is a source that knows nothing (DESIGN section 7).

use std::collections::HashMap;

use catalog::{Catalog, Tool};
use config::{Bind, FactKind, Given, OwnerSettings, Owners, ResourceBy, Scope};
use identity::Principal;
use model::{
    Arguments, CallId, Caller, Fact, FactValue, Object, Refusal, RefusalCode, ResourceType, SourceName,
    Target, TenantId, ToolName, Value,
};
use store::{FactDatabase, FactQuery, FactQueryFault};
use tokio::time::Instant;

/// The sources of facts, opened.
#[derive(Debug, Default)]
pub struct Sources {
    /// Databases of the operator, read only.
    pub databases: HashMap<SourceName, FactDatabase>,
    /// Files of owners.
    pub files: HashMap<SourceName, Owners>,
}

/// The look-ups of all tools, read once.
#[derive(Debug)]
pub(crate) struct Lookups {
    sources: Sources,
    tools: HashMap<ToolName, ToolLookups>,
}

#[derive(Debug, Default)]
struct ToolLookups {
    owner: Option<Lookup>,
    facts: Vec<(String, FactKind, Lookup)>,
}

/// One look-up in a database.
#[derive(Debug)]
struct Lookup {
    source: SourceName,
    query: FactQuery,
    bind: Vec<Bind>,
}

/// A look-up that can never work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsFault {
    /// The query is none.
    #[error("`{key}.{part}`: {fault}")]
    Query {
        /// The tool's key in the configuration.
        key: String,
        /// Which look-up.
        part: String,
        /// What is wrong.
        fault: FactQueryFault,
    },
    /// The source was not opened.
    #[error("`{key}.{part}`: the source `{source_name}` was not opened")]
    Source {
        /// The tool's key in the configuration.
        key: String,
        /// Which look-up.
        part: String,
        /// The source.
        source_name: SourceName,
    },
}

/// What was found out about a call before it is decided.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) target: Option<Target>,
    pub(crate) facts: Vec<Fact>,
}

impl Lookups {
    pub(crate) fn of(catalog: &Catalog, sources: Sources) -> Result<Self, FactsFault> {
        let mut tools = HashMap::new();
        for tool in catalog.tools() {
            tools.insert(tool.name().clone(), ToolLookups::of(tool, &sources)?);
        }
        Ok(Self { sources, tools })
    }

    /// What the operator adds to a call: the caller's own scope, constants, and what else is known of the caller and the call.
    pub(crate) fn injected(
        &self,
        tool: &Tool,
        principal: &Principal,
        call: CallId,
    ) -> Result<Object, Refusal> {
        let mut injected = Object::new();
        if let Some(argument) = &tool.bounds().scope_argument {
            let scope = scope_of(tool, principal.caller())?;
            injected.insert(argument.clone(), Value::from(scope.as_str()));
        }
        for argument in &tool.bounds().arguments {
            if let Some(given) = &argument.given {
                injected.insert(argument.name.clone(), given_for(given, principal, call)?);
            }
        }
        Ok(injected)
    }

    /// The target with its owner, and every further fact, all within the deadline and at once.
    pub(crate) async fn find(
        &self,
        tool: &Tool,
        principal: &Principal,
        arguments: &Arguments,
        deadline: Instant,
    ) -> Result<Found, Refusal> {
        let Some(lookups) = self.tools.get(tool.name()) else {
            return Err(Refusal::new(
                RefusalCode::SourceFailed,
                "the tool has no prepared look-ups",
            ));
        };
        let named = named(tool, principal.caller(), arguments)?;
        if lookups.facts.is_empty() {
            // The common case, without the machinery for several look-ups at once.
            let target = self
                .with_owner(named, tool, lookups, principal, arguments, deadline)
                .await?;
            return Ok(Found {
                target,
                facts: Vec::new(),
            });
        }
        let id = named.as_ref().map(|named| named.id.clone());
        let id = id.as_deref();
        let target = self.with_owner(named, tool, lookups, principal, arguments, deadline);
        let facts = self.facts(lookups, principal.caller(), arguments, id, deadline);
        let (target, facts) = tokio::try_join!(target, facts)?;
        Ok(Found { target, facts })
    }

    async fn with_owner(
        &self,
        named: Option<Named>,
        tool: &Tool,
        lookups: &ToolLookups,
        principal: &Principal,
        arguments: &Arguments,
        deadline: Instant,
    ) -> Result<Option<Target>, Refusal> {
        let Some(Named { kind, id, scope }) = named else {
            return Ok(None);
        };
        if let Some(scope) = scope {
            return Ok(Some(Target {
                kind,
                id,
                owner: Some(scope),
            }));
        }
        let owner = match &tool.bounds().owner {
            None => {
                return Err(Refusal::new(
                    RefusalCode::OwnerUnknown,
                    "the tool names a thing and no source of owners",
                ));
            }
            Some(OwnerSettings::Claims { claim }) => owner_by_claim(principal, claim, &id)?,
            Some(OwnerSettings::File { source }) => match self.sources.files.get(source) {
                Some(owners) => owners.owner(&kind, &id).cloned(),
                None => return Err(failed(source, "it was not opened")),
            },
            Some(OwnerSettings::Sql { source, .. }) => {
                let Some(lookup) = &lookups.owner else {
                    return Err(failed(source, "its query was not prepared"));
                };
                match self
                    .run(lookup, principal.caller(), arguments, Some(&id), deadline)
                    .await?
                    .text()
                {
                    Ok(None) => None,
                    Ok(Some(owner)) => Some(
                        TenantId::parse(&owner)
                            .map_err(|fault| failed(source, &format!("its owner is none: {fault}")))?,
                    ),
                    Err(fault) => return Err(failed(source, &fault.to_string())),
                }
            }
        };
        match owner {
            Some(owner) => Ok(Some(Target {
                kind,
                id,
                owner: Some(owner),
            })),
            None => Err(Refusal::new(
                RefusalCode::OwnerUnknown,
                format!("the source of owners knows no such {kind}"),
            )),
        }
    }

    async fn facts(
        &self,
        lookups: &ToolLookups,
        caller: &Caller,
        arguments: &Arguments,
        id: Option<&str>,
        deadline: Instant,
    ) -> Result<Vec<Fact>, Refusal> {
        let mut facts = Vec::with_capacity(lookups.facts.len());
        for (name, kind, lookup) in &lookups.facts {
            let row = self.run(lookup, caller, arguments, id, deadline).await?;
            let value = match kind {
                FactKind::Truth => row.truth().map(|value| value.map(FactValue::Truth)),
                FactKind::Integer => row.integer().map(|value| value.map(FactValue::Integer)),
                FactKind::Text => row.text().map(|value| value.map(FactValue::Text)),
            };
            let value =
                value.map_err(|fault| failed(&lookup.source, &format!("the fact `{name}`: {fault}")))?;
            let Some(value) = value else {
                return Err(failed(
                    &lookup.source,
                    &format!("the fact `{name}` is unknown to it"),
                ));
            };
            facts.push(Fact {
                name: name.clone(),
                value,
            });
        }
        Ok(facts)
    }

    async fn run(
        &self,
        lookup: &Lookup,
        caller: &Caller,
        arguments: &Arguments,
        id: Option<&str>,
        deadline: Instant,
    ) -> Result<store::FactRow, Refusal> {
        let Some(database) = self.sources.databases.get(&lookup.source) else {
            return Err(failed(&lookup.source, "it was not opened"));
        };
        let mut values = Vec::with_capacity(lookup.bind.len());
        for bind in &lookup.bind {
            values.push(bound(bind, caller, arguments, id)?);
        }
        database
            .query(&lookup.query, &values, deadline)
            .await
            .map_err(|fault| failed(&lookup.source, &fault.to_string()))
    }
}

impl ToolLookups {
    fn of(tool: &Tool, sources: &Sources) -> Result<Self, FactsFault> {
        let key = &tool.bounds().key;
        let database = |part: &str, source: &SourceName, query: &str, bind: &[Bind]| {
            if !sources.databases.contains_key(source) {
                return Err(FactsFault::Source {
                    key: key.clone(),
                    part: part.to_owned(),
                    source_name: source.clone(),
                });
            }
            let query = FactQuery::parse(query).map_err(|fault| FactsFault::Query {
                key: key.clone(),
                part: part.to_owned(),
                fault,
            })?;
            Ok(Lookup {
                source: source.clone(),
                query,
                bind: bind.to_vec(),
            })
        };
        let owner = match &tool.bounds().owner {
            Some(OwnerSettings::Sql { source, query, bind }) => Some(database("owner", source, query, bind)?),
            Some(OwnerSettings::File { source }) if !sources.files.contains_key(source) => {
                return Err(FactsFault::Source {
                    key: key.clone(),
                    part: "owner".to_owned(),
                    source_name: source.clone(),
                });
            }
            Some(OwnerSettings::File { .. } | OwnerSettings::Claims { .. }) | None => None,
        };
        let mut facts = Vec::new();
        for fact in &tool.bounds().facts {
            let part = format!("facts.{}", fact.name);
            facts.push((
                fact.name.clone(),
                fact.kind,
                database(&part, &fact.source, &fact.query, &fact.bind)?,
            ));
        }
        Ok(Self { owner, facts })
    }
}

/// The thing that a call names, before its owner is known.
struct Named {
    kind: ResourceType,
    id: String,
    /// The owner, where the thing is the caller's own scope.
    scope: Option<TenantId>,
}

fn named(tool: &Tool, caller: &Caller, arguments: &Arguments) -> Result<Option<Named>, Refusal> {
    let Some(resource) = &tool.bounds().resource else {
        return Ok(None);
    };
    let kind = resource.kind.clone();
    match &resource.by {
        ResourceBy::Scope(_) => {
            let scope = scope_of(tool, caller)?;
            Ok(Some(Named {
                kind,
                id: tool.name().to_string(),
                scope: Some(scope),
            }))
        }
        ResourceBy::Argument(name) => {
            let id = match arguments.object().get(name) {
                Some(Value::String(text)) if !text.is_empty() => text.clone(),
                Some(Value::Number(number)) if !number.is_f64() => number.to_string(),
                Some(_) | None => {
                    let text = format!("`{name}` names the {kind} and must be a text or a whole number");
                    return Err(Refusal::new(RefusalCode::ArgumentsInvalid, text.clone()).with_detail(text));
                }
            };
            Ok(Some(Named {
                kind,
                id,
                scope: None,
            }))
        }
    }
}

/// What is known of a caller or a call, as a value that is sent. Nothing stands in for what is not known.
fn given_for(given: &Given, principal: &Principal, call: CallId) -> Result<Value, Refusal> {
    let caller = principal.caller();
    let lacks = |what: &str| {
        Refusal::new(
            RefusalCode::OwnerUnknown,
            format!("the tool sends {what}, which the caller's identity does not have"),
        )
    };
    match given {
        Given::Fixed(value) => Ok(value.clone()),
        Given::Tenant => caller
            .tenant
            .as_ref()
            .map(|tenant| Value::from(tenant.as_str()))
            .ok_or_else(|| lacks("the tenant of the caller")),
        Given::Subject => Ok(Value::from(caller.subject.as_str())),
        Given::Client => caller
            .client
            .as_ref()
            .map(|client| Value::from(client.as_str()))
            .ok_or_else(|| lacks("the client of the caller")),
        Given::Issuer => Ok(Value::from(caller.issuer.as_str())),
        Given::Claim(name) => principal
            .claims()
            .get(name)
            .filter(|value| !value.is_null())
            .cloned()
            .ok_or_else(|| lacks(&format!("the claim `{name}`"))),
        Given::CallId => Ok(Value::from(call.to_string())),
    }
}

/// The scope of a caller for a tool that works on it.
fn scope_of(tool: &Tool, caller: &Caller) -> Result<TenantId, Refusal> {
    let scope = match tool.bounds().resource.as_ref().map(|resource| &resource.by) {
        Some(ResourceBy::Scope(Scope::Subject)) => TenantId::parse(caller.subject.as_str()).ok(),
        Some(ResourceBy::Scope(Scope::Tenant) | ResourceBy::Argument(_)) | None => caller.tenant.clone(),
    };
    scope.ok_or_else(|| {
        Refusal::new(
            RefusalCode::OwnerUnknown,
            "the caller has no scope: its identity names no tenant",
        )
    })
}

/// Things whose ids a claim lists belong to the caller's tenant, or to its subject where it has none.
fn owner_by_claim(principal: &Principal, claim: &str, id: &str) -> Result<Option<TenantId>, Refusal> {
    let lists = match principal.claims().get(claim) {
        Some(Value::Array(ids)) => ids.iter().any(|listed| listed.as_str() == Some(id)),
        Some(Value::String(only)) => only == id,
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    };
    if !lists {
        return Ok(None);
    }
    let caller = principal.caller();
    match &caller.tenant {
        Some(tenant) => Ok(Some(tenant.clone())),
        None => TenantId::parse(caller.subject.as_str())
            .map(Some)
            .map_err(|fault| {
                Refusal::new(
                    RefusalCode::OwnerUnknown,
                    format!("the subject cannot own things: {fault}"),
                )
            }),
    }
}

fn bound(bind: &Bind, caller: &Caller, arguments: &Arguments, id: Option<&str>) -> Result<String, Refusal> {
    let lacks = |what: &str| {
        Refusal::new(
            RefusalCode::OwnerUnknown,
            format!("a look-up needs {what}, which the call has not"),
        )
    };
    match bind {
        Bind::ResourceId => id.map(str::to_owned).ok_or_else(|| lacks("the id of a thing")),
        Bind::PrincipalSubject => Ok(caller.subject.to_string()),
        Bind::PrincipalTenant => caller
            .tenant
            .as_ref()
            .map(ToString::to_string)
            .ok_or_else(|| lacks("a tenant")),
        Bind::PrincipalClient => caller
            .client
            .as_ref()
            .map(ToString::to_string)
            .ok_or_else(|| lacks("a client")),
        Bind::PrincipalIssuer => Ok(caller.issuer.clone()),
        Bind::Argument(name) => match arguments.object().get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(Value::Bool(truth)) => Ok(truth.to_string()),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Err(lacks("an argument")),
        },
    }
}

fn failed(source: &SourceName, why: &str) -> Refusal {
    Refusal::new(
        RefusalCode::SourceFailed,
        format!("the source `{source}` failed: {why}"),
    )
}
