//! How many commits make the context, and how far it can be taken back and forward.

use super::Rewind;

/// The commits of a session, by number. The default is a session without any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CommitStack {
    /// So many are in force.
    pub in_force: u64,
    /// These, and those that were taken back and can be put in force again. Never fewer than are in force.
    pub known: u64,
}

impl CommitStack {
    /// A further commit is in force. What was taken back before cannot be put in force behind it.
    #[must_use]
    pub fn committed(self) -> Self {
        let in_force = self.in_force.saturating_add(1);
        Self { in_force, known: in_force }
    }

    /// The commits after a rewind; `None` when there is no such commit, or it would change nothing.
    #[must_use]
    pub fn rewound(self, rewind: Rewind) -> Option<Self> {
        let in_force = match rewind {
            Rewind::Back(by) => self.in_force.checked_sub(by)?,
            Rewind::Forward(by) => self.in_force.checked_add(by)?,
            Rewind::To(in_force) => in_force,
        };
        let is_another = in_force != self.in_force && in_force <= self.known;
        is_another.then_some(Self { in_force, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewind_stays_within_what_is_known() {
        let stack = CommitStack { in_force: 2, known: 3 };
        for (rewind, in_force) in [
            (Rewind::Back(0), None),
            (Rewind::Back(1), Some(1)),
            (Rewind::Back(2), Some(0)),
            (Rewind::Back(3), None),
            (Rewind::Back(u64::MAX), None),
            (Rewind::Forward(0), None),
            (Rewind::Forward(1), Some(3)),
            (Rewind::Forward(2), None),
            (Rewind::Forward(u64::MAX), None),
            (Rewind::To(0), Some(0)),
            (Rewind::To(2), None),
            (Rewind::To(3), Some(3)),
            (Rewind::To(4), None),
        ] {
            let then = stack.rewound(rewind);
            assert_eq!(then, in_force.map(|in_force| CommitStack { in_force, known: 3 }), "{rewind:?}");
        }
        assert_eq!(CommitStack::default().rewound(Rewind::Back(1)), None);
    }

    #[test]
    fn a_commit_ends_what_can_be_put_in_force_again() {
        let stack = CommitStack { in_force: 1, known: 3 }.committed();
        assert_eq!(stack, CommitStack { in_force: 2, known: 2 });
        assert_eq!(stack.rewound(Rewind::Forward(1)), None);
    }
}
