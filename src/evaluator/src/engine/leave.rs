//! The end of the process that runs the cells.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use stratoscope_wire::ToCells;

use super::{Engine, Evaluate, PATIENCE};

/// How long a cell process that is to end may take to hear of it.
const HEARS: Duration = Duration::from_secs(1);

impl Engine {
    /// Lets the cell process end by itself, where it listens: a launcher such as `mpirun` takes one that is killed for a
    /// failure.
    pub(super) fn leave(&self) {
        if !self.link.sync(HEARS) {
            return;
        }
        self.link.send(&ToCells::Leave);
        let since = Instant::now();
        let is_running = || {
            let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
            matches!(process.try_wait(), Ok(None))
        };
        while is_running() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shut_down();
    }
}
