//! The answer: a permission that only this room can make, or a denial that says why.
//!
//! It holds answers and shows them. How one is reached is in `policy.rs`.

use std::fmt;

use model::{Digest, RuleId};

/// Proof that rules said yes to exactly this.
///
/// Only [`Policy::decide`](crate::Policy::decide) makes one. It cannot be copied, so one decision lets one thing
/// through, and the next step takes it by value.
///
/// It cannot be written down:
/// ```compile_fail,E0451
/// let forged = policy::Permitted { subject: "call", verdict: unimplemented!() };
/// ```
/// nor copied:
/// ```compile_fail,E0308
/// fn twice(one: &policy::Permitted<u8>) -> policy::Permitted<u8> { one.clone() }
/// ```
/// nor made of nothing:
/// ```compile_fail,E0277
/// let forged: policy::Permitted<u8> = Default::default();
/// ```
/// What it holds can be looked at, and taken out once:
/// ```
/// fn look(one: policy::Permitted<u8>) -> (u8, policy::Verdict) {
///     let _: &u8 = one.get();
///     one.into_parts()
/// }
/// ```
#[must_use = "a permission that nobody uses was not needed"]
#[derive(Debug)]
pub struct Permitted<T> {
    /// Invariant: a decision with `verdict` was made on exactly this.
    subject: T,
    verdict: Verdict,
}

/// The rules that said yes, and of which policy they are. Facts for the ledger, without any power.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The permits that decided, in the order of the files; at least one.
    pub rules: Vec<RuleId>,
    /// The version of the policy.
    pub policy: Digest,
}

/// A no, with its reason. For the operator and the ledger; an agent reads none of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Denied {
    /// Why.
    pub why: DeniedWhy,
    /// The version of the policy.
    pub policy: Digest,
}

/// Why the answer is no. Where several reasons hold, the first of this list is given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeniedWhy {
    /// The policy refuses everything; this is what was wrong with it.
    #[error("the policy is sealed and refuses everything: {0}")]
    Sealed(String),
    /// No enabled tool has this name.
    #[error("the policy knows no such tool")]
    UnknownAction,
    /// The question is not one about this tool: another type of target, an argument of another type.
    #[error("the question does not fit the tool: {0}")]
    Unfit(String),
    /// These rules forbid it, whatever others permit.
    #[error("forbidden by {}", Listed(.0))]
    Forbidden(Vec<RuleId>),
    /// These rules could not be evaluated, and a rule that cannot be evaluated might have forbidden it.
    #[error("{}", Failures(.0))]
    RuleFailed(Vec<(RuleId, String)>),
    /// No rule permits it.
    #[error("no rule permits it")]
    NothingPermits,
}

// === impl Permitted ===

impl<T> Permitted<T> {
    /// Called by the one decision function, after it decided.
    pub(crate) const fn new(subject: T, verdict: Verdict) -> Self {
        Self { subject, verdict }
    }

    /// What was permitted.
    #[must_use]
    pub const fn get(&self) -> &T {
        &self.subject
    }

    /// Which rules permitted it.
    #[must_use]
    pub const fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Gives the proof up and takes out what it holds.
    #[must_use]
    pub fn into_parts(self) -> (T, Verdict) {
        (self.subject, self.verdict)
    }
}

// === impl Denied ===

impl Denied {
    /// Every rule that took part, in the order of the files: those that forbade, or those that failed.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleId> {
        match &self.why {
            DeniedWhy::Forbidden(rules) => rules.clone(),
            DeniedWhy::RuleFailed(failures) => failures.iter().map(|(rule, _)| rule.clone()).collect(),
            DeniedWhy::Sealed(_)
            | DeniedWhy::UnknownAction
            | DeniedWhy::Unfit(_)
            | DeniedWhy::NothingPermits => Vec::new(),
        }
    }
}

struct Listed<'a>(&'a [RuleId]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.0.iter().enumerate() {
            let before = if index == 0 { "" } else { ", " };
            write!(f, "{before}`{rule}`")?;
        }
        Ok(())
    }
}

struct Failures<'a>(&'a [(RuleId, String)]);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (rule, error)) in self.0.iter().enumerate() {
            let before = if index == 0 { "" } else { "; " };
            write!(f, "{before}rule `{rule}` could not be evaluated: {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> RuleId {
        RuleId::parse(name).unwrap()
    }

    #[test]
    fn a_denial_reads_as_one_line_for_the_operator() {
        let failure = |name: &str| (rule(name), "no attribute `tenant`".to_owned());
        for (why, text, rules) in [
            (
                DeniedWhy::Sealed("bad file".to_owned()),
                "the policy is sealed and refuses everything: bad file",
                vec![],
            ),
            (DeniedWhy::UnknownAction, "the policy knows no such tool", vec![]),
            (
                DeniedWhy::Unfit("`a` is null".to_owned()),
                "the question does not fit the tool: `a` is null",
                vec![],
            ),
            (
                DeniedWhy::Forbidden(vec![rule("a"), rule("b#1")]),
                "forbidden by `a`, `b#1`",
                vec![rule("a"), rule("b#1")],
            ),
            (
                DeniedWhy::RuleFailed(vec![failure("a"), failure("b")]),
                "rule `a` could not be evaluated: no attribute `tenant`; rule `b` could not be evaluated: no attribute `tenant`",
                vec![rule("a"), rule("b")],
            ),
            (DeniedWhy::NothingPermits, "no rule permits it", vec![]),
        ] {
            let denied = Denied {
                why,
                policy: Digest::ZERO,
            };
            assert_eq!(denied.to_string(), text);
            assert_eq!(denied.rules(), rules, "{text}");
        }
    }
}
