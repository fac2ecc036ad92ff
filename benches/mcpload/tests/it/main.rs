//! The built command against a server that can be wrong in every way that a verifier has to notice.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod compare;
mod run;
mod server;
