//! Tests of the links to MCP servers over HTTP: real sockets on loopback, and a far side that says what a test wants,
//! byte by byte.

#![allow(
    clippy::disallowed_types,
    reason = "tests play the far side; the room itself neither listens nor connects"
)]

mod far;
mod listening;
mod old_sse;
mod streamable;
mod transport;
