//! Figures of single requests: the whole request as the provider counted it, and parts where it says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use epitome_counters::{Breakdown, Family, LocalCounter, ModelInfo, model_info};
use epitome_loop::{Block, CountQuality, ModelKey, Request, TokenCount};
use epitome_transcripts::{Format, ReadOptions, Session, read};
use serde_json::Value;

use super::records::{Exchange, exchanges, file_of};
use super::reported::{Reported, Void, reported};
use super::row::{Row, Subject};
use crate::evidence::EvidenceError;

/// Why a figure is not in the table.
pub(super) type LeftOut = BTreeMap<&'static str, Vec<String>>;

/// The rows of all exchanges, and what was left out by which rule.
pub(super) fn rows(exchanges: &[Exchange], left_out: &mut LeftOut) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut before: Option<&Measured> = None;
    let measured: Vec<_> = exchanges.iter().map(|exchange| (exchange, measure(exchange))).collect();
    // A log in which one figure is the client's holds no other ones.
    let is_clients = |(_, measured): &&(&Exchange, Result<Measured, _>)| {
        measured.as_ref().is_ok_and(|measured| measured.reported.is_clients)
    };
    let clients: BTreeSet<&str> =
        measured.iter().filter(is_clients).map(|(exchange, _)| file_of(&exchange.place)).collect();
    for (exchange, measured) in &measured {
        match measured {
            Ok(measured) if clients.contains(file_of(&exchange.place)) => {
                // Tools and marks are left out of such figures, so only what was added can be compared.
                rows.extend(before.and_then(|before| measured.grown_from(before)));
                before = Some(measured);
            }
            Ok(measured) => rows.extend(measured.rows()),
            Err(reason) => left_out.entry(reason).or_default().push(exchange.place.clone()),
        }
    }
    rows
}

/// One exchange with our count of its request.
struct Measured {
    place: String,
    provider: String,
    model: String,
    session: Session,
    is_exact: bool,
    parts: Breakdown,
    reported: Reported,
}

fn measure(exchange: &Exchange) -> Result<Measured, &'static str> {
    let reported = reported(&exchange.request, &exchange.reply).map_err(Void::as_str)?;
    let bytes = serde_json::to_vec(&exchange.request).map_err(|_| UNREADABLE)?;
    let session = read(&bytes, &ReadOptions::default(), &mut |_| {}).map_err(|_| UNREADABLE)?;
    // The reply says best which model counted.
    let named = ["model", "modelVersion"].iter().find_map(|key| exchange.reply[key].as_str());
    let info = named.into_iter().chain(session.model().map(|key| key.model.as_str())).find_map(model_info);
    let (counter, model) = counter_for(info.as_ref(), named, &session);
    let request = request_of(&session, &model, session.messages().len());
    let parts = counter.measure_parts(&request).map_err(|_| UNREADABLE)?;
    let is_exact =
        counter.count_request(&request).is_ok_and(|count| count.quality == CountQuality::ExactLocal);
    Ok(Measured {
        place: exchange.place.clone(),
        provider: provider_of(&exchange.reply, &model),
        model: model.model.as_str().to_owned(),
        session,
        is_exact,
        parts,
        reported,
    })
}

/// A format that cannot be read yet, or a request that is none.
const UNREADABLE: &str = "the request is in a format that is not read";

/// An exact counter where it can count the request, else one that estimates.
fn counter_for(info: Option<&ModelInfo>, named: Option<&str>, session: &Session) -> (LocalCounter, ModelKey) {
    let unknown = || unknown(session);
    let Some(info) = info else {
        let name =
            named.map_or_else(|| session.model().cloned(), |name| Some(ModelKey::new("unknown", name)));
        return (unknown(), name.unwrap_or_else(|| ModelKey::new("unknown", "unknown")));
    };
    let request = request_of(session, &info.key, session.messages().len());
    let exact = LocalCounter::new(info, false).ok().filter(|exact| exact.count_request(&request).is_ok());
    let counter = exact.or_else(|| LocalCounter::new(info, true).ok());
    (counter.unwrap_or_else(unknown), info.key.clone())
}

/// A counter for a model that is not known.
pub(in crate::evidence) fn unknown(session: &Session) -> LocalCounter {
    LocalCounter::for_unknown_model(family_of(session.format()))
}

/// A provider's count of a whole request beside ours.
pub(in crate::evidence) struct Figure {
    /// The file that holds it, with others perhaps.
    pub(in crate::evidence) file: String,
    pub(in crate::evidence) ours: u64,
    pub(in crate::evidence) theirs: u64,
}

/// The whole requests in a folder of transcripts whose figures say something about their size, in the order of their
/// files.
pub(in crate::evidence) fn figures(files: &[PathBuf]) -> Result<Vec<Figure>, EvidenceError> {
    let measured = exchanges(files)?;
    let measured = measured.iter().filter_map(|exchange| measure(exchange).ok());
    let figure = |measured: Measured| Figure {
        file: file_of(&measured.place).to_owned(),
        ours: measured.parts.total,
        theirs: measured.reported.input,
    };
    Ok(measured.filter(|measured| !measured.reported.is_clients).map(figure).collect())
}

/// Whose form the requests of a session have, as the command takes it.
pub(super) fn family_of(format: Format) -> Family {
    match format {
        Format::AnthropicMessages => Family::Anthropic,
        Format::Gemini => Family::Gemini,
        Format::OpenAiResponses | Format::CodexRollout => Family::OpenAi,
        _ => Family::Other,
    }
}

/// The request that the first messages of a session make.
pub(in crate::evidence) fn request_of(session: &Session, model: &ModelKey, messages: usize) -> Request {
    Request {
        model: model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().iter().take(messages).cloned().collect(),
        unseen_tokens: TokenCount::ZERO,
    }
}

/// Who counted: by the shape of the reply where the model does not tell.
fn provider_of(reply: &Value, model: &ModelKey) -> String {
    if reply["usage"]["inputTokens"].is_u64() {
        return "bedrock".to_owned();
    }
    model.provider.as_str().to_owned()
}

impl Measured {
    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![self.row("", self.subject(), self.parts.total, self.reported.input)];
        let ours = |kind: &str| self.parts.by_kind.get(kind).copied().unwrap_or(0);
        for (name, subject, ours, theirs) in [
            (" (the audio)", Subject::Audio, ours("audio"), self.reported.audio),
            (" (the image)", Subject::Image, ours("image"), self.reported.image),
            (" (the video)", Subject::Video, ours("document"), self.reported.video),
        ] {
            rows.extend(theirs.map(|theirs| self.row(name, subject, ours, theirs)));
        }
        rows
    }

    fn row(&self, part: &str, subject: Subject, ours: u64, theirs: u64) -> Row {
        Row {
            place: format!("{}{part}", self.place),
            provider: self.provider.clone(),
            model: self.model.clone(),
            subject,
            ours,
            theirs,
            band: self.parts.range.band(),
            is_judged: true,
        }
    }

    /// What is in the request that is hardest to count.
    fn subject(&self) -> Subject {
        if self.is_exact {
            return Subject::Exact;
        }
        let blocks = || self.session.messages().iter().flat_map(|message| message.blocks().iter());
        let has = |matches: fn(&Block) -> bool| blocks().any(matches);
        if has(|block| matches!(block, Block::Opaque(opaque) if opaque.kind.contains("compaction"))) {
            Subject::Opaque
        } else if has(|block| matches!(block, Block::Document(file) if file.media_type.starts_with("video/")))
        {
            Subject::Video
        } else if has(|block| matches!(block, Block::Document(_))) {
            Subject::Document
        } else if has(|block| matches!(block, Block::Audio(_))) {
            Subject::Audio
        } else if has(|block| matches!(block, Block::Image(_))) {
            Subject::Image
        } else if !self.session.tools().is_empty() || has(|block| matches!(block, Block::ToolUse(_))) {
            Subject::Tools
        } else {
            Subject::Text
        }
    }

    /// What was added since a request of the same conversation.
    fn grown_from(&self, before: &Self) -> Option<Row> {
        let (earlier, now) = (before.session.messages(), self.session.messages());
        let goes_on = earlier.len() < now.len() && now.get(..earlier.len())? == earlier.get(..)?;
        let ours = self.parts.total.checked_sub(before.parts.total)?;
        let theirs = self.reported.input.checked_sub(before.reported.input)?;
        (goes_on && theirs > 0).then(|| Row {
            provider: format!("{}, a client's count", self.provider),
            is_judged: false,
            ..self.row("", Subject::Mixed, ours, theirs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exchange(request: Value, reply: Value) -> Exchange {
        Exchange { place: "x".to_owned(), request, reply }
    }

    #[test]
    fn a_text_request_of_a_published_model_is_exact() {
        let request = json!({"model":"gpt-4o","messages":[{"role":"user","content":"What is 2+2?"}]});
        let reply = json!({"model":"gpt-4o-2024-08-06","usage":{"prompt_tokens":14,"completion_tokens":1}});
        let mut left_out = LeftOut::new();
        let rows = rows(&[exchange(request, reply)], &mut left_out);
        assert_eq!(left_out, LeftOut::new());
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].subject, rows[0].ours, rows[0].theirs), (Subject::Exact, 14, 14));
    }

    #[test]
    fn what_cannot_be_compared_is_left_out_by_rule() {
        let request = json!({"model":"m","messages":[{"role":"user","content":"x"}]});
        let looped = json!({"usage":{"input_tokens":9,"server_tool_use":{"web_search_requests":1}}});
        let mut left_out = LeftOut::new();
        let records = [
            exchange(request.clone(), looped),
            exchange(json!({"messages":[{"role":"x"}]}), json!({"usage":{"input_tokens":9}})),
        ];
        assert_eq!(rows(&records, &mut left_out), []);
        assert_eq!(left_out.keys().copied().collect::<Vec<_>>(), [Void::SummedOverLoop.as_str(), UNREADABLE]);
    }

    #[test]
    fn a_clients_figures_are_compared_by_what_was_added() {
        let request = |count: usize| {
            let messages: Vec<Value> =
                (0..count).map(|at| json!({"role":"user","content":format!("word {at}")})).collect();
            json!({"model":"gpt-4o","messages":messages})
        };
        let reply = |tokens: u64| json!({"usage":{"prompt_tokens":tokens,"completion_tokens":0},"choices":[{"message":{"content":"x"}}]});
        let records = [
            exchange(request(1), reply(50)),
            exchange(request(2), reply(57)),
            exchange(request(1), reply(9)),
        ];
        let rows = rows(&records, &mut LeftOut::new());
        assert_eq!(rows.len(), 1);
        assert!(!rows[0].is_judged);
        assert_eq!((rows[0].ours, rows[0].theirs), (7, 7));
    }
}
