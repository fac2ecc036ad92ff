//! Which answer belongs to which request, where all of them come on one stream.
//!
//! Ids are minted here and never used twice on one stream (BASE-02), so that an answer that comes late belongs to nobody
//! instead of to somebody else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;
use wire::Id;
use wire::client::ServerError;

use crate::inquiries::Inquiries;
use crate::peer::fault::PeerFault;
use crate::progress::Progress;
use crate::relay::Step;

/// An answer: the result, not yet read, or the error of the server.
pub(crate) type Outcome = Result<Bytes, ServerError>;

/// The requests that wait on one stream.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    ids: AtomicI64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: HashMap<i64, Waiting>,
    closed: Option<PeerFault>,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Outcome, PeerFault>>,
    progress: Option<Arc<Progress>>,
    inquiries: Option<Arc<Inquiries>>,
}

/// A request that waits. Dropping it takes it out of the mailbox: what comes for it then belongs to nobody.
#[derive(Debug)]
pub(crate) struct Ticket {
    mailbox: Arc<Mailbox>,
    id: i64,
    answer: oneshot::Receiver<Result<Outcome, PeerFault>>,
}

impl Mailbox {
    /// A new id.
    pub(crate) fn mint(&self) -> i64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits for the answer to a request with this id, which was just minted.
    ///
    /// # Errors
    /// What closed the mailbox.
    pub(crate) fn wait(
        self: &Arc<Self>,
        id: i64,
        progress: Option<Arc<Progress>>,
        inquiries: Option<Arc<Inquiries>>,
    ) -> Result<Ticket, PeerFault> {
        let (sender, answer) = oneshot::channel();
        let mut inner = self.lock();
        if let Some(closed) = &inner.closed {
            return Err(closed.clone().unsent());
        }
        let waiting = Waiting {
            answer: sender,
            progress,
            inquiries,
        };
        inner.waiting.insert(id, waiting);
        drop(inner);
        Ok(Ticket {
            mailbox: Arc::clone(self),
            id,
            answer,
        })
    }

    /// Gives an answer to whoever waits for it. Whether anybody did.
    pub(crate) fn answer(&self, id: &Id, outcome: Outcome) -> bool {
        let Id::Integer(id) = id else { return false };
        let waiting = self.lock().waiting.remove(id);
        waiting.is_some_and(|waiting| waiting.answer.send(Ok(outcome)).is_ok())
    }

    /// Whom a server asks that does not say in which call: the caller of the only call that runs (C3). With two there is
    /// no telling, and a guess would ask the wrong person.
    pub(crate) fn only_call(&self) -> Option<Arc<Inquiries>> {
        let inner = self.lock();
        let mut calls = inner
            .waiting
            .values()
            .filter_map(|waiting| waiting.inquiries.as_ref());
        match (calls.next(), calls.next()) {
            (Some(only), None) => Some(Arc::clone(only)),
            (Some(_) | None, _) => None,
        }
    }

    /// Notes progress of a running request. Its token is its id.
    pub(crate) fn progress(&self, token: &Id, done: f64, total: Option<f64>, message: Option<String>) {
        let Id::Integer(token) = token else { return };
        let progress = self
            .lock()
            .waiting
            .get(token)
            .and_then(|waiting| waiting.progress.clone());
        if let Some(progress) = progress {
            progress.tell(Step { done, total, message });
        }
    }

    /// Nothing more will come: whoever waits learns why, and nobody waits any more.
    pub(crate) fn close(&self, fault: &PeerFault) {
        let mut inner = self.lock();
        if inner.closed.is_none() {
            inner.closed = Some(fault.clone());
        }
        for (_, waiting) in inner.waiting.drain() {
            let _ = waiting.answer.send(Err(fault.clone()));
        }
    }

    /// Whether nothing more will come.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits for the answer.
    ///
    /// # Errors
    /// What closed the mailbox.
    pub(crate) async fn answer(&mut self) -> Result<Outcome, PeerFault> {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => Err(PeerFault::Ended { sent: true }),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.mailbox.lock().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &'static str) -> Outcome {
        Ok(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn each_answer_goes_to_the_request_with_its_id_and_to_no_other() {
        let mailbox = Arc::new(Mailbox::default());
        let (one, two) = (mailbox.mint(), mailbox.mint());
        assert_ne!(one, two);
        let mut first = mailbox.wait(one, None, None).unwrap();
        let mut second = mailbox.wait(two, None, None).unwrap();
        assert!(mailbox.answer(&Id::Integer(two), result("2")));
        assert!(mailbox.answer(&Id::Integer(one), result("1")));
        assert_eq!(first.answer().await.unwrap(), result("1"));
        assert_eq!(second.answer().await.unwrap(), result("2"));
        // A second answer, one for a text of the same digits, and one for nobody.
        assert!(!mailbox.answer(&Id::Integer(one), result("x")));
        assert!(!mailbox.answer(&Id::Text(two.to_string()), result("x")));
        assert!(!mailbox.answer(&Id::Integer(99), result("x")));
    }

    #[tokio::test]
    async fn whoever_waits_learns_why_nothing_comes_and_nobody_waits_after_that() {
        let mailbox = Arc::new(Mailbox::default());
        let mut waiting = mailbox.wait(mailbox.mint(), None, None).unwrap();
        mailbox.close(&PeerFault::Ended { sent: true });
        assert_eq!(waiting.answer().await, Err(PeerFault::Ended { sent: true }));
        assert!(mailbox.is_closed());
        let refused = mailbox.wait(mailbox.mint(), None, None).unwrap_err();
        assert!(!refused.sent(), "a request that was never sent");
    }

    #[tokio::test]
    async fn whom_a_server_asks_is_certain_or_nobody() {
        let mailbox = Arc::new(Mailbox::default());
        let call = || {
            let inquiries = Arc::new(Inquiries::none());
            let ticket = mailbox.wait(mailbox.mint(), None, Some(Arc::clone(&inquiries)));
            (ticket.unwrap(), inquiries)
        };
        assert!(mailbox.only_call().is_none());
        let _list = mailbox.wait(mailbox.mint(), None, None).unwrap();
        let (_one, first) = call();
        assert!(Arc::ptr_eq(&mailbox.only_call().unwrap(), &first));
        let (two, _second) = call();
        assert!(mailbox.only_call().is_none(), "there are two");
        drop(two);
        assert!(Arc::ptr_eq(&mailbox.only_call().unwrap(), &first));
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_leaves_nothing_behind() {
        let mailbox = Arc::new(Mailbox::default());
        let id = mailbox.mint();
        drop(mailbox.wait(id, None, None).unwrap());
        assert!(mailbox.lock().waiting.is_empty());
        assert!(!mailbox.answer(&Id::Integer(id), result("late")));
    }
}
