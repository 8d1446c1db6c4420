//! Laws of the pure layer, over generated conversations and summaries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use epitome_loop::{Block, KeepRecent, Message, Role, Section, SummarySections, TokenCount, ToolUse};
use epitome_loopruntime::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Text with what makes trouble: markup, control characters, line ends, wide and forbidden characters.
fn any_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop_oneof![Just('<'), Just('>'), Just('&'), Just(']'), Just('"'), Just('\n'), Just('\r'), Just(' ')],
        prop_oneof![Just('\0'), Just('\u{1b}'), Just('\u{85}'), Just('\u{fffe}'), Just('\u{200b}')],
    ];
    vec(character, 0..40).prop_map(String::from_iter)
}

fn sections() -> impl Strategy<Value = SummarySections> {
    vec(vec(any_text(), 0..4), 5).prop_map(|items| {
        let mut sections = SummarySections::default();
        for (section, items) in Section::ALL.into_iter().zip(items) {
            *sections.items_mut(section) = items.into_iter().map(Into::into).collect();
        }
        sections
    })
}

/// What a turn adds: talk, or an exchange with parallel calls and a user who may speak in between.
#[derive(Clone, Debug)]
enum Turn {
    User,
    Assistant,
    Exchange { calls: usize, folded: bool, nested: bool },
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let turn = prop_oneof![
        Just(Turn::User),
        Just(Turn::Assistant),
        (1..4_usize, any::<bool>(), any::<bool>()).prop_map(|(calls, folded, nested)| Turn::Exchange {
            calls,
            folded,
            nested
        }),
    ];
    (vec((turn, 0..200_usize), 0..30)).prop_map(|turns| {
        let mut messages = vec![Message::user("start")];
        for (turn, size) in turns {
            let text = "x".repeat(size);
            match turn {
                Turn::User => messages.push(Message::user(text)),
                Turn::Assistant => messages.push(Message::assistant(text)),
                Turn::Exchange { calls, folded, nested } => {
                    exchange(&mut messages, calls, folded, nested, &text)
                }
            }
        }
        messages
    })
}

/// Ids repeat over the conversation on purpose: they are unique only among open calls.
fn exchange(messages: &mut Vec<Message>, calls: usize, folded: bool, nested: bool, text: &str) {
    let call = |at: usize| Block::ToolUse(ToolUse::new(format!("call_{at}"), "tool", None, None));
    if nested {
        // A second call is made before the first is answered.
        messages.push(Message::Assistant { blocks: [call(90)].into(), usage: None });
    }
    messages.push(Message::Assistant { blocks: (0..calls).map(call).collect(), usage: None });
    for at in (0..calls).rev() {
        if folded {
            messages.push(Message::user("still there?"));
        }
        messages.push(Message::tool_result(format!("call_{at}"), text, false));
    }
    if nested {
        messages.push(Message::tool_result("call_90", text, false));
    }
}

/// For each result, the message with its call, found the slow way.
fn pairs(messages: &[Message]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Message::ToolResult { tool_use_id, .. } = message {
            let holds = |earlier: &Message| earlier.tool_calls().any(|call| call.id == *tool_use_id);
            pairs.push((messages.get(..at).unwrap().iter().rposition(holds).unwrap(), at));
        }
    }
    pairs
}

fn parts_no_pair(messages: &[Message], kept: &[usize]) -> bool {
    pairs(messages).iter().all(|(call, result)| kept.contains(call) == kept.contains(result))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_is_rendered_is_accepted_and_read_back(sections in sections()) {
        let rendered = sections.render();
        prop_assert_eq!(rendered.xml.len(), sections.rendered_len());
        let says_something = |section: Section| {
            let text: String = sections.items(section).iter().map(|item| item.as_str()).collect();
            text.chars().any(|c| !c.is_whitespace() && epitome_loop::is_xml_character(c))
        };
        let parsed = parse_summary(rendered.xml.as_bytes());
        if says_something(Section::Goal) && says_something(Section::State) {
            let parsed = parsed.unwrap();
            prop_assert_eq!(parsed.raw(), &rendered.xml);
        } else {
            prop_assert_eq!(parsed.unwrap_err().reason.as_str(), "xml_content");
        }
    }

    #[test]
    fn parsing_any_bytes_never_panics(mut bytes in vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>()) {
        let _ = parse_summary(&bytes);
        let valid = SummarySections { goal: vec!["g".into()], state: vec!["s".into()], ..Default::default() };
        let mut xml = valid.render().xml.as_bytes().to_vec();
        let place = at.index(xml.len());
        bytes.truncate(3);
        xml.splice(place..place, bytes);
        let _ = parse_summary(&xml);
    }

    #[test]
    fn a_tail_never_parts_a_pair(
        messages in conversation(),
        segments in 1..6_u64,
        tokens in 1..2_000_u64,
    ) {
        let keep = KeepRecent { segments, tokens: TokenCount(tokens) };
        let choice = select_tail(&messages, 0, keep).unwrap();
        let kept: Vec<usize> = (choice.head..messages.len()).collect();
        prop_assert!(parts_no_pair(&messages, &kept));
        prop_assert_eq!(messages[choice.head].role(), Role::User);

        let outline = SegmentOutline::of(&messages, 0).unwrap();
        for cut in [outline.inside_segment(tokens), outline.anchor_alone()].into_iter().flatten() {
            let cut = TailCut::InsideSegment(cut);
            let kept: Vec<usize> = cut.kept(messages.len()).collect();
            prop_assert!(parts_no_pair(&messages, &kept), "{:?}", cut);
            prop_assert_eq!(messages[kept[0]].role(), Role::User);
            let mut all: Vec<usize> = cut.summarized().chain(kept).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..messages.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn projection_keeps_the_order_and_bounds_results(
        texts in vec(("[a🚀é]{0,40}", 0..120_usize), 1..8),
    ) {
        let messages: Vec<Message> =
            texts.iter().map(|(text, times)| Message::tool_result("t", text.repeat(*times), false)).collect();
        for mode in [Projection::Reference, Projection::WithReferences] {
            let projected = project(&messages, mode).unwrap();
            prop_assert_eq!(projected.len(), messages.len());
            for (before, after) in messages.iter().zip(&projected) {
                let ([Block::Text { text: before }], [Block::Text { text: after }]) =
                    (&**before.blocks(), &**after.blocks()) else { panic!("one text each") };
                let (before, after) = (before.chars().count(), after.chars().count());
                prop_assert_eq!(after, before.min(TOOL_RESULT_CODE_POINTS));
            }
            prop_assert_eq!(project(&projected, mode).unwrap(), projected, "projecting twice changes nothing");
        }
    }
}
