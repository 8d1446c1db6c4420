//! See `epitome_tests::fuzzing::structured_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::structured_reader(bytes));
