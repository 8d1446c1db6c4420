//! One compaction from end to end, with a scripted counter and scripted summaries.

use std::task::{Context, Poll, Waker};

use epitome_loop::*;
use epitome_loopruntime::{InsideSegment, Landing, TailCut, Unavailable};
use epitome_sessionruntime::*;

use crate::compaction_scene::{Setup, call, one_user_session, sections, talk};

#[test]
fn below_the_threshold_a_session_is_left_alone() {
    let (outcome, asked) = Setup::new(talk(3), 10_000).run();
    assert!(matches!(outcome, Outcome::LeftAlone { level: PressureLevel::Normal, .. }));
    assert!(asked.is_none());
}

#[test]
fn the_tail_is_kept_and_the_rest_replaced() {
    let (done, asked) = Setup::new(talk(10), 900).compacted();
    assert_eq!(done.kept, (16..20).collect::<Vec<_>>());
    assert_eq!(done.replaced, (0..16).collect::<Vec<_>>());
    assert_eq!(asked.transcript.len(), 16);
    assert_eq!(done.landing, Landing::Low);
    assert!(done.after.input_tokens < done.before.input_tokens);
    assert_eq!(done.summary.text(Section::State), "state");
}

#[test]
fn without_a_kept_tail_the_summary_replaces_everything_but_the_system() {
    let mut setup = Setup::new(one_user_session(30), 1_000);
    setup.policy.keep_recent = None;
    let (done, _) = setup.compacted();
    assert_eq!(done.kept, [0]);
    assert_eq!(done.replaced.len(), 61);
}

#[test]
fn a_session_of_one_user_message_is_cut_inside_and_keeps_that_message() {
    let (done, asked) = Setup::new(one_user_session(30), 1_000).compacted();
    assert_eq!(asked.transcript[0], Message::user("fix the build"), "the summary knows what it is about");
    let TailCut::InsideSegment(InsideSegment { anchor: Some(0), tail }) = done.cut else {
        panic!("{:?}", done.cut)
    };
    assert!(tail > 1 && done.kept.starts_with(&[0, 1]));
    assert!(done.kept.len() > 4, "several exchanges fit");
}

#[test]
fn an_open_call_of_the_newest_turn_is_kept() {
    let mut messages = one_user_session(30);
    messages.push(call("open"));
    let (done, _) = Setup::new(messages, 1_000).compacted();
    assert_eq!(done.kept.last(), Some(&62));
}

#[test]
fn the_tail_yields_to_the_room_there_is() {
    let mut setup = Setup::new(one_user_session(30), 1_000);
    setup.policy.keep_recent = Some(KeepRecent { segments: 9, tokens: TokenCount(1_000_000) });
    let (done, _) = setup.compacted();
    assert_eq!(done.landing, Landing::Low);
    assert!(done.after.input_tokens.get() < 600);
}

#[test]
fn a_newest_exchange_that_cannot_fit_is_summarized_whole() {
    let mut messages = one_user_session(3);
    messages.extend([call("big"), Message::tool_result("big", "r".repeat(8_000), false)]);
    let (done, _) = Setup::new(messages, 1_000).compacted();
    assert_eq!(done.kept, [0, 1]);
}

#[test]
fn a_newest_exchange_that_would_land_high_is_summarized_with_the_rest() {
    let mut messages = one_user_session(10);
    // Fits the window of 1,000, and with the summary lies above the 600 where it would fire again.
    messages.extend([call("long"), Message::tool_result("long", "r".repeat(2_400), false)]);
    let (done, _) = Setup::new(messages, 1_000).compacted();
    assert_eq!(done.landing, Landing::Low);
    assert_eq!(done.kept, [0, 1]);
}

#[test]
fn the_tail_is_counted_as_it_will_be_sent() {
    // By the estimate the picture is tiny; what it really takes makes the tail yield.
    let mut messages = talk(6);
    messages.push(Message::User { blocks: [Block::Image(Image::default())].into() });
    messages.push(Message::assistant("a picture"));
    messages.push(Message::user("and now?"));
    let (done, _) = Setup::new(messages, 1_300).compacted();
    assert_eq!(done.kept, [14]);
}

#[test]
fn an_earlier_summary_goes_in_as_such_and_is_not_summarized_again() {
    let earlier = sections("earlier state");
    let mut messages = vec![Message::user(earlier.render().xml)];
    messages.extend(talk(10));
    let mut setup = Setup::new(messages, 900);
    setup.session.earlier = recognize_earlier_summary(&setup.session.messages);
    let (done, asked) = setup.compacted();
    assert_eq!(asked.previous, Some(earlier));
    assert_eq!(done.replaced.first(), Some(&0));
    assert_eq!(asked.transcript.len(), done.replaced.len() - 1);
}

#[test]
fn behind_an_earlier_summary_the_model_may_go_on() {
    // Another tool's compaction kept a range that begins in the middle of a turn.
    let mut messages = vec![Message::system("be brief"), Message::user("## Summary\nearlier work")];
    messages.extend(one_user_session(30).into_iter().skip(2));
    let mut setup = Setup::new(messages, 1_000);
    setup.session.earlier = Some(EarlierSummary { messages: 1, sections: None });
    let (done, asked) = setup.compacted();
    assert_eq!(done.replaced[0], 1, "the new summary takes the place of the old one");
    assert_eq!(asked.transcript[0], Message::user("## Summary\nearlier work"), "folded in as text");
    assert!(done.kept.len() > 3);
}

#[test]
fn a_manual_demand_carries_its_instructions_and_ignores_thresholds() {
    let mut setup = Setup::new(talk(10), 100_000);
    setup.session.demand = Demand::Manual;
    setup.session.instructions = Some("mind the queue".into());
    let (done, asked) = setup.compacted();
    assert_eq!(asked.instructions, Some("mind the queue".into()));
    assert!(!done.replaced.is_empty());
}

#[test]
fn a_policy_without_a_trigger_waits_to_be_asked() {
    let mut setup = Setup::new(talk(40), 1_000);
    setup.policy.automatic = false;
    setup.policy.max_request_bytes = Some(1);
    let (outcome, asked) = setup.run();
    assert!(matches!(outcome, Outcome::LeftAlone { level: PressureLevel::HardLimit, .. }), "{outcome:?}");
    assert!(asked.is_none());
    let mut setup = Setup::new(talk(40), 1_000);
    setup.policy.automatic = false;
    setup.session.demand = Demand::Manual;
    setup.compacted();
}

#[test]
fn opaque_items_are_marked_before_they_are_summarized() {
    let opaque = Block::Opaque(Opaque {
        kind: "server_tool_use".into(),
        raw: RawJson::parse("{\"id\":\"secret\"}").unwrap(),
    });
    let mut messages = vec![
        Message::user("search"),
        Message::Assistant { blocks: [opaque, Block::text("found")].into(), usage: None },
    ];
    messages.extend(talk(10));
    let (_, asked) = Setup::new(messages, 900).compacted();
    assert_eq!(asked.transcript[1].blocks()[0], Block::text("[provider item omitted]"));
    assert_eq!(asked.transcript[1].blocks()[1], Block::text("found"));
}

#[test]
fn every_refusal_has_its_reason() {
    let mut setup = Setup::new(talk(10), 900);
    setup.session.limits = ContextLimits::default();
    assert!(matches!(setup.refused(), RefusalReason::ContextLimitUnknown(_)));

    let mut setup = Setup::new(talk(10), 900);
    setup.quality = CountQuality::ExactProvider;
    assert_eq!(setup.refused(), RefusalReason::ContextCountFailed(CountFailure::OtherQuality));

    let setup = Setup::new(vec![Message::user("u".repeat(4_000))], 900);
    assert_eq!(setup.refused(), RefusalReason::Unavailable(Unavailable::NothingToCompact));

    let mut setup = Setup::new(one_user_session(3), 1_000);
    setup.session.unseen_tokens = TokenCount(950);
    assert!(matches!(setup.refused(), RefusalReason::RetainedTailTooLarge { .. }));

    let mut setup = Setup::new(talk(10), 900);
    setup.answer = Err(SummarizerError::Unavailable);
    assert_eq!(setup.refused(), RefusalReason::ExecutionFailed(SummarizerError::Unavailable));

    let mut setup = Setup::new(talk(10), 900);
    setup.answer = Ok(sections("\u{3000}"));
    assert_eq!(setup.refused().detail(), Some("xml_content"));

    let mut setup = Setup::new(talk(10), 900);
    setup.answer = Ok(sections(&"long ".repeat(100)));
    assert_eq!(setup.refused().detail(), Some("token_limit"));

    let mut setup = Setup::new(talk(2), 100_000);
    setup.session.demand = Demand::Manual;
    setup.policy.max_summary_tokens = TokenCount(10_000);
    setup.answer = Ok(sections(&"long ".repeat(200)));
    assert_eq!(setup.refused().detail(), Some("not_smaller"));
}

#[test]
fn a_request_over_its_byte_limit_is_compacted_although_its_tokens_fit() {
    for (turns, limit) in [(10, 1_000), (60, 2_000), (60, 5_000)] {
        let messages = talk(turns);
        let mut setup = Setup::new(messages.clone(), 1_000_000);
        setup.policy.keep_recent = Some(KeepRecent { segments: u64::MAX, tokens: TokenCount(100_000) });
        setup.policy.max_request_bytes = Some(limit);
        let (done, asked) = setup.compacted();
        let kept: u64 = done.kept.iter().map(|&at| core_json_len(&messages[at])).sum();
        let summary = core_json_len(&Message::user(done.summary.raw().clone()));
        assert!(kept + summary <= limit, "{kept} and {summary} of {limit}");
        assert!(asked.max_bytes.is_some_and(|most| most as u64 * 2 <= limit - kept));
    }
}

#[test]
fn a_request_that_stays_over_its_byte_limit_is_refused() {
    let mut setup = Setup::new(talk(10), 100_000);
    setup.policy.max_request_bytes = Some(150);
    assert_eq!(setup.refused().detail(), Some("bytes"));
    let mut setup = Setup::new(talk(10), 100_000);
    setup.policy.max_request_bytes = Some(900);
    setup.policy.max_summary_tokens = TokenCount(120);
    // Markup takes more bytes in a request than in a text.
    setup.answer = Ok(sections(&"&".repeat(40)));
    assert_eq!(setup.refused().detail(), Some("over_bytes"));
}

#[test]
fn results_that_nest_too_deep_are_refused_whatever_is_measured() {
    let mut block = Block::text("innermost");
    for _ in 0..3_000 {
        block = Block::ToolResult(ToolResult {
            tool_use_id: "c".into(),
            content: [block].into(),
            is_error: false,
        });
    }
    let mut setup = Setup::new(vec![Message::User { blocks: [block].into() }], 100);
    setup.session.demand = Demand::Manual;
    setup.policy.max_request_bytes = Some(10);
    assert_eq!(setup.refused().as_str(), "unavailable");
}

#[test]
fn what_is_pinned_stays_in_its_place_with_what_it_needs() {
    let mut setup = Setup::new(one_user_session(30), 1_000);
    // A result in the old part; its call comes along.
    setup.session.pinned = [21].into();
    let (done, asked) = setup.compacted();
    assert_eq!(done.pinned, [20, 21]);
    assert!(done.kept.starts_with(&[0, 1, 20, 21]), "{:?}", done.kept);
    assert!(!done.replaced.contains(&20) && done.replaced.contains(&22));
    assert!(!asked.transcript.iter().any(|message| message.tool_calls().any(|call| call.id == "9")));
    assert!(asked.transcript.iter().any(|message| message.tool_calls().any(|call| call.id == "8")));
}

#[test]
fn a_pinned_word_of_the_user_is_summarized_as_well() {
    let mut setup = Setup::new(talk(10), 900);
    setup.session.pinned = [0, 5].into();
    let (done, asked) = setup.compacted();
    assert_eq!(done.pinned, [0, 5]);
    assert!(done.kept.starts_with(&[0, 5]));
    let before = done.kept[2];
    assert_eq!(asked.transcript.len(), before - 1, "without the pinned answer");
}

#[test]
fn pins_of_the_tail_or_of_the_system_change_nothing() {
    let plain = Setup::new(one_user_session(30), 1_000).compacted().0;
    let mut setup = Setup::new(one_user_session(30), 1_000);
    setup.session.pinned = [0, 60].into();
    let pinned = setup.compacted().0;
    assert_eq!((pinned.kept, pinned.replaced), (plain.kept, plain.replaced));
    assert_eq!(pinned.pinned, [0, 60, 61]);
}

#[test]
fn a_pin_needs_a_message() {
    let mut setup = Setup::new(talk(10), 900);
    setup.session.pinned = [20].into();
    assert_eq!(setup.refused(), RefusalReason::PinInvalid { message: 20 });

    let mut messages = vec![Message::user(sections("earlier state").render().xml)];
    messages.extend(talk(10));
    let mut setup = Setup::new(messages, 900);
    setup.session.earlier = recognize_earlier_summary(&setup.session.messages);
    setup.session.pinned = [0].into();
    let reason = setup.refused();
    assert_eq!((reason.as_str(), reason.detail()), ("unavailable", Some("pin_invalid")));
}

#[test]
fn pins_that_are_too_many_are_refused_with_how_much() {
    let size: u64 = talk(1).iter().map(tail_estimate).sum();
    let mut setup = Setup::new(talk(10), 6 * size);
    setup.session.pinned = (0..20).collect();
    let reason = setup.refused();
    let RefusalReason::PinnedTooLarge { pinned_tokens, over, input_limit, .. } = reason else {
        panic!("{reason:?}")
    };
    let user = tail_estimate(&talk(1)[0]);
    // The newest word of the user stays anyway.
    assert_eq!(pinned_tokens.get(), 10 * size - user);
    assert_eq!(over.get(), 10 * size + 100 + 1 - input_limit.get());
    assert_eq!((reason.as_str(), reason.detail()), ("retained_tail_too_large", Some("pinned")));

    let mut setup = Setup::new(talk(3), 100_000);
    setup.session.demand = Demand::Manual;
    setup.session.pinned = (0..6).collect();
    assert_eq!(setup.refused(), RefusalReason::Unavailable(Unavailable::NothingToCompact));
}

#[test]
fn a_summary_that_the_model_acknowledged_may_be_followed_by_more_of_its_words() {
    let mut messages = vec![Message::user("what an earlier compaction left"), Message::assistant("Got it.")];
    messages.extend(one_user_session(30).into_iter().skip(2));
    let mut setup = Setup::new(messages, 1_000);
    setup.session.earlier = Some(EarlierSummary { messages: 2, sections: None });
    let (done, asked) = setup.compacted();
    assert!(done.replaced.starts_with(&[0, 1]), "{:?}", done.replaced);
    assert_eq!(asked.transcript[0], Message::user("what an earlier compaction left"));
}

/// Whoever runs it has other things to do as well, and need not be a runtime.
#[test]
fn a_large_session_lets_others_have_their_turn_and_needs_no_runtime() {
    let mut setup = Setup::new(talk(10), 1_000_000);
    // Eight messages of a megabyte, all of which the policy would keep.
    let large = (0..8).map(|_| Message::user("x".repeat(1 << 20)));
    setup.session.messages = setup.session.messages.iter().cloned().chain(large).collect();
    setup.policy.keep_recent = Some(KeepRecent { segments: 100, tokens: TokenCount(10_000_000) });
    let policy = setup.policy.clone().validate(Some(CountQuality::HeuristicEstimate)).unwrap();
    let ports = setup.ports();
    let mut compacting = std::pin::pin!(compact_once(&setup.session, &policy, &ports));
    let mut context = Context::from_waker(Waker::noop());
    let mut waits = 0;
    let outcome = loop {
        match compacting.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => waits += 1,
        }
    };
    assert!(matches!(outcome, Outcome::Compacted(_)), "{outcome:?}");
    assert!(waits >= 8, "{waits}");
}

#[test]
fn a_count_that_ran_out_of_time_says_so() {
    let refused = |failure| RefusalReason::ContextCountFailed(failure).detail();
    assert_eq!(refused(CountFailure::TimedOut), Some("timed_out"));
    assert_eq!(refused(CountFailure::OtherModel), None);
}
