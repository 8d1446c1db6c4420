//! The laws that fuzzing holds our libraries to.
//!
//! Each takes any bytes and panics when they break the law. A fuzz target is one line around one of these; the
//! stable tests replay the committed corpora through them.

#![expect(clippy::panic, reason = "a broken law is told by a panic")]

mod answer_normalizer;
mod extractive;
mod files;
mod order;
mod sameness;
mod script;
mod structured_reader;
mod summary_xml;
mod transcripts;
mod wire;

pub use answer_normalizer::answer_normalizer;
pub use extractive::extractive;
pub use files::{policy_file, rig_file};
pub use structured_reader::structured_reader;
pub use summary_xml::summary_xml;
pub use transcripts::{
    transcript_anthropic, transcript_claude_code, transcript_claude_stream_json, transcript_codex,
    transcript_detect, transcript_epitome, transcript_gemini, transcript_openai_chat,
    transcript_openai_responses, transcript_pi,
};
pub use wire::{wire_input, wire_output};

/// A law and the fuzz target that tries to break it.
#[derive(Clone, Copy)]
pub struct Law {
    /// Name of the target, of its file in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics when the bytes break the law.
    pub check: fn(&[u8]),
}

/// Every law, by name. A transcript format has the target `transcript_NAME`.
pub const LAWS: &[Law] = &[
    Law { name: "answer_normalizer", check: answer_normalizer },
    Law { name: "extractive", check: extractive },
    Law { name: "policy_file", check: policy_file },
    Law { name: "rig_file", check: rig_file },
    Law { name: "structured_reader", check: structured_reader },
    Law { name: "summary_xml", check: summary_xml },
    Law { name: "transcript_anthropic", check: transcript_anthropic },
    Law { name: "transcript_claude_code", check: transcript_claude_code },
    Law { name: "transcript_claude_stream_json", check: transcript_claude_stream_json },
    Law { name: "transcript_codex", check: transcript_codex },
    Law { name: "transcript_detect", check: transcript_detect },
    Law { name: "transcript_epitome", check: transcript_epitome },
    Law { name: "transcript_gemini", check: transcript_gemini },
    Law { name: "transcript_openai_chat", check: transcript_openai_chat },
    Law { name: "transcript_openai_responses", check: transcript_openai_responses },
    Law { name: "transcript_pi", check: transcript_pi },
    Law { name: "wire_input", check: wire_input },
    Law { name: "wire_output", check: wire_output },
];

/// The law of this name.
#[must_use]
pub fn law(name: &str) -> Option<&'static Law> {
    LAWS.iter().find(|law| law.name == name)
}
