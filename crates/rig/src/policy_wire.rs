//! The keys of a policy file, as structs that derive their reading and writing. They are private: what others
//! see is [`PolicyFile`].

mod values;

use epitome_loop::{BasisPoints, ContextLimits, CountQuality, CounterPolicy, SharedText, TokenCount};
use serde::{Deserialize, Serialize};

pub(crate) use self::values::TimeWire;
use self::values::{AmountWire, LevelWire, RearmWire, ShareWire};
use crate::document::Document;
use crate::policy_file::broken_rule;
use crate::{Amount, FileError, FilePlace, FileProblem, KeepRecentAmount, PlacePart, PolicyFile, RearmLevel};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a policy")]
pub(crate) struct PolicyWire {
    automatic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter_policy: Option<CounterPolicyWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_at: Option<LevelWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rearm_below: Option<RearmWire>,
    reserved_output: AmountWire,
    safety_margin: AmountWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_margin_if_exact: Option<AmountWire>,
    max_summary_tokens: AmountWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_recent: Option<KeepRecentWire>,
    count_timeout: TimeWire,
    hustle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<String>,
    #[serde(default = "carried", skip_serializing_if = "is_carried")]
    carry_constraints: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_request_bytes: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum CounterPolicyWire {
    RequireExact,
    AllowConservative,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table with tokens, and segments where they are bounded")]
struct KeepRecentWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<u64>,
    tokens: AmountWire,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OfWindowWire {
    share_of_window: ShareWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OfCompactAtWire {
    share_of_compact_at: ShareWire,
}

/// Checks what no model can mend and makes the public value of it. `place` is where the policy's table stands.
pub(crate) fn policy_of(
    wire: PolicyWire,
    document: &Document<'_>,
    place: &FilePlace,
) -> Result<PolicyFile, FileError> {
    let PolicyWire {
        automatic,
        counter_policy,
        compact_at,
        rearm_below,
        reserved_output,
        safety_margin,
        safety_margin_if_exact,
        max_summary_tokens,
        keep_recent,
        count_timeout,
        hustle,
        max_request_bytes,
        fallback,
        carry_constraints,
    } = wire;
    let at = |keys: &[&'static str]| {
        let inner = keys.iter().map(|key| PlacePart::Key(key));
        FilePlace(place.0.iter().copied().chain(inner).collect())
    };
    for (key, given) in [
        ("counter_policy", counter_policy.is_some()),
        ("compact_at", compact_at.is_some()),
        ("rearm_below", rearm_below.is_some()),
    ] {
        if automatic && !given {
            return Err(document.fault(place.clone(), FileProblem::MissingKey { key }));
        }
    }
    let amount = |wire: AmountWire, keys: &[&'static str]| {
        wire.amount().ok_or_else(|| {
            let problem = FileProblem::Expected { what: "an at_least that is not above at_most".into() };
            document.fault(at(&[keys, &["at_least"]].concat()), problem)
        })
    };
    let margin_if_exact = |wire| amount(wire, &["safety_margin_if_exact"]);
    let keep = |KeepRecentWire { segments, tokens }| {
        Ok(KeepRecentAmount { segments, tokens: amount(tokens, &["keep_recent", "tokens"])? })
    };
    let policy = PolicyFile {
        automatic,
        counter_policy: match counter_policy {
            None => CounterPolicy::Unknown,
            Some(CounterPolicyWire::RequireExact) => CounterPolicy::RequireExact,
            Some(CounterPolicyWire::AllowConservative) => CounterPolicy::AllowConservative,
        },
        compact_at: compact_at.map_or(BasisPoints(0), |LevelWire(level)| level),
        rearm_below: match rearm_below {
            None => RearmLevel::At(BasisPoints(0)),
            Some(RearmWire::At(LevelWire(level))) => RearmLevel::At(level),
            Some(RearmWire::OfCompactAt(OfCompactAtWire { share_of_compact_at: ShareWire(share) })) => {
                RearmLevel::ShareOfCompactAt(share)
            }
        },
        reserved_output: amount(reserved_output, &["reserved_output"])?,
        safety_margin: amount(safety_margin, &["safety_margin"])?,
        safety_margin_if_exact: safety_margin_if_exact.map(margin_if_exact).transpose()?,
        max_summary_tokens: amount(max_summary_tokens, &["max_summary_tokens"])?,
        count_timeout: count_timeout.0,
        hustle: SharedText::from(hustle),
        keep_recent: keep_recent.map(keep).transpose()?,
        max_request_bytes,
        fallback: fallback.map(SharedText::from),
        carry_constraints,
    };
    // In a window without end no share is nothing, and an exact counter satisfies every counter policy: what is
    // refused here is refused for every model.
    let endless = ContextLimits { window: TokenCount(u64::MAX), ..ContextLimits::default() };
    let resolved = policy.resolve(&endless, CountQuality::ExactLocal);
    match resolved.map(|resolved| resolved.validate(Some(CountQuality::ExactLocal))) {
        Ok(Err(error)) => Err(broken_rule(error, document, place)),
        _ => Ok(policy),
    }
}

/// The policy as a file in JSON.
pub(crate) fn json_of(policy: &PolicyFile) -> String {
    let mut text = serde_json::to_string_pretty(&PolicyWire::from(policy)).unwrap_or_default();
    text.push('\n');
    text
}

impl From<&PolicyFile> for PolicyWire {
    fn from(policy: &PolicyFile) -> Self {
        let PolicyFile {
            automatic,
            counter_policy,
            compact_at,
            rearm_below,
            reserved_output,
            safety_margin,
            safety_margin_if_exact,
            max_summary_tokens,
            count_timeout,
            hustle,
            keep_recent,
            max_request_bytes,
            fallback,
            carry_constraints,
        } = policy;
        let level = |points: BasisPoints| (points != BasisPoints(0)).then_some(LevelWire(points));
        Self {
            automatic: *automatic,
            counter_policy: match counter_policy {
                CounterPolicy::Unknown => None,
                CounterPolicy::RequireExact => Some(CounterPolicyWire::RequireExact),
                CounterPolicy::AllowConservative => Some(CounterPolicyWire::AllowConservative),
            },
            compact_at: level(*compact_at),
            rearm_below: match *rearm_below {
                RearmLevel::At(points) => level(points).map(RearmWire::At),
                RearmLevel::ShareOfCompactAt(share) => {
                    Some(RearmWire::OfCompactAt(OfCompactAtWire { share_of_compact_at: ShareWire(share) }))
                }
            },
            reserved_output: (*reserved_output).into(),
            safety_margin: (*safety_margin).into(),
            safety_margin_if_exact: safety_margin_if_exact.map(Into::into),
            max_summary_tokens: (*max_summary_tokens).into(),
            keep_recent: keep_recent.map(|KeepRecentAmount { segments, tokens }| KeepRecentWire {
                segments,
                tokens: tokens.into(),
            }),
            count_timeout: TimeWire(*count_timeout),
            hustle: hustle.as_str().to_owned(),
            fallback: fallback.as_deref().map(str::to_owned),
            carry_constraints: *carry_constraints,
            max_request_bytes: *max_request_bytes,
        }
    }
}

impl AmountWire {
    /// `None` when the bounds contradict each other.
    fn amount(self) -> Option<Amount> {
        match self {
            Self::Tokens(tokens) => Some(Amount::Tokens(TokenCount(tokens))),
            Self::OfWindow(OfWindowWire { share_of_window: ShareWire(share), at_least, at_most }) => {
                let bounds_hold = at_least.unwrap_or(0) <= at_most.unwrap_or(u64::MAX);
                bounds_hold.then_some(Amount::OfWindow {
                    share,
                    at_least: at_least.map(TokenCount),
                    at_most: at_most.map(TokenCount),
                })
            }
        }
    }
}

impl From<Amount> for AmountWire {
    fn from(amount: Amount) -> Self {
        match amount {
            Amount::Tokens(tokens) => Self::Tokens(tokens.get()),
            Amount::OfWindow { share, at_least, at_most } => Self::OfWindow(OfWindowWire {
                share_of_window: ShareWire(share),
                at_least: at_least.map(TokenCount::get),
                at_most: at_most.map(TokenCount::get),
            }),
        }
    }
}

/// What a file that does not say means.
fn carried() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_carried(carry_constraints: &bool) -> bool {
    *carry_constraints
}
