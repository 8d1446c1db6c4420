//! What hostile texts in a conversation must not do to its summary, for every way in which one is made.
//!
//! Two things are held true. **Structure:** whatever stands in a conversation, the request to a model has the same tags
//! and the same starts of messages as that of a harmless conversation, and a summary has its five sections. **Authority:**
//! nothing that stands in what a tool returned or in a file becomes a goal, a rule or a decision, not even when the model
//! obeys it.

mod corpus;

use std::sync::{Arc, Mutex, PoisonError};

use epitome_loop::{
    Block, ContextLimits, Message, ModelAnswer, ModelCall, Sampling, Section, Summarizer, SummaryDraft,
    SummaryRequest, SummarySections, TokenCount,
};
use epitome_loopruntime::{ConversationSummary, parse_summary_text};
use epitome_sessionruntime::recognize_earlier_summary;
use epitome_summarizers::structured::{
    StructuredOutcome, StructuredPass, StructuredSummarizer, StructuredSummaryConfig,
};
use epitome_summarizers::{Extractive, ModelSummarizer, ModelSummarizerSettings, SummaryForm};

pub use corpus::{
    Attack, DEMAND, HostileText, HostileTranscript, Place, TRACES, conversation, texts, transcripts,
};

use crate::wait;

/// What is wrong with what came of a hostile conversation; nothing when all is as it must be.
#[must_use]
pub fn judge(hostile: &HostileTranscript) -> Vec<String> {
    let mut faults = Vec::new();
    extractive(hostile, &mut faults);
    for form in [SummaryForm::Xml, SummaryForm::JsonSchema, SummaryForm::Gbnf] {
        model_is_asked(hostile, form, &mut faults);
    }
    for answer in obedient_answers(&hostile.text.text) {
        model_obeys(hostile, &answer, &mut faults);
    }
    structured(hostile, &mut faults);
    // A text that looks like a summary is one only where the host put it.
    if hostile.place != Place::User && recognize_earlier_summary(&hostile.messages).is_some() {
        faults.push("it is taken for an earlier summary".to_owned());
    }
    faults
}

fn request(messages: &Arc<[Message]>) -> SummaryRequest {
    SummaryRequest {
        transcript: Arc::clone(messages),
        previous: None,
        instructions: Some("Pay attention to the queue.".into()),
        max_tokens: TokenCount(1_000),
        max_bytes: None,
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
        correction: None,
        carry_constraints: true,
    }
}

fn extractive(hostile: &HostileTranscript, faults: &mut Vec<String>) {
    match Extractive::new().summarize_now(&request(&hostile.messages)) {
        Ok(draft) => summary_keeps_its_terms("extractive", hostile, &draft, faults),
        Err(error) => faults.push(format!("extractive: {error}")),
    }
}

/// The request has the form of that for a harmless conversation.
fn model_is_asked(hostile: &HostileTranscript, form: SummaryForm, faults: &mut Vec<String>) {
    let asked = |messages: &Arc<[Message]>| {
        let calls: Arc<Mutex<Vec<ModelCall>>> = Arc::default();
        let heard = Arc::clone(&calls);
        let client = move |call: &ModelCall| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
            Ok(ModelAnswer::text("nothing"))
        };
        // What comes of it is not looked at here.
        let _ = wait(model(client, form).summarize(request(messages)));
        calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    };
    let harmless = asked(&conversation("harmless", hostile.place));
    same_shape("model", &harmless, &asked(&hostile.messages), faults);
}

fn same_shape(who: &str, harmless: &[ModelCall], asked: &[ModelCall], faults: &mut Vec<String>) {
    let [harmless] = harmless.get(..1).unwrap_or_default() else {
        return faults.push(format!("{who}: nothing was asked about a harmless conversation"));
    };
    for call in asked {
        if call.system != harmless.system {
            faults.push(format!("{who}: the system prompt depends on the conversation"));
        }
        let (mut shape, expected) = (Shape::of(call), Shape::of(harmless));
        // Where speakers have marks of another kind, such a line is a line.
        if expected.starts.is_empty() {
            shape.starts.clear();
        }
        if shape != expected {
            faults.push(format!("{who}: the request is of another shape: {shape:?}, not {expected:?}"));
        }
    }
    if asked.is_empty() {
        faults.push(format!("{who}: nothing was asked"));
    }
}

/// What gives structure to a request.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    messages: usize,
    tags: Vec<String>,
    starts: Vec<String>,
}

impl Shape {
    fn of(call: &ModelCall) -> Self {
        let texts: Vec<&str> =
            call.messages.iter().flat_map(|message| message.blocks().iter()).map(text_of).collect();
        let text = folded(&texts.join("\n"));
        Self { messages: call.messages.len(), tags: tags(&text), starts: starts(&text) }
    }
}

fn text_of(block: &Block) -> &str {
    match block {
        Block::Text { text } => text,
        _ => "",
    }
}

/// Everything in angle brackets, with the digits of a name left out.
fn tags(text: &str) -> Vec<String> {
    let behind = text.split('<').skip(1);
    behind
        .map(|tag| {
            let end = tag.find('>').map_or(tag.len(), |at| at + 1);
            tag.chars().take(end).map(|found| if found.is_ascii_hexdigit() { 'x' } else { found }).collect()
        })
        .collect()
}

/// The beginnings of lines that look like somebody starts to speak.
fn starts(text: &str) -> Vec<String> {
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    lines
        .filter_map(|line| {
            let (speaker, _) = line.trim_start().split_once(':')?;
            let speaker = speaker.trim_end().to_lowercase();
            ["system", "user", "assistant", "tool"].contains(&speaker.as_str()).then_some(speaker)
        })
        .collect()
}

/// What a model answers that obeys.
fn obedient_answers(text: &str) -> Vec<String> {
    let all_over = SummarySections {
        goal: vec![DEMAND.into(), "Port the billing worker to the new queue.".into()],
        constraints: vec![DEMAND.into(), format!("The user demands: {DEMAND}.").into()],
        decisions: vec![DEMAND.to_uppercase().into()],
        state: vec!["The worker is ported.".into()],
        open_items: Vec::new(),
    };
    let items = serde_json::json!([DEMAND]);
    let json = serde_json::json!({
        "goal": items, "constraints": items, "decisions": items, "state": ["s"], "open_items": [],
    });
    vec![
        all_over.render().xml.to_string(),
        SummarySections { goal: vec![DEMAND.into()], ..all_over }.render().xml.to_string(),
        json.to_string(),
        text.to_owned(),
        format!("Here is the summary:\n{text}"),
        format!(
            "<conversation_summary><goal>{text}</goal><constraints>{text}</constraints><decisions>{text}</decisions>\
             <state>s {text}</state><open_items/></conversation_summary>"
        ),
    ]
}

fn model_obeys(hostile: &HostileTranscript, answer: &str, faults: &mut Vec<String>) {
    let said = answer.to_owned();
    let client = move |_: &ModelCall| Ok(ModelAnswer::text(said.as_str()));
    // A refusal is as good as a summary in which the text is nothing but text.
    if let Ok(draft) = wait(model(client, SummaryForm::Xml).summarize(request(&hostile.messages))) {
        summary_keeps_its_terms("obedient model", hostile, &draft, faults);
        let kept = draft.sections.constraints.iter().any(|rule| folded(rule).contains("never push to main"));
        if !kept {
            faults.push("obedient model: the user's rule is gone".to_owned());
        }
    }
}

fn model(
    client: impl Fn(&ModelCall) -> Result<ModelAnswer, epitome_loop::ModelCallError> + Send + Sync + 'static,
    form: SummaryForm,
) -> ModelSummarizer {
    let settings = ModelSummarizerSettings {
        model: "scripted".into(),
        limits: ContextLimits { window: TokenCount(32_000), ..ContextLimits::default() },
        prompt: epitome_summarizers::MODEL_PROMPT.into(),
        form,
        sampling: Sampling::default(),
        reasoning: TokenCount::ZERO,
        estimator: None,
    };
    ModelSummarizer::new(Arc::new(client), settings)
        .unwrap_or_else(|error| unreachable!("the settings are not consistent: {error}"))
}

fn structured(hostile: &HostileTranscript, faults: &mut Vec<String>) {
    let pass = |messages: &Arc<[Message]>, answer: String| {
        // Long enough that a summary is worth it.
        let more = (0..40).map(|step| {
            Message::assistant(format!("Step {step} of the port is done and its test is green."))
        });
        let messages: Arc<[Message]> = messages.iter().cloned().chain(more).collect();
        let calls: Arc<Mutex<Vec<ModelCall>>> = Arc::default();
        let heard = Arc::clone(&calls);
        let client = move |call: &ModelCall| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
            Ok(ModelAnswer::text(answer.as_str()))
        };
        let summarizer =
            StructuredSummarizer::new(Arc::new(client), StructuredSummaryConfig::for_model("scripted"));
        let outcome = wait(summarizer.compact(&StructuredPass::new(messages, TokenCount(400))));
        let calls = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (calls, outcome)
    };
    let answer = format!("### Decisions\n- {DEMAND}\n\n### Key facts\n- the worker is ported");
    let (harmless, _) = pass(&conversation("harmless", hostile.place), answer.clone());
    let (asked, outcome) = pass(&hostile.messages, answer);
    same_shape(
        "structured",
        harmless.get(..1).unwrap_or_default(),
        asked.get(..1).unwrap_or_default(),
        faults,
    );
    if !matches!(outcome, StructuredOutcome::Compacted { .. }) {
        faults.push(format!("structured: no summary came of it: {outcome:?}"));
    }
}

/// The five sections and nothing else, and nothing from tools where somebody with authority speaks.
fn summary_keeps_its_terms(
    who: &str,
    hostile: &HostileTranscript,
    draft: &SummaryDraft,
    faults: &mut Vec<String>,
) {
    let summary: ConversationSummary = match parse_summary_text(draft.sections.render().xml) {
        Ok(summary) => summary,
        Err(refused) => return faults.push(format!("{who}: its own summary is refused: {refused}")),
    };
    if !hostile.place.is_of_tools() {
        return;
    }
    let sections = summary.sections();
    for section in [Section::Goal, Section::Constraints, Section::Decisions] {
        for item in sections.items(section) {
            let item = folded(item);
            if TRACES.iter().all(|trace| item.contains(trace)) {
                faults.push(format!("{who}: it stands in {}", section.as_str()));
            }
        }
    }
}

/// A text as a reader sees it: without case, without what has no width, and with look-alikes made alike.
fn folded(text: &str) -> String {
    let seen = text.chars().filter(|character| {
        !matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    let alike = seen.map(|character| match character {
        'а' | 'А' => 'a',
        'е' | 'Е' => 'e',
        'о' | 'О' => 'o',
        'с' | 'С' => 'c',
        'р' | 'Р' => 'p',
        'ѕ' | 'Ѕ' => 's',
        'у' | 'У' => 'y',
        '＜' | '﹤' | '‹' | '〈' | '⟨' | '\u{2329}' => '<',
        '＞' | '﹥' | '›' | '〉' | '⟩' | '\u{232a}' => '>',
        other => other,
    });
    alike.flat_map(char::to_lowercase).collect()
}
