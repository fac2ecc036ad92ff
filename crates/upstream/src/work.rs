//! Work that takes longer than one request: started once, looked at until it has ended, called off where nobody waits.
//!
//! What was started goes on whatever becomes of the connection. So nothing here says that it did not happen: work whose
//! end was not seen is unknown.

use std::sync::OnceLock;
use std::time::Duration;

use audit::Recorded;
use catalog::{LongRunning, Stage, Step};
use model::{Call, JsonLimits, Limits, Value, parse_foreign};
use policy::Permitted;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::fault::SendFault;
use crate::outgoing::{Outgoing, Trip};
use crate::progress::Progress;
use crate::service::Service;

/// How long calling off may take. The caller is gone, so that only the service is waited for.
const CALL_OFF_TIMEOUT: Duration = Duration::from_secs(5);

/// How a call ended whose work takes longer than one request.
#[derive(Debug)]
pub enum Ending {
    /// The service did not start it; this is what it answered.
    NotStarted(Answer),
    /// It is done; this is the last look.
    Done(Answer),
    /// It failed, in this state; this is the last look.
    Failed(String, Answer),
    /// It was started, and what became of it is not known.
    Unknown {
        /// The last answer, if there was one.
        answer: Option<Answer>,
        /// Why it is not known.
        why: Lost,
    },
}

/// Why it is not known what became of started work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The answer to the start does not name it.
    #[error("the answer to the start does not name the work; see `long_running.id`")]
    Nameless,
    /// Its name cannot be put into a request.
    #[error("the name of the work cannot be sent safely: {0}")]
    Name(String),
    /// The service does not tell of it.
    #[error("the service answered {0} when it was asked about the work")]
    Refused(u16),
    /// An answer does not say where it stands.
    #[error("an answer does not say where the work stands; see `long_running.state`")]
    Unsaid,
    /// The deadline passed.
    #[error("the work had not ended after {0:?}")]
    Late(Duration),
}

/// Work that was started in the course of a trip.
#[derive(Debug)]
pub(crate) struct Started {
    call: Call,
    cancel: Option<Outgoing>,
    is_over: OnceLock<()>,
}

impl Service {
    /// Starts the work of a call that was permitted and recorded, and waits for its end, within the deadline of the trip.
    ///
    /// Each request of it may take as long as `each`, and counts in [`Trip::requests`]. Dropping the future gives the call
    /// up and leaves the work running: [`Service::call_off`] is for that.
    ///
    /// # Errors
    /// [`SendFault`] where the start got no answer. Later faults of the way are not the end of the work: it is looked at
    /// again until the deadline.
    pub async fn carry(
        &self,
        call: Recorded<Permitted<Call>>,
        outgoing: Outgoing,
        work: &LongRunning,
        trip: &Trip,
        progress: &Progress,
        limits: &Limits,
    ) -> Result<Ending, SendFault> {
        let began = Instant::now();
        let each = limits.call_timeout;
        let each = outgoing.timeout.unwrap_or(each);
        let (call, outgoing) = self.own(call, outgoing)?;
        let started = self
            .attempts(&call, &outgoing, trip, trip.deadline.min(began + each))
            .await?;
        if !started.is_success() {
            return Ok(Ending::NotStarted(started));
        }
        let lost = |answer: Option<Answer>, why: Lost| Ok(Ending::Unknown { answer, why });
        let Some(id) = json(&started, limits).and_then(|answer| work.id(&answer)) else {
            return lost(Some(started), Lost::Nameless);
        };
        let about = |step: &Step, repeatable: bool| {
            step.prepare(&id).map(|prepared| Outgoing {
                call: call.id,
                prepared,
                access: step.access().clone(),
                repeatable,
                retry: None,
                timeout: None,
            })
        };
        let look = match about(work.status(), true) {
            Ok(look) => look,
            Err(fault) => return lost(Some(started), Lost::Name(fault.to_string())),
        };
        let cancel = work.cancel().and_then(|step| about(step, false).ok());
        let noted = trip.started(Started {
            call: call.clone(),
            cancel,
            is_over: OnceLock::new(),
        });
        let ending = loop {
            let next = Instant::now() + work.settings().poll;
            if next >= trip.deadline {
                tokio::time::sleep_until(trip.deadline).await;
                return lost(None, Lost::Late(work.settings().deadline));
            }
            tokio::time::sleep_until(next).await;
            let until = trip.deadline.min(Instant::now() + each);
            let answer = match self.attempts(&call, &look, trip, until).await {
                Ok(answer) if is_passing(answer.status) => continue,
                Ok(answer) if !answer.is_success() => {
                    let status = answer.status;
                    break lost(Some(answer), Lost::Refused(status));
                }
                Ok(answer) => answer,
                // The work goes on without the connection.
                Err(fault) => {
                    tracing::debug!(call = %call.id, %fault, "running work could not be looked at");
                    continue;
                }
            };
            match json(&answer, limits).map_or(Stage::Unsaid, |said| work.stage(&said)) {
                Stage::Running { percent } => progress.note(percent),
                Stage::Done => break Ok(Ending::Done(answer)),
                Stage::Failed(state) => break Ok(Ending::Failed(state, answer)),
                Stage::Unsaid => break lost(Some(answer), Lost::Unsaid),
            }
        };
        let _ = noted.is_over.set(());
        ending
    }

    /// Calls off the work that was started in the course of a trip and whose end was not seen, where its tool says how.
    ///
    /// It is asked once and proves nothing: the work may have ended, or go on.
    pub async fn call_off(&self, trip: &Trip) {
        let Some(Started {
            call,
            cancel: Some(cancel),
            is_over,
        }) = trip.work()
        else {
            return;
        };
        // Whoever comes first calls it off, and only once.
        if is_over.set(()).is_err() {
            return;
        }
        let until = Instant::now() + CALL_OFF_TIMEOUT;
        match self.attempts(call, cancel, trip, until).await {
            Ok(answer) => tracing::info!(call = %call.id, status = answer.status, "the work was called off"),
            Err(fault) => tracing::warn!(call = %call.id, %fault, "the work could not be called off"),
        }
    }
}

/// Answers after which a later look can help.
const fn is_passing(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504)
}

fn json(answer: &Answer, limits: &Limits) -> Option<Value> {
    let limits = JsonLimits {
        bytes_max: limits.upstream_body_bytes_max,
        depth_max: limits.json_depth_max,
    };
    answer
        .is_json()
        .then(|| parse_foreign(&answer.body, limits).ok())
        .flatten()
}
