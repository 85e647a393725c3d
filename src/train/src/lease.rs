//! Who has the state of a model. One call at a time has it, and a run lends it to its callbacks: they may read the
//! model, save it, ask it; nothing can change it before the call is over. Between the calls of a run of `start!` the
//! state is free to be read, and reserved: only the run changes it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use stratoscope_diagnostics::rules::{ModelHolder, ModelInUse};
use stratoscope_diagnostics::{Diagnostic, Result, Rule};

use stratoscope_arguments::context::interrupt;

use stratoscope_report::history::History;

use crate::state::{ModelState, SharedModel};

/// How often a thread that waits for another one's run asks for an interrupt.
const PERIOD: Duration = Duration::from_millis(50);

/// Who has a model.
#[derive(Debug, Default)]
pub struct Occupied {
    by: Mutex<Occupants>,
    over: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Occupants {
    /// The thread whose call trains it at this moment.
    call: Option<ThreadId>,
    /// Whether a run that is not finished has it, also between two calls.
    is_reserved: bool,
}

/// Who asks for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Anyone,
    /// The run that has reserved it.
    ItsRun,
}

impl Occupants {
    fn admit(self, asking: Asking) -> bool {
        self.call.is_none() && (!self.is_reserved || asking == Asking::ItsRun)
    }
}

impl Occupied {
    fn by(&self) -> MutexGuard<'_, Occupants> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no run has the model.
    pub fn is_free(&self) -> bool {
        self.by().admit(Asking::Anyone)
    }

    /// Whether a call trains the model at this moment.
    pub fn has_call(&self) -> bool {
        self.by().call.is_some()
    }

    /// From now on only the run that calls this may change the model.
    pub fn reserve(&self) {
        self.by().is_reserved = true;
    }

    /// The run is finished or dropped.
    pub fn release(&self) {
        self.by().is_reserved = false;
    }

    /// Waits for the call of another thread.
    ///
    /// # Errors
    /// SC0121 if it is a call of this thread, which would wait for itself, or if the wait is interrupted: the other
    /// thread may be waiting for this one; and if a run has reserved the model.
    fn wait(&self, call: &str, asking: Asking) -> Result<()> {
        let mut by = self.by();
        while let Some(thread) = by.call {
            if thread == thread::current().id() || interrupt::requested() {
                return Err(in_use(call, ModelHolder::Callbacks));
            }
            let waited = self.over.wait_timeout(by, PERIOD);
            by = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match by.admit(asking) {
            true => Ok(()),
            false => Err(in_use(call, ModelHolder::Run)),
        }
    }
}

/// SC0121.
pub fn in_use(call: &str, holder: ModelHolder) -> Box<Diagnostic> {
    ModelInUse {
        call: call.to_owned(),
        holder,
    }
    .error()
}

impl SharedModel {
    /// The state, to be changed.
    ///
    /// # Errors
    /// SC0121 in a callback of this model's own run, and while a run has reserved the model.
    pub fn free_state(&self, call: &str) -> Result<MutexGuard<'_, ModelState>> {
        self.state_for(call, Asking::Anyone)
    }

    fn state_for(&self, call: &str, asking: Asking) -> Result<MutexGuard<'_, ModelState>> {
        loop {
            self.occupied.wait(call, asking)?;
            let state = self.state();
            // Another thread's call may have begun in between, and have lent it.
            if self.occupied.by().admit(asking) {
                return Ok(state);
            }
        }
    }

    /// The state for a call that trains.
    ///
    /// # Errors
    /// As [`Self::free_state`].
    pub fn lease(&self, call: &str) -> Result<Lease<'_>> {
        self.lease_for(call, Asking::Anyone)
    }

    /// The state for a call of the run that has reserved the model.
    ///
    /// # Errors
    /// SC0121 in a callback of this model's own run.
    pub fn lease_reserved(&self, call: &str) -> Result<Lease<'_>> {
        self.lease_for(call, Asking::ItsRun)
    }

    fn lease_for(&self, call: &str, asking: Asking) -> Result<Lease<'_>> {
        let state = self.state_for(call, asking)?;
        self.occupied.by().call = Some(thread::current().id());
        Ok(Lease {
            model: self,
            state: Some(state),
        })
    }
}

/// The state of a model as long as a call trains it.
pub struct Lease<'m> {
    model: &'m SharedModel,
    /// `None` only while it is lent.
    state: Option<MutexGuard<'m, ModelState>>,
}

impl Lease<'_> {
    /// Calls what may read the model meanwhile. The state is back also when a panic of it goes on.
    pub fn lent<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.lent_with(None, call)
    }

    /// As [`Self::lent`]; meanwhile [`SharedModel::history_so_far`] returns this.
    pub(crate) fn lent_with<T>(&mut self, history: Option<History>, call: impl FnOnce() -> T) -> T {
        if let Some(state) = &mut self.state {
            // Where this fails, so does the next step, which reports it.
            let _ = state.step.gather();
        }
        *self.model.history() = history;
        self.state = None;
        let returned = panic::catch_unwind(AssertUnwindSafe(call));
        self.state = Some(self.model.state());
        *self.model.history() = None;
        returned.unwrap_or_else(|panic| panic::resume_unwind(panic))
    }
}

impl Deref for Lease<'_> {
    type Target = ModelState;

    fn deref(&self) -> &ModelState {
        self.state.as_ref().expect("it is back when `lent` returns")
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut ModelState {
        self.state.as_mut().expect("it is back when `lent` returns")
    }
}

impl Drop for Lease<'_> {
    /// The call is over, also where a callback panicked.
    fn drop(&mut self) {
        self.state = None;
        let occupied = &self.model.occupied;
        occupied.by().call = None;
        occupied.over.notify_all();
    }
}

impl fmt::Debug for Lease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease(lent: {})", self.state.is_none())
    }
}
