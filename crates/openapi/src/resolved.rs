//! The resolved operation: everything in the document that an operation depends on, as one digest.
//!
//! A pin covers it, so that a change anywhere behind a `$ref`, in a parameter of the path or in a security scheme is
//! seen even where the generated tool would look the same. Source: `docs/adr/0007-canonical-json.md`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use model::{Digest, Value, canonical};
use serde_json::json;

use crate::document::{Document, Family};
use crate::number::{all_exact, exactly};
use crate::operation::OperationRef;
use crate::pointer::Pointer;
use crate::reference::{Located, Resolver};

/// Values of one document that are digested, counted again where places lie inside each other.
const VALUES_MAX: usize = 20_000_000;

/// Digests of places together with all that they refer to, kept so that each is taken once for a document.
#[derive(Debug)]
pub(crate) struct Closures {
    known: HashMap<String, Digest>,
    values_left: usize,
}

impl Default for Closures {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            values_left: VALUES_MAX,
        }
    }
}

/// The digest, or `None` where the document holds more than is looked at.
///
/// It is taken over canonical JSON that holds the method, the path, the operation as it is written, what it inherits,
/// and for each place that it refers to a digest of that place and all that it refers to in turn. Whatever does not
/// reach the operation does not change it, nor does the order of keys.
pub(crate) fn digest(
    document: &Document,
    reference: &OperationRef,
    operation: &Located<'_>,
    inherited: &[Located<'_>],
) -> Option<Digest> {
    let resolver = document.resolver();
    let root = resolver.root();
    let security = operation
        .value
        .get("security")
        .or_else(|| root.get("security"))
        .unwrap_or(&Value::Null);
    let schemes = schemes(root, security);
    let mut closures = document.closures();
    let mut references = Vec::new();
    for value in std::iter::once(operation.value)
        .chain(inherited.iter().map(|list| list.value))
        .chain(schemes.values().copied())
    {
        collect(value, &mut references, &mut closures.values_left)?;
    }
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for text in references {
        // What leads nowhere is part of the text that is digested already.
        let Ok(target) = resolver.target(text) else {
            continue;
        };
        let name = target.pointer.to_string();
        if let Entry::Vacant(free) = places.entry(name) {
            free.insert(closures.of(resolver, target)?.to_string());
        }
    }
    let schemes: BTreeMap<&str, String> = schemes.iter().map(|(name, scheme)| (*name, of(scheme))).collect();
    let resolved = json!({
        "version": match document.family() { Family::V30 => "3.0", Family::V31 => "3.1", Family::V32 => "3.2" },
        "method": reference.method(),
        "path": reference.path(),
        "operation": of(operation.value),
        "inherited": inherited.iter().map(|list| of(list.value)).collect::<Vec<_>>(),
        "security": of(security),
        "securitySchemes": schemes,
        "references": places,
    });
    Some(Digest::of("openapi-operation-v2", &[&canonical(&resolved)]))
}

/// A place on the way: Tarjan's algorithm finds the places that refer to each other in a circle, and gives them
/// together one digest, in an order in which all that they refer to outside the circle is known.
struct Node {
    name: String,
    own: String,
    targets: Vec<String>,
    next: usize,
    low: usize,
    is_open: bool,
}

impl Closures {
    fn of<'d>(&mut self, resolver: Resolver<'d>, start: Located<'d>) -> Option<Digest> {
        let start_name = start.pointer.to_string();
        if let Some(known) = self.known.get(&start_name) {
            return Some(*known);
        }
        let mut nodes: Vec<Node> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        let mut open: Vec<usize> = Vec::new();
        let mut path: Vec<usize> = vec![self.enter(resolver, start, &mut nodes, &mut index, &mut open)?];
        while let Some(&here) = path.last() {
            let node = nodes.get_mut(here)?;
            let next = node.next;
            node.next += 1;
            if let Some(name) = node.targets.get(next) {
                let name = name.clone();
                if self.known.contains_key(&name) {
                    continue;
                }
                let found = match index.get(&name) {
                    Some(found) => *found,
                    None => {
                        let target = resolver.at(Pointer::parse(&fragment_of(&name))?)?;
                        let entered = self.enter(resolver, target, &mut nodes, &mut index, &mut open)?;
                        path.push(entered);
                        entered
                    }
                };
                let is_open = nodes.get(found).is_some_and(|found| found.is_open);
                if let Some(node) = nodes.get_mut(here).filter(|_| is_open) {
                    node.low = node.low.min(found);
                }
                continue;
            }
            path.pop();
            let low = node.low;
            if let Some(&parent) = path.last()
                && let Some(parent) = nodes.get_mut(parent)
            {
                parent.low = parent.low.min(low);
            }
            if low == here {
                let members = open.split_off(open.iter().position(|open| *open == here)?);
                self.close(&mut nodes, &members);
            }
        }
        self.known.get(&start_name).copied()
    }

    fn enter<'d>(
        &mut self,
        resolver: Resolver<'d>,
        place: Located<'d>,
        nodes: &mut Vec<Node>,
        index: &mut HashMap<String, usize>,
        open: &mut Vec<usize>,
    ) -> Option<usize> {
        let mut references = Vec::new();
        collect(place.value, &mut references, &mut self.values_left)?;
        let mut targets: Vec<String> = references
            .into_iter()
            .filter_map(|text| Some(resolver.target(text).ok()?.pointer.to_string()))
            .collect();
        targets.sort_unstable();
        targets.dedup();
        let number = nodes.len();
        let name = place.pointer.to_string();
        index.insert(name.clone(), number);
        open.push(number);
        nodes.push(Node {
            name,
            own: of(place.value),
            targets,
            next: 0,
            low: number,
            is_open: true,
        });
        Some(number)
    }

    /// All members of a circle get the digest of the whole circle under their own name.
    fn close(&mut self, nodes: &mut [Node], members: &[usize]) {
        let mut own: BTreeMap<&str, &str> = BTreeMap::new();
        let mut outside: BTreeMap<&str, String> = BTreeMap::new();
        for node in members.iter().filter_map(|member| nodes.get(*member)) {
            own.insert(&node.name, &node.own);
            for target in &node.targets {
                if let Some(known) = self.known.get(target) {
                    outside.insert(target, known.to_string());
                }
            }
        }
        let circle = canonical(&json!({"own": own, "outside": outside}));
        let found: Vec<(String, Digest)> = own
            .keys()
            .map(|name| {
                let digest = Digest::of("openapi-closure-v1", &[name.as_bytes(), b"\0", &circle]);
                ((*name).to_owned(), digest)
            })
            .collect();
        self.known.extend(found);
        for member in members {
            if let Some(node) = nodes.get_mut(*member) {
                node.is_open = false;
            }
        }
    }
}

/// A pointer as the fragment that parses back to it.
fn fragment_of(pointer: &str) -> String {
    crate::swagger::fragment(pointer.strip_prefix('#').unwrap_or(pointer))
}

/// The schemes that a requirement names.
fn schemes<'d>(root: &'d Value, security: &'d Value) -> BTreeMap<&'d str, &'d Value> {
    let declared = root
        .get("components")
        .and_then(|components| components.get("securitySchemes"));
    security
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|alternative| alternative.keys())
        .filter_map(|name| Some((name.as_str(), declared?.get(name)?)))
        .collect()
}

fn of(value: &Value) -> String {
    let bytes = if all_exact(value) {
        canonical(value)
    } else {
        canonical(&exactly(value))
    };
    Digest::of("openapi-value-v1", &[&bytes]).to_string()
}

/// Every `$ref` text in a value. `None` where too much was looked at.
fn collect<'d>(value: &'d Value, references: &mut Vec<&'d str>, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, references, left)),
        Value::Object(object) => object.iter().try_for_each(|(key, value)| {
            if key == "$ref"
                && let Some(text) = value.as_str()
            {
                references.push(text);
            }
            collect(value, references, left)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}
