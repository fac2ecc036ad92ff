//! Tests of the dialer from outside: real sockets on loopback, real TLS, nothing beyond this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
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
