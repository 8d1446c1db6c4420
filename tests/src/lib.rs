//! Suites that cross layers: conformance with the reference's vectors, public fault cases, and evidence for
//! the project's promises.

pub mod cases;
pub mod conformance;
pub mod evidence;
mod reference_definitions;
mod reference_form;
mod scripted;
mod second_judge;
mod vectors;

pub use reference_form::{ReadError, read_message, read_messages};
pub use second_judge::{SecondVerdict, second_judge};
pub use vectors::{VectorCase, VectorError, read_vectors, with_deep_stack};
