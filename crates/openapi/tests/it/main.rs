//! The room from outside: documents as people write them, hostile ones, and the requests that come out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod access;
mod bodies;
mod documents;
mod folding;
mod hostile;
mod inference;
mod inputs;
mod order;
mod outputs;
mod overlays;
mod parameters;
mod references;
mod requests;
mod schemas;
mod split;
mod support;
mod versions;
mod wire;
mod written;
