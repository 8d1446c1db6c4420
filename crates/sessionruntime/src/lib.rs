#![doc = include_str!("../README.md")]

mod fitting;
mod wire;

pub use fitting::{CompactionInputTooLarge, FittedInput, OMITTED_TOOL_RESULT, fit_input};
pub use wire::{WIRE_VERSION, encode_input};
