//! The agent-facing ports: HTTP and stdio. Limits, `Host` and `Origin`, who is calling, draining.
//!
//! This room reads bytes and writes bytes. What they mean is the wire's, what becomes of a call is the gateway's. It
//! knows no revision by name: it asks the wire for facts about one.
//!
//! Read first: `post.rs`, the way of a POST; `stdio.rs`, the way of a line.

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

mod activity;
mod answer;
mod calls;
mod door;
mod events;
mod http;
mod key_sets;
mod listen;
mod listening;
mod media;
mod origin;
mod post;
mod questions;
mod refuse;
mod rounds;
mod stdio;

pub use door::{Door, DoorParts};
pub use http::{Face, FaceOptions};
pub use key_sets::{KeySetKeeper, KeySetSource};
pub use listen::{ListenFault, Listener};
pub use origin::Neighbours;
pub use stdio::{StdioFault, stdio};
