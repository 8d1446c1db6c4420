//! What the command line assumes where the user says nothing: the profile, which is a policy file. The libraries
//! assume nothing.

use std::path::Path;

use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextLimits, CountQuality, CounterPolicy, ResolvedLimits, TokenCount,
    resolve_context_limits,
};
use epitome_rig::{Amount, KeepRecentAmount, PolicyFile, RearmLevel, read_policy_file};

use crate::args::CompactArgs;
use crate::failure::Failure;
use crate::input::{is_stdio, read_definition};
use crate::target::Target;

/// The built-in policy, as a file.
pub(crate) const BUILT_IN: &str = include_str!("../default-policy.toml");

/// The hustle that needs nothing: the embedded summarizer. Loops of this command have its name.
pub(crate) const HUSTLE: &str = "extractive";

/// The built-in policy. It goes the way of every other policy file.
pub(crate) fn built_in() -> Result<PolicyFile, Failure> {
    read_policy_file(BUILT_IN.as_bytes()).map_err(|fault| Failure::PolicyFile {
        path: "the built-in policy".into(),
        fault,
        reported: false,
    })
}

/// The policy of a file, or the built-in one.
pub(crate) fn load(file: Option<&Path>) -> Result<PolicyFile, Failure> {
    match file {
        None => built_in(),
        Some(path) => read(path, false),
    }
}

/// Reads a policy file. `reported` says whether its faults get a report of their own.
pub(crate) fn read(path: &Path, reported: bool) -> Result<PolicyFile, Failure> {
    let bytes = read_definition(path).map_err(Failure::io(path))?;
    read_policy_file(&bytes).map_err(|fault| Failure::PolicyFile { path: path.to_owned(), fault, reported })
}

/// The policy file of a compaction: what the command line says outranks the file.
pub(crate) fn for_compaction(args: &CompactArgs) -> Result<PolicyFile, Failure> {
    let session_is_stdin = args.session.as_ref().is_some_and(|session| is_stdio(session.file()));
    if session_is_stdin && args.policy.as_deref().is_some_and(is_stdio) {
        return Err(Failure::TwoInputs);
    }
    let mut policy = load(args.policy.as_deref())?;
    args.summarizer.apply(&mut policy)?;
    if let Some(level) = args.compact_at {
        policy.compact_at = level;
        policy.automatic = true;
        // A policy for compaction on demand may say nothing about levels.
        let usual = built_in()?;
        if policy.rearm_below == RearmLevel::At(BasisPoints(0)) {
            policy.rearm_below = usual.rearm_below;
        }
        if policy.counter_policy == CounterPolicy::Unknown {
            policy.counter_policy = usual.counter_policy;
        }
    }
    if let Some(tokens) = args.max_summary_tokens {
        policy.max_summary_tokens = Amount::Tokens(TokenCount(tokens));
    }
    if let Some(tokens) = args.keep_recent_tokens {
        let segments = policy.keep_recent.and_then(|keep| keep.segments);
        policy.keep_recent = Some(KeepRecentAmount { segments, tokens: Amount::Tokens(TokenCount(tokens)) });
    }
    Ok(policy)
}

/// The policy for a model.
pub(crate) fn resolved(
    policy: &PolicyFile,
    limits: &ContextLimits,
    quality: CountQuality,
) -> Result<CompactionPolicy, Failure> {
    policy.resolve(limits, quality).map_err(|_| Failure::NoWindow)
}

/// The policy for a session. Its margin is for the error of the count, so where the count at hand states a larger
/// error than the policy has room for, that counts.
pub(crate) fn for_session(policy: &PolicyFile, target: &Target) -> Result<CompactionPolicy, Failure> {
    let resolved = resolved(policy, &target.limits, target.quality())?;
    Ok(CompactionPolicy { safety_margin: resolved.safety_margin.max(target.count_error()), ..resolved })
}

/// The policy for a session in a journal. Other than [`for_session`] it does not become another one with every few
/// messages: a margin for the error of the count goes in steps of a twentieth of the window.
pub(crate) fn for_kept(policy: &PolicyFile, target: &Target) -> Result<CompactionPolicy, Failure> {
    let resolved = resolved(policy, &target.limits, target.quality())?;
    let error = target.count_error().get();
    if error <= resolved.safety_margin.get() {
        return Ok(resolved);
    }
    let ContextLimits { window, max_input, .. } = target.limits;
    let window = if window == TokenCount::ZERO { max_input } else { window }.get();
    let step = (window / 20).max(1);
    let margin = error.div_ceil(step).saturating_mul(step).min((window / 4).max(error));
    Ok(CompactionPolicy { safety_margin: TokenCount(margin), ..resolved })
}

/// The room that a policy leaves for input.
pub(crate) fn room(policy: &PolicyFile, target: &Target) -> Result<ResolvedLimits, Failure> {
    let CompactionPolicy { reserved_output, safety_margin, .. } = for_session(policy, target)?;
    resolve_context_limits(&target.model, &target.limits, reserved_output, safety_margin)
        .map_err(Failure::NoRoom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::KeepRecent;
    use std::time::Duration;

    /// The profile in numbers, for windows from the smallest up.
    #[test]
    fn the_built_in_policy_is_the_profile() {
        let policy = built_in().unwrap();
        for window in (1..2_000).chain([4_000, 8_191, 20_000, 128_000, 200_000, 1_048_576, u64::MAX]) {
            let limits = ContextLimits { window: TokenCount(window), ..ContextLimits::default() };
            for quality in [CountQuality::ExactLocal, CountQuality::HeuristicEstimate] {
                let margin = if quality == CountQuality::ExactLocal { 0 } else { (window / 50).max(1) };
                let expected = CompactionPolicy {
                    automatic: true,
                    counter_policy: CounterPolicy::AllowConservative,
                    compact_at: BasisPoints(8_500),
                    rearm_below: BasisPoints(5_950),
                    reserved_output: TokenCount((window / 8).clamp(1, 32_000)),
                    safety_margin: TokenCount(margin),
                    max_summary_tokens: TokenCount((window / 15).clamp(100, 4_000)),
                    count_timeout: Duration::from_secs(60),
                    hustle: HUSTLE.into(),
                    keep_recent: Some(KeepRecent {
                        segments: u64::MAX,
                        tokens: TokenCount((window / 10).clamp(1, 20_000)),
                    }),
                    max_request_bytes: None,
                    fallback: None,
                    carry_constraints: true,
                };
                assert_eq!(policy.resolve(&limits, quality), Ok(expected.clone()), "{window}");
                assert!(expected.validate(Some(quality)).is_ok());
            }
        }
    }
}
