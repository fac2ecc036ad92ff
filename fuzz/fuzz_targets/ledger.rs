//! The fuzzer's way into `targets::ledger`.

#![no_main]

use tollhouse_fuzz::targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::ledger(data));
