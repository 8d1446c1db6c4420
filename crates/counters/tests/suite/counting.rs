//! Whole requests: figures, refusals, sums, and the memory of what was counted.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use epitome_counters::{
    Breakdown, ContentClass, Encoding, ErrorBand, Family, HeuristicEstimator, LocalCounter, model_info,
};
use epitome_loop::{
    Audio, Block, ContextCounter, CountError, CountQuality, Document, Image, Message, ModelKey, Opaque,
    RawJson, Request, Role, SharedBytes, TextEstimator, Thinking, TokenCount, ToolResult, ToolUse,
};
use proptest::prelude::*;

fn request(model: &str, messages: Vec<Message>) -> Request {
    let model = model_info(model).map_or_else(|| ModelKey::new("nobody", model), |info| info.key);
    Request { model, tools: Arc::from([]), messages: messages.into(), unseen_tokens: TokenCount::ZERO }
}

fn counter(model: &str, allow_estimates: bool) -> LocalCounter {
    LocalCounter::new(&model_info(model).unwrap(), allow_estimates).unwrap()
}

fn user(blocks: Vec<Block>) -> Message {
    Message::User { blocks: blocks.into() }
}

/// The example messages of OpenAI's guide to counting, for which it prints what the API reported.
#[test]
fn openai_chat_framing_is_three_a_message_one_a_role_and_three_for_the_reply() {
    let o200k = |text: &str| Encoding::O200kBase.count(text);
    let (system, question, answer) = ("You are terse.", "What is a monad?", "A monoid, of course.");
    let messages = vec![Message::system(system), Message::user(question), Message::assistant(answer)];
    let expected = 3 * (3 + 1) + o200k(system) + o200k(question) + o200k(answer) + 3;
    let count = counter("gpt-4o", false).count_request(&request("gpt-4o", messages)).unwrap();
    assert_eq!(count.input_tokens, TokenCount(expected));
    assert_eq!(count.quality, CountQuality::ExactLocal);
}

#[test]
fn an_exact_counter_refuses_what_it_can_only_estimate() {
    let exact = counter("gpt-4o", false);
    let refused = |message: Message| {
        let messages = vec![Message::user("ok"), message];
        match exact.count_request(&request("gpt-4o", messages)) {
            Err(CountError::NotExact { message: 1, kind }) => kind,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(user(vec![Block::text("see"), Block::Image(Image::default())])), "image");
    assert_eq!(refused(Message::tool_result("t", "x", false)), "tool_result");
    assert_eq!(refused(user(vec![Block::text("a"), Block::text("b")])), "a second text");
    assert_eq!(refused(user(vec![Block::Thinking(Thinking::default())])), "thinking");

    let mut with_tools = request("gpt-4o", vec![]);
    with_tools.tools = Arc::from([RawJson::parse("{}").unwrap()]);
    assert_eq!(exact.count_request(&with_tools), Err(CountError::ToolsNotExact));
    assert_eq!(exact.count_request(&request("gpt-4", vec![])), Err(CountError::UnknownModel));

    for unpublished in ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro"] {
        let refused = LocalCounter::new(&model_info(unpublished).unwrap(), false).unwrap_err();
        assert_eq!(refused, CountError::UnknownModel, "{unpublished}");
        let estimating = counter(unpublished, true);
        assert_eq!(estimating.capability().quality, CountQuality::HeuristicEstimate);
    }
}

#[test]
fn errors_do_not_repeat_the_request() {
    let canary = "canary-7f3a";
    let image = Image { media_type: canary.into(), url: canary.into(), data: None };
    let request = request("gpt-4o", vec![user(vec![Block::text(canary), Block::Image(image)])]);
    let exact = counter("gpt-4o", false);
    let error = exact.count_request(&request).unwrap_err();
    let shown =
        format!("{error} {error:#} {error:?} {:?} {exact:?} {request:?}", std::error::Error::source(&error));
    assert!(!shown.contains(canary), "{shown}");
}

#[test]
fn counts_are_ready_at_once_and_of_the_declared_quality() {
    let request = request("gpt-4o", vec![Message::user("hi")]);
    let counters: [Box<dyn ContextCounter>; 3] =
        [Box::new(counter("gpt-4o", false)), Box::new(counter("gpt-4o", true)), Box::new(HeuristicEstimator)];
    for counter in counters {
        let mut counting = counter.count(&request);
        let Poll::Ready(count) = counting.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("a local counter has nothing to wait for");
        };
        let count = count.unwrap();
        assert_eq!(count.quality, counter.capability().quality);
        assert_eq!(count.model, request.model);
    }
}

/// The case `image-base64-as-text`: a picture of 2.5 MiB is no half a million tokens. And
/// `image-flat-too-small`: twenty pictures of unknown size are not twenty times 85.
#[test]
fn pictures_have_their_own_bounded_cost() {
    let picture = |bytes: usize| {
        Block::Image(Image {
            media_type: "image/png".into(),
            data: Some(vec![0x89; bytes].into()),
            ..Image::default()
        })
    };
    for model in [
        "claude-sonnet-4-5",
        "claude-opus-4-8",
        "gpt-4o",
        "gpt-5-mini",
        "gpt-5.4",
        "gemini-3-pro",
        "gemini-2.5-pro",
        "grok-4",
    ] {
        let counter = counter(model, true);
        let count = |messages| counter.count_request(&request(model, messages)).unwrap().input_tokens.get();
        let one = count(vec![user(vec![picture(2_550_000)])]);
        assert!((700..20_000).contains(&one), "{model}: {one}");
        let twenty = count(vec![user(vec![picture(60_000)]); 20]);
        assert!(twenty > 15_000, "{model}: {twenty}");
    }
}

#[test]
fn a_signature_costs_something_even_without_text() {
    let signed = Thinking::new("", "U2lnbmF0dXJl".repeat(30), "anthropic", None);
    let message = Message::Assistant { blocks: Arc::from([Block::Thinking(signed)]), usage: None };
    let count = counter("claude-sonnet-4-5", true).count_message(&message).unwrap();
    // 360 bytes, of which some 250 hold nothing.
    assert!((20..40).contains(&count.get()), "{count}");
}

/// Reasoning of earlier turns: Claude before Opus 4.5 and OpenAI's models forget it, newer ones keep it.
#[test]
fn forgotten_reasoning_takes_nothing() {
    let reasoning = Thinking::new("I weigh one way against the other. ".repeat(40), "", "", None);
    let thought = Message::Assistant {
        blocks: Arc::from([Block::Thinking(reasoning), Block::text("This one.")]),
        usage: None,
    };
    let redacted = RawJson::parse(format!(r#"{{"data":"{}"}}"#, "aB3d".repeat(400))).unwrap();
    let hidden = Block::Opaque(Opaque { kind: "redacted_thinking".into(), raw: redacted });
    let hidden = Message::Assistant { blocks: Arc::from([hidden]), usage: None };
    let this_turn = vec![Message::user("Which?"), thought, hidden];
    let earlier_turn: Vec<Message> = this_turn.iter().cloned().chain([Message::user("Why?")]).collect();
    for (model, keeps) in [
        ("claude-sonnet-4-5", false),
        ("claude-opus-4-1", false),
        ("gpt-5", false),
        ("claude-opus-4-5", true),
        ("claude-opus-4-8", true),
        ("gemini-3-pro", true),
    ] {
        let counter = counter(model, true);
        let parts = |messages: &[Message]| {
            let parts = counter.measure_parts(&request(model, messages.to_vec())).unwrap();
            sums_add_up(&parts);
            parts.by_kind.get("thinking").copied().unwrap_or(0)
        };
        assert!(parts(&this_turn) > 200, "{model}");
        assert_eq!(parts(&earlier_turn) > 200, keeps, "{model}");
    }
}

/// Figures that the API reported: each pair of a call and its result takes six tokens beside names, arguments
/// and content, four more when the model also spoke, and a system message spares four of the tools' nine.
#[test]
fn openai_tools_are_counted_as_the_api_counts_them() {
    let o200k = |text: &str| Encoding::O200kBase.count(text);
    let count = |messages: Vec<Message>, tools: &[&str]| {
        let mut request = request("gpt-4o", messages);
        request.tools = tools.iter().map(|tool| RawJson::parse(*tool).unwrap()).collect();
        counter("gpt-4o", true).count_request(&request).unwrap().input_tokens.get()
    };
    let call = |id: &str| ToolUse::new(id, "ls", Some(RawJson::parse(r#"{"path":"."}"#).unwrap()), None);
    let said = |blocks: Vec<Block>| Message::Assistant { blocks: blocks.into(), usage: None };
    let result = |id| Message::tool_result(id, "src", false);
    let plain = 3 + 4 + o200k("go");
    let pair = 4 + o200k("ls") + o200k(r#"{"path":"."}"#) + 4 + o200k("src");
    let go = || Message::user("go");
    assert_eq!(count(vec![go(), said(vec![Block::ToolUse(call("1"))]), result("1")], &[]), plain + pair + 6);
    let spoke = vec![go(), said(vec![Block::text("Look."), Block::ToolUse(call("1"))]), result("1")];
    assert_eq!(count(spoke, &[]), plain + pair + 6 + o200k("Look.") + 4);
    let tool =
        r#"{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}"#;
    let signature = o200k("namespace functions {\n\ntype now = () => any;\n\n} // namespace functions");
    assert!(count(vec![go()], &[tool]).abs_diff(plain + 9 + signature) <= 1);
    let with_system = count(vec![Message::system("go"), go()], &[tool]);
    assert_eq!(with_system, count(vec![go()], &[tool]) + 4 + o200k("go") - 4);
}

#[test]
fn an_estimate_has_a_range_and_an_exact_count_is_a_point() {
    let text = "fn main() { let total = items.iter().map(Item::price).sum::<u64>(); }\n".repeat(50);
    let messages = || vec![Message::user(text.clone())];
    let exact = counter("gpt-4o", false);
    let point = exact.range(&request("gpt-4o", messages())).unwrap();
    assert_eq!((point.low, point.high), (point.tokens, point.tokens));
    assert_eq!(exact.error_band(ContentClass::Code), ErrorBand::EXACT);
    for model in ["claude-opus-4-5", "claude-opus-5", "gemini-3-pro", "grok-4"] {
        let counter = counter(model, true);
        let range = counter.range(&request(model, messages())).unwrap();
        assert!(range.low < range.tokens && range.tokens < range.high, "{model}: {range:?}");
        let band = counter.error_band(ContentClass::Code);
        // Rounded outward, to whole tokens and to whole percent.
        assert!(range.band().above_percent <= band.above_percent + 1, "{model}: {band}");
        assert_eq!(range.tokens, counter.count_request(&request(model, messages())).unwrap().input_tokens);
    }
    let unknown = LocalCounter::for_unknown_model(Family::Other);
    let nobody = request("nobody-1", messages());
    assert!(unknown.range(&nobody).unwrap().high > unknown.count_request(&nobody).unwrap().input_tokens);
    let rough = HeuristicEstimator.range(&nobody);
    assert!(rough.low < rough.tokens && rough.tokens < rough.high);
    assert_eq!(HeuristicEstimator.count_request(&nobody).input_tokens, rough.tokens);
}

/// Doubt that is less than a token for each message is some for all of them: an estimate never calls itself exact.
#[test]
fn many_small_parts_are_in_doubt_together() {
    let short: Vec<Message> =
        (0..1_000).flat_map(|_| [Message::user("yes"), Message::assistant("yes")]).collect();
    for family in [Family::OpenAi, Family::Anthropic, Family::Gemini, Family::Other] {
        let range =
            LocalCounter::for_unknown_model(family).range(&request("nobody-1", short.clone())).unwrap();
        let band = range.band();
        assert!(band.below_percent >= 10 && band.above_percent >= 8, "{family:?}: {band}");
        assert!(range.safety_margin(TokenCount(100_000)) > TokenCount(5_000), "{family:?}: {range:?}");
        // What rounding up adds to each is inside: at 1.03 tokens a word it is nearly one.
        let plain = 2_000 * Encoding::O200kBase.count("yes");
        let marks =
            range.tokens.get() - 2_000 * LocalCounter::for_unknown_model(family).estimate("yes").get();
        assert!(range.low.get() <= plain + marks, "{family:?}: {range:?}");
    }
    let call = |id: usize| {
        let input = RawJson::parse(r#"{"p":1}"#).unwrap();
        let call = Block::ToolUse(ToolUse::new(format!("c{id}"), "read", Some(input), None));
        Message::Assistant { blocks: [call].into(), usage: None }
    };
    let calls = |id: usize| [call(id), Message::tool_result(format!("c{id}"), "ok", false)];
    let calls = request("gpt-4o", (0..1_000).flat_map(calls).collect());
    let range = counter("gpt-4o", true).range(&calls).unwrap();
    assert!(range.band().below_percent >= 2 && range.band().above_percent >= 3, "{range:?}");
    assert!(range.safety_margin(TokenCount(100_000)) > TokenCount(1_000), "{range:?}");
}

/// A picture whose size is not known may cost far less than the most it can.
#[test]
fn a_picture_of_unknown_size_is_in_doubt() {
    let picture =
        |data: Vec<u8>| user(vec![Block::Image(Image { data: Some(data.into()), ..Image::default() })]);
    let header = |size: u32| {
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &size.to_be_bytes(), &size.to_be_bytes()].concat()
    };
    let counter = counter("claude-opus-4-5", true);
    let range = |message| counter.range(&request("claude-opus-4-5", vec![message])).unwrap();
    let (known, unknown) = (range(picture(header(1_000))), range(picture(vec![1, 2, 3])));
    assert!(known.band().below_percent < 20, "{:?}", known.band());
    assert!(unknown.band().below_percent > 60, "{:?}", unknown.band());
}

fn any_block() -> impl Strategy<Value = Block> {
    let leaf =
        prop_oneof![
            "[ -~\n]{0,80}".prop_map(Block::text),
            "[ -~]{0,20}".prop_map(|text| Block::Refusal { text: text.into() }),
            (0..3_000_usize)
                .prop_map(|len| Block::Image(Image { data: Some(vec![0; len].into()), ..Image::default() })),
            (0..90_000_usize)
                .prop_map(|len| Block::Audio(Audio { data: Some(vec![0; len].into()), ..Audio::default() })),
            ("[a-z ]{0,40}", any::<bool>()).prop_map(|(text, has_data)| {
                let data = has_data.then(|| SharedBytes::from(b"%PDF-1.7 /Type /Page /Count 3".to_vec()));
                Block::Document(Document { text: text.into(), data, ..Document::default() })
            }),
            ("[a-z ]{0,40}", "[A-Za-z0-9]{0,300}").prop_map(|(text, signature)| Block::Thinking(
                Thinking::new(text, signature, "anthropic", None)
            )),
            "[a-z]{1,9}".prop_map(|name| {
                Block::ToolUse(ToolUse::new(
                    "id",
                    name,
                    Some(RawJson::parse(r#"{"path":"a/b.rs"}"#).unwrap()),
                    None,
                ))
            }),
            "[A-Za-z0-9]{0,400}".prop_map(|sealed| {
                let raw = RawJson::parse(format!(r#"{{"encrypted_content":"{sealed}"}}"#)).unwrap();
                Block::Opaque(Opaque { kind: "compaction".into(), raw })
            }),
        ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(|content| {
            Block::ToolResult(ToolResult {
                tool_use_id: "id".into(),
                content: content.into(),
                is_error: false,
            })
        })
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    (0..4_u8, prop::collection::vec(any_block(), 0..5)).prop_map(|(role, blocks)| {
        let blocks = blocks.into();
        match role {
            0 => Message::User { blocks },
            1 => Message::Assistant { blocks, usage: None },
            2 => Message::System { blocks },
            _ => Message::ToolResult { blocks, tool_use_id: "id".into(), is_error: false },
        }
    })
}

fn sums_add_up(parts: &Breakdown) {
    let content: u64 = parts.per_message.iter().sum();
    assert_eq!(parts.by_role.values().sum::<u64>(), content);
    assert_eq!(parts.by_kind.values().sum::<u64>(), content);
    assert_eq!(parts.total, content + parts.tools + parts.framing + parts.unseen);
    assert_eq!(parts.range.tokens.get(), parts.total);
    assert!(parts.range.low <= parts.range.tokens && parts.range.tokens <= parts.range.high);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is in a request: an estimate leaves something on both sides, an exact count nothing.
    #[test]
    fn an_estimate_never_calls_itself_exact(
        messages in prop::collection::vec(any_message(), 0..6),
        texts in prop::collection::vec("[ -~]{0,30}", 0..6),
        unseen in 0..5_000_u64,
    ) {
        let counters = [
            ("gpt-4o", counter("gpt-4o", true)),
            ("gpt-5", counter("gpt-5", true)),
            ("claude-sonnet-4-5", counter("claude-sonnet-4-5", true)),
            ("gemini-2.5-pro", counter("gemini-2.5-pro", true)),
            ("nobody-1", LocalCounter::for_unknown_model(Family::OpenAi)),
            ("nobody-1", LocalCounter::with_encoding(Encoding::Cl100kBase, true)),
        ];
        let texts: Vec<Message> = texts.into_iter().map(Message::user).collect();
        for messages in [messages, texts.clone()] {
            for (model, counter) in &counters {
                let mut request = request(model, messages.clone());
                request.unseen_tokens = TokenCount(unseen);
                for range in [counter.range(&request).unwrap(), HeuristicEstimator.range(&request)] {
                    prop_assert!(range.low < range.tokens && range.tokens < range.high, "{range:?}");
                    prop_assert!(range.safety_margin(TokenCount(1)) > TokenCount::ZERO, "{range:?}");
                    let band = range.band();
                    prop_assert!(band.below_percent > 0 && band.above_percent > 0, "{}", band);
                }
            }
        }
        let range = counter("gpt-4o", false).range(&request("gpt-4o", texts)).unwrap();
        prop_assert_eq!((range.low, range.high), (range.tokens, range.tokens));
        prop_assert_eq!((range.band(), range.safety_margin(TokenCount(9_000))), (ErrorBand::EXACT, TokenCount::ZERO));
    }

    /// Counting again, counting with one more message, and counting from scratch agree, and so do the parts.
    #[test]
    fn the_memory_never_changes_a_count(
        messages in prop::collection::vec(any_message(), 0..12),
        later in any_message(),
        unseen in 0..5_000_u64,
    ) {
        for model in ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro"] {
            let lasting = counter(model, true);
            let mut request = request(model, messages.clone());
            request.tools = Arc::from([RawJson::parse(r#"{"name":"read","input_schema":{}}"#).unwrap()]);
            request.unseen_tokens = TokenCount(unseen);
            let first = lasting.count_request(&request).unwrap();
            prop_assert_eq!(&first, &lasting.count_request(&request).unwrap());

            request.messages = messages.iter().cloned().chain([later.clone()]).collect();
            let warm = lasting.count_request(&request).unwrap();
            let cold = counter(model, true).count_request(&request).unwrap();
            prop_assert_eq!(&warm, &cold);
            // A message of the user ends a turn, and with it the reasoning; a system message makes tools cheaper.
            if matches!(later.role(), Role::Assistant | Role::Tool) {
                let more = lasting.count_message(&later).unwrap().get();
                prop_assert_eq!(warm.input_tokens.get(), first.input_tokens.get() + more);
            }

            let parts = lasting.measure_parts(&request).unwrap();
            sums_add_up(&parts);
            prop_assert_eq!(parts.total, warm.input_tokens.get());
            sums_add_up(&HeuristicEstimator.measure_parts(&request));
        }
    }
}

/// Blocks that are dropped and built anew may land on the same address; they must not inherit a count.
#[test]
fn a_reused_address_does_not_inherit_a_count() {
    let counter = counter("gpt-4o", false);
    for length in (1..400).chain((1..400).rev()) {
        let text = "word ".repeat(length);
        let expected = 3 + 4 + Encoding::O200kBase.count(&text);
        let count = counter.count_request(&request("gpt-4o", vec![Message::user(text)])).unwrap();
        assert_eq!(count.input_tokens, TokenCount(expected));
    }
}

#[test]
fn parts_name_roles_and_kinds() {
    let call = Block::ToolUse(ToolUse::new("1", "read", Some(RawJson::parse("{}").unwrap()), None));
    let messages = vec![
        Message::user("hello"),
        Message::Assistant { blocks: Arc::from([Block::text("reading"), call]), usage: None },
        Message::tool_result("1", "line", false),
    ];
    let parts = counter("gpt-4o", true).measure_parts(&request("gpt-4o", messages)).unwrap();
    assert_eq!(parts.by_role.keys().copied().collect::<Vec<_>>(), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(parts.by_kind.keys().copied().collect::<Vec<_>>(), ["text", "tool_use"]);
    assert_eq!(parts.per_message.len(), 3);
}

#[test]
fn the_estimators_size_text() {
    let text = "The parser stops at the first byte that is no letter.";
    let exact = counter("gpt-4o", false).estimate(text).get();
    assert_eq!(exact, Encoding::O200kBase.count(text));
    let rough = HeuristicEstimator.estimate(text).get();
    assert!(rough.abs_diff(exact) <= exact / 3, "{rough} for {exact}");
}
