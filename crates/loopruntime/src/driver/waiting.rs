//! Who waits for an answer of a loop. Everything that a loop has heard is answered once, and the adapter hears of it
//! first.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use epitome_loop::{CommandId, EventId};
use tokio::sync::oneshot;

use super::adapter::LoopAdapter;
use crate::decision::{Change, Refused, Reply};

/// Those who wait, in the order in which they were heard.
pub(super) struct Waiting {
    adapter: Arc<dyn LoopAdapter>,
    commands: Vec<(CommandId, oneshot::Sender<Reply>)>,
    changes: VecDeque<(Change, oneshot::Sender<Result<(), Refused>>)>,
}

impl Waiting {
    pub(super) fn new(adapter: Arc<dyn LoopAdapter>) -> Self {
        Self { adapter, commands: Vec::new(), changes: VecDeque::new() }
    }

    pub(super) fn command(&mut self, command: CommandId, answer: oneshot::Sender<Reply>) {
        self.commands.push((command, answer));
    }

    pub(super) fn change(&mut self, change: Change, answer: oneshot::Sender<Result<(), Refused>>) {
        self.changes.push_back((change, answer));
    }

    /// Answers whoever gave this command: more than one, if it was given again while it waited.
    pub(super) fn answer(&mut self, command: CommandId, reply: Reply) {
        let is_meant = |other: &mut (CommandId, _)| other.0 == command;
        for (command, answer) in self.commands.extract_if(.., is_meant) {
            tell(self.adapter.as_ref(), command, reply, answer);
        }
        if self.commands.is_empty() {
            // A loop that has nothing to do keeps no room for what there was once.
            self.commands = Vec::new();
        }
    }

    /// A change is durable.
    pub(super) fn changed(&mut self, event: EventId) {
        if let Some((_, answer)) = self.take(|change| change.event == event) {
            // Who does not wait any more needs no answer.
            let _gone = answer.send(Ok(()));
        }
    }

    /// A change does not happen.
    pub(super) fn refuse(&mut self, change: Change, why: Refused) {
        if let Some((change, answer)) = self.take(|other| *other == change) {
            refuse(self.adapter.as_ref(), change, why, answer);
        }
    }

    /// The journal failed, and everybody is told.
    pub(super) fn halt(&mut self) {
        for (command, answer) in std::mem::take(&mut self.commands) {
            tell(self.adapter.as_ref(), command, Reply::Halted, answer);
        }
        for (change, answer) in std::mem::take(&mut self.changes) {
            refuse(self.adapter.as_ref(), change, Refused::Halted, answer);
        }
    }

    fn take(
        &mut self,
        is_meant: impl Fn(&Change) -> bool,
    ) -> Option<(Change, oneshot::Sender<Result<(), Refused>>)> {
        // They are answered nearly in order, so this is one of the first.
        let at = self.changes.iter().position(|(change, _)| is_meant(change))?;
        let found = self.changes.remove(at);
        if self.changes.is_empty() {
            self.changes = VecDeque::new();
        }
        found
    }
}

fn tell(adapter: &dyn LoopAdapter, command: CommandId, reply: Reply, answer: oneshot::Sender<Reply>) {
    let _heard = catch_unwind(AssertUnwindSafe(|| adapter.answered(command, &reply)));
    let _gone = answer.send(reply);
}

fn refuse(
    adapter: &dyn LoopAdapter,
    change: Change,
    why: Refused,
    answer: oneshot::Sender<Result<(), Refused>>,
) {
    let _heard = catch_unwind(AssertUnwindSafe(|| adapter.refused(&change, why)));
    let _gone = answer.send(Err(why));
}
