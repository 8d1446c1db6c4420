//! Reading records, of every version from 1 on.

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextLimits, ContextMeasurement, ContextRevision,
    CountQuality, EventId, IdentityError, ModelKey, RejectionReason, RequestFingerprint, SharedText,
    Timestamp, TokenCount, WaiterReplyId,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Disarmed, Latch, LatchState, Waiter};

use super::content_read::{Media, blob, message, raw, usage};
use super::{CodecError, CodecFault, RECORD_VERSION};
use crate::journal::{
    AttemptStart, Committed, Imported, JournalRecord, MessageRange, RecordBody, SessionOpened, StableName,
    StoredRecord, WaiterOutcome,
};
use crate::wire::{Fault, Keys, Read, Reader, WireFault};

const KEYS: [&str; 4] = ["version", "kind", "at", "body"];

pub(super) fn record(stored: &StoredRecord, media: &mut Media<'_>) -> Result<JournalRecord, CodecError> {
    let text = std::str::from_utf8(&stored.body)
        .map_err(|fault| Fault::new(WireFault::Utf8, fault.valid_up_to()))?;
    let mut reader = Reader::new(text);
    let (mut version, mut at, mut kind) = (None, 0, None);
    let (mut is_known, mut body) = (true, None);
    let read = reader.object(&KEYS, |reader, index| {
        match index {
            0 => version = Some(reader.unsigned()?),
            1 => kind = Some(reader.short_text()?),
            2 => at = reader.unsigned()?,
            _ => match (version, &kind) {
                (Some(version @ 1..=RECORD_VERSION), Some(kind)) => {
                    body = read_body(reader, version, kind, media)?;
                    is_known = body.is_some();
                }
                // A version that is not known, or a body in front of what says how it is to be read.
                _ => reader.pass_over()?,
            },
        }
        Ok(())
    });
    // That it is newer goes before whatever else is not understood.
    match version {
        Some(found) if found > RECORD_VERSION => return Err(CodecFault::NewerVersion { found }.at(0)),
        Some(1..) => {}
        _ => return Err(CodecFault::NoVersion.at(0)),
    }
    let keys = read?;
    reader.end()?;
    keys.require(Keys::first(KEYS.len()), reader.at())?;
    if !is_known {
        return Err(CodecFault::UnknownKind.at(0));
    }
    let body = body.ok_or(Fault::new(WireFault::MissingKey, 0))?;
    Ok(JournalRecord { id: stored.id, at: Timestamp(at), body })
}

/// The body of a record of this kind; `None`, and behind it, when the kind is not known in this version.
fn read_body(
    reader: &mut Reader<'_>,
    version: u64,
    kind: &str,
    media: &mut Media<'_>,
) -> Read<Option<RecordBody>> {
    Ok(Some(match (kind, version) {
        ("opened", 1) => opened_1(reader)?,
        ("opened", _) => opened(reader)?,
        ("imported", 3..) => imported(reader, media)?,
        ("appended", _) => appended(reader, media)?,
        ("measured", _) => {
            let mut measured = None;
            all(reader, &["measurement"], |reader, _| {
                measured = Some(measurement(reader)?);
                Ok(())
            })?;
            RecordBody::Measured(there(measured, reader)?)
        }
        ("started", _) => started(reader)?,
        ("committed", _) => committed(reader)?,
        ("rejected", version) => rejected(reader, version)?,
        ("answered", _) => answered(reader)?,
        ("undone", _) => RecordBody::Undone { in_force: in_force(reader)? },
        ("redone", _) => RecordBody::Redone { in_force: in_force(reader)? },
        ("latched", _) => latched(reader)?,
        _ => {
            reader.pass_over()?;
            return Ok(None);
        }
    }))
}

/// Reads an object with all of these keys.
fn all(
    reader: &mut Reader<'_>,
    keys: &[&str],
    value: impl FnMut(&mut Reader<'_>, usize) -> Read<()>,
) -> Read<()> {
    reader.object(keys, value)?.require(Keys::first(keys.len()), reader.at())
}

/// A value of a key that is known to be there.
fn there<T>(value: Option<T>, reader: &Reader<'_>) -> Read<T> {
    value.ok_or(Fault::new(WireFault::MissingKey, reader.at()))
}

fn optional<T>(reader: &mut Reader<'_>, value: impl FnOnce(&mut Reader<'_>) -> Read<T>) -> Read<Option<T>> {
    if reader.null() { Ok(None) } else { value(reader).map(Some) }
}

/// An opening as version 1 had it: of the limits it knew the window alone.
fn opened_1(reader: &mut Reader<'_>) -> Read<RecordBody> {
    opened_with(reader, &["model", "window", "policy_revision", "tools"], |reader| {
        Ok(ContextLimits { window: TokenCount(reader.unsigned()?), ..ContextLimits::default() })
    })
}

fn opened(reader: &mut Reader<'_>) -> Read<RecordBody> {
    opened_with(reader, &["model", "limits", "policy_revision", "tools"], |reader| {
        let mut limits = ContextLimits::default();
        all(reader, &["window", "max_input", "max_output"], |reader, index| {
            let limit = match index {
                0 => &mut limits.window,
                1 => &mut limits.max_input,
                _ => &mut limits.max_output,
            };
            *limit = TokenCount(reader.unsigned()?);
            Ok(())
        })?;
        Ok(limits)
    })
}

fn opened_with(
    reader: &mut Reader<'_>,
    keys: &[&str; 4],
    mut read_limits: impl FnMut(&mut Reader<'_>) -> Read<ContextLimits>,
) -> Read<RecordBody> {
    let (mut key, mut limits, mut revision, mut tools) = (None, None, None, Vec::new());
    all(reader, keys, |reader, index| {
        match index {
            0 => key = Some(model(reader)?),
            1 => limits = Some(read_limits(reader)?),
            2 => revision = Some(reader.text()?),
            _ => reader.array(|reader| {
                tools.push(raw(reader)?);
                Ok(())
            })?,
        }
        Ok(())
    })?;
    Ok(RecordBody::Opened(SessionOpened {
        model: there(key, reader)?,
        limits: there(limits, reader)?,
        policy_revision: there(revision, reader)?,
        tools: tools.into(),
    }))
}

fn imported(reader: &mut Reader<'_>, media: &mut Media<'_>) -> Read<RecordBody> {
    let (mut format, mut conversation, mut file, mut source, mut repairs) = (None, None, None, None, 0);
    all(reader, &["format", "conversation", "name", "source", "repairs"], |reader, index| {
        match index {
            0 => format = Some(name(reader)?),
            1 => conversation = optional(reader, |reader| reader.unsigned())?,
            2 => file = optional(reader, |reader| reader.text())?,
            3 => source = Some(blob(reader, media)?),
            _ => repairs = reader.unsigned()?,
        }
        Ok(())
    })?;
    Ok(RecordBody::Imported(Imported {
        format: there(format, reader)?,
        conversation,
        name: file,
        source: there(source, reader)?,
        repairs,
    }))
}

fn appended(reader: &mut Reader<'_>, media: &mut Media<'_>) -> Read<RecordBody> {
    let (mut first, mut messages) = (0, Vec::new());
    all(reader, &["first", "messages"], |reader, index| {
        match index {
            0 => first = reader.unsigned()?,
            _ => reader.array(|reader| {
                messages.push(message(reader, media)?);
                Ok(())
            })?,
        }
        Ok(())
    })?;
    Ok(RecordBody::Appended { first, messages: messages.into() })
}

fn started(reader: &mut Reader<'_>) -> Read<RecordBody> {
    let (mut attempt, mut reason, mut on) = (None, None, None);
    let mut waiters = Vec::new();
    all(reader, &["attempt", "reason", "basis", "waiters"], |reader, index| {
        match index {
            0 => attempt = Some(identity(reader, AttemptId::parse)?),
            1 => {
                reason = Some(one_of(
                    reader,
                    &[("manual", AttemptReason::Manual), ("automatic", AttemptReason::Automatic)],
                )?);
            }
            2 => on = Some(basis(reader)?),
            _ => reader.array(|reader| {
                waiters.push(waiter(reader)?);
                Ok(())
            })?,
        }
        Ok(())
    })?;
    Ok(RecordBody::Started(AttemptStart {
        attempt: there(attempt, reader)?,
        reason: there(reason, reader)?,
        basis: there(on, reader)?,
        waiters: waiters.into(),
    }))
}

fn waiter(reader: &mut Reader<'_>) -> Read<Waiter> {
    let (mut command, mut created_at) = (None, Timestamp::default());
    all(reader, &["command", "created_at"], |reader, index| {
        match index {
            0 => command = Some(identity(reader, CommandId::parse)?),
            _ => created_at = Timestamp(reader.unsigned()?),
        }
        Ok(())
    })?;
    Ok(Waiter { created_at, command: there(command, reader)? })
}

const COMMITTED: [&str; 14] = [
    "attempt",
    "basis",
    "post",
    "summary",
    "retained",
    "leading",
    "before",
    "after",
    "summary_tokens",
    "landing",
    "usage",
    "cost_micro_usd",
    "repairs",
    "degraded",
];

fn committed(reader: &mut Reader<'_>) -> Read<RecordBody> {
    let (mut attempt, mut on, mut post, mut summary) = (None, None, None, SharedText::default());
    let (mut retained, mut leading, mut before, mut after) = (Vec::new(), 0, None, None);
    let (mut summary_tokens, mut landing, mut of_model, mut cost_micro_usd) =
        (TokenCount::ZERO, None, None, None);
    let (mut repairs, mut degraded) = (Vec::new(), None);
    all(reader, &COMMITTED, |reader, index| {
        match index {
            0 => attempt = Some(identity(reader, AttemptId::parse)?),
            1 => on = Some(basis(reader)?),
            2 => post = Some(basis(reader)?),
            3 => summary = reader.text()?,
            4 => reader.array(|reader| {
                retained.push(range(reader)?);
                Ok(())
            })?,
            5 => leading = reader.unsigned()?,
            6 => before = Some(measurement(reader)?),
            7 => after = Some(measurement(reader)?),
            8 => summary_tokens = TokenCount(reader.unsigned()?),
            9 => landing = Some(one_of(reader, &[("low", Landing::Low), ("high", Landing::High)])?),
            10 => of_model = usage(reader)?,
            11 => cost_micro_usd = optional(reader, |reader| reader.unsigned())?,
            12 => reader.array(|reader| {
                repairs.push(name(reader)?);
                Ok(())
            })?,
            _ => degraded = optional(reader, name)?,
        }
        Ok(())
    })?;
    Ok(RecordBody::Committed(Box::new(Committed {
        attempt: there(attempt, reader)?,
        basis: there(on, reader)?,
        post: there(post, reader)?,
        summary,
        retained: retained.into(),
        leading,
        before: there(before, reader)?,
        after: there(after, reader)?,
        summary_tokens,
        landing: there(landing, reader)?,
        usage: of_model,
        cost_micro_usd,
        repairs: repairs.into(),
        degraded,
    })))
}

fn range(reader: &mut Reader<'_>) -> Read<MessageRange> {
    let at = reader.at();
    let mut ends = Vec::with_capacity(2);
    reader.array(|reader| {
        ends.push(reader.unsigned()?);
        Ok(())
    })?;
    match ends.as_slice() {
        [first, end] => Ok(MessageRange { first: *first, end: *end }),
        _ => Err(Fault::new(WireFault::WrongType, at)),
    }
}

fn rejected(reader: &mut Reader<'_>, version: u64) -> Read<RecordBody> {
    let keys: &[&str] = match version {
        ..4 => &["attempt", "reason", "detail"],
        _ => &["attempt", "reason", "detail", "usage"],
    };
    let (mut attempt, mut reason, mut detail, mut spent) = (None, None, None, None);
    all(reader, keys, |reader, index| {
        match index {
            0 => attempt = Some(identity(reader, AttemptId::parse)?),
            1 => reason = Some(numbered(reader, RejectionReason::from_number)?),
            2 => detail = optional(reader, name)?,
            _ => spent = usage(reader)?,
        }
        Ok(())
    })?;
    let (attempt, reason) = (there(attempt, reader)?, there(reason, reader)?);
    Ok(RecordBody::Rejected { attempt, reason, detail, usage: spent })
}

fn answered(reader: &mut Reader<'_>) -> Read<RecordBody> {
    let (mut attempt, mut command, mut resolved, mut reply) = (None, None, false, None);
    all(reader, &["attempt", "command", "resolved", "reply"], |reader, index| {
        match index {
            0 => attempt = Some(identity(reader, AttemptId::parse)?),
            1 => command = Some(identity(reader, CommandId::parse)?),
            2 => resolved = reader.boolean()?,
            _ => reply = Some(identity(reader, WaiterReplyId::parse)?),
        }
        Ok(())
    })?;
    Ok(RecordBody::Answered(WaiterOutcome {
        attempt: there(attempt, reader)?,
        command: there(command, reader)?,
        resolved,
        reply: there(reply, reader)?,
    }))
}

fn in_force(reader: &mut Reader<'_>) -> Read<u64> {
    let mut in_force = 0;
    all(reader, &["in_force"], |reader, _| {
        in_force = reader.unsigned()?;
        Ok(())
    })?;
    Ok(in_force)
}

fn latched(reader: &mut Reader<'_>) -> Read<RecordBody> {
    let mut latch = Latch::default();
    all(reader, &["disarmed", "attempted", "failures", "failed_at"], |reader, index| {
        match index {
            0 => {
                latch.state = optional(reader, disarmed)?.unwrap_or(LatchState::Armed);
            }
            1 => latch.attempted = optional(reader, basis)?,
            2 => {
                let at = reader.at();
                let failures = u32::try_from(reader.unsigned()?);
                latch.failures = failures.map_err(|_| Fault::new(WireFault::Number, at))?;
            }
            _ => latch.failed_at = Timestamp(reader.unsigned()?),
        }
        Ok(())
    })?;
    Ok(RecordBody::Latched(latch))
}

fn disarmed(reader: &mut Reader<'_>) -> Read<LatchState> {
    let (mut why, mut landing) = (None, None);
    all(reader, &["why", "landing"], |reader, index| {
        if index == 0 {
            let all = [Disarmed::LandedHigh, Disarmed::Failed, Disarmed::Cannot, Disarmed::Undone];
            why = Some(numbered(reader, |number| all.into_iter().find(|why| *why as u8 == number))?);
        } else {
            landing = optional(reader, |reader| {
                let at = reader.at();
                let points = u16::try_from(reader.unsigned()?).ok();
                let points = points.map(BasisPoints).filter(|points| *points <= BasisPoints::FULL_SCALE);
                points.ok_or(Fault::new(WireFault::Number, at))
            })?;
        }
        Ok(())
    })?;
    Ok(LatchState::Disarmed { why: there(why, reader)?, landing })
}

fn measurement(reader: &mut Reader<'_>) -> Read<ContextMeasurement> {
    let (mut of, mut key, mut print, mut quality) = (None, None, None, None);
    let (mut tokens, mut limit) = (TokenCount::ZERO, TokenCount::ZERO);
    let keys = ["basis", "model", "request_fingerprint", "input_tokens", "input_limit", "quality"];
    all(reader, &keys, |reader, index| {
        match index {
            0 => of = Some(basis(reader)?),
            1 => key = Some(model(reader)?),
            2 => print = Some(identity(reader, RequestFingerprint::parse)?),
            3 => tokens = TokenCount(reader.unsigned()?),
            4 => limit = TokenCount(reader.unsigned()?),
            _ => {
                let all =
                    [CountQuality::ExactProvider, CountQuality::ExactLocal, CountQuality::HeuristicEstimate];
                quality = Some(one_of(reader, &all.map(|quality| (quality.as_str(), quality)))?);
            }
        }
        Ok(())
    })?;
    Ok(ContextMeasurement {
        basis: there(of, reader)?,
        model: there(key, reader)?,
        request_fingerprint: there(print, reader)?,
        input_tokens: tokens,
        input_limit: limit,
        quality: there(quality, reader)?,
    })
}

fn basis(reader: &mut Reader<'_>) -> Read<ContextBasis> {
    let mut basis = ContextBasis::default();
    all(reader, &["revision", "through_event_id"], |reader, index| {
        match index {
            0 => basis.revision = ContextRevision(reader.unsigned()?),
            _ => basis.through_event_id = identity(reader, EventId::parse)?,
        }
        Ok(())
    })?;
    Ok(basis)
}

fn model(reader: &mut Reader<'_>) -> Read<ModelKey> {
    let mut key = ModelKey::new("", "");
    all(reader, &["provider", "model"], |reader, index| {
        match index {
            0 => key.provider = reader.text()?,
            _ => key.model = reader.text()?,
        }
        Ok(())
    })?;
    Ok(key)
}

fn name(reader: &mut Reader<'_>) -> Read<StableName> {
    let at = reader.at();
    StableName::read(&reader.short_text()?).map_err(|_| Fault::new(WireFault::UnknownName, at))
}

/// An identity in its canonical text.
fn identity<T>(reader: &mut Reader<'_>, parse: impl FnOnce(&str) -> Result<T, IdentityError>) -> Read<T> {
    let at = reader.at();
    parse(&reader.short_text()?).map_err(|_| Fault::new(WireFault::EventId, at))
}

/// A value with a name.
fn one_of<T: Copy>(reader: &mut Reader<'_>, names: &[(&str, T)]) -> Read<T> {
    let at = reader.at();
    let name = reader.short_text()?;
    let found = names.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or(Fault::new(WireFault::UnknownName, at))
}

/// A value with a number.
fn numbered<T>(reader: &mut Reader<'_>, value: impl FnOnce(u8) -> Option<T>) -> Read<T> {
    let at = reader.at();
    let number = u8::try_from(reader.unsigned()?).ok();
    number.and_then(value).ok_or(Fault::new(WireFault::UnknownName, at))
}
