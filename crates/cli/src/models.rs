//! `epitome models`.

use std::io::Write as _;

use epitome_counters::{Exactness, known_models};

use crate::failure::Failure;
use crate::report::{emphasis, tokens};

/// Lists the models of the table.
pub(crate) fn run() -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let mut write = || {
        writeln!(
            out,
            "{}",
            emphasis(format!(
                "{:<32} {:<12} {:>10} {:>10}  counts     as of",
                "model", "provider", "window", "output"
            ))
        )?;
        for model in known_models() {
            let counts = match model.exactness {
                Exactness::Published => "exact",
                _ => "estimated",
            };
            writeln!(
                out,
                "{:<32} {:<12} {:>10} {:>10}  {counts:<9}  {}",
                model.key.model.as_str(),
                model.key.provider.as_str(),
                tokens(model.limits.window.get()),
                tokens(model.limits.max_output.get()),
                model.as_of
            )?;
        }
        writeln!(out, "\nAny other model: give --window TOKENS.")
    };
    write().map_err(Failure::io("standard output"))
}
