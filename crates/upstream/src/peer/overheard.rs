//! What a server says beside answers: progress, changes of its lists, and requests of its own, which go to the caller of
//! the call that they belong to, or are refused.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::{JsonLimits, UpstreamName};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::client::{self, Told};
use wire::{Id, Inquiry, InquiryFault, LogFilter, LogMessage, Profile, Revision};

use crate::inquiries::Inquiries;
use crate::peer::audience::Audience;
use crate::peer::mailbox::Mailbox;
use crate::relay::{self, Relay};

/// How long a message that nobody waits for may take: a cancellation, an answer to the server.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);
/// Answers to requests of a server that are on their way at once. More of its requests are not answered.
const ASIDES_MAX: usize = 32;

/// Whether bytes repeat a credential.
pub(crate) type Reveals = dyn Fn(&[u8]) -> bool + Send + Sync;

/// Knows the credentials of the server, since what it tells beside answers is looked at by nobody else, and whom to wake when
/// it tells that a list has changed.
#[derive(Clone)]
pub(crate) struct Guard(pub(crate) Arc<Reveals>, pub(crate) Arc<Notify>);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard(..)")
    }
}

/// What is heard beside answers.
#[derive(Debug)]
pub(crate) struct Overheard {
    guard: Guard,
    /// Whether a list has changed since it was read.
    is_stale: AtomicBool,
    asides: AtomicUsize,
    asks: Asks,
    audience: Arc<Audience>,
    revision: OnceLock<Revision>,
    /// Requests of the server that wait for an answer, by its ids, so that it can take one back (CAN-01).
    open: Mutex<HashMap<Id, CancellationToken>>,
}

/// What a server was told that it may ask in one conversation, and its name.
#[derive(Debug, Clone)]
pub(crate) struct Asks {
    pub(crate) upstream: UpstreamName,
    pub(crate) profile: Profile,
}

/// A request of a server.
#[derive(Debug)]
pub(crate) struct ServerAsk {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Option<Bytes>,
}

impl Overheard {
    pub(crate) fn new(guard: &Guard, asks: &Asks, audience: &Arc<Audience>) -> Self {
        Self {
            guard: guard.clone(),
            is_stale: AtomicBool::new(false),
            asides: AtomicUsize::new(0),
            asks: asks.clone(),
            audience: Arc::clone(audience),
            revision: OnceLock::new(),
            open: Mutex::default(),
        }
    }

    /// Whether a list has changed since this was asked last.
    pub(crate) fn take_stale(&self) -> bool {
        self.is_stale.swap(false, Ordering::AcqRel)
    }

    /// Notes that a list has to be read again.
    pub(crate) fn make_stale(&self) {
        self.is_stale.store(true, Ordering::Release);
    }

    /// Takes note of what a server tells.
    pub(crate) fn hear(&self, told: Told, mailbox: &Mailbox) {
        match told {
            Told::Progress {
                token,
                done,
                total,
                message,
            } => {
                let message = message.filter(|message| !(self.guard.0)(message.as_bytes()));
                mailbox.progress(&token, done, total, message);
            }
            Told::ListChanged(_) => {
                self.is_stale.store(true, Ordering::Release);
                self.guard.1.notify_one();
            }
            Told::Cancelled(id) => {
                if let Some(taken_back) = self.open().get(&id) {
                    taken_back.cancel();
                }
            }
            Told::Updated(uri) => {
                if !(self.guard.0)(uri.as_bytes()) {
                    self.audience.updated(&uri);
                }
            }
            Told::Log(message) => {
                if !self.is_revealed(&message) {
                    self.audience.log(&message);
                }
            }
            Told::Acknowledged(uris) => self.audience.acknowledge(uris),
            Told::Other(_) => {}
        }
    }

    /// A message for a log on the response to a request: it belongs to that call (LOG-03). A call that is answered without
    /// events has no place for it, and it is heard in its session.
    pub(crate) fn log(&self, message: LogMessage, call: &Relay, session: Option<&Arc<Relay>>) {
        if self.is_revealed(&message) {
            return;
        }
        let told = relay::Told::Log(Box::new(message));
        match session {
            Some(session) if call.logs().get() == LogFilter::Nothing => session.tell(told),
            Some(_) | None => call.tell(told),
        }
    }

    fn is_revealed(&self, message: &LogMessage) -> bool {
        let reveals = (self.guard.0)(message.data.to_string().as_bytes())
            || message
                .logger
                .as_ref()
                .is_some_and(|logger| (self.guard.0)(logger.as_bytes()));
        if reveals {
            tracing::warn!(upstream = %self.asks.upstream, "a server logs the credential of the gate; nobody is told");
        }
        reveals
    }

    /// Who hears what belongs to no call.
    pub(crate) const fn audience(&self) -> &Arc<Audience> {
        &self.audience
    }

    /// Answers a request of the server: a ping at once; what it may ask, once the caller of the call that it belongs to has
    /// answered; all else with an error at once (HOP-06). Nothing is made up in somebody's place.
    ///
    /// `whose`: the call, where it is certain.
    pub(crate) fn answer<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        ask: ServerAsk,
        whose: Option<Arc<Inquiries>>,
        limits: JsonLimits,
        send: impl FnOnce(Bytes) -> F + Send + 'static,
    ) {
        let own = Arc::clone(self);
        if ask.method == "ping" {
            let answer = client::answer(&ask.id, &model::Value::Object(model::Object::new()));
            return self.say(answer, send);
        }
        match self.judge(&ask, whose, limits) {
            Err(InquiryFault { code, text }) => self.say(client::refuse(&ask.id, code, &text), send),
            Ok((inquiry, whose, taken_back)) => {
                let revision = self.revision();
                let posed = match whose.pose(&self.asks.upstream, inquiry.clone()) {
                    Ok(posed) => posed,
                    Err(many) => {
                        self.open().remove(&ask.id);
                        return self.say(client::refuse(&ask.id, -32_603, &many.to_string()), send);
                    }
                };
                aside(async move {
                    let asked = tokio::select! {
                        biased;
                        () = taken_back.cancelled() => None,
                        reply = posed.reply() => Some(reply),
                    };
                    own.open().remove(&ask.id);
                    let answer = match asked {
                        // CAN-01: what was taken back is not answered.
                        None => return,
                        Some(reply) => match inquiry.result_for(revision, reply) {
                            Ok(result) => client::answer(&ask.id, &result),
                            Err(InquiryFault { code, text }) => client::refuse(&ask.id, code, &text),
                        },
                    };
                    send(answer).await;
                });
            }
        }
    }

    /// Whether a request may be put to somebody, and to whom.
    fn judge(
        &self,
        ask: &ServerAsk,
        whose: Option<Arc<Inquiries>>,
        limits: JsonLimits,
    ) -> Result<(Inquiry, Arc<Inquiries>, CancellationToken), InquiryFault> {
        let refuse = |code: i32, text: &str| InquiryFault {
            code,
            text: text.to_owned(),
        };
        let inquiry = Inquiry::read(&ask.method, ask.params.as_ref(), limits)?;
        inquiry.fits(self.asks.profile)?;
        if ask.params.as_ref().is_some_and(|params| (self.guard.0)(params)) {
            tracing::warn!(upstream = %self.asks.upstream, "a server asks somebody with the credential of the gate in its words");
            return Err(refuse(-32_602, "this request repeats a credential"));
        }
        let Some(whose) = whose else {
            return Err(refuse(
                -32_602,
                "it cannot be told to which call this request belongs",
            ));
        };
        inquiry.fits(whose.profile())?;
        let mut open = self.open();
        if open.len() >= ASIDES_MAX || open.contains_key(&ask.id) {
            return Err(refuse(
                -32_600,
                "too many requests, or one with this id, wait for answers",
            ));
        }
        let taken_back = CancellationToken::new();
        open.insert(ask.id.clone(), taken_back.clone());
        drop(open);
        Ok((inquiry, whose, taken_back))
    }

    /// Says something that is known at once.
    fn say<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        answer: Bytes,
        send: impl FnOnce(Bytes) -> F + Send + 'static,
    ) {
        if self.asides.fetch_add(1, Ordering::AcqRel) >= ASIDES_MAX {
            self.asides.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let own = Arc::clone(self);
        aside(async move {
            send(answer).await;
            own.asides.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// Notes which revision was agreed on.
    pub(crate) fn speaks(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// Whether the server may say several things at once: in one revision, once that is agreed on (BASE-07, BASE-10).
    pub(crate) fn has_batches(&self) -> bool {
        self.revision().has_batches()
    }

    fn revision(&self) -> Revision {
        self.revision
            .get()
            .copied()
            .unwrap_or(Revision::NEWEST_WITH_SESSIONS)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until when a message that nobody waits for may be sent.
pub(crate) fn soon() -> Instant {
    Instant::now() + ASIDE_TIMEOUT
}

/// Runs something that nobody waits for. Without a runtime there is nobody to tell either.
pub(crate) fn aside(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}
