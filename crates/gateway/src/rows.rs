//! Rows of other owners do not leave, nor does a row whose owner is unknown.

use config::RowsSettings;
use model::{TenantId, Value};
use serde_json_path::JsonPath;

/// Which rows of an answer leave.
#[derive(Debug)]
pub(crate) struct Rows {
    items: JsonPath,
    owner: JsonPath,
}

/// Why rows cannot be filtered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is no JSONPath: {why}")]
pub(crate) struct RowsFault {
    path: String,
    why: String,
}

impl Rows {
    pub(crate) fn parse(settings: &RowsSettings) -> Result<Self, RowsFault> {
        let parse = |path: &str| {
            JsonPath::parse(path).map_err(|error| RowsFault {
                path: path.to_owned(),
                why: error.to_string(),
            })
        };
        Ok(Self {
            items: parse(&settings.items)?,
            owner: parse(&settings.owner)?,
        })
    }

    /// Takes out every row that is not of this owner; gives how many.
    ///
    /// # Errors
    /// The path finds no list: an answer of another shape may hold rows that were not looked at.
    pub(crate) fn filter(&self, answer: &mut Value, owner: &TenantId) -> Result<usize, String> {
        let pointers: Vec<String> = self
            .items
            .query_located(answer)
            .iter()
            .map(|node| node.location().to_json_pointer())
            .collect();
        if pointers.is_empty() {
            return Err("the answer has no list where `rows.items` points".to_owned());
        }
        let mut removed = 0;
        for pointer in pointers {
            let Some(Value::Array(rows)) = answer.pointer_mut(&pointer) else {
                return Err("the answer has something else than a list where `rows.items` points".to_owned());
            };
            let before = rows.len();
            rows.retain(|row| self.is_owned(row, owner));
            removed += before - rows.len();
        }
        Ok(removed)
    }

    fn is_owned(&self, row: &Value, owner: &TenantId) -> bool {
        match self.owner.query(row).exactly_one() {
            Ok(Value::String(found)) => found == owner.as_str(),
            Ok(Value::Number(found)) => found.to_string() == owner.as_str(),
            Ok(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rows(items: &str, owner: &str) -> Rows {
        Rows::parse(&RowsSettings {
            items: items.into(),
            owner: owner.into(),
        })
        .unwrap()
    }

    fn north() -> TenantId {
        TenantId::parse("north").unwrap()
    }

    #[test]
    fn rows_of_others_and_rows_of_nobody_do_not_leave() {
        let mut answer = json!({"total": 5, "rows": [
            {"id": 1, "tenant": "north"},
            {"id": 2, "tenant": "south"},
            {"id": 3},
            {"id": 4, "tenant": null},
            {"id": 5, "tenant": ["north"]},
            "north",
        ]});
        assert_eq!(rows("$.rows", "$.tenant").filter(&mut answer, &north()), Ok(5));
        assert_eq!(
            answer,
            json!({"total": 5, "rows": [{"id": 1, "tenant": "north"}]})
        );
    }

    #[test]
    fn an_answer_of_another_shape_is_refused_whole() {
        for answer in [
            json!({}),
            json!({"rows": {"a": 1}}),
            json!([]),
            json!(null),
            json!({"rows": "north"}),
        ] {
            assert!(
                rows("$.rows", "$.tenant")
                    .filter(&mut answer.clone(), &north())
                    .is_err(),
                "{answer}"
            );
        }
        assert_eq!(
            rows("$", "$.tenant").filter(&mut json!([{"tenant": "south"}]), &north()),
            Ok(1)
        );
    }

    #[test]
    fn several_lists_are_filtered_each() {
        let mut answer = json!({"a/b": [{"o": "north"}, {"o": "x"}], "c~d": [{"o": "y"}]});
        assert_eq!(rows("$.*", "$.o").filter(&mut answer, &north()), Ok(2));
        assert_eq!(answer, json!({"a/b": [{"o": "north"}], "c~d": []}));
    }

    proptest! {
        #[test]
        fn whatever_leaves_is_owned(owners in prop::collection::vec("north|south|north |NORTH|", 0..12)) {
            let list: Vec<Value> = owners.iter().map(|owner| json!({"tenant": owner})).collect();
            let mut answer = json!({ "rows": list });
            rows("$.rows", "$.tenant").filter(&mut answer, &north()).unwrap();
            let left = answer["rows"].as_array().unwrap();
            prop_assert_eq!(left.len(), owners.iter().filter(|owner| *owner == "north").count());
            prop_assert!(left.iter().all(|row| row["tenant"] == "north"));
        }
    }
}
