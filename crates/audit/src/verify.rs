//! What an export proves, from the export alone: line by line, in memory that grows with the open calls and the
//! chains, not with the entries. It has no access to a store, and trusts nothing that it reads.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufRead, Read};

use jiff::Timestamp;
use model::{CallId, Class, Digest};
use serde::Deserialize;
use store::LedgerHead;
use uuid::Uuid;

use crate::chain::entry_hash;
use crate::entry::{EntryKind, Head};
use crate::report::{ChainReport, Hole, HoleKind, Report, UnknownCall};
use crate::signing::PublicKey;

/// How an export is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyOptions {
    /// The key that must have signed every checkpoint. Without it each chain is held to the key that it names itself,
    /// which shows that it is of one piece, and not whose.
    pub pinned_key: Option<PublicKey>,
    /// Whether this is a part of a ledger: what may stand outside it is not missed then.
    pub partial: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum VerifyFault {
    /// The export cannot be read.
    #[error("the export cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// There is nothing in it. A report on nothing would be sound.
    #[error("the export is empty; nothing can be said about the ledger")]
    Empty,
    /// A line that no entry fills.
    #[error("line {line} is longer than {max} bytes; this is no export of a ledger")]
    LineLong {
        /// Which, from 1.
        line: u64,
        /// The limit in bytes.
        max: u64,
    },
}

/// The longest line that is read, in bytes. The longest that is written is a `start` that names some thousand chains.
const LINE_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// Calls that ended and are still remembered, to tell a second outcome from one without intent.
const ENDED_MAX: usize = 4_096;

/// Verifies an export as [`export`](crate::export()) writes it.
///
/// What is found: any changed, missing, doubled or moved byte, line or chain, but for the end of a chain that no later
/// chain names and that lies behind its last checkpoint; the report counts those entries. What is also found: calls without
/// an outcome, and outcomes that do not fit a call.
///
/// # Errors
/// [`VerifyFault`] where there is nothing to report on. A damaged export is no fault, but a report that is not sound.
pub fn verify(mut lines: impl BufRead, options: VerifyOptions) -> Result<Report, VerifyFault> {
    let mut verifier = Verifier::new(options);
    let mut line = Vec::with_capacity(4_096);
    loop {
        line.clear();
        let read = (&mut lines)
            .take(LINE_BYTES_MAX + 1)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        verifier.report.entries += 1;
        if u64::try_from(read).unwrap_or(u64::MAX) > LINE_BYTES_MAX {
            return Err(VerifyFault::LineLong {
                line: verifier.report.entries,
                max: LINE_BYTES_MAX,
            });
        }
        verifier.line(&line);
    }
    if verifier.report.entries == 0 {
        return Err(VerifyFault::Empty);
    }
    Ok(verifier.end())
}

/// One line, taken apart without looking into its body.
struct Line<'a> {
    body: &'a [u8],
    hash: Digest,
    prev: Digest,
}

/// What the verifier needs of a body. Everything else is covered by the hash.
#[derive(Deserialize)]
struct Facts<'a> {
    chain: Uuid,
    seq: u64,
    kind: EntryKind,
    time: Timestamp,
    call: Option<CallId>,
    #[serde(borrow)]
    tool: Option<Cow<'a, str>>,
    class: Option<Class>,
    #[serde(borrow)]
    state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
    heads: Option<Vec<Head>>,
    #[serde(borrow)]
    signature: Option<Cow<'a, str>>,
}

struct Verifier {
    options: VerifyOptions,
    report: Report,
    /// The chain that is being read.
    walk: Option<Walk>,
    /// The chains that were read.
    read: HashSet<Uuid>,
    /// Entries that a start named and that are still to come.
    named: HashMap<Uuid, Vec<LedgerHead>>,
    /// Calls with an intent and no outcome yet.
    open: HashMap<CallId, UnknownCall>,
    /// Outcomes whose intent is still to come: it may stand in an older chain, where a process had to begin a new one.
    early: HashMap<CallId, (Hole, bool)>,
    ended: VecDeque<CallId>,
    ended_set: HashSet<CallId>,
}

/// Where we are in one chain.
struct Walk {
    chain: Uuid,
    first: u64,
    last: u64,
    head: Digest,
    key: Option<PublicKey>,
    last_kind: EntryKind,
    stopped: bool,
    after_last_checkpoint: u64,
    named: bool,
}

impl<'a> Line<'a> {
    /// The exact form that is written; anything else is no line of an export.
    fn read(line: &'a [u8]) -> Option<Self> {
        const DIGEST: usize = 71;
        let rest = line.strip_suffix(b"\"}\n")?;
        let (rest, prev) = rest.split_at_checked(rest.len().checked_sub(DIGEST)?)?;
        let rest = rest.strip_suffix(b"\",\"prev\":\"")?;
        let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(DIGEST)?)?;
        let body = rest.strip_suffix(b",\"hash\":\"")?.strip_prefix(b"{\"body\":")?;
        let digest = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse().ok();
        Some(Self {
            body,
            hash: digest(hash)?,
            prev: digest(prev)?,
        })
    }
}

impl Verifier {
    fn new(options: VerifyOptions) -> Self {
        Self {
            options,
            report: Report {
                entries: 0,
                chains: Vec::new(),
                calls: 0,
                refused: 0,
                unknown: Vec::new(),
                unknown_total: 0,
                faults: Vec::new(),
                faults_total: 0,
                keys: Vec::new(),
                unchecked_checkpoints: 0,
                partial: options.partial,
            },
            walk: None,
            read: HashSet::new(),
            named: HashMap::new(),
            open: HashMap::new(),
            early: HashMap::new(),
            ended: VecDeque::new(),
            ended_set: HashSet::new(),
        }
    }

    fn hole(&self, place: Option<(Uuid, u64)>, kind: HoleKind, text: impl Into<String>) -> Hole {
        Hole {
            line: self.report.entries,
            chain: place.map(|(chain, _)| chain),
            seq: place.map(|(_, seq)| seq),
            kind,
            text: text.into(),
        }
    }

    fn fault(&mut self, place: Option<(Uuid, u64)>, kind: HoleKind, text: impl Into<String>) {
        let hole = self.hole(place, kind, text);
        self.report.fault(hole);
    }

    fn line(&mut self, bytes: &[u8]) {
        let Some(line) = Line::read(bytes) else {
            return self.fault(None, HoleKind::Malformed, "not a line of an export");
        };
        let facts: Facts<'_> = match serde_json::from_slice(line.body) {
            Ok(facts) => facts,
            Err(error) => {
                return self.fault(
                    None,
                    HoleKind::Malformed,
                    format!("its body is not that of an entry: {error}"),
                );
            }
        };
        let place = Some((facts.chain, facts.seq));
        if entry_hash(&line.prev, line.body) != line.hash {
            self.fault(place, HoleKind::Altered, "its hash is not that of its text");
        }
        self.follow(&line, &facts);
        self.expected(&line, &facts);
        match facts.kind {
            EntryKind::Start => self.start(&facts),
            EntryKind::Checkpoint => self.checkpoint(&line, &facts),
            EntryKind::Intent => self.intent(facts),
            EntryKind::Outcome => self.outcome(&facts),
            EntryKind::Refusal => self.report.refused += 1,
            EntryKind::Stop => {}
        }
    }

    /// Is this the entry behind the last one?
    fn follow(&mut self, line: &Line<'_>, facts: &Facts<'_>) {
        let place = Some((facts.chain, facts.seq));
        match &self.walk {
            Some(walk) if walk.chain == facts.chain => {
                let (next, head) = (walk.last + 1, walk.head);
                let after_stop = walk.stopped
                    && !(walk.last_kind == EntryKind::Stop && facts.kind == EntryKind::Checkpoint);
                if facts.seq > next {
                    self.fault(
                        place,
                        HoleKind::Gap,
                        format!("entries {next} to {} are missing", facts.seq - 1),
                    );
                } else if facts.seq < next {
                    self.fault(
                        place,
                        HoleKind::Order,
                        format!("it stands behind entry {}", next - 1),
                    );
                } else if line.prev != head {
                    self.fault(
                        place,
                        HoleKind::BrokenLink,
                        "it names another hash than that of the entry before it",
                    );
                } else if after_stop {
                    self.fault(place, HoleKind::Order, "it stands behind the end of its chain");
                }
            }
            _ => {
                self.end_chain();
                if self.read.contains(&facts.chain) {
                    self.fault(
                        place,
                        HoleKind::Order,
                        "its chain stands in two places of the export",
                    );
                }
                let begins = facts.seq == 0 && line.prev == Digest::ZERO && facts.kind == EntryKind::Start;
                if !begins && (facts.seq == 0 || !self.options.partial) {
                    self.fault(
                        place,
                        HoleKind::Gap,
                        "its chain does not begin with entry 0, a start",
                    );
                }
                self.walk = Some(Walk {
                    chain: facts.chain,
                    first: facts.seq,
                    last: facts.seq,
                    head: line.hash,
                    key: None,
                    last_kind: facts.kind,
                    stopped: false,
                    after_last_checkpoint: 0,
                    named: false,
                });
            }
        }
        if let Some(walk) = &mut self.walk {
            // From what the line says of itself, so that one fault is reported once and not for every line behind it.
            walk.last = facts.seq;
            walk.head = line.hash;
            walk.last_kind = facts.kind;
            walk.named = false;
            walk.stopped |= facts.kind == EntryKind::Stop;
            walk.after_last_checkpoint += 1;
        }
    }

    /// Has a start named this entry, and with this hash?
    fn expected(&mut self, line: &Line<'_>, facts: &Facts<'_>) {
        let Some(heads) = self.named.get_mut(&facts.chain) else {
            return;
        };
        let mut altered = false;
        heads.retain(|head| {
            if head.seq == facts.seq {
                altered |= head.hash != line.hash;
                if let Some(walk) = &mut self.walk {
                    walk.named = true;
                }
            }
            head.seq != facts.seq
        });
        if altered {
            let text = "a later start names another hash for it";
            self.fault(Some((facts.chain, facts.seq)), HoleKind::Altered, text);
        }
    }

    fn start(&mut self, facts: &Facts<'_>) {
        let place = Some((facts.chain, facts.seq));
        if facts.seq != 0 {
            self.fault(place, HoleKind::Order, "a start stands inside a chain");
        }
        let key = facts.key.as_deref().and_then(|key| key.parse::<PublicKey>().ok());
        match (key, self.options.pinned_key) {
            (None, _) => self.fault(place, HoleKind::BadSignature, "the start names no key"),
            (Some(key), Some(pinned)) if key != pinned => {
                self.fault(
                    place,
                    HoleKind::ForeignKey,
                    format!("the chain is signed by {key}"),
                );
            }
            (Some(_), _) => {}
        }
        if let Some(key) = key
            && !self.report.keys.contains(&key)
            && self.report.keys.len() < Report::LISTED_MAX
        {
            self.report.keys.push(key);
        }
        if let Some(walk) = &mut self.walk {
            walk.key = key;
        }
        for head in facts.heads.as_deref().unwrap_or_default() {
            let head = head.as_head();
            if head.chain == facts.chain || self.read.contains(&head.chain) {
                let text = format!("it names chain {}, which does not stand behind it", head.chain);
                self.fault(place, HoleKind::Order, text);
            } else {
                self.named.entry(head.chain).or_default().push(head);
            }
        }
    }

    fn checkpoint(&mut self, line: &Line<'_>, facts: &Facts<'_>) {
        let own = self.walk.as_ref().and_then(|walk| walk.key);
        let signed = facts.seq.checked_sub(1).zip(facts.signature.as_deref());
        match (self.options.pinned_key.or(own), signed) {
            (None, _) => self.report.unchecked_checkpoints += 1,
            (Some(key), Some((seq, signature))) if key.signed(signature, facts.chain, seq, &line.prev) => {}
            (Some(_), _) => {
                let text = "the checkpoint is not signed by the key";
                self.fault(Some((facts.chain, facts.seq)), HoleKind::BadSignature, text);
            }
        }
        if let Some(walk) = &mut self.walk {
            walk.after_last_checkpoint = 0;
        }
    }

    fn intent(&mut self, facts: Facts<'_>) {
        let place = Some((facts.chain, facts.seq));
        self.report.calls += 1;
        let Some(call) = facts.call else {
            return self.fault(place, HoleKind::Malformed, "an intent names no call");
        };
        let intended = UnknownCall {
            call,
            tool: facts.tool.map(Cow::into_owned),
            time: facts.time,
            class: facts.class,
            recorded: false,
        };
        if let Some((_, unknown)) = self.early.remove(&call) {
            self.ended(intended, unknown);
        } else if self.open.contains_key(&call) || self.ended_set.contains(&call) {
            self.fault(
                place,
                HoleKind::DuplicateIntent,
                format!("call {call} has an intent already"),
            );
        } else {
            self.open.insert(call, intended);
        }
    }

    fn outcome(&mut self, facts: &Facts<'_>) {
        let place = Some((facts.chain, facts.seq));
        let Some(call) = facts.call else {
            return self.fault(place, HoleKind::Malformed, "an outcome names no call");
        };
        let unknown = facts.state.as_deref() == Some("unknown");
        if let Some(intended) = self.open.remove(&call) {
            self.ended(intended, unknown);
        } else if self.ended_set.contains(&call) || self.early.contains_key(&call) {
            self.fault(
                place,
                HoleKind::DuplicateOutcome,
                format!("call {call} has an outcome already"),
            );
        } else {
            let text = format!("call {call} has an outcome and no intent");
            let hole = self.hole(place, HoleKind::OutcomeWithoutIntent, text);
            self.early.insert(call, (hole, unknown));
        }
    }

    fn ended(&mut self, mut intended: UnknownCall, unknown: bool) {
        if self.ended.len() >= ENDED_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.ended_set.remove(&oldest);
        }
        self.ended.push_back(intended.call);
        self.ended_set.insert(intended.call);
        if unknown {
            intended.recorded = true;
            self.report.unknown(intended);
        }
    }

    fn end_chain(&mut self) {
        let Some(walk) = self.walk.take() else {
            return;
        };
        let place = Some((walk.chain, walk.last));
        if !self.options.partial {
            // Each of the two is written together with its checkpoint, or not at all.
            let cut = match walk.last_kind {
                EntryKind::Start | EntryKind::Stop => true,
                EntryKind::Intent | EntryKind::Refusal | EntryKind::Outcome | EntryKind::Checkpoint => false,
            };
            if cut {
                self.fault(place, HoleKind::Truncated, "the checkpoint behind it is missing");
            }
            for head in self.named.remove(&walk.chain).unwrap_or_default() {
                let text = if head.seq > walk.last {
                    format!(
                        "a later start names entry {} of this chain, which is missing",
                        head.seq
                    )
                } else {
                    format!(
                        "a later start names entry {} of this chain, which does not stand in its place",
                        head.seq
                    )
                };
                self.fault(place, HoleKind::Truncated, text);
            }
        }
        self.read.insert(walk.chain);
        self.report.chains.push(ChainReport {
            chain: walk.chain,
            first: walk.first,
            last: walk.last,
            stopped: walk.stopped,
            after_last_checkpoint: walk.after_last_checkpoint,
            named: walk.named,
        });
    }

    fn end(mut self) -> Report {
        self.end_chain();
        if !self.options.partial {
            let mut missing: Vec<LedgerHead> =
                std::mem::take(&mut self.named).into_values().flatten().collect();
            missing.sort_by_key(|head| (head.chain, head.seq));
            for head in missing {
                let text = "a later start names this entry, and the export has nothing of its chain";
                self.fault(Some((head.chain, head.seq)), HoleKind::MissingChain, text);
            }
            let mut holes: Vec<Hole> = self.early.into_values().map(|(hole, _)| hole).collect();
            holes.sort_by_key(|hole| hole.line);
            for hole in holes {
                self.report.fault(hole);
            }
        }
        let mut open: Vec<UnknownCall> = self.open.into_values().collect();
        open.sort_by_key(|call| (call.time, call.call));
        for call in open {
            self.report.unknown(call);
        }
        self.report.unknown.sort_by_key(|call| (call.time, call.call));
        self.report
    }
}
