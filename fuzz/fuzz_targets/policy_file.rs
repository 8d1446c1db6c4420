//! See `epitome_tests::fuzzing::policy_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::policy_file(bytes));
