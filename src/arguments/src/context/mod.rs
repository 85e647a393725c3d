//! What surrounds training: who observes runs, which warnings are shown, the precision of new models, and which
//! models are alive. All of it is one value, [`RunContext`].
//!
//! Nothing in this crate is process-wide but the context that a thread uses when it has entered none, as the default
//! subscriber of `tracing` is. A notebook's library (the facade) installs its observer there; a test enters a context
//! of its own:
//!
//! ```
//! use stratoscope_arguments::context::{RunContext, warnings};
//!
//! let context = RunContext::new();
//! {
//!     let _entered = context.enter();
//!     warnings::deny("SC0701"); // for calls on this thread while the guard lives
//! }
//! assert!(!RunContext::current().is(&context));
//! ```

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use stratoscope_diagnostics::Diagnostic;
use stratoscope_diagnostics::policy::Policy as WarningPolicy;

use events::{Nobody, Observer};
use ledger::AliveModels;
use mixed_precision::Policy;
use quiet::Quiet;
use stratoscope_report::held::Look;

pub mod alert;
pub mod events;
pub mod interrupt;
pub mod ledger;
pub mod mixed_precision;
mod quiet;
pub mod requests;
pub mod warnings;

/// Of more warnings that callbacks have not received, the latest ones are kept.
const MAX_NOTICED: usize = 16;

/// Makes another handle of the model in a value of the type that it is registered for.
pub type Handle = fn(&dyn Any) -> Option<Box<dyn Any>>;

/// What surrounds training. A clone is the same context.
#[derive(Clone)]
pub struct RunContext(Arc<Shared>);

struct Shared {
    observer: Mutex<Arc<dyn Observer>>,
    /// Which warnings are denied or silenced, and which were shown before.
    warnings: Mutex<WarningPolicy>,
    /// The latest warnings that were shown, until the callbacks of a run receive them.
    noticed: Mutex<VecDeque<Diagnostic>>,
    /// What the layers of models that are built now compute in.
    precision: Mutex<Policy>,
    /// The number of the next run.
    runs: AtomicU64,
    /// The models that are alive, with the memory that they hold.
    alive: AliveModels,
    /// How to look into a model, by its type: a network may be a cell's own.
    models: Mutex<HashMap<TypeId, (Look, Handle)>>,
}

thread_local! {
    /// The contexts that this thread has entered, the innermost last.
    static ENTERED: RefCell<Vec<RunContext>> = const { RefCell::new(Vec::new()) };
}

impl RunContext {
    /// A context of its own: nobody observes, no warning is denied, float32, no model is alive.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            observer: Mutex::new(Arc::new(Nobody)),
            warnings: Mutex::default(),
            noticed: Mutex::default(),
            precision: Mutex::default(),
            runs: AtomicU64::new(1),
            alive: AliveModels::default(),
            models: Mutex::default(),
        }))
    }

    /// The context of calls on this thread: the one entered last, else the default of the process.
    pub fn current() -> Self {
        static DEFAULT: OnceLock<RunContext> = OnceLock::new();
        let entered = ENTERED.with_borrow(|entered| entered.last().cloned());
        entered.unwrap_or_else(|| DEFAULT.get_or_init(Self::new).clone())
    }

    /// Makes it the context of calls on this thread until the guard is dropped.
    pub fn enter(&self) -> Entered {
        ENTERED.with_borrow_mut(|entered| entered.push(self.clone()));
        Entered(PhantomData)
    }

    /// Whether both are the same context.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Lets `observer` observe from now on, in place of the one before.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        *lock(&self.0.observer) = observer;
    }

    /// Who observes runs.
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&lock(&self.0.observer))
    }

    /// The observer of a run. One that is not verbose is shown nowhere, but others can steer it. Warnings go to
    /// [`Self::observer`] all the same.
    pub fn observer_of_a_run(&self, verbose: bool) -> Arc<dyn Observer> {
        match verbose {
            true => self.observer(),
            false => Arc::new(Quiet(self.observer())),
        }
    }

    /// The observer of steps of which nobody hears, because they are made once more.
    pub fn nobody() -> Arc<dyn Observer> {
        Arc::new(Nobody)
    }

    /// A number by which the runs of this context are distinguished.
    pub fn next_run(&self) -> u64 {
        self.0.runs.fetch_add(1, Ordering::Relaxed)
    }

    fn warnings(&self) -> MutexGuard<'_, WarningPolicy> {
        lock(&self.0.warnings)
    }

    /// A warning was shown.
    fn note(&self, found: &Diagnostic) {
        let mut noticed = lock(&self.0.noticed);
        if noticed.len() == MAX_NOTICED {
            noticed.pop_front();
        }
        noticed.push_back(found.clone());
    }

    /// The warnings that were shown since the last call, the oldest first.
    pub fn take_noticed(&self) -> VecDeque<Diagnostic> {
        std::mem::take(&mut lock(&self.0.noticed))
    }

    fn precision(&self) -> Policy {
        *lock(&self.0.precision)
    }

    fn set_precision(&self, policy: Policy) {
        *lock(&self.0.precision) = policy;
    }

    /// The models that are alive, with the memory that they hold.
    pub fn alive(&self) -> &AliveModels {
        &self.0.alive
    }

    /// How to look into values of a type, if a model of it was made.
    pub fn look(&self, model: TypeId) -> Option<Look> {
        lock(&self.0.models).get(&model).map(|(look, _)| *look)
    }

    /// How to get another handle of the model in a value of a type, if a model of it was made.
    pub fn handle(&self, model: TypeId) -> Option<Handle> {
        lock(&self.0.models).get(&model).map(|(_, handle)| *handle)
    }

    /// Values of this type are looked into by these from now on.
    pub fn register(&self, model: TypeId, by: (Look, Handle)) {
        lock(&self.0.models).entry(model).or_insert(by);
    }
}

impl Default for RunContext {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("precision", &self.precision())
            .finish_non_exhaustive()
    }
}

/// Leaves the context when it is dropped.
#[derive(Debug)]
#[must_use = "the context is left at once if its guard is not kept"]
pub struct Entered(PhantomData<*const ()>);

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// A panic while a lock was held leaves what it guards whole: every change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
