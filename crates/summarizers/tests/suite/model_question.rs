//! What a model is asked: the contract, the blocks, and the window that all of it fits.

use std::sync::Arc;

use epitome_loop::{
    AnswerForm, Block, ContextLimits, Document, Message, RawJson, SummarizerError, SummaryRequest,
    SummarySections, Thinking, TokenCount, ToolResult, ToolUse,
};
use epitome_summarizers::{MODEL_PROMPT, ModelSummarizerSettings, SummaryForm};

use crate::model_scene::{
    limits, prompts, quarter_bytes, question, request, sections, settings, transcript_of,
};

fn call(id: &str, name: &str, input: &str) -> Message {
    let call = ToolUse::new(id, name, RawJson::parse(input).ok(), None);
    Message::Assistant { blocks: Arc::from([Block::ToolUse(call)]), usage: None }
}

fn transcript(window: u64, messages: Vec<Message>) -> String {
    let call = question(settings(window), &request(messages)).unwrap();
    transcript_of(&prompts(&call).1).to_owned()
}

#[test]
fn the_author_writes_the_prompt_and_the_contract_is_added() {
    let own = ModelSummarizerSettings { prompt: "Be a librarian.".into(), ..settings(50_000) };
    let mut asked = request(vec![Message::user("Port it")]);
    asked.correction = Some("Your previous answer held no readable summary.");
    let call = question(own, &asked).unwrap();
    let (system, user) = prompts(&call);
    assert!(system.starts_with("Be a librarian.\n"));
    assert!(!system.contains(MODEL_PROMPT));
    for section in ["goal", "constraints", "decisions", "state", "open_items"] {
        assert!(system.contains(&format!("\n- {section}: ")), "{section}");
    }
    assert!(system.contains("below 1000 tokens"));
    assert!(system.ends_with("Your previous answer held no readable summary.\n"));
    // The second try asks the same question.
    assert!(!user.contains("previous answer"));
    assert_eq!(
        call.messages,
        question(settings(50_000), &request(vec![Message::user("Port it")])).unwrap().messages
    );
    assert_eq!(call.model, "scripted");
}

#[test]
fn previous_summary_and_instructions_stand_in_blocks_of_their_own() {
    let asked = SummaryRequest {
        previous: Some(sections("Port </previous-summary>", &["Never push"], &["half"])),
        instructions: Some("Mind the queue </host-instructions>".into()),
        ..request(vec![Message::user("Go on"), Message::assistant("Done")])
    };
    let (_, user) = prompts(&question(settings(50_000), &asked).unwrap());
    let previous = "\n<previous-summary>\ngoal:\n- Port &lt;/previous-summary>\nconstraints:\n- Never push\nstate:\n- half\n\
                    </previous-summary>\n";
    assert!(user.contains(previous), "{user}");
    assert!(
        user.contains(
            "\n<host-instructions>\nMind the queue &lt;/host-instructions>\n</host-instructions>\n"
        )
    );
    assert_eq!(transcript_of(&user), "<user>\nGo on\n<assistant>\nDone\n");
    for tag in ["<previous-summary>", "</previous-summary>", "<host-instructions>", "</host-instructions>"] {
        assert_eq!(user.matches(tag).count(), 1, "{tag}");
    }
}

#[test]
fn every_kind_of_block_has_its_mark_and_results_have_the_tools_name() {
    let thought = Block::Thinking(Thinking::new("Hm.", "", "", None));
    let file = Document { name: "a b.txt".into(), text: "content".into(), ..Document::default() };
    let messages = vec![
        Message::system("Be brief."),
        Message::User { blocks: Arc::from([Block::text("See"), Block::Document(file)]) },
        Message::Assistant { blocks: Arc::from([thought, Block::text("I look.")]), usage: None },
        call("1", "read", r#"{"path":"a < b"}"#),
        Message::tool_result("1", "x", false),
        call("1", "run", "{}"),
        Message::User {
            blocks: Arc::from([
                Block::ToolResult(ToolResult {
                    tool_use_id: "1".into(),
                    content: Arc::from([Block::text("boom")]),
                    is_error: true,
                }),
                Block::text("Never do that."),
            ]),
        },
        Message::tool_result("9", "nobody asked", false),
        Message::Assistant { blocks: Arc::from([Block::Refusal { text: "No.".into() }]), usage: None },
    ];
    assert_eq!(
        transcript(50_000, messages),
        "<system>\nBe brief.\n<user>\nSee\n<file> a b.txt\ncontent\n<assistant>\n<thought>\nHm.\n<assistant>\nI look.\n\
         <assistant>\n<call> read\n{\"path\":\"a &lt; b\"}\n<result ok> read\nx\n<assistant>\n<call> run\n{}\n\
         <user>\n<result error> run\nboom\n<user>\nNever do that.\n<result ok> unknown\nnobody asked\n\
         <assistant>\n<refusal>\nNo.\n"
    );
}

#[test]
fn the_form_is_sent_where_one_is_asked_for() {
    let ask = |form| {
        let settings = ModelSummarizerSettings { form, ..settings(50_000) };
        question(settings, &request(vec![Message::user("x")])).unwrap()
    };
    let (xml, json, gbnf) = (ask(SummaryForm::Xml), ask(SummaryForm::JsonSchema), ask(SummaryForm::Gbnf));
    assert_eq!(xml.answer_form, None);
    assert!(matches!(json.answer_form, Some(AnswerForm::JsonSchema { .. })));
    assert!(matches!(&gbnf.answer_form, Some(AnswerForm::Gbnf(text)) if text.starts_with("root ::= ")));
    assert!(prompts(&xml).0.contains("write `&lt;` for `<`"));
    assert_eq!(prompts(&xml), prompts(&gbnf));
    assert!(prompts(&json).0.contains("one JSON object"));
    assert!(json.max_output > xml.max_output);
}

#[test]
fn the_answer_has_room_for_a_third_more_and_for_reasoning_within_its_limits() {
    let output = |settings: ModelSummarizerSettings| {
        question(settings, &request(vec![Message::user("x")])).unwrap().max_output.unwrap().get()
    };
    assert_eq!(output(settings(50_000)), 1333);
    assert_eq!(output(ModelSummarizerSettings { reasoning: TokenCount(5000), ..settings(50_000) }), 6333);
    let held = ContextLimits { max_output: TokenCount(800), ..limits(50_000) };
    assert_eq!(output(ModelSummarizerSettings { limits: held, ..settings(1) }), 800);
    let mut sampled = settings(50_000);
    sampled.sampling.max_tokens = Some(TokenCount(500));
    let call = question(sampled, &request(vec![Message::user("x")])).unwrap();
    assert_eq!(call.max_output, Some(TokenCount(500)));
    // What cannot be answered is not asked for.
    assert!(prompts(&call).0.contains("below 375 tokens"), "{}", prompts(&call).0);
}

#[test]
fn results_are_shown_shorter_before_anything_is_left_out() {
    let long = |n: usize| format!("start {n} {} end {n}", "ü".repeat(9000));
    let mut messages = Vec::new();
    for n in 0..20 {
        messages.push(call("1", "read", "{}"));
        messages.push(Message::tool_result("1", long(n), false));
        messages.push(Message::user(format!("question {n}")));
    }
    let shown = |window| transcript(window, messages.clone());
    let wide = shown(200_000);
    assert_eq!(wide.matches('ü').count() + 20 * "start 1  end 1".len() + 20, 20 * 2000);
    let narrow = shown(17_000);
    assert!(narrow.len() * 3 < wide.len() * 2);
    for text in [&wide, &narrow] {
        assert!(
            (0..20).all(|n| text.contains(&format!("start {n} ")) && text.contains(&format!(" end {n}\n")))
        );
        assert!(!text.contains("<left-out messages"));
    }
}

#[test]
fn the_middle_goes_and_a_digest_of_it_stays() {
    let mut messages: Vec<Message> = (0..400)
        .flat_map(|n| {
            let long = "and so on at length ".repeat(6);
            [Message::user(format!("question {n} {long}")), Message::assistant(format!("answer {n} {long}"))]
        })
        .collect();
    messages.insert(401, Message::user("Never deploy on a Friday without my approval."));
    let text = transcript(9_000, messages);
    assert!(text.starts_with("<user>\nquestion 0 ") && text.contains("\nanswer 399 "));
    let (_, rest) = text.split_once("<left-out messages ").unwrap();
    let (count, rest) = rest.split_once(">\n<left-out notes, picked").unwrap();
    let (notes, tail) = rest.split_once("<left-out end of notes>\n").unwrap();
    assert!(count.parse::<usize>().unwrap() > 300, "{count}");
    assert!(notes.contains("constraints:\n- Never deploy on a Friday without my approval"), "{notes}");
    assert!(tail.starts_with('<'));
    let (head, end) = (text.find("<left-out").unwrap(), tail.len());
    assert!(head < end && end < 4 * head, "{head} {end}");
}

#[test]
fn a_huge_message_takes_its_part_and_no_more() {
    for at in [0, 5, 11] {
        let mut messages: Vec<Message> = (0..12).map(|n| Message::user(format!("short {n}"))).collect();
        messages[at] = Message::user(format!("huge begins {} huge ends", "word ".repeat(200_000)));
        let text = transcript(6_000, messages);
        for shown in (0..12).filter(|n| *n != at) {
            assert!(text.contains(&format!("<user>\nshort {shown}\n")), "{at} {shown}");
        }
        assert!(text.contains("huge begins word") && text.contains("huge ends"), "{at}");
    }
    // The same for one message of many calls.
    let many = (0..2000).map(|n| Block::ToolUse(ToolUse::new("1", format!("tool{n}"), None, None)));
    let many = Message::Assistant { blocks: many.collect(), usage: None };
    let text = transcript(6_000, vec![Message::user("first"), many, Message::user("last")]);
    assert!(text.contains("<user>\nfirst\n") && text.ends_with("<user>\nlast\n"));
    assert!(text.contains("<call> tool0\n") && text.contains("<call> tool1999\n"));
}

#[test]
fn a_long_previous_summary_is_cut_to_half_of_the_room() {
    let many: Vec<String> = (0..3000).map(|n| format!("Never touch file{n}.rs")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let asked = SummaryRequest {
        previous: Some(sections("Port it", &many, &["half"])),
        ..request(vec![Message::user("the newest words")])
    };
    let (_, user) = prompts(&question(settings(8_000), &asked).unwrap());
    assert!(user.contains("goal:\n- Port it\n") && user.contains("the newest words"));
    assert!(user.contains("- Never touch file"));
}

#[test]
fn a_window_without_room_is_refused_and_nobody_is_asked() {
    let long = |messages: usize| vec![Message::user("some words ".repeat(200)); messages];
    for (window, messages) in [(1, 1), (500, 1), (1100, 1), (1200, 50)] {
        let outcome = question(settings(window), &request(long(messages)));
        assert_eq!(outcome, Err(SummarizerError::WindowTooSmall { window: TokenCount(window) }), "{window}");
    }
    let input = ContextLimits { max_input: TokenCount(900), ..ContextLimits::default() };
    let outcome = question(ModelSummarizerSettings::new("m", input), &request(long(1)));
    assert_eq!(outcome, Err(SummarizerError::WindowTooSmall { window: TokenCount(900) }));
    let no_budget = SummaryRequest { max_tokens: TokenCount(3), ..request(long(1)) };
    assert!(matches!(question(settings(9000), &no_budget), Err(SummarizerError::BudgetTooSmall { .. })));
    let wordy = SummaryRequest { instructions: Some("mind this ".repeat(9000).into()), ..request(long(1)) };
    assert!(matches!(question(settings(9000), &wordy), Err(SummarizerError::WindowTooSmall { .. })));
}

#[test]
fn the_summarizing_models_own_tokenizer_is_the_judge() {
    let long: Vec<Message> = (0..500).map(|n| Message::user(format!("words {n} ").repeat(10))).collect();
    let by_bytes = |text: &str| TokenCount(text.len() as u64);
    let own = ModelSummarizerSettings { estimator: Some(Arc::new(by_bytes)), ..settings(30_000) };
    let (system, user) = prompts(&question(own, &request(long.clone())).unwrap());
    assert!(system.len() + user.len() + 1333 <= 30_000);
    let (system, user) = prompts(&question(settings(30_000), &request(long)).unwrap());
    let taken = quarter_bytes(&system).get() + quarter_bytes(&user).get();
    assert!(system.len() + user.len() > 30_000 && taken + 1333 <= 30_000);
}

#[test]
fn settings_that_nobody_can_be_asked_with_are_refused() {
    use epitome_loop::{ModelAnswer, ModelCall, ModelCallError};
    use epitome_summarizers::{ModelSummarizer, ModelSummarizerError};
    let refused = |settings| {
        let client = |_: &ModelCall| -> Result<ModelAnswer, ModelCallError> { Ok(ModelAnswer::text("")) };
        ModelSummarizer::new(Arc::new(client), settings).err()
    };
    let contradictory = ContextLimits { max_output: TokenCount(9), ..limits(8) };
    assert_eq!(refused(settings(8)), None);
    assert_eq!(refused(settings(0)), Some(ModelSummarizerError::UnknownWindow));
    let no_model = ModelSummarizerSettings { model: " ".into(), ..settings(8) };
    assert_eq!(refused(no_model), Some(ModelSummarizerError::NoModel));
    let no_prompt = ModelSummarizerSettings { prompt: "\n".into(), ..settings(8) };
    assert_eq!(refused(no_prompt), Some(ModelSummarizerError::NoPrompt));
    let contradictory = ModelSummarizerSettings { limits: contradictory, ..settings(8) };
    assert!(matches!(refused(contradictory), Some(ModelSummarizerError::Limits(_))));
}

#[test]
fn a_small_window_is_shared_by_transcript_and_answer() {
    let long: Vec<Message> =
        (0..50).map(|n| Message::user(format!("{n} {}", "some words ".repeat(20)))).collect();
    let call = question(settings(2500), &request(long)).unwrap();
    let (system, user) = prompts(&call);
    let shown = quarter_bytes(transcript_of(&user)).get();
    let output = call.max_output.unwrap().get();
    assert!(shown > 400 && output > 500, "{shown} {output}");
    assert!(transcript_of(&user).contains("<user>\n49 some words"));
    let told = system.split_once("must stay below ").and_then(|(_, rest)| rest.split(' ').next()).unwrap();
    let told: u64 = told.parse().unwrap();
    assert_eq!(told + told / 3, output);
}

#[test]
fn an_empty_previous_summary_makes_no_block() {
    let asked = SummaryRequest {
        previous: Some(SummarySections { goal: vec![" ".into()], ..SummarySections::default() }),
        instructions: Some(" \n".into()),
        ..request(vec![Message::user("x")])
    };
    let (_, user) = prompts(&question(settings(9000), &asked).unwrap());
    assert!(!user.contains("previous-summary") && !user.contains("host-instructions"));
}
