//! Interrupt requests in the cell process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stratoscope_diagnostics::work;
use stratoscope_wire::ToKernel;

use crate::connection;

/// How often [`sleep`] checks for an interrupt.
const PERIOD: Duration = Duration::from_millis(20);

static REQUESTED: AtomicBool = AtomicBool::new(false);
static CONFIRMED: AtomicBool = AtomicBool::new(false);

/// Notes an interrupt request. If code that checks for interrupts is running, the kernel gets the confirmation at once,
/// because an operation that cannot be divided, such as a GPU step that compiles its kernels, may have to end first.
pub(crate) fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
    if work::is_listening() {
        requested();
    }
}

/// Forgets an old request when a cell begins.
pub(crate) fn clear() {
    REQUESTED.store(false, Ordering::SeqCst);
    CONFIRMED.store(false, Ordering::SeqCst);
}

/// Whether an interrupt was requested. The caller is expected to stop soon: the kernel gets a confirmation and waits
/// longer before it ends the process. The answer stays the same until the next cell, so that the statement after an
/// interrupted call can check too.
pub(crate) fn requested() -> bool {
    let requested = REQUESTED.load(Ordering::SeqCst);
    if requested && !CONFIRMED.swap(true, Ordering::SeqCst) {
        connection::send(&ToKernel::Interrupted);
    }
    requested
}

/// Waits for a number of seconds, or until an interrupt: then the cell goes on at once and keeps its variables.
/// `std::thread::sleep` cannot be interrupted.
pub fn sleep(seconds: impl Into<f64>) {
    wait(seconds.into());
}

#[inline(never)]
fn wait(seconds: f64) {
    let begun = Instant::now();
    // NaN waits for 0 seconds.
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
    fn sleep_ends_after_its_time_or_at_an_interrupt() {
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
