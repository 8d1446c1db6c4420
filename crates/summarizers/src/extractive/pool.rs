//! Keeps the best statements of each section while the conversation is read.

use epitome_loop::Section;

use super::fixed_point::Score;
use super::statement::Statement;

/// So many statements of each section are considered, however long the conversation is.
const LARGEST_POOL: usize = 4096;
/// A statement from this score on is worth selecting.
pub(crate) const WORTH_SELECTING: Score = 1000;

/// The best statements so far.
#[derive(Default)]
pub(crate) struct Pool<'t> {
    sections: [Vec<Statement<'t>>; 5],
    openings: Vec<Statement<'t>>,
    overflow: [u64; 5],
}

impl<'t> Pool<'t> {
    /// Takes a statement if it is good enough.
    pub(crate) fn offer(&mut self, statement: Statement<'t>) {
        if statement.is_opening {
            self.openings.push(statement);
            return;
        }
        if statement.score <= 0 {
            return;
        }
        let at = index_of(statement.section);
        self.sections[at].push(statement);
        if self.sections[at].len() >= 2 * LARGEST_POOL {
            self.shrink(at);
        }
    }

    /// The statements in order, and how many worth selecting were dropped, by section.
    pub(crate) fn finish(mut self) -> (Vec<Statement<'t>>, [u64; 5]) {
        (0..self.sections.len()).for_each(|at| self.shrink(at));
        let mut all = self.openings;
        all.extend(self.sections.into_iter().flatten());
        all.sort_unstable_by_key(|statement| statement.place);
        (all, self.overflow)
    }

    /// Drops the lowest scores, of equal ones the oldest.
    fn shrink(&mut self, at: usize) {
        let pool = &mut self.sections[at];
        if pool.len() <= LARGEST_POOL {
            return;
        }
        pool.select_nth_unstable_by_key(LARGEST_POOL, |statement| {
            std::cmp::Reverse((statement.score, statement.place))
        });
        let dropped =
            pool.drain(LARGEST_POOL..).filter(|statement| statement.score >= WORTH_SELECTING).count();
        self.overflow[at] += dropped as u64;
    }
}

/// The section's place in [`Section::ALL`].
pub(crate) fn index_of(section: Section) -> usize {
    match section {
        Section::Goal => 0,
        Section::Constraints => 1,
        Section::Decisions => 2,
        Section::State => 3,
        Section::OpenItems => 4,
    }
}
