//! The proof that an intent was written down, and the ticket with which its outcome is.

use std::fmt;

use model::{CallId, Class};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::record::abandoned;
use crate::writer::{Message, Reply, Write};

/// Proof that the intent to do this is in the ledger, as durably as its class asks.
///
/// Only [`Ledger::intend`](crate::Ledger::intend) makes one. The upstream room takes nothing else, so that what was not
/// written down is not sent.
///
/// It cannot be written down by hand:
/// ```compile_fail,E0451
/// let forged = audit::Recorded { value: 7, entry: unimplemented!() };
/// ```
/// nor copied:
/// ```compile_fail,E0308
/// fn twice(one: &audit::Recorded<u8>) -> audit::Recorded<u8> { one.clone() }
/// ```
/// nor made of nothing:
/// ```compile_fail,E0277
/// let forged: audit::Recorded<u8> = Default::default();
/// ```
/// What it holds can be looked at, and taken out once:
/// ```
/// fn look(one: audit::Recorded<u8>) -> u8 {
///     let _: &u8 = one.get();
///     let _: audit::EntryRef = one.entry();
///     one.into_inner()
/// }
/// ```
#[must_use = "an intent that nobody follows stays in the ledger as unknown"]
#[derive(Debug)]
pub struct Recorded<T> {
    /// Invariant: `entry` is committed and says that this is intended.
    value: T,
    entry: EntryRef,
}

/// Where an entry is: which chain, and which place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryRef {
    /// The chain.
    pub chain: Uuid,
    /// The place, from 0.
    pub seq: u64,
}

/// The right, and the duty, to write the outcome of one recorded call: give it to [`Ledger::finish`](crate::Ledger::finish).
///
/// Dropped instead, it leaves an outcome `unknown` behind, marked as abandoned, if there is room in the queue; it never
/// waits and never fails. That is a last resort for a task that was cancelled, not a way to end a call.
#[must_use = "a ticket that is dropped leaves an outcome `unknown` behind"]
pub struct Ticket {
    pub(crate) call: CallId,
    pub(crate) entry: EntryRef,
    pub(crate) class: Option<Class>,
    pub(crate) tool: Option<Box<str>>,
    /// `None` once the outcome is on its way.
    pub(crate) queue: Option<mpsc::Sender<Message>>,
}

impl<T> Recorded<T> {
    pub(crate) const fn new(value: T, entry: EntryRef) -> Self {
        Self { value, entry }
    }

    /// What was recorded.
    pub const fn get(&self) -> &T {
        &self.value
    }

    /// Takes it out; the proof is used up.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Where it is recorded.
    pub const fn entry(&self) -> EntryRef {
        self.entry
    }
}

impl Ticket {
    /// The call.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// Where its intent is recorded.
    #[must_use]
    pub const fn entry(&self) -> EntryRef {
        self.entry
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else {
            return;
        };
        let write = Write {
            content: abandoned(self),
            reply: Reply::Nobody,
        };
        match queue.try_send(Message::Write(Box::new(write))) {
            Ok(()) => {
                tracing::warn!(call = %self.call, "a call was abandoned; its outcome is recorded as unknown")
            }
            Err(_) => tracing::error!(
                call = %self.call,
                "a call was abandoned and the ledger takes no more; its intent stays without an outcome"
            ),
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} at {})", self.call, self.entry)
    }
}

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.chain, self.seq)
    }
}
