//! The registry of loops and hustles.

use std::sync::Arc;

use epitome_loop::{HustleDefinition, HustleLimits, HustleName};

use crate::{BoundLoop, RigBuilder};

/// A registry in which everything fits: every hustle that a policy names exists and can do its work.
///
/// Built by [`Rig::builder`] or read from a file by [`read_rig_file`](crate::read_rig_file); both fail when
/// anything is amiss, so a rig that exists needs no further checks, and no loop that it hands out misses a
/// definition.
#[derive(Clone, Debug)]
pub struct Rig {
    loops: Vec<BoundLoop>,
    hustles: Vec<Arc<HustleDefinition>>,
    limits: Option<HustleLimits>,
}

impl Rig {
    /// Starts a rig.
    pub fn builder() -> RigBuilder {
        RigBuilder::default()
    }

    pub(crate) fn new(
        loops: Vec<BoundLoop>,
        hustles: Vec<Arc<HustleDefinition>>,
        limits: Option<HustleLimits>,
    ) -> Self {
        Self { loops, hustles, limits }
    }

    /// The loops, in the order in which they were given; at least one.
    #[must_use]
    pub fn loops(&self) -> &[BoundLoop] {
        &self.loops
    }

    /// The loop of this name.
    #[must_use]
    pub fn bound_loop(&self, name: &str) -> Option<&BoundLoop> {
        self.loops.iter().find(|found| *found.name() == name)
    }

    /// The hustles, in the order in which they were given.
    #[must_use]
    pub fn hustles(&self) -> &[Arc<HustleDefinition>] {
        &self.hustles
    }

    /// The hustle of this name.
    #[must_use]
    pub fn hustle(&self, name: &HustleName) -> Option<&Arc<HustleDefinition>> {
        self.hustles.iter().find(|found| found.name() == name)
    }

    /// What the lanes of a session hold; `None` when there is no hustle.
    #[must_use]
    pub fn hustle_limits(&self) -> Option<&HustleLimits> {
        self.limits.as_ref()
    }
}
