//! The values that live between cells, where a debugger finds them. A cell takes those that it uses, and puts them back at
//! its end.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use stratoscope_wire::{InspectAnswer, InspectedValue};

use super::reader::{self, PATIENCE};
use super::types::known;
use super::{Leaf, View, described, models, register};
use crate::cell::evcxr::Kept;

/// A value, and the declaration of its variable if the current cell has kept it.
pub(crate) struct Stored {
    value: Place,
    type_id: TypeId,
    pub kept: Option<Kept>,
}

enum Place {
    Here(Box<dyn Any>),
    /// A debugger has it, under this number.
    Lent(u64),
}

/// A value that a debugger has.
struct Loan {
    value: Box<dyn Any>,
    number: u64,
}

impl Stored {
    pub(crate) fn new(value: Box<dyn Any>, kept: Option<Kept>) -> Self {
        Self {
            type_id: value.as_ref().type_id(),
            value: Place::Here(value),
            kept,
        }
    }

    pub(crate) fn value_type(&self) -> TypeId {
        self.type_id
    }

    /// `None` while a debugger has it.
    pub(crate) fn value(&self) -> Option<&dyn Any> {
        match &self.value {
            Place::Here(value) => Some(value.as_ref()),
            Place::Lent(_) => None,
        }
    }

    /// `None` while a debugger has it.
    pub(crate) fn into_value(self) -> Option<Box<dyn Any>> {
        match self.value {
            Place::Here(value) => Some(value),
            Place::Lent(_) => None,
        }
    }

    fn lend(&mut self) -> Option<Loan> {
        static LOANS: AtomicU64 = AtomicU64::new(0);
        let number = LOANS.fetch_add(1, Ordering::Relaxed);
        match std::mem::replace(&mut self.value, Place::Lent(number)) {
            Place::Here(value) => Some(Loan { value, number }),
            lent @ Place::Lent(_) => {
                self.value = lent;
                None
            }
        }
    }
}

type ByName = HashMap<String, Stored>;

/// The variables between two cells, by their names. A value is read under the lock; one whose own code is called for that is
/// lent to the reader, so that only those who want this value wait for the code to end.
#[derive(Default)]
pub(crate) struct Variables {
    by_name: Mutex<ByName>,
    returned: Condvar,
}

// SAFETY: values move in and out, and are dropped, on the thread of the cells only: they are reached through the store of
// the cells, and the other holder of this value is `SHARED`, whose readers get shared references under the lock, or to a
// value that is lent, which the store cannot give away meanwhile. Those read values whose types are `Sync`; any other value
// under the lock, and only while the thread of the cells waits for a cell, and what is not `Send` cannot be in use by a third
// thread. A cell that begins meanwhile waits for the lock before it takes a value. A reader neither drops nor moves what was
// lent to it, only the box around it.
unsafe impl Send for Variables {}
// SAFETY: as above.
unsafe impl Sync for Variables {}

impl Variables {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ByName> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no debugger has the variable; gives up when its code has taken too long.
    pub(crate) fn is_back(&self, name: &str) -> bool {
        let end = Instant::now() + 2 * PATIENCE;
        let mut variables = self.lock();
        while variables
            .get(name)
            .is_some_and(|stored| stored.value().is_none())
        {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.returned.wait_timeout(variables, left);
            variables = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn give_back(&self, name: &str, loan: Loan) {
        let mut variables = self.lock();
        let stored = variables.get_mut(name);
        match stored.filter(|it| matches!(it.value, Place::Lent(number) if number == loan.number)) {
            Some(stored) => stored.value = Place::Here(loan.value),
            // It was given up, and this is not the thread that may drop it.
            None => std::mem::forget(loan.value),
        }
        self.returned.notify_all();
    }
}

/// The variables of the process.
static SHARED: Mutex<Option<Arc<Variables>>> = Mutex::new(None);

/// These are the variables of the process.
pub(crate) fn share(variables: &Arc<Variables>) {
    *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(variables));
}

fn shared() -> Option<Arc<Variables>> {
    SHARED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Notes the value of a variable that is stored.
pub(crate) fn note(name: &str, value: &dyn Any) {
    models::note(name, value);
}

/// Every variable that can be read in one line, and those whose types are not known.
pub(super) fn all(is_idle: bool) -> (InspectAnswer, Vec<String>) {
    let (mut values, mut unknown) = (Vec::new(), Vec::new());
    let models = models::names();
    for name in &models {
        if let Some(view) = models::view(name) {
            values.push(described(name.clone(), &view));
        }
    }
    if let Some(variables) = shared() {
        let names: Vec<String> = variables.lock().keys().cloned().collect();
        for name in names.into_iter().filter(|name| !models.contains(name)) {
            let mut value = None;
            let found = look_at(&variables, &name, is_idle, &mut |view| {
                value = Some(described(name.clone(), view));
            });
            let reason = match found {
                Found::Seen | Found::Panicked(_) | Found::Missing => None,
                Found::Unknown if is_idle => Some(NOT_KNOWN),
                Found::Unknown | Found::NotShared => Some(NOT_SHARED),
                Found::Lent => Some(ENDLESS),
            };
            values.extend(value.or_else(|| Some(unread(&name, reason?))));
            if matches!(found, Found::Unknown) {
                unknown.push(name);
            }
        }
    }
    values.sort_by(|a, b| a.name.cmp(&b.name));
    let count = values.len();
    let answer = InspectAnswer::Values {
        values,
        named: count,
        all_named: count,
        all_indexed: 0,
    };
    (answer, unknown)
}

/// What became of a look at a variable.
enum Found {
    Seen,
    Missing,
    /// Its type is not known.
    Unknown,
    /// Only the thread of the cells may read it now.
    NotShared,
    /// Its own code has not ended.
    Lent,
    /// Its own code has panicked.
    Panicked(String),
}

/// Calls `look` with the value of a variable.
fn look_at(
    variables: &Variables,
    name: &str,
    is_idle: bool,
    look: &mut dyn FnMut(&dyn View),
) -> Found {
    let mut locked = variables.lock();
    let Some(stored) = locked.get_mut(name) else {
        return Found::Missing;
    };
    let Some(known) = known(stored.value_type()) else {
        return Found::Unknown;
    };
    if !is_idle && !known.is_shared {
        return Found::NotShared;
    }
    let mut show = |value: &dyn Any| {
        let shown = register::guarded(|| {
            if let Some(view) = (known.view)(value) {
                look(view.as_ref());
            }
        });
        shown.map_or_else(Found::Panicked, |()| Found::Seen)
    };
    // Another thread may run cells while it is read for good.
    if known.has_own_code && known.is_shared {
        let Some(loan) = stored.lend() else {
            return Found::Lent;
        };
        drop(locked);
        let found = reader::during(|| show(loan.value.as_ref()));
        variables.give_back(name, loan);
        reader::leave_if_given_up();
        return found;
    }
    stored.value().map_or(Found::Lent, show)
}

/// Calls `look` with every variable of this type. Only while no cell runs: the type need not be `Sync`.
pub(super) fn each<T: 'static>(look: &mut dyn FnMut(&str, &T)) {
    let Some(variables) = shared() else { return };
    let variables = variables.lock();
    for (name, stored) in variables.iter() {
        if let Some(value) = stored.value().and_then(|it| it.downcast_ref::<T>()) {
            // A panic of one hides no other.
            let _ = register::guarded(|| look(name, value));
        }
    }
}

/// A variable whose value is not read, with the reason in its place.
fn unread(name: &str, reason: &str) -> InspectedValue {
    InspectedValue {
        name: name.to_owned(),
        value: Some(reason.to_owned()),
        ..InspectedValue::default()
    }
}

/// Shown of a value of a type that no cell has registered.
const NOT_KNOWN: &str = "(its type is not known to the debugger)";
/// Shown of a value that only the thread of the cells may read.
const NOT_SHARED: &str = "(shown when the cell has ended)";
/// Shown of a value whose own code does not end.
const ENDLESS: &str = "(its `Debug` has not ended)";

/// Calls `look` with the value of a variable. Returns the variable if its type is not known.
///
/// # Errors
/// There is no such variable, or it cannot be read now; the reason.
pub(super) fn with(
    name: &str,
    is_idle: bool,
    look: &mut dyn FnMut(&dyn View),
) -> Result<Vec<String>, String> {
    if let Some(view) = models::view(name) {
        look(&view);
        return Ok(Vec::new());
    }
    let variables = shared().ok_or("no cell has run")?;
    match look_at(&variables, name, is_idle, look) {
        Found::Seen => Ok(Vec::new()),
        Found::Unknown => {
            look(&Leaf::new(NOT_KNOWN));
            Ok(vec![name.to_owned()])
        }
        Found::Missing => Err(match is_idle {
            true => format!("there is no variable `{}`", super::line(name)),
            false => format!(
                "there is no variable `{}`, or the running cell has it",
                super::line(name)
            ),
        }),
        Found::NotShared => Err(format!(
            "`{name}` can be read when the cell has ended: its type is not `Sync`"
        )),
        Found::Lent => Err(format!(
            "`{name}` cannot be shown: its `Debug` has not ended"
        )),
        Found::Panicked(message) => Err(format!("`{name}` cannot be shown: {message}")),
    }
}
