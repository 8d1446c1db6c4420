use std::time::Duration;

use super::*;
use crate::{BasisPoints, ContextLimits, CountQuality, CounterPolicy, KeepRecent, Sampling, TokenCount};

fn model() -> Model {
    let limits = ContextLimits { window: TokenCount(10_512), ..ContextLimits::default() };
    Model { provider: "p".into(), name: "m".into(), limits, ..Model::default() }
}

fn policy() -> CompactionPolicy {
    CompactionPolicy {
        automatic: true,
        counter_policy: CounterPolicy::RequireExact,
        compact_at: BasisPoints(8_500),
        rearm_below: BasisPoints(6_000),
        reserved_output: TokenCount(512),
        safety_margin: TokenCount(0),
        max_summary_tokens: TokenCount(1_000),
        count_timeout: Duration::from_secs(2),
        hustle: "context.compact".into(),
        keep_recent: Some(KeepRecent { segments: 2, tokens: TokenCount(2_000) }),
        max_request_bytes: None,
        fallback: None,
        carry_constraints: true,
    }
}

fn builder() -> LoopDefinitionBuilder {
    LoopDefinition::builder("main", model())
        .with_context_counter(CounterCapability::local("t", CountQuality::ExactLocal))
        .with_inference_capability(InferenceCapability::local())
}

#[test]
fn observation_and_compaction_exclude_each_other() {
    let observation = ContextObservationPolicy {
        reserved_output: TokenCount(1),
        safety_margin: TokenCount(1),
        count_timeout: Duration::from_secs(1),
    };
    let both = builder().with_context_observation(observation).with_compaction(policy()).build();
    assert_eq!(both.unwrap_err(), LoopDefinitionError::ConflictingContextPolicy);
    let watched = builder().with_context_observation(observation).build().unwrap();
    assert_eq!(watched.context().unwrap().observation(), Some(&observation));
    assert_eq!(watched.compaction(), None);
    let compacted = builder().with_compaction(policy()).build().unwrap();
    assert_eq!(compacted.compaction_hustle().unwrap().as_str(), "context.compact");
    let twice = builder().with_compaction(policy()).with_compaction(policy()).build();
    assert_eq!(twice.unwrap_err(), LoopDefinitionError::Duplicate(LoopField::Compaction));
}

#[test]
fn a_loop_may_leave_its_context_alone_but_not_its_name() {
    assert_eq!(LoopDefinition::builder("x", model()).build().unwrap().context(), None);
    assert_eq!(LoopDefinition::builder(" ", model()).build(), Err(LoopDefinitionError::MissingName));
    let nameless = LoopDefinition::builder("x", Model { name: "".into(), ..model() });
    assert_eq!(nameless.build(), Err(LoopDefinitionError::Model(ModelError::Name)));
}

#[test]
fn the_floor_is_checked_when_the_fixed_part_is_known() {
    // Of 10,000 tokens of room, 3,000 go to the summary and the tail.
    let with_tools = |tools| {
        let fixed = FixedPart { system: TokenCount(0), tools: TokenCount(tools) };
        builder().with_compaction(policy()).with_fixed_part(fixed).build()
    };
    assert_eq!(with_tools(2_999).unwrap().floor_warning(), None);
    let warned = with_tools(3_000).unwrap();
    assert_eq!(warned.floor_warning().unwrap().floor.total(), TokenCount(6_000));
    assert_eq!(with_tools(5_500).unwrap_err().kind(), "floor_above_compact_at");

    let unlimited = Model { limits: ContextLimits::default(), ..model() };
    let unknown = LoopDefinitionBuilder { model: unlimited, ..builder() };
    let huge = FixedPart { system: TokenCount(u64::MAX), tools: TokenCount(0) };
    let unknown = unknown.with_compaction(policy()).with_fixed_part(huge).build().unwrap();
    assert_eq!(unknown.floor_warning(), None, "without a limit there is nothing to hold it against");

    let tight = ContextLimits { window: TokenCount(512), ..ContextLimits::default() };
    let tight = LoopDefinitionBuilder { model: Model { limits: tight, ..model() }, ..builder() };
    let tight = tight.with_compaction(policy()).with_fixed_part(FixedPart::default()).build();
    assert_eq!(tight.unwrap_err().kind(), "context_limit_unknown");
}

#[test]
fn a_loop_that_could_never_be_measured_is_refused() {
    let limits = |window, max_input, max_output| ContextLimits {
        window: TokenCount(window),
        max_input: TokenCount(max_input),
        max_output: TokenCount(max_output),
    };
    let observation = ContextObservationPolicy {
        reserved_output: TokenCount(512),
        safety_margin: TokenCount(8),
        count_timeout: Duration::from_secs(1),
    };
    let compaction = CompactionPolicy { safety_margin: TokenCount(8), ..policy() };
    for (given, ok) in [
        (limits(0, 0, 0), true),
        (limits(0, 0, 1), true),
        (limits(1, 0, 0), false),
        (limits(512, 0, 0), false),
        (limits(520, 0, 0), false),
        (limits(521, 0, 0), true),
        (limits(0, 8, 0), false),
        (limits(0, 9, 0), true),
        (limits(10_000, 8, 0), false),
        (limits(520, 0, 1), true),
    ] {
        let model = || Model { limits: given, ..model() };
        let builder = LoopDefinitionBuilder { model: model(), ..builder() };
        for built in [
            builder.clone().with_compaction(compaction.clone()).build(),
            builder.with_context_observation(observation).build(),
        ] {
            let fault = built.err();
            assert_eq!(fault.is_none(), ok, "{given:?}: {fault:?}");
            assert!(fault.is_none_or(|fault| matches!(fault, LoopDefinitionError::Limit(_))), "{fault:?}");
        }
        assert!(LoopDefinition::builder("x", model()).build().is_ok(), "left to itself");
    }
}

#[test]
fn the_policy_revision_changes_with_everything_that_was_given() {
    let of = |builder: LoopDefinitionBuilder| builder.build().unwrap().policy_revision().clone();
    let with = |policy: CompactionPolicy| of(builder().with_compaction(policy));
    let manual = CompactionPolicy { automatic: false, ..policy() };
    let same = with(manual.clone());
    // Worked out by hand from the documented form, so that no change of the encoder goes unseen.
    assert_eq!(same, "ff4cdcbcc7b612a7efaadd51b11dc6efd63f244d35de4189cee3e1ddc6e0cbc7");
    assert_eq!(same, with(manual.clone()));
    let mut seen = vec![same];
    for changed in [
        policy(),
        CompactionPolicy { counter_policy: CounterPolicy::Unknown, ..manual.clone() },
        CompactionPolicy { compact_at: BasisPoints(1), ..manual.clone() },
        CompactionPolicy { rearm_below: BasisPoints(1), ..manual.clone() },
        CompactionPolicy { reserved_output: TokenCount(1), ..manual.clone() },
        CompactionPolicy { safety_margin: TokenCount(1), ..manual.clone() },
        CompactionPolicy { max_summary_tokens: TokenCount(1), ..manual.clone() },
        CompactionPolicy { count_timeout: Duration::from_nanos(1), ..manual.clone() },
        CompactionPolicy { hustle: "x".into(), ..manual.clone() },
        CompactionPolicy { keep_recent: None, ..manual.clone() },
        CompactionPolicy { max_request_bytes: Some(1), ..manual.clone() },
        CompactionPolicy { fallback: Some("x".into()), ..manual.clone() },
        CompactionPolicy { carry_constraints: false, ..manual.clone() },
    ] {
        seen.push(with(changed));
    }
    let counter = CounterCapability::local("u", CountQuality::ExactLocal);
    let other = LoopDefinitionBuilder { counter: Some(counter), ..builder() };
    seen.push(of(other.with_compaction(manual.clone())));
    let path = InferenceCapability { retention: None, ..InferenceCapability::local() };
    let other = LoopDefinitionBuilder { inference: Some(path), ..builder() };
    seen.push(of(other.with_compaction(manual.clone())));
    let other = LoopDefinitionBuilder { model: Model { origin: 1, ..model() }, ..builder() };
    seen.push(of(other.with_compaction(manual.clone())));
    seen.push(of(LoopDefinition::builder("main", model())));
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
    let renamed = LoopDefinitionBuilder { name: "other".into(), ..builder() };
    assert_eq!(of(renamed.with_compaction(manual.clone())), with(manual), "a name is no policy");
}

#[test]
fn a_revision_needs_finite_numbers() {
    let sampling = Sampling { top_p: Some(f64::INFINITY), ..Sampling::default() };
    let builder = LoopDefinition::builder("x", Model { sampling, ..model() });
    assert_eq!(builder.build(), Err(LoopDefinitionError::Encoding));
}
