//! Talks to the far side; accepts only recorded and permitted calls.

#![forbid(unsafe_code)]
