//! Puts a rig together, or says why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome_loop::{
    HustleDefinition, HustleLimitSettings, HustleLimits, HustleName, HustleSettings, LoopDefinition,
    LoopDefinitionBuilder, LoopDefinitionError, Participation, SMALLEST_INPUT_BYTES, SharedText, ValidPolicy,
    smallest_output,
};

use crate::bound_loop::Bound;
use crate::{BoundLoop, Incompatibility, Rig, RigError, RigErrorKind, RigPart};

/// Collects loops, hustles and the limits of their lanes, as their authors write them.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RigBuilder {
    loops: Vec<LoopDefinitionBuilder>,
    hustles: Vec<HustleSettings>,
    limits: Vec<HustleLimitSettings>,
}

impl RigBuilder {
    /// Adds a loop.
    pub fn with_loop(mut self, agent_loop: LoopDefinitionBuilder) -> Self {
        self.loops.push(agent_loop);
        self
    }

    /// Registers a hustle.
    pub fn with_hustle(mut self, hustle: HustleSettings) -> Self {
        self.hustles.push(hustle);
        self
    }

    /// Says what the lanes hold. Needed exactly when there is a hustle, and once.
    pub fn with_hustle_limits(mut self, limits: HustleLimitSettings) -> Self {
        self.limits.push(limits);
        self
    }

    /// Checks everything and puts it together. Nothing is read and nothing is started; it takes microseconds.
    ///
    /// The order is the reference implementation's: the limits, whether they and hustles go together, each hustle,
    /// each loop with its policy, and then for each loop that compacts whether its hustle exists and fits.
    ///
    /// # Errors
    /// [`RigError`] with the first fault in this order, and within one part in the order of [`RigErrorKind`]. A
    /// policy that its loop's counter does not allow is a fault of the loop by its place in the order, and by its
    /// kind an [`IncompatibleCompactionHustle`](RigErrorKind::IncompatibleCompactionHustle).
    pub fn build(self) -> Result<Rig, RigError> {
        let Self { loops, hustles, limits } = self;
        let limits = check_limits(&limits, !hustles.is_empty())?;
        let hustles = define_hustles(hustles)?;
        let loops = define_loops(loops)?;
        let registered = hustles.iter().map(|hustle| (hustle.name(), hustle)).collect();
        let bind = |(at, definition)| bind(at, definition, &registered, limits);
        let loops = loops.into_iter().enumerate().map(bind).collect::<Result<Vec<_>, _>>()?;
        Ok(Rig::new(loops, hustles, limits))
    }
}

fn refuse<T>(part: RigPart, name: impl Into<SharedText>, kind: RigErrorKind) -> Result<T, RigError> {
    Err(RigError { kind, part, name: name.into() })
}

fn check_limits(limits: &[HustleLimitSettings], needed: bool) -> Result<Option<HustleLimits>, RigError> {
    let refuse = |kind| refuse(RigPart::HustleLimits, "", kind);
    match *limits {
        [] if needed => refuse(RigErrorKind::MissingHustleLimits),
        [] => Ok(None),
        [limits] => match HustleLimits::new(limits) {
            Err(fault) => refuse(RigErrorKind::InvalidHustleLimits(fault)),
            Ok(_) if !needed => refuse(RigErrorKind::UnusedHustleLimits),
            Ok(limits) => Ok(Some(limits)),
        },
        _ => refuse(RigErrorKind::DuplicateHustleLimits),
    }
}

fn define_hustles(settings: Vec<HustleSettings>) -> Result<Vec<Arc<HustleDefinition>>, RigError> {
    let mut seen = BTreeSet::new();
    let mut hustles = Vec::with_capacity(settings.len());
    for (at, settings) in settings.into_iter().enumerate() {
        let name = settings.name.clone();
        match HustleDefinition::new(settings) {
            Err(fault) => return refuse(RigPart::Hustle(at), name, RigErrorKind::InvalidHustle(fault)),
            Ok(hustle) => {
                if !seen.insert(name.clone()) {
                    return refuse(RigPart::Hustle(at), name, RigErrorKind::DuplicateHustle);
                }
                hustles.push(Arc::new(hustle));
            }
        }
    }
    Ok(hustles)
}

fn define_loops(builders: Vec<LoopDefinitionBuilder>) -> Result<Vec<LoopDefinition>, RigError> {
    if builders.is_empty() {
        return refuse(RigPart::Loops, "", RigErrorKind::NoLoop);
    }
    let mut seen = BTreeSet::new();
    let mut loops = Vec::with_capacity(builders.len());
    for (at, builder) in builders.into_iter().enumerate() {
        let part = RigPart::Loop(at);
        let name = builder.name().clone();
        let hustle = builder.compaction().map(|policy| policy.hustle.clone()).unwrap_or_default();
        match builder.build() {
            Err(LoopDefinitionError::InvalidCompaction(fault)) => {
                let kind = RigErrorKind::IncompatibleCompactionHustle(Incompatibility::Policy(fault));
                return refuse(part, hustle, kind);
            }
            Err(LoopDefinitionError::Limit(fault)) => return refuse(part, name, RigErrorKind::NoRoom(fault)),
            Err(fault) => return refuse(part, name, RigErrorKind::InvalidLoop(fault)),
            Ok(_) if !seen.insert(name.clone()) => {
                return refuse(part, name, RigErrorKind::DuplicateLoop);
            }
            Ok(definition) => loops.push(definition),
        }
    }
    Ok(loops)
}

/// Gives a loop the hustles that its policy names.
fn bind(
    at: usize,
    definition: LoopDefinition,
    registered: &BTreeMap<&HustleName, &Arc<HustleDefinition>>,
    limits: Option<HustleLimits>,
) -> Result<BoundLoop, RigError> {
    let Some(name) = definition.compaction_hustle() else { return Ok(BoundLoop::new(definition, None)) };
    let fitting = |name: &HustleName, missing, incompatible: fn(Incompatibility) -> RigErrorKind| {
        let refuse = |kind| refuse(RigPart::Loop(at), name.as_str(), kind);
        let Some(hustle) = registered.get(name) else { return refuse(missing) };
        match incompatibility(hustle) {
            Some(why) => refuse(incompatible(why)),
            None => Ok(Arc::clone(hustle)),
        }
    };
    use RigErrorKind as Kind;
    let hustle = fitting(name, Kind::MissingCompactionHustle, Kind::IncompatibleCompactionHustle)?;
    let fallback = definition.compaction().and_then(ValidPolicy::fallback);
    let fallback = fallback
        .map(|name| fitting(name, Kind::MissingFallbackHustle, Kind::IncompatibleFallbackHustle))
        .transpose()?;
    // A registered hustle has limits beside it: without them there would be no rig by now.
    let Some(limits) = limits else {
        return refuse(RigPart::HustleLimits, "", Kind::MissingHustleLimits);
    };
    Ok(BoundLoop::new(definition, Some(Bound { hustle, fallback, limits })))
}

/// Why no run of this hustle could compact. A model of its own is no reason: that the reference implementation
/// refuses it is a difference that our rules name.
fn incompatibility(hustle: &HustleDefinition) -> Option<Incompatibility> {
    let (limits, least_output) = (hustle.limits(), smallest_output(hustle.identity()) as u64);
    let least_input = SMALLEST_INPUT_BYTES as u64;
    if hustle.participation() == Participation::Background {
        Some(Incompatibility::Background)
    } else if limits.output < least_output {
        Some(Incompatibility::OutputLimit { limit: limits.output, least: least_output })
    } else if limits.input < least_input {
        Some(Incompatibility::InputLimit { limit: limits.input, least: least_input })
    } else {
        None
    }
}
