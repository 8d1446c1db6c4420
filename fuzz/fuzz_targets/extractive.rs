//! See `epitome_tests::fuzzing::extractive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::extractive(bytes));
