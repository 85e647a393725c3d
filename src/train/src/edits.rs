//! Changes to a run between two steps: learning rate, clipping, frozen variables, batches left out. `batch_changes`: of sizes.
//!
//! Each change is written down with the step after which it was made. So a run that is turned back makes the changes again
//! that came before the step it is turned back to, at their steps, and drops the others; and a checkpoint holds them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::rules::NothingToTrain;
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::VariableRecord;

use crate::batch_plan::{BatchChange, BatchPosition, StepPosition};
use crate::checkpoint::Bits;
use crate::loop_state::Pause;
use crate::planned::{OneStep, WeightChange};
use crate::run_state::{ComingBatch, RunState};
use crate::state::ModelState;
use stratoscope_diagnostics::problem;
use stratoscope_optim::Clipping;
use stratoscope_optim::schedule::{Schedule, short};
use stratoscope_report::history::Edit;
use stratoscope_step::changed::StepChange;

/// Another learning rate: [`pin`], [`scale`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateChange(NewRate);

#[derive(Clone, Copy, Debug, PartialEq)]
enum NewRate {
    Pin(f64),
    Scale(f64),
}

/// This rate at every step from now on, whatever the schedule says.
pub fn pin(rate: f64) -> RateChange {
    RateChange(NewRate::Pin(rate))
}

impl From<f64> for RateChange {
    fn from(rate: f64) -> Self {
        pin(rate)
    }
}

/// So many times the rate that the schedule says, from now on. Factors multiply.
pub fn scale(factor: f64) -> RateChange {
    RateChange(NewRate::Scale(factor))
}

/// A change as it is replayed and written to a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Change {
    /// This learning rate, whatever the schedule says.
    PinRate(Bits),
    /// A factor of what the schedule says.
    ScaleRate(Bits),
    /// How gradients are clipped; `None`: not at all.
    Clip(Option<(Clip, Bits)>),
    /// The beginning of the names of variables, and whether they are trained.
    Train(String, bool),
    /// The epoch and the first batch of an optimizer step that is left out.
    Skip(u64, u64),
    /// Other batches from a position on. Checkpoints call it `Turn`.
    #[serde(rename = "Turn")]
    Batches(StepPosition, BatchChange),
    /// The most examples of a batch that are computed at once: a device was out of memory, or the run was in a pipeline before.
    Parts(u64),
    /// Layers that are frozen until each is released, from the top down.
    Hold(Vec<Layer>),
    /// A layer that is trained from here on.
    Release(Layer),
    /// The epoch and the first batch of an optimizer step, and what is changed about it.
    OneStep(u64, u64, OneStep),
    /// Labels and weights of rows of the training data.
    Rows(OneStep),
    /// Other values of variables.
    Weights(Vec<WeightChange>),
    /// The rate of every dropout.
    Dropout(Bits),
    /// What weight decay multiplies the weights with, beside the rate.
    WeightDecay(Bits),
}

/// A layer of the network, by the names of variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// `encoder layer 3`.
    pub name: String,
    /// Those of its variables that were trained before the run.
    pub variables: Vec<String>,
}

/// The kinds of clipping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Clip {
    /// Each gradient by its norm.
    PerTensor,
    /// All gradients by their common norm.
    Global,
    /// Each number of a gradient.
    Value,
}

/// A change and the number of steps that were made before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dated {
    /// The number of steps.
    pub step: u64,
    /// The change.
    pub change: Change,
}

impl Dated {
    /// Whether it changes the batches.
    pub(crate) fn changes_batches(&self) -> bool {
        matches!(self.change, Change::Batches(..))
    }

    /// Whether the step after `step` needs it again: a device needed it, or an epoch begins with it.
    fn is_needed_again(&self, step: u64) -> bool {
        let is_needed = matches!(self.change, Change::Parts(_)) || self.begins_an_epoch();
        self.step == step && is_needed
    }

    /// Whether it is made at the begin of an epoch, and so held by a snapshot of this step.
    fn begins_an_epoch(&self) -> bool {
        matches!(self.change, Change::Hold(_) | Change::Release(_))
    }

    /// Whether a run has it that is turned back to the moment after `step`.
    pub fn is_before(&self, step: u64) -> bool {
        self.step < step || (self.step == step && self.begins_an_epoch())
    }

    /// What it makes of the learning rate: `5e-5 from step 21 on`.
    pub(crate) fn of_the_rate(&self) -> Option<String> {
        let rate = match &self.change {
            Change::PinRate(rate) => short(f64::from(*rate)),
            Change::ScaleRate(factor) => format!("× {}", f64::from(*factor)),
            _ => return None,
        };
        Some(format!("{rate} from step {} on", self.step + 1))
    }

    /// As the history lists it.
    pub fn listed(&self) -> Edit {
        let what = match &self.change {
            Change::PinRate(rate) => {
                format!("learning rate {} from here on", short(f64::from(*rate)))
            }
            Change::ScaleRate(factor) => format!("learning rate × {}", f64::from(*factor)),
            Change::Clip(None) => "no clipping".to_owned(),
            Change::Clip(Some((kind, limit))) => format!("{} {}", kind.name(), f64::from(*limit)),
            Change::Train(prefix, false) => format!("`{prefix}` frozen"),
            Change::Train(prefix, true) => format!("`{prefix}` trained again"),
            Change::Skip(epoch, batch) => {
                format!("batch {} of epoch {} left out", batch + 1, epoch + 1)
            }
            Change::Batches(_, change) => change.in_words(),
            Change::Parts(most) => {
                format!("batches in parts of {most}")
            }
            Change::Hold(layers) => format!("{} layers frozen at first", layers.len()),
            Change::Release(layer) => format!("{} trained from here on", layer.name),
            Change::OneStep(_, _, change) => {
                format!("in the next step alone: {}", change.lines().join("; "))
            }
            Change::Rows(change) => format!("{} from here on", change.lines().join("; ")),
            Change::Weights(all) => {
                let all: Vec<String> = all.iter().map(WeightChange::line).collect();
                all.join("; ")
            }
            Change::Dropout(rate) => format!("dropout {} from here on", f64::from(*rate)),
            Change::WeightDecay(decay) => {
                format!("weight decay {} from here on", f64::from(*decay))
            }
        };
        Edit {
            step: self.step,
            what,
        }
    }
}

impl Clip {
    fn name(self) -> &'static str {
        match self {
            Self::PerTensor => "clipnorm",
            Self::Global => "global_clipnorm",
            Self::Value => "clipvalue",
        }
    }
}

/// # Errors
/// SC0103 for a rate that is negative or not finite.
pub fn rate_change(rate: RateChange) -> Result<Change> {
    let (RateChange(NewRate::Pin(number)) | RateChange(NewRate::Scale(number))) = rate;
    if !(number.is_finite() && number >= 0.0) {
        return Err(bad("set_learning_rate", number, "a finite number ≥ 0"));
    }
    Ok(match rate.0 {
        NewRate::Pin(rate) => Change::PinRate(rate.into()),
        NewRate::Scale(factor) => Change::ScaleRate(factor.into()),
    })
}

/// # Errors
/// SC0103 for a limit that is not above 0.
pub fn clipping_change(clipping: Clipping) -> Result<Change> {
    let clip = match clipping {
        Clipping::None => None,
        Clipping::PerTensor(limit) => Some((Clip::PerTensor, limit)),
        Clipping::Global(limit) => Some((Clip::Global, limit)),
        Clipping::Value(limit) => Some((Clip::Value, limit)),
    };
    if let Some((_, limit)) = clip.filter(|(_, limit)| !(limit.is_finite() && *limit > 0.0)) {
        return Err(bad("set_clipping", limit, "a finite number above 0"));
    }
    Ok(Change::Clip(clip.map(|(kind, limit)| (kind, limit.into()))))
}

/// # Errors
/// SC0103 if there are no more steps.
pub fn skip_change(run: &RunState<'_>) -> Result<Change> {
    let Some(coming) = run.coming_batch() else {
        let expects = "a step that is not done yet, and all steps are done";
        return Err(bad("skip_batch", "…", expects));
    };
    let BatchPosition { epoch, batch } = coming.position;
    Ok(Change::Skip(epoch, batch))
}

/// SC0103 for the value of a change.
pub fn bad(
    call: &str,
    given: impl ToString,
    expects: &str,
) -> Box<stratoscope_diagnostics::Diagnostic> {
    Box::new(problem::bad_value(call, "value", given, expects))
}

/// SC0111 if nothing were left to train without these variables. Only who freezes them is asked: on the way to where a run
/// stands, all that is trained now may have been frozen.
fn check_rest(state: &ModelState, prefix: &str) -> Result<()> {
    let frozen = state.variables_below(prefix, "freeze")?;
    let is_left = |record: &VariableRecord| !frozen.contains(&record.param);
    if state.trainable().any(is_left) {
        return Ok(());
    }
    let (variables, head) = (state.step.replicas.records().len(), state.head());
    Err(NothingToTrain { variables, head }.error())
}

impl RunState<'_> {
    /// Makes a change and writes it down.
    ///
    /// # Errors
    /// SC0111 if nothing would be left to train, and those of [`Self::make`].
    pub fn edit(&mut self, state: &mut ModelState, change: Change) -> Result<Edit> {
        if let Change::Train(prefix, false) = &change {
            check_rest(state, prefix)?;
        }
        self.make(state, &change)?;
        let dated = Dated {
            step: state.step.steps,
            change,
        };
        let edit = dated.listed();
        self.edits.push(dated);
        self.progress.history.edits.push(edit.clone());
        Ok(edit)
    }

    /// Makes the changes of the run that this one goes on with. After an error that run can still be resumed.
    pub(crate) fn take_over(&mut self, state: &mut ModelState, edits: Vec<Dated>) -> Result<()> {
        let made = edits
            .iter()
            .try_for_each(|dated| self.make_held(state, &dated.change));
        self.edits = edits;
        if made.is_err() && self.plan.resume && self.plan.resume_from.is_none() {
            // The first error is the one to tell.
            let _ = self.end(state, Ok(Pause::Interrupted));
        }
        made
    }

    /// Changes rows of the training data.
    fn change_rows(&mut self, change: StepChange) {
        Arc::make_mut(self.row_changes.get_or_insert_default()).add(change);
    }

    /// Makes a change once more that the state of the model has already, as one that a snapshot holds: what is changed
    /// about the run. Of a frozen variable this is to no effect.
    pub fn make_held(&mut self, state: &mut ModelState, change: &Change) -> Result<()> {
        match change {
            Change::Weights(_) => Ok(()),
            change => self.make(state, change),
        }
    }

    /// Makes a change, for the first time or once more. After an error nothing has changed.
    pub fn make(&mut self, state: &mut ModelState, change: &Change) -> Result<()> {
        match change {
            Change::PinRate(rate) => {
                let schedule = Schedule::Constant((*rate).into());
                self.settings.rate_factor = 1.0;
                Arc::make_mut(&mut self.settings.compiled)
                    .optimizer
                    .schedule = schedule;
            }
            Change::ScaleRate(factor) => self.settings.rate_factor *= f64::from(*factor),
            Change::Clip(clip) => {
                let clipping = match *clip {
                    None => Clipping::None,
                    Some((Clip::PerTensor, limit)) => Clipping::PerTensor(limit.into()),
                    Some((Clip::Global, limit)) => Clipping::Global(limit.into()),
                    Some((Clip::Value, limit)) => Clipping::Value(limit.into()),
                };
                Arc::make_mut(&mut self.settings.compiled)
                    .optimizer
                    .clipping = clipping;
            }
            Change::Train(prefix, trainable) => {
                let call = if *trainable { "unfreeze" } else { "freeze" };
                let chosen = state.variables_below(prefix, call)?;
                state.set_trainable(&chosen, *trainable);
                // Of a run that is read, the steps after it were made already.
                state.keep_unfrozen();
            }
            Change::Skip(epoch, batch) => {
                let (epoch, batch) = (*epoch, *batch);
                self.skipped.insert(BatchPosition { epoch, batch });
            }
            Change::Batches(from, change) => self.make_batch_change(*from, change)?,
            Change::Parts(most) => self.part = Some(usize::try_from(*most).unwrap_or(usize::MAX)),
            Change::Hold(layers) => state.train_layers(layers, false),
            Change::Release(layer) => state.train_layers(std::slice::from_ref(layer), true),
            Change::OneStep(epoch, batch, change) => {
                let (epoch, batch) = (*epoch, *batch);
                let own = self.step_changes.entry(BatchPosition { epoch, batch });
                Arc::make_mut(own.or_default()).add(change.of(state));
            }
            Change::Rows(change) => self.change_rows(change.of(state)),
            Change::Weights(all) => {
                let weights = WeightChange::of(all, state);
                (state.step).change_weights(weights, self.settings.exchange)?;
            }
            Change::Dropout(rate) => self.settings.dropout = Some((*rate).into()),
            Change::WeightDecay(decay) => {
                let compiled = Arc::make_mut(&mut self.settings.compiled);
                compiled.optimizer.set_weight_decay((*decay).into());
            }
        }
        Ok(())
    }

    /// The settings and changes of a run that has made none but those before `step`: those are made, but for what a
    /// snapshot holds. Returns the changes that are dropped.
    pub fn unmake_after(&mut self, step: u64) -> Vec<Edit> {
        let (kept, dropped) = std::mem::take(&mut self.edits)
            .into_iter()
            .partition(|dated: &Dated| dated.step < step || dated.is_needed_again(step));
        self.edits = kept;
        self.settings = self.base.clone();
        self.skipped.clear();
        self.step_changes.clear();
        self.row_changes = None;
        self.forget_batch_changes();
        self.part = None;
        let dropped: Vec<Dated> = dropped;
        dropped.iter().map(Dated::listed).collect()
    }

    /// The first batch of the next optimizer step that is not left out. `None` when there are no more.
    pub fn coming_batch(&self) -> Option<ComingBatch> {
        let progress = &self.progress;
        if progress.stops || progress.history.stopped_early {
            return None;
        }
        // Behind the last step of an epoch an interrupted validation may still be open.
        let (mut epoch, mut batch) = match progress.batches_are_over(self.batches_of_epoch()) {
            true => (progress.epoch + 1, 0),
            false => (progress.epoch, progress.batch),
        };
        let mut left_out = 0;
        loop {
            let group = self.batch_plan.group(epoch, batch);
            let begin = BatchPosition {
                epoch,
                batch: group.start,
            };
            if !self.skipped.contains(&begin) {
                break;
            }
            let end = group.end;
            left_out += end - batch;
            (epoch, batch) = match end >= self.batch_plan.batches(epoch) {
                true => (epoch + 1, 0),
                false => (epoch, end),
            };
        }
        (epoch < self.plan.epochs).then_some(ComingBatch {
            position: BatchPosition { epoch, batch },
            left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_keep_the_name_of_a_batch_change() {
        let from = StepPosition {
            epoch: 1,
            batch: 4,
            steps: 9,
        };
        let change = BatchChange {
            batch_size: Some(8),
            ..BatchChange::default()
        };
        let change = Change::Batches(from, change);
        let text = serde_json::to_string(&change).expect("text");
        let expected = r#"{"Turn":[{"epoch":1,"batch":4,"steps":9},{"batch_size":8,"accumulation":null,"dropped":[]}]}"#;
        assert_eq!(text, expected);
        let read: Change = serde_json::from_str(&text).expect("what was written");
        assert_eq!(read, change);
    }
}
