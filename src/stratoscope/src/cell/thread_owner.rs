//! Which run of a cell a thread belongs to: what a thread shows after its cell has ended is shown below that cell.

use std::sync::OnceLock;

use stratoscope_wire::ToKernel;

/// Returns the run that the calling thread belongs to, or 0 for the run that is going on.
type ThreadOwner = extern "C" fn() -> u64;

static THREAD_OWNER: OnceLock<ThreadOwner> = OnceLock::new();

/// Called by the cell process, which knows the owners of its threads. In any other process there is one run.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_set_thread_owner(owner: ThreadOwner) {
    let _ = THREAD_OWNER.set(owner);
}

/// The run that this thread belongs to, if it is an earlier one.
pub(crate) fn earlier_run() -> Option<u64> {
    let owner = THREAD_OWNER.get()?;
    Some(owner()).filter(|&run| run != 0)
}

/// The message as one of an earlier run, if this thread belongs to one.
pub(crate) fn addressed(message: &ToKernel) -> Option<ToKernel> {
    let run = message.is_shown().then(earlier_run)??;
    Some(ToKernel::ForeignOutput {
        run,
        message: Box::new(message.clone()),
    })
}
