//! A training loop by hand: gradients of a batch as a value, to be added, divided, looked at and applied.
//! `fit!` does all of it by itself; this is for those who want to see what it does, and what goes wrong
//! when one does it oneself (SC0506).
//!
//! ```no_run
//! # use stratoscope_models::{BertForSequenceClassification, by_hand::Gradients};
//! # fn main() -> stratoscope_diagnostics::Result<()> {
//! # let (train, _) = stratoscope_data::debian_sections()?;
//! # let model = BertForSequenceClassification::from_pretrained("all-MiniLM-L6-v2", 8)?;
//! let mut sum = Gradients::zeros();
//! for index in 0..4 {
//!     sum += model.gradients(&train.skip(8 * index).take(8))?;
//! }
//! println!("{}", model.apply(sum / 4.0)?);
//! # Ok(())
//! # }
//! ```

use stratoscope_data::{Batch, Data, Dataset};
use stratoscope_diagnostics::rules::{DropoutOff, DroppedMicroBatches, ReplicaGradientsSummed};
use stratoscope_diagnostics::{Result, Rule};
use stratoscope_strategy::Origin;

use crate::model::Model;
use stratoscope_arguments::context::interrupt::{self, Listening};
use stratoscope_arguments::context::warnings::notice;

use stratoscope_step::StepSettings;
use stratoscope_step::backward::{Dropout, Pass, forward_backward};
use stratoscope_step::forward::interrupted;
use stratoscope_step::gradients::{ByHand, as_parameters};
use stratoscope_step::prepare;
use stratoscope_train::state::ModelState;
use stratoscope_train::watch::Moment;

pub use stratoscope_step::gradients::{Applied, Gradients};

impl Model {
    /// The gradient of the mean loss over all examples of `batch`, with dropout, as a step of `fit!`
    /// computes it: each replica has its part, and their gradients are averaged by examples. Weights
    /// stay as they are.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled, SC0113 without a loss; what is wrong with the data;
    /// SC0520 if it is interrupted; SC0907 if a device fails.
    pub fn gradients(&self, batch: &Dataset) -> Result<Gradients> {
        self.gradients_of(batch, true)
    }

    /// The same without dropout, as it must not be used for training: for comparing, and to see what
    /// a loop without `training=True` computes (SC0509).
    ///
    /// # Errors
    /// As [`Self::gradients`].
    pub fn evaluation_gradients(&self, batch: &Dataset) -> Result<Gradients> {
        self.gradients_of(batch, false)
    }

    fn gradients_of(&self, data: &Dataset, training: bool) -> Result<Gradients> {
        let _listening = Listening::begin();
        let mut state = self.state();
        state.compiled_for("gradients")?;
        state.ready_for(Data::Held(data), "gradients", Origin::current())?;
        let settings = state.step_settings("gradients")?;
        let head = state.head_written();
        let encoded = prepare::encode(
            &*state.files,
            &head,
            Some(settings.loss),
            data,
            None,
            "gradients",
        )?;
        let batch = encoded.batch(encoded.len())?.next();
        let number = state.by_hand.computed;
        // A gradient without dropout is for looking at: no loop waits for it.
        state.by_hand.computed += u64::from(training);
        state.by_hand.uses_all_replicas();
        match batch {
            Some(batch) => of_batch(&state, &batch, &settings, number, training),
            None => Ok(Gradients::zeros()),
        }
    }

    /// One optimizer step with this gradient, on all replicas, with the rule, rate and clipping of
    /// `compile!`. A schedule that spans a run has none here: its highest rate is taken.
    ///
    /// # Errors
    /// SC0112 for a model that was not compiled; SC0121 in a callback of its own run; SC0505 for a
    /// gradient that is not finite; SC0506 and SC0509, where they are denied.
    pub fn apply(&self, gradients: Gradients) -> Result<Applied> {
        let mut state = self.free_state("apply")?;
        let settings = state.step_settings("apply")?;
        let norm = gradients.norm();
        check(&state.by_hand, &gradients, norm, state.step.replicas.len())?;
        state.by_hand.at_last_step = state.by_hand.computed;

        // One for each copy, on its device where copies are whole; parts of a copy are sent to theirs.
        let whole = state.step.replicas.unsharded();
        let copies = 0..state.step.replicas.copies();
        let copies = copies.map(|copy| whole.get(copy).unwrap_or(&whole[0]));
        let alike = copies.map(|copy| as_parameters(copy, &gradients)).collect();
        state.step.ensure_moments();
        let made = state.step.steps_since_compile();
        let rate = rate(&settings, made);
        if !norm.is_finite() {
            let moment = Moment {
                step: made,
                epoch: 0,
                rate,
                last_loss: Some(gradients.loss()),
                last_norm: None,
                rows: Vec::new(),
            };
            return Err(moment.not_finite("gradient norm", norm, None));
        }
        let factor = settings.compiled.optimizer.clipping.global_factor(norm);
        state.step.apply_everywhere(alike, norm, rate, &settings)?;
        state.forget_unaveraged();
        state.has_stepped();
        state.enter_in_ledger();
        Ok(Applied {
            norm,
            factor,
            rate,
            batches: gradients.batches(),
            step: made + 1,
        })
    }
}

/// The rate of the step after `made` steps. A schedule over a run has no run here: its highest rate is taken.
fn rate(settings: &StepSettings, made: u64) -> f64 {
    let schedule = settings.compiled.optimizer.schedule;
    match schedule.spans_the_run() {
        true => schedule.named_rate(),
        false => schedule.rate(made, made + 1),
    }
}

/// Forward and backward on every replica, and the mean by examples.
fn of_batch(
    state: &ModelState,
    batch: &Batch,
    settings: &StepSettings,
    number: u64,
    training: bool,
) -> Result<Gradients> {
    let replicas = &state.step.replicas;
    let pass = Pass {
        loss: settings.loss,
        class_weights: None,
        dropout: match training {
            true => Dropout::Masks {
                seed: 0,
                batch: number,
            },
            false => Dropout::Off,
        },
        precision: state.step.policy.precision(),
        // What a loop by hand gets are the gradients themselves.
        scale: 1.0,
        recompute: false,
        dropout_rate: None,
        activations: None,
        timer: None,
    };
    let shares = batch.shares(replicas.len());
    let stop = interrupt::at_once();
    replicas.begin_step();
    let done = forward_backward(replicas, Vec::new(), batch, &shares, pass, &stop)?;
    let (accumulated, Some(outputs)) = done else {
        return Err(interrupted("gradients", 0, batch.size()));
    };
    let loss: f64 = outputs.iter().map(|(_, output)| output.loss).sum();
    let gradients = accumulated.into_iter().map(|mut own| own.take()).collect();
    let mut reduced = replicas.all_reduce(gradients, &shares)?;
    let loss = loss / batch.size() as f64;
    let mean = reduced.swap_remove(0);
    Ok(Gradients::of_batch(
        replicas.first(),
        mean,
        number,
        loss,
        !training,
    ))
}

/// SC0506, SC0509 and SC0514.
fn check(by_hand: &ByHand, gradients: &Gradients, norm: f64, replicas: usize) -> Result<()> {
    let mut inside: Vec<u64> = gradients.batch_numbers().to_vec();
    inside.retain(|&number| number >= by_hand.at_last_step);
    inside.sort_unstable();
    inside.dedup();
    let (computed, applied) = (
        (by_hand.computed - by_hand.at_last_step) as usize,
        inside.len(),
    );
    // A sum of four with the weight four was not divided; any other weight may be meant.
    let count = gradients.batches();
    let undivided = count > 1 && (gradients.weight() - count as f64).abs() < 1e-6 * count as f64;
    if undivided && replicas > 1 && count == replicas && applied == computed {
        let rule = ReplicaGradientsSummed { replicas, norm };
        notice(rule.diagnostic())?;
    } else if applied < computed || undivided {
        let rule = DroppedMicroBatches {
            computed,
            applied,
            weight: gradients.weight(),
            norm,
        };
        notice(rule.diagnostic())?;
    }
    if gradients.is_without_dropout() {
        notice(DropoutOff::Mode.diagnostic())?;
    }
    Ok(())
}
