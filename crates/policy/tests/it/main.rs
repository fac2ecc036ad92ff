//! Tests of the policy room through its public face: real rules, real decisions, no clock and no network.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "tests; one writes a golden file on demand, one measures that hostile texts are refused soon"
)]

mod decisions;
mod faults;
mod hostile;
mod leeway;
mod listing;
mod properties;
mod schema;
mod world;
