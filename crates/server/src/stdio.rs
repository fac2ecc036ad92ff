//! The stdio face: one message a line, both eras on one pipe, one writer.
//!
//! The caller is whoever the operator's configuration says: whoever can start the process has its rights anyway
//! (STDIO-09). Nothing but messages is written to the output; logs go elsewhere (STDIO-02).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gateway::{Claim, Flow, Gateway, Hearing, Inquiries, Mount, Posed, Progress, Running, RunningRequest};
use identity::Principal;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wire::answer::Written;
use wire::stdio::{Line, sort};
use wire::{
    Failure, Id, Inbound, LogFilter, Notice, Profile, Revision, Subscription, Token, answer, inquiry,
};

use crate::answer::{CUT_OFF, CallAsk, Reports, Work, begin, call, with_reports};
use crate::calls::{logging, takes_up};
use crate::listening::{self, Heard};
use crate::questions::with_questions;
use crate::rounds::Round;

/// How many messages wait for a slow reader before the work waits for him.
const WAITING_MESSAGES: usize = 256;

/// Why the conversation ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioFault {
    /// The input cannot be read.
    #[error("cannot read from standard input: {0}")]
    Read(std::io::Error),
    /// The output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Write(std::io::Error),
}

/// Serves one conversation, until the input ends or `shutdown`.
///
/// At the end of the input running calls may end and are answered, within `drain_timeout` (STDIO-04).
///
/// # Errors
/// [`StdioFault`].
pub async fn stdio(
    gateway: Arc<Gateway>,
    (principal, mount): (Arc<Principal>, Mount),
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    shutdown: CancellationToken,
) -> Result<(), StdioFault> {
    let (out, waiting) = mpsc::channel(WAITING_MESSAGES);
    let writer = tokio::spawn(write(output, waiting));
    let tasks = TaskTracker::new();
    let limits = gateway.limits();
    let places = limits
        .calls_per_caller_max
        .saturating_add(WAITING_MESSAGES)
        .min(Semaphore::MAX_PERMITS);
    let pipe = Pipe {
        gateway: Arc::clone(&gateway),
        principal,
        mount,
        out,
        running: Running::default(),
        tasks: tasks.clone(),
        places: Arc::new(Semaphore::new(places)),
        ended: CancellationToken::new(),
        posed: Posed::default(),
        profile: Arc::default(),
        // Before a level is set, a server may say what it likes (LOG-02).
        hearing: Arc::new(Hearing::new(LogFilter::Everything, limits)),
    };
    let late = CancellationToken::new();
    let clock = tokio::spawn(ring(shutdown.clone(), late.clone(), limits.drain_timeout));
    let read = pipe.read(input, &shutdown, &late).await;
    // Whoever only listened is told that nothing more comes.
    pipe.ended.cancel();
    if shutdown.is_cancelled() {
        gateway.drain();
    }
    // Nobody can come back for what waits, nor answer.
    gateway.parks().close();
    tasks.close();
    // What was asked before the end is still answered: the other side may only have closed its half.
    if tokio::time::timeout(limits.drain_timeout, tasks.wait())
        .await
        .is_err()
    {
        pipe.running.cancel_all();
        tokio::select! {
            biased;
            () = tasks.wait() => {}
            () = ring_out(&late, limits.ledger_timeout) => {}
        }
    }
    drop(pipe);
    // Every sender is gone, so the writer ends when it has written what waits.
    let written = tokio::select! {
        biased;
        written = writer => written.unwrap_or_else(|error| Err(std::io::Error::other(error))),
        () = ring_out(&late, limits.ledger_timeout) => Err(std::io::ErrorKind::TimedOut.into()),
    };
    clock.abort();
    written.map_err(StdioFault::Write).and(read)
}

/// Rings `time` after `shutdown`. A client that does not read is waited for until then: without a signal it may take
/// as long as it likes.
async fn ring(shutdown: CancellationToken, late: CancellationToken, time: Duration) {
    shutdown.cancelled().await;
    tokio::time::sleep(time).await;
    late.cancel();
}

/// Comes to pass when it has rung, and calls that were cut off have had their time to be written down.
async fn ring_out(late: &CancellationToken, time: Duration) {
    late.cancelled().await;
    tokio::time::sleep(time).await;
}

/// Writes messages in the order in which they come, each on its line (STDIO-01).
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Bytes>,
) -> Result<(), std::io::Error> {
    let mut buffer = BytesMut::new();
    while let Some(message) = waiting.recv().await {
        buffer.clear();
        push(&mut buffer, &message);
        // Whatever else waits goes out in the same write.
        while buffer.len() < (256 << 10)
            && let Ok(message) = waiting.try_recv()
        {
            push(&mut buffer, &message);
        }
        output.write_all(&buffer).await?;
        output.flush().await?;
    }
    Ok(())
}

fn push(buffer: &mut BytesMut, message: &[u8]) {
    buffer.extend_from_slice(message);
    buffer.extend_from_slice(b"\n");
}

#[derive(Clone)]
struct Pipe {
    gateway: Arc<Gateway>,
    principal: Arc<Principal>,
    mount: Mount,
    out: mpsc::Sender<Bytes>,
    running: Running,
    tasks: TaskTracker,
    /// Bounds the tasks of this pipe: running calls, and answers that wait for a slow reader. When none is left, no
    /// further line is read.
    places: Arc<Semaphore>,
    /// Comes to pass when nothing more is asked.
    ended: CancellationToken,
    /// Our own requests that wait for the client.
    posed: Posed,
    /// What the client can be asked that opened a conversation of the legacy era, once it did.
    profile: Arc<OnceLock<Profile>>,
    /// What the client of the legacy era is told outside of answers.
    hearing: Arc<Hearing>,
}

impl Pipe {
    async fn read(
        &self,
        input: impl AsyncRead + Unpin,
        shutdown: &CancellationToken,
        late: &CancellationToken,
    ) -> Result<(), StdioFault> {
        let limits = self.gateway.limits();
        let mut input = BufReader::with_capacity(64 << 10, input);
        let mut session: Option<Revision> = None;
        loop {
            let line = tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                // Nobody reads any more, so nothing more is carried out.
                () = self.out.closed() => return Ok(()),
                line = next_line(&mut input, limits.body_bytes_max) => line.map_err(StdioFault::Read)?,
            };
            let line = match line {
                Read::End => return Ok(()),
                Read::Line(line) => line,
                Read::TooLong => {
                    let revision = session.unwrap_or(Revision::NEWEST_STATELESS);
                    let text = format!("a message has at most {} bytes", limits.body_bytes_max);
                    // Some revisions have no error without an id, and then this is all that anybody hears of it.
                    tracing::warn!(
                        limit = limits.body_bytes_max,
                        "a line was longer than `body_bytes_max`"
                    );
                    let said = answer::error(revision, None, &Failure::InvalidRequest(text));
                    tokio::select! {
                        biased;
                        () = self.say(said) => {}
                        () = late.cancelled() => return Ok(()),
                    }
                    continue;
                }
            };
            // A lenient reader of lines: an empty one says nothing.
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            tokio::select! {
                biased;
                () = self.take(&line, &mut session) => {}
                // It waits for a client that does not read.
                () = late.cancelled() => return Ok(()),
            }
        }
    }

    /// Serves one line.
    async fn take(&self, line: &[u8], session: &mut Option<Revision>) {
        match sort(line, *session, self.gateway.limits()) {
            Line::Opening { id, opening } => {
                let is_first = session.replace(opening.revision).is_none();
                let _ = self
                    .profile
                    .set(Profile::declared(&opening.capabilities, opening.revision));
                let offers = self.gateway.offers(&self.principal, &self.mount);
                let said = answer::Said::Opened(offers);
                self.say(Some(self.gateway.server().result(opening.revision, &id, &said)))
                    .await;
                // Behind the answer, and only to a client of the legacy era (C1).
                if is_first && offers.changes {
                    let listener = self.gateway.listen(&self.principal, &self.mount);
                    tokio::spawn(listening::of_pipe(
                        Arc::clone(&self.gateway),
                        listener,
                        Arc::clone(&self.hearing),
                        self.out.clone(),
                        self.ended.clone(),
                    ));
                }
            }
            Line::One { revision, inbound } => self.one(revision, inbound).await,
            Line::Batch { revision, messages } => self.batch(revision, messages).await,
        }
    }

    /// Serves one message. What is answered at once is answered in the order of the input; calls answer when they end.
    async fn one(&self, revision: Revision, inbound: Inbound) {
        match self.begin(revision, inbound) {
            Begun::Said(answer) => self.say(answer).await,
            Begun::Listen(id, wants, running) => self.listen(id, wants, running).await,
            Begun::Call(ask, running) => {
                let (pipe, place) = (self.clone(), self.place().await);
                self.tasks.spawn(async move {
                    let _place = place;
                    let answered = pipe.call(revision, ask, running, true).await;
                    pipe.say(answered).await;
                });
            }
        }
    }

    /// Serves a batch in a task of its own; its answers come together (BASE-09).
    async fn batch(&self, revision: Revision, messages: Vec<Inbound>) {
        let (pipe, place) = (self.clone(), self.place().await);
        let begun: Vec<Begun> = messages
            .into_iter()
            .map(|message| self.begin(revision, message))
            .collect();
        self.tasks.spawn(async move {
            let _place = place;
            let work = begun.into_iter().map(async |begun| match begun {
                Begun::Said(answer) => answer,
                Begun::Call(ask, running) => pipe.call(revision, ask, running, false).await,
                // Batches are of one revision, in which there are none.
                Begun::Listen(..) => None,
            });
            let answers: Vec<Bytes> = futures_util::future::join_all(work)
                .await
                .into_iter()
                .flatten()
                .collect();
            if !answers.is_empty() {
                pipe.say(Some(answer::batch(&answers))).await;
            }
        });
    }

    /// Takes a message in. Whatever a later line may refer to is known when this returns: a call can be cancelled, and
    /// its id is in use, before the task that carries it out has run.
    fn begin(&self, revision: Revision, inbound: Inbound) -> Begun {
        match inbound {
            Inbound::Request(request) => {
                match begin(&self.gateway, &self.principal, &self.mount, revision, *request) {
                    Work::Answered { body, .. } => Begun::Said(body),
                    Work::Call(ask) => match self.running.start(&ask.id) {
                        Some(running) => Begun::Call(ask, running),
                        None => Begun::Said(still_running(revision, &ask.id)),
                    },
                    Work::Note(id, note) => {
                        Begun::Said(Some(note.take(&self.gateway, &self.hearing, revision, &id)))
                    }
                    Work::Listen(id, wants) => match self.running.start(&id) {
                        Some(running) => Begun::Listen(id, wants, running),
                        None => Begun::Said(still_running(revision, &id)),
                    },
                }
            }
            Inbound::Notice(notice) => {
                self.noted(&notice);
                Begun::Said(None)
            }
            Inbound::Response(response) => {
                self.posed.answer(*response);
                Begun::Said(None)
            }
            Inbound::Refused { id, failure } => {
                let serves = |method: &str| self.gateway.serves_method(&self.mount, method);
                Begun::Said(answer::error(
                    revision,
                    id.as_ref(),
                    &failure.where_served(serves),
                ))
            }
        }
    }

    /// Serves a subscription beside everything else.
    async fn listen(&self, id: Id, wanted: Subscription, running: RunningRequest) {
        let opened = listening::subscribe(&self.gateway, &self.principal, &self.mount, (&id, wanted));
        let opened = match opened {
            Ok(opened) => opened,
            Err(answer) => return self.say(answer).await,
        };
        let heard = Heard {
            out: self.out.clone(),
            as_events: false,
            cancel: running.cancel().clone(),
            closing: self.ended.clone(),
        };
        tokio::spawn(async move {
            listening::subscription(id, opened, heard).await;
            drop(running);
        });
    }

    /// Carries a call out. `alone`: it is no part of a batch, whose answers come as one message, with no place for
    /// requests of ours before it.
    async fn call(
        &self,
        revision: Revision,
        ask: Box<CallAsk>,
        running: RunningRequest,
        alone: bool,
    ) -> Option<Bytes> {
        let is_legacy = inquiry::is_asked_by_request(revision);
        let profile = match (is_legacy, alone) {
            (true, true) => self.profile.get().copied().unwrap_or_default(),
            (false, true) => ask.declared,
            (_, false) => Profile::NONE,
        };
        let inquiries = self.gateway.inquiries(&self.mount, profile);
        let (id, token) = (ask.id.clone(), ask.progress.clone());
        let answered = if is_legacy || ask.retry.is_none() && inquiries.profile().is_empty() {
            let mut flow = self.flow(ask.traceparent, running.cancel().clone(), inquiries);
            if is_legacy {
                flow.hearing = Some(Arc::clone(&self.hearing));
            }
            flow.progress = match (is_legacy, alone) {
                (true, true) => Arc::new(Progress::with(Arc::clone(self.hearing.wish()))),
                (true, false) => Arc::default(),
                (false, _) => logging(ask.logs),
            };
            let reports = Reports::Channel(&self.out, false);
            let work = call(&self.gateway, &self.principal, revision, &id, ask.asked, &flow);
            let work = with_questions(work, &flow.inquiries, revision, &self.posed, reports);
            self.reporting(work, &flow.progress, revision, token.as_ref())
                .await
        } else {
            self.round(revision, ask, &running, inquiries).await
        };
        match answered {
            // Its client did not cancel it and would wait for ever.
            None if running.is_cut_off() => answer::error(revision, Some(&id), &CUT_OFF),
            answered => answered.map(|written| written.body),
        }
    }

    /// One request of a call of the stateless era that may ask its client something, or that goes on after it did.
    async fn round(
        &self,
        revision: Revision,
        ask: Box<CallAsk>,
        running: &RunningRequest,
        inquiries: Arc<Inquiries>,
    ) -> Option<Written> {
        let round = Round {
            gateway: &self.gateway,
            tasks: &self.tasks,
            claim: Claim::of(&self.principal, &self.mount, &ask.asked.wanted),
            revision,
            id: ask.id.clone(),
        };
        let begun = match &ask.retry {
            Some(retry) => match round.resume(retry) {
                Ok(begun) => {
                    takes_up(&begun.0.progress, ask.logs);
                    begun
                }
                Err(failure) => return Written::error(revision, Some(&ask.id), &failure),
            },
            None => {
                let cancel = CancellationToken::new();
                let mut flow = self.flow(ask.traceparent, cancel.clone(), inquiries);
                flow.progress = logging(ask.logs);
                round.begin(Arc::clone(&self.principal), ask.asked, flow, &cancel)
            }
        };
        let progress = Arc::clone(&begun.0.progress);
        let work = self.reporting(round.answer(begun), &progress, revision, ask.progress.as_ref());
        tokio::select! {
            biased;
            answered = work => answered,
            // Dropping the work cancels the call, which is written down.
            () = running.cancel().cancelled() => None,
        }
    }

    fn flow(
        &self,
        traceparent: Option<String>,
        cancel: CancellationToken,
        inquiries: Arc<Inquiries>,
    ) -> Flow {
        Flow {
            transport: "stdio",
            received: Instant::now(),
            traceparent,
            cancel,
            progress: Arc::default(),
            session: None,
            inquiries,
            hearing: None,
        }
    }

    async fn reporting<T>(
        &self,
        work: impl Future<Output = T>,
        progress: &Progress,
        revision: Revision,
        token: Option<&Token>,
    ) -> T {
        let interval = self.gateway.limits().progress_interval;
        let reports = Reports::Channel(&self.out, false);
        with_reports(work, progress, revision, token, interval, reports).await
    }

    /// A place for a task; `None` only if the pipe is gone.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    fn noted(&self, notice: &Notice) {
        match notice {
            Notice::Cancelled(cancel) => self.running.cancel(&cancel.id),
            Notice::Initialized | Notice::Other => {}
        }
    }

    /// Hands a message to the writer. If it is gone, so is the client.
    async fn say(&self, message: Option<Bytes>) {
        if let Some(message) = message {
            let _ = self.out.send(message).await;
        }
    }
}

/// A message that was taken in.
enum Begun {
    /// There is nothing more to do than to say this.
    Said(Option<Bytes>),
    /// A call, whose id is in use until it has ended.
    Call(Box<CallAsk>, RunningRequest),
    /// A subscription.
    Listen(Id, Subscription, RunningRequest),
}

/// The answer to a request whose id is in use.
fn still_running(revision: Revision, id: &Id) -> Option<Bytes> {
    let failure = Failure::InvalidRequest("a request with this id is still running".to_owned());
    answer::error(revision, Some(id), &failure)
}

enum Read {
    Line(BytesMut),
    TooLong,
    End,
}

/// The next line without its end. One that is too long is read over to its end and never held.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), max: usize) -> Result<Read, std::io::Error> {
    let mut line = BytesMut::new();
    let mut too_long = false;
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(if too_long {
                Read::TooLong
            } else if line.is_empty() {
                Read::End
            } else {
                Read::Line(line)
            });
        }
        let (part, ends) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(at) => (chunk.get(..at).unwrap_or_default(), true),
            None => (chunk, false),
        };
        if too_long || line.len() + part.len() > max {
            too_long = true;
            line = BytesMut::new();
        } else {
            line.extend_from_slice(part);
        }
        let read = part.len() + usize::from(ends);
        input.consume(read);
        if ends {
            return Ok(if too_long { Read::TooLong } else { Read::Line(line) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], max: usize) -> Vec<String> {
        // A tiny buffer, so that lines come in pieces.
        let mut input = BufReader::with_capacity(3, text);
        let mut found = Vec::new();
        loop {
            match next_line(&mut input, max).await.unwrap() {
                Read::End => return found,
                Read::TooLong => found.push("too long".to_owned()),
                Read::Line(line) => found.push(String::from_utf8(line.to_vec()).unwrap()),
            }
        }
    }

    #[tokio::test]
    async fn stdio_01_a_line_is_read_at_the_limit_and_not_one_byte_past_it() {
        assert_eq!(
            lines(b"12345\n123456\n1\n\n12", 5).await,
            ["12345", "too long", "1", "", "12"]
        );
        assert_eq!(lines(b"123456", 5).await, ["too long"]);
        assert_eq!(lines(b"", 5).await, [""; 0]);
    }
}
