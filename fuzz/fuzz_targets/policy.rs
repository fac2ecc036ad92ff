//! The fuzzer's way into `targets::policy`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::policy(data));
