//! Tests and chores of the repository itself. What a person types is in `main.rs`; the rules that the repository keeps
//! are tests in `tests/it`. Nothing here is part of the product.

#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "chores tell on the terminal what they do"
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice,
        reason = "tests"
    )
)]

pub mod command;
pub mod corpus;
pub mod documents;
pub mod fuzz;
pub mod install;
pub mod repository;
pub mod rooms;
pub mod stage;
