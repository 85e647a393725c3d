//! Changes to a run between two steps, as methods of [`Run`]: learning rate, clipping, frozen variables, regularization, the
//! sizes of batches, batches and examples that are left out. `stratoscope_train::edits` makes them.

use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_arguments::count::{Count, IntoCount};
use stratoscope_diagnostics::Result;
use stratoscope_optim::Clipping;
use stratoscope_report::history::Edit;
use stratoscope_train::batch_changes::{accumulation_change, batch_size_change, drop_change};
use stratoscope_train::edits::{Change, RateChange, clipping_change, rate_change, skip_change};
use stratoscope_train::regularization::{decay_change, dropout_change, finite_decay};

use crate::handle::Run;

impl Run {
    /// Sets the learning rate of the steps to come: `pin(1e-5)` or `scale(0.5)`. A number alone is pinned.
    ///
    /// # Errors
    /// SC0103 for a number that is negative or not finite; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_learning_rate(&self, rate: impl Into<RateChange>) -> Result<Edit> {
        self.edited(rate_change(rate.into())?)
    }

    /// Sets how the gradients of the steps to come are clipped: `Clipping::Global(1.0)`, `Clipping::None`.
    ///
    /// # Errors
    /// SC0103 for a limit that is not above 0; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_clipping(&self, clipping: Clipping) -> Result<Edit> {
        self.edited(clipping_change(clipping)?)
    }

    /// Freezes the variables whose names begin with this, from the coming step on. See `Model::freeze`.
    ///
    /// # Errors
    /// SC0103 if no name begins with it; SC0111 if nothing would be left to train; SC0521 for a run that is finished;
    /// SC0121 in a callback.
    pub fn freeze(&self, prefix: &str) -> Result<Edit> {
        self.edited(Change::Train(prefix.to_owned(), false))
    }

    /// Trains these variables again; see [`Self::freeze`].
    ///
    /// # Errors
    /// As [`Self::freeze`].
    pub fn unfreeze(&self, prefix: &str) -> Result<Edit> {
        self.edited(Change::Train(prefix.to_owned(), true))
    }

    /// Leaves out the batch of the coming step, or its micro-batches. The dropout masks of later batches stay what they
    /// would have been.
    ///
    /// # Errors
    /// SC0103 if there are no more steps; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn skip_batch(&self) -> Result<Edit> {
        self.with("skip_batch", |lease, run| {
            let change = skip_change(run)?;
            run.edit(lease, change)
        })
    }

    pub(crate) fn edited(&self, change: Change) -> Result<Edit> {
        self.with("edit", |lease, run| run.edit(lease, change))
    }

    /// Sets the rate of every dropout from the coming step on: 0 switches dropout off, and a network without dropout gets it.
    /// Adapters without dropout stay without.
    ///
    /// # Errors
    /// SC0103 for a rate outside of 0 to 1; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_dropout(&self, rate: impl Into<f64>) -> Result<Edit> {
        self.edited(dropout_change(rate.into())?)
    }

    /// Sets the weight decay of the steps to come, for the variables that the optimizer does not exclude.
    ///
    /// # Errors
    /// SC0103 for a decay that is negative or not finite, and for an optimizer without weight decay, such as `Adam` or
    /// `SGD`; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_weight_decay(&self, decay: impl Into<f64>) -> Result<Edit> {
        let decay = finite_decay(decay.into())?;
        self.with("set_weight_decay", |lease, run| {
            let change = decay_change(run, decay)?;
            run.edit(lease, change)
        })
    }

    /// Sets the examples of a batch, from the coming optimizer step on; with accumulation, of a micro-batch. The epoch
    /// goes on where it stands: each example has its turn once. A schedule over the run goes on where it is and ends with
    /// the last step.
    ///
    /// # Errors
    /// SC0103 for 0 or if there are no more steps; SC0601 as a warning where memory is too small; SC0521 for a run that
    /// is finished; SC0121 in a callback.
    pub fn set_batch_size(&self, examples: impl IntoCount) -> Result<Edit> {
        let count = examples.into_count();
        let examples = count.at_least(1, "set_batch_size", "examples")?;
        begin_call();
        self.with("set_batch_size", |lease, run| {
            let change = batch_size_change(lease, run, examples)?;
            run.edit(lease, change)
        })
    }

    /// Sets how many batches make an optimizer step (`gradient_accumulation_steps`), from the coming one on.
    ///
    /// # Errors
    /// As [`Self::set_batch_size`].
    pub fn set_accumulation(&self, batches: impl IntoCount) -> Result<Edit> {
        let count = batches.into_count();
        let batches = count.at_least(1, "set_accumulation", "batches")?;
        begin_call();
        self.with("set_accumulation", |lease, run| {
            let change = accumulation_change(lease, run, batches)?;
            run.edit(lease, change)
        })
    }

    /// Leaves these examples out from the coming step on, in this epoch and in all that follow. They are named by their
    /// index in the training data, as [`worst`](Self::worst), [`batch`](Self::batch) and [`data_map`](Self::data_map)
    /// show it: `run.drop_examples([17, 203])?`. Others move up, so that later batches have other examples.
    ///
    /// # Errors
    /// SC0522 for an index that the training data does not have, or none at all; SC0523 if no example would be left;
    /// SC0524 as a warning if a class would have none; SC0103 if there are no more steps; SC0521 for a run that is
    /// finished; SC0121 in a callback.
    pub fn drop_examples<C: IntoCount>(&self, rows: impl IntoIterator<Item = C>) -> Result<Edit> {
        let rows: Vec<Count> = rows.into_iter().map(IntoCount::into_count).collect();
        begin_call();
        self.with("drop_examples", |lease, run| {
            let change = drop_change(lease, run, &rows)?;
            run.edit(lease, change)
        })
    }
}
