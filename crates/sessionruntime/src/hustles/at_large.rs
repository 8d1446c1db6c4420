//! Workers that went on although they had to end.

use std::collections::BTreeMap;

use epitome_loop::AttemptId;
use tokio::task::AbortHandle;

use super::controller::HustleFault;

/// The workers of one controller that are still at work behind the end of their runs.
#[derive(Debug, Default)]
pub(super) struct AtLarge {
    next: u64,
    workers: BTreeMap<u64, AbortHandle>,
    last: Option<HustleFault>,
}

impl AtLarge {
    /// Takes one in. The number is given back when it has ended.
    pub(super) fn enter(&mut self, fault: HustleFault, worker: AbortHandle) -> u64 {
        let number = self.next;
        self.next += 1;
        self.workers.insert(number, worker);
        self.last = Some(fault);
        number
    }

    /// One has ended after all.
    pub(super) fn leave(&mut self, number: u64) {
        self.workers.remove(&number);
    }

    /// The fault, as long as one is at work.
    pub(super) fn fault(&self) -> Option<HustleFault> {
        self.last.filter(|_| !self.workers.is_empty())
    }

    /// The newest fault, whether it lasts or not.
    pub(super) fn last_fault(&self) -> Option<HustleFault> {
        self.last
    }

    /// Lets go of those that only wait for something. What computes goes on to its own end.
    pub(super) fn abort_all(&self) {
        for worker in self.workers.values() {
            worker.abort();
        }
    }
}

/// A worker went on behind the end of its run, or has come back after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HustleFaultChange {
    /// The run that it worked for.
    pub run: AttemptId,
    /// What is wrong with it.
    pub fault: HustleFault,
    /// Whether it is so from now on; else it is over.
    pub is_so: bool,
}
