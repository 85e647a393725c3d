//! What evcxr writes into every cell, written once: the module `evcxr_internal_runtime`, in which
//! variables wait for the next cell, and `EvcxrUserCodeError`, which ends a cell at a `?`. The kernel
//! puts this module's name where evcxr has put the texts (version 0.22 of evcxr). What depends on a
//! variable's type is a few instructions long, since every cell compiles it for each of its variables.
//!
//! A cell runs statement by statement ([`run`]), each of which may end it: with a `?`, an early
//! `return`, a panic or an interrupt. What the statements before it have bound is kept then
//! ([`VariableStore::keep`]), and the kernel is told of it at the end ([`finished`]).

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use stratoscope_wire::{KeptVariable, ToKernel};

use super::{describe, interrupts};
use crate::connection;

/// The word of evcxr's protocol for a variable whose type is another one now.
const CHANGED_TYPE: &str = "EVCXR_VARIABLE_CHANGED_TYPE:";
/// The same for a cell that a `?` has ended.
const FAILED: &str = "EVCXR_ERROR_OCCURRED";

/// What a cell's code is left with by a `?`. The error itself has been told to the kernel.
#[derive(Debug)]
pub struct CellError(());

impl<T: Display> From<T> for CellError {
    #[inline(never)]
    fn from(error: T) -> Self {
        // An early `return` is no failure, but what comes behind it is not bound either.
        if STATE.replace(State::Over) == State::Runs {
            super::failed(&error);
        }
        super::protocol(FAILED);
        Self(())
    }
}

/// How far the cell has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs, or has run to its end.
    Runs,
    /// A `return` at its top was met.
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
pub struct Interrupted;

impl Display for Interrupted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("interrupted before this line")
    }
}

/// What stands for a `return` at the top of a cell.
#[derive(Debug)]
pub struct Returned;

impl Display for Returned {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the cell returned")
    }
}

/// The operand of a `return` at the top of a cell, as the result of the statement it stands in.
///
/// # Errors
/// Always: the cell is over.
pub fn early<T, E: From<Returned>>(value: Result<(), E>) -> Result<T, E> {
    // What is an error was told when it was made of another one.
    value?;
    STATE.set(State::Returns);
    Err(E::from(Returned))
}

/// Runs a statement, or a few. `None`: it has ended the cell, and everybody has been told.
pub fn run<T>(statement: impl FnOnce() -> Result<T, CellError>) -> Option<T> {
    let mut statement = Some(statement);
    let mut value = None;
    guarded(&mut || value = statement.take().and_then(|statement| statement().ok()));
    value
}

/// Not generic: cells compile what is theirs alone.
#[inline(never)]
fn guarded(statement: &mut dyn FnMut()) {
    if catch_unwind(AssertUnwindSafe(statement)).is_err() {
        super::panicked();
    }
}

/// As [`super::at`], for a cell that goes to its end another way than by a `?`: whether it is over.
#[track_caller]
#[inline(never)]
pub fn stops(line: u32, last_line: u32) -> bool {
    match super::at(line, last_line) {
        Ok(()) => false,
        Err(interrupted) => {
            let CellError(()) = interrupted.into();
            true
        }
    }
}

/// Whether the interrupt button was pressed before the next statement.
pub(super) fn interruption() -> Result<(), Interrupted> {
    match interrupts::requested() {
        true => Err(Interrupted),
        false => Ok(()),
    }
}

/// The cell caught a panic.
pub(super) fn note_panic() {
    STATE.set(State::Over);
}

/// The function of a cell returns. When it was ended early, the kernel hears what it has kept of the
/// cell's own variables, and how.
#[inline(never)]
pub fn finished(store: &mut VariableStore) -> &mut VariableStore {
    let is_over = STATE.replace(State::Runs) == State::Over;
    let kept = store.variables.iter_mut().filter_map(|(name, variable)| {
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
    if is_over {
        connection::send(&ToKernel::Kept { variables });
    }
    store
}

/// A value, and what its variable was declared as, when the present cell has kept it.
struct Variable {
    value: Box<dyn Any>,
    kept: Option<Kept>,
}

/// How a variable is declared.
struct Kept {
    type_name: &'static str,
    is_mutable: bool,
    /// The present cell has made it.
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
    variables: HashMap<String, Variable>,
}

/// No variables yet. The cells hand the pointer on.
#[inline(never)]
pub fn create_variable_store() -> *mut VariableStore {
    Box::into_raw(Box::default())
}

impl VariableStore {
    /// Keeps a value.
    pub fn put_variable<T: 'static>(&mut self, name: &str, value: T) {
        self.put(name, Box::new(value), None);
    }

    /// Keeps a value that the cell has made, however the cell ends; `type_name` is the type as Rust
    /// code.
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

    /// Keeps a value of an earlier cell, which this one has not come to shadow or to move.
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

    /// Drops values whose types the cell defines anew: what they are made of is still known here.
    #[inline(never)]
    pub fn forget(&mut self, names: &[&str]) {
        for name in names {
            describe::forget(name);
            self.variables.remove(*name);
        }
    }

    /// Whether the variable is there and has this type. evcxr is told when it is not so.
    pub fn check_variable<T: 'static>(&mut self, name: &str) -> bool {
        self.check(name, TypeId::of::<T>())
    }

    /// Hands a value out.
    ///
    /// # Panics
    /// No variable of this name and type is kept.
    pub fn take_variable<T: 'static>(&mut self, name: &str) -> T {
        let value = self.take(name, TypeId::of::<T>());
        // SAFETY: the value has this type: `take` has compared.
        *unsafe { Box::from_raw(Box::into_raw(value).cast::<T>()) }
    }

    /// The shared value of this name, made when it is first asked for: an asynchronous cell's
    /// executor.
    ///
    /// # Panics
    /// A variable of another type has the name.
    pub fn lazy_arc<T: 'static, F: FnOnce() -> T>(&mut self, name: &str, create: F) -> Arc<T> {
        let variable = self.variables.entry(name.to_owned());
        let variable = variable.or_insert_with(|| Variable {
            value: Box::new(Arc::new(create())),
            kept: None,
        });
        match variable.value.downcast_ref::<Arc<T>>() {
            Some(shared) => Arc::clone(shared),
            None => panic!("`{name}` is of another type"),
        }
    }

    #[inline(never)]
    fn put(&mut self, name: &str, value: Box<dyn Any>, kept: Option<Kept>) {
        describe::note(name, value.as_ref());
        let variable = Variable { value, kept };
        self.variables.insert(name.to_owned(), variable);
    }

    #[inline(never)]
    fn check(&self, name: &str, expected: TypeId) -> bool {
        match self.variables.get(name) {
            Some(variable) if variable.value.as_ref().type_id() == expected => return true,
            Some(_) => eprintln!("the type of the variable `{name}` was redefined, so it is lost"),
            // evcxr forgets it and compiles the cell again without it.
            None => {}
        }
        super::protocol(&format!("{CHANGED_TYPE}{name}"));
        false
    }

    #[inline(never)]
    fn take(&mut self, name: &str, expected: TypeId) -> Box<dyn Any> {
        describe::forget(name);
        match self.variables.remove(name) {
            Some(variable) if variable.value.as_ref().type_id() == expected => variable.value,
            Some(_) => panic!("the variable `{name}` is of another type"),
            None => panic!("the variable `{name}` has gone missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_is_kept_is_handed_out_and_of_its_type() {
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
    fn a_value_is_handed_out_once() {
        let mut store = VariableStore::default();
        store.put_variable("number", 3_u8);
        store.take_variable::<u8>("number");
        store.take_variable::<u8>("number");
    }

    #[test]
    #[should_panic(expected = "another type")]
    fn a_value_of_another_type_is_not_handed_out() {
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
    fn what_a_cell_keeps_is_told_once() {
        begin();
        let mut store = VariableStore::default();
        store.keep("text", "String", true, "long enough".to_owned());
        assert!(store.variables["text"].kept.is_some());
        let store = finished(&mut store);
        assert!(store.variables["text"].kept.is_none());
        store.forget(&["text", "unknown"]);
        assert!(!store.check_variable::<String>("text"));
    }

    #[test]
    fn what_is_shared_is_made_once() {
        let mut store = VariableStore::default();
        let first = store.lazy_arc("executor", || Mutex::new(1));
        let second = store.lazy_arc("executor", || Mutex::new(2));
        assert!(Arc::ptr_eq(&first, &second));
    }
}
