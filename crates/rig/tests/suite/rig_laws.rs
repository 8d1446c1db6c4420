//! Laws of the builder on generated loops and hustles: a rig exists exactly when everything fits, and what it
//! hands out is what was put in.

use std::collections::BTreeSet;
use std::time::Duration;

use epitome_loop::*;
use epitome_rig::{BoundLoop, Rig, RigErrorKind};
use proptest::collection::vec;
use proptest::prelude::*;

/// A hustle in a few numbers.
#[derive(Clone, Debug)]
struct Hustle {
    name: &'static str,
    background: bool,
    input: u64,
    output: u64,
    echo: bool,
    model: u8,
}

/// A loop in a few words: its name, which hustle it asks for, and the window of its model.
#[derive(Clone, Debug)]
struct Loop {
    name: &'static str,
    hustle: Option<&'static str>,
    automatic: bool,
    window: u64,
}

/// What each policy here keeps free for the answer.
const RESERVED: u64 = 512;

const NAMES: [&str; 4] = ["a", "b", " a", "_looprig.x"];

fn hustles() -> impl Strategy<Value = Vec<Hustle>> {
    let near = |least: usize| {
        let least = least as u64;
        prop_oneof![20 => Just(1 << 20), 4 => least - 2..least + 2, 1 => Just(0), 1 => Just(1 << 40)]
    };
    let output = prop_oneof![near(SMALLEST_SUMMARY_BYTES), near(SMALLEST_ECHO_BYTES)];
    let name = prop_oneof![20 => 0..3usize, 1 => 3..4usize].prop_map(|at| NAMES[at]);
    let hustle = (name, prop::bool::weighted(0.1), near(SMALLEST_INPUT_BYTES), output, any::<bool>(), 0..3u8)
        .prop_map(|(name, background, input, output, echo, model)| Hustle {
            name,
            background,
            input,
            output,
            echo,
            model,
        });
    vec(hustle, 0..3)
}

fn loops() -> impl Strategy<Value = Vec<Loop>> {
    let hustle = prop::option::weighted(
        0.6,
        prop_oneof![6 => Just(0), 3 => 1..3usize, 1 => 3..4usize].prop_map(|at| NAMES[at]),
    );
    let agent_loop = (
        prop_oneof![20 => (0..3usize).prop_map(|at| ["x", "y", "z"][at]), 1 => Just(" ")],
        hustle,
        any::<bool>(),
        prop_oneof![20 => Just(0), 20 => Just(1 << 17), 1 => Just(1), 4 => RESERVED - 1..RESERVED + 3],
    )
        .prop_map(|(name, hustle, automatic, window)| Loop { name, hustle, automatic, window });
    vec(agent_loop, 0..3)
}

fn settings(hustle: &Hustle) -> HustleSettings {
    let prompt = || SystemPrompt { text: "Summarize.".into(), revision: "1".into() };
    HustleSettings {
        name: hustle.name.into(),
        participation: if hustle.background { Participation::Background } else { Participation::Blocking },
        timeout: Duration::from_secs(1),
        limits: ByteLimits { input: hustle.input, output: hustle.output },
        model: match hustle.model {
            0 => ModelSource::Embedded,
            1 => ModelSource::CurrentLoop { prompt: prompt() },
            _ => ModelSource::Named {
                client: "c".into(),
                model: ModelKey::new("p", "m"),
                revision: "1".into(),
                prompt: prompt(),
            },
        },
        policy_revision: "1".into(),
        output_schema: None,
        retry: RetryPolicy::None,
        identity: if hustle.echo { IdentityBinding::Echo } else { IdentityBinding::Host },
    }
}

fn definition(agent_loop: &Loop) -> LoopDefinitionBuilder {
    let limits = ContextLimits { window: TokenCount(agent_loop.window), ..ContextLimits::default() };
    let model = Model { provider: "p".into(), name: "m".into(), limits, ..Model::default() };
    let builder = LoopDefinition::builder(agent_loop.name, model);
    let Some(hustle) = agent_loop.hustle else { return builder };
    builder
        .with_context_counter(CounterCapability::local("t", CountQuality::ExactLocal))
        .with_inference_capability(InferenceCapability::local())
        .with_compaction(CompactionPolicy {
            automatic: agent_loop.automatic,
            counter_policy: CounterPolicy::RequireExact,
            compact_at: BasisPoints(8_500),
            rearm_below: BasisPoints(6_000),
            reserved_output: TokenCount(RESERVED),
            safety_margin: TokenCount(0),
            max_summary_tokens: TokenCount(256),
            count_timeout: Duration::from_secs(2),
            hustle: hustle.into(),
            keep_recent: None,
            max_request_bytes: None,
            fallback: None,
            carry_constraints: true,
        })
}

fn limits(queued: u64) -> HustleLimitSettings {
    let lane = LaneLimits { concurrent: 1, queued };
    HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: Duration::from_secs(1),
        finalization_timeout: Duration::from_secs(1),
        worker_drain_timeout: Duration::from_secs(1),
    }
}

fn all_differ<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = BTreeSet::new();
    names.into_iter().all(|name| seen.insert(name))
}

/// The rule in one sentence for each part, without an order.
fn everything_fits(loops: &[Loop], hustles: &[Hustle], queued: Option<u64>) -> bool {
    let size = 1..=16 * 1024 * 1024;
    let defined = |hustle: &Hustle| {
        hustle.name != "_looprig.x" && size.contains(&hustle.input) && size.contains(&hustle.output)
    };
    let compacts = |hustle: &Hustle| {
        let least = if hustle.echo { SMALLEST_ECHO_BYTES } else { SMALLEST_SUMMARY_BYTES };
        !hustle.background && hustle.output >= least as u64 && hustle.input >= SMALLEST_INPUT_BYTES as u64
    };
    let served = |name: &str| hustles.iter().find(|hustle| hustle.name == name).is_some_and(compacts);
    queued.is_none_or(|queued| queued <= 10_000)
        && queued.is_some() != hustles.is_empty()
        && hustles.iter().all(defined)
        && all_differ(hustles.iter().map(|hustle| hustle.name))
        && !loops.is_empty()
        && loops.iter().all(|found| found.name != " ")
        // A window that is not known is 0 and leaves room for anything.
        && loops.iter().all(|found| found.hustle.is_none() || !(1..=RESERVED).contains(&found.window))
        && all_differ(loops.iter().map(|found| found.name))
        && loops.iter().filter_map(|found| found.hustle).all(served)
}

fn build(loops: &[Loop], hustles: &[Hustle], queued: Option<u64>) -> Result<Rig, epitome_rig::RigError> {
    let mut builder = Rig::builder();
    for hustle in hustles {
        builder = builder.with_hustle(settings(hustle));
    }
    for agent_loop in loops {
        builder = builder.with_loop(definition(agent_loop));
    }
    if let Some(queued) = queued {
        builder = builder.with_hustle_limits(limits(queued));
    }
    builder.build()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn a_rig_exists_exactly_when_every_named_hustle_exists_and_fits(
        loops in loops(),
        hustles in hustles(),
        queued in prop::option::weighted(0.8, prop_oneof![9 => Just(0u64), 1 => 9_999..10_002u64]),
    ) {
        let built = build(&loops, &hustles, queued);
        prop_assert_eq!(built.is_ok(), everything_fits(&loops, &hustles, queued), "{:?}", built.err());
    }

    #[test]
    fn a_bound_loop_has_what_its_policy_asks_for(loops in loops(), hustles in hustles()) {
        // What the generator makes rarely fits; half of it is mended so that it does.
        let mut names = BTreeSet::new();
        let hustles: Vec<Hustle> = hustles
            .into_iter()
            .map(|hustle| Hustle { background: false, input: 1 << 20, output: 1 << 20, ..hustle })
            .filter(|hustle| hustle.name != "_looprig.x" && names.insert(hustle.name))
            .collect();
        let mut seen = BTreeSet::new();
        let mut loops: Vec<Loop> = loops
            .into_iter()
            .filter(|found| found.name != " " && seen.insert(found.name))
            .map(|found| Loop { hustle: found.hustle.filter(|name| names.contains(name)), window: 0, ..found })
            .collect();
        if loops.is_empty() {
            loops.push(Loop { name: "x", hustle: None, automatic: true, window: 1 });
        }
        let rig = build(&loops, &hustles, (!hustles.is_empty()).then_some(3)).unwrap();
        let order: Vec<&str> = rig.loops().iter().map(|found| found.name().as_str()).collect();
        prop_assert_eq!(order, loops.iter().map(|found| found.name).collect::<Vec<_>>());
        for given in &loops {
            let bound: &BoundLoop = rig.bound_loop(given.name).unwrap();
            let compaction = bound.compaction();
            prop_assert_eq!(compaction.map(|found| found.hustle.name().as_str()), given.hustle);
            prop_assert_eq!(bound.definition().compaction().is_some(), given.hustle.is_some());
            if let Some(found) = compaction {
                prop_assert_eq!(found.policy.hustle(), found.hustle.name());
                prop_assert_eq!(Some(found.limits), rig.hustle_limits());
                prop_assert_eq!(found.limits.lane(Participation::Blocking).queued, 3);
                prop_assert!(rig.hustle(found.hustle.name()).is_some());
            }
        }
    }
}

#[test]
fn faults_are_found_in_the_references_order() {
    let hustle = |name| Hustle { name, background: true, input: 0, output: 0, echo: false, model: 0 };
    let small = |name| Hustle { input: 1, output: 1, ..hustle(name) };
    let agent_loop = |name, hustle| Loop { name, hustle: Some(hustle), automatic: false, window: 0 };
    let kind = |loops: &[Loop], hustles: &[Hustle], queued| {
        let error = build(loops, hustles, queued).unwrap_err();
        (error.kind.as_str(), error.part.to_string(), error.name.as_str().to_owned())
    };
    let found = |kind, part: &str, name: &str| (kind, part.to_owned(), name.to_owned());
    let wrong = [agent_loop(" ", "b"), agent_loop("x", "c")];
    assert_eq!(
        kind(&wrong, &[hustle("a")], Some(10_001)),
        found("invalid_hustle_limits", "hustle limits", "")
    );
    assert_eq!(kind(&wrong, &[hustle("a")], None), found("missing_hustle_limits", "hustle limits", ""));
    assert_eq!(kind(&wrong, &[], Some(0)), found("unused_hustle_limits", "hustle limits", ""));
    assert_eq!(kind(&wrong, &[hustle("a")], Some(0)), found("invalid_hustle", "hustle 1", "a"));
    assert_eq!(kind(&wrong, &[small("a"), small("a")], Some(0)), found("duplicate_hustle", "hustle 2", "a"));
    assert_eq!(kind(&[], &[small("a")], Some(0)), found("no_loop", "loops", ""));
    assert_eq!(kind(&wrong, &[small("a")], Some(0)), found("invalid_loop", "loop 1", " "));
    let twice = [agent_loop("x", "a"), agent_loop("x", "b")];
    assert_eq!(kind(&twice, &[small("a")], Some(0)), found("duplicate_loop", "loop 2", "x"));
    // Loops are judged one after the other, each with its policy; hustles are asked for when all are valid.
    let tight = Loop { window: RESERVED, ..agent_loop("y", "c") };
    let reserved = agent_loop("x", "_looprig.x");
    let policy = "incompatible_compaction_hustle";
    for (loops, first) in [
        ([agent_loop("x", "c"), tight.clone()], found("no_room", "loop 2", "y")),
        ([tight.clone(), agent_loop(" ", "c")], found("no_room", "loop 1", "y")),
        ([agent_loop(" ", "c"), tight], found("invalid_loop", "loop 1", " ")),
        ([reserved.clone(), agent_loop(" ", "c")], found(policy, "loop 1", "_looprig.x")),
        ([reserved.clone(), reserved.clone()], found(policy, "loop 1", "_looprig.x")),
        ([agent_loop(" ", "c"), reserved], found("invalid_loop", "loop 1", " ")),
    ] {
        assert_eq!(kind(&loops, &[small("a")], Some(0)), first);
    }
    let two = [agent_loop("x", "b"), agent_loop("y", "a")];
    assert_eq!(kind(&two, &[small("a")], Some(0)), found("missing_compaction_hustle", "loop 1", "b"));
    let one = [agent_loop("y", "a")];
    assert_eq!(kind(&one, &[small("a")], Some(0)), found("incompatible_compaction_hustle", "loop 1", "a"));
    // A name that no hustle can have is a fault of the policy that asks for it.
    let reserved = [agent_loop("y", "_looprig.x")];
    assert_eq!(
        kind(&reserved, &[small("a")], Some(0)),
        found("incompatible_compaction_hustle", "loop 1", "_looprig.x")
    );
    let given_twice = Rig::builder().with_hustle_limits(limits(0)).with_hustle_limits(limits(0)).build();
    assert_eq!(given_twice.unwrap_err().kind, RigErrorKind::DuplicateHustleLimits);
}

#[test]
fn a_file_of_any_bytes_is_read_or_refused() {
    proptest!(|(bytes in vec(any::<u8>(), 0..200))| {
        let _ = epitome_rig::read_rig_file(&bytes);
    });
    let rig = include_str!("../../src/rig_file/tests/rig.toml");
    proptest!(|(at in 0..rig.len(), byte in any::<u8>(), cut in any::<bool>())| {
        let mut bytes = rig.as_bytes().to_vec();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        let read = epitome_rig::read_rig_file_with(&bytes, |_| Some("p".into()));
        if let Err(fault) = read {
            prop_assert!(fault.line >= 1 && fault.column >= 1);
            prop_assert!(fault.line <= rig.lines().count() + 1);
        }
    });
}
