//! Whatever a provider does, a call ends with the right typed reason, in bounded time and memory, and shows nothing
//! of what was said.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use epitome_loop::ModelClient;
use tokio::runtime::Builder;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{EvidenceError, Places, Verdict};
use crate::http_faults::{MOST_BYTES, PATIENCE, call, cases, faults_in_a_session, judge, leaks};

/// What a call may take beyond its own limit: starting and stopping threads on a busy machine.
const SLACK: Duration = Duration::from_millis(1_500);
/// What a call may grow the process by at its highest point: the limit of an answer in a buffer that has doubled,
/// a copy while it is read, and what the server and the connection hold.
const MOST_GROWTH: u64 = 4 * MOST_BYTES + 4_000_000;

/// Everything that any library logged.
static LOGGED: Mutex<String> = Mutex::new(String::new());

pub(super) fn run(_: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    capture_logs();
    let started = |source| EvidenceError::Program { program: "the runtime".to_owned(), source };
    // A worker of its own ends connections that were given up, while nobody waits for anything.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(started)?;
    let (mut played, mut floods, mut sessions) = (0_u32, 0_u32, 0_u32);
    let mut faults = Vec::new();
    let (mut longest, mut most_growth) = (Duration::ZERO, None);
    // The first call of all sets up what every later one shares.
    for case in cases().into_iter().take(1).chain(cases()) {
        let server = |source| EvidenceError::Program { program: "a server".to_owned(), source };
        let scene = case.start().map_err(server)?;
        let before = peak::begin();
        let begun = Instant::now();
        let outcome = runtime.block_on(scene.model.call(call()));
        let took = begun.elapsed();
        let growth = peak::growth(before);
        played += 1;
        longest = longest.max(took);
        let mut found = judge(&case, &scene, &outcome);
        if took > PATIENCE + SLACK {
            found.push(format!("it took {took:?}"));
        }
        if played > 1 {
            most_growth = most_growth.max(growth);
            if growth.is_some_and(|growth| growth > MOST_GROWTH) {
                found.push(format!("it took {} bytes of memory", growth.unwrap_or(0)));
            }
        }
        floods += u32::from(case.is_flood());
        let begun = Instant::now();
        found.extend(runtime.block_on(faults_in_a_session(&case)).map_err(server)?);
        sessions += 2;
        // Both tries of two hustles, and everything around them.
        if begun.elapsed() > 4 * (PATIENCE + SLACK) {
            found.push(format!("the sessions took {:?}", begun.elapsed()));
        }
        for fault in found {
            writeln!(out, "    FAULT: {}: {fault}", case.title())?;
            faults.push(fault);
        }
    }
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for fault in leaks(&logged) {
        writeln!(out, "    FAULT: log: {fault}")?;
        faults.push(fault);
    }
    if logged.is_empty() {
        // A log in which nothing stands shows nothing about what is kept out of it.
        faults.push("nothing was logged".to_owned());
    }
    let growth = most_growth.map_or("not known here".to_owned(), |bytes| format!("{bytes} bytes at most"));
    let line = format!(
        "{played} calls over 4 interfaces, {floods} of them answered with 50 MB, {} faults; the longest took {} ms, a call \
         takes {growth} of memory, {} bytes of logs show nothing; {sessions} sessions were compacted by such models, the history \
         of each refused one is what it was",
        faults.len(),
        longest.as_millis(),
        logged.len(),
    );
    Ok(Verdict { holds: faults.is_empty(), line })
}

/// Takes what is logged by either of the two ways that libraries have.
fn capture_logs() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Where somebody else listens already, nothing is captured and the figures say so.
        let _ = log::set_logger(&Logs).map(|()| log::set_max_level(log::LevelFilter::Trace));
        let _ = tracing::subscriber::set_global_default(Logs);
    });
}

fn note(text: &str) {
    LOGGED.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
}

struct Logs;

impl log::Log for Logs {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        note(&format!("{}: {}\n", record.target(), record.args()));
    }

    fn flush(&self) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Text takes all that is written to it.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Logs {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        note(&format!("{}: {}\n", span.metadata().name(), fields.0));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        note(&fields.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        note(&format!("{}: {}\n", event.metadata().target(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The highest point of this process's memory, as Linux keeps it.
mod peak {
    use std::fs;

    /// Starts anew; the memory in use now.
    pub(super) fn begin() -> Option<u64> {
        // 5 resets the highest point.
        fs::write("/proc/self/clear_refs", "5").ok()?;
        field("VmRSS:")
    }

    /// How far above its beginning it was.
    pub(super) fn growth(before: Option<u64>) -> Option<u64> {
        Some(field("VmHWM:")?.saturating_sub(before?))
    }

    fn field(name: &str) -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }
}
