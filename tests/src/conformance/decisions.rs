//! Pressure and attempts: what a loop decides.

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextMeasurement, ContextRevision, CountQuality,
    EventId, InvalidMeasurement, MeasurementField, PressureLevel, RejectionReason, RequestFingerprint,
    Timestamp, Trigger,
};
use epitome_loopruntime::decision::{
    Admission, AdmissionError, AtBoundary, Attempt, AttemptReason, AttemptSlot, Boundary, Latch,
    NextBasisError, PressureTracker, Reading, Verdict, Waiter,
};
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::{ReadError, flag, number, read_basis, read_model, tokens, word};

/// Ours keeps to a latch that the reference does not have.
const LATCHED: &str = "latched";

pub(super) fn control(input: &Value, expect: &Value) -> Judgment {
    match control_steps(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(steps) => Judgment::of_answers(expect, &json!({"steps": steps})),
    }
}

fn control_steps(input: &Value) -> Result<Vec<Value>, ReadError> {
    let capacity = input["capacity"].as_i64().ok_or(ReadError::Malformed)?;
    let mut slot = AttemptSlot::with_capacity(usize::try_from(capacity).unwrap_or(0));
    let mut answers = Vec::new();
    for step in steps(input)? {
        let (next, mut answer) = control_step(slot, step)?;
        slot = next;
        answer["blocks_input"] = slot.blocks_input().into();
        answer["cancel_reason"] = slot.cancel_reason().map_or(0, RejectionReason::number).into();
        answers.push(answer);
    }
    Ok(answers)
}

fn control_step(slot: AttemptSlot, step: &Value) -> Result<(AttemptSlot, Value), ReadError> {
    let attempt_id = || id(step, "attempt_id", AttemptId::parse);
    Ok(match word(step, "op")? {
        "admit" => {
            let waiter = Waiter {
                created_at: Timestamp(number(step, "created_ns")?),
                command: id(step, "command_id", CommandId::parse)?,
            };
            let reason = match number(step, "agency")? {
                0 => AttemptReason::Automatic,
                1 => AttemptReason::Manual,
                // Ours has no other.
                _ => return Ok((slot, json!({"error": "invalid_command"}))),
            };
            match slot.clone().admit(waiter, reason, id(step, "new_id", AttemptId::parse)?) {
                Ok((slot, admission)) => (slot, admitted(admission)),
                Err(AdmissionError::NoAttempt) => (slot, json!({"error": "attempt_id"})),
                Err(_) => (slot, json!({"error": "invalid_command"})),
            }
        }
        "boundary" => {
            let (slot, reached) = match number(step, "boundary")? {
                1 => slot.boundary(Boundary::Step),
                2 => slot.boundary(Boundary::Turn),
                // No boundary of ours.
                _ => (slot, AtBoundary::Nothing),
            };
            let (kind, attempt, reason) = match &reached {
                AtBoundary::Nothing => ("none", None, 0),
                AtBoundary::Start(attempt) => ("start", Some(attempt), 0),
                AtBoundary::Reject(attempt, reason) => ("reject", Some(attempt), reason.number()),
            };
            (slot, json!({"kind": kind, "attempt": shown(attempt), "reject_reason": reason}))
        }
        "freeze" => match slot.freeze(attempt_id()?, read_basis(&step["basis"])?) {
            (slot, Ok(())) => (slot, json!({})),
            (slot, Err(_)) => (slot, json!({"error": "basis"})),
        },
        "started" => {
            let (slot, attempt) = slot.started(attempt_id()?, Timestamp(number(step, "at_ns")?));
            (slot, json!({"attempt": shown(attempt.as_ref())}))
        }
        "complete" => {
            let (slot, attempt) = slot.complete(attempt_id()?);
            (slot, json!({"attempt": shown(attempt.as_ref())}))
        }
        "interrupt" => (slot.interrupt(), json!({})),
        "shutdown" => (slot.shut_down(), json!({})),
        _ => return Err(ReadError::Malformed),
    })
}

fn admitted(admission: Admission) -> Value {
    let (kind, id) = match admission {
        Admission::Opened(id) => ("opened", id),
        Admission::Joined(id) => ("joined", id),
        Admission::Duplicate(id) => ("duplicate", id),
        Admission::LaneFull(id) => ("lane_full", id),
    };
    json!({"kind": kind, "attempt_id": id.to_string()})
}

fn shown(attempt: Option<&Attempt>) -> Value {
    let Some(attempt) = attempt else { return Value::Null };
    let waiters: Vec<String> = attempt.waiters.iter().map(|waiter| waiter.command.to_string()).collect();
    json!({
        "attempt_id": attempt.id.to_string(),
        "basis": basis_value(attempt.basis.unwrap_or_default()),
        "reason": match attempt.reason { AttemptReason::Manual => 1, AttemptReason::Automatic => 2 },
        "started_ns": attempt.started_at.unwrap_or_default().0,
        "waiters": waiters,
    })
}

/// Levels, occupancy and refusals must be equal, and our triggers a part of the reference's.
pub(super) fn tracker(input: &Value, expect: &Value) -> Judgment {
    let mut got = match tracker_steps(input) {
        Err(error) => return Judgment::unreadable(error, false),
        Ok(steps) => steps,
    };
    let expected = expect["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut is_latched = false;
    for (got, expected) in got.iter_mut().zip(expected) {
        // When an attempt counts as made is another matter there.
        let mut state = expected["state"].clone();
        state.as_object_mut().map(|state| state.remove("automatic_revision"));
        if got["state"] == state {
            got["state"] = expected["state"].clone();
        }
        if got["trigger_automatic"] == json!(false) && expected["trigger_automatic"] == json!(true) {
            is_latched = true;
            got["trigger_automatic"] = json!(true);
        }
    }
    match Judgment::of_answers(expect, &json!({"steps": got})) {
        Judgment::Equal if is_latched => Judgment::Stricter(LATCHED),
        other => other,
    }
}

fn tracker_steps(input: &Value) -> Result<Vec<Value>, ReadError> {
    let mut tracker = PressureTracker::default();
    let mut latch = Latch::default();
    let mut answers = Vec::new();
    for step in steps(input)? {
        let settings = if step["settings"].is_null() { &input["settings"] } else { &step["settings"] };
        let trigger = read_trigger(settings)?;
        let mut answer = match word(step, "op")? {
            "apply" => match read_measurement(&step["measurement"])? {
                Err(error) => refused(error),
                Ok(measurement) => match tracker.clone().apply(measurement.clone(), trigger) {
                    Err(error) => refused(field_name(error)),
                    Ok((next, change)) => {
                        tracker = next;
                        let reading = Reading {
                            basis: measurement.basis,
                            occupancy: change.occupancy,
                            level: change.current,
                        };
                        let (observed, verdict, _) = latch.observe(reading, trigger, Timestamp(1));
                        // There, an attempt counts when it is over, which is a step of its own.
                        latch = Latch { attempted: latch.attempted, ..observed };
                        json!({
                            "occupancy": change.occupancy.get(),
                            "previous": level_number(change.previous),
                            "current": level_number(change.current),
                            "measurement_changed": change.is_new_measurement,
                            "pressure_changed": change.previous != change.current,
                            "admission_error": matches!(verdict, Verdict::ContextLimit { .. }),
                            "trigger_automatic": verdict == Verdict::Attempt,
                        })
                    }
                },
            },
            "exhaust" => {
                if number(step, "reason")? == 2 && flag(step, "durable") {
                    latch.attempted = Some(read_basis(&step["basis"])?);
                }
                json!({})
            }
            "restore" => {
                if !step["automatic_basis"].is_null() {
                    latch.attempted = Some(read_basis(&step["automatic_basis"])?);
                }
                let measurement = match &step["measurement"] {
                    Value::Null => Ok(None),
                    given => read_measurement(given)?.map(Some),
                };
                let of_measurement = measurement.as_ref().ok().and_then(|at| at.as_ref()).map(|at| at.basis);
                let basis = match &step["basis"] {
                    Value::Null => of_measurement.unwrap_or_default(),
                    given => read_basis(given)?,
                };
                let restored = measurement.and_then(|measurement| {
                    PressureTracker::restore(basis, measurement, trigger).map_err(field_name)
                });
                let (next, answer) = match restored {
                    Ok(tracker) => (tracker, json!({})),
                    Err(field) => (PressureTracker::default().at(basis), refused(field)),
                };
                tracker = next;
                answer
            }
            "next_basis" => match tracker.next_basis(id(step, "event_id", EventId::parse)?) {
                Ok(basis) => {
                    if flag(step, "commit") {
                        tracker = tracker.at(basis);
                    }
                    json!({"basis": basis_value(basis)})
                }
                Err(NextBasisError::NoEvent) => refused("ThroughEventID"),
                Err(_) => json!({"error": "revision_overflow"}),
            },
            _ => return Err(ReadError::Malformed),
        };
        answer["state"] = json!({
            "has_measurement": tracker.measurement().is_some(),
            "pressure": level_number(tracker.level()),
            "revision": tracker.basis().revision.0,
        });
        answers.push(answer);
    }
    Ok(answers)
}

fn refused(field: &str) -> Value {
    json!({"error": "invalid_measurement", "field": field})
}

fn field_name(error: InvalidMeasurement) -> &'static str {
    match error.field {
        MeasurementField::Revision => "Revision",
        MeasurementField::ThroughEventId => "ThroughEventID",
        MeasurementField::Model => "Model",
        MeasurementField::RequestFingerprint => "RequestFingerprint",
        MeasurementField::InputLimit => "InputLimit",
    }
}

/// A measurement, or the field for which it cannot be held; absent fields are those of every measurement.
fn read_measurement(value: &Value) -> Result<Result<ContextMeasurement, &'static str>, ReadError> {
    let model = match &value["model"] {
        Value::Null => epitome_loop::ModelKey::new("p", "m"),
        given => read_model(given)?,
    };
    let request_fingerprint = match &value["request_fingerprint"] {
        Value::Null => RequestFingerprint::from_bytes([0x11; 32]),
        _ => RequestFingerprint::parse(word(value, "request_fingerprint")?)
            .map_err(|_| ReadError::Malformed)?,
    };
    let quality = u8::try_from(number(value, "quality")?).map_err(|_| ReadError::Malformed)?;
    let quality = CountQuality::from_number(quality);
    let measurement = ContextMeasurement {
        basis: read_basis(&value["basis"])?,
        model,
        request_fingerprint,
        input_tokens: tokens(value, "input_tokens")?,
        input_limit: tokens(value, "input_limit")?,
        quality: quality.unwrap_or(CountQuality::ExactProvider),
    };
    // Ours cannot hold a quality without a meaning; the reference looks at it last.
    Ok(match measurement.validate() {
        Ok(()) if quality.is_err() => Err("Quality"),
        _ => Ok(measurement),
    })
}

fn read_trigger(settings: &Value) -> Result<Trigger, ReadError> {
    let points =
        |key| u16::try_from(number(settings, key)?).map(BasisPoints).map_err(|_| ReadError::Malformed);
    Ok(if flag(settings, "automatic") {
        Trigger::Automatic { compact_at: points("compact_at")?, rearm_below: points("rearm_below")? }
    } else {
        Trigger::Manual
    })
}

fn level_number(level: PressureLevel) -> u8 {
    match level {
        PressureLevel::Unknown => 0,
        PressureLevel::Normal => 1,
        PressureLevel::Compact => 2,
        PressureLevel::HardLimit => 3,
    }
}

fn basis_value(basis: ContextBasis) -> Value {
    let ContextBasis { revision: ContextRevision(revision), through_event_id } = basis;
    json!({"revision": revision, "through_event_id": through_event_id.to_string()})
}

fn steps(input: &Value) -> Result<&[Value], ReadError> {
    input["steps"].as_array().map(Vec::as_slice).ok_or(ReadError::Malformed)
}

/// An id by key; empty text is the absent one.
fn id<I: Default, E>(step: &Value, key: &str, parse: impl Fn(&str) -> Result<I, E>) -> Result<I, ReadError> {
    match word(step, key)? {
        "" => Ok(I::default()),
        text => parse(text).map_err(|_| ReadError::Malformed),
    }
}
