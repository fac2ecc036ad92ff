//! An OpenAPI document to operations, tool definitions and request plans.
//!
//! Bytes come in, values go out: this room reads no file, opens no connection and knows no clock. A document is kept
//! raw and looked at one operation at a time, so that what one operation gets wrong becomes a [`Blocker`] on that
//! operation and never harms another. Nothing is guessed: what the document does not define is not sent.
//! Versions 2.0 to 3.2 are read, in JSON and YAML, in one file or several. Read first: [`Document`], then [`Generated`] and [`RequestPlan`].

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

mod blocker;
mod body;
mod document;
mod exercise;
mod expansion;
mod form;
mod inference;
mod length;
mod list;
mod media;
mod name;
mod number;
mod operation;
mod overlay;
mod parameter;
mod plan;
mod pointer;
mod projection;
mod prose;
mod reference;
mod resolved;
mod response;
mod sample;
mod schema;
mod security;
mod serial;
mod server;
mod shape;
mod split;
mod swagger;
mod tag;
mod template;
mod text;
mod tool;
mod tool_name;
mod trace;
mod written;

pub use blocker::{Blocker, BlockerCause, Note, NoteKind};
pub use document::{Document, DocumentFault, DocumentLimits, Reading};
pub use exercise::{Exercise, arguments_for, exercise, sample_arguments};
pub use inference::{Evidence, EvidenceKind, Inference, Shown, Strength, infer_tool, is_sensitive_name};
pub use length::json_length;
pub use list::ToolList;
pub use operation::{FindFault, Method, OperationKey, OperationRef};
pub use overlay::{OverlayAction, OverlayFault};
pub use plan::{Body, BuildFault, HEADER_VALUE_BYTES_MAX, Prepared, RequestPlan, TARGET_BYTES_MAX};
pub use projection::{Projection, ProjectionFault};
pub use prose::{has_hidden, is_hidden};
pub use sample::valid_arguments;
pub use security::{AccessFlag, AccessRow, Choice, KeyPlace, Means, OAuthFlow, Requirement, Security};
pub use serial::Nesting;
pub use server::{Destination, Server, ServerChoice, ServerFault};
pub use split::{Absent, NoSources, Sources};
pub use tag::Tag;
pub use text::Notation;
pub use tool::{ArgumentBounds, Generated, ToolOptions};
pub use tool_name::{
    NameLock, NameSource, NamingFault, TOOL_NAME_BYTES_MAX, TOOL_PREFIX_BYTES_MAX, ToolNaming, is_tool_name,
    tool_names,
};
pub use written::WriteOnly;
