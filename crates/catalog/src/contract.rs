//! What is known of the real answers of a tool: how many came, how many fit what is declared, how long they were. Counts
//! only; no value of an answer is kept.

use std::fmt;

use model::Digest;
use serde::{Deserialize, Serialize};

/// The answers of all probes of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The digest of everything in the document that the operation depends on.
    pub operation: Digest,
    /// Whether the tool has an output schema.
    pub declared: bool,
    /// Answers that left the gate: those that fit, where a schema is declared.
    pub passed: u32,
    /// Answers that do not fit what is declared, and were withheld.
    pub unfit: u32,
    /// Calls that the service answered with an error.
    pub failed: u32,
    /// The length of the shortest answer that passed, in bytes.
    pub bytes_min: Option<u64>,
    /// The length of the longest one.
    pub bytes_max: Option<u64>,
}

/// What came of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedAnswer {
    /// It left the gate, with so many bytes.
    Passed(u64),
    /// It does not fit what is declared, and was withheld.
    Unfit,
    /// The service said that it failed.
    Failed,
}

impl Contract {
    pub(crate) const fn new(operation: Digest, declared: bool) -> Self {
        Self {
            operation,
            declared,
            passed: 0,
            unfit: 0,
            failed: 0,
            bytes_min: None,
            bytes_max: None,
        }
    }

    pub(crate) fn add(&mut self, answer: ProbedAnswer) {
        match answer {
            ProbedAnswer::Passed(bytes) => {
                self.passed = self.passed.saturating_add(1);
                self.bytes_min = Some(self.bytes_min.map_or(bytes, |least| least.min(bytes)));
                self.bytes_max = Some(self.bytes_max.map_or(bytes, |most| most.max(bytes)));
            }
            ProbedAnswer::Unfit => self.unfit = self.unfit.saturating_add(1),
            ProbedAnswer::Failed => self.failed = self.failed.saturating_add(1),
        }
    }

    /// Whether real answers contradict what is declared.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.unfit > 0
    }
}

/// The counts, for a reviewer.
impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let came = self.passed.saturating_add(self.unfit);
        let what = if self.declared {
            "fit the declared schema"
        } else {
            "passed; no schema is declared"
        };
        write!(f, "{} of {came} answers {what}", self.passed)?;
        if let (Some(least), Some(most)) = (self.bytes_min, self.bytes_max) {
            write!(f, ", {least} to {most} bytes")?;
        }
        if self.failed > 0 {
            write!(f, "; {} calls failed", self.failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_what_came_of_them() {
        let mut contract = Contract::new(Digest::of("test", &[]), true);
        for answer in [
            ProbedAnswer::Passed(20),
            ProbedAnswer::Failed,
            ProbedAnswer::Passed(3),
        ] {
            contract.add(answer);
        }
        assert!(!contract.is_broken());
        assert_eq!(
            contract.to_string(),
            "2 of 2 answers fit the declared schema, 3 to 20 bytes; 1 calls failed"
        );
        contract.add(ProbedAnswer::Unfit);
        assert!(contract.is_broken());
        assert!(
            contract.to_string().starts_with("2 of 3 answers fit"),
            "{contract}"
        );
    }
}
