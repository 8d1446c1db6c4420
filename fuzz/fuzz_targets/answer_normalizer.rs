//! See `epitome_tests::fuzzing::answer_normalizer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::answer_normalizer(bytes));
