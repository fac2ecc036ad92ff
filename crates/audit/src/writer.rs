//! The one task that writes. It alone knows where the chain stands; callers queue up, and all who wait are served by one
//! write.
//!
//! The chain advances only when the store said yes. After anything else the task asks the store where the chain really
//! stands before it writes again, so that a full disk, a lock or a lost connection needs no repair afterwards.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use model::{CallId, Class, Digest};
use store::{Durability, LedgerHead, LedgerRow, LedgerWriter, Store, StoreFault};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::chain::Chain;
use crate::entry::heads_named;
use crate::record::{Content, Start, start, stop};
use crate::recorded::{EntryRef, Ticket};
use crate::signing::LedgerKey;
use crate::{DurabilityRules, Entry, LedgerFault, LedgerOptions};

/// What the task can be asked.
pub(crate) enum Message {
    /// Write an entry.
    Write(Box<Write>),
    /// Write what waits, write `stop`, and end.
    Close(oneshot::Sender<Result<(), LedgerFault>>),
}

/// An entry to write, and who waits for it.
pub(crate) struct Write {
    pub(crate) content: Content,
    pub(crate) reply: Reply,
}

/// Who waits for an entry.
pub(crate) enum Reply {
    /// Somebody who wants to make a call. The answer is the ticket itself: if nobody is there any more to take it, it is
    /// dropped, and leaves its mark.
    Intent(oneshot::Sender<Result<Ticket, LedgerFault>>, Seed),
    /// Somebody who wants to know.
    Entry(oneshot::Sender<Result<EntryRef, LedgerFault>>),
    /// Nobody.
    Nobody,
}

/// What a ticket is made of, but for the entry.
pub(crate) struct Seed {
    pub(crate) call: CallId,
    pub(crate) class: Option<Class>,
    pub(crate) tool: Option<Box<str>>,
    pub(crate) queue: mpsc::Sender<Message>,
}

/// The state of the task.
pub(crate) struct Writer {
    store: Store,
    out: LedgerWriter,
    key: LedgerKey,
    options: LedgerOptions,
    committed: broadcast::Sender<Arc<Entry>>,
    chain: Chain,
    /// The store may stand elsewhere than `chain` says.
    unsure: bool,
    /// The last entries of writes of which it is not known whether they arrived, or still will.
    in_doubt: VecDeque<(u64, Digest)>,
}

/// Writes in doubt that are remembered. Of one that is older and arrives after all, the chain would be continued as a new
/// one.
const IN_DOUBT_MAX: usize = 256;

impl Writer {
    /// Begins a chain.
    pub(crate) async fn open(
        store: Store,
        options: LedgerOptions,
        key: LedgerKey,
        committed: broadcast::Sender<Arc<Entry>>,
    ) -> Result<Self, LedgerFault> {
        let out = store.ledger_writer().await?;
        let mut writer = Self {
            store,
            out,
            key,
            options,
            committed,
            chain: Chain::new(),
            unsure: false,
            in_doubt: VecDeque::new(),
        };
        writer.begin(None).await?;
        Ok(writer)
    }

    /// Serves until it is told to close, or until nobody is left who could ask.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let batch_max = self.options.batch_max.max(1);
        let mut batch = Vec::with_capacity(batch_max);
        loop {
            if queue.recv_many(&mut batch, batch_max).await == 0 {
                tracing::warn!(chain = %self.chain.id, "the ledger was dropped and not closed; its chain has no stop");
                return;
            }
            if let Some(reply) = self.serve(&mut batch).await {
                queue.close();
                while queue.recv_many(&mut batch, batch_max).await > 0 {
                    // A second `close` that came in between waits for the same end.
                    drop(self.serve(&mut batch).await);
                }
                let stopped = self.end().await;
                // Whoever asked may have gone; it is closed all the same.
                let _ = reply.send(stopped);
                return;
            }
        }
    }

    /// Writes a batch. Gives whom to tell when the ledger is closed, if that was asked.
    async fn serve(&mut self, batch: &mut Vec<Message>) -> Option<oneshot::Sender<Result<(), LedgerFault>>> {
        let mut closing = None;
        let mut writes = Vec::with_capacity(batch.len());
        for message in batch.drain(..) {
            match message {
                Message::Write(write) if write.reply.is_given_up() => {}
                Message::Write(write) => writes.push(write),
                Message::Close(reply) => closing = Some(reply),
            }
        }
        if !writes.is_empty() {
            let written = self.commit(&writes).await;
            match written {
                Ok(places) => {
                    for (write, place) in writes.into_iter().zip(places) {
                        write.reply.send(Ok(place));
                    }
                }
                Err(fault) => {
                    tracing::error!(%fault, entries = writes.len(), "entries of the ledger could not be written");
                    for write in writes {
                        write.reply.send(Err(fault.clone()));
                    }
                }
            }
        }
        closing
    }

    /// Appends entries, and checkpoints where they are due: all in one write, or none.
    async fn commit(&mut self, writes: &[Box<Write>]) -> Result<Vec<EntryRef>, LedgerFault> {
        let durability = strongest(&self.options.durability, writes);
        let mut retried = false;
        loop {
            if self.unsure {
                self.settle().await?;
            }
            let before = self.chain.at;
            let mut rows = Vec::with_capacity(writes.len() + 1);
            let mut places = Vec::with_capacity(writes.len());
            for write in writes {
                places.push(self.chain.next());
                rows.push(self.chain.push(&write.content));
                if self.chain.at.unsigned >= self.options.checkpoint_every.max(1) {
                    rows.push(self.chain.checkpoint(&self.key));
                }
            }
            match self.append(&rows, durability).await {
                Ok(()) => return Ok(places),
                Err(fault) => {
                    self.chain.at = before;
                    // A write that was given up earlier has arrived in between. Now it is known where the chain stands.
                    let overtaken = matches!(fault, LedgerFault::Store(StoreFault::Conflict(_)));
                    if !overtaken || retried {
                        return Err(fault);
                    }
                    retried = true;
                }
            }
        }
    }

    /// One write to the store, in time. Publishes what was committed.
    async fn append(&mut self, rows: &[LedgerRow], durability: Durability) -> Result<(), LedgerFault> {
        let fault = match within(self.options.timeout, self.out.append(rows, durability)).await {
            Ok(()) => {
                self.in_doubt.clear();
                self.publish(rows);
                return Ok(());
            }
            Err(fault) => fault,
        };
        self.unsure = true;
        if let Some(last) = rows.last()
            && is_in_doubt(&fault)
        {
            if self.in_doubt.len() >= IN_DOUBT_MAX {
                self.in_doubt.pop_front();
            }
            self.in_doubt.push_back((last.seq, last.hash));
        }
        Err(fault)
    }

    /// Asks the store where the chain stands, and goes on from there.
    async fn settle(&mut self) -> Result<(), LedgerFault> {
        let head = within(self.options.timeout, self.out.head(self.chain.id)).await?;
        let at = self.chain.at;
        match head {
            Some((seq, hash)) if seq + 1 == at.next && hash == at.head => {}
            Some((seq, hash)) if self.in_doubt.contains(&(seq, hash)) => {
                tracing::warn!(chain = %self.chain.id, seq, "entries of a write that was given up have arrived");
                self.chain.at.unsigned += (seq + 1).saturating_sub(at.next);
                self.chain.at.next = seq + 1;
                self.chain.at.head = hash;
            }
            found => {
                // The store lost entries that it had taken (a server that died before its disk had them), or somebody
                // else wrote into this chain. Neither may look as if nothing had happened: a new chain names the head
                // that this one had.
                tracing::error!(
                    chain = %self.chain.id,
                    expected = at.next.saturating_sub(1),
                    found = found.map(|(seq, _)| seq),
                    "the store does not hold this process's chain as it was written; a new chain begins"
                );
                self.begin(at.next.checked_sub(1).map(|seq| LedgerHead {
                    chain: self.chain.id,
                    seq,
                    hash: at.head,
                }))
                .await?;
            }
        }
        self.unsure = false;
        Ok(())
    }

    /// Begins a new chain: `start`, with the heads of the others, and a checkpoint. `lost`: a head that the store should
    /// have and has not.
    async fn begin(&mut self, lost: Option<LedgerHead>) -> Result<(), LedgerFault> {
        let mut heads = within(self.options.timeout, unnamed_heads(&self.store)).await?;
        if let Some(lost) = lost {
            heads.retain(|head| head.chain != lost.chain);
            heads.push(lost);
        }
        let mut chain = Chain::new();
        let content = start(&Start {
            build: &self.options.build,
            replica: &self.options.replica,
            key: self.key.public(),
            heads: &heads,
        });
        let rows = [chain.push(&content), chain.checkpoint(&self.key)];
        within(
            self.options.timeout,
            self.out.append(&rows, self.options.durability.write),
        )
        .await?;
        self.chain = chain;
        self.in_doubt.clear();
        self.publish(&rows);
        Ok(())
    }

    /// The last entries.
    async fn end(mut self) -> Result<(), LedgerFault> {
        if self.unsure {
            self.settle().await?;
        }
        let rows = [self.chain.push(&stop()), self.chain.checkpoint(&self.key)];
        self.append(&rows, self.options.durability.write).await?;
        within(self.options.timeout, self.out.close()).await
    }

    fn publish(&self, rows: &[LedgerRow]) {
        if self.committed.receiver_count() == 0 {
            return;
        }
        for row in rows {
            match Entry::from_row(row) {
                // An error means that the last subscriber has just gone.
                Ok(entry) => drop(self.committed.send(Arc::new(entry))),
                Err(fault) => tracing::error!(%fault, "an entry of our own cannot be read"),
            }
        }
    }
}

impl Reply {
    /// Whether a call whose intent this is will not be made any more. Outcomes and refusals are written in any case.
    fn is_given_up(&self) -> bool {
        match self {
            Self::Intent(reply, _) => reply.is_closed(),
            Self::Entry(_) | Self::Nobody => false,
        }
    }

    fn send(self, written: Result<EntryRef, LedgerFault>) {
        match self {
            Self::Intent(reply, seed) => {
                let ticket = written.map(|entry| Ticket {
                    call: seed.call,
                    entry,
                    class: seed.class,
                    tool: seed.tool,
                    queue: Some(seed.queue),
                });
                drop(reply.send(ticket));
            }
            Self::Entry(reply) => drop(reply.send(written)),
            Self::Nobody => {}
        }
    }
}

/// The strongest durability that one of these asks for.
fn strongest(rules: &DurabilityRules, writes: &[Box<Write>]) -> Durability {
    writes
        .iter()
        .map(|write| {
            if write.content.changes_state {
                rules.write
            } else {
                rules.read
            }
        })
        .max()
        .unwrap_or(rules.write)
}

/// Whether a write that failed like this may have arrived nevertheless, or still may.
fn is_in_doubt(fault: &LedgerFault) -> bool {
    match fault {
        LedgerFault::TimedOut
        | LedgerFault::Store(StoreFault::Unreachable(_) | StoreFault::Io(_) | StoreFault::Other(_)) => true,
        LedgerFault::Full(_)
        | LedgerFault::Locked(_)
        | LedgerFault::Closed
        | LedgerFault::Key(_)
        | LedgerFault::Random(_)
        | LedgerFault::Store(_) => false,
    }
}

async fn within<A>(
    timeout: Duration,
    work: impl Future<Output = Result<A, StoreFault>>,
) -> Result<A, LedgerFault> {
    match tokio::time::timeout(timeout, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(LedgerFault::TimedOut),
    }
}

/// The heads of all chains that no start names yet: what a new start has to name.
async fn unnamed_heads(store: &Store) -> Result<Vec<LedgerHead>, StoreFault> {
    // In this order: a chain that another process begins in between is not among the heads, and the next start names it.
    let mut heads = store.ledger_heads().await?;
    let starts = store.ledger_starts().await?;
    let named: std::collections::HashSet<_> = starts
        .iter()
        .flat_map(|row| heads_named(&row.body))
        .map(|head| (head.chain, head.seq))
        .collect();
    heads.retain(|head| !named.contains(&(head.chain, head.seq)));
    Ok(heads)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::EntryKind;
    use crate::body::Body;

    fn write(changes_state: bool) -> Box<Write> {
        let body = Body::write(|m| {
            m.chain();
            m.seq();
        });
        Box::new(Write {
            content: Content {
                kind: EntryKind::Refusal,
                call: None,
                time: Timestamp::UNIX_EPOCH,
                changes_state,
                body,
            },
            reply: Reply::Nobody,
        })
    }

    #[test]
    fn a_batch_is_as_durable_as_its_most_demanding_entry() {
        use Durability::{Disk, Process};
        let usual = DurabilityRules::default();
        let stricter = DurabilityRules {
            read: Disk,
            write: Disk,
        };
        for (rules, entries, expected) in [
            (usual, &[false][..], Process),
            (usual, &[true], Disk),
            (usual, &[false, true, false], Disk),
            (usual, &[false, false], Process),
            (stricter, &[false], Disk),
            (
                DurabilityRules {
                    read: Disk,
                    write: Process,
                },
                &[true, false],
                Disk,
            ),
        ] {
            let writes: Vec<_> = entries
                .iter()
                .map(|changes_state| write(*changes_state))
                .collect();
            assert_eq!(strongest(&rules, &writes), expected, "{rules:?} {entries:?}");
        }
    }
}
