//! Whether training is asked to stop. It is asked between two optimizer steps: the model, the
//! moments and the place in the data are kept, and `fit!(…, resume = true)` goes on.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static SOURCE: OnceLock<fn() -> bool> = OnceLock::new();

/// Asks a running `fit` to stop after its current optimizer step. The request holds until a `fit`
/// has heard it.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Whoever else can ask: a notebook's interrupt button, a signal handler. Can be set once.
pub fn listen_to(source: fn() -> bool) {
    // A second source would be one that nobody hears; the first stays.
    let _ = SOURCE.set(source);
}

/// Whether somebody asks. A request made by [`request`] is answered by asking.
pub fn requested() -> bool {
    REQUESTED.swap(false, Ordering::SeqCst) || SOURCE.get().is_some_and(|source| source())
}
