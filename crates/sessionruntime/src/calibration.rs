//! What a model's reports say about our counts of its requests.

use epitome_loop::{BasisPoints, TokenCount};

/// A request as it was counted here, and as its provider reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedReport {
    /// What the counter says, without what is stated as unseen.
    pub counted: TokenCount,
    /// What was stated as sent and not known here.
    pub unseen: TokenCount,
    /// What the provider reported for the very same.
    pub reported: TokenCount,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportVerdict {
    /// Counts follow it from now on.
    Taken,
    /// It is much higher than what was reported before and what came since explain: a sum over several requests, or a
    /// request with other parts around it. A second report that agrees with it is taken.
    Doubted,
    /// It is no size of this request.
    Disbelieved,
}

/// What the reports of one model taught about the counts of one counter.
///
/// A count is off in two ways: parts are sent that the counter does not see, and what it sees takes more or fewer
/// tokens than it says. The first is the same for a small request and for a large one, the second grows with it. So a
/// request counts as what was last reported, and what it has more or less than that one by our count, times a factor.
/// The factor is how much faster the reports grow than the counts; before there was growth to speak of, it is 1.
/// `docs/decisions/0016-two-parts-of-a-miscount.md` says why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calibration {
    newest: Option<CountedReport>,
    /// The first report since the context last became another one, or since the parts around it did.
    base: Option<CountedReport>,
    doubted: Option<CountedReport>,
    /// The factor as it was at the base.
    factor_before: Factor,
    factor: Factor,
}

/// How counts of one moment are turned into what the provider would report. It does not change while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountScale {
    anchor: CountedReport,
    factor: Factor,
}

/// So many counted tokens of growth weigh as much as all that was known before.
const WEIGHT_BEFORE: u64 = 16_384;

/// A report may be so much higher than the one before without anything to explain it: at least so many tokens, and so
/// large a part of the whole. Nothing that a provider sums over comes out smaller, but in contexts that hardly fill
/// a window.
const UNEXPLAINED: u64 = 4_096;
const UNEXPLAINED_PART: u64 = 4;

/// How many tokens one counted token may be, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Factor(u64);

impl Factor {
    const ONE: Self = Self(1_000_000);
    const LEAST: Self = Self(500_000);
    const MOST: Self = Self(3_000_000);

    fn of(tokens: u128, counted: u128) -> Self {
        let exact = (tokens * u128::from(Self::ONE.0) + counted / 2) / counted.max(1);
        Self(u64::try_from(exact).unwrap_or(u64::MAX).clamp(Self::LEAST.0, Self::MOST.0))
    }

    /// The nearest whole number of tokens.
    fn times(self, counted: i128) -> i128 {
        let one = i128::from(Self::ONE.0);
        (counted * i128::from(self.0) + one / 2).div_euclid(one)
    }
}

impl Default for Factor {
    fn default() -> Self {
        Self::ONE
    }
}

impl CountScale {
    /// What the provider would report for a request. `counted` is the whole count, `unseen` what was stated as unseen
    /// and is in it.
    #[must_use]
    pub fn apply(&self, counted: TokenCount, unseen: TokenCount) -> TokenCount {
        let Self { anchor, factor } = self;
        let more = i128::from(counted.get().saturating_sub(unseen.get())) - i128::from(anchor.counted.get());
        let more_unseen = i128::from(unseen.get()) - i128::from(anchor.unseen.get());
        let tokens = i128::from(anchor.reported.get()) + factor.times(more) + more_unseen;
        TokenCount(u64::try_from(tokens.max(0)).unwrap_or(u64::MAX))
    }

    /// The report that counts follow.
    #[must_use]
    pub fn anchor(&self) -> CountedReport {
        self.anchor
    }

    /// How many tokens ten thousand counted ones are taken for.
    #[must_use]
    pub fn factor(&self) -> BasisPoints {
        BasisPoints(u16::try_from(self.factor.0 / 100).unwrap_or(u16::MAX))
    }

    /// What goes out with every request beyond what the counter sees, by the reports.
    #[must_use]
    pub fn beside(&self) -> TokenCount {
        let seen = self.factor.times(i128::from(self.anchor.counted.get()));
        let beside = i128::from(self.anchor.reported.get()) - seen;
        TokenCount(u64::try_from(beside.max(0)).unwrap_or(u64::MAX))
    }
}

impl Calibration {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How requests are counted by what is known; `None` before the first report.
    #[must_use]
    pub fn scale(&self) -> Option<CountScale> {
        self.newest.map(|anchor| CountScale { anchor, factor: self.factor })
    }

    /// The context is another one. What was learned holds for it as well; how it grows is looked at anew.
    pub fn context_changed(&mut self) {
        self.base = None;
        self.doubted = None;
        self.factor_before = self.factor;
    }

    /// Takes a report. `window` is what the model can hold, where that is known: a request that was answered was
    /// not larger.
    pub fn take(&mut self, report: CountedReport, window: Option<TokenCount>) -> ReportVerdict {
        let CountedReport { counted, reported, .. } = report;
        // No model has a window of more.
        let most = window.map_or(u64::from(u32::MAX), TokenCount::get);
        // Figures without what came from a cache are far below anything that a counter could be wrong by.
        let least = Factor::LEAST.times(i128::from(counted.get())).max(1);
        if reported.get() > most || i128::from(reported.get()) < least {
            return ReportVerdict::Disbelieved;
        }
        let is_explained = self.newest.is_none_or(|before| self.is_explained(&report, &before));
        if !is_explained && !self.doubted.is_some_and(|doubted| self.is_explained(&report, &doubted)) {
            self.doubted = Some(report);
            return ReportVerdict::Doubted;
        }
        if !is_explained {
            // What surrounds the conversation has become more, so growth since then says nothing.
            self.context_changed();
        }
        self.doubted = None;
        self.learn(report);
        ReportVerdict::Taken
    }

    /// Whether a report is not much higher than another one and what the request has more by our count.
    fn is_explained(&self, report: &CountedReport, before: &CountedReport) -> bool {
        let more = i128::from(report.counted.get()) - i128::from(before.counted.get());
        let explained = if more < 0 { self.factor.times(more) } else { Factor::MOST.times(more) };
        let more_unseen = i128::from(report.unseen.get()) - i128::from(before.unseen.get());
        let slack = UNEXPLAINED.max(before.reported.get() / UNEXPLAINED_PART);
        let most = i128::from(before.reported.get()) + explained + more_unseen + i128::from(slack);
        i128::from(report.reported.get()) <= most
    }

    fn learn(&mut self, report: CountedReport) {
        let grown = self.base.and_then(|base| {
            let counted = report.counted.get().checked_sub(base.counted.get())?;
            let reported = report.reported.get().checked_sub(base.reported.get())?;
            Some((counted, reported))
        });
        match grown {
            Some((counted, reported)) => {
                let known = u128::from(WEIGHT_BEFORE) * u128::from(self.factor_before.0);
                let tokens = u128::from(reported) + known / u128::from(Factor::ONE.0);
                self.factor = Factor::of(tokens, u128::from(counted) + u128::from(WEIGHT_BEFORE));
            }
            None => {
                self.base = Some(report);
                self.factor_before = self.factor;
            }
        }
        // Nothing takes less than no tokens: where even the whole request takes fewer than that, the factor is less.
        let CountedReport { counted, reported, .. } = report;
        if i128::from(reported.get()) < self.factor.times(i128::from(counted.get())) {
            self.factor = Factor::of(u128::from(reported.get()), u128::from(counted.get()));
        }
        self.newest = Some(report);
    }
}

#[cfg(test)]
mod tests;
