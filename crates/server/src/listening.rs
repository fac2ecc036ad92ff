//! What clients hear without asking each time: changes of lists and of resources, and what servers log on their own account; in a
//! session or by a subscription.
//!
//! One task for each; it ends with the session, the subscription, the pipe or the gate.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use gateway::{Asked, Flow, Gateway, Hearing, Inquiries, Listener, Mount, Session, Told, Wanted};
use identity::Principal;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::subscription::{acknowledged, ended, list_changed, torn_down, updated};
use wire::{Failure, Id, LogFilter, Revision, Subscription, Surface, Wants, answer, sse};

/// Tells a session what there is to be told until it ends.
pub(crate) fn of_session(
    gateway: &Arc<Gateway>,
    principal: &Arc<Principal>,
    mount: &Mount,
    session: &Arc<Session>,
) {
    let mut listener = gateway.listen(principal, mount);
    let (gateway, hearing) = (Arc::clone(gateway), Arc::clone(session.hearing()));
    let (session, ended) = (Arc::downgrade(session), session.ended().clone());
    tokio::spawn(async move {
        loop {
            let news = tokio::select! {
                biased;
                () = ended.cancelled() => break,
                changed = listener.next() => lists(&changed, None),
                () = hearing.relay().changed() => Some(heard(&hearing, None)),
            };
            let (Some(session), Some(news)) = (session.upgrade(), news) else {
                break;
            };
            for message in news {
                session.tell(&message);
            }
        }
        gateway.unfollow_all(&hearing);
    });
}

/// Tells a pipe what there is to be told until it ends.
pub(crate) async fn of_pipe(
    gateway: Arc<Gateway>,
    mut listener: Listener,
    hearing: Arc<Hearing>,
    out: mpsc::Sender<Bytes>,
    end: CancellationToken,
) {
    'told: loop {
        let news = tokio::select! {
            biased;
            () = end.cancelled() => break,
            changed = listener.next() => lists(&changed, None),
            () = hearing.relay().changed() => Some(heard(&hearing, None)),
        };
        for message in news.into_iter().flatten() {
            if out.send(message).await.is_err() {
                break 'told;
            }
        }
    }
    gateway.unfollow_all(&hearing);
}

/// That lists have changed. `None`: the gate is gone.
fn lists(changed: &BTreeSet<Surface>, subscription: Option<&Id>) -> Option<Vec<Bytes>> {
    let messages = changed.iter().map(|surface| list_changed(*surface, subscription));
    (!changed.is_empty()).then(|| messages.collect())
}

/// What servers told.
fn heard(hearing: &Hearing, subscription: Option<&Id>) -> Vec<Bytes> {
    let told = hearing.relay().take().into_iter();
    let messages = told.filter_map(|told| match told {
        Told::Updated(uri) => Some(updated(&uri, subscription)),
        // LOG-03: never on a subscription.
        Told::Log(message) => subscription.is_none().then(|| message.notification()),
        // Progress belongs to a call.
        Told::Progress(_) => None,
    });
    messages.collect()
}

/// Where a subscription is heard.
pub(crate) struct Heard {
    pub(crate) out: mpsc::Sender<Bytes>,
    /// Whether messages are events on a stream of their own; else they are lines among others.
    pub(crate) as_events: bool,
    /// Its client no longer wants it.
    pub(crate) cancel: CancellationToken,
    /// The gate closes.
    pub(crate) closing: CancellationToken,
}

/// Opens a subscription.
///
/// # Errors
/// The answer in its place: too many are open.
pub(crate) fn subscribe(
    gateway: &Arc<Gateway>,
    principal: &Arc<Principal>,
    mount: &Mount,
    (id, wanted): (&Id, Subscription),
) -> Result<Opened, Option<Bytes>> {
    match gateway.subscribe(principal, mount, wanted.wants) {
        Ok((listener, wants)) => Ok(Opened {
            gateway: Arc::clone(gateway),
            principal: Arc::clone(principal),
            mount: mount.clone(),
            listener,
            wants,
            uris: wanted.uris,
        }),
        Err(refusal) => {
            let failure = Failure::Refused(refusal.for_agent());
            Err(answer::error(Revision::NEWEST_STATELESS, Some(id), &failure))
        }
    }
}

/// A subscription that may begin.
pub(crate) struct Opened {
    gateway: Arc<Gateway>,
    principal: Arc<Principal>,
    mount: Mount,
    listener: Listener,
    /// The lists of whose changes it is told.
    wants: Wants,
    /// The resources of whose changes it wants to be told.
    uris: Vec<String>,
}

impl Opened {
    /// Follows the resources: each is asked for on the road, like a reading of it. Gives those of which its client is told.
    async fn follow(&self, hearing: &Arc<Hearing>, heard: &Heard) -> Vec<String> {
        let mut honoured = Vec::new();
        for uri in &self.uris {
            let asked = Asked {
                wanted: Wanted::Follow { uri: uri.clone() },
                mount: self.mount.clone(),
            };
            let flow = Flow {
                transport: if heard.as_events { "http" } else { "stdio" },
                received: Instant::now(),
                traceparent: None,
                cancel: heard.cancel.child_token(),
                progress: Arc::default(),
                session: None,
                inquiries: Arc::new(Inquiries::none()),
                hearing: Some(Arc::clone(hearing)),
            };
            match Box::pin(self.gateway.call(&self.principal, asked, &flow)).await {
                Ok(_) => honoured.push(uri.clone()),
                // C2: what is not honoured is left out of the acknowledgement; why is written down.
                Err(refusal) => tracing::info!(code = %refusal.code(), "a resource is not followed"),
            }
        }
        honoured
    }
}

/// Serves a subscription until its client, the pipe or the gate ends it.
pub(crate) async fn subscription(id: Id, mut opened: Opened, told: Heard) {
    let gateway = Arc::clone(&opened.gateway);
    let hearing = Arc::new(Hearing::new(LogFilter::Nothing, gateway.limits()));
    serve(&id, &mut opened, &hearing, told).await;
    gateway.unfollow_all(&hearing);
}

async fn serve(id: &Id, opened: &mut Opened, hearing: &Arc<Hearing>, told: Heard) {
    let honoured = Subscription {
        wants: opened.wants,
        uris: opened.follow(hearing, &told).await,
    };
    let Heard {
        out,
        as_events,
        cancel,
        closing,
    } = told;
    let framed = |message: Bytes| {
        if as_events {
            sse::event(None, &message)
        } else {
            message
        }
    };
    if out.send(framed(acknowledged(id, &honoured))).await.is_err() {
        return;
    }
    loop {
        let news = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = closing.cancelled() => break,
            () = out.closed() => return,
            changed = opened.listener.next() => lists(&changed, Some(id)),
            () = hearing.relay().changed() => Some(heard(hearing, Some(id))),
        };
        let Some(news) = news else { break };
        for message in news {
            if out.send(framed(message)).await.is_err() {
                return;
            }
        }
    }
    // SUB-06, SUB-07. A client that does not read is not waited for.
    let _ = out.try_send(framed(ended(id)));
    if !as_events {
        let _ = out.try_send(torn_down(id));
    }
}
