//! Overlays: documents of changes that are applied to an OpenAPI document before it is read.
//!
//! What an operator corrects in somebody else's document stands in a file of its own. Each action is reported with
//! the places that it changed, so that a reviewer sees it. Source: Overlay 1.0.0 and 1.1.0.

use model::Value;
use serde::Serialize;
use serde_json_path::JsonPath;

use crate::document::{DocumentFault, DocumentLimits};
use crate::pointer::Pointer;
use crate::text::{self, excerpt};

/// Actions of one overlay.
const ACTIONS_MAX: usize = 1_000;
/// Places that one action may change.
const PLACES_MAX: usize = 20_000;
/// The longest target, in bytes.
const TARGET_BYTES_MAX: usize = 1_024;
/// The longest list of changed places that is kept for a report.
const PLACES_KEPT: usize = 32;

/// What one action did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverlayAction {
    /// Which overlay, from 0.
    pub overlay: usize,
    /// The place of the action in it, as `#/actions/0`.
    pub pointer: String,
    /// The target, a JSONPath.
    pub target: String,
    /// How many places it changed. One that changed none is likely a mistake.
    pub count: usize,
    /// The first of these places.
    pub places: Vec<String>,
}

/// Why an overlay cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayFault {
    /// Not JSON or YAML, or too large.
    #[error("{0}")]
    Text(Box<DocumentFault>),
    /// A version that is not read.
    #[error("it says `overlay: {0}`; versions 1.0 and 1.1 are read")]
    Version(String),
    /// No actions, or something that is none.
    #[error("`{0}` is no list of actions; write `actions: [{{target: …, update: …}}]`")]
    Actions(String),
    /// An action that does nothing, or two things.
    #[error("`{0}` has to say one of `update`, `copy` and `remove: true`")]
    Kind(String),
    /// A target that is no JSONPath, or one that is too costly.
    #[error("`{pointer}` has the target `{target}`: {detail}; write a JSONPath, as `$.paths['/a'].get`")]
    Target {
        /// The action.
        pointer: String,
        /// The target.
        target: String,
        /// What is wrong.
        detail: String,
    },
    /// An update that does not fit what it is to change.
    #[error("`{pointer}` cannot be applied at `{place}`: {detail}")]
    Update {
        /// The action.
        pointer: String,
        /// The place in the document.
        place: String,
        /// What is wrong.
        detail: &'static str,
    },
}

/// Applies one overlay to the tree.
pub(crate) fn apply(
    root: &mut Value,
    overlay: usize,
    bytes: &[u8],
    limits: &DocumentLimits,
) -> Result<Vec<OverlayAction>, OverlayFault> {
    let tree = text::read(bytes, limits).map_err(|fault| OverlayFault::Text(Box::new(fault)))?;
    let version = match tree.get("overlay") {
        Some(Value::String(version)) => version.clone(),
        Some(other) => other.to_string(),
        None => "nothing".to_owned(),
    };
    let is_known = ["1.0", "1.1"]
        .iter()
        .any(|known| version == *known || version.starts_with(&format!("{known}.")));
    if !is_known {
        return Err(OverlayFault::Version(excerpt(&version)));
    }
    let actions = tree
        .get("actions")
        .and_then(Value::as_array)
        .filter(|actions| !actions.is_empty() && actions.len() <= ACTIONS_MAX)
        .ok_or_else(|| OverlayFault::Actions("#/actions".to_owned()))?;
    let place = Pointer::root().child("actions");
    let mut nodes_left = limits.nodes_max;
    actions
        .iter()
        .enumerate()
        .map(|(index, action)| one(root, overlay, action, &place.item(index), &mut nodes_left))
        .collect()
}

enum Change {
    Merge(Value),
    Remove,
}

fn one(
    root: &mut Value,
    overlay: usize,
    action: &Value,
    pointer: &Pointer,
    nodes_left: &mut usize,
) -> Result<OverlayAction, OverlayFault> {
    let target = action
        .get("target")
        .and_then(Value::as_str)
        .ok_or_else(|| OverlayFault::Actions(pointer.to_string()))?;
    let is_removal = action.get("remove") == Some(&Value::Bool(true));
    let change = match (action.get("update"), action.get("copy"), is_removal) {
        // `remove: true` wins over an update, by the specification; two intentions are a mistake all the same.
        (None, None, true) => Change::Remove,
        (Some(update), None, false) => Change::Merge(update.clone()),
        (None, Some(Value::String(source)), false) => Change::Merge(copied(root, source, pointer)?),
        _ => return Err(OverlayFault::Kind(pointer.to_string())),
    };
    let mut places = select(root, target, pointer)?;
    let count = places.len();
    let kept: Vec<String> = places
        .iter()
        .take(PLACES_KEPT)
        .map(|place| format!("#{place}"))
        .collect();
    match change {
        Change::Merge(update) => {
            let cost = nodes(&update).saturating_mul(count);
            *nodes_left = nodes_left.checked_sub(cost).ok_or_else(|| OverlayFault::Target {
                pointer: pointer.to_string(),
                target: excerpt(target),
                detail: "the update would be copied too often".to_owned(),
            })?;
            for place in &places {
                if let Some(value) = root.pointer_mut(place) {
                    update_at(value, &update).map_err(|detail| OverlayFault::Update {
                        pointer: pointer.to_string(),
                        place: format!("#{place}"),
                        detail,
                    })?;
                }
            }
        }
        Change::Remove => {
            // From the end, so that an index still names what it was selected for.
            places.sort_by(|a, b| order(b).cmp(&order(a)));
            for place in &places {
                remove(root, place);
            }
        }
    }
    Ok(OverlayAction {
        overlay,
        pointer: pointer.to_string(),
        target: excerpt(target),
        count,
        places: kept,
    })
}

/// The places that a target selects, as RFC 6901 pointers.
fn select(root: &Value, target: &str, pointer: &Pointer) -> Result<Vec<String>, OverlayFault> {
    let fault = |detail: String| OverlayFault::Target {
        pointer: pointer.to_string(),
        target: excerpt(target),
        detail,
    };
    if target.len() > TARGET_BYTES_MAX {
        return Err(fault(format!("it is longer than {TARGET_BYTES_MAX} bytes")));
    }
    // Two descents multiply: their matches grow with the square of the document.
    if target.matches("..").count() > 1 {
        return Err(fault("it has more than one `..`".to_owned()));
    }
    let path = JsonPath::parse(target).map_err(|error| fault(error.to_string()))?;
    let mut places: Vec<String> = path
        .query_located(root)
        .locations()
        .map(|location| location.to_json_pointer())
        .collect();
    let mut seen = std::collections::HashSet::new();
    places.retain(|place| seen.insert(place.clone()));
    if places.len() > PLACES_MAX {
        return Err(fault(format!("it selects more than {PLACES_MAX} places")));
    }
    Ok(places)
}

fn copied(root: &Value, source: &str, pointer: &Pointer) -> Result<Value, OverlayFault> {
    let places = select(root, source, pointer)?;
    match places.as_slice() {
        [one] => Ok(root.pointer(one).cloned().unwrap_or_default()),
        _ => Err(OverlayFault::Target {
            pointer: pointer.to_string(),
            target: excerpt(source),
            detail: "`copy` has to select one place".to_owned(),
        }),
    }
}

fn update_at(value: &mut Value, update: &Value) -> Result<(), &'static str> {
    match (&mut *value, update) {
        (Value::Object(_), Value::Object(_)) => merge(value, update),
        (Value::Object(_), _) => return Err("an object is updated by an object"),
        // A list takes one more entry, or all entries of a list.
        (Value::Array(list), Value::Array(more)) => list.extend(more.iter().cloned()),
        (Value::Array(list), entry) => list.push(entry.clone()),
        (_, Value::Object(_) | Value::Array(_)) => return Err("a single value is updated by a single value"),
        _ => *value = update.clone(),
    }
    Ok(())
}

/// Objects are merged key by key, lists put one behind the other, all else is replaced.
fn merge(value: &mut Value, update: &Value) {
    match (value, update) {
        (Value::Object(object), Value::Object(update)) => {
            for (key, update) in update {
                match object.get_mut(key) {
                    Some(old) => merge(old, update),
                    None => {
                        object.insert(key.clone(), update.clone());
                    }
                }
            }
        }
        (Value::Array(list), Value::Array(more)) => list.extend(more.iter().cloned()),
        (value, update) => *value = update.clone(),
    }
}

fn remove(root: &mut Value, place: &str) {
    let Some((parent, key)) = place.rsplit_once('/') else {
        return;
    };
    match root.pointer_mut(parent) {
        Some(Value::Object(object)) => {
            object.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(list)) => {
            if let Some(index) = key.parse().ok().filter(|index| *index < list.len()) {
                list.remove(index);
            }
        }
        _ => {}
    }
}

/// A key by which a later item of a list comes behind an earlier one, also past ten.
fn order(place: &str) -> Vec<(usize, &str)> {
    place
        .split('/')
        .map(|step| match step.parse::<usize>() {
            Ok(index) => (index, ""),
            Err(_) => (usize::MAX, step),
        })
        .collect()
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(object) => 1 + object.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}
