//! Laws of the structured summarizer on generated input.

use std::sync::Arc;

use epitome_loop::{Block, Message, ModelCallErrorKind, SharedText, TokenCount, ToolResult};
use epitome_summarizers::structured::{
    CharacterScale, Pairing, ResultNote, ResultPlace, Retention, StructuredOutcome, StructuredPass,
    StructuredSummary, SummarySection, SummaryTemplate, count_messages, estimate_text, is_substantive,
    read_summary, render, split_by_budget, split_by_count, trim_summary_to_budget,
};
use proptest::prelude::*;

use crate::structured_scene::{Answer, calls, config, run, says};

/// Entries as friends and foes write them.
fn entry() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word ",
        "x",
        "語",
        "\n",
        "\r",
        "\r\n",
        "\u{2028}",
        "\u{85}",
        "### Decisions",
        "Decisions:",
        "**Key facts**",
        "- ",
        "* b",
        "```",
        "---",
        "===",
        "{\"decisions\": [\"x\"]}",
        "[trimmed]",
        "  ",
        "\\",
        "# ",
        "1. c",
        "• d",
        "Other\n===\n",
        "[x] e",
        "~~~",
        "a longer piece of text, ",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

fn summary() -> impl Strategy<Value = StructuredSummary> {
    let list = || prop::collection::vec(entry().prop_map(SharedText::from), 0..8);
    (list(), list(), list(), list()).prop_map(|(key_facts, decisions, pending_tasks, open_questions)| {
        StructuredSummary { key_facts, decisions, pending_tasks, open_questions }
    })
}

fn template() -> SummaryTemplate {
    SummaryTemplate { header: "## Recap".into(), ..SummaryTemplate::default_template() }
}

fn message() -> impl Strategy<Value = Message> {
    let id = prop::sample::select(vec!["a", "b", "c"]);
    let text = "[a-z<& \n]{0,40}";
    prop_oneof![
        text.prop_map(Message::user),
        text.prop_map(Message::assistant),
        text.prop_map(Message::system),
        prop::collection::vec(id.clone(), 1..3).prop_map(|ids| calls(&ids)),
        (id.clone(), text).prop_map(|(id, text)| Message::tool_result(id, text, false)),
        (id, text).prop_map(|(id, text)| Message::User {
            blocks: Arc::from([Block::ToolResult(ToolResult {
                tool_use_id: id.into(),
                content: Arc::from([Block::text(text)]),
                is_error: false,
            })]),
        }),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(says("")),
        Just(says("### Decisions\n- keep")),
        Just(Err(ModelCallErrorKind::Network.into())),
        entry().prop_map(|text| says(&text)),
        summary().prop_map(|summary| says(&render(&summary, &template()))),
        (1..400_usize).prop_map(|count| says(&format!("### Key facts\n{}", "- fact\n".repeat(count)))),
    ]
}

/// Pairs by occurrence, counted the simple way: how many calls and results stand alone.
fn loose(messages: &[Message]) -> (usize, usize) {
    let mut open: Vec<String> = Vec::new();
    let mut lone = 0;
    for message in messages {
        let mut answer = |id: &SharedText, open: &mut Vec<String>| match open
            .iter()
            .rposition(|one| *one == id.as_str())
        {
            Some(at) => drop(open.remove(at)),
            None => lone += 1,
        };
        if let Message::ToolResult { tool_use_id, .. } = message {
            answer(tool_use_id, &mut open);
        }
        for block in message.blocks().iter() {
            match block {
                Block::ToolUse(call) => open.push(call.id.to_string()),
                Block::ToolResult(result) => answer(&result.tool_use_id, &mut open),
                _ => {}
            }
        }
    }
    (open.len(), lone)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_rendering_reads_back_with_as_many_entries_in_each_section(summary in summary()) {
        let text = render(&summary, &template());
        let read = read_summary(&text);
        // A blank entry, or one that is a bare mark, is no bullet.
        let speaks = |item: &&SharedText| !item.trim().is_empty();
        for section in SummarySection::ALL {
            let written = summary.items(section).iter().filter(speaks).count();
            let found = read.as_ref().map_or(0, |read| read.items(section).len());
            prop_assert_eq!(found, written, "{} {:?}", section.title(), text);
        }
    }

    #[test]
    fn a_trim_keeps_the_budget_and_uses_it(summary in summary(), share in 20_u64..100) {
        let whole = estimate_text(&render(&summary, &template()));
        let budget = TokenCount(whole.get() * share / 100);
        if let Some(trimmed) = trim_summary_to_budget(&summary, &template(), budget) {
            prop_assert!(estimate_text(&trimmed.text) <= budget);
            prop_assert!(summary.is_empty() || is_substantive(&trimmed.text.replace("## Recap", "")));
            prop_assert_eq!(trimmed.left_out > 0, trimmed.text.contains("\n[trimmed]") && whole > budget);
        }
    }

    #[test]
    fn at_twice_the_budget_nine_tenths_are_used(summary in summary()) {
        let whole = estimate_text(&render(&summary, &template()));
        let budget = TokenCount(whole.get().div_ceil(2));
        let says = SummarySection::ALL.iter().flat_map(|&section| summary.items(section)).all(|item| is_substantive(item));
        // Below this the headings and marks alone take most of it.
        if says && !summary.is_empty() && budget.get() >= 60 {
            let trimmed = trim_summary_to_budget(&summary, &template(), budget).unwrap();
            prop_assert!(estimate_text(&trimmed.text).get() * 10 >= budget.get() * 9, "{}", trimmed.text.as_str());
        }
    }

    #[test]
    fn a_split_parts_no_pair(messages in prop::collection::vec(message(), 0..30), budget in 0_u64..200, recent in 0_usize..8) {
        let pairing = Pairing::of(&messages);
        let scale = CharacterScale::default();
        for split in [
            split_by_count(&messages, &pairing, 4, recent),
            split_by_budget(&messages, &pairing, &scale, 4, recent, TokenCount(budget)),
        ] {
            let (old, tail) = messages.split_at(split);
            let (whole, parts) = (loose(&messages), [loose(old), loose(tail)]);
            prop_assert_eq!(whole, (parts[0].0 + parts[1].0, parts[0].1 + parts[1].1));
        }
    }

    #[test]
    fn a_pass_takes_two_calls_at_most_and_leaves_the_history_alone(
        messages in prop::collection::vec(message(), 0..30),
        answers in prop::collection::vec(answer(), 0..3),
        target in 0_u64..600,
        durable in prop::sample::select(vec!["a", "b", "none"]),
        parse in any::<bool>(),
    ) {
        let notes = move |place: ResultPlace<'_>| ResultNote {
            retention: if place.tool_use_id.as_str() == durable { Retention::Durable } else { Retention::Requery },
            tool: None,
        };
        let pass = StructuredPass {
            notes: Arc::new(notes),
            ..StructuredPass::new(messages.clone().into(), TokenCount(target))
        };
        let (outcome, asked) = run(config().parse_output(parse), &pass, answers);
        prop_assert!(asked.len() <= 2);
        prop_assert_eq!(&pass.messages[..], &messages[..]);
        for call in &asked {
            let (_, user) = crate::structured_scene::prompts(call);
            prop_assert_eq!(user.matches('<').count(), 2, "only the frame's own");
        }
        match outcome {
            StructuredOutcome::Compacted { messages: new, evicted, tokens_after, .. } => {
                let scale = CharacterScale::default();
                prop_assert!(tokens_after < count_messages(&scale, &messages));
                prop_assert_eq!(new.len() + evicted.len(), messages.len() + 1);
                let (before, after) = (loose(&messages), loose(&new));
                prop_assert!(after.0 <= before.0 && after.1 <= before.1, "{before:?} {after:?}");
            }
            StructuredOutcome::NoChange { .. } => prop_assert!(asked.is_empty()),
            StructuredOutcome::Failed { .. } => {}
        }
    }
}

/// A history of this length takes about so much longer than one of a tenth: not a hundred times.
#[test]
fn a_pass_is_linear() {
    let time = |exchanges: usize| {
        let history: Vec<Message> = std::iter::once(Message::user("task"))
            .chain((0..exchanges).flat_map(|at| {
                let id = format!("c{at}");
                [calls(&[&id]), Message::tool_result(id.as_str(), "r".repeat(50), false)]
            }))
            .collect();
        let pass = StructuredPass::new(history.into(), TokenCount(exchanges as u64));
        let once = || {
            let start = std::time::Instant::now();
            drop(run(config(), &pass, [says("### Decisions\n- x")]));
            start.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap()
    };
    let (short, long) = (time(4_000), time(40_000));
    assert!(long < short * 40, "{short:?} {long:?}");
}
