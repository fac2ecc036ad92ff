//! Sessions of the legacy era, each bound to the caller that opened it, and the requests that run in them.
//!
//! A session is a name, not an authority: every request is authenticated anew, and a session of somebody else reads the
//! same as one that does not exist (SEC-05, HL-14).

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::Principal;
use model::{CallerKey, Limits};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::{Id, Identity, LogFilter, Opening, Profile, Revision};

use crate::hearing::Hearing;
use crate::mount::Mount;
use crate::posed::Posed;
use crate::stream::{Cursor, NotResumed, Stream, StreamId, Streams};

/// The id of a session: 32 random bytes, in 43 visible ASCII characters (HL-12).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// The id as it stands in the header.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// An id lets nobody in, but it does not belong in a log either.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({}…)", self.0.get(..6).unwrap_or_default())
    }
}

/// All open sessions.
#[derive(Debug)]
pub struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    limits: Limits,
}

/// Why no session was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionsFull {
    /// Too many, of all callers.
    #[error("too many sessions are open; close one, or try again later")]
    All,
    /// Too many of this caller.
    #[error("this caller has too many sessions open; close one with DELETE")]
    OfCaller,
    /// No randomness to name it by.
    #[error("the session could not be opened; try again later")]
    Nameless,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    caller: CallerKey,
    mount: Mount,
    revision: Revision,
    client: Option<Identity>,
    used: Mutex<Instant>,
    ended: CancellationToken,
    running: Running,
    streams: Arc<Streams>,
    /// What its client said that it can be asked.
    profile: Profile,
    posed: Posed,
    hearing: Arc<Hearing>,
}

/// The requests that run in a conversation, by their ids, so that one can be cancelled (CAN-01).
#[derive(Debug, Default, Clone)]
pub struct Running(Arc<Mutex<HashMap<Id, Arc<Ending>>>>);

/// How a running request is ended before its time.
#[derive(Debug, Default)]
struct Ending {
    cancel: CancellationToken,
    /// Whether it was not its client who ended it.
    is_cut_off: AtomicBool,
}

/// One running request; it is over when this is dropped.
#[derive(Debug)]
pub struct RunningRequest {
    id: Id,
    table: Running,
    ending: Arc<Ending>,
}

impl Sessions {
    /// No sessions yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            open: Mutex::default(),
            limits: limits.clone(),
        }
    }

    /// Opens a session for a caller.
    ///
    /// # Errors
    /// [`SessionsFull`]; sessions that nobody used for `session_idle_timeout` are ended first.
    pub fn open(
        &self,
        principal: &Principal,
        mount: &Mount,
        opening: &Opening,
    ) -> Result<Arc<Session>, SessionsFull> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| SessionsFull::Nameless)?;
        let id = SessionId(URL_SAFE_NO_PAD.encode(bytes));
        let caller = principal.key();
        let mut open = self.lock();
        if open.len() >= self.limits.sessions_max {
            Self::end_idle(&mut open, self.limits.session_idle_timeout);
        }
        if open.len() >= self.limits.sessions_max {
            return Err(SessionsFull::All);
        }
        // Counted by walking: opening is rare, and a second table could disagree with the first.
        let of_caller =
            |open: &HashMap<String, Arc<Session>>| open.values().filter(|s| s.caller == caller).count();
        if of_caller(&open) >= self.limits.sessions_per_caller_max {
            Self::end_idle(&mut open, self.limits.session_idle_timeout);
            if of_caller(&open) >= self.limits.sessions_per_caller_max {
                return Err(SessionsFull::OfCaller);
            }
        }
        let session = Arc::new(Session {
            id: id.clone(),
            caller,
            mount: mount.clone(),
            revision: opening.revision,
            client: opening.client.clone(),
            used: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
            running: Running::default(),
            streams: Arc::new(Streams::new(&self.limits)),
            profile: Profile::declared(&opening.capabilities, opening.revision),
            posed: Posed::default(),
            // Before a level is set, a server may say what it likes (LOG-02).
            hearing: Arc::new(Hearing::new(LogFilter::Everything, &self.limits)),
        });
        open.insert(id.0, Arc::clone(&session));
        Ok(session)
    }

    /// The session with this id, if it is this caller's and was opened on this endpoint. `None` does not say which of them
    /// failed.
    #[must_use]
    pub fn find(&self, id: &str, principal: &Principal, mount: &Mount) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        if session.caller != principal.key()
            || session.mount != *mount
            || session.is_idle(self.limits.session_idle_timeout)
        {
            return None;
        }
        session.touch();
        Some(session)
    }

    /// Ends a session of this caller. `false`: there is none.
    pub fn close(&self, id: &str, principal: &Principal, mount: &Mount) -> bool {
        let Some(session) = self.find(id, principal, mount) else {
            return false;
        };
        self.lock().remove(id);
        session.end();
        true
    }

    /// Ends what nobody uses. For a task that comes by now and then.
    pub fn sweep(&self) {
        Self::end_idle(&mut self.lock(), self.limits.session_idle_timeout);
    }

    /// Ends everything: the gate is closing.
    pub fn end_all(&self) {
        for (_, session) in self.lock().drain() {
            session.end();
        }
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn end_idle(open: &mut HashMap<String, Arc<Session>>, timeout: Duration) {
        open.retain(|_, session| {
            let goes = session.is_idle(timeout);
            if goes {
                session.end();
            }
            !goes
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// The revision that `initialize` agreed on.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// The client program, as it said.
    #[must_use]
    pub const fn client(&self) -> Option<&Identity> {
        self.client.as_ref()
    }

    /// What its client said that it can be asked.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Our own requests that wait for its client.
    #[must_use]
    pub const fn posed(&self) -> &Posed {
        &self.posed
    }

    /// What its client is told outside of answers.
    #[must_use]
    pub const fn hearing(&self) -> &Arc<Hearing> {
        &self.hearing
    }

    /// Its running requests.
    #[must_use]
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Comes to pass when the session ends.
    #[must_use]
    pub const fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Opens an event stream that answers no request. `None`: `streams_per_session_max` are open.
    ///
    /// For a stream that answers a request use [`Session::answer_stream`]: calls have a limit of their own.
    #[must_use]
    pub fn listen(&self) -> Option<Stream> {
        self.streams.listen()
    }

    /// Says something that answers no request, on one listening stream that is read (HL-10). Without one, nobody hears it.
    pub fn tell(&self, data: &[u8]) {
        self.streams.tell(data);
    }

    /// Opens the stream of an answer.
    #[must_use]
    pub fn answer_stream(&self) -> StreamId {
        self.streams.open()
    }

    /// Puts the first event on a stream.
    pub fn prime(&self, id: StreamId, retry_ms: u64) {
        self.streams.prime(id, retry_ms);
    }

    /// Puts a message on a stream.
    pub fn push(&self, id: StreamId, data: &[u8]) {
        self.streams.push(id, data);
        self.touch();
    }

    /// Nothing more comes on a stream.
    pub fn end_stream(&self, id: StreamId) {
        self.streams.end(id);
    }

    /// Reads a stream from its start.
    #[must_use]
    pub fn read(&self, id: StreamId) -> Option<Stream> {
        self.streams.read(id)
    }

    /// Reads a stream on behind an event. Whoever read it before is at its end.
    ///
    /// # Errors
    /// [`NotResumed`].
    pub fn resume(&self, cursor: Cursor) -> Result<Stream, NotResumed> {
        self.streams.resume(cursor)
    }

    /// Notes that it is in use.
    pub fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nobody used it for so long. A request that still runs is use.
    fn is_idle(&self, timeout: Duration) -> bool {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.elapsed() >= timeout && self.running.is_empty()
    }

    fn end(&self) {
        self.running.cancel_all();
        self.ended.cancel();
    }
}

impl Running {
    /// Notes that a request runs. `None`: one with this id does already (BASE-02, BASE-03).
    #[must_use]
    pub fn start(&self, id: &Id) -> Option<RunningRequest> {
        let mut table = self.lock();
        if table.contains_key(id) {
            return None;
        }
        let ending = Arc::new(Ending::default());
        table.insert(id.clone(), Arc::clone(&ending));
        drop(table);
        Some(RunningRequest {
            id: id.clone(),
            table: self.clone(),
            ending,
        })
    }

    /// Cancels a request. One that is over, or never was, is no matter (CAN-01).
    pub fn cancel(&self, id: &Id) {
        if let Some(ending) = self.lock().get(id) {
            ending.cancel.cancel();
        }
    }

    /// Cuts off everything that runs.
    pub fn cancel_all(&self) {
        for ending in self.lock().values() {
            // What its client cancelled is not cut off any more: he waits for nothing.
            if !ending.cancel.is_cancelled() {
                ending.is_cut_off.store(true, Ordering::Release);
                ending.cancel.cancel();
            }
        }
    }

    /// Whether nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, Arc<Ending>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningRequest {
    /// Comes to pass when the request is cancelled.
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.ending.cancel
    }

    /// Whether it was ended by [`Running::cancel_all`], so that its client still waits.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.ending.is_cut_off.load(Ordering::Acquire)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.table.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use identity::{ConfiguredCaller, configured};
    use model::{Caller, CallerName, Object, Subject};

    use super::*;

    fn principal(name: &str) -> Principal {
        configured(&ConfiguredCaller {
            name: CallerName::parse(name).unwrap(),
            caller: Arc::new(Caller {
                issuer: "configuration".into(),
                subject: Subject::parse(name).unwrap(),
                tenant: None,
                roles: BTreeSet::new(),
                client: None,
            }),
            claims: Arc::new(Object::new()),
        })
    }

    fn opening() -> Opening {
        Opening {
            revision: Revision::NEWEST_WITH_SESSIONS,
            requested: String::new(),
            capabilities: Object::new(),
            client: None,
        }
    }

    #[tokio::test]
    async fn sec_05_a_session_of_somebody_else_reads_as_unknown() {
        let sessions = Sessions::new(&Limits::default());
        let session = sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        assert!(
            sessions
                .find(session.id().as_str(), &principal("ada"), &Mount::All)
                .is_some()
        );
        assert!(
            sessions
                .find(session.id().as_str(), &principal("bob"), &Mount::All)
                .is_none()
        );
        assert!(
            sessions
                .find("nonsense", &principal("ada"), &Mount::All)
                .is_none()
        );
        let elsewhere = Mount::View(Arc::default());
        assert!(
            sessions
                .find(session.id().as_str(), &principal("ada"), &elsewhere)
                .is_none()
        );
        assert!(!sessions.close(session.id().as_str(), &principal("bob"), &Mount::All));
        assert!(sessions.close(session.id().as_str(), &principal("ada"), &Mount::All));
        assert!(
            sessions
                .find(session.id().as_str(), &principal("ada"), &Mount::All)
                .is_none()
        );
        assert!(session.ended().is_cancelled());
    }

    #[tokio::test]
    async fn hl_12_ids_are_visible_ascii_and_do_not_repeat() {
        let sessions = Sessions::new(&Limits::default());
        let one = sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        let two = sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        assert_ne!(one.id(), two.id());
        assert!(
            one.id().as_str().bytes().all(|b| (0x21..=0x7E).contains(&b)) && one.id().as_str().len() == 43
        );
        assert!(!format!("{:?}", one.id()).contains(one.id().as_str()));
    }

    #[tokio::test]
    async fn sessions_open_up_to_each_limit_and_not_one_past_it() {
        let limits = Limits {
            sessions_max: 3,
            sessions_per_caller_max: 2,
            ..Limits::default()
        };
        let sessions = Sessions::new(&limits);
        sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        assert_eq!(
            sessions
                .open(&principal("ada"), &Mount::All, &opening())
                .unwrap_err(),
            SessionsFull::OfCaller
        );
        sessions.open(&principal("bob"), &Mount::All, &opening()).unwrap();
        assert_eq!(
            sessions
                .open(&principal("eve"), &Mount::All, &opening())
                .unwrap_err(),
            SessionsFull::All
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_session_ends_and_makes_room() {
        let limits = Limits {
            sessions_max: 1,
            session_idle_timeout: Duration::from_secs(60),
            ..Limits::default()
        };
        let sessions = Sessions::new(&limits);
        let old = sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(
            sessions
                .find(old.id().as_str(), &principal("ada"), &Mount::All)
                .is_some(),
            "used, so it stays"
        );
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(sessions.open(&principal("bob"), &Mount::All, &opening()).is_err());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(
            sessions
                .find(old.id().as_str(), &principal("ada"), &Mount::All)
                .is_none()
        );
        sessions.open(&principal("bob"), &Mount::All, &opening()).unwrap();
        assert!(old.ended().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_in_which_a_request_runs_is_not_idle() {
        let limits = Limits {
            session_idle_timeout: Duration::from_secs(60),
            ..Limits::default()
        };
        let sessions = Sessions::new(&limits);
        let session = sessions.open(&principal("ada"), &Mount::All, &opening()).unwrap();
        let request = session.running().start(&Id::Integer(1)).unwrap();
        tokio::time::advance(Duration::from_secs(600)).await;
        sessions.sweep();
        assert_eq!(sessions.len(), 1);
        drop(request);
        sessions.sweep();
        assert!(sessions.is_empty());
    }

    #[test]
    fn can_01_cancelling_names_one_request_with_its_type() {
        let running = Running::default();
        let one = running.start(&Id::Integer(1)).unwrap();
        let text = running.start(&Id::Text("1".into())).unwrap();
        assert!(
            running.start(&Id::Integer(1)).is_none(),
            "BASE-02: the id is in use"
        );
        running.cancel(&Id::Integer(7));
        running.cancel(&Id::Text("1".into()));
        assert!(!one.cancel().is_cancelled() && text.cancel().is_cancelled());
        drop(one);
        assert!(
            running.start(&Id::Integer(1)).is_some(),
            "BASE-03: over, so it may come again"
        );
    }
}
