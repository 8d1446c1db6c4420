//! Writing records.

use std::fmt::Display;

use epitome_loop::json_text::{JsonBytes, JsonSink as _};
use epitome_loop::{ContextBasis, ContextLimits, ContextMeasurement, ModelKey};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Latch, LatchState, Waiter};

use super::content_write::Writer;
use super::{CodecError, RECORD_VERSION};
use crate::journal::{
    AttemptStart, Committed, EncodedRecord, Imported, JournalRecord, RecordBody, SessionOpened, StableName,
    WaiterOutcome,
};

pub(super) fn record(record: &JournalRecord) -> Result<EncodedRecord, CodecError> {
    let JournalRecord { id, at, body } = record;
    let mut writer = Writer { out: JsonBytes::with_capacity(256), blobs: Vec::new() };
    writer.number("{\"version\":", RECORD_VERSION);
    writer.text(",\"kind\":", body.kind());
    writer.number(",\"at\":", at.0);
    writer.out.plain(",\"body\":{");
    writer.body(body)?;
    writer.out.plain("}}");
    let Writer { out, blobs } = writer;
    Ok(EncodedRecord { id: *id, body: out.into_bytes().into(), blobs })
}

impl Writer {
    fn body(&mut self, body: &RecordBody) -> Result<(), CodecError> {
        match body {
            RecordBody::Opened(opened) => self.opened(opened),
            RecordBody::Imported(imported) => self.imported(imported),
            RecordBody::Appended { first, messages } => {
                self.number("\"first\":", *first);
                self.out.plain(",\"messages\":[");
                for (at, message) in messages.iter().enumerate() {
                    self.out.plain(if at > 0 { "," } else { "" });
                    self.message(message)?;
                }
                self.out.plain("]");
            }
            RecordBody::Measured(measurement) => self.measurement("\"measurement\":", measurement),
            RecordBody::Started(start) => self.start(start),
            RecordBody::Committed(committed) => self.committed(committed),
            RecordBody::Rejected { attempt, reason, detail, usage } => {
                self.id("\"attempt\":", attempt);
                self.number(",\"reason\":", u64::from(reason.number()));
                self.name(",\"detail\":", detail.as_ref());
                self.out.plain(",\"usage\":");
                self.usage(usage.as_ref());
            }
            RecordBody::Answered(WaiterOutcome { attempt, command, resolved, reply }) => {
                self.id("\"attempt\":", attempt);
                self.id(",\"command\":", command);
                self.out.plain(if *resolved { ",\"resolved\":true" } else { ",\"resolved\":false" });
                self.id(",\"reply\":", reply);
            }
            RecordBody::Undone { in_force } | RecordBody::Redone { in_force } => {
                self.number("\"in_force\":", *in_force);
            }
            RecordBody::Latched(latch) => self.latch(latch),
        }
        Ok(())
    }

    fn opened(&mut self, opened: &SessionOpened) {
        let SessionOpened { model, limits, policy_revision, tools } = opened;
        self.model("\"model\":", model);
        let ContextLimits { window, max_input, max_output } = limits;
        self.number(",\"limits\":{\"window\":", window.get());
        self.number(",\"max_input\":", max_input.get());
        self.number(",\"max_output\":", max_output.get());
        self.text("},\"policy_revision\":", policy_revision);
        self.out.plain(",\"tools\":[");
        for (at, tool) in tools.iter().enumerate() {
            self.raw(if at > 0 { "," } else { "" }, Some(tool));
        }
        self.out.plain("]");
    }

    fn imported(&mut self, imported: &Imported) {
        let Imported { format, conversation, name, source, repairs } = imported;
        self.text("\"format\":", format.as_str());
        match conversation {
            Some(conversation) => self.number(",\"conversation\":", *conversation),
            None => self.out.plain(",\"conversation\":null"),
        }
        match name {
            Some(name) => self.text(",\"name\":", name),
            None => self.out.plain(",\"name\":null"),
        }
        self.out.plain(",\"source\":");
        self.blob(source);
        self.number(",\"repairs\":", *repairs);
    }

    fn start(&mut self, start: &AttemptStart) {
        let AttemptStart { attempt, reason, basis, waiters } = start;
        self.id("\"attempt\":", attempt);
        self.text(
            ",\"reason\":",
            match reason {
                AttemptReason::Manual => "manual",
                AttemptReason::Automatic => "automatic",
            },
        );
        self.basis(",\"basis\":", *basis);
        self.out.plain(",\"waiters\":[");
        for (at, Waiter { created_at, command }) in waiters.iter().enumerate() {
            self.id(if at > 0 { ",{\"command\":" } else { "{\"command\":" }, command);
            self.number(",\"created_at\":", created_at.0);
            self.out.plain("}");
        }
        self.out.plain("]");
    }

    fn committed(&mut self, committed: &Committed) {
        let Committed {
            attempt,
            basis,
            post,
            summary,
            retained,
            leading,
            before,
            after,
            summary_tokens,
            landing,
            usage,
            cost_micro_usd,
            repairs,
            degraded,
        } = committed;
        self.id("\"attempt\":", attempt);
        self.basis(",\"basis\":", *basis);
        self.basis(",\"post\":", *post);
        self.text(",\"summary\":", summary);
        self.out.plain(",\"retained\":[");
        for (at, range) in retained.iter().enumerate() {
            self.number(if at > 0 { ",[" } else { "[" }, range.first);
            self.number(",", range.end);
            self.out.plain("]");
        }
        self.number("],\"leading\":", *leading);
        self.measurement(",\"before\":", before);
        self.measurement(",\"after\":", after);
        self.number(",\"summary_tokens\":", summary_tokens.get());
        self.text(
            ",\"landing\":",
            match landing {
                Landing::Low => "low",
                Landing::High => "high",
            },
        );
        self.out.plain(",\"usage\":");
        self.usage(usage.as_ref());
        match cost_micro_usd {
            Some(cost) => self.number(",\"cost_micro_usd\":", *cost),
            None => self.out.plain(",\"cost_micro_usd\":null"),
        }
        self.out.plain(",\"repairs\":[");
        for (at, repair) in repairs.iter().enumerate() {
            self.text(if at > 0 { "," } else { "" }, repair.as_str());
        }
        self.out.plain("]");
        self.name(",\"degraded\":", degraded.as_ref());
    }

    fn latch(&mut self, latch: &Latch) {
        let Latch { state, attempted, failures, failed_at } = *latch;
        match state {
            LatchState::Armed => self.out.plain("\"disarmed\":null"),
            LatchState::Disarmed { why, landing } => {
                self.number("\"disarmed\":{\"why\":", u64::from(why as u8));
                match landing {
                    Some(landing) => self.number(",\"landing\":", u64::from(landing.get())),
                    None => self.out.plain(",\"landing\":null"),
                }
                self.out.plain("}");
            }
        }
        match attempted {
            Some(basis) => self.basis(",\"attempted\":", basis),
            None => self.out.plain(",\"attempted\":null"),
        }
        self.number(",\"failures\":", u64::from(failures));
        self.number(",\"failed_at\":", failed_at.0);
    }

    fn measurement(&mut self, key: &'static str, measurement: &ContextMeasurement) {
        let ContextMeasurement { basis, model, request_fingerprint, input_tokens, input_limit, quality } =
            measurement;
        self.out.plain(key);
        self.basis("{\"basis\":", *basis);
        self.model(",\"model\":", model);
        self.id(",\"request_fingerprint\":", request_fingerprint);
        self.number(",\"input_tokens\":", input_tokens.get());
        self.number(",\"input_limit\":", input_limit.get());
        self.text(",\"quality\":", quality.as_str());
        self.out.plain("}");
    }

    fn basis(&mut self, key: &'static str, basis: ContextBasis) {
        let ContextBasis { revision, through_event_id } = basis;
        self.out.plain(key);
        self.number("{\"revision\":", revision.0);
        self.id(",\"through_event_id\":", through_event_id);
        self.out.plain("}");
    }

    fn model(&mut self, key: &'static str, model: &ModelKey) {
        let ModelKey { provider, model } = model;
        self.out.plain(key);
        self.text("{\"provider\":", provider);
        self.text(",\"model\":", model);
        self.out.plain("}");
    }

    fn name(&mut self, key: &'static str, name: Option<&StableName>) {
        match name {
            Some(name) => self.text(key, name.as_str()),
            None => {
                self.out.plain(key);
                self.out.plain("null");
            }
        }
    }

    /// An identity in its canonical text.
    fn id(&mut self, key: &'static str, id: impl Display) {
        self.text(key, &id.to_string());
    }
}
