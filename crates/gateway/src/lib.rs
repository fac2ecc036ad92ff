//! The order of the steps.

#![forbid(unsafe_code)]
