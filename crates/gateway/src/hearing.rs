//! What one client is told outside of answers: messages for a log, and changes of the resources that it follows.
//!
//! One value belongs to one session, one pipe or one subscription. Whether somebody may follow a resource is decided on the
//! road, like a reading of it; here it is remembered and bounded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Limits, Refusal, RefusalCode};
use upstream::{Far, Relay, Wish};
use wire::LogFilter;

use crate::house::Gateway;

/// What one client is told outside of answers.
#[derive(Debug)]
pub struct Hearing {
    relay: Arc<Relay>,
    followed: Mutex<BTreeSet<String>>,
    followed_max: usize,
}

/// A resource that is about to be followed; it is followed no more when this is dropped, unless it is kept.
#[derive(Debug)]
pub(crate) struct Followed {
    hearing: Arc<Hearing>,
    uri: String,
    is_new: bool,
}

impl Hearing {
    /// Of a client that wants these messages, until it says otherwise.
    #[must_use]
    pub fn new(logs: LogFilter, limits: &Limits) -> Self {
        Self {
            relay: Arc::new(Relay::with(Arc::new(Wish::new(logs)))),
            followed: Mutex::default(),
            followed_max: limits.resource_subscriptions_max,
        }
    }

    /// What waits to be told.
    #[must_use]
    pub const fn relay(&self) -> &Arc<Relay> {
        &self.relay
    }

    /// Which messages for a log it wants.
    #[must_use]
    pub fn wish(&self) -> &Arc<Wish> {
        self.relay.logs()
    }

    /// What it follows.
    #[must_use]
    pub fn followed(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Takes a place for a resource.
    pub(crate) fn follow(self: &Arc<Self>, uri: &str) -> Result<Followed, Refusal> {
        let mut followed = self.lock();
        let is_new = !followed.contains(uri);
        if is_new && followed.len() >= self.followed_max {
            let text = format!(
                "{} resources are followed, which is `resource_subscriptions_max`",
                followed.len()
            );
            return Err(Refusal::new(RefusalCode::TooBusy, text));
        }
        followed.insert(uri.to_owned());
        drop(followed);
        Ok(Followed {
            hearing: Arc::clone(self),
            uri: uri.to_owned(),
            is_new,
        })
    }

    fn forget(&self, uri: &str) {
        self.lock().remove(uri);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    pub(crate) fn keep(mut self) {
        self.is_new = false;
    }

    /// What is to be undone where it came to nothing.
    pub(crate) fn undo(&self) -> Option<(&str, &Arc<Hearing>)> {
        self.is_new.then_some((&self.uri, &self.hearing))
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if self.is_new {
            self.hearing.forget(&self.uri);
        }
    }
}

impl Gateway {
    /// Tells a client of a resource no more. One that it does not follow is no matter.
    pub fn unfollow(&self, uri: &str, hearing: &Hearing) {
        hearing.forget(uri);
        for peer in self.upstreams.values().filter_map(Far::peer) {
            peer.unfollow(uri, hearing.relay());
        }
    }

    /// Tells a client of nothing any more.
    pub fn unfollow_all(&self, hearing: &Hearing) {
        for uri in hearing.followed() {
            self.unfollow(&uri, hearing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_followed_up_to_the_limit_and_not_one_past_it() {
        let limits = Limits {
            resource_subscriptions_max: 2,
            ..Limits::default()
        };
        let hearing = Arc::new(Hearing::new(LogFilter::Everything, &limits));
        hearing.follow("a://1").unwrap().keep();
        drop(hearing.follow("a://2").unwrap());
        assert_eq!(hearing.followed(), ["a://1"], "it came to nothing");
        hearing.follow("a://2").unwrap().keep();
        assert_eq!(hearing.follow("a://3").unwrap_err().code(), RefusalCode::TooBusy);
        drop(hearing.follow("a://1").unwrap());
        assert_eq!(hearing.followed(), ["a://1", "a://2"], "it was followed before");
        hearing.forget("a://1");
        hearing.follow("a://3").unwrap().keep();
    }
}
