//! Tests of the dialer from outside: real sockets on loopback, real TLS, nothing beyond this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests play the far side and run themselves again; the room itself does neither"
)]

mod breaking;
mod dialing;
mod environment;
mod following;
mod network;
mod requests;
mod server;
mod sizes;
mod tls;
mod waiting;
