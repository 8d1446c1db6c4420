//! See `epitome_tests::fuzzing::summary_xml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::summary_xml(bytes));
