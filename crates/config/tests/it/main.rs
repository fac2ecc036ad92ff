//! The room from outside: texts in, settings or faults out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod faults;
mod hostile;
mod secrets;
mod settings;
mod system;
mod world;
