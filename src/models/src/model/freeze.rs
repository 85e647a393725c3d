//! Which variables are trained. Keras's `layer.trainable`, by the names of the checkpoint.

use stratoscope_diagnostics::Result;

use crate::model::Model;

impl Model {
    /// Freezes the variables whose name begins with this: `"bert"` leaves the head alone free,
    /// `"bert.encoder.layer.0"` is one layer, `""` is everything. Returns how many are frozen now.
    ///
    /// It holds from the next step on. Freeze before `compile!`, so that its card shows it and no
    /// moments are planned for what does not move (SC0110).
    ///
    /// # Errors
    /// SC0103 if no variable's name begins with it, SC0121 in a callback of the model's own run.
    pub fn freeze(&self, prefix: &str) -> Result<usize> {
        self.mark(prefix, false, "freeze")
    }

    /// Trains these variables again; see [`Self::freeze`].
    ///
    /// # Errors
    /// SC0103 if no variable's name begins with it, SC0121 in a callback of the model's own run.
    pub fn unfreeze(&self, prefix: &str) -> Result<usize> {
        self.mark(prefix, true, "unfreeze")
    }

    fn mark(&self, prefix: &str, trainable: bool, call: &str) -> Result<usize> {
        let mut state = self.free_state(call)?;
        let chosen = state.variables_below(prefix, call)?;
        state.set_trainable(&chosen, trainable);
        state.forget_unaveraged();
        Ok(state.step.replicas.records().len() - state.trainable().count())
    }
}
