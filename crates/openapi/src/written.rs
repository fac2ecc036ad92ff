//! Fields that are only written: what a document marks `writeOnly`, as a password, is sent to a service and does not come
//! from it. A service that answers with one all the same repeats something that nobody asked for.
//!
//! Where such fields can stand in a success is read once, over all schemas of it, and taken out of each answer. It knows
//! nothing of output schemas, which are kept short and may be missing. Source: OpenAPI 3.0.4 section 4.7.24.2, JSON Schema
//! 2020-12 Validation section 9.4.

use std::collections::{BTreeSet, HashMap};

use model::Value;

use crate::blocker::{Blocker, BlockerCause, Findings};
use crate::document::Document;
use crate::media;
use crate::operation::OperationRef;
use crate::reference::{Located, Resolver, reference_of};
use crate::response::is_success;

/// Schemas that the answers of one operation may be made of. The largest public documents have a tenth of it.
const SCHEMAS_MAX: usize = 1_000_000;
/// Values inside each other of an answer that are looked at; a reader of JSON allows fewer.
const DEPTH_MAX: usize = 512;

/// Where fields that are only written can stand in the successes of an operation.
#[derive(Debug, Clone, Default)]
pub struct WriteOnly {
    /// Those that lead to such a field.
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

/// What one schema says.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Fields that are only written.
    hidden: BTreeSet<String>,
    /// Schemas that hold for the same value.
    parts: Vec<usize>,
    fields: HashMap<String, usize>,
    /// Schemas of members that are not named.
    others: Vec<usize>,
    items: Vec<usize>,
}

/// Where fields that are only written can stand in the successes of an operation. `None` where its answers are made of more
/// schemas than are looked at; that is a blocker.
pub(crate) fn of(
    document: &Document,
    operation: &OperationRef,
    findings: &mut Findings,
) -> Option<WriteOnly> {
    if !document.has_write_only() {
        return Some(WriteOnly::default());
    }
    let found = read(document.resolver(), operation);
    if found.is_none() {
        findings.block(Blocker::new(
            BlockerCause::OperationOverBudget,
            &operation.place,
            "the answers of the operation are made of more schemas than are looked at",
            "simplify what it refers to",
        ));
    }
    found
}

/// Whether anything in a document says `writeOnly`. Most say it nowhere.
pub(crate) fn is_in(root: &Value) -> bool {
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(object) => {
                if object.get("writeOnly") == Some(&Value::Bool(true)) {
                    return true;
                }
                open.extend(object.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

// === impl WriteOnly ===

impl WriteOnly {
    /// Takes what is only written out of an answer. Gives how many fields that were.
    pub fn take_from(&self, answer: &mut Value) -> usize {
        self.take(answer, &self.roots, 0)
    }

    fn take(&self, value: &mut Value, schemas: &[usize], depth: usize) -> usize {
        if schemas.is_empty() || depth > DEPTH_MAX {
            return 0;
        }
        let held = self.held(schemas);
        let mut taken = 0;
        match value {
            Value::Array(items) => {
                let inner: Vec<usize> = held.iter().flat_map(|node| node.items.clone()).collect();
                for item in items {
                    taken += self.take(item, &inner, depth + 1);
                }
            }
            Value::Object(object) => {
                let before = object.len();
                object.retain(|name, _| !held.iter().any(|node| node.hidden.contains(name)));
                taken += before - object.len();
                for (name, member) in object {
                    let named = held.iter().filter_map(|node| node.fields.get(name)).copied();
                    let others = held.iter().flat_map(|node| node.others.iter().copied());
                    let inner: Vec<usize> = named.chain(others).collect();
                    taken += self.take(member, &inner, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        taken
    }

    /// The schemas that hold together for one value, each once.
    fn held(&self, schemas: &[usize]) -> Vec<&Node> {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut open = schemas.to_vec();
        let mut held = Vec::new();
        while let Some(id) = open.pop() {
            if seen.insert(id)
                && let Some(node) = self.nodes.get(id)
            {
                open.extend(&node.parts);
                held.push(node);
            }
        }
        held
    }
}

// === reading ===

fn read(resolver: Resolver<'_>, operation: &OperationRef) -> Option<WriteOnly> {
    let mut reader = Reader {
        resolver,
        known: HashMap::new(),
        nodes: Vec::new(),
        flags: Vec::new(),
        open: Vec::new(),
    };
    let mut roots = Vec::new();
    for schema in schemas(resolver, operation) {
        roots.push(reader.enter(schema)?);
    }
    while let Some((id, schema)) = reader.open.pop() {
        reader.look(id, schema)?;
    }
    Some(reader.finish(roots))
}

/// The schemas of every JSON that a success can be.
fn schemas<'d>(resolver: Resolver<'d>, operation: &OperationRef) -> Vec<&'d Value> {
    let responses = resolver
        .at(operation.place.clone())
        .and_then(|operation| operation.get("responses"));
    let Some((place, all)) =
        responses.and_then(|responses| Some((responses.pointer.clone(), responses.object()?)))
    else {
        return Vec::new();
    };
    let is_meant = |status: &str| is_success(status) || status == "default";
    all.iter()
        .filter(|(status, _)| is_meant(status))
        .filter_map(|(status, value)| {
            let start = Located {
                pointer: place.child(status),
                value,
            };
            resolver.follow(start).ok()?.value.get("content")?.as_object()
        })
        .flatten()
        .filter(|(media_type, _)| media::is_json(media_type))
        .filter_map(|(_, media)| media.get("schema"))
        .collect()
}

struct Reader<'d> {
    resolver: Resolver<'d>,
    /// Schemas by where they are in memory: the document does not move while it is read.
    known: HashMap<*const Value, usize>,
    nodes: Vec<Node>,
    /// Of each schema, whether it says itself that it is only written, and the schemas that say so for it.
    flags: Vec<(bool, Vec<usize>)>,
    open: Vec<(usize, &'d Value)>,
}

impl<'d> Reader<'d> {
    fn enter(&mut self, schema: &'d Value) -> Option<usize> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Some(*known);
        }
        let id = self.nodes.len();
        if id >= SCHEMAS_MAX {
            return None;
        }
        self.known.insert(std::ptr::from_ref(schema), id);
        self.nodes.push(Node::default());
        self.flags.push((false, Vec::new()));
        self.open.push((id, schema));
        Some(id)
    }

    fn all(&mut self, schemas: impl IntoIterator<Item = &'d Value>) -> Option<Vec<usize>> {
        schemas.into_iter().map(|schema| self.enter(schema)).collect()
    }

    fn look(&mut self, id: usize, schema: &'d Value) -> Option<()> {
        let Some(object) = schema.as_object() else {
            return Some(());
        };
        let list = |keyword: &str| {
            object
                .get(keyword)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let map = |keyword: &str| {
            object
                .get(keyword)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
        };
        let one = |keyword: &str| object.get(keyword).into_iter();
        let target = reference_of(schema).and_then(|reference| self.resolver.value(reference));
        // A schema is what it refers to and all of its parts; of alternatives it may be any.
        let says = self.all(target.into_iter().chain(list("allOf")))?;
        let mut parts = says.clone();
        let alternatives = ["anyOf", "oneOf"].into_iter().flat_map(list);
        let conditions = ["then", "else"].into_iter().flat_map(one);
        let dependent = map("dependentSchemas").map(|(_, schema)| schema);
        parts.extend(self.all(alternatives.chain(conditions).chain(dependent))?);
        let mut fields = HashMap::new();
        for (name, schema) in map("properties") {
            fields.insert(name.clone(), self.enter(schema)?);
        }
        let others = ["additionalProperties", "unevaluatedProperties"]
            .into_iter()
            .flat_map(one);
        let others = self.all(map("patternProperties").map(|(_, schema)| schema).chain(others))?;
        // In the older dialect `items` can be a list.
        let items = one("items")
            .filter(|items| !items.is_array())
            .chain(list("items"));
        let further = ["contains", "unevaluatedItems"].into_iter().flat_map(one);
        let items = self.all(items.chain(list("prefixItems")).chain(further))?;
        if let Some(node) = self.nodes.get_mut(id) {
            *node = Node {
                hidden: BTreeSet::new(),
                parts,
                fields,
                others,
                items,
            };
        }
        if let Some(flags) = self.flags.get_mut(id) {
            *flags = (object.get("writeOnly") == Some(&Value::Bool(true)), says);
        }
        Some(())
    }

    /// Marks the fields, and keeps only what can lead to one.
    fn finish(mut self, roots: Vec<usize>) -> WriteOnly {
        let flagged = self.flagged();
        let is_flagged = |id: &usize| flagged.get(*id).copied().unwrap_or(false);
        for node in &mut self.nodes {
            node.hidden = node
                .fields
                .iter()
                .filter(|(_, id)| is_flagged(id))
                .map(|(name, _)| name.clone())
                .collect();
            let hidden = &node.hidden;
            node.fields.retain(|name, _| !hidden.contains(name));
        }
        let is_root = self.nodes.iter().map(|node| !node.hidden.is_empty()).collect();
        let leads = backwards(is_root, self.nodes.iter().map(Node::targets));
        let mut kept = 0;
        let places: Vec<Option<usize>> = leads
            .iter()
            .map(|leads| {
                leads.then(|| {
                    kept += 1;
                    kept - 1
                })
            })
            .collect();
        let moved = |ids: &[usize]| -> Vec<usize> {
            ids.iter()
                .filter_map(|id| places.get(*id).copied().flatten())
                .collect()
        };
        let nodes = self.nodes.into_iter().zip(&leads).filter(|(_, leads)| **leads);
        let nodes = nodes.map(|(node, _)| Node {
            parts: moved(&node.parts),
            fields: node
                .fields
                .into_iter()
                .filter_map(|(name, id)| Some((name, *places.get(id)?.as_ref()?)))
                .collect(),
            others: moved(&node.others),
            items: moved(&node.items),
            hidden: node.hidden,
        });
        WriteOnly {
            nodes: nodes.collect(),
            roots: moved(&roots),
        }
    }

    /// Which schemas are only written: those that say so, and those whose reference or part says so.
    fn flagged(&self) -> Vec<bool> {
        let own = self.flags.iter().map(|(own, _)| *own).collect();
        backwards(own, self.flags.iter().map(|(_, says)| says.clone()))
    }
}

impl Node {
    fn targets(&self) -> Vec<usize> {
        let mut targets = self.parts.clone();
        targets.extend(self.fields.values());
        targets.extend(&self.others);
        targets.extend(&self.items);
        targets
    }
}

/// Which places reach one that is marked, each place leading to those that are given for it.
fn backwards(mut marked: Vec<bool>, targets: impl Iterator<Item = Vec<usize>>) -> Vec<bool> {
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); marked.len()];
    for (from, targets) in targets.enumerate() {
        for to in targets {
            if let Some(sources) = sources.get_mut(to) {
                sources.push(from);
            }
        }
    }
    let mut open: Vec<usize> = (0..marked.len())
        .filter(|id| marked.get(*id) == Some(&true))
        .collect();
    while let Some(id) = open.pop() {
        for source in sources.get(id).into_iter().flatten() {
            if let Some(mark) = marked.get_mut(*source).filter(|mark| !**mark) {
                *mark = true;
                open.push(*source);
            }
        }
    }
    marked
}
