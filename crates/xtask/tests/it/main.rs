//! The rules that the repository keeps: floors, closed doors, headers, generated files, words.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod clippy_toml;
mod documents;
mod floors;
mod headers;
mod lockfiles;
mod revisions;
mod words;

/// Fails with every fault at once.
#[track_caller]
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}
