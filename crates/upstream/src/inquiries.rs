//! What the server of one call asks of its caller, on its way from the far side to whoever can be asked, and the answers
//! on their way back.
//!
//! One value belongs to one call, so that a question can only reach the caller of that call. The far side puts questions
//! and waits; whoever serves the call takes them. Bounded in number and in time. Who answers, and how, is known elsewhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Limits, UpstreamName};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::{Inquiry, InquiryReply, Profile};

/// The longest key of a question that is kept, in bytes.
const KEY_BYTES_MAX: usize = 128;

/// The questions of one call.
#[derive(Debug)]
pub struct Inquiries {
    profile: Profile,
    /// Whether a person has to be told which upstream asks.
    shows_upstream: bool,
    at_once_max: usize,
    per_call_max: usize,
    time_max: Duration,
    inner: Mutex<Inner>,
    /// Something waits to be taken.
    news: Notify,
    /// Counts what changes about the time that is waited.
    clock: watch::Sender<u64>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Question>,
    open: usize,
    asked: usize,
    answered: usize,
    /// Since when at least one is open.
    since: Option<Instant>,
    /// How long at least one was open before that.
    spent: Duration,
}

/// A question that somebody has to answer. Dropping it says that nobody does.
#[derive(Debug)]
pub struct Question {
    inquiry: Inquiry,
    /// What its server calls it, where it has names for its questions.
    key: Option<String>,
    reply: oneshot::Sender<InquiryReply>,
}

/// Too many questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooMany {
    #[error("{0} requests of this server wait for answers in this call; no more can")]
    AtOnce(usize),
    #[error("this server has asked {0} times in this call; no more is taken")]
    InAll(usize),
}

impl Inquiries {
    /// Of a caller who cannot be asked anything.
    #[must_use]
    pub fn none() -> Self {
        Self::of(Profile::NONE, false, &Limits::default())
    }

    /// Of a caller who can be asked what is in `profile`: what was declared, as far as the way to it carries it.
    /// `shows_upstream`: the endpoint shows several upstreams, so that the words for a person begin with the name of the
    /// one that asks.
    #[must_use]
    pub fn of(profile: Profile, shows_upstream: bool, limits: &Limits) -> Self {
        Self {
            profile,
            shows_upstream,
            at_once_max: limits.asks_at_once_max,
            per_call_max: limits.asks_per_call_max,
            time_max: limits.ask_time_max,
            inner: Mutex::default(),
            news: Notify::new(),
            clock: watch::channel(0).0,
            closed: CancellationToken::new(),
        }
    }

    /// What the caller can be asked.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// How long the call may wait for answers, beside its deadline.
    #[must_use]
    pub const fn patience(&self) -> Duration {
        if self.profile.is_empty() {
            Duration::ZERO
        } else {
            self.time_max
        }
    }

    /// How many questions were put, and how many got an answer.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.asked, inner.answered)
    }

    /// Waits until a question may be there to be taken. Dropping the future loses nothing.
    pub async fn changed(&self) {
        self.news.notified().await;
    }

    /// Takes the questions that wait, in order.
    pub fn take(&self) -> Vec<Question> {
        let taken: Vec<Question> = self.lock().waiting.drain(..).collect();
        // What the server took back meanwhile is nobody's.
        taken
            .into_iter()
            .filter(|question| !question.reply.is_closed())
            .collect()
    }

    /// Until when the questions that are open now may be answered.
    #[must_use]
    pub fn until(&self) -> Instant {
        let inner = self.lock();
        let began = inner.since.unwrap_or_else(Instant::now);
        began + self.time_max.saturating_sub(inner.spent)
    }

    /// Puts a question by the key that its server has for it, and waits for its answer. Dropping the future takes it back.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        upstream: &UpstreamName,
        (key, inquiry): (&str, Inquiry),
    ) -> Result<InquiryReply, TooMany> {
        let key = (key.len() <= KEY_BYTES_MAX).then(|| key.to_owned());
        Ok(self.put_by(upstream, inquiry, key)?.reply().await)
    }

    /// Puts a question now, so that those of one server stand in the order in which they came.
    pub(crate) fn pose(
        self: &Arc<Self>,
        upstream: &UpstreamName,
        inquiry: Inquiry,
    ) -> Result<Posed, TooMany> {
        self.put_by(upstream, inquiry, None)
    }

    fn put_by(
        self: &Arc<Self>,
        upstream: &UpstreamName,
        inquiry: Inquiry,
        key: Option<String>,
    ) -> Result<Posed, TooMany> {
        if inquiry.asks_for_a_secret() {
            tracing::warn!(%upstream, "a server asks for what looks like a secret in a form");
        }
        let answer = self.put(inquiry.from_upstream(upstream.as_str(), self.shows_upstream), key)?;
        Ok(Posed {
            answer,
            open: Open(Arc::clone(self)),
        })
    }

    fn put(&self, inquiry: Inquiry, key: Option<String>) -> Result<oneshot::Receiver<InquiryReply>, TooMany> {
        let (reply, answer) = oneshot::channel();
        let mut inner = self.lock();
        if inner.asked >= self.per_call_max {
            return Err(TooMany::InAll(self.per_call_max));
        }
        if inner.open >= self.at_once_max {
            return Err(TooMany::AtOnce(self.at_once_max));
        }
        inner.asked += 1;
        inner.open += 1;
        inner.since.get_or_insert_with(Instant::now);
        inner.waiting.push_back(Question { inquiry, key, reply });
        drop(inner);
        self.news.notify_one();
        self.clock.send_modify(|count| *count += 1);
        Ok(answer)
    }

    /// Waits until the time of the call is over. The time that answers are waited for does not count.
    pub(crate) async fn run_out(&self, deadline: Instant) {
        let mut clock = self.clock.subscribe();
        loop {
            clock.mark_unchanged();
            let (is_open, spent) = {
                let inner = self.lock();
                (inner.since.is_some(), inner.spent)
            };
            if is_open {
                // The sender is our own, so that it cannot be gone.
                let _ = clock.changed().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep_until(deadline + spent) => return,
                _ = clock.changed() => {}
            }
        }
    }

    /// The call is over: nobody answers any more.
    pub(crate) fn close(&self) {
        self.closed.cancel();
        self.lock().waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// What is asked.
    #[must_use]
    pub const fn inquiry(&self) -> &Inquiry {
        &self.inquiry
    }

    /// What its server calls it, where it has names for its questions. Untrusted.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Answers it. The server may have taken it back.
    pub fn answer(self, reply: InquiryReply) {
        let _ = self.reply.send(reply);
    }

    /// Waits until the server has taken it back, or its time is over. Dropping the future loses nothing.
    pub async fn withdrawn(&mut self) {
        self.reply.closed().await;
    }
}

/// A question that was put, and whose answer somebody waits for. Dropping it takes the question back.
#[derive(Debug)]
pub(crate) struct Posed {
    answer: oneshot::Receiver<InquiryReply>,
    open: Open,
}

impl Posed {
    /// Waits for the answer.
    pub(crate) async fn reply(self) -> InquiryReply {
        let Self { answer, open } = self;
        let own = Arc::clone(&open.0);
        let reply = tokio::select! {
            biased;
            answer = answer => answer.unwrap_or(InquiryReply::Nothing),
            () = own.closed.cancelled() => InquiryReply::Nothing,
            () = tokio::time::sleep_until(own.until()) => InquiryReply::Nothing,
        };
        drop(open);
        if reply != InquiryReply::Nothing {
            own.lock().answered += 1;
        }
        reply
    }
}

/// A question that is open.
#[derive(Debug)]
struct Open(Arc<Inquiries>);

impl Drop for Open {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.open = inner.open.saturating_sub(1);
        if inner.open == 0
            && let Some(since) = inner.since.take()
        {
            inner.spent += since.elapsed();
        }
        drop(inner);
        self.0.clock.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inquiries(limits: &Limits) -> Arc<Inquiries> {
        Arc::new(Inquiries::of(Profile::ROOTS, true, limits))
    }

    fn roots() -> Inquiry {
        Inquiry::of("roots/list", model::Object::new()).unwrap()
    }

    async fn ask(inquiries: &Arc<Inquiries>) -> Result<InquiryReply, TooMany> {
        let upstream = UpstreamName::parse("far").unwrap();
        inquiries.ask(&upstream, ("a", roots())).await
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_questions_are_open_as_may_be_and_not_one_more() {
        let limits = Limits {
            asks_at_once_max: 2,
            asks_per_call_max: 3,
            ..Limits::default()
        };
        let inquiries = inquiries(&limits);
        let put = || {
            let own = Arc::clone(&inquiries);
            tokio::spawn(async move { ask(&own).await })
        };
        let two = [put(), put()];
        tokio::task::yield_now().await;
        assert_eq!(ask(&inquiries).await, Err(TooMany::AtOnce(2)));
        for question in inquiries.take() {
            question.answer(InquiryReply::Result(model::Object::new()));
        }
        for one in two {
            assert!(matches!(one.await.unwrap(), Ok(InquiryReply::Result(_))));
        }
        let third = put();
        tokio::task::yield_now().await;
        drop(inquiries.take());
        assert_eq!(third.await.unwrap(), Ok(InquiryReply::Nothing));
        assert_eq!(ask(&inquiries).await, Err(TooMany::InAll(3)));
        assert_eq!(inquiries.count(), (3, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_answers_is_bounded_and_is_not_the_time_of_the_call() {
        let limits = Limits {
            ask_time_max: Duration::from_secs(100),
            ..Limits::default()
        };
        let inquiries = inquiries(&limits);
        let began = Instant::now();
        let own = Arc::clone(&inquiries);
        let run_out = tokio::spawn(async move {
            own.run_out(began + Duration::from_secs(10)).await;
            began.elapsed()
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(ask(&inquiries).await, Ok(InquiryReply::Nothing));
        assert_eq!(began.elapsed().as_secs(), 105, "nobody took it");
        // What is left for the next one is nothing.
        assert_eq!(ask(&inquiries).await, Ok(InquiryReply::Nothing));
        assert_eq!(began.elapsed().as_secs(), 105);
        assert_eq!(run_out.await.unwrap().as_secs(), 110);
    }

    #[tokio::test]
    async fn a_question_that_was_taken_back_is_nobody_s_and_after_the_call_nobody_answers() {
        let inquiries = inquiries(&Limits::default());
        {
            let asking = ask(&inquiries);
            tokio::pin!(asking);
            tokio::select! {
                biased;
                _ = &mut asking => panic!("nobody answered"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(inquiries.take().is_empty());
        inquiries.close();
        assert_eq!(ask(&inquiries).await, Ok(InquiryReply::Nothing));
    }
}
