//! Running what the host brought without letting its panics or its waiting spread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

/// Why something that the host brought did not come back with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uncontained {
    /// It panicked. What the panic said is dropped.
    Panicked,
    /// It took too long and was dropped.
    TimedOut,
}

/// Runs a future as a task of its own, for so long at most.
pub(super) async fn contained<T: Send + 'static>(
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Uncontained> {
    let mut task = AbortOnDrop(tokio::spawn(work));
    match timeout(limit, &mut task.0).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            forget_panic(error);
            Err(Uncontained::Panicked)
        }
        Err(_) => Err(Uncontained::TimedOut),
    }
}

/// Calls a function. `None` when it panicked.
pub(super) fn contained_call<T>(call: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // The payload is not looked at, and dropping it might panic again.
            std::mem::forget(payload);
            None
        }
    }
}

/// Lets go of a panic without looking at it. Dropping what it carries might panic again.
pub(super) fn forget_panic(error: JoinError) {
    if let Ok(payload) = error.try_into_panic() {
        std::mem::forget(payload);
    }
}

/// A task that ends with its owner.
pub(super) struct AbortOnDrop<T>(pub(super) JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
