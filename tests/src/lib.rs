//! Suites that cross layers: conformance with the reference's vectors, public fault cases, and evidence for
//! the project's promises. Without the feature `suites`, only the laws that fuzzing tries to break.

#[cfg(feature = "suites")]
pub mod cases;
#[cfg(feature = "suites")]
pub mod conformance;
#[cfg(feature = "suites")]
pub mod crash_workload;
#[cfg(feature = "suites")]
mod damage;
#[cfg(feature = "suites")]
pub mod driven;
#[cfg(feature = "suites")]
pub mod evidence;
pub mod explorer;
#[cfg(feature = "suites")]
mod faulty_journal;
pub mod fuzzing;
#[cfg(feature = "suites")]
pub mod http_faults;
#[cfg(feature = "suites")]
pub mod injection;
#[cfg(feature = "suites")]
mod journal_laws;
#[cfg(feature = "suites")]
pub mod loopback;
#[cfg(feature = "suites")]
mod reference_definitions;
#[cfg(feature = "suites")]
mod reference_form;
#[cfg(feature = "suites")]
mod scripted;
mod second_judge;
#[cfg(feature = "suites")]
pub mod session_scene;
#[cfg(feature = "suites")]
mod vectors;
mod wire_cases;
mod wire_laws;

#[cfg(feature = "suites")]
pub use damage::{AfterDamage, DamageError, DamagedJournal};
#[cfg(feature = "suites")]
pub use faulty_journal::{AppendFault, FaultyJournal, INJECTED};
#[cfg(feature = "suites")]
pub use journal_laws::{JOURNAL_LAWS, JournalLaw, wait};
#[cfg(feature = "suites")]
pub use reference_form::{ReadError, read_message, read_messages};
pub use second_judge::{SecondVerdict, second_judge};
#[cfg(feature = "suites")]
pub use vectors::{VectorCase, VectorError, read_vectors, with_deep_stack};
pub use wire_cases::{Covered, WireCases};
pub use wire_laws::{BrokenLaw, check_written, normal_form};
