//! The runtime that evcxr 0.22 would write into every cell, compiled once: the module `evcxr_internal_runtime`, which
//! stores variables between cells, and `EvcxrUserCodeError`, which ends a cell at a `?`. The kernel replaces the
//! generated text by this module's name. Generic functions here are a few instructions long, because every cell compiles
//! them for each of its variables.
//!
//! A cell runs statement by statement ([`run`]). Each statement may end the cell: by `?`, an early `return`, a panic or an
//! interrupt. The variables bound before it are then kept ([`VariableStore::keep`]) and reported to the kernel
//! ([`finished`]).

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use stratoscope_diagnostics::{Diagnostic, unhandled};
use stratoscope_wire::{KeptVariable, ToKernel};

use super::{describe, interrupts};
use crate::connection;
use crate::inspect::{Stored, Variables, share};

/// The keyword of evcxr's protocol for a variable whose type has changed.
const CHANGED_TYPE: &str = "EVCXR_VARIABLE_CHANGED_TYPE:";
/// The keyword for a cell that a `?` has ended.
const FAILED: &str = "EVCXR_ERROR_OCCURRED";

/// The error type of a cell's code: a `?` converts to it. The error itself has been sent to the kernel.
#[derive(Debug)]
pub struct CellError(());

impl<T: Display> From<T> for CellError {
    #[inline(never)]
    fn from(error: T) -> Self {
        // An early `return` is no failure, but the statements after it bind nothing either.
        if STATE.replace(State::Over) == State::Runs {
            super::failed(&error);
        }
        super::protocol(FAILED);
        Self(())
    }
}

/// Whether the cell still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or has run to its end.
    Runs,
    /// It met a `return` at its top level.
    Returns,
    /// A `?`, a `return`, a panic or an interrupt has ended it.
    Over,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Runs) };
}

/// A cell begins.
pub(super) fn begin() {
    STATE.set(State::Runs);
}

/// Why the statement that comes next does not run.
#[derive(Debug)]
pub enum Halt {
    /// The interrupt button was pressed.
    Interrupted,
    /// The statement before it has dropped an error of ours that nobody has looked at.
    Unhandled(Box<Diagnostic>),
}

impl Display for Halt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => out.write_str("interrupted before this line"),
            Self::Unhandled(diagnostic) => diagnostic.fmt(out),
        }
    }
}

/// Stands for a `return` at the top level of a cell.
#[derive(Debug)]
pub struct Returned;

impl Display for Returned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the cell returned")
    }
}

/// The operand of a `return` at the top level of a cell, as the result of its statement.
///
/// # Errors
/// Always: the cell is over.
pub fn early<T, E: From<Returned>>(value: Result<(), E>) -> Result<T, E> {
    // An error was reported when it was converted.
    value?;
    STATE.set(State::Returns);
    Err(E::from(Returned))
}

/// Runs one or more statements. `None` if they have ended the cell, which has been reported.
pub fn run<T>(statement: impl FnOnce() -> Result<T, CellError>) -> Option<T> {
    let mut statement = Some(statement);
    let mut value = None;
    guarded(&mut || value = statement.take().and_then(|statement| statement().ok()));
    value
}

/// As [`run`], for statements that wait for futures.
pub async fn run_async<T>(statement: impl Future<Output = Result<T, CellError>>) -> Option<T> {
    let mut statement = std::pin::pin!(statement);
    std::future::poll_fn(|context| {
        let mut polled = Poll::Pending;
        let has_panicked = !guarded(&mut || polled = statement.as_mut().poll(context));
        match polled {
            Poll::Ready(result) => Poll::Ready(result.ok()),
            Poll::Pending if has_panicked => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Whether the statement has not panicked. Not generic, so that cells do not compile it.
#[inline(never)]
fn guarded(statement: &mut dyn FnMut()) -> bool {
    let has_run = catch_unwind(AssertUnwindSafe(statement)).is_ok();
    if !has_run {
        super::panicked();
    }
    has_run
}

/// As [`super::at`] for a cell that does not end by `?`: returns whether the cell is over.
#[track_caller]
#[inline(never)]
pub fn stops(line: u32, last_line: u32) -> bool {
    match super::at(line, last_line) {
        Ok(()) => false,
        Err(halt) => {
            let CellError(()) = halt.into();
            true
        }
    }
}

/// Whether the interrupt button was pressed before the next statement.
pub(super) fn interruption() -> Result<(), Halt> {
    match interrupts::requested() {
        true => Err(Halt::Interrupted),
        false => Ok(()),
    }
}

/// The cell caught a panic.
pub(super) fn note_panic() {
    STATE.set(State::Over);
}

/// Called before the function of a cell returns. If the cell ended early, sends the variables that it keeps to the
/// kernel, with their declarations. A cell that went to its end keeps all of them, also if it fails now, with an error that
/// nobody has looked at.
#[inline(never)]
pub fn finished(store: &mut VariableStore) -> &mut VariableStore {
    let is_over = STATE.replace(State::Runs) == State::Over;
    if !is_over && let Some(error) = unhandled::end_cell() {
        super::failed(&*error);
    }
    let mut stored = store.variables.lock();
    let kept = stored.iter_mut().filter_map(|(name, variable)| {
        let Kept {
            type_name,
            is_mutable,
            is_new,
        } = variable.kept.take()?;
        Some(KeptVariable {
            name: name.clone(),
            type_name: type_name.to_owned(),
            is_mutable,
            is_new,
        })
    });
    let variables: Vec<KeptVariable> = kept.collect();
    drop(stored);
    if is_over {
        connection::send(&ToKernel::Kept { variables });
    }
    store
}

/// How a variable is declared.
pub(crate) struct Kept {
    type_name: &'static str,
    is_mutable: bool,
    /// Whether the current cell has made it.
    is_new: bool,
}

impl Kept {
    fn new(type_name: &'static str, is_mutable: bool, is_new: bool) -> Self {
        Self {
            type_name,
            is_mutable,
            is_new,
        }
    }
}

/// The variables between two cells, by their names.
#[derive(Default)]
pub struct VariableStore {
    variables: Arc<Variables>,
    /// Those of earlier cells.
    executors: Vec<Box<dyn Any>>,
}

/// An empty store. Each cell passes the pointer on to the next.
#[inline(never)]
pub fn create_variable_store() -> *mut VariableStore {
    let store: Box<VariableStore> = Box::default();
    share(&store.variables);
    Box::into_raw(store)
}

impl VariableStore {
    /// The variables, to be shared with the debugger.
    #[cfg(test)]
    pub(crate) fn variables(&self) -> &Arc<Variables> {
        &self.variables
    }

    /// Stores a value.
    pub fn put_variable<T: 'static>(&mut self, name: &str, value: T) {
        self.put(name, Box::new(value), None);
    }

    /// Stores a value that the cell has made, however the cell ends; `type_name` is the type as Rust code.
    pub fn keep<T: 'static>(
        &mut self,
        name: &str,
        type_name: &'static str,
        is_mutable: bool,
        value: T,
    ) {
        let kept = Kept::new(type_name, is_mutable, true);
        self.put(name, Box::new(value), Some(kept));
    }

    /// Stores a value of an earlier cell that this cell has neither shadowed nor moved.
    pub fn keep_old<T: 'static>(
        &mut self,
        name: &str,
        type_name: &'static str,
        is_mutable: bool,
        value: T,
    ) {
        let kept = Kept::new(type_name, is_mutable, false);
        self.put(name, Box::new(value), Some(kept));
    }

    /// Drops values whose types the cell redefines, while the old types are still loaded.
    #[inline(never)]
    pub fn forget(&mut self, names: &[&str]) {
        for name in names {
            describe::forget(name);
            // Dropped when the lock is free again.
            let value = self.variables.lock().remove(*name);
            drop(value);
        }
    }

    /// Whether the variable exists and has this type. If not, evcxr gets a message.
    pub fn check_variable<T: 'static>(&mut self, name: &str) -> bool {
        self.check(name, TypeId::of::<T>())
    }

    /// Moves a value out of the store.
    ///
    /// # Panics
    /// If no variable of this name and type is stored.
    pub fn take_variable<T: 'static>(&mut self, name: &str) -> T {
        let value = self.take(name, TypeId::of::<T>());
        // SAFETY: `take` has compared the type of the value with `T`, so the box was made as a `Box<T>`.
        *unsafe { Box::from_raw(Box::into_raw(value).cast::<T>()) }
    }

    /// The shared value of this name: the executor that the last asynchronous cell has made. Made here if there is none
    /// of this type.
    pub fn lazy_arc<T: 'static, F: FnOnce() -> T>(&mut self, name: &str, create: F) -> Arc<T> {
        let shared = {
            let variables = self.variables.lock();
            let shared = variables.get(name);
            shared.and_then(|variable| variable.value()?.downcast_ref::<Arc<T>>().cloned())
        };
        match shared {
            Some(shared) => shared,
            None => self.own_arc(name, create),
        }
    }

    /// A value of this name that this cell makes. Earlier ones live on: each cell has its own copy of tokio and of what
    /// tokio remembers of a thread, so that a task can only run on the executor of its cell, and goes on there.
    pub fn own_arc<T: 'static, F: FnOnce() -> T>(&mut self, name: &str, create: F) -> Arc<T> {
        let made = Arc::new(create());
        let variable = Stored::new(Box::new(Arc::clone(&made)), None);
        let before = self.variables.lock().insert(name.to_owned(), variable);
        self.executors.extend(before.and_then(Stored::into_value));
        made
    }

    #[inline(never)]
    fn put(&mut self, name: &str, value: Box<dyn Any>, kept: Option<Kept>) {
        describe::note(name, value.as_ref());
        let variable = Stored::new(value, kept);
        // What was there before is dropped when the lock is free again.
        let before = self.variables.lock().insert(name.to_owned(), variable);
        drop(before);
    }

    #[inline(never)]
    fn check(&self, name: &str, expected: TypeId) -> bool {
        let is_back = self.variables.is_back(name);
        match self.variables.lock().get(name) {
            Some(_) if !is_back => eprintln!(
                "the variable `{name}` is lost: the debugger reads it, and its `Debug` has not ended"
            ),
            Some(variable) if variable.value_type() == expected => return true,
            Some(_) => eprintln!("the type of the variable `{name}` was redefined, so it is lost"),
            // evcxr removes it and compiles the cell again.
            None => {}
        }
        super::protocol(&format!("{CHANGED_TYPE}{name}"));
        false
    }

    #[inline(never)]
    fn take(&mut self, name: &str, expected: TypeId) -> Box<dyn Any> {
        describe::forget(name);
        // A debugger may have it again since `check` has waited.
        self.variables.is_back(name);
        let taken = self.variables.lock().remove(name);
        match taken {
            Some(variable) if variable.value_type() != expected => {
                panic!("the variable `{name}` is of another type")
            }
            taken => match taken.and_then(Stored::into_value) {
                Some(value) => value,
                None => panic!("the variable `{name}` has gone missing"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_stored_value_is_returned_with_its_type() {
        let mut store = VariableStore::default();
        store.put_variable("number", 3_u8);
        store.put_variable("text", "long enough".to_owned());
        assert!(store.check_variable::<u8>("number"));
        assert!(!store.check_variable::<i8>("number"));
        assert!(!store.check_variable::<i8>("unknown"));
        assert_eq!(store.take_variable::<u8>("number"), 3);
        assert_eq!(store.take_variable::<String>("text"), "long enough");
    }

    #[test]
    #[should_panic(expected = "gone missing")]
    fn a_value_is_returned_once() {
        let mut store = VariableStore::default();
        store.put_variable("number", 3_u8);
        store.take_variable::<u8>("number");
        store.take_variable::<u8>("number");
    }

    #[test]
    #[should_panic(expected = "another type")]
    fn a_value_of_another_type_is_not_returned() {
        let mut store = VariableStore::default();
        store.put_variable("number", 3_u8);
        store.take_variable::<[u64; 9]>("number");
    }

    #[test]
    fn a_statement_that_ends_the_cell_has_no_value() {
        begin();
        assert_eq!(run(|| Ok(3)), Some(3));
        assert_eq!(STATE.get(), State::Runs);
        assert_eq!(run(|| early::<u8, CellError>(Ok(()))), None);
        assert_eq!(STATE.get(), State::Over);
        begin();
        assert_eq!(run(|| -> Result<u8, CellError> { Err("no")? }), None);
        assert_eq!(STATE.get(), State::Over);
        begin();
        assert_eq!(run::<u8>(|| panic!("no")), None);
        assert_eq!(STATE.get(), State::Over);
    }

    #[test]
    fn a_statement_that_waits_ends_the_cell_in_the_same_ways() {
        fn poll<T>(statement: impl Future<Output = Result<T, CellError>>) -> Option<T> {
            begin();
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            match std::pin::pin!(run_async(statement)).poll(&mut context) {
                Poll::Ready(value) => value,
                Poll::Pending => panic!("nothing is waited for"),
            }
        }
        assert_eq!(poll(async { Ok(3) }), Some(3));
        assert_eq!(STATE.get(), State::Runs);
        assert_eq!(poll(async { Ok(Err::<u8, _>("no")?) }), None);
        assert_eq!(STATE.get(), State::Over);
        assert_eq!(poll::<u8>(async { panic!("no") }), None);
        assert_eq!(STATE.get(), State::Over);
    }

    #[test]
    fn kept_variables_are_reported_once() {
        begin();
        let mut store = VariableStore::default();
        store.keep("text", "String", true, "long enough".to_owned());
        assert!(store.variables.lock()["text"].kept.is_some());
        let store = finished(&mut store);
        assert!(store.variables.lock()["text"].kept.is_none());
        store.forget(&["text", "unknown"]);
        assert!(!store.check_variable::<String>("text"));
    }

    #[test]
    fn an_executor_lives_on_and_is_shared_by_cells_that_need_none_of_their_own() {
        let mut store = VariableStore::default();
        let first = store.lazy_arc("executor", || Mutex::new(1));
        let second = store.lazy_arc("executor", || Mutex::new(2));
        assert!(Arc::ptr_eq(&first, &second));
        let third = store.own_arc("executor", || Mutex::new(3));
        assert!(!Arc::ptr_eq(&first, &third));
        let fourth = store.lazy_arc("executor", || Mutex::new(4));
        assert!(Arc::ptr_eq(&third, &fourth));
        drop(second);
        assert_eq!(Arc::strong_count(&first), 2);
        // Of another version of tokio.
        assert_eq!(*store.lazy_arc("executor", || 5), 5);
    }
}
