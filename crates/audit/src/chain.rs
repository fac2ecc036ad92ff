//! The chain that this process writes: where it stands, and how an entry takes its place in it. It writes nothing.

use model::{CallId, Digest};
use store::LedgerRow;
use uuid::Uuid;

use crate::record::{Content, checkpoint};
use crate::recorded::EntryRef;
use crate::signing::LedgerKey;

/// The tag of every entry's hash.
pub(crate) const LEDGER_TAG: &str = "tollhouse/ledger/v1";

/// One chain, and how far it has come.
pub(crate) struct Chain {
    pub(crate) id: Uuid,
    pub(crate) at: Cursor,
}

/// How far a chain has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The place of the next entry; so many there are.
    pub(crate) next: u64,
    /// The hash of the last entry; [`Digest::ZERO`] before the first.
    pub(crate) head: Digest,
    /// Entries behind the last checkpoint.
    pub(crate) unsigned: u64,
}

impl Chain {
    /// A new, empty chain.
    pub(crate) fn new() -> Self {
        Self {
            id: Uuid::now_v7(),
            at: Cursor {
                next: 0,
                head: Digest::ZERO,
                unsigned: 0,
            },
        }
    }

    /// Gives an entry the next place.
    pub(crate) fn push(&mut self, content: &Content) -> LedgerRow {
        let (seq, prev) = (self.at.next, self.at.head);
        let body = content.body.seal(self.id, seq);
        let hash = entry_hash(&prev, body.as_bytes());
        self.at = Cursor {
            next: seq + 1,
            head: hash,
            unsigned: self.at.unsigned + 1,
        };
        LedgerRow {
            chain: self.id,
            seq,
            time: content.time.as_microsecond(),
            kind: content.kind.as_str().to_owned(),
            call: content.call.map(call_uuid),
            body,
            prev,
            hash,
        }
    }

    /// Signs the last entry, with an entry of its own. The chain has at least one.
    pub(crate) fn checkpoint(&mut self, key: &LedgerKey) -> LedgerRow {
        let signature = key.sign(self.id, self.at.next.saturating_sub(1), &self.at.head);
        let row = self.push(&checkpoint(&signature));
        self.at.unsigned = 0;
        row
    }

    /// Where the next entry will be.
    pub(crate) const fn next(&self) -> EntryRef {
        EntryRef {
            chain: self.id,
            seq: self.at.next,
        }
    }
}

/// The hash of an entry.
pub(crate) fn entry_hash(prev: &Digest, body: &[u8]) -> Digest {
    Digest::of(LEDGER_TAG, &[prev.as_bytes(), body])
}

/// A call's id as the store keeps it.
pub(crate) fn call_uuid(call: CallId) -> Uuid {
    // `CallId` is a UUID that shows itself only as text.
    call.to_string().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_can_be_recomputed_with_coreutils() {
        // { printf 'tollhouse/ledger/v1\0'; head -c 32 /dev/zero; printf '{"seq":0}'; } | sha256sum
        assert_eq!(
            entry_hash(&Digest::ZERO, br#"{"seq":0}"#).to_string(),
            "sha256:94d7485e28a0c947c99fe858ca75dae702c0e96711858b6ce079af8fd813f92c"
        );
    }

    #[test]
    fn a_call_keeps_its_id() {
        let call = CallId::new();
        assert_eq!(call_uuid(call).to_string(), call.to_string());
    }
}
