//! Untrusted text never reaches an error. A canary is planted in every input, every error is provoked, and
//! everything that could be shown of it is searched.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{LocalCounter, model_info};
use epitome_loop::*;
use epitome_loopruntime::decision::{AttemptReason, AttemptSlot, PressureTracker, Waiter};
use epitome_loopruntime::driver::{DriverClosed, RecordFailed};
use epitome_loopruntime::*;
use epitome_models::{Bounds, ModelSettings, NetworkModel, profile};
use epitome_rig::{
    Incompatibility, PolicyFile, Rig, RigBuilder, RigErrorKind, read_policy_file, read_rig_file,
};
use epitome_sessionruntime::journal::{
    EncodedRecord, Journal, JournalRecord, MemoryJournal, PageLimit, RecordBody, StableName, decode_record,
    replay, restore, verify_session,
};
use epitome_sessionruntime::*;
use epitome_summarizers::structured::{
    StructuredFailure, StructuredOutcome, StructuredPass, StructuredSummarizer, StructuredSummaryConfig,
    SummaryTemplate,
};
use epitome_summarizers::{Extractive, ModelSummarizer, ModelSummarizerError, ModelSummarizerSettings};
use epitome_tests::wait;
use epitome_transcripts::{Format, ReadError, ReadOptions, Replacement, Session, read, write};

const CANARY: &str = "ssn-123-45-6789";

/// Everything that could be shown of an error, its causes included.
fn shown(error: &(dyn Error + 'static)) -> String {
    let mut shown = format!("{error}\n{error:#}\n{error:?}\n{error:#?}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        shown.push_str(&format!("{error}\n{error:#}\n{error:?}\n{error:#?}\n"));
        cause = error.source();
    }
    shown
}

/// An error with the name of its type.
struct Provoked {
    name: String,
    error: Box<dyn Error>,
}

fn provoked<E: Error + 'static>(error: E) -> Provoked {
    let path = std::any::type_name::<E>();
    let name = path.rsplit("::").next().unwrap_or(path).to_owned();
    Provoked { name, error: Box::new(error) }
}

/// The error of a call that must fail.
fn refused<T: Debug, E: Error + 'static>(result: Result<T, E>) -> Provoked {
    match result {
        Err(error) => provoked(error),
        Ok(value) => panic!("not refused: {value:?}"),
    }
}

/// Every error type of the library crates, provoked with a canary in its input. A new error is one line here.
fn errors() -> Vec<Provoked> {
    let mut errors = vec![
        // epitome-loop
        refused(RawJson::parse(format!("{{\"{CANARY}\": {CANARY}"))),
        refused(RawJson::take_from(&format!("{CANARY}:"), 0, 1)),
        refused(json_string::string_end(format!("\"{CANARY}").as_bytes(), 0)),
        provoked(json_string::string_end(format!("\"\\{CANARY}").as_bytes(), 0).unwrap_err().kind),
        provoked(RawJson::take_from(&format!("[\"{CANARY}\"]"), 0, 0).unwrap_err().kind),
        refused(HustleName::new(format!("_looprig.{CANARY}"))),
        refused(EventId::parse(CANARY)),
        refused(RequestFingerprint::parse(CANARY)),
        refused(ModelKey::new(CANARY, "").validate()),
        refused(tight_limits().validate()),
        refused(model().validate()),
        refused(resolve_context_limits(
            &ModelKey::new("", CANARY),
            &tight_limits(),
            TokenCount(1),
            TokenCount(1),
        )),
        refused(occupancy(TokenCount(1), TokenCount(0))),
        refused(policy().validate(Some(CountQuality::ExactLocal))),
        refused(largest_usage().total_tokens()),
        refused(counter_elsewhere().validate()),
        refused(compatible_counter(&path_elsewhere(), &counter_elsewhere())),
        refused(fingerprint_input().fingerprint()),
        refused(ContextObservationPolicy::validate(&no_observation(), CountQuality::ExactLocal)),
        refused(check_floor(&full_of_summary(), &no_room(), FixedPart::default())),
        refused(LoopDefinition::builder(CANARY, model()).build()),
        refused(validate_transcript(&[opaque()])),
        refused(validate_depth(&[deep()])),
        refused(input(vec![opaque()])),
        refused(CompactionOutput::new(basis(), key(), print(), Some(&Message::assistant(CANARY)))),
        provoked(SummaryTooLarge { measurement: measurement(), detail: TooLargeDetail::NotSmaller }),
        provoked(SummarizerError::Transcript(validate_transcript(&[opaque()]).unwrap_err())),
        provoked(AnswerFault::ToolCall),
        provoked(SummarizerError::from(AnswerFault::Invalid(InvalidSummaryReason::XmlRoot))),
        provoked(CountError::NotExact { message: 1, kind: opaque().blocks()[0].kind() }),
        refused(HustleDefinition::new(HustleSettings { policy_revision: " ".into(), ..hustle() })),
        refused(HustleLimits::new(no_lanes())),
        // epitome-loopruntime
        refused(parse_summary(CANARY.as_bytes())),
        refused(select_tail(&orphan(), 0, keep())),
        refused(choose_candidate(&orphan(), 0, keep())),
        refused(choose_candidate(&orphan(), 0, keep()).map_err(|refused| refused.reason)),
        refused(check_retained_history(&orphan())),
        refused(project(&[deep()], Projection::WithReferences)),
        refused(ContextMeasurement { model: ModelKey::new(CANARY, ""), ..measurement() }.validate()),
        refused(AttemptSlot::default().admit(Waiter::default(), AttemptReason::Manual, AttemptId::default())),
        refused(AttemptSlot::default().freeze(AttemptId::default(), basis()).1),
        refused(PressureTracker::default().next_basis(EventId::default())),
        provoked(RecordFailed),
        refused(CommandWorker::new(program_in_no_folder()).map(drop)),
        provoked(HustleSetupError::DuplicateName { at: 1 }),
        provoked(HustleFault::WorkerIgnoredTheEnd),
        provoked(FinalizationFailed),
        provoked(AuditFailed),
        provoked(DriverClosed),
        // epitome-rig
        refused(read_policy_file(format!("hustle = \"{CANARY}\"\n{CANARY} = 1").as_bytes())),
        refused(read_policy_file(format!("{{\"{CANARY}\": 1}}").as_bytes()).map_err(|fault| fault.problem)),
        refused(relative_policy().resolve(&ContextLimits::default(), CountQuality::ExactLocal)),
        refused(Rig::builder().with_hustle_limits(no_lanes()).build()),
        refused(unfit_rig().build()),
        provoked(unfit_rig().build().unwrap_err().kind),
        provoked(incompatibility()),
        refused(read_rig_file(format!("[[loops]]\nname = \"{CANARY}\"\nmodel = {CANARY}").as_bytes())),
        refused(read_rig_file(format!("[[hustles]]\nname = \"{CANARY}\"\n\"{CANARY}\" = 1").as_bytes())),
        // epitome-sessionruntime
        refused(fit_input(&input(vec![Message::user(CANARY)]).unwrap(), 1)),
        provoked(refusal()),
        provoked(refusal().reason),
        provoked(hustle_refusal()),
        provoked(RefusalReason::Hustle(hustle_refusal())),
        provoked(CountFailure::OtherModel),
        refused(decode_input(CANARY.as_bytes())),
        refused(decode_input(format!("{{\"{CANARY}\":\"{CANARY}\"}}").as_bytes())),
        provoked(decode_input(CANARY.as_bytes()).unwrap_err().fault),
        refused(decode_output(format!("{{\"summary\":{CANARY}}}").as_bytes())),
        // epitome-counters
        refused(exact_counter().count_message(&media())),
        refused(exact_counter().count_request(&request(ModelKey::new(CANARY, CANARY)))),
        refused(exact_counter().count_request(&request(key_of_counter()))),
        // epitome-summarizers
        refused(Extractive::new().summarize_now(&tiny_summary_request())),
        refused(model_summarizer(ContextLimits::default())),
        refused(summary_by_model(CANARY)),
        refused(summary_by_model(&format!("<conversation_summary><{CANARY}>"))),
        provoked(AnswerFault::Refused),
        // epitome-transcripts
        refused(CANARY.parse::<Format>()),
        refused(write(&transcript(), &Replacement { summary: Some(" "), kept: &[] }, Format::PiSession)),
        refused(write(&transcript(), &Replacement { summary: None, kept: &[7] }, Format::PiSession)),
    ];
    errors.extend(refused_summaries().into_iter().map(|bytes| refused(parse_summary(&bytes))));
    errors.push(provoked(ModelCallError::from(ModelCallErrorKind::Status(500))));
    errors.push(provoked(ModelCallErrorKind::Malformed));
    errors.push(provoked(structured_failure()));
    errors.push(refused(NetworkModel::new(unusable_model(), &|_| Some(CANARY.to_owned()))));
    errors.extend(journal_errors());
    errors.extend(session_errors());
    errors.extend(refused_transcripts().into_iter().map(|text| refused(read_transcript(&text))));
    errors
}

/// A summarizer whose settings hold the canary, for a model with these limits.
fn model_summarizer(limits: ContextLimits) -> Result<ModelSummarizer, ModelSummarizerError> {
    let client = |_: &ModelCall| Ok(ModelAnswer::text(CANARY));
    let settings = ModelSummarizerSettings {
        prompt: CANARY.into(),
        sampling: Sampling { stop: Some(vec![CANARY.into()]), effort: CANARY.into(), ..Sampling::default() },
        ..ModelSummarizerSettings::new(CANARY, limits)
    };
    ModelSummarizer::new(Arc::new(client), settings)
}

/// What a model summarizer makes of an answer in a conversation that holds the canary.
fn summary_by_model(answer: &str) -> Result<SummaryDraft, SummarizerError> {
    let summarizer = wide_summarizer();
    let request = SummaryRequest {
        instructions: Some(CANARY.into()),
        max_tokens: TokenCount(500),
        max_bytes: None,
        ..tiny_summary_request()
    };
    summarizer.read(&request, &ModelAnswer::text(answer))
}

fn wide_summarizer() -> ModelSummarizer {
    model_summarizer(ContextLimits { window: TokenCount(50_000), ..ContextLimits::default() }).unwrap()
}

/// The failure of a structured pass in which everything holds the canary, a model's refusal included.
fn structured_failure() -> StructuredFailure {
    let client = |_: &ModelCall| Ok(ModelAnswer::text(CANARY));
    let turn = |_| [Message::user(CANARY), Message::assistant(CANARY)];
    let history: Vec<Message> = (0..8).flat_map(turn).collect();
    let template =
        SummaryTemplate { header: CANARY.repeat(40).into(), ..SummaryTemplate::default_template() };
    let config = StructuredSummaryConfig::for_model(CANARY).template(template).summary_instructions(CANARY);
    let pass = StructuredPass::new(history.into(), TokenCount(100));
    match wait(StructuredSummarizer::new(Arc::new(client), config).compact(&pass)) {
        StructuredOutcome::Failed { reason } => reason,
        outcome => panic!("not refused: {outcome:?}"),
    }
}

/// The errors of a journal whose records hold the canary.
fn journal_errors() -> Vec<Provoked> {
    let session = SessionId::from_bytes([1; 16]);
    let journal = MemoryJournal::new();
    let lease = wait(journal.open(session)).unwrap();
    let id = EventId::from_bytes([1; 16]);
    let record = |text: String| EncodedRecord { id, body: text.into_bytes().into(), blobs: Vec::new() };
    let text = format!("{{\"version\":2,\"kind\":\"{CANARY}\",\"at\":1,\"body\":{{}}}}");
    wait(journal.append(&lease, vec![record(text)])).unwrap();
    let stored = wait(journal.read(session, 1, PageLimit::default())).unwrap().records.remove(0);
    let unreadable = decode_record(session, &stored, &std::collections::BTreeMap::new()).unwrap_err();
    let finding = wait(verify_session(&journal, session)).unwrap().findings.remove(0);
    let messages = Arc::from([Message::user(CANARY)]);
    let body = RecordBody::Appended { first: 0, messages };
    let early = JournalRecord { id, at: Timestamp(1), body };
    let replayed = replay(Trigger::Manual, [(1, &early)]).unwrap_err();
    vec![
        provoked(unreadable),
        provoked(unreadable.fault),
        provoked(finding),
        provoked(finding.kind),
        provoked(replayed),
        provoked(replayed.fault),
        refused(wait(restore(&journal, session, Trigger::Manual))),
        refused(wait(journal.append(&lease, vec![record(CANARY.to_owned())]))),
        refused(StableName::new(CANARY)),
    ]
}

/// The errors of a live session.
fn session_errors() -> Vec<Provoked> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let errors = runtime.unwrap().block_on(crate::no_leak_session::session_errors());
    let (admit, session, open, compact) = errors;
    admit.into_iter().map(provoked).chain([provoked(session), provoked(open), provoked(compact)]).collect()
}

#[test]
fn no_error_shows_what_it_was_given() {
    for Provoked { name, error } in errors() {
        let shown = shown(&*error);
        assert!(!shown.contains(CANARY), "{name} leaks:\n{shown}");
        assert!(!shown.contains("6789"), "{name} leaks a part:\n{shown}");
    }
}

#[test]
fn values_with_content_are_silent_in_debug() {
    let messages: Vec<Message> = [orphan(), vec![opaque(), deep(), media()]].concat();
    let request = Request { messages: messages.clone().into(), ..request(key()) };
    let sections = SummarySections {
        goal: vec![CANARY.into()],
        state: vec![CANARY.into()],
        ..SummarySections::default()
    };
    let rendered = sections.render();
    let summary = parse_summary(rendered.xml.as_bytes()).unwrap();
    let session = SessionContext {
        model: ModelKey::new("p", "m"),
        limits: ContextLimits::default(),
        tools: request.tools.clone(),
        messages: request.messages.clone(),
        unseen_tokens: TokenCount(0),
        earlier: Some(EarlierSummary { messages: 1, sections: Some(sections.clone()) }),
        basis: basis(),
        request_fingerprint: print(),
        demand: Demand::Manual,
        instructions: Some(CANARY.into()),
        pinned: std::collections::BTreeSet::new(),
    };
    let input = input(vec![Message::user(CANARY)]).unwrap();
    let fitted = fit_input(&input, u64::MAX).unwrap().stubbed;
    for shown in [
        format!("{messages:?}"),
        format!("{request:?}"),
        format!("{sections:?}"),
        format!("{rendered:?}"),
        format!("{summary:?}"),
        format!("{session:?}"),
        format!("{input:?}"),
        format!("{:?}", RunOutput::Echo(CANARY.as_bytes().to_vec().into())),
        format!("{:?}", RunOutput::Host { summary: CANARY.into(), bound: (&input).into() }),
        format!("{fitted:?}"),
        format!("{:?}", model()),
        format!("{:?}", fingerprint_input()),
        format!("{:?}", relative_policy()),
        format!("{:?}", LoopDefinition::builder(CANARY, model())),
        format!("{:?}", hustle()),
        format!("{:?}", HustleDefinition::new(hustle()).unwrap()),
        format!("{:?}", unfit_rig()),
        format!("{:?}", transcript()),
        format!("{:?}", exact_counter()),
        format!("{:?}", unusable_model()),
        format!("{:?}", wide_summarizer()),
        format!(
            "{:?}",
            wide_summarizer().question(&SummaryRequest {
                max_tokens: TokenCount(500),
                max_bytes: None,
                ..tiny_summary_request()
            })
        ),
        format!("{:?}", summary_by_model(&rendered.xml)),
        format!("{:?}", epitome_models::redact(&format!("password={CANARY}"))),
    ] {
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

/// Every type that derives `Error` in a library crate is in the list above.
#[test]
fn no_error_type_is_forgotten() {
    let provoked: BTreeSet<String> = errors().into_iter().map(|error| error.name).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut folders: Vec<_> = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| !folder.ends_with("cli"));
    let mut found = BTreeSet::new();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.extend(error_types(&fs::read_to_string(path).unwrap()));
        }
    }
    assert!(found.len() > 20, "{found:?}");
    let forgotten: Vec<_> = found.difference(&provoked).collect();
    assert_eq!(forgotten, Vec::<&String>::new());
}

/// The names of the public types under a `#[derive(.., Error, ..)]`.
fn error_types(source: &str) -> Vec<String> {
    let derives = source.split("#[derive(").skip(1).filter_map(|rest| rest.split_once(")]"));
    let errors = derives.filter(|(derived, _)| derived.split(", ").any(|name| name == "Error"));
    let declared = errors.filter_map(|(_, rest)| {
        let line = rest.lines().find(|line| line.starts_with("pub"))?;
        let name = line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum "))?;
        Some(name.chars().take_while(|c| c.is_alphanumeric()).collect())
    });
    declared.collect()
}

/// A model at an address that may not be used.
fn unusable_model() -> ModelSettings {
    let bounds = Bounds {
        connect_timeout: Duration::from_secs(1),
        total_timeout: Duration::from_secs(1),
        answer_bytes: 1,
    };
    ModelSettings {
        provider: CANARY.into(),
        base_url: format!("http://{CANARY}@{CANARY}").into(),
        key_variable: Some(CANARY.into()),
        ..profile("openai").unwrap().settings(bounds)
    }
}

fn program_in_no_folder() -> CommandSettings {
    let variables = vec![(CANARY.into(), CANARY.into())];
    CommandSettings {
        program: CANARY.into(),
        arguments: vec![CANARY.into()],
        variables,
        working_directory: CANARY.into(),
    }
}

fn hustle() -> HustleSettings {
    let text = || CANARY.into();
    HustleSettings {
        name: text(),
        participation: Participation::Blocking,
        timeout: Duration::from_secs(1),
        limits: ByteLimits { input: 1, output: 1 },
        model: ModelSource::Named {
            client: text(),
            model: key(),
            revision: text(),
            prompt: SystemPrompt { text: text(), revision: text() },
        },
        policy_revision: text(),
        output_schema: Some(OutputSchema {
            name: text(),
            description: text(),
            schema: RawJson::parse(format!("\"{CANARY}\"")).unwrap(),
            strict: true,
            revision: text(),
        }),
        retry: RetryPolicy::None,
        identity: IdentityBinding::Host,
    }
}

/// A loop that asks for a hustle with too little room.
fn unfit_rig() -> RigBuilder {
    let lane = LaneLimits { concurrent: 1, queued: 0 };
    let second = Duration::from_secs(1);
    let model = Model { provider: CANARY.into(), name: CANARY.into(), ..Model::default() };
    let agent_loop = LoopDefinition::builder(CANARY, model)
        .with_context_counter(CounterCapability::local(CANARY, CountQuality::ExactLocal))
        .with_inference_capability(InferenceCapability::local())
        .with_compaction(CompactionPolicy { hustle: CANARY.into(), ..policy() });
    Rig::builder().with_loop(agent_loop).with_hustle(hustle()).with_hustle_limits(HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: second,
        finalization_timeout: second,
        worker_drain_timeout: second,
    })
}

fn incompatibility() -> Incompatibility {
    match unfit_rig().build().unwrap_err().kind {
        RigErrorKind::IncompatibleCompactionHustle(why) => why,
        kind => panic!("{kind}"),
    }
}

fn no_lanes() -> HustleLimitSettings {
    let lane = LaneLimits { concurrent: 0, queued: 0 };
    HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: Duration::ZERO,
        finalization_timeout: Duration::ZERO,
        worker_drain_timeout: Duration::ZERO,
    }
}

/// The corpus of refused summaries, each with the canary in the places where a parser would quote.
fn refused_summaries() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/summary");
    let mut inputs = Vec::new();
    for reason in ["xml_syntax", "xml_root", "xml_structure", "xml_content"] {
        for entry in fs::read_dir(corpus.join(reason)).unwrap() {
            let mut bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.extend_from_slice(CANARY.as_bytes());
            inputs.push(bytes);
        }
    }
    for planted in [
        format!("<{CANARY}>"),
        format!("<conversation_summary {CANARY}=\"{CANARY}\">"),
        format!("<conversation_summary><{CANARY}>"),
        format!("<conversation_summary><goal>&{CANARY};"),
        format!("<conversation_summary><goal></{CANARY}>"),
        format!("<conversation_summary><goal><?{CANARY}?>"),
        format!("<conversation_summary>{CANARY}"),
    ] {
        inputs.push(planted.into_bytes());
    }
    inputs
}

/// Transcripts that cannot be read, with the canary where a reader would quote.
fn refused_transcripts() -> Vec<String> {
    let deep = format!("[{{\"role\":\"user\",\"content\":{}\"{CANARY}\"", "[".repeat(400));
    [
        "",
        "\"CANARY\"",
        "CANARY: CANARY",
        "{\"CANARY\": {\"CANARY\": \"CANARY\"}}",
        "{\"messages\": \"CANARY\"}",
        "{\"messages\": [{\"role\": \"CANARY\", \"content\": \"CANARY\"}]}",
        "{\"messages\": [\"CANARY\"]}",
        "{\"epitome\": 9, \"messages\": [{\"role\": \"user\", \"content\": \"CANARY\"}]}",
        "{\"epitome\": 1, \"messages\": [{\"role\": \"CANARY\", \"content\": [{\"type\": \"CANARY\"}]}]}",
        "{\"epitome\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"CANARY\"}]}]}",
        "[{\"role\": \"user\", \"content\": \"CANARY\"",
        "{\"candidates\": [{\"content\": {\"role\": \"model\", \"parts\": [{\"text\": \"CANARY\"}]}}]}",
    ]
    .map(|text| text.replace("CANARY", CANARY))
    .into_iter()
    .chain([deep])
    .collect()
}

fn read_transcript(text: &str) -> Result<Session, ReadError> {
    read(text.as_bytes(), &ReadOptions::default(), &mut |_| {})
}

fn transcript() -> Session {
    let text = format!("{{\"messages\": [{{\"role\": \"user\", \"content\": \"{CANARY}\"}}]}}");
    read_transcript(&text).unwrap()
}

fn exact_counter() -> LocalCounter {
    LocalCounter::new(&model_info("gpt-4o").unwrap(), false).unwrap()
}

fn key_of_counter() -> ModelKey {
    model_info("gpt-4o").unwrap().key
}

fn request(model: ModelKey) -> Request {
    let tools = [RawJson::parse(format!("\"{CANARY}\"")).unwrap()].into();
    Request { model, tools, messages: [media(), opaque()].into(), unseen_tokens: TokenCount(0) }
}

fn tiny_summary_request() -> SummaryRequest {
    SummaryRequest {
        transcript: orphan().into(),
        previous: None,
        instructions: Some(CANARY.into()),
        max_tokens: TokenCount(1),
        max_bytes: Some(1),
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64)),
        correction: None,
        carry_constraints: true,
    }
}

fn key() -> ModelKey {
    ModelKey::new(CANARY, CANARY)
}

fn basis() -> ContextBasis {
    ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) }
}

fn print() -> RequestFingerprint {
    RequestFingerprint::from_bytes([1; 32])
}

fn keep() -> KeepRecent {
    KeepRecent { segments: 1, tokens: TokenCount(1) }
}

fn input(transcript: Vec<Message>) -> Result<CompactionInput, CompactionInputError> {
    CompactionInput::new(basis(), key(), print(), transcript.into(), TokenCount(1))
}

/// A result without a call; the canary is in its id and its text.
fn orphan() -> Vec<Message> {
    vec![Message::user(CANARY), Message::tool_result(CANARY, CANARY, false)]
}

fn opaque() -> Message {
    let raw = RawJson::parse(format!("{{\"x\": \"{CANARY}\"}}")).unwrap();
    let blocks = [Block::Opaque(Opaque { kind: CANARY.into(), raw })].into();
    Message::Assistant { blocks, usage: None }
}

fn media() -> Message {
    let data = Some(SharedBytes::from(CANARY.as_bytes().to_vec()));
    let blocks = [
        Block::Image(Image { url: CANARY.into(), data: data.clone(), media_type: CANARY.into() }),
        Block::Thinking(Thinking::new(CANARY, CANARY, CANARY, None)),
        Block::Document(Document { name: CANARY.into(), text: CANARY.into(), data, ..Document::default() }),
    ];
    Message::User { blocks: blocks.into() }
}

fn deep() -> Message {
    let mut blocks: Blocks = [Block::text(CANARY)].into();
    for _ in 0..=MAX_BLOCK_DEPTH {
        let result = ToolResult { tool_use_id: CANARY.into(), content: blocks, is_error: false };
        blocks = [Block::ToolResult(result)].into();
    }
    Message::User { blocks }
}

fn tight_limits() -> ContextLimits {
    ContextLimits { window: TokenCount(1), max_input: TokenCount(2), max_output: TokenCount(0) }
}

fn model() -> Model {
    let base_url = format!("https://user:{CANARY}@example.com/{CANARY}").into();
    Model { name: CANARY.into(), base_url, ..Model::default() }
}

/// A counter at an endpoint that it does not name.
fn counter_elsewhere() -> CounterCapability {
    CounterCapability {
        provider: CANARY.into(),
        transport: CounterTransport::SeparateEndpoint,
        ..CounterCapability::local(CANARY, CountQuality::ExactLocal)
    }
}

fn path_elsewhere() -> InferenceCapability {
    InferenceCapability {
        provider: format!("{CANARY}!").into(),
        transport: InferenceTransport::Tls,
        security_identity: SecurityIdentity::from_bytes([1; 32]),
        retention: None,
    }
}

fn fingerprint_input() -> RequestFingerprintInput {
    RequestFingerprintInput {
        system_revision: CANARY.into(),
        tool_policy_revision: CANARY.into(),
        model: model(),
        basis: basis(),
        runtime_context_revision: CANARY.into(),
        counter_capability: counter_elsewhere(),
        inference_capability: path_elsewhere(),
    }
}

fn no_observation() -> ContextObservationPolicy {
    ContextObservationPolicy {
        reserved_output: TokenCount(0),
        safety_margin: TokenCount(0),
        count_timeout: Duration::ZERO,
    }
}

fn full_of_summary() -> ValidPolicy {
    let policy = CompactionPolicy {
        automatic: true,
        counter_policy: CounterPolicy::RequireExact,
        compact_at: BasisPoints(2),
        rearm_below: BasisPoints(1),
        hustle: CANARY.into(),
        ..policy()
    };
    policy.validate(Some(CountQuality::ExactLocal)).unwrap()
}

fn no_room() -> ResolvedLimits {
    let one = TokenCount(1);
    ResolvedLimits { reserved_output: one, raw_input_limit: one, input_limit: one }
}

fn largest_usage() -> Usage {
    Usage { input: TokenCount(u64::MAX), output: TokenCount(1), ..Usage::default() }
}

fn policy() -> CompactionPolicy {
    CompactionPolicy {
        automatic: false,
        counter_policy: CounterPolicy::Unknown,
        compact_at: BasisPoints(0),
        rearm_below: BasisPoints(0),
        reserved_output: TokenCount(1),
        safety_margin: TokenCount(1),
        max_summary_tokens: TokenCount(1),
        count_timeout: Duration::from_secs(1),
        hustle: format!("_looprig.{CANARY}").into(),
        keep_recent: None,
        max_request_bytes: None,
        fallback: None,
        carry_constraints: true,
    }
}

/// A policy that needs a window.
fn relative_policy() -> PolicyFile {
    let text = format!(
        "automatic = false\nreserved_output = {{ share_of_window = '1%' }}\nsafety_margin = 1\n\
         max_summary_tokens = 1\ncount_timeout = '1s'\nhustle = '{CANARY}'"
    );
    read_policy_file(text.as_bytes()).unwrap()
}

fn measurement() -> ContextMeasurement {
    ContextMeasurement {
        basis: basis(),
        model: key(),
        request_fingerprint: print(),
        input_tokens: TokenCount(1),
        input_limit: TokenCount(1),
        quality: CountQuality::ExactLocal,
    }
}

/// The refusal of a hustle that answers the canary.
fn hustle_refusal() -> HustleRefusal {
    use epitome_tests::session_scene::{ScriptedWorker, WorkAct};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let setup = SessionContext {
        model: key(),
        limits: ContextLimits { window: TokenCount(1_000), ..ContextLimits::default() },
        tools: Arc::default(),
        messages: (0..9).map(|_| Message::user(CANARY.repeat(20))).collect(),
        unseen_tokens: TokenCount(0),
        earlier: None,
        basis: basis(),
        request_fingerprint: print(),
        demand: Demand::Manual,
        instructions: Some(CANARY.into()),
        pinned: BTreeSet::new(),
    };
    let definition = HustleSettings { name: "h".into(), ..hustle() };
    let definition = Arc::new(HustleDefinition::new(definition).unwrap());
    let worker = Arc::new(ScriptedWorker::new(WorkAct::Says(format!("<{CANARY}>"))));
    let lane = LaneLimits { concurrent: 1, queued: 0 };
    let limits = HustleLimits::new(HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: Duration::from_secs(1),
        finalization_timeout: Duration::from_secs(1),
        worker_drain_timeout: Duration::from_secs(1),
    });
    let count = |text: &str| TokenCount(text.len() as u64 / 4);
    let counted = |request: &Request| request.messages.iter().map(tail_estimate).map(TokenCount).sum();
    let policy = CompactionPolicy { hustle: "h".into(), keep_recent: None, ..policy() };
    let policy = CompactionPolicy {
        safety_margin: TokenCount(1),
        reserved_output: TokenCount(1),
        max_summary_tokens: TokenCount(100),
        count_timeout: Duration::from_secs(1),
        ..policy
    };
    let policy = policy.validate(Some(CountQuality::HeuristicEstimate)).unwrap();
    let outcome = runtime.block_on(async {
        let hustle = RegisteredHustle { definition, worker };
        let audit = Arc::new(SilentAudit);
        let lanes =
            HustleController::new(tokio::runtime::Handle::current(), limits.unwrap(), [hustle], audit);
        let (counter, estimator) = (Arc::new(counted), Arc::new(count));
        compact_by_hustles(&setup, &policy, &HustlePorts { counter, estimator, lanes: lanes.unwrap() }).await
    });
    match outcome {
        Outcome::Refused(refusal) => match refusal.reason {
            RefusalReason::Hustle(refusal) => refusal,
            other => panic!("another refusal: {other:?}"),
        },
        other => panic!("not refused: {other:?}"),
    }
}

struct SilentAudit;

#[async_trait::async_trait]
impl HustleAudit for SilentAudit {
    async fn record(&self, _: HustleRecord) -> Result<(), AuditFailed> {
        Ok(())
    }

    fn fault_changed(&self, _: HustleFaultChange) {}
}

fn refusal() -> Refusal {
    let reason = check_retained_history(&orphan()).map_err(RefusalReason::TailInvalid).unwrap_err();
    Refusal { before: Some(measurement()), reason, usage: None }
}
