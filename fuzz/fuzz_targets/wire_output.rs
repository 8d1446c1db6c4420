//! See `epitome_tests::fuzzing::wire_output`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::wire_output(bytes));
