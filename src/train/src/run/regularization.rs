//! Changes to a run that regularize: dropout and weight decay of the steps to come.

use stratoscope_diagnostics::Result;

use crate::report::history::Edit;
use crate::run::edits::{Change, bad};
use crate::run::handle::Run;

impl Run {
    /// Sets the rate of every dropout from the coming step on: 0 switches dropout off, and a network without dropout gets it.
    /// Adapters without dropout stay without.
    ///
    /// # Errors
    /// SC0103 for a rate outside of 0 to 1; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_dropout(&self, rate: impl Into<f64>) -> Result<Edit> {
        let rate = rate.into();
        if !(0.0..1.0).contains(&rate) {
            return Err(bad("set_dropout", rate, "a rate from 0 to less than 1"));
        }
        self.edited(Change::Dropout(rate.into()))
    }

    /// Sets the weight decay of the steps to come, for the variables that the optimizer does not exclude.
    ///
    /// # Errors
    /// SC0103 for a decay that is negative or not finite, and for an optimizer without weight decay, such as `Adam` or
    /// `SGD`; SC0521 for a run that is finished; SC0121 in a callback.
    pub fn set_weight_decay(&self, decay: impl Into<f64>) -> Result<Edit> {
        let decay = decay.into();
        if !(decay.is_finite() && decay >= 0.0) {
            return Err(bad("set_weight_decay", decay, "a finite number ≥ 0"));
        }
        self.with("set_weight_decay", |lease, run| {
            let optimizer = &run.settings.compiled.optimizer;
            if !optimizer.offers_weight_decay() {
                let expects = format!(
                    "an optimizer with weight decay, and {} has none",
                    optimizer.name
                );
                return Err(bad("set_weight_decay", decay, &expects));
            }
            run.edit(lease, Change::WeightDecay(decay.into()))
        })
    }
}
