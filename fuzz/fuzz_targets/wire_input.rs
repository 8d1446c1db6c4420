//! See `epitome_tests::fuzzing::wire_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::wire_input(bytes));
