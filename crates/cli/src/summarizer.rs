//! Who writes the summary: the embedded summarizer, a model over the network, or a program of the user's.

mod args;
mod asked_model;
mod asked_program;
mod fault;
mod hustles;
mod report;
mod rig_hustle;
mod watch;

pub(crate) use args::{SummarizerArgs, SummarizerKind};
pub(crate) use fault::SummarizerFault;
pub(crate) use hustles::Summarizing;
pub(crate) use report::{SummarizerReport, UsageReport, carried_rules, show_answer};
pub(crate) use rig_hustle::of_rig;
