//! The interrupt button, as the cell process knows it.

use std::sync::atomic::{AtomicBool, Ordering};

use stratoscope_wire::ToKernel;

use crate::connection;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static HEARD: AtomicBool = AtomicBool::new(false);

/// The button was pressed.
pub(crate) fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// A new cell: an old request is not meant for it.
pub(crate) fn clear() {
    REQUESTED.store(false, Ordering::SeqCst);
    HEARD.store(false, Ordering::SeqCst);
}

/// Whether the button was pressed. Whoever asks is expected to stop soon: the kernel is told, and
/// gives the cell more time before it ends the process.
pub(crate) fn requested() -> bool {
    let requested = REQUESTED.load(Ordering::SeqCst);
    if requested && !HEARD.swap(true, Ordering::SeqCst) {
        connection::send(&ToKernel::Interrupted);
    }
    requested
}
