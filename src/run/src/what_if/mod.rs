//! `run.what_if(|it| it.head(3, 5).scale(0.0))?`: what the coming step would do if something about it were different, beside
//! what it will do. Nothing in the run changes before `.commit()?`.
//!
//! | file | what it has |
//! | --- | --- |
//! | `intervention` | what a cell writes |
//! | `checks` | what of it exists |
//! | `show` | the comparison as text and HTML |
//!
//! Activations, dropout, gradients, labels and weights of examples are changes of one step (`step::changed`), which the loop
//! looks up when it reaches the step's batch. Weights of variables are changed at the commit and stay so. Both are edits of
//! the run (`stratoscope_train::edits`; `planned` has what checkpoints hold of them): listed in its history, undone by `rewind`, made again by a replay.

mod checks;
mod intervention;
mod show;

pub(crate) use checks::new_label;
pub use intervention::{
    ChosenGradients, ChosenWeights, Interventions, IntoWrittenLabel, WrittenLabel,
};

use std::panic::{self, AssertUnwindSafe};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use stratoscope_diagnostics::rules::{ChangeNotFinite, StepHasPassed};
use stratoscope_diagnostics::{Result, Rule};

use crate::handle::{Owned, Run};
use stratoscope_arguments::context::interrupt::Listening;
use stratoscope_arguments::context::warnings::begin_call;
use stratoscope_diagnostics::problem;
use stratoscope_inspect::StepEffects;
use stratoscope_report::history::Edit;
use stratoscope_step::StepSettings;
use stratoscope_train::batch_plan::BatchPosition;
use stratoscope_train::edits::Change;
use stratoscope_train::lease::Lease;
use stratoscope_train::planned::{OneStep, WeightChange};
use stratoscope_train::run_state::{ComingStep, RunState};

/// All that a call changes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Planned {
    pub one_step: OneStep,
    pub weights: Vec<WeightChange>,
}

impl Planned {
    fn lines(&self) -> Vec<String> {
        let weights = self.weights.iter().map(WeightChange::line);
        self.one_step.lines().into_iter().chain(weights).collect()
    }
}

/// The coming step as it is, and as it would be with some changes. Shown, the two stand side by side.
#[derive(Clone)]
pub struct WhatIf {
    run: Weak<Owned>,
    /// The step, counted from 1.
    pub step: u64,
    /// The changes, in words.
    pub changes: Vec<String>,
    /// What the step will do.
    pub before: StepEffects,
    /// What it would do.
    pub after: StepEffects,
    planned: Planned,
    place: Place,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    steps: u64,
    position: Option<BatchPosition>,
    /// The changes that were made to it.
    edits: usize,
}

impl Place {
    fn of(lease: &Lease<'_>, run: &RunState<'_>) -> Self {
        Self {
            steps: lease.step.steps,
            position: run.coming_batch().map(|it| it.position),
            edits: run.edits.len(),
        }
    }
}

impl Run {
    /// What the coming step would do with these changes, beside what it will do: its loss, the examples whose outputs
    /// differ, the norm of the gradient and the size of the update by layer. Nothing in the run changes:
    /// [`WhatIf::commit`] makes the changes.
    ///
    /// # Errors
    /// SC0730 for a layer, head, token, example, output or variable that does not exist; SC0721 for a class that does not
    /// exist; SC0731 if a number, or the loss or gradient with these changes, is not finite; SC0103 for no change, a rate or
    /// a weight out of range, and if there are no more steps; SC0733 for what worker processes cannot change; SC0520 if it
    /// is interrupted, SC0907 if a device fails, SC0521 for a run that is finished, SC0121 in a callback.
    pub fn what_if(&self, change: impl FnOnce(&mut Interventions)) -> Result<WhatIf> {
        begin_call();
        let mut wanted = Interventions::default();
        change(&mut wanted);
        let weak = Rc::downgrade(&self.owned);
        let _listening = Listening::begin();
        self.with("what_if", |lease, run| {
            let Some(coming) = run.coming_step(lease)? else {
                let expects = "a step that is not done yet, and all steps are done";
                return Err(Box::new(problem::bad_value(
                    "what_if", "change", "…", expects,
                )));
            };
            let planned = Planned::checked(&run.inspection(lease, &coming), wanted)?;
            let changes = planned.lines();
            let before = effects(lease, run, &coming)?;
            let after = changed_effects(lease, run, &coming, &planned)?;
            check_finite(&before, &after, &changes)?;
            Ok(WhatIf {
                run: weak,
                step: lease.step.steps + 1,
                changes,
                before,
                after,
                planned,
                place: Place::of(lease, run),
            })
        })
    }
}

impl WhatIf {
    /// Makes the changes. Those of activations, dropout, gradients, labels and weights of examples hold for the coming step
    /// alone; those of weights are made at once and stay. They are listed in the history of the run; `rewind` to this step
    /// or an earlier one undoes them, to a later one makes them again, and checkpoints contain them.
    ///
    /// # Errors
    /// SC0732 if the run has moved on, was changed or is gone; SC0521 for a run that is finished; SC0907 if a device fails;
    /// SC0121 in a callback.
    pub fn commit(&self) -> Result<Edit> {
        let passed = |coming: Option<u64>| {
            let step = self.step;
            StepHasPassed { step, coming }.error()
        };
        let owned = self.run.upgrade().ok_or_else(|| passed(None))?;
        let run = Run { owned };
        run.with("commit", |lease, run| {
            let place = Place::of(lease, run);
            let Some(BatchPosition { epoch, batch }) =
                place.position.filter(|_| place == self.place)
            else {
                return Err(passed(Some(place.steps + 1)));
            };
            let mut made = Vec::new();
            if !self.planned.weights.is_empty() {
                let change = Change::Weights(self.planned.weights.clone());
                made.push(run.edit(lease, change)?);
            }
            if !self.planned.one_step.is_empty() {
                let change = Change::OneStep(epoch, batch, self.planned.one_step.clone());
                made.push(run.edit(lease, change)?);
            }
            let what: Vec<String> = made.into_iter().map(|edit| edit.what).collect();
            Ok(Edit {
                step: place.steps,
                what: what.join("; "),
            })
        })
    }

    /// The places of the examples whose outputs or losses differ, those with the largest difference of the loss first.
    pub fn changed_examples(&self) -> Vec<usize> {
        let pairs = || self.before.examples.iter().zip(&self.after.examples);
        let differs: Vec<bool> = pairs()
            .map(|(old, new)| {
                old.outputs != new.outputs || old.loss != new.loss || old.label != new.label
            })
            .collect();
        let differences: Vec<f64> = pairs()
            .map(|(old, new)| (new.loss - old.loss).abs())
            .collect();
        let mut places: Vec<usize> = (0..differs.len()).filter(|&at| differs[at]).collect();
        places.sort_by(|&a, &b| differences[b].total_cmp(&differences[a]));
        places
    }
}

/// The step as it is.
fn effects(lease: &Lease<'_>, run: &RunState<'_>, coming: &ComingStep) -> Result<StepEffects> {
    let look = run.inspection(lease, coming);
    (lease.step.replicas).undisturbed(|| look.effects("what_if"))
}

/// The step with the changes. The state of the model is put back, whatever happens.
fn changed_effects(
    lease: &mut Lease<'_>,
    run: &RunState<'_>,
    coming: &ComingStep,
    planned: &Planned,
) -> Result<StepEffects> {
    let own = planned.one_step.of(lease);
    let batches = coming.batches.iter();
    let batches = batches
        .map(|batch| own.batch(batch).unwrap_or_else(|| batch.clone()))
        .collect();
    let mut change = coming
        .settings
        .change
        .as_deref()
        .cloned()
        .unwrap_or_default();
    change.add(own);
    let changed = ComingStep {
        number: coming.number,
        batches,
        settings: StepSettings {
            change: Some(Arc::new(change)),
            ..coming.settings.clone()
        },
    };
    if planned.weights.is_empty() {
        return effects(lease, run, &changed);
    }
    let saved = lease.step.saved();
    let weights = WeightChange::of(&planned.weights, lease);
    let mode = run.settings.exchange;
    let collectives = lease.step.replicas.collectives().clone();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        collectives.unlogged(|| {
            lease.step.change_weights(weights, mode)?;
            effects(lease, run, &changed)
        })
    }));
    let restored = lease.step.restore(&saved);
    let found = outcome.unwrap_or_else(|panic| panic::resume_unwind(panic));
    restored.and(found)
}

/// SC0731: a step that would not be made.
fn check_finite(before: &StepEffects, after: &StepEffects, changes: &[String]) -> Result<()> {
    let pairs = [
        ("loss", before.loss, after.loss),
        ("gradient norm", before.gradient_norm, after.gradient_norm),
    ];
    match (pairs.into_iter()).find(|(_, old, new)| old.is_finite() && !new.is_finite()) {
        None => Ok(()),
        Some((what, _, value)) => Err(ChangeNotFinite {
            call: "what_if".to_owned(),
            what: what.to_owned(),
            value,
            changes: changes.to_vec(),
        }
        .error()),
    }
}
