//! The built binary against clients and tests that other people wrote. A binary of its own, because these are programs of
//! other languages that take a processor each: they are not to run beside tests that watch the clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "tests"
)]

mod behind;
mod clients;
mod conformance;
mod documents;
mod github;
mod grid;
mod inspector;
mod requests;
mod road;
mod schemas;
mod sdks;
mod servers;
mod styles;
mod through;
