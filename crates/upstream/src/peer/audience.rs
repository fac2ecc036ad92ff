//! Who hears what a server says on its own account in one lane: messages for a log, and changes of single resources.
//!
//! A lane may outlive its conversations, and so does what is followed in it. Nobody is kept alive by being listed here.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, oneshot};
use wire::LogMessage;

use crate::relay::{Relay, Told};

/// The hearers of one lane.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    inner: Mutex<Inner>,
    /// Whom to wake when nothing more is heard.
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Those whose own lane it is: they hear messages that belong to no call.
    own: Vec<Weak<Relay>>,
    followed: HashMap<String, Vec<Weak<Relay>>>,
    /// Whoever waits for the acknowledgement of a listening request.
    waits: Option<oneshot::Sender<Vec<String>>>,
    /// Whether the listening request has ended by itself.
    is_unheard: bool,
}

impl Audience {
    /// Nobody yet.
    pub(crate) fn new(ended: &Arc<Notify>) -> Self {
        Self {
            inner: Mutex::default(),
            ended: Arc::clone(ended),
        }
    }

    /// A conversation has ended: if something is followed in it, it has to be opened again.
    pub(crate) fn lost(&self) {
        if !self.followed().is_empty() {
            self.ended.notify_one();
        }
    }

    /// Lets somebody hear what belongs to no call. Only for a lane that is his alone.
    pub(crate) fn admit(&self, hearer: &Arc<Relay>) {
        let mut inner = self.lock();
        inner.own.retain(|known| known.strong_count() > 0);
        if !inner.own.iter().any(|known| is(known, hearer)) {
            inner.own.push(Arc::downgrade(hearer));
        }
    }

    /// A message that belongs to no call.
    pub(crate) fn log(&self, message: &LogMessage) {
        let own: Vec<Arc<Relay>> = self.lock().own.iter().filter_map(Weak::upgrade).collect();
        for hearer in own {
            hearer.tell(Told::Log(Box::new(message.clone())));
        }
    }

    /// Tells somebody of changes of a resource from now on.
    pub(crate) fn follow(&self, uri: &str, hearer: &Arc<Relay>) {
        let mut inner = self.lock();
        let hearers = inner.followed.entry(uri.to_owned()).or_default();
        hearers.retain(|known| known.strong_count() > 0);
        if !hearers.iter().any(|known| is(known, hearer)) {
            hearers.push(Arc::downgrade(hearer));
        }
    }

    /// Tells him no more. Whether nobody else follows the resource; false where he did not.
    pub(crate) fn unfollow(&self, uri: &str, hearer: &Arc<Relay>) -> bool {
        let mut inner = self.lock();
        let Some(hearers) = inner.followed.get_mut(uri) else {
            return false;
        };
        if !hearers.iter().any(|known| is(known, hearer)) {
            return false;
        }
        hearers.retain(|known| known.strong_count() > 0 && !is(known, hearer));
        let is_last = hearers.is_empty();
        if is_last {
            inner.followed.remove(uri);
        }
        is_last
    }

    /// What is followed by somebody who is still there.
    pub(crate) fn followed(&self) -> HashSet<String> {
        let mut inner = self.lock();
        inner.followed.retain(|_, hearers| {
            hearers.retain(|known| known.strong_count() > 0);
            !hearers.is_empty()
        });
        inner.followed.keys().cloned().collect()
    }

    /// Waits for the next acknowledgement of a listening request (SUB-02). One waits at a time.
    pub(crate) fn acknowledged(&self) -> oneshot::Receiver<Vec<String>> {
        let (waits, acknowledged) = oneshot::channel();
        let mut inner = self.lock();
        inner.waits = Some(waits);
        inner.is_unheard = false;
        acknowledged
    }

    /// The server has acknowledged a listening request, and honours this much of it.
    pub(crate) fn acknowledge(&self, uris: Vec<String>) {
        if let Some(waits) = self.lock().waits.take() {
            // Whoever waited may be gone.
            let _ = waits.send(uris);
        }
    }

    /// The listening request has ended by itself. One that was acknowledged is opened again at once; one that never was is tried
    /// again when its time comes, so that a server which refuses it is not asked without pause.
    pub(crate) fn is_over(&self) {
        let mut inner = self.lock();
        inner.is_unheard = true;
        let was_open = inner.waits.take().is_none();
        drop(inner);
        if was_open {
            self.ended.notify_one();
        }
    }

    /// Whether the listening request has ended by itself.
    pub(crate) fn is_unheard(&self) -> bool {
        self.lock().is_unheard
    }

    /// A resource has changed: whoever follows it, or what it is a part of, is told (RES-05).
    pub(crate) fn updated(&self, uri: &str) {
        let hearers: Vec<Arc<Relay>> = self
            .lock()
            .followed
            .iter()
            .filter(|(followed, _)| is_within(uri, followed))
            .flat_map(|(_, hearers)| hearers.iter().filter_map(Weak::upgrade))
            .collect();
        for hearer in hearers {
            hearer.tell(Told::Updated(uri.to_owned()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is(known: &Weak<Relay>, hearer: &Arc<Relay>) -> bool {
    std::ptr::eq(known.as_ptr(), Arc::as_ptr(hearer))
}

/// Whether a URI is this one or lies below it.
fn is_within(uri: &str, parent: &str) -> bool {
    uri.strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || parent.ends_with('/') || rest.starts_with(['/', '#', '?']))
}

#[cfg(test)]
mod tests {
    use wire::{LogFilter, LogLevel};

    use super::*;
    use crate::relay::Wish;

    fn hearer() -> Arc<Relay> {
        Arc::new(Relay::with(Arc::new(Wish::new(LogFilter::Everything))))
    }

    #[test]
    fn res_05_a_part_is_told_to_whoever_follows_the_whole_and_to_nobody_beside() {
        let audience = Audience::default();
        let follows = |uri: &str| {
            let hearer = hearer();
            audience.follow(uri, &hearer);
            hearer
        };
        let heard = [
            (follows("file:///a"), true),
            (follows("file:///a/b"), true),
            (follows("file:///a/"), true),
            (follows("file:///a/b/c"), false),
            (follows("file:///a/bc"), false),
            (follows("file:///"), true),
            (follows("file:///a/bb"), false),
        ];
        audience.updated("file:///a/b");
        for (hearer, is_told) in &heard {
            let told: Vec<Told> = is_told
                .then(|| Told::Updated("file:///a/b".to_owned()))
                .into_iter()
                .collect();
            assert_eq!(hearer.take(), told);
        }
        let near = follows("file:///a/b");
        audience.updated("file:///a/bb");
        assert_eq!(near.take(), [], "a longer name is no part");
    }

    #[test]
    fn the_last_who_goes_ends_it_and_whoever_is_gone_follows_nothing() {
        let audience = Audience::default();
        let (ada, bob) = (hearer(), hearer());
        audience.follow("a://1", &ada);
        audience.follow("a://1", &ada);
        audience.follow("a://1", &bob);
        assert!(!audience.unfollow("a://1", &ada));
        assert!(!audience.unfollow("a://1", &ada), "he was gone before");
        assert!(audience.unfollow("a://1", &bob));
        assert!(audience.followed().is_empty());
        audience.follow("a://2", &ada);
        assert_eq!(audience.followed().len(), 1);
        drop(ada);
        assert!(audience.followed().is_empty());
    }

    #[test]
    fn what_belongs_to_no_call_is_told_to_those_whose_lane_it_is() {
        let audience = Audience::default();
        let (own, other) = (hearer(), hearer());
        audience.admit(&own);
        audience.admit(&own);
        audience.follow("a://1", &other);
        let message = LogMessage {
            level: LogLevel::Info,
            logger: None,
            data: "x".into(),
        };
        audience.log(&message);
        assert_eq!(own.take(), [Told::Log(Box::new(message))]);
        assert_eq!(other.take(), []);
    }
}
