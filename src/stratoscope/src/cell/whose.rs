//! Whose thread this is: what a thread shows that outlives its cell belongs to that cell.

use std::sync::OnceLock;

use stratoscope_wire::ToKernel;

/// Answers with the run that the calling thread belongs to, or 0 where that is the present one.
type Whose = extern "C" fn() -> u64;

static WHOSE: OnceLock<Whose> = OnceLock::new();

/// Handed over by the process that runs the cells, which knows; in any other there is one run.
#[unsafe(no_mangle)]
pub extern "C" fn stratoscope_ask_whose(whose: Whose) {
    let _ = WHOSE.set(whose);
}

/// The run that this thread belongs to, if that is another than the present one.
pub(crate) fn of_another_run() -> Option<u64> {
    let whose = WHOSE.get()?;
    Some(whose()).filter(|&run| run != 0)
}

/// The message, with the run of this thread where that is another one.
pub(crate) fn addressed(message: &ToKernel) -> Option<ToKernel> {
    let run = message.is_shown().then(of_another_run)??;
    Some(ToKernel::Late {
        run,
        message: Box::new(message.clone()),
    })
}
