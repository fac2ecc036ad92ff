//! One page of a list of a server: its items whole, known fields or not, and where the next page starts.

use bytes::Bytes;
use model::{JsonLimits, Object, Value, parse_foreign};

use crate::surface::Surface;

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The items in the order of the server. Each is whole. Untrusted.
    pub items: Vec<Object>,
    /// Where the next page starts. An empty text is a cursor like any other (PAG-02).
    pub next: Option<String>,
}

/// Why a page is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the answer to `{method}` {what}")]
pub struct ListingFault {
    /// The method.
    pub method: &'static str,
    /// What is wrong.
    pub what: String,
}

impl Listed {
    /// Reads the result of a list.
    ///
    /// # Errors
    /// [`ListingFault`]: one item that cannot be read makes the page unusable, since nobody could say what is missing.
    pub fn read(surface: Surface, result: &Bytes, limits: JsonLimits) -> Result<Self, ListingFault> {
        let fault = |what: String| ListingFault {
            method: surface.method(),
            what,
        };
        let mut object = match parse_foreign(result, limits) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(fault("is no object".to_owned())),
            Err(why) => return Err(fault(format!("is not JSON that may pass: {why}"))),
        };
        let member = surface.member();
        let Some(Value::Array(items)) = object.shift_remove(member) else {
            return Err(fault(format!("has no `{member}`, which is an array")));
        };
        let items = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| match item {
                Value::Object(item) if item.get(surface.key()).is_some_and(Value::is_string) => Ok(item),
                Value::Object(_) => Err(fault(format!("has an item {index} without `{}`", surface.key()))),
                _ => Err(fault(format!("has an item {index} that is no object"))),
            })
            .collect::<Result<_, _>>()?;
        let next = match object.shift_remove("nextCursor") {
            Some(Value::String(next)) => Some(next),
            None | Some(Value::Null) => None,
            Some(_) => return Err(fault("has a `nextCursor` that is no text".to_owned())),
        };
        Ok(Self { items, next })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: JsonLimits = JsonLimits {
        bytes_max: 4_096,
        depth_max: 16,
    };

    fn read(value: &Value) -> Result<Listed, ListingFault> {
        Listed::read(Surface::Tools, &Bytes::from(value.to_string()), LIMITS)
    }

    #[test]
    fn items_are_kept_whole_and_in_order() {
        let item = json!({ "name": "b", "vendor": { "z": 1, "a": 2 }, "inputSchema": {} });
        let page = read(&json!({ "tools": [item, { "name": "a" }], "nextCursor": "" })).unwrap();
        assert_eq!(serde_json::to_string(&page.items[0]).unwrap(), item.to_string());
        assert_eq!(page.items[1]["name"], "a");
        assert_eq!(page.next.as_deref(), Some(""), "PAG-02");
        assert_eq!(
            read(&json!({ "tools": [], "nextCursor": null })).unwrap().next,
            None
        );
    }

    #[test]
    fn one_bad_item_makes_the_page_unusable() {
        for value in [
            json!({}),
            json!([]),
            json!({ "tools": {} }),
            json!({ "tools": [1] }),
            json!({ "tools": [{ "title": "x" }] }),
            json!({ "tools": [{ "name": 1 }] }),
            json!({ "tools": [], "nextCursor": 1 }),
        ] {
            assert!(read(&value).is_err(), "{value}");
        }
    }
}
