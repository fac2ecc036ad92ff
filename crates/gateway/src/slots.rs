//! How many calls run at once: of everybody, and of each caller. The next one is refused, not queued.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::{CallerKey, Limits, Refusal, RefusalCode};

/// The places for running calls.
#[derive(Debug)]
pub(crate) struct Slots {
    taken: Arc<Mutex<Taken>>,
    all_max: usize,
    each_max: usize,
    words: Words,
}

/// What takes the places, and the limits that bound them, for the operator.
#[derive(Debug, Clone, Copy)]
struct Words {
    what: &'static str,
    all: &'static str,
    each: &'static str,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: HashMap<CallerKey, usize>,
    closed: bool,
}

/// A place; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    taken: Arc<Mutex<Taken>>,
    caller: CallerKey,
}

impl Slots {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            taken: Arc::default(),
            all_max: limits.calls_max,
            each_max: limits.calls_per_caller_max,
            words: Words {
                what: "calls",
                all: "calls_max",
                each: "calls_per_caller_max",
            },
        }
    }

    /// The places for open subscriptions.
    pub(crate) fn of_subscriptions(limits: &Limits) -> Self {
        Self {
            taken: Arc::default(),
            all_max: limits.subscriptions_max,
            each_max: limits.subscriptions_per_caller_max,
            words: Words {
                what: "subscriptions",
                all: "subscriptions_max",
                each: "subscriptions_per_caller_max",
            },
        }
    }

    /// Takes a place.
    pub(crate) fn take(&self, caller: CallerKey) -> Result<Slot, Refusal> {
        let mut taken = lock(&self.taken);
        if taken.closed {
            return Err(Refusal::new(RefusalCode::Draining, "the gate is closing"));
        }
        if taken.all >= self.all_max {
            let text = format!(
                "{} {} are running, which is `{}`",
                taken.all, self.words.what, self.words.all
            );
            return Err(Refusal::new(RefusalCode::TooBusy, text));
        }
        let each = taken.each.get(&caller).copied().unwrap_or(0);
        if each >= self.each_max {
            let text = format!(
                "{each} {} of this caller are running, which is `{}`",
                self.words.what, self.words.each
            );
            return Err(Refusal::new(RefusalCode::TooBusy, text));
        }
        taken.all += 1;
        taken.each.insert(caller, each + 1);
        drop(taken);
        Ok(Slot {
            taken: Arc::clone(&self.taken),
            caller,
        })
    }

    /// Takes no more.
    pub(crate) fn close(&self) {
        lock(&self.taken).closed = true;
    }

    /// How many are taken.
    pub(crate) fn running(&self) -> usize {
        lock(&self.taken).all
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        let left = taken
            .each
            .get(&self.caller)
            .map_or(0, |each| each.saturating_sub(1));
        if left == 0 {
            taken.each.remove(&self.caller);
        } else {
            taken.each.insert(self.caller, left);
        }
    }
}

/// Counters stay right even if a thread died while it held them: each change is one statement.
fn lock(taken: &Mutex<Taken>) -> std::sync::MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{Caller, Subject};

    use super::*;

    fn caller(name: &str) -> CallerKey {
        let subject = Subject::parse(name).unwrap();
        Caller {
            issuer: "key".into(),
            subject,
            tenant: None,
            roles: BTreeSet::new(),
            client: None,
        }
        .key()
    }

    #[test]
    fn calls_run_up_to_each_limit_and_not_one_past_it() {
        let slots = Slots::new(&Limits {
            calls_max: 3,
            calls_per_caller_max: 2,
            ..Limits::default()
        });
        let (ada, bob) = (caller("ada"), caller("bob"));
        let one = slots.take(ada).unwrap();
        let _two = slots.take(ada).unwrap();
        assert_eq!(slots.take(ada).unwrap_err().code(), RefusalCode::TooBusy);
        let _three = slots.take(bob).unwrap();
        assert_eq!(slots.take(bob).unwrap_err().code(), RefusalCode::TooBusy);
        drop(one);
        assert_eq!(slots.running(), 2);
        assert!(slots.take(bob).is_ok());
        assert!(slots.take(ada).is_ok());
    }

    #[test]
    fn a_caller_that_runs_nothing_is_forgotten() {
        let slots = Slots::new(&Limits::default());
        drop(slots.take(caller("ada")).unwrap());
        assert!(lock(&slots.taken).each.is_empty());
    }

    #[test]
    fn a_closing_gate_takes_no_call() {
        let slots = Slots::new(&Limits::default());
        let running = slots.take(caller("ada")).unwrap();
        slots.close();
        assert_eq!(
            slots.take(caller("ada")).unwrap_err().code(),
            RefusalCode::Draining
        );
        drop(running);
        assert_eq!(slots.running(), 0);
    }
}
