//! Whole passes, with a scripted model.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use epitome_loop::{
    FinishReason, Message, ModelAnswer, ModelCall, ModelCallError, ModelCallErrorKind, ModelClient, Role,
    TokenCount,
};
use epitome_summarizers::structured::{
    StructuredFailure, StructuredOutcome, StructuredPass, StructuredSummarizer, StructuredSummaryConfig,
    count_messages, estimate_text, is_substantive, read_summary,
};
use serde_json::{Value, json};
use tracing::Level;

use super::super::Judgment;
use super::classes::{
    BETTER_READING, EXACT_TRIM, MUST_SHRINK, NO_ERROR_TEXT, NO_HOPELESS_CALL, NOTHING_FORGED,
    ONE_RESCUE_EACH, PAIRS_AND_HEADS, SECTIONS_KEPT, TYPED_OUTCOME,
};
use super::log::{Logged, logged};
use super::prompts;
use super::reading::is_read_otherwise;
use super::scene::{History, history, index, list, read_part, scale, with_our_words, word};
use super::sizes::{Pairs, has_loose_durable};
use super::trimming::render_text;

/// A model that says what a script says, and remembers what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Value>>,
    calls: Mutex<Vec<ModelCall>>,
}

#[async_trait]
impl ModelClient for Script {
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(answer) = answer else { return Err(ModelCallErrorKind::Network.into()) };
        if !answer["error"].is_null() {
            return Err(error_kind(word(&answer["error"]["kind"])).into());
        }
        if let Some(text) = answer["text"].as_str() {
            return Ok(ModelAnswer::text(text));
        }
        let blocks = list(&answer["parts"]).iter().map(read_part).collect();
        Ok(ModelAnswer { blocks, finish: FinishReason::Stop, usage: None, model: None })
    }
}

fn error_kind(name: &str) -> ModelCallErrorKind {
    match name {
        "api" => ModelCallErrorKind::Status(500),
        "rate_limit" => ModelCallErrorKind::Status(429),
        "auth" => ModelCallErrorKind::Status(401),
        "config" => ModelCallErrorKind::NoKey,
        "interrupted" => ModelCallErrorKind::Timeout,
        "http" => ModelCallErrorKind::Network,
        _ => ModelCallErrorKind::Malformed,
    }
}

/// One pass and everything around it.
struct Run<'v> {
    input: &'v Value,
    expect: &'v Value,
    config: StructuredSummaryConfig,
    history: Arc<History>,
    pass: StructuredPass,
    budget: TokenCount,
    outcome: StructuredOutcome,
    calls: Vec<ModelCall>,
    script_left: usize,
    events: Vec<Logged>,
    config_warnings: usize,
}

pub(super) fn compact(input: &Value, expect: &Value) -> Judgment {
    let Some(run) = Run::new(input, expect) else { return Judgment::of("an outcome", "a pass that waits") };
    let broken = super::reference_pass::broken_rules(input, expect);
    if !broken.is_empty() {
        return Judgment::of("what the reference's rules give", format!("another pass: {broken:?}"));
    }
    let broken = prompts::broken_promises(&run.calls, &super::reference_pass::host_blocks(input));
    if !broken.is_empty() {
        return Judgment::of("prompts as they are promised", format!("others: {broken:?}"));
    }
    let differing = run.differing();
    if differing.is_empty() {
        return Judgment::Equal;
    }
    match run.class() {
        Some((class, true)) => Judgment::Better(class),
        Some((class, false)) => {
            Judgment::of("what the class promises", format!("{class} broken: {differing:?}"))
        }
        None => Judgment::of("the reference's pass", format!("another one: {differing:?}")),
    }
}

impl<'v> Run<'v> {
    fn new(input: &'v Value, expect: &'v Value) -> Option<Self> {
        let history = Arc::new(history(&input["messages"]));
        let context = &input["context"];
        let pinned = super::scene::history(&context["pinned"]).messages;
        let notes = Arc::clone(&history);
        let pass = StructuredPass {
            messages: history.messages.clone().into(),
            target: TokenCount(input["target_tokens"].as_u64().unwrap_or_default()),
            tokens_before: context["tokens_before"].as_u64().map(TokenCount),
            scale: scale(&context["counter"]),
            notes: Arc::new(move |place: epitome_summarizers::structured::ResultPlace<'_>| {
                epitome_summarizers::structured::ResultNotes::note(&*notes, place)
            }),
            hook_instructions: context["instructions"].as_str().map(Into::into),
            additional_context: list(&context["additional_context"])
                .iter()
                .map(|text| word(text).into())
                .collect(),
            pinned: pinned.into(),
        };
        let (config, warned) = logged(|| super::scene::config(&input["config"]));
        let script = Arc::new(Script::default());
        *script.answers.lock().unwrap_or_else(PoisonError::into_inner) =
            list(&input["script"]).iter().cloned().collect();
        let summarizer =
            StructuredSummarizer::new(Arc::clone(&script) as Arc<dyn ModelClient>, config.clone());
        let (polled, events) = logged(|| {
            let mut future = pin!(summarizer.compact(&pass));
            future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        let Poll::Ready(outcome) = polled else { return None };
        let calls = std::mem::take(&mut *script.calls.lock().unwrap_or_else(PoisonError::into_inner));
        let script_left = script.answers.lock().unwrap_or_else(PoisonError::into_inner).len();
        let budget = config.budget(pass.target);
        let config_warnings = warned.len();
        Some(Self {
            input,
            expect,
            config,
            history,
            pass,
            budget,
            outcome,
            calls,
            script_left,
            events,
            config_warnings,
        })
    }

    /// The names of everything that is not as expected.
    fn differing(&self) -> Vec<&'static str> {
        let expect = self.expect;
        let mut differing = prompts::differing(&self.calls, expect, self.budget.get());
        let mut say = |name, is_equal: bool| {
            if !is_equal {
                differing.push(name);
            }
        };
        say("budget", expect["budget"] == self.budget.get());
        say("calls", expect["calls"] == self.calls.len());
        say("script_left", expect["script_left"] == self.script_left);
        say("config_warnings", expect["telemetry"]["config_warnings"] == self.config_warnings);
        say("telemetry", self.telemetry_fits());
        match (&self.outcome, word(&expect["result"])) {
            (StructuredOutcome::NoChange { .. }, "no_change") => {}
            (StructuredOutcome::Failed { reason }, "failed") => {
                let (class, budget) = match reason {
                    StructuredFailure::Blank => ("blank", None),
                    StructuredFailure::OverBudget { budget } => ("over_budget", Some(budget.get())),
                    StructuredFailure::Client { .. } => ("api", None),
                    _ => ("another", None),
                };
                say("error_class", class == word(&expect["error_class"]));
                say("error_budget", expect["error_budget"] == json!(budget));
                say("error_mentions", expect["error_mentions"].is_null());
            }
            (
                StructuredOutcome::Compacted { messages, evicted, tokens_before, tokens_after, .. },
                "compacted",
            ) => {
                say("messages", **messages == *self.expected_messages());
                let expected: Vec<Message> =
                    list(&expect["evicted"]).iter().filter_map(|at| self.message(at)).collect();
                say("evicted", *evicted == expected);
                say("tokens_before", expect["tokens_before"] == tokens_before.get());
                say("tokens_after", expect["tokens_after"] == tokens_after.get());
            }
            _ => say("result", false),
        }
        differing
    }

    fn message(&self, at: &Value) -> Option<Message> {
        self.pass.messages.get(index(at)?).cloned()
    }

    fn expected_messages(&self) -> Vec<Message> {
        list(&self.expect["messages"])
            .iter()
            .filter_map(|place| match (&place["src"], &place["pin"]) {
                (Value::Null, Value::Null) => Some(Message::assistant(with_our_words(word(&place["text"])))),
                (Value::Null, pin) => self.pass.pinned.get(index(pin)?).cloned(),
                (at, _) => self.message(at),
            })
            .collect()
    }

    fn telemetry_fits(&self) -> bool {
        let expected = &self.expect["telemetry"];
        let sections: Vec<Value> = self
            .events
            .iter()
            .filter(|event| event.target == "loopctl::metrics")
            .map(|event| {
                json!({
                    "level": event.level.as_str(),
                    "metric": event.field("metric"),
                    "section": event.field("section"),
                    "state": event.field("state"),
                })
            })
            .collect();
        let complete = self.events.iter().find(|event| !event.field("populated").is_empty()).map(|event| {
            json!({
                "budget": event.field("budget").parse::<u64>().unwrap_or_default(),
                "level": event.level.as_str(),
                "populated": event.field("populated").parse::<u64>().unwrap_or_default(),
                "retried": event.field("retried") == "true",
            })
        });
        let warnings = self.events.iter().filter(|event| event.level == Level::WARN).count();
        let failed = (warnings > 0).then(|| json!({"level": "WARN"}));
        // A pass that fails says so once, and that is all it warns of.
        let others = warnings.saturating_sub(usize::from(failed.is_some()));
        expected["warnings"] == others
            && json!(sections) == expected["sections"]
            && json!(complete) == expected["pass_complete"]
            && json!(failed) == expected["pass_failed"]
    }

    /// The text of an answer of the script, by its number.
    fn answer(&self, at: usize) -> Option<String> {
        let answer = list(&self.input["script"]).get(at)?;
        if let Some(text) = answer["text"].as_str() {
            return Some(text.to_owned());
        }
        let texts = list(&answer["parts"]).iter().filter(|part| part["type"] == "text");
        answer["parts"].is_array().then(|| texts.map(|part| word(&part["text"])).collect())
    }

    /// Whether an answer is a refusal, an error text or a call of a tool, by its beginning and its parts.
    fn is_no_answer(&self, at: usize) -> bool {
        const BEGINNINGS: [&str; 10] = [
            "i'm sorry",
            "i cannot",
            "i can't",
            "sorry,",
            "as an ai",
            "error:",
            "api error",
            "<html",
            "<!doctype",
            "<tool_call",
        ];
        let answer = list(&self.input["script"]).get(at);
        let calls = answer
            .is_some_and(|answer| list(&answer["parts"]).iter().any(|part| part["type"] == "tool_call"));
        let text = self.answer(at).unwrap_or_default().trim().to_lowercase();
        calls || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
    }

    /// Whether an answer has text and is over the budget.
    fn is_over(&self, at: usize) -> bool {
        self.answer(at).is_some_and(|text| !text.trim().is_empty() && estimate_text(&text) > self.budget)
    }

    /// The class of a case that differs, and whether what the class promises holds.
    fn class(&self) -> Option<(&'static str, bool)> {
        let expect = self.expect;
        let messages = &self.history.messages;
        let count = |messages: &[Message]| count_messages(&*self.pass.scale, messages);
        let calls = self.calls.len();
        let expected_calls = index(&expect["calls"]).unwrap_or_default();
        let compacts = word(&expect["result"]) == "compacted";
        let failure = match &self.outcome {
            StructuredOutcome::Failed { reason } => Some(*reason),
            _ => None,
        };
        let text = match &self.outcome {
            StructuredOutcome::Compacted { summary, .. } => summary.as_str(),
            _ => "",
        };
        if matches!(self.outcome, StructuredOutcome::NoChange { .. }) {
            return self.heads_and_pairs();
        }
        if expected_calls > 0 && estimate_text("x") > self.budget {
            let is_free =
                calls == 0 && failure == Some(StructuredFailure::TooSmallBudget { budget: self.budget });
            return Some((NO_HOPELESS_CALL, is_free));
        }
        if expect["error_mentions"].is_string() && matches!(failure, Some(StructuredFailure::Client { .. })) {
            let error = list(&self.input["script"])
                .get(calls.saturating_sub(1))
                .map(|answer| word(&answer["error"]["kind"]));
            let kind = error.map(error_kind);
            let fits =
                failure == kind.map(|kind| StructuredFailure::Client { kind }) && calls == expected_calls;
            return Some((TYPED_OUTCOME, fits));
        }
        if (0..calls.max(expected_calls)).any(|at| self.is_no_answer(at)) {
            let is_last = calls > 0 && self.is_no_answer(calls - 1);
            let is_refused = matches!(
                failure,
                Some(StructuredFailure::ErrorText | StructuredFailure::ToolCall | StructuredFailure::Refused)
            );
            let fits = if is_last { is_refused && calls == 2 } else { self.ends_well(text, failure) };
            return Some((NO_ERROR_TEXT, fits));
        }
        if self.is_over(0) && expected_calls == 1 {
            return Some((ONE_RESCUE_EACH, calls == 2 && self.ends_well(text, failure)));
        }
        let reads_otherwise = (0..calls.max(expected_calls))
            .filter_map(|at| self.answer(at))
            .any(|answer| is_read_otherwise(&answer));
        if calls != expected_calls && reads_otherwise {
            return Some((BETTER_READING, self.ends_well(text, failure)));
        }
        if let Some(found) = self.heads_and_pairs() {
            return Some(found);
        }
        if compacts && expect["tokens_after"].as_u64() >= Some(count(messages).get()) {
            // Where no other rule plays a part, it is the very history that the reference commits which is refused.
            let is_plain = !reads_otherwise
                && self.config.parses_output()
                && !self.is_over(calls.saturating_sub(1))
                && !prompts::is_escaped(messages)
                && self
                    .answer(calls.saturating_sub(1))
                    .is_some_and(|text| !text.contains('\n') || calls == 1);
            let fits = match failure {
                Some(StructuredFailure::NotSmaller { before, after }) => {
                    let is_the_same = expect["tokens_after"] == after.get()
                        && prompts::differing(&self.calls, expect, self.budget.get()).is_empty();
                    before == count(messages) && after >= before && (is_the_same || !is_plain)
                }
                // Another rule may have made it smaller.
                other => !is_plain && self.ends_well(text, other),
            };
            return Some((MUST_SHRINK, calls == expected_calls && fits));
        }
        let last = self.answer(calls.saturating_sub(1)).unwrap_or_default();
        if !self.config.parses_output() {
            let is_as_is =
                text == last || self.is_over(calls.saturating_sub(1)) && self.ends_well(text, failure);
            return Some((SECTIONS_KEPT, calls == expected_calls && is_as_is));
        }
        if calls == 2 && self.is_over(1) {
            let class = if word(&expect["result"]) == "failed" { EXACT_TRIM } else { SECTIONS_KEPT };
            return Some((class, calls == expected_calls && self.ends_well(text, failure)));
        }
        if reads_otherwise {
            return Some((BETTER_READING, self.ends_well(text, failure)));
        }
        let template = self.config.summary_template();
        let is_raw = read_summary(&last).is_none_or(|summary| !summary.fits(template));
        if is_raw && last.contains(['\n', '\r']) {
            // But for marks of neutral lines and blank lines in front, it is the same text.
            let words = |text: &str| text.replace('\\', "").split_whitespace().collect::<String>();
            let (plain, expected) = (words(text), words(&render_text(&last, template)));
            return Some((
                NOTHING_FORGED,
                calls == expected_calls && (plain == expected || failure.is_some()),
            ));
        }
        if prompts::is_escaped(messages) {
            let differing = self.differing();
            return Some((NOTHING_FORGED, differing.iter().all(|name| *name == "transcript")));
        }
        None
    }

    /// Whether a pass ended with a summary that says something within its bounds, or with a typed reason that fits its
    /// last answer.
    fn ends_well(&self, text: &str, failure: Option<StructuredFailure>) -> bool {
        let last = self.calls.len().saturating_sub(1);
        let answer = self.answer(last);
        match failure {
            Some(StructuredFailure::Blank) => answer.is_some_and(|answer| answer.trim().is_empty()),
            Some(StructuredFailure::Client { .. }) => answer.is_none(),
            Some(StructuredFailure::NotSmaller { before, after }) => after >= before,
            Some(StructuredFailure::OverBudget { budget }) => budget == self.budget && self.is_over(last),
            Some(_) => false,
            None => {
                let is_within = !self.is_over(last) || last == 0 || estimate_text(text) <= self.budget;
                // A second answer that cannot be read is carried, whatever it says.
                let is_carried = answer.is_some_and(|answer| text.contains(answer.trim()));
                let says = is_substantive(text) || read_summary(text).is_some() || is_carried;
                is_within && says
            }
        }
    }

    /// More than one leading system message, results without calls, loose exchanges, pins that are also in the history.
    fn heads_and_pairs(&self) -> Option<(&'static str, bool)> {
        let messages = &self.history.messages;
        let heads = messages.iter().take_while(|message| message.role() == Role::System).count();
        let pairs = Pairs::of(messages);
        let has_lone_result = !pairs.lone_results.is_empty();
        let has_pin = self.pass.pinned.iter().any(|pin| messages.contains(pin));
        if heads < 2 && !has_lone_result && !has_pin && !has_loose_durable(&self.history, messages.len()) {
            return None;
        }
        let StructuredOutcome::Compacted { messages: new, evicted, .. } = &self.outcome else {
            return Some((
                PAIRS_AND_HEADS,
                matches!(self.outcome, StructuredOutcome::Failed { .. } | StructuredOutcome::NoChange { .. }),
            ));
        };
        let keeps_heads = messages.iter().take(heads).eq(new.iter().take(heads));
        let keeps_pins = self.pass.pinned.iter().all(|pin| new.contains(pin) && !evicted.contains(pin));
        // Calls and results that stood alone may; none is left alone by the pass.
        let (new_pairs, pinned) = (Pairs::of(new), Pairs::of(&self.pass.pinned));
        let parts_nothing = new_pairs.lone_calls.len() <= pairs.lone_calls.len() + pinned.lone_calls.len()
            && new_pairs.lone_results.len() <= pairs.lone_results.len() + pinned.lone_results.len();
        Some((PAIRS_AND_HEADS, keeps_heads && keeps_pins && parts_nothing))
    }
}
