//! The store's guarantees, on real databases: SQLite always, PostgreSQL where `PG_URL` names one.
//!
//! `PG_URL=postgres://postgres@127.0.0.1:5432/postgres cargo test -p tollhouse-store`; each test makes a schema of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "tests"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests play other processes and silent servers; the room itself does not"
)]

mod commands;
mod engines;
mod facts;
mod faults;
mod keys;
mod ledger;
mod opening;
mod secrets;
