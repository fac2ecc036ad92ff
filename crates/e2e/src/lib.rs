//! What the end-to-end tests stand on: the built binary, folders, services, issuers, clients. Tests only.
//!
//! Everything here listens on loopback and port 0, waits for ready lines instead of sleeping, and ends with its test.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "this crate is tests"
)]

pub mod behind;
pub mod bench;
pub mod binary;
pub mod children;
pub mod client;
pub mod desk;
pub mod driver;
pub mod example;
pub mod far;
pub mod house;
pub mod issuer;
pub mod ledger;
pub mod orders;
pub mod peer;
pub mod porter;
pub mod postgres;
pub mod raw;
pub mod said;
pub mod schema;
pub mod service;
pub mod socket;
pub mod talk;
pub mod tls;
