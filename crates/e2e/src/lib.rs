//! Tests only.

#![forbid(unsafe_code)]
