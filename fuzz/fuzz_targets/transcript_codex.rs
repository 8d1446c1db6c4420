//! See `epitome_tests::fuzzing::transcript_codex`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::transcript_codex(bytes));
