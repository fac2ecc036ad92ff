//! Bytes to words and back: JSON-RPC, MCP of every revision, SSE framing. No I/O.
//!
//! This is the only room that knows a revision by name. What leaves it are words without an era ([`Ask`],
//! [`answer::Said`], [`Failure`]) and facts about a revision ([`Revision::has_sessions`] and its siblings); what enters it are bytes and
//! header fields. It decides nothing about permission.
//!
//! Read first: [`client`], how we speak to servers ourselves; [`http`], how a POST is sorted and its headers are held against its body; [`stdio`], the same for a line;
//! [`answer`], how words become bytes in the reader's revision.
//!
//! Sources: the MCP specification, revisions 2024-11-05 to 2026-07-28; JSON-RPC 2.0. Rule ids such as `HM-04` are those
//! of `docs/protocol.md`.

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

pub mod answer;
mod ask;
mod block;
pub mod client;
mod context;
mod definition;
mod envelope;
mod failure;
pub mod header;
pub mod http;
mod id;
pub mod inquiry;
mod item;
mod log;
mod message;
mod retry;
mod revision;
pub mod sse;
pub mod stdio;
pub mod subscription;
mod surface;

pub use ask::{Ask, Cancel, Completion, Opening, Reference};
pub use context::{Context, Identity, is_traceparent};
pub use definition::{Definition, Hints, Page};
pub use failure::Failure;
pub use id::{Id, IdFault, Token};
pub use inquiry::{Inquiry, InquiryFault, InquiryKind, InquiryReply, Profile};
pub use item::{Item, ItemPage};
pub use log::{LogFilter, LogLevel, LogMessage};
pub use message::{Inbound, Notice, Request, Response};
pub use retry::Retry;
pub use revision::{Era, Revision};
pub use subscription::{Subscription, Wants};
pub use surface::Surface;
