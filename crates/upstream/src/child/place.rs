//! Places for children: how many there may be, of all callers and of one. A place is free again once its child is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// There are as many children as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    /// Of all servers.
    #[error(
        "the gate has as many children as it may have; raise `limits.children_max`, or lower `idle_stop`"
    )]
    Gate,
    /// Of this server.
    #[error("the server runs as often as it may; raise `children_max`, or lower `idle_stop`")]
    Server,
    /// Of this server, for this caller.
    #[error(
        "the server runs as often as it may for one caller; raise `children_per_caller_max`, or lower `idle_stop`"
    )]
    Caller,
}

/// So many places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    max: usize,
    /// `usize::MAX`: no caller is told from another.
    per_caller_max: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<String, usize>,
}

/// One place, taken. Dropped, it is free.
#[derive(Debug)]
pub(super) struct Place {
    caller: String,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    pub(super) fn new(max: usize, per_caller_max: usize) -> Self {
        Self {
            max,
            per_caller_max,
            taken: Arc::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.taken).all
    }

    pub(super) fn take(&self, caller: &str) -> Result<Place, TooMany> {
        let mut taken = lock(&self.taken);
        if taken.all >= self.max {
            return Err(if self.per_caller_max == usize::MAX {
                TooMany::Gate
            } else {
                TooMany::Server
            });
        }
        let of = taken.of.get(caller).copied().unwrap_or(0);
        if of >= self.per_caller_max {
            return Err(TooMany::Caller);
        }
        taken.all += 1;
        taken.of.insert(caller.to_owned(), of + 1);
        Ok(Place {
            caller: caller.to_owned(),
            taken: self.taken.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        if let Some(of) = taken.of.get_mut(&self.caller) {
            *of = of.saturating_sub(1);
            if *of == 0 {
                taken.of.remove(&self.caller);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    // Counts are whole between two statements, whoever panicked.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_up_to_each_maximum_and_refused_past_it() {
        let places = Places::new(3, 2);
        let first = places.take("ada").unwrap();
        let _second = places.take("ada").unwrap();
        assert_eq!(places.take("ada").unwrap_err(), TooMany::Caller);
        let third = places.take("bob").unwrap();
        assert_eq!(places.take("eve").unwrap_err(), TooMany::Server);
        assert_eq!(places.count(), 3);
        drop(third);
        assert_eq!(places.take("ada").unwrap_err(), TooMany::Caller);
        drop(first);
        let _again = places.take("ada").unwrap();
        assert_eq!(places.count(), 2);
    }

    #[test]
    fn nothing_is_remembered_of_a_caller_without_places() {
        let places = Places::new(1, usize::MAX);
        let place = places.take("ada").unwrap();
        assert_eq!(places.take("bob").unwrap_err(), TooMany::Gate);
        drop(place);
        assert!(lock(&places.taken).of.is_empty());
        assert_eq!(places.count(), 0);
    }
}
