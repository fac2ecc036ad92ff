//! What a server asks in a call of the stateless era: the request ends with the questions, the call is parked, and the next
//! request of its client takes it up (MRTR-02, MRTR-04, C5).

use std::sync::Arc;
use std::time::Duration;

use gateway::{Claim, Flow, Gateway, Ongoing, Questions};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::answer::Written;
use wire::{Failure, Id, Retry, Revision};

use crate::answer::{CUT_OFF, Caller, NamedAs, answered};

/// How long further questions are waited for, so that those which come together are one round.
const WINDOW: Duration = Duration::from_millis(20);

/// One request of a client that can be asked something, or that takes up a call which asked.
pub(crate) struct Round<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    /// Where the tasks of parked calls run.
    pub(crate) tasks: &'a TaskTracker,
    pub(crate) claim: Claim,
    pub(crate) revision: Revision,
    pub(crate) id: Id,
}

/// The call that a request begins or takes up, and what is still open of its last round.
pub(crate) type Begun = (Ongoing, Questions);

impl Round<'_> {
    /// Takes up the call that a retry names.
    ///
    /// # Errors
    /// The error of the protocol that it gets (MRTR-06).
    pub(crate) fn resume(&self, retry: &Retry) -> Result<Begun, Failure> {
        self.gateway.parks().take(&self.claim, retry)
    }

    /// Begins a call in a task of its own, which outlives this request. `cancel` is the one of the flow.
    pub(crate) fn begin(
        &self,
        principal: Caller,
        asked: gateway::Asked,
        flow: Flow,
        cancel: &CancellationToken,
    ) -> Begun {
        let (ending, ended) = oneshot::channel();
        let ongoing = Ongoing {
            ended,
            inquiries: Arc::clone(&flow.inquiries),
            progress: Arc::clone(&flow.progress),
            cancel: cancel.clone().drop_guard(),
            asked: 0,
        };
        let gateway = Arc::clone(self.gateway);
        self.tasks.spawn(async move {
            let named = NamedAs::of(&asked.wanted);
            let result = Box::pin(gateway.call(&principal, asked, &flow)).await;
            let written: gateway::Ending =
                Box::new(move |revision: Revision, id: &Id| answered(&gateway, revision, id, &named, result));
            // Whoever is gone has cancelled it.
            let _ = ending.send(written);
        });
        (ongoing, Questions::new())
    }

    /// Waits until the call ends or asks something, and gives the answer to this request; `None`: the call was cancelled.
    ///
    /// Dropping the future cancels the call.
    pub(crate) async fn answer(self, (mut ongoing, mut questions): Begun) -> Option<Written> {
        loop {
            if questions.is_empty() {
                tokio::select! {
                    biased;
                    ending = &mut ongoing.ended => return self.write(ending),
                    () = ongoing.inquiries.changed() => {}
                }
                tokio::select! {
                    biased;
                    ending = &mut ongoing.ended => return self.write(ending),
                    () = tokio::time::sleep(WINDOW) => {}
                }
            }
            for question in ongoing.inquiries.take() {
                // By the server's own key, as if nobody stood between, unless another question has it.
                let own = question.key().filter(|key| !questions.contains_key(*key));
                let key = own.map(str::to_owned).unwrap_or_else(|| {
                    loop {
                        ongoing.asked += 1;
                        let key = format!("ask-{}", ongoing.asked);
                        if !questions.contains_key(&key) {
                            break key;
                        }
                    }
                });
                questions.insert(key, question);
            }
            if questions.is_empty() {
                continue;
            }
            let waiting = std::mem::take(&mut questions);
            match self.gateway.parks().park(self.claim.clone(), ongoing, waiting) {
                Err(back) => ongoing = *back,
                Ok(place) => {
                    let gateway = Arc::clone(self.gateway);
                    let state = place.state.clone();
                    self.tasks.spawn(async move {
                        tokio::select! {
                            () = place.gone.cancelled() => {}
                            () = tokio::time::sleep_until(place.until) => gateway.parks().forget(&state),
                        }
                    });
                    let server = self.gateway.server();
                    let asks = server.input_required(self.revision, &self.id, &place.requests, &place.state);
                    return Some(Written::result(asks));
                }
            }
        }
    }

    fn write(&self, ending: Result<gateway::Ending, oneshot::error::RecvError>) -> Option<Written> {
        match ending {
            Ok(ending) => ending(self.revision, &self.id),
            Err(_) => Written::error(self.revision, Some(&self.id), &CUT_OFF),
        }
    }
}
