//! The ledger: an intent before each call, its outcome after, every refusal; chained, signed, verifiable.
//!
//! **Only maker of [`Recorded`].** This room writes down and reads back; whether something is allowed was decided before,
//! and what is done about a record that cannot be written (nothing is sent) is decided after. It keeps no value of an
//! argument, of a result or of a target's id: only keyed digests, shapes and names that the operator declared.
//! Read first: [`Ledger`], what a call goes through; `record.rs`, what exactly is written; [`verify()`], what an export
//! proves.
//!
//! # The format
//! An entry is a body, the hash of the entry before it, and its own hash. The body is canonical JSON (RFC 8785) with at
//! least `chain`, `seq`, `time` and `kind`. `hash` is SHA-256 over `tollhouse/ledger/v1`, a zero byte, the 32 bytes of
//! `prev`, and the body. A chain belongs to one process: its id is a UUID of version 7, its entries are numbered from 0
//! without gaps, and its first entry, `start`, names the build, the replica, the public key, and the last entries of the
//! other chains that no `start` before it has named. A `checkpoint` holds an Ed25519 signature over
//! `tollhouse/checkpoint/v1`, a zero byte, and the canonical JSON of `chain`, and of `head` and `seq` of the entry before.
//! There is one behind each `start`, one behind each `stop`, and one every so many entries.
//!
//! # What it cannot show
//! Entries behind the last checkpoint of a chain that no later `start` names can be cut off without a trace: the newest
//! entries of the newest chains. The report of [`verify()`] counts them. Whoever can read the store can read the signing key
//! in it, and write a chain of their own; a public key pinned elsewhere, and exports kept elsewhere, are the means
//! against that.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

mod body;
mod chain;
mod entry;
mod export;
mod fault;
mod keyed;
mod ledger;
mod record;
mod recorded;
mod report;
mod signing;
mod verify;
mod writer;

pub use entry::{Entry, EntryFault, EntryKind};
pub use export::{ExportFault, Selection, check_filing, export, show, tail};
pub use fault::LedgerFault;
pub use ledger::{DurabilityRules, Ledger, LedgerOptions};
pub use record::{Outcome, OutcomeState, Record, TEXT_CHARACTERS_MAX};
pub use recorded::{EntryRef, Recorded, Ticket};
pub use report::{ChainReport, Hole, HoleKind, Report, UnknownCall};
pub use signing::{PublicKey, PublicKeyFault};
pub use store::{Durability, LedgerFilter, LedgerOrder};
pub use verify::{VerifyFault, VerifyOptions, verify};
