//! An exported ledger, for tests that look into it.

use serde_json::Value;

/// The entries of an export, in its order.
#[derive(Debug, Clone)]
pub struct Entries(pub Vec<Value>);

impl Entries {
    pub fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["body"].clone()
        };
        Self(text.lines().map(entry).collect())
    }

    pub fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.0.iter().filter(|entry| entry["kind"] == kind).collect()
    }

    /// The refusal codes, in order.
    pub fn refusals(&self) -> Vec<&str> {
        self.of_kind("refusal")
            .iter()
            .map(|entry| entry["refusal"].as_str().unwrap())
            .collect()
    }

    /// The outcome of a call.
    pub fn outcome(&self, call: &Value) -> Option<&Value> {
        self.of_kind("outcome")
            .into_iter()
            .find(|entry| entry["call"] == *call)
    }
}
