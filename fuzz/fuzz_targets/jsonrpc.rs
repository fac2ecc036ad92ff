//! The fuzzer's way into `targets::jsonrpc`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::jsonrpc(data));
