//! Who may know whom. This table is the rule; `cargo xtask layers` holds the manifests to it.

/// What one crate may depend on. Dev-dependencies on our own crates obey `ours` too: cargo itself lets a
/// dev-dependency close a cycle.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    pub(crate) ours: Allowed,
    pub(crate) outside: Allowed,
}

/// A set of crate names.
pub(crate) enum Allowed {
    /// These and no other.
    Only(&'static [&'static str]),
    /// All: for packages at the outer edge that nobody depends on.
    Any,
}

impl Allowed {
    pub(crate) fn admits(&self, name: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(&name),
            Self::Any => true,
        }
    }
}

use Allowed::{Any, Only};

/// A new crate starts with a row here.
///
/// The pure layers (`epitome-loop`, `epitome-loopruntime` without its feature `driver`) have no runtime, no clock and no
/// transport: `async-trait` gives their ports a form and is all they may know of async.
pub(crate) const LAYERS: &[Layer] = &[
    Layer {
        name: "epitome-loop",
        ours: Only(&[]),
        outside: Only(&[
            "async-trait",
            "base64",
            "bytes",
            "memchr",
            "serde_json",
            "sha2",
            "thiserror",
            "uuid",
        ]),
    },
    Layer {
        name: "epitome-loopruntime",
        ours: Only(&["epitome-loop"]),
        outside: Only(&["async-trait", "memchr", "thiserror", "tokio"]),
    },
    Layer {
        name: "epitome-rig",
        ours: Only(&["epitome-loop"]),
        outside: Only(&["serde", "serde_json", "thiserror", "toml"]),
    },
    Layer {
        name: "epitome-sessionruntime",
        ours: Only(&["epitome-loop", "epitome-loopruntime", "epitome-rig"]),
        outside: Only(&[
            "async-trait",
            "base64",
            "bytes",
            "memchr",
            // Ends the process group of a hustle that is a program.
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            // Hustles are tasks with deadlines: this is the innermost layer that runs anything.
            "tokio",
            // What a host watches its sessions by.
            "tracing",
            // Ids of what a session writes down.
            "uuid",
        ]),
    },
    Layer {
        name: "epitome-summarizers",
        ours: Only(&["epitome-loop"]),
        outside: Only(&[
            "aho-corasick",
            "unicode-normalization",
            "async-trait",
            "memchr",
            "roxmltree",
            "serde",
            "serde_json",
            "thiserror",
            // What a host watches the passes of the structured summarizer by.
            "tracing",
        ]),
    },
    Layer {
        name: "epitome-counters",
        ours: Only(&["epitome-loop"]),
        outside: Only(&["async-trait", "bytes", "memchr", "serde_json", "sha2", "thiserror", "tiktoken-rs"]),
    },
    Layer {
        name: "epitome-transcripts",
        ours: Only(&["epitome-loop"]),
        outside: Only(&["base64", "bytes", "memchr", "serde", "serde_json", "thiserror"]),
    },
    Layer {
        name: "epitome-journals",
        ours: Only(&["epitome-loop", "epitome-sessionruntime"]),
        outside: Only(&["async-trait", "rusqlite", "tokio"]),
    },
    Layer {
        name: "epitome-models",
        // The summarizers' prompt and reader; no session.
        ours: Only(&["epitome-loop", "epitome-summarizers"]),
        outside: Only(&[
            "async-trait",
            "base64",
            "bytes",
            "memchr",
            // The one HTTP client, and the TLS below it. No other layer speaks to a network.
            "reqwest",
            "rustls",
            "rustls-platform-verifier",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
        ]),
    },
    Layer {
        name: "epitome",
        ours: Only(&[
            "epitome-counters",
            "epitome-journals",
            "epitome-loop",
            "epitome-loopruntime",
            "epitome-models",
            "epitome-rig",
            "epitome-sessionruntime",
            "epitome-summarizers",
            "epitome-transcripts",
        ]),
        outside: Only(&[
            "anstream",
            "anstyle",
            "async-trait",
            "clap",
            "clap_complete",
            "indicatif",
            "serde",
            "serde_json",
            "sha2",
            "tempfile",
            "thiserror",
            "tokio",
            "unicode-width",
            "uuid",
        ]),
    },
    Layer { name: "epitome-tests", ours: Any, outside: Any },
    Layer { name: "epitome-benches", ours: Any, outside: Any },
    Layer { name: "xtask", ours: Only(&[]), outside: Only(&["clap", "serde", "serde_json", "thiserror"]) },
];

/// What a test of any crate may use besides its crate's own dependencies.
pub(crate) const DEV_OUTSIDE: &[&str] = &[
    "base64",
    "criterion",
    "insta",
    "proptest",
    "roxmltree",
    "serde",
    "serde_json",
    "sha2",
    "tempfile",
    "tokio",
];
