//! The service on a real socket with a real database: what it answers, what it counts, and that its document is true.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod client;
mod command;
mod document;
mod reviewed;
mod service;
