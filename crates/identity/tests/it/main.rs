//! Tests of the identity room from outside: real signatures, every refusal, and random bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod api_keys;
mod http_words;
mod properties;
mod remembered;
mod signing;
mod tokens;
