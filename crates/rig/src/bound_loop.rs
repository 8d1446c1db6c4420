//! A loop whose hustle is known to exist and to fit.

use std::sync::Arc;

use epitome_loop::{HustleDefinition, HustleLimits, LoopDefinition, SharedText, ValidPolicy};

/// A loop together with everything that its policy asks for: what a session is opened from.
///
/// Only a [`Rig`](crate::Rig) makes it, so whoever holds one knows: the policy is valid for the loop's counter and
/// leaves room for input where the limits of the model are known, and the hustles that it names are registered, are
/// waited for, and have room for the smallest input and the smallest summary. A clone copies a pointer.
///
/// ```compile_fail,E0451
/// // There is no other way to one: its fields are private.
/// let bound = epitome_rig::BoundLoop { parts: Default::default() };
/// ```
#[derive(Clone, Debug)]
pub struct BoundLoop {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    definition: LoopDefinition,
    compaction: Option<Bound>,
}

#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) hustle: Arc<HustleDefinition>,
    pub(crate) fallback: Option<Arc<HustleDefinition>>,
    pub(crate) limits: HustleLimits,
}

/// What a bound loop compacts with: parts that exist together or not at all.
#[derive(Clone, Copy, Debug)]
pub struct BoundCompaction<'a> {
    /// When to compact, and how much may come of it.
    pub policy: &'a ValidPolicy,
    /// What makes the summary.
    pub hustle: &'a Arc<HustleDefinition>,
    /// What makes one when that gave none; there exactly when the policy names it.
    pub fallback: Option<&'a Arc<HustleDefinition>>,
    /// What the lanes of the session hold.
    pub limits: &'a HustleLimits,
}

impl BoundLoop {
    pub(crate) fn new(definition: LoopDefinition, compaction: Option<Bound>) -> Self {
        Self { parts: Arc::new(Parts { definition, compaction }) }
    }

    /// The loop's name.
    #[must_use]
    pub fn name(&self) -> &SharedText {
        self.parts.definition.name()
    }

    /// The loop's definition.
    #[must_use]
    pub fn definition(&self) -> &LoopDefinition {
        &self.parts.definition
    }

    /// What it compacts with; `None` when its context is only watched, or left to itself.
    #[must_use]
    pub fn compaction(&self) -> Option<BoundCompaction<'_>> {
        let Bound { hustle, fallback, limits } = self.parts.compaction.as_ref()?;
        let policy = self.parts.definition.compaction()?;
        Some(BoundCompaction { policy, hustle, fallback: fallback.as_ref(), limits })
    }
}
