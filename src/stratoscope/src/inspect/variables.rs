//! The values that live between cells, where a debugger finds them. A cell takes those that it uses, and puts them back at
//! its end.

use std::any::Any;
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stratoscope_wire::{InspectAnswer, InspectedValue};

use super::types::known;
use super::{Leaf, View, described, models, register};
use crate::cell::evcxr::Kept;

/// A value, and the declaration of its variable if the current cell has kept it.
pub(crate) struct Stored {
    pub value: Box<dyn Any>,
    pub kept: Option<Kept>,
}

/// The variables between two cells, by their names. Locked while a debugger reads one of them.
#[derive(Default)]
pub(crate) struct Variables(Mutex<HashMap<String, Stored>>);

// SAFETY: values move in and out, and are dropped, on the thread of the cells only: they are reached through the store of
// the cells, and the other holder of this value is `SHARED`, whose readers get shared references under the lock. Those read
// values whose types are `Sync`; any other value only while the thread of the cells waits for a cell, and what is not
// `Send` cannot be in use by a third thread. A cell that begins meanwhile waits for the lock before it takes a value.
unsafe impl Send for Variables {}
// SAFETY: as above.
unsafe impl Sync for Variables {}

impl Variables {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<String, Stored>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The stack of the thread that reads values: a `Debug` of nested values recurses. It is not memory before it is used.
const STACK: usize = 64 << 20;

type Work = Box<dyn FnOnce() + Send>;

/// Has the thread that reads values do this, after what it was asked before.
pub(super) fn ask(work: impl FnOnce() + Send + 'static) {
    static READER: Mutex<Option<Sender<Work>>> = Mutex::new(None);
    let mut reader = READER.lock().unwrap_or_else(PoisonError::into_inner);
    let sender = reader.get_or_insert_with(|| {
        let (sender, inbox) = channel::<Work>();
        let reading = move || inbox.into_iter().for_each(|work| work());
        // If it does not start, the kernel waits in vain, and says so.
        let _ = std::thread::Builder::new()
            .name("stratoscope-inspect".to_owned())
            .stack_size(STACK)
            .spawn(reading);
        sender
    });
    let _ = sender.send(Box::new(work));
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
        let variables = variables.lock();
        for (name, stored) in variables.iter().filter(|(name, _)| !models.contains(name)) {
            let known = known(stored.value.as_ref().type_id());
            let Some(known) = known else {
                unknown.push(name.clone());
                values.push(unread(name, if is_idle { NOT_KNOWN } else { NOT_SHARED }));
                continue;
            };
            if !is_idle && !known.is_shared {
                values.push(unread(name, NOT_SHARED));
                continue;
            }
            let read = register::guarded(|| {
                (known.view)(stored.value.as_ref())
                    .map(|view| described(name.clone(), view.as_ref()))
            });
            values.extend(read.ok().flatten());
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

/// Calls `look` with every variable of this type. Only while no cell runs: the type need not be `Sync`.
pub(super) fn each<T: 'static>(look: &mut dyn FnMut(&str, &T)) {
    let Some(variables) = shared() else { return };
    let variables = variables.lock();
    for (name, stored) in variables.iter() {
        if let Some(value) = stored.value.downcast_ref::<T>() {
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
    let variables = variables.lock();
    let Some(stored) = variables.get(name) else {
        return Err(match is_idle {
            true => format!("there is no variable `{}`", super::line(name)),
            false => format!(
                "there is no variable `{}`, or the running cell has it",
                super::line(name)
            ),
        });
    };
    let Some(known) = known(stored.value.as_ref().type_id()) else {
        look(&Leaf::new(NOT_KNOWN));
        return Ok(vec![name.to_owned()]);
    };
    if !is_idle && !known.is_shared {
        return Err(format!(
            "`{name}` can be read when the cell has ended: its type is not `Sync`"
        ));
    }
    let read = register::guarded(|| {
        if let Some(view) = (known.view)(stored.value.as_ref()) {
            look(view.as_ref());
        }
    });
    read.map_err(|message| format!("`{name}` cannot be shown: {message}"))?;
    Ok(Vec::new())
}
