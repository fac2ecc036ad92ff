//! The fuzzer's way into `targets::review`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::review(data));
