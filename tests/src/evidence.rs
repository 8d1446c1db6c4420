//! Evidence: measures a promise of the project on real data and says whether it holds.

mod calibration;
mod cases;
mod cases_models;
mod cases_runtime;
mod conformance_all;
mod conformance_boundary;
mod conformance_reference;
mod conformance_structured;
mod counting;
mod crash;
mod explorer;
mod fuzz;
mod http_faults;
mod idle_memory;
mod injection;
mod many_loops;
mod many_sessions;
mod newcomer;
mod places;
mod program;
mod quality;
mod real_model;
mod roundtrip;
mod session_cost;
mod speed;
mod transcripts;

use std::io::{self, Write};

use crate::vectors::VectorError;

pub use places::Places;

/// A promise that can be measured.
pub struct Promise {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is measured, in one line.
    pub about: &'static str,
    /// Whether it needs the folder of shared data.
    pub needs_data: bool,
    run: fn(&Places, &mut dyn Write) -> Result<Verdict, EvidenceError>,
}

/// Every promise, sorted by name.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "bench",
        about: "every hot path reaches its target against its rival in the same run, or says why not",
        needs_data: false,
        run: speed::bench,
    },
    Promise {
        name: "calibration",
        about: "what providers report makes the next count better, and never worse",
        needs_data: true,
        run: calibration::run,
    },
    Promise {
        name: "cases",
        about: "faults that users of other tools reported do not happen here",
        needs_data: true,
        run: cases::run,
    },
    Promise {
        name: "cases-models",
        about: "faults in what a model answers are refused with their reason, or repaired by name",
        needs_data: true,
        run: cases_models::run,
    },
    Promise {
        name: "cases-runtime",
        about: "faults that users of other tools reported do not happen in a live session",
        needs_data: true,
        run: cases_runtime::run,
    },
    Promise {
        name: "commit-latency",
        about: "a durable commit costs little more than the disk does, alone and among a hundred sessions",
        needs_data: false,
        run: speed::commits,
    },
    Promise {
        name: "conformance-all",
        about: "every vector file of the reference is covered, and no answer is another one",
        needs_data: true,
        run: conformance_all::run,
    },
    Promise {
        name: "conformance-boundary",
        about: "what comes in, what goes out and what identifies both is as the reference has it",
        needs_data: true,
        run: conformance_boundary::run,
    },
    Promise {
        name: "conformance-reference",
        about: "our functions answer as the reference on every vector",
        needs_data: true,
        run: conformance_reference::run,
    },
    Promise {
        name: "conformance-structured",
        about: "the structured summarizer answers as the reference on every vector, or better by a named rule",
        needs_data: true,
        run: conformance_structured::run,
    },
    Promise {
        name: "counting",
        about: "token counts are as near to what providers counted as they say",
        needs_data: true,
        run: counting::run,
    },
    Promise {
        name: "crash",
        about: "what was acknowledged outlives the death of the writer, and nothing is half done",
        needs_data: false,
        run: crash::run,
    },
    Promise {
        name: "explorer",
        about: "a loop keeps its nine promises in every interleaving, and a loop that breaks one is found out",
        needs_data: false,
        run: explorer::run,
    },
    Promise {
        name: "fuzz",
        about: "a short run of every fuzz target finds nothing",
        needs_data: false,
        run: fuzz::run,
    },
    Promise {
        name: "http-faults",
        about: "whatever a provider does, a call ends with the right reason, in bounded time and memory, and shows nothing",
        needs_data: false,
        run: http_faults::run,
    },
    Promise {
        name: "injection",
        about: "hostile texts in a conversation get neither structure nor authority in its summary",
        needs_data: false,
        run: injection::run,
    },
    Promise {
        name: "many-loops",
        about: "thousands of sessions in one process answer every command once and lose no input",
        needs_data: false,
        run: many_loops::run,
    },
    Promise {
        name: "newcomer",
        about: "a fresh clone builds and passes its tests by the README's commands",
        needs_data: false,
        run: newcomer::run,
    },
    Promise {
        name: "quality",
        about: "the extractive summarizer keeps at least what the prototype keeps, within every budget",
        needs_data: true,
        run: quality::run,
    },
    Promise {
        name: "real-model",
        about: "a compaction by a real model, small and served here, ends in a valid summary or a typed refusal",
        needs_data: false,
        run: real_model::run,
    },
    Promise {
        name: "roundtrip",
        about: "everything that is written on the wire is read, and written again in the same bytes",
        needs_data: true,
        run: roundtrip::run,
    },
    Promise {
        name: "speed-foundation",
        about: "the hot paths reach their targets against rivals in the same run",
        needs_data: false,
        run: speed::foundation,
    },
    Promise {
        name: "termination",
        about: "a loop never asks for more summaries than growth, crossings and waiting pay for",
        needs_data: false,
        run: explorer::termination,
    },
    Promise {
        name: "transcripts",
        about: "real transcripts are compacted, or refused with a reason, and never crash the command",
        needs_data: true,
        run: transcripts::run,
    },
];

/// Whether a promise holds, in one line with figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it holds.
    pub holds: bool,
    /// The figures.
    pub line: String,
}

/// A promise could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// A program could not be started or read.
    #[error("{program}: {source}")]
    Program {
        /// Which program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program that must succeed did not.
    #[error("{program} ended with {code}")]
    Failed {
        /// Which program.
        program: String,
        /// Its exit code, or how it ended without one.
        code: String,
    },
    /// A file or folder is not as it must be.
    #[error("{what}")]
    Data {
        /// What is wrong with which file.
        what: String,
    },
    /// Figures cannot be printed.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
    /// Vectors cannot be read.
    #[error("{0}")]
    Vectors(#[from] VectorError),
}

/// The promise of this name.
#[must_use]
pub fn promise(name: &str) -> Option<&'static Promise> {
    PROMISES.iter().find(|promise| promise.name == name)
}

impl Promise {
    /// Measures, prints the figures, and ends with one summary line.
    ///
    /// # Errors
    /// [`EvidenceError`] when the promise cannot be measured.
    pub fn measure(&self, places: &Places, out: &mut dyn Write) -> Result<bool, EvidenceError> {
        let Verdict { holds, line } = (self.run)(places, out)?;
        let word = if holds { "holds" } else { "DOES NOT HOLD" };
        writeln!(out, "{}: {word}: {line}", self.name)?;
        Ok(holds)
    }
}
