//! What the verifier found, for programs and for people.

use std::fmt;

use jiff::Timestamp;
use model::{CallId, Class};
use uuid::Uuid;

use crate::signing::PublicKey;

/// What an export proves, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Lines that were read.
    pub entries: u64,
    /// The chains, in the order of the export: the newest first.
    pub chains: Vec<ChainReport>,
    /// Calls whose intent was recorded.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Calls of which nobody knows whether they were done, in the order of time. At most [`Report::LISTED_MAX`].
    pub unknown: Vec<UnknownCall>,
    /// How many there are in all.
    pub unknown_total: u64,
    /// Whatever is wrong, in the order of lines; what only the store shows stands behind. At most
    /// [`Report::LISTED_MAX`].
    pub faults: Vec<Hole>,
    /// How many there are in all.
    pub faults_total: u64,
    /// The keys that the chains say they are signed with, each once.
    pub keys: Vec<PublicKey>,
    /// Checkpoints that no key was there for.
    pub unchecked_checkpoints: u64,
    /// Whether it was read as a part of a ledger, in which what is missing is not missed.
    pub partial: bool,
}

/// What is known of one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// The chain.
    pub chain: Uuid,
    /// The place of its first entry in the export.
    pub first: u64,
    /// The place of its last.
    pub last: u64,
    /// Whether it ended in good order.
    pub stopped: bool,
    /// How many entries stand behind its last checkpoint.
    pub after_last_checkpoint: u64,
    /// Whether a later start names its last entry, so that its end cannot be cut off unseen.
    pub named: bool,
}

/// A call of which nobody knows whether it was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCall {
    /// The call.
    pub call: CallId,
    /// Its tool, as it was asked for.
    pub tool: Option<String>,
    /// When it was intended.
    pub time: Timestamp,
    /// Its class.
    pub class: Option<Class>,
    /// Whether an outcome says so (`true`), or no outcome was ever written: the process ended, or it still runs.
    pub recorded: bool,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The line of the export, from 1.
    pub line: u64,
    /// The chain, where it is known.
    pub chain: Option<Uuid>,
    /// The place in it, where it is known.
    pub seq: Option<u64>,
    /// What kind of thing.
    pub kind: HoleKind,
    /// In words.
    pub text: String,
}

/// The kinds of things that can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoleKind {
    /// A line that no exporter writes.
    Malformed,
    /// An entry's text is not the one that was hashed, or its hash is not the one that another entry names.
    Altered,
    /// An entry does not name the hash of the one before it.
    BrokenLink,
    /// Entries are missing between two others, or before the first.
    Gap,
    /// Entries are missing at the end of a chain.
    Truncated,
    /// Entries or chains stand in another order than they were written in, or twice.
    Order,
    /// A checkpoint that the key did not sign.
    BadSignature,
    /// A chain that says it is signed with another key than the pinned one.
    ForeignKey,
    /// A chain that a start names is not there.
    MissingChain,
    /// A call with two intents.
    DuplicateIntent,
    /// A call with two outcomes.
    DuplicateOutcome,
    /// A call with an outcome and no intent.
    OutcomeWithoutIntent,
    /// The store files an entry under something that it does not say: see [`check_filing`](crate::check_filing).
    Misfiled,
}

impl Report {
    /// How many unknown calls and how many faults are listed one by one.
    pub const LISTED_MAX: usize = 1_000;

    /// Whether nothing is wrong. Calls whose outcome is unknown are no fault of the ledger.
    #[must_use]
    pub const fn sound(&self) -> bool {
        self.faults_total == 0
    }

    pub(crate) fn fault(&mut self, hole: Hole) {
        self.faults_total += 1;
        if self.faults.len() < Self::LISTED_MAX {
            self.faults.push(hole);
        }
    }

    pub(crate) fn unknown(&mut self, call: UnknownCall) {
        self.unknown_total += 1;
        if self.unknown.len() < Self::LISTED_MAX {
            self.unknown.push(call);
        }
    }
}

impl HoleKind {
    /// The kind as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Altered => "altered",
            Self::BrokenLink => "broken-link",
            Self::Gap => "gap",
            Self::Truncated => "truncated",
            Self::Order => "order",
            Self::BadSignature => "bad-signature",
            Self::ForeignKey => "foreign-key",
            Self::MissingChain => "missing-chain",
            Self::DuplicateIntent => "duplicate-intent",
            Self::DuplicateOutcome => "duplicate-outcome",
            Self::OutcomeWithoutIntent => "outcome-without-intent",
            Self::Misfiled => "misfiled",
        }
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(chain) = self.chain {
            write!(f, ", entry {chain}")?;
            if let Some(seq) = self.seq {
                write!(f, "#{seq}")?;
            }
        }
        write!(f, ": {}: {}", self.kind.as_str(), self.text)
    }
}

/// A summary of several lines, without the lists of unknown calls and chains.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} entries in {} chains, {} calls, {} refused, {} with unknown outcome",
            if self.sound() { "sound" } else { "NOT SOUND" },
            self.entries,
            self.chains.len(),
            self.calls,
            self.refused,
            self.unknown_total,
        )?;
        for hole in &self.faults {
            writeln!(f, "  {hole}")?;
        }
        let listed = u64::try_from(self.faults.len()).unwrap_or(u64::MAX);
        if self.faults_total > listed {
            writeln!(f, "  and {} more", self.faults_total - listed)?;
        }
        if self.partial {
            writeln!(
                f,
                "read as a part of a ledger: entries missing before, after or between the chains are not missed"
            )?;
        }
        for chain in self
            .chains
            .iter()
            .filter(|chain| !chain.named && chain.after_last_checkpoint > 0)
        {
            writeln!(
                f,
                "chain {}: {} entries after the last checkpoint; had more stood behind the last of them, nobody could tell",
                chain.chain, chain.after_last_checkpoint
            )?;
        }
        if self.unchecked_checkpoints > 0 {
            writeln!(
                f,
                "{} checkpoints could not be checked: there is no key for them",
                self.unchecked_checkpoints
            )?;
        }
        match self.keys.as_slice() {
            [] => {}
            [key] => writeln!(f, "signed by {key}")?,
            keys => writeln!(
                f,
                "signed by {} different keys; pin the one that you know",
                keys.len()
            )?,
        }
        Ok(())
    }
}
