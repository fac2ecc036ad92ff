//! What clients hear without asking each time: changes of lists, in a session or by a subscription.
//!
//! One task for each; it ends with the session, the subscription, the pipe or the gate.

use std::sync::Arc;

use bytes::Bytes;
use gateway::{Gateway, Listener, Mount, Session};
use identity::Principal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::subscription::{acknowledged, ended, list_changed, torn_down};
use wire::{Failure, Id, Revision, Wants, answer, sse};

/// Tells a session of changes until it ends.
pub(crate) fn of_session(
    gateway: &Arc<Gateway>,
    principal: &Arc<Principal>,
    mount: &Mount,
    session: &Arc<Session>,
) {
    let mut listener = gateway.listen(principal, mount);
    let (session, ended) = (Arc::downgrade(session), session.ended().clone());
    tokio::spawn(async move {
        loop {
            let changed = tokio::select! {
                biased;
                () = ended.cancelled() => return,
                changed = listener.next() => changed,
            };
            let Some(session) = session.upgrade().filter(|_| !changed.is_empty()) else {
                return;
            };
            for surface in changed {
                session.tell(&list_changed(surface, None));
            }
        }
    });
}

/// Tells a pipe of changes until it ends.
pub(crate) async fn of_pipe(mut listener: Listener, out: mpsc::Sender<Bytes>, end: CancellationToken) {
    loop {
        let changed = tokio::select! {
            biased;
            () = end.cancelled() => return,
            changed = listener.next() => changed,
        };
        if changed.is_empty() {
            return;
        }
        for surface in changed {
            if out.send(list_changed(surface, None)).await.is_err() {
                return;
            }
        }
    }
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
    (id, wants): (&Id, Wants),
) -> Result<(Listener, Wants), Option<Bytes>> {
    gateway.subscribe(principal, mount, wants).map_err(|refusal| {
        let failure = Failure::Refused(refusal.for_agent());
        answer::error(Revision::NEWEST_STATELESS, Some(id), &failure)
    })
}

/// Serves a subscription until its client, the pipe or the gate ends it.
pub(crate) async fn subscription(id: Id, (mut listener, honoured): (Listener, Wants), heard: Heard) {
    let Heard {
        out,
        as_events,
        cancel,
        closing,
    } = heard;
    let framed = |message: Bytes| {
        if as_events {
            sse::event(None, &message)
        } else {
            message
        }
    };
    if out.send(framed(acknowledged(&id, honoured))).await.is_err() {
        return;
    }
    loop {
        let changed = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = closing.cancelled() => break,
            () = out.closed() => return,
            changed = listener.next() => changed,
        };
        if changed.is_empty() {
            break;
        }
        for surface in changed {
            if out.send(framed(list_changed(surface, Some(&id)))).await.is_err() {
                return;
            }
        }
    }
    // SUB-06, SUB-07. A client that does not read is not waited for.
    let _ = out.try_send(framed(ended(&id)));
    if !as_events {
        let _ = out.try_send(torn_down(&id));
    }
}
