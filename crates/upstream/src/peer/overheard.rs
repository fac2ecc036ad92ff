//! What a server says beside answers: progress, changes of its lists, and requests of its own, which are answered at once
//! because nothing was declared that it could ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::Id;
use wire::client::{self, Told};

use crate::peer::mailbox::Mailbox;

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
}

impl Overheard {
    pub(crate) fn new(guard: &Guard) -> Self {
        Self {
            guard: guard.clone(),
            is_stale: AtomicBool::new(false),
            asides: AtomicUsize::new(0),
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
            Told::Cancelled(_) | Told::Other(_) => {}
            // A server's words are not for our log; how many there are is.
            Told::Log { level, .. } => tracing::trace!(level, "a server logs something"),
        }
    }

    /// Answers a request of the server: a ping at once, all else with the error for what was never declared (HOP-06).
    pub(crate) fn answer<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Self>,
        id: &Id,
        method: &str,
        send: impl FnOnce(Bytes) -> F + Send + 'static,
    ) {
        let answer = match method {
            "ping" => client::answer(id, &model::Value::Object(model::Object::new())),
            _ => client::refuse(id, -32_601, "this client does not serve requests of this kind"),
        };
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
