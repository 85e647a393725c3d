//! What the threads of a session share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::evaluate::Interrupt;

/// The state that other threads use while the evaluator is busy.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) interrupt: Mutex<Option<Arc<dyn Interrupt>>>,
    /// Cells and expressions that are queued or running.
    pub(crate) waiting: AtomicUsize,
    /// The evaluator executes a cell or an expression.
    pub(crate) running: AtomicBool,
    /// The evaluator has started, or failed to.
    pub(crate) has_started: AtomicBool,
    /// It is also warmed up, or had no time for that: it answers what it is asked.
    pub(crate) answers: AtomicBool,
    /// An interrupt arrived while cells waited and none was running.
    pub(crate) interrupted_early: AtomicBool,
    /// The session is shutting down: queued cells are not executed.
    pub(crate) stopping: AtomicBool,
}

impl Shared {
    /// Whether what was queued is not to run: the session ends, or an interrupt came before it ran.
    pub(crate) fn is_called_off(&self) -> bool {
        self.stopping.load(Ordering::SeqCst) || self.interrupted_early.swap(false, Ordering::SeqCst)
    }

    /// A cell or an expression has ended.
    pub(crate) fn end_of_evaluation(&self) {
        self.running.store(false, Ordering::SeqCst);
        self.interrupted_early.store(false, Ordering::SeqCst);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
