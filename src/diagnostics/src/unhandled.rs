//! Errors that nobody has looked at.
//!
//! The calls of the DSL pass their result through [`watched`]. An error is looked at when it is formatted, which a `?` at the
//! top level of a cell does, or when a statement asks a `Result` what it is: `match`, `if let Err(…)`, `.is_err()`, `.ok()`.
//! Asking leaves no trace on the value, so the kernel marks such statements and functions with a call of [`look`]. An error
//! that is dropped before it was looked at is returned by [`end_statement`], and one that is still in a variable by
//! [`end_cell`]: the cell fails with it.
//!
//! Errors that the product makes and drops itself are never watched. Nothing is watched before [`begin_cell`]: an ordinary
//! program has rustc's `unused_must_use` instead.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::{Diagnostic, Result, Severity};

/// The part of a [`Diagnostic`] that notices when it is dropped; 0 while nobody watches it. A clone is not watched, and two
/// diagnostics are equal whether they are watched or not.
#[derive(Default)]
pub struct Watch(AtomicU64);

/// What is watched in this process.
struct Watched {
    /// The thread that runs the cells, once a cell has begun.
    thread: Option<ThreadId>,
    last: u64,
    /// By its number: a copy, and the thread whose call has failed.
    errors: BTreeMap<u64, (Diagnostic, ThreadId)>,
    /// Dropped by the running statement.
    dropped: Vec<Diagnostic>,
    /// The running statement asks results what they are.
    looks: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched {
    thread: None,
    last: 0,
    errors: BTreeMap::new(),
    dropped: Vec::new(),
    looks: false,
});

thread_local! {
    /// A thread of the cell asks results what they are. It may outlive the statement that has started it.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

fn state() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches the error of a call that a cell has made.
///
/// # Errors
/// The error of the call.
pub fn watched<T>(result: Result<T>) -> Result<T> {
    if let Err(error) = &result {
        watch(error);
    }
    result
}

fn watch(error: &Diagnostic) {
    let mut state = state();
    if state.thread.is_none() || error.severity != Severity::Error || error.watch.number() != 0 {
        return;
    }
    state.last += 1;
    let number = state.last;
    let copy = (error.clone(), thread::current().id());
    state.errors.insert(number, copy);
    error.watch.0.store(number, Ordering::Relaxed);
}

/// Whether the process runs cells.
pub fn is_in_notebook() -> bool {
    state().thread.is_some()
}

/// A cell begins on this thread. Errors of earlier cells were reported there.
pub fn begin_cell() {
    let mut state = state();
    state.thread = Some(thread::current().id());
    state.errors.clear();
    state.dropped.clear();
    state.looks = false;
}

/// The statement or the thread that calls this asks results what they are.
pub fn look() {
    let mut state = state();
    if state.thread == Some(thread::current().id()) {
        state.looks = true;
    } else {
        LOOKS.set(true);
    }
}

/// The error is reported in another way, such as in a table of failed trials.
pub fn handled(error: &Diagnostic) {
    error.watch.looked_at();
}

/// Adds an error that a thread of the cell has dropped.
pub fn report(error: &Diagnostic) {
    state().dropped.push(error.clone());
}

/// The first error that was dropped since the last call and that nobody has looked at.
pub fn end_statement() -> Option<Box<Diagnostic>> {
    let mut state = state();
    let dropped = take(&mut state.dropped);
    if take(&mut state.looks) {
        let cell = thread::current().id();
        state.errors.retain(|_, (_, thread)| *thread != cell);
        return None;
    }
    dropped.into_iter().next().map(Box::new)
}

/// As [`end_statement`], or the first error that a call on this thread has left in a variable. Other threads may still look
/// at theirs.
pub fn end_cell() -> Option<Box<Diagnostic>> {
    let dropped = end_statement();
    let mut state = state();
    let errors = take(&mut state.errors);
    let here = thread::current().id();
    let left = errors.into_values().find(|(_, thread)| *thread == here);
    dropped.or_else(|| left.map(|(error, _)| Box::new(error)))
}

impl Watch {
    fn number(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The error was shown, or was passed on to somebody who shows it.
    pub(crate) fn looked_at(&self) {
        let number = self.0.swap(0, Ordering::Relaxed);
        if number != 0 {
            state().errors.remove(&number);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let number = *self.0.get_mut();
        if number == 0 {
            return;
        }
        let mut state = state();
        let Some((error, _)) = state.errors.remove(&number) else {
            return;
        };
        // A thread that ends has no thread-locals any more.
        if !LOOKS.try_with(Cell::get).unwrap_or(true) {
            state.dropped.push(error);
        }
    }
}

impl Clone for Watch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Watch {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Watch {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state is one for the process, so the tests take turns.
    fn in_a_cell(test: impl FnOnce()) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        begin_cell();
        test();
        state().thread = None;
    }

    fn failing() -> Result<()> {
        let error = Diagnostic::new("SC0000", Severity::Error, "no");
        watched(Err(Box::new(error)))
    }

    fn code(found: Option<Box<Diagnostic>>) -> Option<String> {
        found.map(|found| found.code.clone())
    }

    #[test]
    fn a_dropped_error_is_reported_once_by_its_statement() {
        in_a_cell(|| {
            let results: Vec<Result<()>> = (0..3).map(|_| failing()).collect();
            assert_eq!(end_statement(), None, "they are still there");
            drop(results);
            assert_eq!(code(end_statement()).as_deref(), Some("SC0000"));
            assert_eq!(end_statement(), None);
            assert_eq!(end_cell(), None);
        });
    }

    #[test]
    fn an_error_in_a_variable_is_reported_by_its_cell() {
        in_a_cell(|| {
            let kept = failing();
            assert_eq!(end_statement(), None);
            assert_eq!(code(end_cell()).as_deref(), Some("SC0000"));
            drop(kept);
            assert_eq!(end_statement(), None, "it was reported");
        });
    }

    #[test]
    fn what_is_formatted_is_looked_at() {
        in_a_cell(|| {
            let Err(error) = failing() else {
                panic!("it fails")
            };
            assert_eq!(error.to_string(), "SC0000: no");
            drop(error);
            let shown = format!("{:?}", failing());
            assert_eq!(shown, "Err(SC0000: no)");
            assert_eq!(end_cell(), None);
        });
    }

    #[test]
    fn a_statement_that_asks_has_looked_at_all_errors() {
        in_a_cell(|| {
            let kept = failing();
            look();
            assert!(failing().is_err());
            assert_eq!(end_statement(), None);
            drop(kept);
            assert_eq!(end_cell(), None);
        });
    }

    #[test]
    fn a_thread_that_asks_has_looked_at_its_errors() {
        in_a_cell(|| {
            let on_a_thread = |looks: bool| {
                let thread = thread::spawn(move || {
                    if looks {
                        look();
                    }
                    drop(failing());
                });
                thread.join().expect("it does not panic");
                code(end_statement())
            };
            assert_eq!(on_a_thread(true), None);
            assert_eq!(on_a_thread(false).as_deref(), Some("SC0000"));
        });
    }

    #[test]
    fn clones_warnings_and_programs_are_not_watched() {
        in_a_cell(|| {
            let Err(error) = failing() else {
                panic!("it fails")
            };
            drop(error.clone());
            let mut warning = *error.clone();
            warning.severity = Severity::Warning;
            let _ = watched::<()>(Err(Box::new(warning)));
            assert_eq!(end_statement(), None);
            assert_eq!(error, error.clone());
            drop(error.to_string());
            drop(error);
            state().thread = None;
            let _ = failing();
            assert_eq!(end_cell(), None);
        });
    }
}
