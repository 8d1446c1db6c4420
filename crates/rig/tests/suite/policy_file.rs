//! Policy files as people write them: what each key means, and what is said about a wrong one.

use std::time::Duration;

use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextLimits, CountQuality, CounterPolicy, KeepRecent, TokenCount,
};
use epitome_rig::*;
use proptest::prelude::*;

/// The seed's own example, with a kept tail and a limit in bytes.
const SEED: &str = r#"
automatic = true
counter_policy = "allow_conservative"
compact_at = 8500
rearm_below = "60%"
reserved_output = 512
safety_margin = 256
max_summary_tokens = 256
count_timeout = "2s"
hustle = "context.compact"
max_request_bytes = 1000000

[keep_recent]
segments = 2
tokens = 400
"#;

fn limits(window: u64) -> ContextLimits {
    ContextLimits { window: TokenCount(window), ..ContextLimits::default() }
}

fn with(key: &str, line: &str) -> String {
    let is_it = |old: &str| old == key || old.starts_with(&format!("{key} ="));
    let changed = SEED.lines().map(|old| if is_it(old) { line } else { old });
    changed.collect::<Vec<_>>().join("\n")
}

fn fault(text: &str) -> String {
    read_policy_file(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_seeds_example_is_read() {
    let policy = read_policy_file(SEED.as_bytes()).unwrap();
    let resolved = policy.resolve(&ContextLimits::default(), CountQuality::HeuristicEstimate).unwrap();
    assert_eq!(
        resolved,
        CompactionPolicy {
            automatic: true,
            counter_policy: CounterPolicy::AllowConservative,
            compact_at: BasisPoints(8_500),
            rearm_below: BasisPoints(6_000),
            reserved_output: TokenCount(512),
            safety_margin: TokenCount(256),
            max_summary_tokens: TokenCount(256),
            count_timeout: Duration::from_secs(2),
            hustle: "context.compact".into(),
            keep_recent: Some(KeepRecent { segments: 2, tokens: TokenCount(400) }),
            max_request_bytes: Some(1_000_000),
            fallback: None,
            carry_constraints: true,
        }
    );
    assert!(resolved.validate(Some(CountQuality::HeuristicEstimate)).is_ok());
}

#[test]
fn numbers_may_depend_on_the_window_and_the_counter() {
    let text = with(
        "reserved_output",
        "reserved_output = { share_of_window = \"1/8\", at_least = 1_000, at_most = 32_000 }\n\
         safety_margin_if_exact = 0",
    );
    let policy = read_policy_file(text.as_bytes()).unwrap();
    let reserved = |window| {
        policy.resolve(&limits(window), CountQuality::ExactLocal).map(|policy| policy.reserved_output.get())
    };
    assert_eq!(reserved(100), Ok(1_000));
    assert_eq!(reserved(80_007), Ok(10_000));
    assert_eq!(reserved(1_000_000), Ok(32_000));
    assert_eq!(reserved(0), Err(WindowUnknown));
    let input_only = ContextLimits { max_input: TokenCount(80_000), ..ContextLimits::default() };
    let resolved = policy.resolve(&input_only, CountQuality::HeuristicEstimate).unwrap();
    assert_eq!(resolved.reserved_output, TokenCount(10_000), "an input limit stands in for the window");
    assert_eq!(resolved.safety_margin, TokenCount(256));
    let resolved = policy.resolve(&input_only, CountQuality::ExactProvider).unwrap();
    assert_eq!(resolved.safety_margin, TokenCount(0));
}

#[test]
fn the_level_to_arm_again_may_follow_the_level_to_compact() {
    let text = with("rearm_below", "rearm_below = { share_of_compact_at = \"70%\" }");
    let mut policy = read_policy_file(text.as_bytes()).unwrap();
    let level =
        |policy: &PolicyFile| policy.resolve(&limits(1), CountQuality::ExactLocal).unwrap().rearm_below.get();
    assert_eq!(level(&policy), 5_950);
    policy.compact_at = BasisPoints(5_001);
    assert_eq!(level(&policy), 3_500);
}

#[test]
fn a_policy_for_compaction_on_demand_needs_no_levels() {
    let text = "automatic = false\nreserved_output = 1\nsafety_margin = 0\nmax_summary_tokens = 1\n\
                count_timeout = \"500ms\"\nhustle = \"x\"\n";
    let policy = read_policy_file(text.as_bytes()).unwrap();
    let resolved = policy.resolve(&limits(1), CountQuality::ExactLocal).unwrap();
    assert!(resolved.validate(Some(CountQuality::ExactLocal)).is_ok());
    assert_eq!(resolved.count_timeout, Duration::from_millis(500));
    assert_eq!(resolved.keep_recent, None);
    assert_eq!(read_policy_file(policy.to_json().as_bytes()).unwrap(), policy);
}

#[test]
fn a_wrong_value_is_placed_and_explained() {
    const SHARE: &str = "expected a share: a percentage such as \"85%\", at most two digits behind the point, or \
                         basis points from 100 to 10000 such as 8500";
    const KEPT: &str = "keep_recent: expected a table with tokens, and segments where they are bounded";
    for (key, line, expected) in [
        ("compact_at", "compact_at = 85", format!("line 4, column 14, compact_at: {SHARE}")),
        ("compact_at", "compact_at = \"120%\"", format!("line 4, column 14, compact_at: {SHARE}")),
        ("compact_at", "compact_at = \"1/3\"", format!("line 4, column 14, compact_at: {SHARE}")),
        ("compact_at", "compact_at = 0.85", format!("line 4, column 14, compact_at: {SHARE}")),
        ("compact_at", "compact_at = \"17/20\"", format!("line 4, column 14, compact_at: {SHARE}")),
        ("compact_at", "compact_at = \"85.500%\"", format!("line 4, column 14, compact_at: {SHARE}")),
        ("[keep_recent]", "[[keep_recent]]", format!("line 13, column 1, {KEPT}")),
        (
            "reserved_output",
            "reserved_output = [\"10%\", 1, 2]",
            "line 6, column 19, reserved_output: expected a number of tokens, or a table such as \
             { share_of_window = \"10%\", at_most = 20000 }"
                .to_owned(),
        ),
        (
            "compact_at",
            "compact_at = \"100%\"",
            "line 4, column 14, compact_at: must be below 100%".to_owned(),
        ),
        (
            "rearm_below",
            "rearm_below = \"85%\"",
            "line 5, column 15, rearm_below: must be above 0 and below compact_at".to_owned(),
        ),
        (
            "rearm_below",
            "rearm_below = { share_of_compact_at = \"70\" }",
            "line 5, column 39, rearm_below.share_of_compact_at: expected a share: a percentage such as \
             \"12.5%\", a fraction such as \"1/15\", or basis points from 100 to 10000 such as 8500"
                .to_owned(),
        ),
        (
            "rearm_below",
            "rearm_below = { }",
            "line 5, column 15, rearm_below: the key share_of_compact_at is missing".to_owned(),
        ),
        (
            "counter_policy",
            "counter_policy = \"unknown\"",
            "line 3, column 18, counter_policy: unknown word; known here are require_exact, allow_conservative"
                .to_owned(),
        ),
        ("counter_policy", "", "line 1, column 1: the key counter_policy is missing".to_owned()),
        (
            "reserved_output",
            "reserved_output = 0",
            "line 6, column 19, reserved_output: must not be zero".to_owned(),
        ),
        (
            "reserved_output",
            "reserved_output = { share_of_window = \"1%\", at_least = 2, at_most = 1 }",
            "line 6, column 56, reserved_output.at_least: expected an at_least that is not above at_most"
                .to_owned(),
        ),
        (
            "reserved_output",
            "reserved_output = { share_of_window = \"1%\", atleast = 2 }",
            "line 6, column 45, reserved_output: unknown key; known here are share_of_window, at_least, at_most"
                .to_owned(),
        ),
        (
            "reserved_output",
            "reserved_output = \"512\"",
            "line 6, column 19, reserved_output: expected a number of tokens, or a table such as \
             { share_of_window = \"10%\", at_most = 20000 }"
                .to_owned(),
        ),
        (
            "count_timeout",
            "count_timeout = 2",
            "line 9, column 17, count_timeout: expected a time such as \"2s\", \"500ms\" or \"1m\"".to_owned(),
        ),
        (
            "count_timeout",
            "count_timeout = \"0s\"",
            "line 9, column 17, count_timeout: must not be zero".to_owned(),
        ),
        (
            "hustle",
            "hustle = \"_looprig.secret\"",
            "line 10, column 10, hustle: is a reserved name".to_owned(),
        ),
        ("hustle", "hustle = \" \"", "line 10, column 10, hustle: is missing".to_owned()),
        (
            "max_request_bytes",
            "max_request_bytes = 0",
            "line 11, column 21, max_request_bytes: must not be zero".to_owned(),
        ),
        (
            "segments",
            "segments = 0",
            "line 14, column 12, keep_recent.segments: must not be zero".to_owned(),
        ),
    ] {
        assert_eq!(fault(&with(key, line)), expected, "{line}");
    }
}

#[test]
fn a_table_is_never_a_list() {
    let (before, _) = SEED.split_once("\n[keep_recent]").unwrap();
    for (list, column) in [("[2, 4000, \"junk\", 5]", 15), ("[2, 400]", 15), ("[[2, 400]]", 15), ("[]", 15)] {
        let fault = read_policy_file(format!("{before}keep_recent = {list}").as_bytes()).unwrap_err();
        assert_eq!(fault.problem.kind(), "unexpected_value", "{list}");
        assert_eq!((fault.line, fault.column), (12, column), "{list}");
        assert!(fault.to_string().contains("keep_recent: expected a table"), "{fault}");
    }
    let rearm = with("rearm_below", "rearm_below = [\"70%\"]");
    assert!(fault(&rearm).starts_with("line 5, column 15, rearm_below: expected a share"));
    assert!(fault("[[1]]").ends_with("unknown key; known here are automatic, counter_policy, compact_at, rearm_below, reserved_output, safety_margin, safety_margin_if_exact, max_summary_tokens, keep_recent, count_timeout, hustle, fallback, carry_constraints, max_request_bytes"));
}

#[test]
fn levels_are_written_as_percentages_or_basis_points() {
    for (written, points) in
        [("\"85%\"", 8_500), ("\"85.5%\"", 8_550), ("\"85.25%\"", 8_525), ("8525", 8_525)]
    {
        let read = read_policy_file(with("compact_at", &format!("compact_at = {written}")).as_bytes());
        assert_eq!(read.unwrap().compact_at, BasisPoints(points), "{written}");
    }
    for written in ["\"17/20\"", "\"85.500000%\"", "\"85.123%\"", "\"85.%\"", "\"8500\""] {
        for key in ["compact_at", "rearm_below"] {
            let read = read_policy_file(with(key, &format!("{key} = {written}")).as_bytes());
            assert_eq!(read.unwrap_err().problem.kind(), "unexpected_value", "{key} = {written}");
        }
    }
}

/// Beyond what a file can hold, what is written is refused, and says so.
#[test]
fn a_policy_that_no_file_can_hold_does_not_read_back_as_another() {
    let good = read_policy_file(SEED.as_bytes()).unwrap();
    for policy in [
        PolicyFile { automatic: false, compact_at: BasisPoints(10_001), ..good.clone() },
        PolicyFile { automatic: false, rearm_below: RearmLevel::At(BasisPoints(u16::MAX)), ..good.clone() },
        PolicyFile { max_request_bytes: Some(0), ..good.clone() },
        PolicyFile { compact_at: BasisPoints(0), ..good },
    ] {
        assert!(read_policy_file(policy.to_json().as_bytes()).is_err());
    }
}

/// A canary stands in every value, every key and in what is no file at all.
#[test]
fn nothing_of_a_file_is_in_its_error() {
    const CANARY: &str = "ssn-123-45-6789";
    let mut texts = vec![
        CANARY.to_owned(),
        format!("{{\"{CANARY}\": 1}}"),
        format!("{{\"automatic\": \"{CANARY}\"}}"),
        format!("{{\"automatic\": {CANARY}}}"),
        format!("{SEED}\n'{CANARY}' = 1\n'{CANARY}' = 2"),
        format!("{SEED}\n['{CANARY}']\n['{CANARY}']"),
        format!("{SEED}\n# {CANARY}\u{7f}"),
    ];
    for key in SEED.lines().filter_map(|line| line.split_once(" =")).map(|(key, _)| key) {
        texts.push(with(key, &format!("{key} = \"{CANARY}\"")));
        texts.push(with(key, &format!("{key} = {CANARY}")));
        texts.push(with(key, &format!("{key} = {{ \"{CANARY}\" = \"{CANARY}\" }}")));
        texts.push(with(key, &format!("{key} = [\"{CANARY}\"]")));
        texts.push(with(key, &format!("\"{CANARY}\" = 1")));
    }
    let mut refused = 0;
    for text in texts {
        // The hustle's name is free, so that one is accepted.
        let Err(fault) = read_policy_file(text.as_bytes()) else { continue };
        refused += 1;
        let shown = format!("{fault}\n{fault:#}\n{fault:?}\n{fault:#?}\n{}", fault.problem);
        assert!(!shown.contains("6789"), "{shown}");
        assert!(std::error::Error::source(&fault).is_none());
    }
    assert_eq!(refused, 7 + 12 * 5 - 1);
}

fn shares() -> impl Strategy<Value = Share> {
    (1_u32..=20_000, 20_000_u32..=1_000_000)
        .prop_filter_map("a share", |(part, whole)| Share::new(part, whole))
}

fn amounts() -> impl Strategy<Value = Amount> {
    let bound = || prop::option::of(1_u64..1_000_000);
    prop_oneof![
        (1_u64..).prop_map(|tokens| Amount::Tokens(TokenCount(tokens))),
        (shares(), bound(), bound()).prop_map(|(share, one, other)| {
            let (at_least, at_most) = match (one, other) {
                (Some(one), Some(other)) => (Some(one.min(other)), Some(one.max(other))),
                bounds => bounds,
            };
            Amount::OfWindow { share, at_least: at_least.map(TokenCount), at_most: at_most.map(TokenCount) }
        }),
    ]
}

prop_compose! {
    fn policies()(
        compact_at in 2_u16..10_000,
        rearm in prop_oneof![
            (1_u16..10_000).prop_map(|level| RearmLevel::At(BasisPoints(level))),
            shares().prop_map(RearmLevel::ShareOfCompactAt),
        ],
        reserved_output in amounts(),
        safety_margin in amounts(),
        safety_margin_if_exact in prop::option::of(amounts()),
        max_summary_tokens in amounts(),
        count_timeout in (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(seconds, rest)| Duration::new(seconds, rest)),
        hustle in "[a-z\"\\\\\u{e9}\n ]{0,8}x",
        keep_recent in prop::option::of((prop::option::of(1_u64..), amounts())),
        max_request_bytes in prop::option::of(1_u64..),
        fallback in prop::option::of("[a-z]{1,8}y"),
        carry_constraints in any::<bool>(),
    ) -> PolicyFile {
        PolicyFile {
            automatic: true,
            counter_policy: CounterPolicy::RequireExact,
            compact_at: BasisPoints(compact_at),
            rearm_below: rearm,
            reserved_output,
            safety_margin,
            safety_margin_if_exact,
            max_summary_tokens,
            count_timeout,
            hustle: hustle.into(),
            keep_recent: keep_recent.map(|(segments, tokens)| KeepRecentAmount { segments, tokens }),
            max_request_bytes,
            fallback: fallback.map(Into::into),
            carry_constraints,
        }
    }
}

proptest! {
    /// What is written is read again, unless a rule refuses the policy itself.
    #[test]
    fn what_is_written_is_read_again(policy in policies()) {
        let resolved = policy.resolve(&limits(u64::MAX), CountQuality::ExactLocal).unwrap();
        let read = read_policy_file(policy.to_json().as_bytes());
        match resolved.validate(Some(CountQuality::ExactLocal)) {
            Ok(_) => prop_assert_eq!(read, Ok(policy)),
            Err(rule) => prop_assert_eq!(read.map_err(|fault| fault.problem), Err(FileProblem::Policy(rule))),
        }
    }
}

/// The example as written and as JSON, with some bytes replaced, removed or repeated.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let json = read_policy_file(SEED.as_bytes()).unwrap().to_json();
    let edit = (any::<prop::sample::Index>(), 0_u8..4, any::<u8>(), any::<prop::sample::Index>());
    (any::<bool>(), prop::collection::vec(edit, 0..6)).prop_map(move |(toml, edits)| {
        let mut bytes = if toml { SEED.as_bytes().to_vec() } else { json.clone().into_bytes() };
        for (at, kind, byte, other) in edits {
            let (at, other) = (at.index(bytes.len()), other.index(bytes.len()));
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] = bytes[other],
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[other]),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is given, the answer is a policy that can be written and read again, or a place in the file.
    #[test]
    fn any_bytes_have_an_answer(bytes in damaged()) {
        match read_policy_file(&bytes) {
            Ok(policy) => prop_assert_eq!(read_policy_file(policy.to_json().as_bytes()), Ok(policy)),
            Err(fault) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.split('\n').collect();
                prop_assert!((1..=lines.len()).contains(&fault.line), "{fault}");
                let columns = lines[fault.line - 1].chars().count() + 1;
                prop_assert!((1..=columns).contains(&fault.column), "{fault}");
            }
        }
    }
}
