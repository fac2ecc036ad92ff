//! An entry that is read back: for a person at a terminal, and for whoever follows the ledger. Nothing is proved here; see
//! `verify`.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use model::{CallId, Caller, Class, Digest, JsonLimits, Object, Value};
use serde::Deserialize;
use store::{LedgerHead, LedgerRow};
use uuid::Uuid;

use crate::record::OutcomeState;
use crate::recorded::EntryRef;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A process begins its chain.
    Start,
    /// A call is about to be made.
    Intent,
    /// A call was refused.
    Refusal,
    /// A call ended.
    Outcome,
    /// The chain up to here is signed.
    Checkpoint,
    /// A process ends its chain in good order.
    Stop,
}

/// One entry, as it is read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    place: EntryRef,
    time: Timestamp,
    kind: EntryKind,
    call: Option<CallId>,
    hash: Digest,
    body: Object,
}

/// Why a row is no entry of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// Its text is not that of an entry.
    #[error("entry {chain}#{seq} cannot be read: {why}; run `tollhouse audit verify` on an export")]
    Body {
        /// The chain, as the row says.
        chain: Uuid,
        /// The place, as the row says.
        seq: u64,
        /// What is wrong.
        why: String,
    },
    /// What it is looked up by is not what its text says.
    #[error("entry {chain}#{seq} is filed under another {column} than it says; run `tollhouse audit verify`")]
    Column {
        /// The chain, as the row says.
        chain: Uuid,
        /// The place, as the row says.
        seq: u64,
        /// Which column.
        column: &'static str,
    },
}

/// The members that every entry has.
#[derive(Deserialize)]
struct Common {
    chain: Uuid,
    seq: u64,
    time: Timestamp,
    kind: EntryKind,
    call: Option<CallId>,
}

// === impl EntryKind ===

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Start,
        Self::Intent,
        Self::Refusal,
        Self::Outcome,
        Self::Checkpoint,
        Self::Stop,
    ];

    /// The word in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Intent => "intent",
            Self::Refusal => "refusal",
            Self::Outcome => "outcome",
            Self::Checkpoint => "checkpoint",
            Self::Stop => "stop",
        }
    }
}

impl FromStr for EntryKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            format!("`{text}` is no kind of entry; write one of start, intent, refusal, outcome, checkpoint, stop")
        })
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Entry ===

impl Entry {
    /// Reads a row.
    pub(crate) fn from_row(row: &LedgerRow) -> Result<Self, EntryFault> {
        let fault = |why: String| EntryFault::Body {
            chain: row.chain,
            seq: row.seq,
            why,
        };
        let common: Common = serde_json::from_str(&row.body).map_err(|why| fault(why.to_string()))?;
        let same = [
            ("chain", common.chain == row.chain),
            ("seq", common.seq == row.seq),
            ("kind", common.kind.as_str() == row.kind),
            ("time", common.time.as_microsecond() == row.time),
            ("call", common.call.map(crate::chain::call_uuid) == row.call),
        ];
        if let Some((column, _)) = same.into_iter().find(|(_, same)| !same) {
            return Err(EntryFault::Column {
                chain: row.chain,
                seq: row.seq,
                column,
            });
        }
        Ok(Self {
            place: EntryRef {
                chain: common.chain,
                seq: common.seq,
            },
            time: common.time,
            kind: common.kind,
            call: common.call,
            hash: row.hash,
            body: object(&row.body).map_err(fault)?,
        })
    }

    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> EntryRef {
        self.place
    }

    /// When it happened.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        self.time
    }

    /// What it is about.
    #[must_use]
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The call that it is about, if any.
    #[must_use]
    pub const fn call(&self) -> Option<CallId> {
        self.call
    }

    /// Its hash, as it is kept.
    #[must_use]
    pub const fn hash(&self) -> Digest {
        self.hash
    }

    /// Everything that it says.
    #[must_use]
    pub const fn body(&self) -> &Object {
        &self.body
    }

    /// The tool, as it was asked for: any text of a caller.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.text("tool")
    }

    /// The class of the call.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.text("class")?.parse().ok()
    }

    /// Who called.
    #[must_use]
    pub fn actor(&self) -> Option<Caller> {
        serde_json::from_value(self.body.get("actor")?.clone()).ok()
    }

    /// The rules that decided.
    #[must_use]
    pub fn rules(&self) -> Vec<&str> {
        let rules = self.body.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The code of the refusal.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.text("refusal")
    }

    /// How the call ended.
    #[must_use]
    pub fn state(&self) -> Option<OutcomeState> {
        let state = self.text("state")?;
        OutcomeState::ALL
            .into_iter()
            .find(|known| known.as_str() == state)
    }

    /// Whether the call ended because nobody waited for it any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.body.get("abandoned").and_then(Value::as_bool) == Some(true)
    }

    /// The upstream's status code.
    #[must_use]
    pub fn status(&self) -> Option<u64> {
        self.body.get("status").and_then(Value::as_u64)
    }

    /// How many requests may have reached the upstream.
    #[must_use]
    pub fn upstream_requests(&self) -> Option<u64> {
        self.body.get("upstream_requests").and_then(Value::as_u64)
    }

    /// How long the call took.
    #[must_use]
    pub fn duration(&self) -> Option<std::time::Duration> {
        self.body
            .get("duration_us")
            .and_then(Value::as_u64)
            .map(std::time::Duration::from_micros)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }
}

/// One line for a person, as `2026-11-30T12:00:00.000000Z intent billing_getInvoice read by corp/ada@north, rules a, b, call …`.
///
/// Texts of callers are shown with every character escaped that a terminal would act on or not show.
/// The members of an entry.
///
/// Not by the usual reader into a `Value`: it takes an object whose first key is one of `serde_json`'s own for something
/// else, and names of arguments, which a document declares, stand in an entry.
fn object(text: &str) -> Result<Object, String> {
    let limits = JsonLimits {
        bytes_max: text.len(),
        depth_max: 120,
    };
    match model::parse_foreign(text.as_bytes(), limits) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is no object".to_owned()),
        Err(fault) => Err(fault.to_string()),
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} ", self.time)?;
        // Padded for the column behind it, where there is one.
        let width = match (self.kind, self.tool()) {
            (EntryKind::Start, _) | (_, Some(_)) => 10,
            (_, None) => 0,
        };
        write!(f, "{:<width$}", self.kind.as_str())?;
        if let Some(tool) = self.tool() {
            write!(f, " {}", Shown(tool))?;
        }
        if let Some(class) = self.class() {
            write!(f, " {class}")?;
        }
        match (self.kind, self.state()) {
            (EntryKind::Outcome, Some(state)) => write!(f, " {}", state.as_str())?,
            (EntryKind::Start, _) => {
                let build = self.text("build").unwrap_or_default();
                let replica = self.text("replica").unwrap_or_default();
                write!(f, " {} on {}", Shown(build), Shown(replica))?;
            }
            _ => {}
        }
        if self.is_abandoned() {
            f.write_str(" (abandoned)")?;
        }
        if let Some(refusal) = self.refusal() {
            write!(f, " {}", Shown(refusal))?;
        }
        if let Some(status) = self.status() {
            write!(f, " status {status}")?;
        }
        if let Some(requests) = self.upstream_requests() {
            write!(f, " {requests} sent")?;
        }
        if let Some(duration) = self.duration() {
            write!(f, " in {duration:?}")?;
        }
        if let Some(actor) = self.actor() {
            write!(
                f,
                " by {}/{}",
                Shown(&actor.issuer),
                Shown(actor.subject.as_str())
            )?;
            if let Some(tenant) = actor.tenant {
                write!(f, "@{}", Shown(tenant.as_str()))?;
            }
        }
        let rules = self.rules();
        if !rules.is_empty() {
            write!(f, ", rules {}", Shown(&rules.join(", ")))?;
        }
        if let Some(call) = self.call {
            write!(f, ", call {call}")?;
        }
        Ok(())
    }
}

/// A text of somebody else on a terminal.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\'' | '"' => fmt::Write::write_char(f, character)?,
                _ => write!(f, "{}", character.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// The heads that a `start` names. Nothing where the text is no start, or not readable.
pub(crate) fn heads_named(body: &str) -> Vec<LedgerHead> {
    #[derive(Deserialize)]
    struct Named {
        heads: Vec<Head>,
    }
    serde_json::from_str::<Named>(body)
        .map(|named| named.heads.iter().map(Head::as_head).collect())
        .unwrap_or_default()
}

/// One head, as a `start` names it.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    chain: Uuid,
    hash: Digest,
    seq: u64,
}

impl Head {
    pub(crate) const fn as_head(&self) -> LedgerHead {
        LedgerHead {
            chain: self.chain,
            seq: self.seq,
            hash: self.hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the corpus of the fuzz target `json`, `raw-value-key`.
    #[test]
    fn a_name_that_a_document_declares_cannot_make_an_entry_unreadable() {
        let chain = Uuid::from_u128(7);
        for key in [
            "$serde_json::private::RawValue",
            "$serde_json::private::Number",
            "plain",
        ] {
            let body = format!(
                r#"{{"arguments":{{"shape":{{"map":{{"{key}":"string"}}}}}},"chain":"{chain}","kind":"refusal","seq":1,"time":"2026-11-30T00:00:00Z"}}"#
            );
            let time: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
            let row = LedgerRow {
                chain,
                seq: 1,
                time: time.as_microsecond(),
                kind: "refusal".to_owned(),
                call: None,
                body,
                prev: Digest::of("a", &[]),
                hash: Digest::of("b", &[]),
            };
            let entry = Entry::from_row(&row).unwrap();
            assert_eq!(entry.body()["arguments"]["shape"]["map"][key], "string", "{key}");
        }
    }
}
