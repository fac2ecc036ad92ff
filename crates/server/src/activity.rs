//! What goes on in a connection: requests that are served, answers that are read. One in which nothing goes on for too
//! long is closed, so that nobody keeps a place by saying nothing.
//!
//! hyper's own timeout for headers begins when it knows which HTTP is spoken, and there is none for an idle connection
//! of HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;

/// The activity of one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    under_way: AtomicUsize,
    /// Requests that began, and answers that ended, so far.
    changes: AtomicU64,
}

/// A request under way: until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Counts>);

impl Activity {
    /// Notes that a request has come.
    pub(crate) fn begin(&self) -> UnderWay {
        self.0.under_way.fetch_add(1, Ordering::AcqRel);
        self.0.changes.fetch_add(1, Ordering::AcqRel);
        UnderWay(Arc::clone(&self.0))
    }

    /// Comes to pass when nothing went on for `time`; at the latest after twice that.
    ///
    /// It looks now and then instead of being woken, because requests are many and idle connections are few.
    pub(crate) async fn idle(&self, time: Duration) {
        let mut before = self.0.changes.load(Ordering::Acquire);
        loop {
            tokio::time::sleep(time).await;
            let changes = self.0.changes.load(Ordering::Acquire);
            if changes == before && self.0.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            before = changes;
        }
    }
}

impl UnderWay {
    /// The same body; the request is under way until it was read to its end or given up.
    pub(crate) fn until_read(self, body: Body) -> Body {
        Body::new(body.map_frame(move |frame| {
            let _held = &self;
            frame
        }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::AcqRel);
        self.0.changes.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    /// After how long a connection is idle in which `work` goes on.
    async fn idle_after(work: impl AsyncFnOnce(&Activity)) -> Duration {
        let activity = Activity::default();
        let began = Instant::now();
        let waiting = tokio::spawn({
            let activity = activity.clone();
            async move { activity.idle(TIME).await }
        });
        work(&activity).await;
        waiting.await.unwrap();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_is_idle_after_the_time() {
        let elapsed = idle_after(async |_| ()).await;
        assert!(elapsed >= TIME && elapsed < TIME * 2, "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_keeps_a_connection_and_its_end_does_for_a_while() {
        for seconds in [1, 9, 25, 95] {
            let work = Duration::from_secs(seconds);
            let elapsed = idle_after(async |activity| {
                let under_way = activity.begin();
                let body = under_way.until_read(Body::from("x"));
                tokio::time::sleep(work).await;
                drop(body);
            })
            .await;
            assert!(
                elapsed >= work + TIME && elapsed <= work + TIME * 2,
                "{seconds}: {elapsed:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_one_after_another_keep_a_connection() {
        let elapsed = idle_after(async |activity| {
            for _ in 0..20 {
                tokio::time::sleep(TIME / 2).await;
                drop(activity.begin());
            }
        })
        .await;
        assert!(elapsed >= TIME * 11, "{elapsed:?}");
    }
}
