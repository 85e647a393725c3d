//! Changes to a run that regularize: dropout and weight decay of the steps to come.

use stratoscope_diagnostics::Result;

use crate::edits::{Change, bad};
use crate::run_state::RunState;

/// # Errors
/// SC0103 for a rate outside of 0 to 1.
pub fn dropout_change(rate: f64) -> Result<Change> {
    if !(0.0..1.0).contains(&rate) {
        return Err(bad("set_dropout", rate, "a rate from 0 to less than 1"));
    }
    Ok(Change::Dropout(rate.into()))
}

/// SC0103 for a weight decay that is negative or not finite.
pub fn finite_decay(decay: f64) -> Result<f64> {
    match decay.is_finite() && decay >= 0.0 {
        true => Ok(decay),
        false => Err(bad("set_weight_decay", decay, "a finite number ≥ 0")),
    }
}

/// # Errors
/// SC0103 for a decay that is negative or not finite, and for an optimizer without weight decay.
pub fn decay_change(run: &RunState<'_>, decay: f64) -> Result<Change> {
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
