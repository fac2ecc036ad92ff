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
mod challenge;
mod child;
mod credential;
mod duplex;
mod endpoint;
mod event_stream;
mod far;
mod fault;
mod inquiries;
mod launch;
mod link;
mod link_fault;
mod listening;
mod old_sse;
mod outgoing;
mod peer;
mod preview;
mod progress;
mod relay;
mod resume;
mod service;
mod streamable;
#[cfg(test)]
mod tests;
mod token;
mod transport;
mod work;

pub use answer::Answer;
pub use child::{Busy, Child, Children, PASSED_ON, StartFault, TooMany, Yard};
pub use credential::CredentialFault;
pub use duplex::{DuplexFault, End, Heard, LineBounds, Receiver, Sender};
pub use far::{Errand, Far, PrepareFault};
pub use fault::SendFault;
pub use inquiries::{Inquiries, Question};
pub use launch::{Launch, Protection, Role};
pub use outgoing::{Outgoing, Trip};
pub use peer::{Lane, Peer, PeerFault, Said, Survey};
pub use preview::Preview;
pub use progress::Progress;
pub use relay::{Relay, Step, Told, Wish};
pub use service::{Followed, Service, ServiceFault};
pub use token::TokenFault;
pub use work::{Ending, Lost};
