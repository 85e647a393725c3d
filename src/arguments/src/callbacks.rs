//! What is called while a model trains. Keras argument: `callbacks`.
//!
//! ```no_run
//! use stratoscope_arguments::FitArgs;
//! use stratoscope_arguments::callbacks::{Callback, Callbacks, EarlyStopping, Flow, on_epoch_end};
//! use stratoscope_report::history::EpochRecord;
//!
//! /// One's own: it stops once the loss is low enough.
//! struct Until(f64);
//!
//! impl Callback for Until {
//!     fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
//!         if epoch.loss < self.0 { Flow::Stop } else { Flow::Continue }
//!     }
//! }
//!
//! let mut losses = Vec::new();
//! let args = FitArgs::new().callbacks(
//!     Callbacks::new()
//!         .and(Until(0.1))
//!         .and(EarlyStopping::new().monitor("val_accuracy").patience(2))
//!         .and(on_epoch_end(|epoch| losses.push(epoch.loss))),
//! );
//! ```
//!
//! A cell writes a list: `fit!(model, train, callbacks = [Until(0.1), on_epoch_end(|epoch| …)])`. They are
//! called in that order, between executions; one that is lent, `callbacks = [&mut until]`, can be asked
//! afterwards what it has seen. The type and its `impl Callback` may stand in an earlier cell. With `steps_per_execution` above 1 a callback of batches
//! hears of several at once (SC0108). A callback may ask the model whatever leaves it as it is: `predict`,
//! `evaluate!`, `save_pretrained`, `placement`. What would change it is SC0121.

use std::fmt;

use crate::context::alert::Alert;
use crate::context::events::FitStarted;
use stratoscope_report::history::{EpochRecord, ExecutionRecord, History};

pub use alert::{AlertHandler, AlertTo, IntoAlertHandler, OnAlert, on_alert};
pub use csv_logger::CsvLogger;
pub use early_stopping::{EarlyStopping, IntoEarlyStopping};
pub use early_stopping::{Monitor, Stopping, without_validation};
pub use gradual_unfreezing::GradualUnfreezing;
pub use learning_rate_logger::LearningRateLogger;
pub use mlflow::MlflowLogger;
pub use tensor_board::TensorBoard;
pub use trackio::TrackioLogger;
pub use wandb::WandbLogger;

mod alert;
mod csv_logger;
mod early_stopping;
mod gradual_unfreezing;
mod learning_rate_logger;
mod log_file;
mod mlflow;
mod protobuf;
mod tensor_board;
mod trackio;
mod wandb;

use log_file::LogFile;

/// Whether training goes on. A closure that returns nothing lets it go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    #[default]
    Continue,
    /// It ends with this epoch, as in Keras with `model.stop_training`; after a batch the rest of the
    /// epoch is left out. What was to be validated is.
    Stop,
}

/// Listens to a run. Every method does nothing unless it is written.
///
/// ```no_run
/// # use stratoscope_arguments::FitArgs;
/// # use stratoscope_arguments::callbacks::{Callback, Flow};
/// # use stratoscope_report::history::EpochRecord;
/// struct Losses(Vec<f64>);
///
/// impl Callback for Losses {
///     fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
///         self.0.push(epoch.loss);
///         // Training goes on until the loss is low enough.
///         if epoch.loss < 0.1 { Flow::Stop } else { Flow::Continue }
///     }
/// }
///
/// // In a cell: `fit!(model, train, callbacks = [&mut losses])?;`, then `losses.0`.
/// let mut losses = Losses(Vec::new());
/// let args = FitArgs::new().callbacks(&mut losses);
/// ```
pub trait Callback {
    /// The data is ready, the first step comes next.
    fn on_train_begin(&mut self, _run: &FitStarted) {}

    /// An epoch begins; counted from 0.
    fn on_epoch_begin(&mut self, _epoch: u64) {}

    /// An execution is over: `batches` batches, from `first_batch` on.
    fn on_batch_end(&mut self, _execution: &ExecutionRecord) -> Flow {
        Flow::Continue
    }

    /// An epoch and its validation are over.
    fn on_epoch_end(&mut self, _epoch: &EpochRecord) -> Flow {
        Flow::Continue
    }

    /// The run is over, or was interrupted. Not called after an error.
    fn on_train_end(&mut self, _history: &History) {}

    /// Something happens that somebody may want to hear of at once; see [`on_alert`].
    fn on_alert(&mut self, _alert: &Alert) {}

    /// Whether it listens to batches, so that SC0108 can tell how often it will hear of them.
    fn listens_to_batches(&self) -> bool {
        false
    }

    /// What it stops the run by, if it is an [`EarlyStopping`].
    #[doc(hidden)]
    fn early_stopping(&self) -> Option<EarlyStopping> {
        None
    }

    /// How the run unfreezes layers, if it is a [`GradualUnfreezing`].
    #[doc(hidden)]
    fn gradual_unfreezing(&self) -> Option<GradualUnfreezing> {
        None
    }
}

/// The callbacks of a run, in the order in which they are called.
#[derive(Default)]
pub struct Callbacks<'a>(Vec<Box<dyn Callback + 'a>>);

impl<'a> Callbacks<'a> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same and one more.
    pub fn and(mut self, callback: impl Callback + 'a) -> Self {
        self.0.push(Box::new(callback));
        self
    }

    /// The same and those of another list.
    pub(crate) fn followed_by(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many listen to batches.
    pub fn of_batches(&self) -> usize {
        let callbacks = self.0.iter();
        callbacks
            .filter(|callback| callback.listens_to_batches())
            .count()
    }

    /// The early stoppings among them.
    pub(crate) fn early_stoppings(&self) -> Vec<EarlyStopping> {
        let found = self.0.iter().map(|callback| callback.early_stopping());
        found.flatten().collect()
    }

    /// The gradual unfreezings among them.
    pub(crate) fn gradual_unfreezings(&self) -> Vec<GradualUnfreezing> {
        let found = self.0.iter().map(|callback| callback.gradual_unfreezing());
        found.flatten().collect()
    }

    /// Calls all with the run that begins.
    pub fn train_begins(&mut self, run: &FitStarted) {
        self.each(|callback| {
            callback.on_train_begin(run);
            Flow::Continue
        });
    }

    /// Calls all with the number of the epoch that begins.
    pub fn tell_epoch_begins(&mut self, epoch: u64) {
        self.each(|callback| {
            callback.on_epoch_begin(epoch);
            Flow::Continue
        });
    }

    /// Calls all with an execution that has ended; `Stop` if one of them asks for it.
    pub fn tell_batches_ended(&mut self, execution: &ExecutionRecord) -> Flow {
        self.each(|callback| callback.on_batch_end(execution))
    }

    /// Calls all with an epoch that has ended; `Stop` if one of them asks for it.
    pub fn tell_epoch_ended(&mut self, epoch: &EpochRecord) -> Flow {
        self.each(|callback| callback.on_epoch_end(epoch))
    }

    /// Calls all with the history of the run that has ended.
    pub fn train_ended(&mut self, history: &History) {
        self.each(|callback| {
            callback.on_train_end(history);
            Flow::Continue
        });
    }

    /// Calls all with an alert.
    pub fn tell_alert(&mut self, alert: &Alert) {
        self.each(|callback| {
            callback.on_alert(alert);
            Flow::Continue
        });
    }

    /// Calls all of them, also those after one that stops.
    fn each(&mut self, mut call: impl FnMut(&mut dyn Callback) -> Flow) -> Flow {
        let mut flow = Flow::Continue;
        for callback in &mut self.0 {
            if call(&mut **callback) == Flow::Stop {
                flow = Flow::Stop;
            }
        }
        flow
    }
}

impl fmt::Debug for Callbacks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} callbacks", self.len())
    }
}

/// What `fit!` takes as its callbacks.
#[diagnostic::on_unimplemented(
    message = "expected callbacks, got `{Self}`",
    label = "a list such as `[on_epoch_end(|epoch| …), EarlyStopping::new()]`"
)]
pub trait IntoCallbacks<'a> {
    /// The callbacks.
    fn into_callbacks(self) -> Callbacks<'a>;
}

impl<'a> IntoCallbacks<'a> for Callbacks<'a> {
    fn into_callbacks(self) -> Callbacks<'a> {
        self
    }
}

impl<'a, C: Callback + 'a> IntoCallbacks<'a> for C {
    fn into_callbacks(self) -> Callbacks<'a> {
        Callbacks::new().and(self)
    }
}

impl<'a, C: Callback + 'a, const N: usize> IntoCallbacks<'a> for [C; N] {
    fn into_callbacks(self) -> Callbacks<'a> {
        self.into_iter().fold(Callbacks::new(), Callbacks::and)
    }
}

impl<'a, C: Callback + 'a> IntoCallbacks<'a> for Vec<C> {
    fn into_callbacks(self) -> Callbacks<'a> {
        self.into_iter().fold(Callbacks::new(), Callbacks::and)
    }
}

/// What listens through a handle of a callback.
macro_rules! pass_on {
    ($($handle:ty),*) => {$(
        impl<C: Callback + ?Sized> Callback for $handle {
            fn on_train_begin(&mut self, run: &FitStarted) {
                (**self).on_train_begin(run);
            }

            fn on_epoch_begin(&mut self, epoch: u64) {
                (**self).on_epoch_begin(epoch);
            }

            fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
                (**self).on_batch_end(execution)
            }

            fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
                (**self).on_epoch_end(epoch)
            }

            fn on_train_end(&mut self, history: &History) {
                (**self).on_train_end(history);
            }

            fn on_alert(&mut self, alert: &Alert) {
                (**self).on_alert(alert);
            }

            fn listens_to_batches(&self) -> bool {
                (**self).listens_to_batches()
            }

            fn early_stopping(&self) -> Option<EarlyStopping> {
                (**self).early_stopping()
            }

            fn gradual_unfreezing(&self) -> Option<GradualUnfreezing> {
                (**self).gradual_unfreezing()
            }
        }
    )*};
}

pass_on!(Box<C>, &mut C);

/// A closure that is called at one moment.
pub struct AtMoment<'a>(Closure<'a>);

enum Closure<'a> {
    TrainBegin(Box<dyn FnMut(&FitStarted) + 'a>),
    BatchEnd(Box<dyn FnMut(&ExecutionRecord) -> Flow + 'a>),
    EpochEnd(Box<dyn FnMut(&EpochRecord) -> Flow + 'a>),
    TrainEnd(Box<dyn FnMut(&History) + 'a>),
}

/// What a closure may return: nothing, or whether training goes on.
#[diagnostic::on_unimplemented(
    message = "expected a callback that returns nothing or a `Flow`, got `{Self}`",
    label = "end the closure with `;`, or with `Flow::Stop` to end the training"
)]
pub trait IntoFlow {
    /// Whether training goes on.
    fn into_flow(self) -> Flow;
}

impl IntoFlow for () {
    fn into_flow(self) -> Flow {
        Flow::Continue
    }
}

impl IntoFlow for Flow {
    fn into_flow(self) -> Flow {
        self
    }
}

/// Calls a closure before the first step.
pub fn on_train_begin<'a>(call: impl FnMut(&FitStarted) + 'a) -> AtMoment<'a> {
    AtMoment(Closure::TrainBegin(Box::new(call)))
}

/// Calls a closure after each execution: after every batch, or every `steps_per_execution` of them.
pub fn on_batch_end<'a, R: IntoFlow>(
    mut call: impl FnMut(&ExecutionRecord) -> R + 'a,
) -> AtMoment<'a> {
    let call = move |execution: &ExecutionRecord| call(execution).into_flow();
    AtMoment(Closure::BatchEnd(Box::new(call)))
}

/// Calls a closure after each epoch and its validation.
pub fn on_epoch_end<'a, R: IntoFlow>(mut call: impl FnMut(&EpochRecord) -> R + 'a) -> AtMoment<'a> {
    let call = move |epoch: &EpochRecord| call(epoch).into_flow();
    AtMoment(Closure::EpochEnd(Box::new(call)))
}

/// Calls a closure when the run is over or was interrupted.
pub fn on_train_end<'a>(call: impl FnMut(&History) + 'a) -> AtMoment<'a> {
    AtMoment(Closure::TrainEnd(Box::new(call)))
}

impl Callback for AtMoment<'_> {
    fn on_train_begin(&mut self, run: &FitStarted) {
        if let Closure::TrainBegin(call) = &mut self.0 {
            call(run);
        }
    }

    fn on_batch_end(&mut self, execution: &ExecutionRecord) -> Flow {
        match &mut self.0 {
            Closure::BatchEnd(call) => call(execution),
            _ => Flow::Continue,
        }
    }

    fn on_epoch_end(&mut self, epoch: &EpochRecord) -> Flow {
        match &mut self.0 {
            Closure::EpochEnd(call) => call(epoch),
            _ => Flow::Continue,
        }
    }

    fn on_train_end(&mut self, history: &History) {
        if let Closure::TrainEnd(call) = &mut self.0 {
            call(history);
        }
    }

    fn listens_to_batches(&self) -> bool {
        matches!(self.0, Closure::BatchEnd(_))
    }
}
