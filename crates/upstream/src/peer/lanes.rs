//! Whose conversation a call uses: the lanes of one server, each with at most one open conversation and those who hear it.
//!
//! Nothing is opened or ended here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::Sharing;
use model::CallerKey;
use tokio::sync::Notify;
use wire::Profile;

use crate::inquiries::Inquiries;
use crate::peer::audience::Audience;
use crate::peer::conversation::Conversation;
use crate::peer::fault::PeerFault;
use crate::relay::Relay;

/// Whose conversation a call may use.
#[derive(Debug, Clone)]
pub struct Lane {
    /// The caller.
    pub caller: CallerKey,
    /// The session that the call came in, where its client has one.
    pub session: Option<String>,
    /// What the server may ask the caller of this call.
    pub inquiries: Arc<Inquiries>,
    /// Who is told what the server says on its own account, where the client has a conversation for it.
    pub hearer: Option<Arc<Relay>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum LaneKey {
    /// Everybody's, of those who can be asked the same.
    All(Profile),
    /// Our own: for listing, never for a caller.
    Own,
    /// One caller's. What its server may ask is said once, when it is opened (HOP-09).
    Caller(CallerKey, Profile),
    /// One session's of one caller.
    Session(CallerKey, String, Profile),
}

impl LaneKey {
    /// The lane of a call. `is_stateless`: each request says for itself what may be asked meanwhile.
    pub(crate) fn of(lane: &Lane, sharing: Sharing, is_stateless: bool, profile: Profile) -> Self {
        match (sharing, &lane.session) {
            _ if is_stateless => Self::All(Profile::NONE),
            (Sharing::Shared, _) => Self::All(profile),
            (Sharing::PerCaller, _) | (Sharing::PerSession, None) => Self::Caller(lane.caller, profile),
            (Sharing::PerSession, Some(session)) => Self::Session(lane.caller, session.clone(), profile),
        }
    }

    /// What the server of its conversation may ask.
    pub(crate) const fn profile(&self) -> Profile {
        match self {
            Self::Own => Profile::NONE,
            Self::All(profile) | Self::Caller(_, profile) | Self::Session(_, _, profile) => *profile,
        }
    }

    /// Whether several callers use it.
    pub(crate) const fn is_shared(&self) -> bool {
        match self {
            Self::All(_) => true,
            Self::Own | Self::Caller(..) | Self::Session(..) => false,
        }
    }
}

/// For whom a child counts.
impl std::fmt::Display for LaneKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All(_) => f.write_str("all"),
            Self::Own => f.write_str("own"),
            Self::Caller(caller, _) | Self::Session(caller, ..) => write!(f, "{caller:?}"),
        }
    }
}

/// One lane.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its conversation, once it is open. Whoever opens it holds the lock.
    pub(crate) open: tokio::sync::Mutex<Option<Arc<Conversation>>>,
    pub(crate) audience: Arc<Audience>,
}

/// A lane that several may look at.
pub(crate) type Slot = Arc<Place>;

/// The lanes of one server.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<LaneKey, Slot>>,
    max: usize,
    /// Whom to wake when a conversation ends in which something is followed.
    ended: Arc<Notify>,
}

impl Lanes {
    pub(crate) fn new(max: usize, ended: &Arc<Notify>) -> Self {
        Self {
            lanes: Mutex::default(),
            max,
            ended: Arc::clone(ended),
        }
    }

    /// The lane of this key; a new one, where there is none yet.
    ///
    /// # Errors
    /// [`PeerFault::Full`].
    pub(crate) fn slot(&self, key: &LaneKey) -> Result<Slot, PeerFault> {
        let mut lanes = self.lock();
        if let Some(slot) = lanes.get(key) {
            return Ok(Arc::clone(slot));
        }
        if lanes.len() >= self.max {
            return Err(PeerFault::Full { max: self.max });
        }
        let slot = Arc::new(Place {
            open: tokio::sync::Mutex::default(),
            audience: Arc::new(Audience::new(&self.ended)),
        });
        lanes.insert(key.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    /// Gives a conversation to everybody, now that its server is known to be of the stateless era: the next call looks for it
    /// there.
    pub(crate) fn is_everybodys(&self, key: &LaneKey, slot: &Slot) {
        let everybody = LaneKey::All(Profile::NONE);
        let mut lanes = self.lock();
        if *key != everybody && !lanes.contains_key(&everybody) {
            lanes.insert(everybody, Arc::clone(slot));
            lanes.remove(key);
        }
    }

    /// Takes out a lane that nothing came of, unless somebody else waits for it or something is followed in it.
    pub(crate) fn forget(&self, key: &LaneKey, slot: &Slot) {
        if !slot.audience.followed().is_empty() {
            return;
        }
        let mut lanes = self.lock();
        // The map's and the caller's own.
        if Arc::strong_count(slot) <= 2 && lanes.get(key).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            lanes.remove(key);
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(LaneKey, Slot)> {
        self.lock()
            .iter()
            .map(|(key, slot)| (key.clone(), Arc::clone(slot)))
            .collect()
    }

    /// All of them; none is left.
    pub(crate) fn drain(&self) -> Vec<Slot> {
        self.lock().drain().map(|(_, slot)| slot).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LaneKey, Slot>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
