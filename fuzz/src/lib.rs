//! What is fuzzed. The entry points are in `fuzz_targets/`, the inputs to start from in `corpus/`.

#![forbid(unsafe_code)]

pub mod targets;
