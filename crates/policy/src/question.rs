//! One question, put into Cedar's words: who calls, what, on which thing, with what.
//!
//! Values are checked against the declared types while they are converted, and only what some rule of the tool
//! reads is converted at all. Nothing here decides.

use std::collections::{BTreeSet, HashSet};

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use jiff::Timestamp;
use model::{Caller, Fact, FactValue, Object, Target, ToolName};

use crate::reads::Reads;
use crate::shape::{Field, Record, Scalar, Shape};
use crate::value::{fact_value, fits_record, instant, record, text};
use crate::vocabulary::Tool;

/// What is asked: may this caller do this now?
///
/// Facts only. That the caller was authenticated, the arguments fit the schema and the owner was looked up is for
/// the caller of this room to have seen to.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Who calls.
    pub caller: &'a Caller,
    /// The public name of the tool.
    pub tool: &'a ToolName,
    /// The thing that the call names, with its owner. `None` for a tool whose resource is the tool itself.
    pub target: Option<&'a Target>,
    /// The arguments.
    pub arguments: &'a Object,
    /// What was looked up besides the owner.
    pub facts: &'a [Fact],
    /// The time of the call, as `context.now`, in whole milliseconds.
    pub now: Timestamp,
}

/// What the rules of one tool need of a question, and everything about it that never changes.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) action: EntityUid,
    /// The action with its groups, where a condition looks at it. What scopes say about it was settled at load.
    groups: Option<Entity>,
    resource: Resource,
    class: &'static str,
    upstream: String,
    /// Everything that is declared.
    declared: Record,
    /// What of it is read.
    read: Record,
    /// Which attributes of entities are read.
    attributes: Attributes,
}

/// The resource of a tool.
#[derive(Debug)]
enum Resource {
    /// Things of a type.
    Of(EntityTypeName, String),
    /// The tool itself.
    Itself(Entity),
}

/// The attributes of callers and resources that some rule reads.
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    subject: bool,
    issuer: bool,
    tenant: bool,
    client: bool,
    roles: bool,
    id: bool,
    owner: bool,
}

/// A caller before a tool: the part of a question that is the same for every call.
pub(crate) struct Party {
    caller: EntityUid,
    /// The caller, and the action with its groups where a condition looks at it, and the tool where it is the resource.
    entities: Entities,
}

/// A question in Cedar's words.
pub(crate) struct Case {
    pub(crate) request: Request,
    pub(crate) entities: Entities,
}

#[cfg(test)]
impl Party {
    pub(crate) fn nobody() -> Self {
        Self {
            caller: "Caller::\"corp/nobody\"".parse().unwrap(),
            entities: Entities::empty(),
        }
    }
}

/// The names of entity types that every question uses.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) caller: EntityTypeName,
    pub(crate) tool: EntityTypeName,
    pub(crate) action: EntityTypeName,
}

/// Why a question is not one about its tool. For the operator; names arguments, never their values.
pub(crate) type Unfit = String;

impl Types {
    /// `None` if Cedar does not take our own names for types, which a test rules out.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            caller: crate::vocabulary::CALLER.parse().ok()?,
            tool: crate::vocabulary::TOOL.parse().ok()?,
            action: crate::vocabulary::ACTION.parse().ok()?,
        })
    }
}

// === impl Form ===

impl Form {
    /// The form of one tool. `reads` is what each of its rules reads.
    ///
    /// `None` where Cedar refuses a name that the schema, which it accepted, has; that cannot be.
    pub(crate) fn new<'r>(
        types: &Types,
        tool: &Tool,
        reads: impl Iterator<Item = &'r Reads>,
    ) -> Option<Self> {
        let mut paths = BTreeSet::new();
        let mut attributes = Attributes::default();
        let mut looks = false;
        for reads in reads {
            looks |= reads.action;
            paths.extend(reads.context.iter().map(Vec::as_slice));
            attributes.add(reads);
        }
        let action = uid(&types.action, tool.name.as_str());
        let groups = || {
            tool.groups()
                .iter()
                .map(|group| uid(&types.action, group))
                .collect()
        };
        let resource = match &tool.resource {
            Some(kind) => Resource::Of(kind.as_str().parse().ok()?, kind.as_str().to_owned()),
            None => Resource::Itself(Entity::new_no_attrs(
                uid(&types.tool, tool.name.as_str()),
                HashSet::new(),
            )),
        };
        Some(Self {
            groups: looks.then(|| Entity::new_no_attrs(action.clone(), groups())),
            action,
            resource,
            class: tool.class.as_str(),
            upstream: tool.upstream.as_str().to_owned(),
            declared: tool.context.clone(),
            read: tool.context.only(&paths),
            attributes,
        })
    }

    /// The caller before this tool.
    ///
    /// # Errors
    /// A caller about whom no question can be asked.
    pub(crate) fn party(&self, types: &Types, caller: &Caller) -> Result<Party, Unfit> {
        let caller = self.principal(types, caller)?;
        let itself = match &self.resource {
            Resource::Of(..) => None,
            Resource::Itself(tool) => Some(tool.clone()),
        };
        let uid = caller.uid();
        let there = [caller].into_iter().chain(itself).chain(self.groups.clone());
        Ok(Party {
            caller: uid,
            entities: entities(Entities::empty(), there)?,
        })
    }

    /// The question in Cedar's words. `party`: the one whose call it is.
    ///
    /// # Errors
    /// Another type of target than the tool has, or none; an argument or fact that does not have its declared type.
    pub(crate) fn case(&self, party: &Party, question: &Question<'_>) -> Result<Case, Unfit> {
        self.check(question)?;
        let (resource, thing) = self.resource(question.target)?;
        let context = self.context(question)?;
        let entities = entities(party.entities.clone(), thing)?;
        self.pack(party, resource, context, entities)
    }

    /// A question of which only the caller is known. It has no arguments, no facts and no time, and a resource of which
    /// only the type means something; only expressions that read none of these may be asked with it.
    ///
    /// # Errors
    /// A caller about whom no question can be asked.
    pub(crate) fn open_case(&self, types: &Types, caller: &Caller) -> Result<Case, Unfit> {
        let party = self.party(types, caller)?;
        let resource = match &self.resource {
            Resource::Of(kind, _) => uid(kind, ""),
            Resource::Itself(tool) => tool.uid(),
        };
        let words = [("class", self.class), ("upstream", &self.upstream)];
        let context = Context::from_pairs(words.map(|(name, word)| (name.to_owned(), text(word))))
            .map_err(|error| error.to_string())?;
        let entities = party.entities.clone();
        self.pack(&party, resource, context, entities)
    }

    fn pack(
        &self,
        party: &Party,
        resource: EntityUid,
        context: Context,
        entities: Entities,
    ) -> Result<Case, Unfit> {
        let request = Request::new(party.caller.clone(), self.action.clone(), resource, context, None)
            .map_err(|error| error.to_string())?;
        Ok(Case { request, entities })
    }

    fn principal(&self, types: &Types, caller: &Caller) -> Result<Entity, Unfit> {
        let id = caller_id(caller)?;
        let read = self.attributes;
        let attributes = [
            read.subject
                .then(|| ("subject".to_owned(), text(caller.subject.as_str()))),
            read.issuer.then(|| ("issuer".to_owned(), text(&caller.issuer))),
            caller
                .tenant
                .as_ref()
                .filter(|_| read.tenant)
                .map(|tenant| ("tenant".to_owned(), text(tenant.as_str()))),
            caller
                .client
                .as_ref()
                .filter(|_| read.client)
                .map(|client| ("client".to_owned(), text(client.as_str()))),
            read.roles.then(|| {
                let roles = caller.roles.iter().map(|role| text(role.as_str()));
                ("roles".to_owned(), RestrictedExpression::new_set(roles))
            }),
        ];
        entity(uid(&types.caller, &id), attributes.into_iter().flatten())
    }

    /// What the call is about, and the thing itself, unless it is the tool, which is known.
    fn resource(&self, target: Option<&Target>) -> Result<(EntityUid, Option<Entity>), Unfit> {
        match (&self.resource, target) {
            (Resource::Itself(tool), None) => Ok((tool.uid(), None)),
            (Resource::Itself(_), Some(target)) => {
                Err(format!("a target of type `{}` where there is none", target.kind))
            }
            (Resource::Of(_, kind), None) => Err(format!("no target where there is one of type `{kind}`")),
            (Resource::Of(_, kind), Some(target)) if target.kind.as_str() != kind => Err(format!(
                "a target of type `{}` where there is one of type `{kind}`",
                target.kind
            )),
            (Resource::Of(kind, _), Some(target)) => {
                let attributes = [
                    self.attributes.id.then(|| ("id".to_owned(), text(&target.id))),
                    // Where the owner is unknown there is none: a rule that reads it fails, and a failure denies.
                    target
                        .owner
                        .as_ref()
                        .filter(|_| self.attributes.owner)
                        .map(|owner| ("owner".to_owned(), text(owner.as_str()))),
                ];
                let thing = entity(uid(kind, &target.id), attributes.into_iter().flatten())?;
                Ok((thing.uid(), Some(thing)))
            }
        }
    }

    fn context(&self, question: &Question<'_>) -> Result<Context, Unfit> {
        let mut pairs = Vec::with_capacity(5);
        for (name, shape, _) in self.read.readable() {
            let value = match (name, shape) {
                ("class", _) => text(self.class),
                ("upstream", _) => text(&self.upstream),
                ("now", _) => instant(question.now)?,
                ("arguments", Shape::Record(read)) => {
                    record(question.arguments, read).ok_or_else(unconvertible)?
                }
                ("facts", Shape::Record(read)) => {
                    let read: BTreeSet<&str> = read.readable().map(|(name, _, _)| name).collect();
                    let facts = question
                        .facts
                        .iter()
                        .filter(|fact| read.contains(fact.name.as_str()));
                    RestrictedExpression::new_record(
                        facts.map(|fact| (fact.name.clone(), fact_value(&fact.value))),
                    )
                    .map_err(|error| error.to_string())?
                }
                // The context has these five names and no other.
                (_, Shape::One(_) | Shape::SetOf(_) | Shape::Record(_)) => continue,
            };
            pairs.push((name.to_owned(), value));
        }
        Context::from_pairs(pairs).map_err(|error| error.to_string())
    }

    /// Every declared argument and fact that is there has its declared type, whether a rule reads it or not.
    fn check(&self, question: &Question<'_>) -> Result<(), Unfit> {
        if let Some(Field::Readable {
            shape: Shape::Record(declared),
            ..
        }) = self.declared.fields.get("arguments")
        {
            fits_record(question.arguments, declared).map_err(|misfit| misfit.to_string())?;
        }
        if let Some(Field::Readable {
            shape: Shape::Record(declared),
            ..
        }) = self.declared.fields.get("facts")
        {
            for (index, fact) in question.facts.iter().enumerate() {
                if question
                    .facts
                    .iter()
                    .skip(index + 1)
                    .any(|other| other.name == fact.name)
                {
                    return Err(format!("the fact `{}` stands twice", fact.name.escape_debug()));
                }
                match (declared.fields.get(&fact.name), &fact.value) {
                    (None, _)
                    | (
                        Some(Field::Readable {
                            shape: Shape::One(Scalar::Truth),
                            ..
                        }),
                        FactValue::Truth(_),
                    )
                    | (
                        Some(Field::Readable {
                            shape: Shape::One(Scalar::Integer),
                            ..
                        }),
                        FactValue::Integer(_),
                    )
                    | (
                        Some(Field::Readable {
                            shape: Shape::One(Scalar::Text),
                            ..
                        }),
                        FactValue::Text(_),
                    ) => {}
                    (Some(_), FactValue::Truth(_) | FactValue::Integer(_) | FactValue::Text(_)) => {
                        return Err(format!(
                            "the fact `{}` does not have its declared type",
                            fact.name.escape_debug()
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Attributes {
    fn add(&mut self, reads: &Reads) {
        let reads = |name: &str| reads.attributes.contains(name);
        self.subject |= reads("subject");
        self.issuer |= reads("issuer");
        self.tenant |= reads("tenant");
        self.client |= reads("client");
        self.roles |= reads("roles");
        self.id |= reads("id");
        self.owner |= reads("owner");
    }
}

/// The id of a caller in rules: `corp/ada`. Two callers never share one, since the first slash ends the issuer.
pub(crate) fn caller_id(caller: &Caller) -> Result<String, Unfit> {
    if caller.issuer.contains('/') {
        return Err(format!(
            "the issuer `{}` has a slash in its name",
            caller.issuer.escape_debug()
        ));
    }
    Ok(format!("{}/{}", caller.issuer, caller.subject))
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn entity(
    uid: EntityUid,
    attributes: impl Iterator<Item = (String, RestrictedExpression)>,
) -> Result<Entity, Unfit> {
    Entity::new_with_tags(uid, attributes, [], []).map_err(|error| error.to_string())
}

fn entities(there: Entities, more: impl IntoIterator<Item = Entity>) -> Result<Entities, Unfit> {
    let more: Vec<Entity> = more.into_iter().collect();
    if more.is_empty() {
        return Ok(there);
    }
    there.add_entities(more, None).map_err(|error| error.to_string())
}

fn unconvertible() -> Unfit {
    "an argument does not have its declared type".to_owned()
}
