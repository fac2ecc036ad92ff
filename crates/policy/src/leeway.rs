//! What is known of a caller before a tool, kept between calls: which rules can still say something about their calls.
//!
//! It follows from the policy and the caller alone, so that it never has to be thrown away: another policy has leeways
//! of its own, and a caller with another role is another key. Nothing here decides.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cedar_policy::PolicySet;
use equivalent::Equivalent;
use model::Caller;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use crate::question::{Party, Unfit};

/// How much is remembered: so many leeways, where each has no rule left; one with rules counts as one more for each.
const WEIGHT_MAX: u64 = 32_768;

/// A caller before a tool.
pub(crate) struct Leeway {
    /// The caller in Cedar's words.
    pub(crate) party: Party,
    /// The rules that can still hold or fail, of all that apply to the tool.
    pub(crate) open: PolicySet,
}

/// The leeways that were asked for lately.
pub(crate) struct Leeways(Cache<Key, Arc<Leeway>>);

/// By everything that a rule can read of a caller, and the number of the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    seat: usize,
    caller: Caller,
}

/// A key that is only looked up.
struct Wanted<'a> {
    seat: usize,
    caller: &'a Caller,
}

// === impl Leeways ===

impl Leeways {
    /// The leeway of a caller before a tool, which is worked out where it is not known.
    ///
    /// # Errors
    /// Those of `work_out`; they are not remembered.
    pub(crate) fn of(
        &self,
        seat: usize,
        caller: &Caller,
        work_out: impl FnOnce() -> Result<Leeway, Unfit>,
    ) -> Result<Arc<Leeway>, Unfit> {
        if let Some(leeway) = self.0.get(&Wanted { seat, caller }) {
            return Ok(leeway);
        }
        let leeway = Arc::new(work_out()?);
        let key = Key {
            seat,
            caller: caller.clone(),
        };
        self.0.insert(key, Arc::clone(&leeway));
        Ok(leeway)
    }
}

impl Default for Leeways {
    fn default() -> Self {
        Self::within(WEIGHT_MAX)
    }
}

impl Leeways {
    fn within(weight_max: u64) -> Self {
        Self(
            Cache::builder()
                .max_capacity(weight_max)
                .weigher(|_, leeway: &Arc<Leeway>| {
                    u32::try_from(leeway.open.num_of_policies() + 1).unwrap_or(u32::MAX)
                })
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        )
    }
}

impl fmt::Debug for Leeways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leeways").field(&self.0.entry_count()).finish()
    }
}

// === impl Key ===

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Wanted {
            seat: self.seat,
            caller: &self.caller,
        }
        .hash(state);
    }
}

impl Hash for Wanted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.seat.hash(state);
        self.caller.hash(state);
    }
}

impl Equivalent<Key> for Wanted<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.seat == key.seat && *self.caller == key.caller
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{Role, Subject};

    use super::*;

    fn caller(subject: &str, role: &str) -> Caller {
        Caller {
            issuer: "corp".to_owned(),
            subject: Subject::parse(subject).unwrap(),
            tenant: None,
            roles: BTreeSet::from([Role::parse(role).unwrap()]),
            client: None,
        }
    }

    fn leeway(rules: usize) -> Leeway {
        let rule = |number: usize| {
            let id = cedar_policy::PolicyId::new(number.to_string());
            cedar_policy::Policy::parse(Some(id), "permit (principal, action, resource);").unwrap()
        };
        Leeway {
            party: Party::nobody(),
            open: PolicySet::from_policies((0..rules).map(rule)).unwrap(),
        }
    }

    #[test]
    fn a_standing_is_worked_out_once_for_a_caller_and_a_tool_and_anew_for_any_other() {
        let leeways = Leeways::default();
        let worked_out = |seat, caller: &Caller| {
            let mut asked = false;
            let work_out = || {
                asked = true;
                Ok(leeway(0))
            };
            leeways.of(seat, caller, work_out).unwrap();
            asked
        };
        assert!(worked_out(0, &caller("ada", "member")));
        assert!(!worked_out(0, &caller("ada", "member")), "it is remembered");
        assert!(worked_out(1, &caller("ada", "member")), "another tool");
        assert!(worked_out(0, &caller("ada", "suspended")), "another role");
        assert!(worked_out(0, &caller("bob", "member")), "another subject");
    }

    #[test]
    fn what_could_not_be_worked_out_is_asked_again() {
        let leeways = Leeways::default();
        let ada = caller("ada", "member");
        assert!(leeways.of(0, &ada, || Err("no".to_owned())).is_err());
        assert!(leeways.of(0, &ada, || Ok(leeway(0))).is_ok());
    }

    #[test]
    fn standings_are_bounded_by_the_rules_that_they_hold() {
        for (rules, kept) in [(0, 12), (2, 4), (11, 1), (12, 0)] {
            let leeways = Leeways::within(12);
            for seat in 0..30 {
                let held = leeways.of(seat, &caller("ada", "member"), || Ok(leeway(rules)));
                assert_eq!(held.unwrap().open.num_of_policies(), rules);
            }
            leeways.0.run_pending_tasks();
            assert_eq!(leeways.0.entry_count(), kept, "{rules} rules each");
        }
    }
}
