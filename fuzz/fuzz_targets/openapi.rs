//! The fuzzer's way into `targets::openapi`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::openapi(data));
