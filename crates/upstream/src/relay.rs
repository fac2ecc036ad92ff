//! What an MCP server tells somebody and he has not been told yet: progress and messages of one call, or messages and
//! changed resources of one session. Bounded; nobody waits for a slow reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wire::{LogFilter, LogMessage};

/// What of each kind waits. Of a server that tells more than can be passed on, the oldest goes.
const WAITING_MAX: usize = 64;

/// What a server told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// How far a call is.
    Progress(Step),
    /// Something for a log.
    Log(Box<LogMessage>),
    /// A resource has changed.
    Updated(String),
}

/// How far a call is, as its server says.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How much is done. Finite.
    pub done: f64,
    /// Of how much, where it says. Finite.
    pub total: Option<f64>,
    /// In its words. Untrusted.
    pub message: Option<String>,
}

/// Which messages for a log one side wants to have. Shared by all that is heard for it.
#[derive(Debug, Default)]
pub struct Wish(Mutex<LogFilter>);

/// What waits to be passed on.
#[derive(Debug, Default)]
pub struct Relay {
    waiting: Mutex<VecDeque<Told>>,
    told: Notify,
    logs: Arc<Wish>,
}

impl Wish {
    /// A wish that can change.
    #[must_use]
    pub fn new(filter: LogFilter) -> Self {
        Self(Mutex::new(filter))
    }

    /// What it is now.
    #[must_use]
    pub fn get(&self) -> LogFilter {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it.
    pub fn set(&self, filter: LogFilter) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = filter;
    }
}

impl Relay {
    /// For somebody with this wish.
    #[must_use]
    pub fn with(logs: Arc<Wish>) -> Self {
        Self {
            logs,
            ..Self::default()
        }
    }

    /// Which messages for a log are wanted.
    #[must_use]
    pub const fn logs(&self) -> &Arc<Wish> {
        &self.logs
    }

    /// Takes what a server told; of messages for a log, those that are wanted.
    pub(crate) fn tell(&self, told: Told) {
        if let Told::Log(message) = &told
            && !self.logs.get().passes(message.level)
        {
            return;
        }
        let mut waiting = self.waiting();
        match &told {
            // Twice the same news is one piece of news.
            Told::Updated(_) if waiting.contains(&told) => return,
            Told::Progress(_) | Told::Log(_) | Told::Updated(_) => {}
        }
        let kind = std::mem::discriminant(&told);
        let alike = |other: &Told| std::mem::discriminant(other) == kind;
        if waiting.iter().filter(|other| alike(other)).count() >= WAITING_MAX
            && let Some(oldest) = waiting.iter().position(alike)
        {
            waiting.remove(oldest);
        }
        waiting.push_back(told);
        drop(waiting);
        self.told.notify_one();
    }

    /// What was told and not yet taken, in order.
    pub fn take(&self) -> Vec<Told> {
        self.waiting().drain(..).collect()
    }

    /// Forgets messages for a log: nobody was there to be told (C5).
    pub fn forget_logs(&self) {
        self.waiting().retain(|told| !matches!(told, Told::Log(_)));
    }

    /// Waits until something was told. Dropping the future loses nothing.
    pub async fn changed(&self) {
        self.told.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Told>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use wire::LogLevel;

    use super::*;

    fn log(level: LogLevel, text: &str) -> Told {
        Told::Log(Box::new(LogMessage {
            level,
            logger: None,
            data: text.into(),
        }))
    }

    #[test]
    fn log_03_only_what_is_wanted_is_kept_and_the_wish_can_change() {
        let wish = Arc::new(Wish::default());
        let relay = Relay::with(Arc::clone(&wish));
        relay.tell(log(LogLevel::Emergency, "nobody asked"));
        assert_eq!(relay.take(), []);
        wish.set(LogFilter::From(LogLevel::Error));
        relay.tell(log(LogLevel::Warning, "a"));
        relay.tell(log(LogLevel::Error, "b"));
        assert_eq!(relay.take(), [log(LogLevel::Error, "b")]);
    }

    #[test]
    fn a_flood_of_one_kind_drowns_no_other_and_the_newest_stays() {
        let relay = Relay::with(Arc::new(Wish::new(LogFilter::Everything)));
        relay.tell(Told::Updated("a://1".to_owned()));
        relay.tell(Told::Updated("a://1".to_owned()));
        for n in 0..=WAITING_MAX {
            relay.tell(log(LogLevel::Info, &n.to_string()));
        }
        let taken = relay.take();
        assert_eq!(taken.len(), WAITING_MAX + 1);
        assert_eq!(
            taken.first(),
            Some(&Told::Updated("a://1".to_owned())),
            "once, and still there"
        );
        assert_eq!(taken.get(1), Some(&log(LogLevel::Info, "1")));
    }

    #[test]
    fn what_was_logged_while_nobody_was_there_is_forgotten_alone() {
        let relay = Relay::with(Arc::new(Wish::new(LogFilter::Everything)));
        relay.tell(log(LogLevel::Info, "x"));
        relay.tell(Told::Updated("a://1".to_owned()));
        relay.forget_logs();
        assert_eq!(relay.take(), [Told::Updated("a://1".to_owned())]);
    }
}
