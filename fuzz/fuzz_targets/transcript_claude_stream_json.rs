//! See `epitome_tests::fuzzing::transcript_claude_stream_json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epitome_tests::fuzzing::transcript_claude_stream_json(bytes));
