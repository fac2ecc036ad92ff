//! The resolved operation: everything in the document that an operation depends on, as one digest.
//!
//! A pin covers it, so that a change anywhere behind a `$ref`, in a parameter of the path or in a security scheme is
//! seen even where the generated tool would look the same. Source: `docs/adr/0007-canonical-json.md`.

use std::collections::{BTreeMap, BTreeSet};

use model::{Digest, Value, canonical};
use serde_json::json;

use crate::document::{Document, Family};
use crate::number::{all_exact, exactly};
use crate::operation::OperationRef;
use crate::reference::Located;

/// Values that are digested for one operation.
const VALUES_MAX: usize = 2_000_000;

/// The digest, or `None` where the operation reaches more than is looked at.
///
/// It is taken over canonical JSON that holds the method, the path, the operation as it is written, what it inherits,
/// and the digest of each place that it refers to, directly or not. Whatever does not reach the operation does not
/// change it, nor does the order of keys.
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
    let mut left = VALUES_MAX;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Vec<(Option<String>, &Value)> = vec![(None, operation.value)];
    open.extend(inherited.iter().map(|list| (None, list.value)));
    open.extend(schemes.values().map(|scheme| (None, *scheme)));
    while let Some((name, value)) = open.pop() {
        let mut references = Vec::new();
        collect(value, &mut references, &mut left)?;
        if let Some(name) = name {
            places.insert(name, of(value));
        }
        for text in references {
            // What leads nowhere is part of the text that is digested already.
            let Ok(target) = resolver.target(text) else {
                continue;
            };
            let name = target.pointer.to_string();
            if seen.insert(name.clone()) {
                open.push((Some(name), target.value));
            }
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
    Some(Digest::of("openapi-operation-v1", &[&canonical(&resolved)]))
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
