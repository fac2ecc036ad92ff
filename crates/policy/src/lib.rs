//! Rules and facts in, verdict with reasons out.

#![forbid(unsafe_code)]
