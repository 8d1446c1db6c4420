//! Everything that our encoder writes is read, and written again in the same bytes.

use std::io::Write;
use std::thread;

use epitome_sessionruntime::{WireFault, decode_input, encode_input};
use serde_json::Value;

use super::{EvidenceError, Places, Verdict};
use crate::conformance::read_input;
use crate::reference_form::{ReadError, base64_bytes};
use crate::vectors::{VectorCase, read_vectors, with_deep_stack};
use crate::wire_cases::{Covered, WireCases};
use crate::wire_laws::{check_written, normal_form};

/// How many inputs are made up.
const CASES: u64 = 1_000_000;

/// They are made up in batches of this size, each from a seed of its own, so that the number of threads does
/// not change what is made up.
const BATCH: u64 = 10_000;

/// One in so many batches is made up once more, with halves that no constructor makes.
const WITH_HALVES: u64 = 10;

/// A broken law is shown with its case this many times.
const MOST_SHOWN: usize = 5;

/// The stack of a worker: decoding nests as deep as tool results may.
const STACK_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let made = make_up()?;
    for (name, count) in &made.covered {
        writeln!(out, "    {name:32} {count:>9}")?;
    }
    for fault in made.faults.iter().take(MOST_SHOWN) {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let vectors = with_deep_stack(|| check_vectors(places))??;
    for fault in vectors.faults.iter().take(MOST_SHOWN) {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let faults = made.faults.len() + vectors.faults.len();
    let whole = made.cases == CASES && made.covered.len() == WireCases::KINDS && vectors.same > 0;
    let line = format!(
        "{} made-up inputs of {} kinds of content, {:.1} MB, {} more that hold halves and settle, and {} canonical forms of vectors ({} of them \
         after one reading, as in the reference; {} more are no text, and refused): {faults} not the same",
        made.cases,
        made.covered.len(),
        made.bytes as f64 / 1e6,
        made.with_halves,
        vectors.same + vectors.settled,
        vectors.settled,
        vectors.not_text,
    );
    Ok(Verdict { holds: faults == 0 && whole, line })
}

#[derive(Default)]
struct MadeUp {
    cases: u64,
    bytes: u64,
    with_halves: u64,
    covered: Covered,
    faults: Vec<String>,
}

fn make_up() -> Result<MadeUp, EvidenceError> {
    let workers = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let failed = |source| EvidenceError::Program { program: "a thread".to_owned(), source };
    thread::scope(|scope| {
        let start = |worker| {
            let work = move || {
                let mut made = MadeUp::default();
                for batch in (worker..CASES / BATCH).step_by(usize::try_from(workers).unwrap_or(1)) {
                    made.add_batch(batch);
                }
                made
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).map_err(failed)
        };
        let running = (0..workers).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut made = MadeUp::default();
        for worker in running {
            made.add(worker.join().map_err(|_| crate::VectorError::Panicked)?);
        }
        Ok(made)
    })
}

impl MadeUp {
    fn add_batch(&mut self, batch: u64) {
        let mut cases = WireCases::new(batch);
        for case in 0..BATCH {
            let input = cases.next_input();
            self.cases += 1;
            match check_written(&input) {
                // Blocks made by their constructors have no halves, so the very bytes must come back.
                Ok(written) if decode_input(&written).is_ok_and(|read| encode_input(&read) == written) => {
                    self.bytes += written.len() as u64;
                }
                Ok(_) => self.faults.push(format!("batch {batch}, case {case}: other bytes")),
                Err(broken) => self.faults.push(format!("batch {batch}, case {case}: {broken}")),
            }
        }
        self.add_covered(cases.covered);
        if batch.is_multiple_of(WITH_HALVES) {
            self.add_halves(batch);
        }
    }

    /// Halves are dropped when they are read; what is left then stays the same.
    fn add_halves(&mut self, batch: u64) {
        let mut cases = WireCases::with_halves(batch);
        for case in 0..BATCH {
            match check_written(&cases.next_input()) {
                Ok(_) => self.with_halves += 1,
                Err(broken) => self.faults.push(format!("batch {batch}, case {case}, with halves: {broken}")),
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.bytes += other.bytes;
        self.with_halves += other.with_halves;
        self.faults.extend(other.faults);
        self.add_covered(other.covered);
    }

    fn add_covered(&mut self, covered: Covered) {
        for (name, count) in covered {
            *self.covered.entry(name).or_default() += count;
        }
    }
}

#[derive(Default)]
struct Vectors {
    same: usize,
    settled: usize,
    not_text: usize,
    faults: Vec<String>,
}

/// The canonical form of every vector that the reference accepts must come back in the same bytes.
fn check_vectors(places: &Places) -> Result<Vectors, EvidenceError> {
    let folder = places.shared.join("vectors/reference");
    let mut vectors = Vectors::default();
    for file in ["input_decode", "input_wire"] {
        for case in read_vectors(&folder.join(format!("{file}.jsonl")))? {
            if case.expect["ok"] == true {
                vectors.add(&case);
            }
        }
    }
    Ok(vectors)
}

impl Vectors {
    fn add(&mut self, case: &VectorCase) {
        let Some(wire) = written_by_the_reference(case) else {
            self.faults.push(format!("{}: no canonical form", case.id));
            return;
        };
        match decode_input(&wire).map(|read| encode_input(&read)) {
            Ok(canonical) if canonical == wire => self.same += 1,
            Ok(canonical) if settles(case, &wire, &canonical) => self.settled += 1,
            Ok(_) => self.faults.push(format!("{}: other bytes", case.id)),
            Err(error) if error.fault == WireFault::Utf8 && std::str::from_utf8(&wire).is_err() => {
                self.not_text += 1;
            }
            Err(error) => self.faults.push(format!("{}: {error}", case.id)),
        }
    }
}

/// The bytes that the reference writes: what it encodes an input to, or what it encodes again after decoding.
fn written_by_the_reference(case: &VectorCase) -> Option<Vec<u8>> {
    let expect = &case.expect;
    let given = if expect["canonical_same"] == true { &case.input } else { &Value::Null };
    let written = [&expect["wire"], &expect["canonical"], given].into_iter().find_map(Value::as_str);
    let encoded = [&expect["wire_b64"], &expect["canonical_b64"], &given["b64"]];
    written
        .map(|text| text.as_bytes().to_vec())
        .or_else(|| encoded.into_iter().find_map(|encoded| base64_bytes(encoded).ok()))
}

/// Some of what the reference writes is not yet canonical: halves (a state without a format, a format without
/// a state, a signature's format without a signature), which it drops when it reads, and `\ufffd` for bytes
/// that are no text, which it writes raw once they have been read. True when that is all that has changed, and
/// the bytes have settled.
fn settles(case: &VectorCase, wire: &[u8], canonical: &[u8]) -> bool {
    let again = decode_input(canonical);
    let same_value = match read_input(&case.input) {
        Ok(Ok(input)) => normal_form(&input).is_some_and(|normal| encode_input(&normal) == canonical),
        Err(ReadError::NotUtf8) => decode_input(wire) == again,
        _ => false,
    };
    same_value && again.is_ok_and(|read| encode_input(&read) == canonical)
}
