//! Talks to the far side. Accepts only calls that are permitted **and** recorded; credentials are attached here, last.
//!
//! A call comes as `Recorded<Permitted<Call>>`, which only the ledger can make of what only the policy can make, so
//! that a path that skipped a step does not compile. Answers leave as they came, as untrusted bytes with a limit;
//! checking them is for `gateway`. Every outbound byte goes through `egress`.

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

mod answer;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod challenge;
mod credential;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod endpoint;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod event_stream;
mod fault;
mod link;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod link_fault;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod listening;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod old_sse;
mod outgoing;
mod preview;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod resume;
mod service;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod streamable;
#[cfg(test)]
mod tests;
mod token;
#[allow(dead_code, reason = "the peer of an MCP server is to be built on it")]
mod transport;
mod work;

pub use answer::Answer;
pub use credential::CredentialFault;
pub use fault::SendFault;
pub use outgoing::{Outgoing, Trip};
pub use preview::Preview;
pub use service::{Followed, Service, ServiceFault};
pub use token::TokenFault;
pub use work::{Ending, Lost, Progress};
