//! Who has the state of a model. One call at a time has it, and a run of `fit` lends it to its callbacks:
//! they may read the model, save it, ask it; nothing can change it before the run is over.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use stratoscope_diagnostics::rules::ModelInUse;
use stratoscope_diagnostics::{Result, Rule};

use crate::context::interrupt;

use crate::network::Network;
use crate::run::state::{ModelState, SharedModel};

/// How often a thread that waits for another one's run asks for an interrupt.
const PERIOD: Duration = Duration::from_millis(50);

/// The run that a model is in, if it is in one.
#[derive(Debug, Default)]
pub(crate) struct Occupied {
    /// The thread whose call it is.
    by: Mutex<Option<ThreadId>>,
    over: Condvar,
}

impl Occupied {
    fn by(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no run has the model.
    pub(crate) fn is_free(&self) -> bool {
        self.by().is_none()
    }

    /// Waits for the run of another thread.
    ///
    /// # Errors
    /// SC0121 if it is a run of this thread, which would wait for itself, or if the wait is
    /// interrupted: the other thread may be waiting for this one.
    fn wait(&self, call: &str) -> Result<()> {
        let in_use = || {
            ModelInUse {
                call: call.to_owned(),
            }
            .error()
        };
        let mut by = self.by();
        while let Some(thread) = *by {
            if thread == thread::current().id() || interrupt::requested() {
                return Err(in_use());
            }
            let waited = self.over.wait_timeout(by, PERIOD);
            by = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl<N: Network> SharedModel<N> {
    /// The state, to be changed.
    ///
    /// # Errors
    /// SC0121 in a callback of this model's own run.
    pub(crate) fn free_state(&self, call: &str) -> Result<MutexGuard<'_, ModelState<N>>> {
        loop {
            self.occupied.wait(call)?;
            let state = self.state();
            // Another thread's run may have begun in between, and have lent it.
            if self.occupied.by().is_none() {
                return Ok(state);
            }
        }
    }

    /// The state for a run.
    ///
    /// # Errors
    /// As [`Self::free_state`].
    pub(crate) fn lease(&self, call: &str) -> Result<Lease<'_, N>> {
        let state = self.free_state(call)?;
        *self.occupied.by() = Some(thread::current().id());
        Ok(Lease {
            model: self,
            state: Some(state),
        })
    }
}

/// The state of a model as long as a run goes on.
pub(crate) struct Lease<'m, N: Network> {
    model: &'m SharedModel<N>,
    /// `None` only while it is lent.
    state: Option<MutexGuard<'m, ModelState<N>>>,
}

impl<N: Network> Lease<'_, N> {
    /// Calls what may read the model meanwhile.
    pub(crate) fn lent<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.state = None;
        let returned = call();
        self.state = Some(self.model.state());
        returned
    }
}

impl<N: Network> Deref for Lease<'_, N> {
    type Target = ModelState<N>;

    fn deref(&self) -> &ModelState<N> {
        self.state.as_ref().expect("it is back when `lent` returns")
    }
}

impl<N: Network> DerefMut for Lease<'_, N> {
    fn deref_mut(&mut self) -> &mut ModelState<N> {
        self.state.as_mut().expect("it is back when `lent` returns")
    }
}

impl<N: Network> Drop for Lease<'_, N> {
    /// The run is over, also where a callback panicked.
    fn drop(&mut self) {
        self.state = None;
        let occupied = &self.model.occupied;
        *occupied.by() = None;
        occupied.over.notify_all();
    }
}

impl<N: Network> fmt::Debug for Lease<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease(lent: {})", self.state.is_none())
    }
}
