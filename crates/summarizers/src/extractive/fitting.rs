//! Finds the largest selection that fits a budget of tokens and bytes.

use epitome_loop::{
    SUMMARY_FRAME_BYTES, SummarizerError, SummaryDraft, SummaryRequest, SummarySections, TokenCount,
};

use super::selection::Selection;

/// The least summary: the frame, and one character each for goal and state.
const LEAST_BYTES: usize = SUMMARY_FRAME_BYTES + 2;
/// Bytes a token takes before anything was measured.
const FIRST_GUESS: u64 = 4;
/// No summary is larger; so sizes can be multiplied without thought, on 32 bits as well.
const MOST_BYTES: usize = 32 << 20;
/// A selection that leaves this many bytes unused had nothing more to select.
const AMPLE: usize = 4096;
/// Selections that are tried at most. Each takes one estimate of the rendered summary.
const MOST_TRIALS: usize = 24;
/// A selection that uses this part of the tokens, in percent, is good enough.
const GOOD_ENOUGH: u128 = 97;

/// Calls `select` with byte budgets until its selection fits the request's tokens and bytes and uses them
/// well. The last word is always an estimate of the whole rendered summary.
pub(crate) fn fit(
    request: &SummaryRequest,
    select: impl Fn(usize) -> Selection,
) -> Result<SummaryDraft, SummarizerError> {
    let tokens_of = |sections: &SummarySections| request.estimator.estimate(&sections.render().xml);
    let least = least_summary();
    let (least_tokens, most_bytes) = (tokens_of(&least), request.max_bytes.unwrap_or(MOST_BYTES));
    if most_bytes < LEAST_BYTES || least_tokens > request.max_tokens {
        return Err(SummarizerError::BudgetTooSmall {
            needed_bytes: LEAST_BYTES,
            needed_tokens: least_tokens,
        });
    }
    let mut search = Search::new(request.max_tokens, most_bytes.min(MOST_BYTES));
    let mut best: Option<Selection> = None;
    while let Some(bytes) = search.next_trial() {
        let selection = select(bytes);
        let used = selection.sections.rendered_len();
        debug_assert!(used <= bytes, "a selection is over its bytes");
        let fits = used <= bytes;
        let is_complete = selection.left_out == [0; 5] || bytes.saturating_sub(used) > AMPLE;
        let tokens = tokens_of(&selection.sections);
        if search.learn(bytes, tokens, fits, is_complete) {
            best = Some(selection);
        }
    }
    let Selection { sections, left_out } =
        best.unwrap_or_else(|| Selection { sections: least, left_out: select(LEAST_BYTES).left_out });
    Ok(SummaryDraft { left_out, ..sections.into() })
}

fn least_summary() -> SummarySections {
    SummarySections { goal: vec!["-".into()], state: vec!["-".into()], ..SummarySections::default() }
}

/// The search for the byte budget that the tokens allow.
struct Search {
    max_tokens: u128,
    /// The largest budget that fitted, or the least there is.
    low: usize,
    /// The largest budget that may still fit.
    high: usize,
    next: Option<usize>,
    trials: usize,
}

impl Search {
    fn new(max_tokens: TokenCount, most_bytes: usize) -> Self {
        let guess = usize::try_from(max_tokens.get().saturating_mul(FIRST_GUESS)).unwrap_or(usize::MAX);
        let next = Some(guess.clamp(LEAST_BYTES, most_bytes));
        Self { max_tokens: u128::from(max_tokens.get()), low: LEAST_BYTES, high: most_bytes, next, trials: 0 }
    }

    fn next_trial(&mut self) -> Option<usize> {
        if self.trials == MOST_TRIALS {
            return None;
        }
        self.trials += 1;
        self.next.take()
    }

    /// Takes in what a trial measured. Says whether it is the best selection so far.
    fn learn(&mut self, bytes: usize, tokens: TokenCount, fits: bool, is_complete: bool) -> bool {
        let tokens = u128::from(tokens.get());
        let is_best = fits && tokens <= self.max_tokens;
        if is_best {
            self.low = bytes;
            if is_complete || bytes == self.high || 100 * tokens >= GOOD_ENOUGH * self.max_tokens {
                return true;
            }
        } else {
            self.high = bytes.saturating_sub(1);
        }
        // What the tokens measured so far would allow, a little less so as to land inside.
        let scaled = bytes as u128 * self.max_tokens / tokens.max(1) * 995 / 1000;
        let scaled = usize::try_from(scaled).unwrap_or(usize::MAX);
        let is_between = self.low < scaled && scaled < self.high;
        let middle = self.low + (self.high - self.low.min(self.high)) / 2;
        let proposal =
            if is_between && self.trials < 6 { scaled } else { middle.min(self.low.saturating_mul(4)) };
        // One part in a hundred is not worth another trial.
        let is_worth_it = self.low < self.high && proposal > self.low && proposal - self.low > self.low / 100;
        let must_go_on = !is_best && self.low == LEAST_BYTES && self.low < self.high;
        if is_worth_it || must_go_on {
            self.next = Some(proposal.clamp(LEAST_BYTES, self.high));
        }
        is_best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_that_never_grows_ends_the_search() {
        let mut search = Search::new(TokenCount(u64::MAX), usize::MAX);
        let mut trials = 0;
        while let Some(bytes) = search.next_trial() {
            search.learn(bytes, TokenCount(1), true, false);
            trials += 1;
        }
        assert!(trials <= MOST_TRIALS);
        let mut search = Search::new(TokenCount(400), usize::MAX);
        while let Some(bytes) = search.next_trial() {
            search.learn(bytes, TokenCount(8), true, false);
        }
        assert_eq!(search.trials, MOST_TRIALS);
    }
}
