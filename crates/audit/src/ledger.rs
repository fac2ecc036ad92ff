//! The ledger as the gateway sees it: say what is intended, get the proof, say how it ended.
//!
//! Callers only make texts and wait; the one task that writes is in `writer`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::{Limits, Refusal, RuleId, SecretBytes};
use policy::Permitted;
use store::{Durability, Store};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::keyed::DigestKey;
use crate::record::{self, Content, Outcome, Record};
use crate::recorded::{EntryRef, Recorded, Ticket};
use crate::signing::{LedgerKey, PublicKey};
use crate::writer::{Message, Reply, Seed, Write, Writer};
use crate::{Entry, LedgerFault};

/// The open ledger of this process. Cheap to clone; every clone is the same ledger.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    queue: mpsc::Sender<Message>,
    committed: broadcast::Sender<Arc<Entry>>,
    digests: DigestKey,
    public: PublicKey,
    timeout: Duration,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How the ledger is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Which build of the server this is.
    pub build: String,
    /// Which of several processes this is, in words of the operator.
    pub replica: String,
    /// What an entry survives.
    pub durability: DurabilityRules,
    /// After how many entries there is a checkpoint; at least one.
    pub checkpoint_every: u64,
    /// How many entries may wait to be written; the next one waits outside, until its deadline.
    pub queue_max: usize,
    /// How many entries are written at once.
    pub batch_max: usize,
    /// How long one write may take, and how long anybody waits for one, whatever the deadline.
    pub timeout: Duration,
}

/// What an entry survives, by what the call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityRules {
    /// Of calls that change nothing, and of refusals.
    pub read: Durability,
    /// Of calls that may change something, or whose class is not known.
    pub write: Durability,
}

impl Default for DurabilityRules {
    /// A read survives a killed process; a write survives power loss.
    fn default() -> Self {
        Self {
            read: Durability::Process,
            write: Durability::Disk,
        }
    }
}

impl LedgerOptions {
    /// With the limits in force, the usual durability, and a checkpoint every 1 000 entries.
    #[must_use]
    pub fn new(build: impl Into<String>, replica: impl Into<String>, limits: &Limits) -> Self {
        Self {
            build: build.into(),
            replica: replica.into(),
            durability: DurabilityRules::default(),
            checkpoint_every: 1_000,
            queue_max: limits.ledger_queue_max,
            batch_max: limits.ledger_batch_max,
            timeout: limits.ledger_timeout,
        }
    }
}

/// Committed entries that a subscriber has not yet taken; one that is slower loses the oldest.
const SUBSCRIPTION_ENTRIES: usize = 1_024;

/// The names of the two secrets in the store.
const DIGEST_SECRET: &str = "ledger-digest-key";
const SIGNING_SECRET: &str = "ledger-signing-key";

// === impl Ledger ===

impl Ledger {
    /// Opens the ledger and writes its first entries: `start` and a checkpoint, on disk when this returns.
    ///
    /// The first process on a store makes the two keys. Must be called inside a Tokio runtime; the writer's task runs in it
    /// until [`Self::close`].
    ///
    /// # Errors
    /// [`LedgerFault`] where the start cannot be written, or a key is not what it was made as.
    ///
    /// Cancellation may leave a chain that has a start and nothing else.
    pub async fn open(store: Store, options: LedgerOptions) -> Result<Self, LedgerFault> {
        let digests = secret(&store, DIGEST_SECRET, DigestKey::BYTES).await?;
        let digests = DigestKey::new(&digests).ok_or(LedgerFault::Key(DIGEST_SECRET))?;
        let key = secret(&store, SIGNING_SECRET, LedgerKey::BYTES).await?;
        let key = LedgerKey::new(&key).ok_or(LedgerFault::Key(SIGNING_SECRET))?;
        let public = key.public();
        let (queue, waiting) = mpsc::channel(options.queue_max.clamp(1, tokio::sync::Semaphore::MAX_PERMITS));
        let (committed, _) = broadcast::channel(SUBSCRIPTION_ENTRIES);
        let timeout = options.timeout;
        let writer = Writer::open(store, options, key, committed.clone()).await?;
        let task = tokio::spawn(writer.run(waiting));
        Ok(Self {
            inner: Arc::new(Inner {
                queue,
                committed,
                digests,
                public,
                timeout,
                task: Mutex::new(Some(task)),
            }),
        })
    }

    /// Writes down that a call is about to be made, and gives the proof and the ticket for its outcome.
    ///
    /// Rules and policy version are those of the permission's own verdict.
    ///
    /// # Errors
    /// [`LedgerFault`]; the permission is used up then, and the call must not be made.
    ///
    /// Cancellation: an entry that is written nevertheless gets the outcome `unknown`, marked as abandoned.
    ///
    /// Source: DESIGN step 10 of a call.
    pub async fn intend<T>(
        &self,
        permitted: Permitted<T>,
        record: Record<'_>,
        deadline: Instant,
    ) -> Result<(Recorded<Permitted<T>>, Ticket), LedgerFault> {
        let content = record::intent(&record, permitted.verdict(), &self.inner.digests);
        let (reply, answer) = oneshot::channel();
        let seed = Seed {
            call: record.call,
            class: record.class,
            tool: record.tool.map(Box::from),
            queue: self.inner.queue.clone(),
        };
        let ticket = self
            .send(content, Reply::Intent(reply, seed), answer, deadline)
            .await?;
        Ok((Recorded::new(permitted, ticket.entry()), ticket))
    }

    /// Writes down that a call was refused, by these rules (where it was rules; else those of the record).
    ///
    /// # Errors
    /// [`LedgerFault`]; the refusal stands, recorded or not.
    ///
    /// Cancellation: it may be written or not.
    pub async fn refuse(
        &self,
        record: Record<'_>,
        refusal: &Refusal,
        rules: &[RuleId],
        deadline: Instant,
    ) -> Result<EntryRef, LedgerFault> {
        let content = record::refusal(&record, refusal, rules, &self.inner.digests);
        let (reply, answer) = oneshot::channel();
        self.send(content, Reply::Entry(reply), answer, deadline).await
    }

    /// Writes down how a call ended.
    ///
    /// # Errors
    /// [`LedgerFault`]; the answer must be withheld then. The ticket is used up: what is not known to be written is not
    /// written a second time, so that no call ever has two outcomes.
    ///
    /// Cancellation: while it waits for a place in the queue, the call gets the outcome `unknown`; later, this one.
    ///
    /// Source: DESIGN step 13 of a call.
    pub async fn finish(
        &self,
        mut ticket: Ticket,
        outcome: Outcome<'_>,
        deadline: Instant,
    ) -> Result<(), LedgerFault> {
        let content = record::outcome(&ticket, &outcome, &self.inner.digests);
        let (reply, answer) = oneshot::channel();
        let written = async {
            let place = self
                .inner
                .queue
                .reserve()
                .await
                .map_err(|_| LedgerFault::Closed)?;
            // From here on the outcome is on its way, and the ticket has no other to leave.
            ticket.queue = None;
            place.send(Message::Write(Box::new(Write {
                content,
                reply: Reply::Entry(reply),
            })));
            answer.await.unwrap_or(Err(LedgerFault::Closed)).map(drop)
        };
        tokio::time::timeout_at(self.until(deadline), written)
            .await
            .unwrap_or(Err(LedgerFault::TimedOut))
    }

    /// Writes what still waits, then `stop` and a last checkpoint, and ends the writer's task. Later entries of other clones
    /// are refused as [`LedgerFault::Closed`].
    ///
    /// # Errors
    /// [`LedgerFault::Closed`] where it was closed before; else why `stop` could not be written. The task has ended in any
    /// case.
    pub async fn close(self) -> Result<(), LedgerFault> {
        let (reply, answer) = oneshot::channel();
        let sent = self.inner.queue.send(Message::Close(reply)).await;
        let stopped = match sent {
            Ok(()) => answer.await.unwrap_or(Err(LedgerFault::Closed)),
            Err(_) => Err(LedgerFault::Closed),
        };
        let task = self
            .inner
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the ledger's task did not end well");
        }
        stopped
    }

    /// Entries as they are committed, from now on. One who does not keep up is told how many were lost to him.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Entry>> {
        self.inner.committed.subscribe()
    }

    /// The key by which the checkpoints can be checked. Keep it elsewhere than the store.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.inner.public
    }

    async fn send<A>(
        &self,
        content: Content,
        reply: Reply,
        answer: oneshot::Receiver<Result<A, LedgerFault>>,
        deadline: Instant,
    ) -> Result<A, LedgerFault> {
        let message = Message::Write(Box::new(Write { content, reply }));
        let written = async {
            self.inner
                .queue
                .send(message)
                .await
                .map_err(|_| LedgerFault::Closed)?;
            answer.await.unwrap_or(Err(LedgerFault::Closed))
        };
        tokio::time::timeout_at(self.until(deadline), written)
            .await
            .unwrap_or(Err(LedgerFault::TimedOut))
    }

    fn until(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.inner.timeout)
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ledger({})", self.inner.public)
    }
}

/// A secret of the installation, made of random bytes where there is none yet.
async fn secret(store: &Store, name: &'static str, length: usize) -> Result<SecretBytes, LedgerFault> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|error| LedgerFault::Random(error.to_string()))?;
    // A secret from here on: where it is not needed, it is zeroed all the same.
    let made = SecretBytes::new(Box::new(bytes));
    Ok(store.secret_get_or_create(name, || made).await?)
}
