//! Conversations whose order or pairing is damaged: they are compacted as whole ones are, and nothing damaged is kept.

use std::collections::BTreeSet;

use epitome_loop::*;
use epitome_loopruntime::{InsideSegment, TailCut, check_retained_history, open_exchange};
use epitome_sessionruntime::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::compaction_scene::{Setup, call, one_user_session, talk};

fn calls(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "tool", None, None)));
    Message::Assistant { blocks: calls.collect(), usage: None }
}

fn result(id: &str) -> Message {
    Message::tool_result(id, "r".repeat(20), false)
}

/// Compacts on demand, and checks that what is kept is in order and legal behind the summary, once the open calls at
/// its end are answered.
fn compacted(setup: Setup) -> Result<Compaction, String> {
    let messages = setup.session.messages.clone();
    let done = match setup.run().0 {
        Outcome::Compacted(done) => *done,
        outcome => return Err(format!("{outcome:?}")),
    };
    assert!(done.kept.is_sorted() && done.replaced.is_sorted());
    let all: BTreeSet<usize> = done.kept.iter().chain(&done.replaced).copied().collect();
    assert_eq!(all, (0..messages.len()).collect());
    assert_eq!(done.kept.len() + done.replaced.len(), messages.len());
    let lead = leading_system(&messages);
    let kept = done.kept.iter().filter(|&&at| at >= lead).map(|&at| messages[at].clone());
    let mut rebuilt: Vec<Message> = [Message::user("summary")].into_iter().chain(kept).collect();
    if let Some(open) = open_exchange(&rebuilt) {
        assert_eq!(open.astray, [0; 0]);
        let answered: Vec<_> = rebuilt[open.start + 1..].iter().map(answers).collect();
        let left = rebuilt[open.start].tool_calls().filter(|call| !answered.contains(&call.id.as_str()));
        let results: Vec<Message> = left.map(|call| result(call.id.as_str())).collect();
        rebuilt.extend(results);
    }
    assert_eq!(check_retained_history(&rebuilt), Ok(()), "{:?} of {messages:?}", done.kept);
    Ok(done)
}

fn answers(message: &Message) -> &str {
    match message {
        Message::ToolResult { tool_use_id, .. } => tool_use_id,
        _ => "",
    }
}

fn setup(messages: Vec<Message>, window: u64) -> Setup {
    let mut setup = Setup::new(messages, window);
    setup.session.demand = Demand::Manual;
    setup
}

#[test]
fn damage_in_an_older_turn_is_summarized_and_the_tail_stays() {
    for damage in [
        vec![call("c")],
        vec![result("lone")],
        vec![call("c"), call("c"), result("c"), result("c")],
        vec![calls(&["c", "c"]), result("c")],
        vec![calls(&["p", "q"]), result("q")],
        vec![call("")],
        vec![call("c"), Message::assistant("meanwhile"), result("c")],
    ] {
        let mut messages = talk(4);
        messages.extend(damage.clone());
        messages.extend(talk(10));
        let len = messages.len();
        let done = compacted(setup(messages, 1_200)).unwrap();
        assert_eq!(done.kept, (len - 4..len).collect::<Vec<_>>(), "{damage:?}");
    }
}

#[test]
fn damage_in_the_part_that_would_stay_makes_it_smaller() {
    let mut messages = talk(10);
    messages.extend([Message::user("do it"), call("abandoned")]);
    messages.extend(talk(1));
    let done = compacted(setup(messages, 1_200)).unwrap();
    assert_eq!(done.cut, TailCut::BetweenSegments { head: 22 });
}

#[test]
fn damage_in_the_newest_segment_is_cut_behind() {
    let mut messages = one_user_session(10);
    messages.extend([call("abandoned"), Message::assistant("on with it")]);
    for id in ["x", "y"] {
        messages.extend([call(id), result(id)]);
    }
    let mut wide = setup(messages.clone(), 2_000);
    wide.policy.keep_recent = Some(KeepRecent { segments: 2, tokens: TokenCount(300) });
    let done = compacted(wide).unwrap();
    assert_eq!(done.cut, TailCut::InsideSegment(InsideSegment { anchor: Some(0), tail: 22 }));
    assert_eq!(done.kept, [0, 1, 23, 24, 25, 26, 27]);
    // Nothing legal stands behind it: the word of the user stays.
    messages.push(result("lone"));
    let done = compacted(setup(messages.clone(), 2_000)).unwrap();
    assert_eq!(done.kept, [0, 1]);
    // What the newest turn waits for stays in any case, and a result of something else goes.
    messages.extend([calls(&["p", "q"]), result("p"), result("p"), result("lone")]);
    let done = compacted(setup(messages, 2_000)).unwrap();
    assert_eq!(done.kept, [0, 1, 29, 30]);
    assert!(done.replaced.ends_with(&[28, 31, 32]));
}

#[test]
fn a_conversation_may_begin_with_anybody() {
    for first in [vec![Message::assistant("hello")], vec![result("lone")], vec![call("c"), result("c")]] {
        for rest in [talk(10), vec![Message::assistant("a".repeat(200)); 12]] {
            let messages: Vec<Message> = first.iter().cloned().chain(rest).collect();
            let done = compacted(setup(messages.clone(), 900)).unwrap();
            assert!(done.kept.len() >= 2 && !done.kept.contains(&0), "{messages:?}");
        }
    }
}

#[test]
fn only_a_pin_that_is_damaged_itself_is_refused() {
    let mut messages = vec![Message::user("mind this"), result("lone"), calls(&["c", "c"]), result("c")];
    messages.extend([call("open"), call("fine"), result("fine")]);
    messages.extend(talk(10));
    let pinned = |at| {
        let mut setup = setup(messages.clone(), 1_200);
        setup.session.pinned = [at].into();
        setup
    };
    for (at, kept) in [(0, vec![0]), (5, vec![5, 6]), (6, vec![5, 6])] {
        assert_eq!(compacted(pinned(at)).unwrap().pinned, kept);
    }
    for at in [1, 2, 3, 4] {
        assert!(matches!(pinned(at).refused(), RefusalReason::TailInvalid(_)), "{at}");
    }
}

/// What a turn holds, apart from damage.
#[derive(Clone, Copy, Debug)]
enum Turn {
    User,
    Assistant,
    Exchange { folded: bool },
    Parallel,
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Abandoned,
    HalfAbandoned,
    LoneResult,
    OpenTwice,
    TwiceInOne,
    NoId,
    Interrupted,
    SystemInside,
    Late,
}

fn any_turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => Just(Turn::User),
        2 => Just(Turn::Assistant),
        4 => any::<bool>().prop_map(|folded| Turn::Exchange { folded }),
        2 => Just(Turn::Parallel),
    ]
}

fn any_damage() -> impl Strategy<Value = Damage> {
    use Damage::*;
    prop::sample::select(vec![
        Abandoned,
        HalfAbandoned,
        LoneResult,
        OpenTwice,
        TwiceInOne,
        NoId,
        Interrupted,
        SystemInside,
        Late,
    ])
}

fn write_turn(messages: &mut Vec<Message>, turn: Turn, size: usize) {
    let text = "x".repeat(size);
    match turn {
        Turn::User => messages.push(Message::user(text)),
        Turn::Assistant => messages.push(Message::assistant(text)),
        Turn::Exchange { folded } => {
            messages.push(call("c"));
            messages.extend(folded.then(|| Message::user("still there?")));
            messages.push(Message::tool_result("c", text, false));
        }
        Turn::Parallel => {
            messages.extend([calls(&["p", "q"]), Message::tool_result("q", text, false), result("p")]);
        }
    }
}

/// Returns what goes behind the next turn.
fn write_damage(messages: &mut Vec<Message>, damage: Damage) -> Option<Message> {
    messages.extend(match damage {
        Damage::Abandoned => vec![call("c")],
        Damage::HalfAbandoned => vec![calls(&["c", "d"]), result("d")],
        Damage::LoneResult => vec![result("lone")],
        Damage::OpenTwice => vec![call("c"), call("c"), result("c"), result("c")],
        Damage::TwiceInOne => vec![calls(&["c", "c"]), result("c")],
        Damage::NoId => vec![call("")],
        Damage::Interrupted => vec![call("i"), Message::assistant("meanwhile"), result("i")],
        Damage::SystemInside => vec![call("s"), Message::system("mind the gap"), result("s")],
        Damage::Late => {
            messages.push(call("late"));
            return Some(result("late"));
        }
    });
    None
}

#[derive(Clone, Debug)]
struct Conversations {
    whole: Vec<Message>,
    damaged: Vec<Message>,
    /// Whether the newest turn waits for a result.
    is_open: bool,
}

fn conversations() -> impl Strategy<Value = Conversations> {
    let turns = vec((any_turn(), 0..400_usize, prop::option::weighted(0.2, any_damage())), 1..24);
    (turns, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(turns, nobody_begins, is_open, astray)| {
            let mut whole = vec![Message::user("start")];
            let mut damaged =
                vec![if nobody_begins { Message::assistant("start") } else { Message::user("start") }];
            for (turn, size, damage) in turns {
                let behind = damage.and_then(|damage| write_damage(&mut damaged, damage));
                write_turn(&mut whole, turn, size);
                write_turn(&mut damaged, turn, size);
                damaged.extend(behind);
            }
            if is_open {
                for messages in [&mut whole, &mut damaged] {
                    messages.extend([calls(&["o1", "o2"]), result("o2")]);
                }
                damaged.extend(astray.then(|| result("o2")));
            }
            Conversations { whole, damaged, is_open }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Damage never stands in the way of a compaction, and none of it is kept.
    #[test]
    fn a_damaged_conversation_is_compacted_whenever_a_whole_one_is(
        Conversations { whole, damaged, is_open } in conversations(),
        share in 70_u64..122,
        keep in prop::option::of((1_u64..5, 1_u64..1_500)),
        counts_bytes in any::<bool>(),
        earlier in prop::option::weighted(0.3, 1_usize..3),
    ) {
        // Due: where hardly anything is gained, the sizes of the damaged messages themselves would decide.
        let size: u64 = whole.iter().map(tail_estimate).sum();
        let window = (size * share / 100).max(400);
        let setup = |messages: &[Message]| {
            let mut setup = Setup::new(messages.to_vec(), window);
            setup.policy.keep_recent =
                keep.map(|(segments, tokens)| KeepRecent { segments, tokens: TokenCount(tokens) });
            setup.policy.max_request_bytes = counts_bytes.then_some(window * 4);
            // The first messages are another tool's summary, of which no more is known.
            setup.session.earlier = earlier.map(|messages| EarlierSummary { messages, sections: None });
            setup
        };
        if compacted(setup(&whole)).is_ok() {
            let done = compacted(setup(&damaged));
            prop_assert!(done.is_ok(), "{done:?}");
            let open = open_exchange(&damaged).map(|open| open.start);
            prop_assert_eq!(open.is_some(), is_open);
            let kept = done.unwrap().kept;
            prop_assert!(open.is_none_or(|open| kept.contains(&open) && kept.contains(&(open + 1))));
        }
    }
}
