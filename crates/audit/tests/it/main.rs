//! The guarantees of the ledger, on real stores: SQLite always, PostgreSQL where `PG_URL` names one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run themselves again, and look into files; the room itself does neither"
)]

mod canary;
mod desk;
mod failing;
mod following;
mod killed;
mod reading;
mod tampering;
mod writing;
