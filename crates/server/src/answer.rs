//! The answer to one request, in bytes of the reader's revision; with progress on the way, if it asked for it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{
    Asked, Delivery, Flow, Gateway, Hearing, Mount, Progress, Released, Session, StreamId, Told, Wanted,
};
use identity::Principal;
use model::{Refusal, RefusalCode, Reply};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use wire::answer::{self, Said, Step, Written};
use wire::{
    Ask, Failure, Id, LogFilter, LogLevel, Profile, Reference, Request, Retry, Revision, Subscription,
    Surface, Token, sse,
};

/// What somebody is told who still waits for a call that was cancelled: it was the gate, at the end of `drain_timeout`. In
/// the stateless era a client cancels by going away; on a pipe, what a client cancelled is known.
pub(crate) const CUT_OFF: Failure =
    Failure::Internal("the gateway closed before the call ended; whether it acted is unknown");

/// A call of a tool, taken out of its request.
pub(crate) struct CallAsk {
    pub(crate) id: Id,
    pub(crate) progress: Option<Token>,
    pub(crate) traceparent: Option<String>,
    pub(crate) asked: Asked,
    /// What the client can be asked, where the request says it itself.
    pub(crate) declared: Profile,
    /// What it takes up.
    pub(crate) retry: Option<Box<Retry>>,
    /// What its client wants to have logged to it, where the request says it itself (LOG-03).
    pub(crate) logs: LogFilter,
}

/// A request: answered at once, or a call that takes its time.
pub(crate) enum Work {
    Answered {
        status: u16,
        body: Option<Bytes>,
    },
    Call(Box<CallAsk>),
    /// A subscription, until somebody ends it.
    Listen(Id, Subscription),
    /// Something for the conversation that it came in.
    Note(Id, Note),
}

/// What a client of the legacy era says about its conversation.
pub(crate) enum Note {
    /// From this level on it wants to have logged to it.
    Level(LogLevel),
    /// It follows this resource no more.
    Unfollow(String),
}

impl Note {
    /// Takes it to heart, and says so.
    pub(crate) fn take(self, gateway: &Gateway, hearing: &Hearing, revision: Revision, id: &Id) -> Bytes {
        match self {
            Self::Level(level) => hearing.wish().set(LogFilter::From(level)),
            Self::Unfollow(uri) => gateway.unfollow(&uri, hearing),
        }
        gateway.server().result(revision, id, &Said::Heard)
    }
}

/// Answers what needs no waiting; a call is handed back.
pub(crate) fn begin(
    gateway: &Gateway,
    principal: &Principal,
    mount: &Mount,
    revision: Revision,
    request: Request,
) -> Work {
    let Request { id, ask, context } = request;
    if !gateway.serves(mount, &ask) {
        let failure = Failure::MethodNotFound(ask.method().to_owned());
        return Work::Answered {
            status: failure.status(revision),
            body: answer::error(revision, Some(&id), &failure),
        };
    }
    let work = |wanted: Wanted| {
        let wire::Context {
            progress,
            traceparent,
            capabilities,
            retry,
            log_level,
            ..
        } = context;
        // MRTR-01: whoever wants a completion is asked nothing.
        let declared = match &wanted {
            Wanted::Completion(_) | Wanted::Follow { .. } => Profile::NONE,
            Wanted::Tool { .. } | Wanted::Prompt { .. } | Wanted::Resource { .. } => {
                Profile::declared(&capabilities, revision)
            }
        };
        Work::Call(Box::new(CallAsk {
            id: id.clone(),
            progress,
            traceparent,
            asked: Asked {
                wanted,
                mount: mount.clone(),
            },
            declared,
            retry,
            logs: log_level.map_or(LogFilter::Nothing, LogFilter::From),
        }))
    };
    let said = match ask {
        Ask::CallTool { name, arguments } => return work(Wanted::Tool { name, arguments }),
        Ask::GetPrompt { name, arguments } => return work(Wanted::Prompt { name, arguments }),
        Ask::ReadResource { uri } => return work(Wanted::Resource { uri }),
        Ask::Complete(completion) => return work(Wanted::Completion(completion)),
        Ask::Subscribe { uri } => return work(Wanted::Follow { uri }),
        Ask::Unsubscribe { uri } => return Work::Note(id, Note::Unfollow(uri)),
        Ask::SetLevel(level) => return Work::Note(id, Note::Level(level)),
        Ask::Listen(subscription) => return Work::Listen(id, subscription),
        Ask::Ping => Ok(Said::Heard),
        Ask::Discover => Ok(Said::Discovered(gateway.offers(principal, mount))),
        Ask::List {
            surface: Surface::Tools,
            cursor,
        } => gateway.list(principal, mount, cursor.as_deref()).map(Said::Tools),
        Ask::List { surface, cursor } => gateway
            .items(principal, mount, surface, cursor.as_deref())
            .map(Said::Items),
        // Only the opening of a conversation, and that was sorted out before.
        Ask::Open(_) => Err(Failure::InvalidRequest(
            "this conversation is already open".to_owned(),
        )),
    };
    match said {
        Ok(said) => Work::Answered {
            status: 200,
            body: Some(gateway.server().result(revision, &id, &said)),
        },
        Err(failure) => Work::Answered {
            status: failure.status(revision),
            body: answer::error(revision, Some(&id), &failure),
        },
    }
}

/// Carries a call out and gives its answer; `None` if it was cancelled, because then nobody waits for one (CAN-01).
pub(crate) async fn call(
    gateway: &Gateway,
    principal: &Principal,
    revision: Revision,
    id: &Id,
    asked: Asked,
    flow: &Flow,
) -> Option<Written> {
    let named = NamedAs::of(&asked.wanted);
    // On the heap: the walk is ten kilobytes long, and each task that holds it in itself copies it ten times on its way
    // into the runtime and out again.
    let result = Box::pin(gateway.call(principal, asked, flow)).await;
    answered(gateway, revision, id, &named, result)
}

/// The answer to a call that has ended; `None` if it was cancelled.
pub(crate) fn answered(
    gateway: &Gateway,
    revision: Revision,
    id: &Id,
    named: &NamedAs,
    result: Result<Released, Refusal>,
) -> Option<Written> {
    match result {
        Ok(released) => {
            let said = match released.into_delivery() {
                Delivery::Reply(reply) => Said::Called(reply),
                Delivery::Prompt(object) => Said::Prompt(object),
                Delivery::Contents(object) => Said::Contents(object),
                Delivery::Completion(object) => Said::Completed(object),
                Delivery::Followed => Said::Heard,
            };
            Some(Written::result(gateway.server().result(revision, id, &said)))
        }
        Err(refusal) => refused(gateway, revision, id, named, &refusal),
    }
}

/// What was asked for, as far as a refusal has to know it.
pub(crate) enum NamedAs {
    Tool(String),
    Prompt(String),
    Resource(String),
}

/// A refusal, as its reader can act on it: an unknown tool is an error of the protocol, all else a failed result that
/// the model reads (TOOL-08).
fn refused(
    gateway: &Gateway,
    revision: Revision,
    id: &Id,
    named: &NamedAs,
    refusal: &Refusal,
) -> Option<Written> {
    let failure = match (refusal.code(), named) {
        (RefusalCode::Cancelled, _) => return None,
        (RefusalCode::UnknownTool | RefusalCode::Held, named) => named.unknown(),
        (RefusalCode::NoResource, NamedAs::Resource(uri)) => Failure::NoResource(uri.clone()),
        // BASE-18. In the other era capabilities are said once, and the code is not known (C9).
        (RefusalCode::CapabilityMissing, _) if !revision.has_sessions() => {
            Failure::MissingCapability(refusal.needed().cloned().unwrap_or_default())
        }
        (_, NamedAs::Tool(_)) => {
            let said = Said::Called(Reply::failure(refusal.for_agent()));
            return Some(Written::result(gateway.server().result(revision, id, &said)));
        }
        (RefusalCode::ArgumentsInvalid | RefusalCode::RequestUnsafe, _) => {
            Failure::InvalidParams(refusal.for_agent())
        }
        (code @ (RefusalCode::UpstreamError | RefusalCode::UpstreamParams), _) => Failure::Upstream {
            is_params: code == RefusalCode::UpstreamParams,
            text: refusal.detail().unwrap_or(code.for_agent()).to_owned(),
        },
        (_, _) => Failure::Refused(refusal.for_agent()),
    };
    Written::error(revision, Some(id), &failure)
}

impl NamedAs {
    pub(crate) fn of(wanted: &Wanted) -> Self {
        let name = wanted.named().to_owned();
        match wanted {
            Wanted::Tool { .. } => Self::Tool(name),
            Wanted::Prompt { .. } => Self::Prompt(name),
            Wanted::Resource { .. } | Wanted::Follow { .. } => Self::Resource(name),
            Wanted::Completion(completion) => match completion.of {
                Reference::Prompt(_) => Self::Prompt(name),
                Reference::Template(_) => Self::Resource(name),
            },
        }
    }

    /// The error for what is not there; it reads the same for what is not for this caller.
    fn unknown(&self) -> Failure {
        let short = |name: &String| name.chars().take(64).collect::<String>();
        match self {
            Self::Tool(name) => Failure::UnknownTool(short(name)),
            Self::Prompt(name) => Failure::UnknownPrompt(short(name)),
            // A client holds the URI of the error against the one that it asked for.
            Self::Resource(uri) => Failure::NoResource(uri.clone()),
        }
    }
}

/// Where the progress of a call goes.
#[derive(Clone, Copy)]
pub(crate) enum Reports<'a> {
    /// To a channel of messages; `true`: as events.
    Channel(&'a mpsc::Sender<Bytes>, bool),
    /// To a stream of a session.
    Stream(&'a Session, StreamId),
}

impl Reports<'_> {
    /// Hands a report over. A reader that is slow misses it and sees a later one: the call does not wait for him, else
    /// its deadline would not hold.
    pub(crate) fn report(&self, message: Bytes) {
        match self {
            Self::Channel(channel, true) => drop(channel.try_send(sse::event(None, &message))),
            Self::Channel(channel, false) => drop(channel.try_send(message)),
            Self::Stream(session, stream) => session.push(*stream, &message),
        }
    }
}

impl Reports<'_> {
    /// Hands over what must not be missed; waits for a reader that is slow.
    pub(crate) async fn deliver(&self, message: Bytes) {
        match self {
            Self::Channel(channel, true) => drop(channel.send(sse::event(None, &message)).await),
            Self::Channel(channel, false) => drop(channel.send(message).await),
            Self::Stream(session, stream) => session.push(*stream, &message),
        }
    }
}

/// Waits for `work` and reports meanwhile what its server logs, as far as it is wanted, and where there is a token progress:
/// a count that rises with each report (PROG-02).
pub(crate) async fn with_reports<T>(
    work: impl Future<Output = T>,
    progress: &Progress,
    revision: Revision,
    token: Option<&Token>,
    interval: Duration,
    reports: Reports<'_>,
) -> T {
    if token.is_none() && progress.relay().logs().get() == LogFilter::Nothing {
        return work.await;
    }
    let began = Instant::now();
    let mut ticks = tokio::time::interval_at(began + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    let mut count: f64 = 0.0;
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                // What was told before the answer is told before the answer.
                relay(progress, revision, token, &reports);
                return done;
            }
            () = progress.relay().changed() => relay(progress, revision, token, &reports),
            _ = ticks.tick() => {
                let Some(token) = token.filter(|_| !progress.is_relayed()) else {
                    continue;
                };
                count += 1.0;
                let seconds = began.elapsed().as_secs();
                // The count rises with each report, whatever the service says of its own.
                let text = progress.percent().map_or_else(
                    || format!("still running after {seconds} s"),
                    |percent| format!("{percent} % done after {seconds} s"),
                );
                let step = Step {
                    done: count,
                    total: None,
                    text: Some(&text),
                };
                reports.report(answer::progress(revision, token, step));
            }
        }
    }
}

/// Reports what an MCP server told, in its numbers and in order, with the caller's own token.
fn relay(progress: &Progress, revision: Revision, token: Option<&Token>, reports: &Reports<'_>) {
    for told in progress.relay().take() {
        match (told, token) {
            (Told::Progress(told), Some(token)) => {
                let step = Step {
                    done: told.done,
                    total: told.total,
                    text: told.message.as_deref(),
                };
                reports.report(answer::progress(revision, token, step));
            }
            (Told::Log(message), _) => reports.report(message.notification()),
            // Nobody asked how far it is; and changes of resources belong to no call.
            (Told::Progress(_), None) | (Told::Updated(_), _) => {}
        }
    }
}

/// A principal that several tasks look at.
pub(crate) type Caller = Arc<Principal>;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn prog_02_progress_rises_and_stops_with_the_work() {
        let token = Token::of(&json!("t")).unwrap();
        let (channel, mut seen) = mpsc::channel(8);
        let work = tokio::time::sleep(Duration::from_millis(350));
        let reports = Reports::Channel(&channel, false);
        with_reports(
            work,
            &Progress::default(),
            Revision::NEWEST_STATELESS,
            Some(&token),
            Duration::from_millis(100),
            reports,
        )
        .await;
        drop(channel);
        let mut counts = Vec::new();
        while let Some(bytes) = seen.recv().await {
            let message: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(message["params"]["progressToken"], "t");
            counts.push(message["params"]["progress"].as_u64().unwrap());
        }
        assert_eq!(counts, [1, 2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_who_does_not_read_does_not_keep_the_work_from_ending() {
        let token = Token::of(&json!(1)).unwrap();
        let (channel, mut seen) = mpsc::channel(2);
        let began = Instant::now();
        with_reports(
            tokio::time::sleep(Duration::from_secs(10)),
            &Progress::default(),
            Revision::NEWEST_STATELESS,
            Some(&token),
            Duration::from_millis(100),
            Reports::Channel(&channel, false),
        )
        .await;
        assert_eq!(began.elapsed(), Duration::from_secs(10));
        drop(channel);
        let mut reports = 0;
        while seen.recv().await.is_some() {
            reports += 1;
        }
        assert_eq!(reports, 2, "what there was room for");
    }
}
