//! Changes to a run that regularize: dropout and weight decay of the steps to come.

use stratoscope_diagnostics::Result;

use crate::edits::{Change, bad};
use crate::handle::Run;
use crate::run_state::RunState;
use stratoscope_report::history::Edit;

impl Run {
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
}

/// # Errors
/// See [`Run::set_dropout`].
pub(super) fn dropout_change(rate: f64) -> Result<Change> {
    if !(0.0..1.0).contains(&rate) {
        return Err(bad("set_dropout", rate, "a rate from 0 to less than 1"));
    }
    Ok(Change::Dropout(rate.into()))
}

fn finite_decay(decay: f64) -> Result<f64> {
    match decay.is_finite() && decay >= 0.0 {
        true => Ok(decay),
        false => Err(bad("set_weight_decay", decay, "a finite number ≥ 0")),
    }
}

/// # Errors
/// See [`Run::set_weight_decay`].
pub(super) fn decay_change(run: &RunState<'_>, decay: f64) -> Result<Change> {
    let decay = finite_decay(decay)?;
    let optimizer = &run.settings.compiled.optimizer;
    if !optimizer.offers_weight_decay() {
        let expects = format!(
            "an optimizer with weight decay, and {} has none",
            optimizer.name
        );
        return Err(bad("set_weight_decay", decay, &expects));
    }
    Ok(Change::WeightDecay(decay.into()))
}
