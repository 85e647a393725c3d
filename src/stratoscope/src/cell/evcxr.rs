//! What evcxr writes into every cell, written once: the module `evcxr_internal_runtime`, in which
//! variables wait for the next cell, and `EvcxrUserCodeError`, which ends a cell at a `?`. The kernel
//! puts this module's name where evcxr has put the texts (version 0.22 of evcxr). What depends on a
//! variable's type is a few instructions long, since every cell compiles it for each of its variables.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use super::describe;

/// The word of evcxr's protocol for a variable whose type is another one now.
const CHANGED_TYPE: &str = "EVCXR_VARIABLE_CHANGED_TYPE:";
/// The same for a cell that a `?` has ended.
const FAILED: &str = "EVCXR_ERROR_OCCURRED";

/// What a cell's code is left with by a `?`. The error itself has been told to the kernel.
#[derive(Debug)]
pub struct CellError(());

impl<T: Display> From<T> for CellError {
    fn from(error: T) -> Self {
        super::failed(&error);
        super::protocol(FAILED);
        Self(())
    }
}

/// The variables between two cells, by their names.
#[derive(Default)]
pub struct VariableStore {
    variables: HashMap<String, Box<dyn Any>>,
}

/// No variables yet. The cells hand the pointer on.
#[inline(never)]
pub fn create_variable_store() -> *mut VariableStore {
    Box::into_raw(Box::default())
}

impl VariableStore {
    /// Keeps a value.
    pub fn put_variable<T: 'static>(&mut self, name: &str, value: T) {
        self.put(name, Box::new(value));
    }

    /// Whether the variable still has this type, or was not kept. The kernel is told when it has not.
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
        let value = self.variables.entry(name.to_owned());
        let value = value.or_insert_with(|| Box::new(Arc::new(create())));
        match value.downcast_ref::<Arc<T>>() {
            Some(shared) => Arc::clone(shared),
            None => panic!("`{name}` is of another type"),
        }
    }

    #[inline(never)]
    fn put(&mut self, name: &str, value: Box<dyn Any>) {
        describe::note(name, value.as_ref());
        self.variables.insert(name.to_owned(), value);
    }

    #[inline(never)]
    fn check(&self, name: &str, expected: TypeId) -> bool {
        let is_other = |value: &Box<dyn Any>| value.as_ref().type_id() != expected;
        if self.variables.get(name).is_some_and(is_other) {
            eprintln!("the type of the variable `{name}` was redefined, so it is lost");
            super::protocol(&format!("{CHANGED_TYPE}{name}"));
            return false;
        }
        true
    }

    #[inline(never)]
    fn take(&mut self, name: &str, expected: TypeId) -> Box<dyn Any> {
        describe::forget(name);
        match self.variables.remove(name) {
            Some(value) if value.as_ref().type_id() == expected => value,
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
        assert!(store.check_variable::<i8>("unknown"));
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
    fn what_is_shared_is_made_once() {
        let mut store = VariableStore::default();
        let first = store.lazy_arc("executor", || Mutex::new(1));
        let second = store.lazy_arc("executor", || Mutex::new(2));
        assert!(Arc::ptr_eq(&first, &second));
    }
}
