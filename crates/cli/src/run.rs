//! Where what waits is waited for.

use crate::failure::Failure;

/// Awaits something in a runtime of its own, with its timer and its network.
pub(crate) fn run_to_end<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(Failure::io("the async runtime"))?.block_on(future))
}
