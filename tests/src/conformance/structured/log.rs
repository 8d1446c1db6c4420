//! Keeps what is logged while something runs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One event.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) fields: BTreeMap<&'static str, String>,
}

impl Logged {
    /// A field's text, or nothing.
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Logged>>>);

/// Runs something and gives back what it logged.
pub(super) fn logged<T>(work: impl FnOnce() -> T) -> (T, Vec<Logged>) {
    let log = Log::default();
    let value = tracing::subscriber::with_default(log.clone(), work);
    let events = std::mem::take(&mut *log.0.lock().unwrap_or_else(PoisonError::into_inner));
    (value, events)
}

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let logged =
            Logged { level: *metadata.level(), target: metadata.target().to_owned(), fields: fields.0 };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(logged);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
