//! The keys of a rig file, as structs that derive their reading. They are private: what others see is
//! [`Rig`](crate::Rig).

use std::num::NonZeroU64;

use epitome_loop::{
    CountQuality, CounterTransport, IdentityBinding, InferenceTransport, Participation, Retention,
    RetryPolicy,
};
use serde::Deserialize;

use crate::policy_wire::{PolicyWire, TimeWire};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a rig")]
pub(crate) struct RigWire {
    pub(crate) hustle_limits: Option<HustleLimitsWire>,
    #[serde(default)]
    pub(crate) hustles: Vec<HustleWire>,
    #[serde(default)]
    pub(crate) loops: Vec<LoopWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the limits of the lanes")]
pub(crate) struct HustleLimitsWire {
    pub(crate) blocking: LaneWire,
    pub(crate) background: LaneWire,
    pub(crate) audit_timeout: TimeWire,
    pub(crate) finalization_timeout: TimeWire,
    pub(crate) worker_drain_timeout: TimeWire,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { concurrent = 1, queued = 8 }")]
pub(crate) struct LaneWire {
    pub(crate) concurrent: u64,
    pub(crate) queued: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a hustle")]
pub(crate) struct HustleWire {
    pub(crate) name: String,
    pub(crate) participation: ParticipationWire,
    pub(crate) timeout: TimeWire,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) model: SourceWire,
    pub(crate) prompt: Option<PromptWire>,
    pub(crate) policy_revision: String,
    pub(crate) output_schema: Option<SchemaWire>,
    pub(crate) retry: RetryWire,
    pub(crate) identity: IdentityWire,
}

/// Where an answer comes from. The keys behind the first are those of a named model and of no other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { source = \"embedded\" }")]
pub(crate) struct SourceWire {
    pub(crate) source: SourceWord,
    pub(crate) client: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) revision: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceWord {
    CurrentLoop,
    Named,
    Embedded,
}

/// Exactly one of `text` and `file`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { file = \"compact.md\", revision = \"1\" }")]
pub(crate) struct PromptWire {
    pub(crate) text: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) revision: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of an output schema")]
pub(crate) struct SchemaWire {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) schema: String,
    pub(crate) strict: bool,
    pub(crate) revision: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a loop")]
pub(crate) struct LoopWire {
    pub(crate) name: String,
    pub(crate) model: ModelWire,
    pub(crate) counter: Option<CounterWire>,
    pub(crate) inference: Option<InferenceWire>,
    pub(crate) compaction: Option<PolicyWire>,
    pub(crate) observation: Option<ObservationWire>,
    pub(crate) fixed: Option<FixedWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a model")]
pub(crate) struct ModelWire {
    pub(crate) provider: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) api_format: String,
    #[serde(default)]
    pub(crate) base_url: String,
    #[serde(default)]
    pub(crate) origin: u8,
    pub(crate) window: Option<NonZeroU64>,
    pub(crate) max_input: Option<NonZeroU64>,
    pub(crate) max_output: Option<NonZeroU64>,
    #[serde(default)]
    pub(crate) abilities: Vec<AbilityWire>,
    #[serde(default)]
    pub(crate) thinking_dialect: String,
    #[serde(default)]
    pub(crate) sampling: SamplingWire,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AbilityWire {
    Images,
    Tools,
    Thinking,
    StructuredOutput,
    StructuredOutputWithTools,
    PromptCaching,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { temperature = 0.2 }")]
pub(crate) struct SamplingWire {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stop: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) effort: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of a counter")]
pub(crate) struct CounterWire {
    #[serde(default)]
    pub(crate) provider: String,
    pub(crate) transport: CounterTransportWire,
    pub(crate) security_identity: Option<String>,
    pub(crate) retention: RetentionWire,
    pub(crate) tokenizer_rev: String,
    pub(crate) quality: QualityWire,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of the path to a model")]
pub(crate) struct InferenceWire {
    pub(crate) provider: String,
    pub(crate) transport: InferenceTransportWire,
    pub(crate) security_identity: Option<String>,
    pub(crate) retention: Option<RetentionWire>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the keys of an observation")]
pub(crate) struct ObservationWire {
    pub(crate) reserved_output: u64,
    pub(crate) safety_margin: u64,
    pub(crate) count_timeout: TimeWire,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { system = 4000, tools = 9000 }")]
pub(crate) struct FixedWire {
    pub(crate) system: u64,
    pub(crate) tools: u64,
}

/// Declares a word of the file for each value of a type.
macro_rules! words {
    ($($wire:ident for $value:ident { $($word:ident),* })*) => {$(
        #[derive(Clone, Copy, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $wire { $($word),* }

        impl From<$wire> for $value {
            fn from(word: $wire) -> Self {
                match word { $($wire::$word => Self::$word),* }
            }
        }
    )*};
}

words! {
    ParticipationWire for Participation { Blocking, Background }
    RetryWire for RetryPolicy { None, ClassifiedOnce }
    IdentityWire for IdentityBinding { Host, Echo }
    CounterTransportWire for CounterTransport { Local, SameEndpoint, SeparateEndpoint }
    InferenceTransportWire for InferenceTransport { Local, Tls, AttestedTls, EndToEndEncrypted }
    RetentionWire for Retention { None, Ephemeral, Logged }
    QualityWire for CountQuality { ExactProvider, ExactLocal, HeuristicEstimate }
}
