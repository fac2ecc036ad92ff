//! The fuzzer's way into `targets::sse`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::sse(data));
