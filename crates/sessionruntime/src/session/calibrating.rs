//! Holds the reports of providers against the counts of the session.

use std::sync::Arc;

use epitome_loop::{
    BasisPoints, ContextBasis, CountQuality, CounterCapability, Message, ModelKey, RequestFingerprint,
    TokenCount, Usage, ran_provider_tools, tail_estimate,
};

use super::binding::Binding;
use super::event::SessionEvent;
use super::frame::Framed;
use super::handle::Session;
use super::live::{Live, Shared};
use crate::calibration::{Calibration, CountScale, CountedReport, ReportVerdict};
use crate::is_provider_compaction;
use crate::measuring::Measuring;

/// What the reports of a model's provider taught about our counts of its requests. Numbers only.
///
/// Requests count as what was [reported](Self::reported), and what they have more or less than that one by our count,
/// times the [factor](Self::factor).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCalibration {
    /// Whose requests.
    pub model: ModelKey,
    /// How many tokens ten thousand counted ones are taken for.
    pub factor: BasisPoints,
    /// What goes out with every request beyond what is counted.
    pub beside: TokenCount,
    /// What the counter says of what was reported last, without what was stated as unseen.
    pub counted: TokenCount,
    /// What was stated as unseen.
    pub unseen: TokenCount,
    /// What the provider reported: the request and the answer to it.
    pub reported: TokenCount,
}

/// So many models are remembered of which a session had reports.
const MOST_MODELS: usize = 8;

/// What a session knows of the reports of its models.
#[derive(Debug, Default)]
pub(super) struct Calibrating {
    /// What was learned, the newest last.
    learned: Vec<Learned>,
    /// The request that was given leave last, while its answer has not come.
    sent: Option<Sent>,
    /// Reports whose requests have not been counted: the first and the newest of those that came.
    first: Option<Report>,
    newest: Option<Report>,
    /// How the newest measurement was made, while a compaction may follow from it.
    measured: Option<Box<Measured>>,
}

/// What was learned of one model's requests by one counter.
#[derive(Debug)]
struct Learned {
    model: ModelKey,
    counter: CounterCapability,
    calibration: Calibration,
}

#[derive(Debug)]
struct Sent {
    framed: Arc<Framed>,
    /// The number of the message that comes next, if it is the answer; `None` when the context is another one already.
    answer: Option<u64>,
}

/// What a provider reported, and where.
#[derive(Clone, Debug)]
struct Report {
    /// The number of the answer that it came with.
    answer: u64,
    /// What surrounded the request, where that is known.
    framed: Option<Arc<Framed>>,
    /// The request.
    request: TokenCount,
    /// What the answer took of the output, without reasoning that is known not to be in it.
    output: TokenCount,
}

#[derive(Debug)]
struct Measured {
    basis: ContextBasis,
    request_fingerprint: RequestFingerprint,
    scale: Option<CountScale>,
}

impl Calibrating {
    /// Messages were added, of which the first has this number. An answer to the request that was given leave last is
    /// about that request only if nothing came in between.
    pub(super) fn added(&mut self, first: u64, messages: &[Message]) {
        for (message, answer) in messages.iter().zip(first..) {
            if !matches!(message, Message::Assistant { .. }) {
                continue;
            }
            let framed = match self.sent.take() {
                Some(sent) if sent.answer == Some(answer) => Some(sent.framed),
                Some(_) => continue,
                None => None,
            };
            let Some((request, output)) = reported_with(message) else { continue };
            let report = Report { answer, framed, request, output };
            self.first.get_or_insert_with(|| report.clone());
            self.newest = Some(report);
        }
    }

    /// Leave was given to send a request. `answer` is the number of the message that comes next.
    pub(super) fn sent(&mut self, framed: &Arc<Framed>, answer: Option<u64>) {
        self.sent = Some(Sent { framed: Arc::clone(framed), answer });
    }

    /// The context is another one: absolute figures for the one before are void.
    pub(super) fn context_changed(&mut self) {
        self.void_reports();
        self.learned.iter_mut().for_each(|learned| learned.calibration.context_changed());
    }

    /// Reports that have not been counted, and one that is still to come, are about another context or another model.
    pub(super) fn void_reports(&mut self) {
        (self.first, self.newest) = (None, None);
        self.sent.iter_mut().for_each(|sent| sent.answer = None);
    }

    /// No compaction follows from what was measured.
    pub(super) fn rest(&mut self) {
        self.measured = None;
    }

    /// A request was measured.
    pub(super) fn measured(&mut self, measuring: &Measuring) {
        let Measuring { basis, request_fingerprint, scale, .. } = *measuring;
        self.measured = Some(Box::new(Measured { basis, request_fingerprint, scale }));
    }

    /// How this very request was measured before; `None` when it was not, or by another process.
    pub(super) fn scale_measured(&self, measuring: &Measuring) -> Option<Option<CountScale>> {
        let measured = self.measured.as_ref()?;
        let is_same = measured.basis == measuring.basis
            && measured.request_fingerprint == measuring.request_fingerprint;
        is_same.then_some(measured.scale)
    }

    /// What was learned of the binding's model is given up, and so are the reports that wait.
    pub(super) fn give_up(&mut self, binding: &Binding) {
        self.void_reports();
        if let Some(learned) = self.of_mut(binding) {
            learned.calibration = Calibration::new();
        }
    }

    fn of(&self, binding: &Binding) -> Option<&Learned> {
        let counter = binding.context()?.counter();
        self.learned.iter().find(|learned| learned.model == binding.model && learned.counter == *counter)
    }

    /// What was learned of the binding's model, as the newest of all.
    fn of_mut(&mut self, binding: &Binding) -> Option<&mut Learned> {
        let counter = binding.context()?.counter();
        let known =
            self.learned.iter().position(|known| known.model == binding.model && known.counter == *counter);
        let learned = match known {
            Some(known) => self.learned.remove(known),
            None => Learned {
                model: binding.model.clone(),
                counter: counter.clone(),
                calibration: Calibration::new(),
            },
        };
        if self.learned.len() >= MOST_MODELS {
            self.learned.remove(0);
        }
        self.learned.push(learned);
        self.learned.last_mut()
    }
}

/// What a provider reported with an answer: its request, and its output; `None` where it says nothing about the size of a
/// context.
fn reported_with(answer: &Message) -> Option<(TokenCount, TokenCount)> {
    let Message::Assistant { blocks, usage: Some(usage) } = answer else { return None };
    if ran_provider_tools(blocks) || is_provider_compaction(answer) {
        return None;
    }
    let Usage { output, reasoning, .. } = *usage;
    let request = usage.context_tokens().ok().filter(|request| *request > TokenCount::ZERO)?;
    // Reasoning that is not in the answer does not go out again.
    let holds_reasoning = blocks
        .iter()
        .any(|block| matches!(block, epitome_loop::Block::Thinking(_) | epitome_loop::Block::Opaque(_)));
    let hidden = if holds_reasoning { 0 } else { reasoning.get() };
    Some((request, TokenCount(output.get().saturating_sub(hidden))))
}

/// What an answer takes when it goes out again. Some providers report reasoning as output without a word, and hosts do
/// not keep it: an output that is far above anything that the answer could take is not the answer's.
fn of_answer(answer: Option<&Message>, output: TokenCount) -> TokenCount {
    const MOST_TIMES: u64 = 3;
    const SLACK: u64 = 64;
    let estimate = answer.map_or(0, tail_estimate);
    if output.get() > estimate.saturating_mul(MOST_TIMES).saturating_add(SLACK) {
        TokenCount(estimate)
    } else {
        output
    }
}

/// How requests of this loop are counted now. Reports that have come since are held against the counter first; one whose
/// request cannot be counted teaches nothing.
pub(super) async fn scale(shared: &Shared, binding: &Binding) -> Option<CountScale> {
    let context = binding.context()?;
    // Exact counts are what they are.
    if context.counter().quality != CountQuality::HeuristicEstimate {
        return None;
    }
    let reports = shared.live().take_reports(binding);
    for (report, answered) in reports {
        let framed = report.framed.clone().unwrap_or_else(|| Arc::clone(&shared.live().framed));
        let Ok(Some(measuring)) = binding.measuring(&framed, shared.live().basis) else { continue };
        let reported = report.request.saturating_add(of_answer(answered.last(), report.output));
        let Ok(whole) = measuring.count_whole(measuring.whole(answered)).await else { continue };
        let unseen = measuring.unseen_tokens;
        let counted = TokenCount(whole.get().saturating_sub(unseen.get()));
        let report = CountedReport { counted, unseen, reported };
        shared.learn(binding, report);
    }
    let live = shared.live();
    live.calibrating.of(binding)?.calibration.scale()
}

impl Live {
    /// The reports that wait to be counted, oldest first, each with the conversation up to its answer. Whoever takes
    /// them counts them.
    fn take_reports(&mut self, binding: &Binding) -> Vec<(Report, Arc<[Message]>)> {
        if self.binding.model != binding.model {
            return Vec::new();
        }
        let Calibrating { first, newest, .. } = &mut self.calibrating;
        let newest = newest.take();
        let first =
            first.take().filter(|first| newest.as_ref().is_some_and(|newest| newest.answer > first.answer));
        let added = self.state.messages().saturating_sub(self.state.added_since());
        let added = usize::try_from(added).unwrap_or(usize::MAX);
        // What was added stands at the end. It is not there yet in the moment in which a commit takes effect.
        let Some(before) = self.messages.len().checked_sub(added) else { return Vec::new() };
        let with_context = |report: Report| {
            let behind = report.answer.checked_sub(self.state.added_since())?;
            let at = before.checked_add(usize::try_from(behind).ok()?)?;
            let answered = self.messages.get(..=at)?.iter().cloned().collect();
            Some((report, answered))
        };
        first.into_iter().chain(newest).filter_map(with_context).collect()
    }

    /// What is known of the model that the session is bound to.
    fn calibration(&self, binding: &Binding) -> Option<SessionCalibration> {
        let learned = self.calibrating.of(binding)?;
        let scale = learned.calibration.scale()?;
        let CountedReport { counted, unseen, reported } = scale.anchor();
        let (factor, beside) = (scale.factor(), scale.beside());
        Some(SessionCalibration { model: learned.model.clone(), factor, beside, counted, unseen, reported })
    }
}

impl Shared {
    fn learn(&self, binding: &Binding, report: CountedReport) {
        let mut live = self.live();
        let Some(learned) = live.calibrating.of_mut(binding) else { return };
        let verdict = learned.calibration.take(report, binding.window());
        tracing::debug!(
            target: "epitome::session",
            session = %self.session(),
            counted = report.counted.get(),
            unseen = report.unseen.get(),
            reported = report.reported.get(),
            verdict = ?verdict,
            "report counted"
        );
        if verdict != ReportVerdict::Taken {
            return;
        }
        if let Some(calibration) = live.calibration(binding) {
            let last = live.state.last();
            live.feed.tell(last, || SessionEvent::Calibrated(calibration));
        }
    }
}

impl Session {
    /// What the reports of the provider taught about counts of requests for the model in force; `None` before the first
    /// one that says something, and for counters that are exact.
    ///
    /// An answer is appended with its [`Usage`]; the next measurement counts its request and learns from both.
    #[must_use]
    pub fn calibration(&self) -> Option<SessionCalibration> {
        let live = self.shared.live();
        live.calibration(&live.binding)
    }
}
