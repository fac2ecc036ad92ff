//! Calls of the stateless era that wait until their client has answered questions (C5).
//!
//! The client holds a name of 32 random bytes and nothing else: whom the call belongs to, what it was, which questions are
//! open and until when is kept here, so that there is nothing in the name that could be altered (ADR 0011). A name is used
//! once, by the same caller on the same endpoint with the same request; whatever else comes changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use identity::Principal;
use model::{CallerKey, Digest, Limits, Object};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use upstream::{Inquiries, Progress, Question};
use wire::answer::Written;
use wire::{Failure, Id, InquiryReply, Retry, Revision};

use crate::mount::Mount;
use crate::wanted::Wanted;

/// Writes the end of a call for whoever asks last, in his revision and with the id of his request; `None`: nobody gets one.
pub type Ending = Box<dyn FnOnce(Revision, &Id) -> Option<Written> + Send>;

/// What a retry has to repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    caller: CallerKey,
    mount: Mount,
    /// Of method, name and arguments.
    request: Digest,
}

/// A call that is running and may ask something. Dropping it cancels the call.
pub struct Ongoing {
    /// Its end.
    pub ended: oneshot::Receiver<Ending>,
    /// What it asks.
    pub inquiries: Arc<Inquiries>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// Cancels it.
    pub cancel: DropGuard,
    /// The questions so far, for keys that are new in this call.
    pub asked: usize,
}

/// Questions of one call, by the keys under which its client sees them.
pub type Questions = BTreeMap<String, Question>;

/// The calls that wait.
#[derive(Debug)]
pub struct Parks {
    inner: Mutex<Inner>,
    all_max: usize,
    each_max: usize,
}

#[derive(Debug, Default)]
struct Inner {
    parked: HashMap<String, Parked>,
    is_closed: bool,
}

#[derive(Debug)]
struct Parked {
    claim: Claim,
    ongoing: Ongoing,
    questions: Questions,
    /// Comes to pass when it is parked no more.
    gone: DropGuard,
}

/// A call that was parked.
#[derive(Debug)]
pub struct Place {
    /// The name for its client.
    pub state: String,
    /// What its client is asked.
    pub requests: Object,
    /// Until when it waits.
    pub until: Instant,
    /// Comes to pass when it is parked no more.
    pub gone: CancellationToken,
}

impl Claim {
    /// What this request is, of this caller on this endpoint.
    #[must_use]
    pub fn of(principal: &Principal, mount: &Mount, wanted: &Wanted) -> Self {
        let arguments = match wanted {
            Wanted::Tool { arguments, .. } | Wanted::Prompt { arguments, .. } => arguments.canonical(),
            Wanted::Resource { .. } | Wanted::Follow { .. } | Wanted::Completion(_) => Vec::new(),
        };
        let parts = [wanted.method().as_bytes(), wanted.named().as_bytes(), &arguments];
        Self {
            caller: principal.key(),
            mount: mount.clone(),
            request: Digest::of("tollhouse/park/v1", &parts),
        }
    }
}

impl Parks {
    /// None waits yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            inner: Mutex::default(),
            all_max: limits.parks_max,
            each_max: limits.parks_per_caller_max,
        }
    }

    /// Parks a call until its questions are answered.
    ///
    /// # Errors
    /// The call back, where no more may wait; its questions are dropped, so that nobody answers them.
    pub fn park(&self, claim: Claim, ongoing: Ongoing, questions: Questions) -> Result<Place, Box<Ongoing>> {
        let mut bytes = [0; 32];
        if getrandom::fill(&mut bytes).is_err() {
            return Err(Box::new(ongoing));
        }
        // The number in front is the version of the form.
        let state = format!("1.{}", URL_SAFE_NO_PAD.encode(bytes));
        let gone = CancellationToken::new();
        let mut inner = self.lock();
        let of_caller = |inner: &Inner| {
            let parked = inner.parked.values();
            parked
                .filter(|parked| parked.claim.caller == claim.caller)
                .count()
        };
        if inner.is_closed || inner.parked.len() >= self.all_max || of_caller(&inner) >= self.each_max {
            tracing::warn!("no more calls may wait for answers, so that nobody answers this one");
            return Err(Box::new(ongoing));
        }
        let requests = questions
            .iter()
            .map(|(key, question)| (key.clone(), question.inquiry().entry()))
            .collect();
        let until = ongoing.inquiries.until();
        let parked = Parked {
            claim,
            ongoing,
            questions,
            gone: gone.clone().drop_guard(),
        };
        inner.parked.insert(state.clone(), parked);
        drop(inner);
        Ok(Place {
            state,
            requests,
            until,
            gone,
        })
    }

    /// Takes a call up again, with the questions that are still open. Answers to what was not asked are ignored (MRTR-07).
    ///
    /// # Errors
    /// [`Failure::InvalidParams`], the same for a name that was never given out, was used, is too old, or belongs to another
    /// caller, endpoint or request; or what is wrong with an answer. The call goes on waiting then.
    pub fn take(&self, claim: &Claim, retry: &Retry) -> Result<(Ongoing, Questions), Failure> {
        let unknown = || {
            let text = "`requestState` is not one that was given out here for this request, or it was used, or is too old";
            Failure::InvalidParams(text.to_owned())
        };
        let mut inner = self.lock();
        let parked = inner.parked.get(&retry.state).ok_or_else(unknown)?;
        if parked.claim != *claim {
            return Err(unknown());
        }
        let mut answers = BTreeMap::new();
        for (key, question) in &parked.questions {
            if let Some(response) = retry.responses.get(key) {
                let result = question.inquiry().read_result(response);
                let result = result
                    .map_err(|why| Failure::InvalidParams(format!("`inputResponses`, `{key}`: {why}")))?;
                answers.insert(key.clone(), result);
            }
        }
        let Some(parked) = inner.parked.remove(&retry.state) else {
            return Err(unknown());
        };
        drop(inner);
        let Parked {
            ongoing,
            mut questions,
            gone,
            ..
        } = parked;
        drop(gone);
        for (key, result) in answers {
            if let Some(question) = questions.remove(&key) {
                question.answer(InquiryReply::Result(result));
            }
        }
        Ok((ongoing, questions))
    }

    /// Gives up a call that nobody took up in time. One that was taken up is no matter.
    pub fn forget(&self, state: &str) {
        let parked = self.lock().parked.remove(state);
        if parked.is_some() {
            tracing::info!("a call was given up, because its client did not answer in time");
        }
    }

    /// Gives up all that wait, and parks no more.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let parked = std::mem::take(&mut inner.parked);
        drop(inner);
        if !parked.is_empty() {
            let calls = parked.len();
            tracing::info!(
                calls,
                "calls that waited for answers of their clients were given up"
            );
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().parked.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ongoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ongoing")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}
