//! `GradualUnfreezing`: which variables a run trains, epoch by epoch. Each change is one of the changes of the run (`edits`),
//! so that a run that is turned back or resumed has the same variables at each step.

use std::collections::HashSet;

use stratoscope_diagnostics::rules::NothingToTrain;
use stratoscope_diagnostics::{Result, Rule};

use crate::edits::{Change, Layer};
use crate::run_state::RunState;
use crate::state::ModelState;
use stratoscope_diagnostics::problem;
use stratoscope_optim::depths;

/// SC0103 for a model without encoder layers, SC0111 for one whose head is frozen: nothing would be trained at first.
pub fn check(state: &ModelState, every: Option<u64>) -> Result<()> {
    if every.is_none() || !state.is_built() {
        return Ok(());
    }
    let layers = layers(state);
    let records = state.step.replicas.records();
    if depths(records.iter().map(|it| it.name.as_str()))
        .iter()
        .all(|depth| *depth == 0)
    {
        let expects = "a model with encoder layers, whose variables are named `….layer.0.…`";
        let finding = problem::bad_value("fit", "callbacks", "GradualUnfreezing", expects);
        return Err(Box::new(finding));
    }
    let below: usize = layers.iter().map(|layer| layer.variables.len()).sum();
    if below == state.trainable().count() {
        let (variables, head) = (records.len(), state.head());
        return Err(NothingToTrain { variables, head }.error());
    }
    Ok(())
}

/// What is trained now of each layer below the head, from the top down.
fn layers(state: &ModelState) -> Vec<Layer> {
    let records = state.step.replicas.records();
    let depths = depths(records.iter().map(|it| it.name.as_str()));
    let deepest = depths.iter().copied().max().unwrap_or(0);
    let layer = |at: usize| {
        let of_it = records.iter().zip(&depths);
        let of_it = of_it.filter(|(record, depth)| **depth == at && record.trainable);
        Layer {
            name: match at == deepest {
                true => "embeddings".to_owned(),
                false => format!("encoder layer {}", deepest - 1 - at),
            },
            variables: of_it.map(|(record, _)| record.name.clone()).collect(),
        }
    };
    let layers = (1..=deepest).map(layer);
    layers.filter(|it| !it.variables.is_empty()).collect()
}

impl ModelState {
    /// Freezes the variables of these layers, or trains them.
    pub(crate) fn train_layers(&mut self, layers: &[Layer], trainable: bool) {
        let names = layers.iter().flat_map(|layer| &layer.variables);
        let names: HashSet<&str> = names.map(String::as_str).collect();
        let records = self.step.replicas.records().iter();
        let chosen = records.filter(|it| names.contains(it.name.as_str()));
        let chosen = chosen.map(|it| it.param).collect();
        self.step.replicas.set_trainable(&chosen, trainable);
    }
}

impl RunState<'_> {
    /// What an epoch begins with: all below the head is frozen, but for a layer for every so many epochs that are over. Of
    /// changes that are made already nothing is made again.
    pub fn unfreeze(&mut self, state: &mut ModelState) -> Result<()> {
        let Some(every) = self.plan.unfreezes_every else {
            return Ok(());
        };
        if self.held_layers().is_none() {
            let layers = layers(state);
            self.edit(state, Change::Hold(layers))?;
        }
        let held = self.held_layers().unwrap_or_default().to_vec();
        let is_release = |change: &Change| matches!(change, Change::Release(_));
        let made = self
            .edits
            .iter()
            .filter(|it| is_release(&it.change))
            .count();
        let wanted = usize::try_from(self.progress.epoch / every).unwrap_or(usize::MAX);
        for layer in held.into_iter().take(wanted).skip(made) {
            self.edit(state, Change::Release(layer))?;
        }
        Ok(())
    }

    /// Trains all that the run has frozen, at its end. What a run with `resume` makes again are its changes.
    pub(crate) fn release_all(&self, state: &mut ModelState) {
        if let Some(layers) = self.held_layers() {
            state.train_layers(layers, true);
        }
    }

    fn held_layers(&self) -> Option<&[Layer]> {
        self.edits.iter().find_map(|it| match &it.change {
            Change::Hold(layers) => Some(layers.as_slice()),
            _ => None,
        })
    }
}
