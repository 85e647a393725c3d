//! The interrupt button, as the cell process knows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stratoscope_diagnostics::work;
use stratoscope_wire::ToKernel;

use crate::connection;

/// How often a sleeper looks whether the button was pressed.
const PERIOD: Duration = Duration::from_millis(20);

static REQUESTED: AtomicBool = AtomicBool::new(false);
static HEARD: AtomicBool = AtomicBool::new(false);

/// The button was pressed. Where something runs that will hear it, the kernel is told so at once: what
/// cannot be divided, such as a step of a GPU that compiles its kernels, may end first.
pub(crate) fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
    if work::is_listening() {
        requested();
    }
}

/// A new cell: an old request is not meant for it.
pub(crate) fn clear() {
    REQUESTED.store(false, Ordering::SeqCst);
    HEARD.store(false, Ordering::SeqCst);
}

/// Whether the button was pressed. Whoever asks is expected to stop soon: the kernel is told, and
/// gives the cell more time before it ends the process. The answer stays the same until the next cell, so
/// that whoever comes after an interrupted call, such as the cell's next statement, can ask too.
pub(crate) fn requested() -> bool {
    let requested = REQUESTED.load(Ordering::SeqCst);
    if requested && !HEARD.swap(true, Ordering::SeqCst) {
        connection::send(&ToKernel::Interrupted);
    }
    requested
}

/// Waits so many seconds, or until the interrupt button is pressed: then the cell goes on at once, and
/// keeps its variables. `std::thread::sleep` does not hear the button.
pub fn sleep(seconds: impl Into<f64>) {
    wait(seconds.into());
}

#[inline(never)]
fn wait(seconds: f64) {
    let begun = Instant::now();
    // What is not a number is no wait at all.
    let seconds = if seconds.is_nan() { 0.0 } else { seconds };
    let whole = Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
    while !requested() {
        let left = whole.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(PERIOD));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_at_the_end_or_at_the_button() {
        let begun = Instant::now();
        for nothing in [0.0, -1.0, f64::NAN] {
            sleep(nothing);
        }
        sleep(0.05);
        assert!(begun.elapsed() >= Duration::from_millis(50));
        request();
        sleep(1e300);
        clear();
        assert!(!requested());
    }
}
