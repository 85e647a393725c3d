//! What the user has changed about one optimizer step (`run.what_if(…)`): activations, dropout, gradients, labels and weights
//! of its examples. And changes of the variables themselves, between two steps.
//!
//! A step without changes looks at one `None` for each batch and for its gradients.

use std::collections::HashMap;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_bert::mode::with_dropout_rate;
use stratoscope_bert::taps::{Change, Changes};
use stratoscope_data::{Batch, Label, Labels};
use stratoscope_diagnostics::Result;

use super::backward::Pass;
use super::exchange::{ExchangeMode, Exchanged};
use super::{StepSettings, StepState};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::global_norm;

/// What is changed about one optimizer step. Examples are numbered as in the training data.
#[derive(Clone, Debug, Default)]
pub struct StepChange {
    /// What layers put out.
    pub activations: Option<Arc<[Change]>>,
    /// The rate of every dropout.
    pub dropout: Option<f64>,
    /// What the gradients of variables are multiplied with, before clipping.
    pub gradients: HashMap<ParamId, f64>,
    /// Other labels.
    pub labels: Vec<(usize, Label)>,
    /// What examples count in the loss.
    pub weights: Vec<(usize, f32)>,
}

impl StepChange {
    /// The batch with other labels and weights; `None` where none of its examples has any.
    pub fn batch(&self, batch: &Batch) -> Option<Batch> {
        let place = |example: usize| batch.rows.iter().position(|&row| row == example);
        let labels = self.labels.iter();
        let labels: Vec<_> =
            (labels.filter_map(|(row, label)| Some((place(*row)?, label)))).collect();
        let weights = self.weights.iter();
        let weights: Vec<_> =
            (weights.filter_map(|(row, weight)| Some((place(*row)?, *weight)))).collect();
        if labels.is_empty() && weights.is_empty() {
            return None;
        }
        let mut changed = batch.clone();
        for (at, label) in labels {
            match (&mut changed.labels, label) {
                (Labels::Classes(classes), Label::Class(class)) => classes[at] = *class as i32,
                (Labels::Values(values), Label::Value(value)) => values[at] = *value,
                _ => {}
            }
        }
        let rows = changed.rows.len();
        for (at, weight) in weights {
            changed.weights.get_or_insert_with(|| vec![1.0; rows])[at] = weight;
        }
        Some(changed)
    }

    /// The batch with the labels and weights of several changes, the later ones over the earlier ones; `None` where none of
    /// its examples has any.
    pub fn batch_by_all<'c>(
        all: impl IntoIterator<Item = &'c Arc<Self>>,
        batch: &Batch,
    ) -> Option<Batch> {
        let mut changed: Option<Batch> = None;
        for change in all {
            changed = change.batch(changed.as_ref().unwrap_or(batch)).or(changed);
        }
        changed
    }

    /// The label of an example, where it has another one.
    pub fn label(&self, example: usize) -> Option<Label> {
        let mut labels = self.labels.iter().rev();
        labels
            .find(|(row, _)| *row == example)
            .map(|(_, label)| *label)
    }

    /// Makes these changes too, after its own.
    pub fn add(&mut self, other: Self) {
        let own = self.activations.take();
        self.activations = match (own, other.activations) {
            (Some(own), Some(other)) => Some(own.iter().chain(&*other).cloned().collect()),
            (own, other) => own.or(other),
        };
        self.dropout = other.dropout.or(self.dropout);
        for (param, factor) in other.gradients {
            *self.gradients.entry(param).or_insert(1.0) *= factor;
        }
        self.labels.extend(other.labels);
        self.weights.extend(other.weights);
    }

    /// The gradients of the step as they are changed, with their norms.
    fn gradients(&self, network: &AnyNetwork, exchanged: Exchanged) -> Exchanged {
        if self.gradients.is_empty() {
            return exchanged;
        }
        let (different, gradients) = (exchanged.norms.len(), exchanged.gradients.into_iter());
        let gradients: Vec<_> = gradients
            .map(|own| scaled(network, own, &self.gradients))
            .collect();
        let norm = |own| global_norm(network, own);
        Exchanged {
            norms: gradients.iter().take(different).map(norm).collect(),
            gradients,
            ..exchanged
        }
    }
}

fn scaled(
    network: &AnyNetwork,
    gradients: GradientsParams,
    factors: &HashMap<ParamId, f64>,
) -> GradientsParams {
    struct Scale<'a> {
        gradients: GradientsParams,
        factors: &'a HashMap<ParamId, f64>,
    }
    impl ModuleVisitor for Scale<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(&factor) = self.factors.get(&param.id)
                && let Some(gradient) = self.gradients.remove::<D>(param.id)
            {
                (self.gradients).register::<D>(param.id, gradient.mul_scalar(factor as f32));
            }
        }
    }
    let mut scale = Scale { gradients, factors };
    network.visit(&mut scale);
    scale.gradients
}

impl StepSettings {
    /// The gradients as the step applies them.
    pub(super) fn changed(&self, network: &AnyNetwork, exchanged: Exchanged) -> Exchanged {
        match &self.change {
            Some(change) => change.gradients(network, exchanged),
            None => exchanged,
        }
    }
}

impl Pass {
    /// Runs a replica's part of a batch with what is changed about the step.
    pub fn around<T>(&self, part: &Batch, work: impl FnOnce() -> T) -> T {
        if self.dropout_rate.is_none() && self.activations.is_none() {
            return work();
        }
        let work = || with_dropout_rate(self.dropout_rate, work);
        match &self.activations {
            Some(changes) => Changes::new(Arc::clone(changes), &part.rows).during(work),
            None => work(),
        }
    }
}

/// What becomes of the numbers of a variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NewWeights {
    /// The values times this factor.
    Scaled(f64),
    /// This value everywhere.
    Set(f64),
}

impl StepState {
    /// Changes variables on all replicas, between two steps. The moments of the optimizer stay.
    ///
    /// # Errors
    /// SC0907 if a device fails.
    pub fn change_weights(
        &mut self,
        changes: HashMap<ParamId, Vec<NewWeights>>,
        mode: ExchangeMode,
    ) -> Result<()> {
        let inputs = vec![(); self.replicas.modules().len()];
        self.replicas
            .update_each_replica(inputs, move |_, network: &mut AnyNetwork, ()| {
                *network = network.clone().map(&mut Changed(&changes));
            })?;
        self.replicas.equalize()?;
        self.fetch_on_all(mode)
    }
}

struct Changed<'a>(&'a HashMap<ParamId, Vec<NewWeights>>);

impl ModuleMapper for Changed<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(changes) = self.0.get(&param.id) else {
            return param;
        };
        param.map(|value| {
            let (is_trained, is_autodiff) = (value.is_require_grad(), value.device().is_autodiff());
            let mut new = match is_autodiff {
                true => value.inner(),
                false => value,
            };
            for change in changes {
                new = match *change {
                    NewWeights::Scaled(factor) => new.mul_scalar(factor as f32),
                    NewWeights::Set(number) => new.full_like(number as f32),
                };
            }
            match is_autodiff {
                true => Tensor::from_inner(new).set_require_grad(is_trained),
                false => new,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_weights_are_those_of_the_rows_of_a_batch() {
        let batch = Batch {
            ids: Vec::new(),
            mask: Vec::new(),
            type_ids: Vec::new(),
            features: vec![0.0; 3],
            labels: Labels::Classes(vec![0, 1, 2]),
            rows: vec![7, 3, 5],
            weights: None,
            seq: 0,
            choices: 1,
            by_worker: None,
        };
        let change = StepChange {
            labels: vec![
                (3, Label::Class(0)),
                (4, Label::Class(2)),
                (5, Label::Value(1.0)),
            ],
            weights: vec![(5, 0.0)],
            ..StepChange::default()
        };
        let changed = change.batch(&batch).expect("two of its rows");
        assert_eq!(changed.labels, Labels::Classes(vec![0, 0, 2]));
        assert_eq!(changed.weights, Some(vec![1.0, 1.0, 0.0]));
        let other = Batch {
            rows: vec![0, 1, 2],
            ..batch
        };
        assert_eq!(change.batch(&other), None);
    }
}
