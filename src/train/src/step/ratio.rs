//! How much the update of a step changes each layer: the norm of the change as a share of the norm of the weights. Around
//! 1e-3 is usual; near 1 a layer is overwritten (Karpathy's rule of thumb, and the trust ratio of You et al. 2017,
//! "Large batch training of convolutional networks").
//!
//! The update kernel works in place and keeps no difference, so that the ratio is known only from weights before and
//! after. It is computed where somebody asks, by applying the update to a copy of one copy of the variables.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use super::{Proposal, StepSettings, StepState};
use crate::network::Network;
use crate::optimizer::{Squares, Update, apply, sum_of_squares};
use crate::report::run_report::LayerRatio;

/// Sums of squares of a layer.
#[derive(Default)]
struct Sums {
    weights: f64,
    change: f64,
}

impl<N: Network> StepState<N> {
    /// `‖Δw‖/‖w‖` of each layer for a step that was proposed, in the order of the network; layers that do not train are
    /// left out. Where replicas step alone it is the update of the first. Nothing changes.
    pub(crate) fn update_ratios(
        &self,
        proposal: &Proposal,
        settings: &StepSettings,
    ) -> Vec<LayerRatio> {
        let exchanged = &proposal.exchanged;
        let (Some(gradients), Some(&norm)) = (exchanged.gradients.first(), exchanged.norms.first())
        else {
            return Vec::new();
        };
        let gradients = copied(self.replicas.structure(), gradients);
        let (inputs, update) = self.planned(vec![Some((gradients, norm))], proposal.rate, settings);
        let names: HashMap<ParamId, &str> = (self.replicas.records().iter())
            .map(|record| (record.param, layer(&record.name)))
            .collect();
        let mut order: Vec<&str> = Vec::new();
        let mut sums: HashMap<&str, Sums> = HashMap::new();
        let stored = self.replicas.modules().iter().zip(&self.moments);
        for ((module, moments), input) in stored.zip(inputs) {
            let Some((gradients, norm)) = input else {
                continue;
            };
            let (mut after, mut moments) = (module.clone(), moments.clone());
            let factor = update.clipping.global_factor(norm);
            let update = Update {
                factor,
                ..update.clone()
            };
            apply(&mut after, gradients, &mut moments, &update);
            for (id, weights, change) in changes(module, &after) {
                let Some(&layer) = names.get(&id) else {
                    continue;
                };
                if !order.contains(&layer) {
                    order.push(layer);
                }
                let sums = sums.entry(layer).or_default();
                sums.weights += weights;
                sums.change += change;
            }
        }
        let ratio = |layer: &str| {
            let Sums { weights, change } = sums.get(layer)?;
            let is_changed = *change > 0.0 || change.is_nan();
            is_changed.then(|| LayerRatio {
                layer: layer.to_owned(),
                ratio: (change / weights).sqrt(),
            })
        };
        order.into_iter().filter_map(ratio).collect()
    }
}

/// The layer of a variable: its name up to the number of a repeated layer, or its first two parts.
/// `bert.encoder.layer.3.output.dense.weight` is of `bert.encoder.layer.3`, `classifier.bias` of `classifier`.
fn layer(name: &str) -> &str {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let ends: Vec<usize> = name.match_indices('.').map(|(at, _)| at).collect();
    let mut start = 0;
    for &end in &ends {
        if is_number(&name[start..end]) {
            return &name[..end];
        }
        start = end + 1;
    }
    let end = ends.get(1).or(ends.first());
    end.map_or(name, |&end| &name[..end])
}

/// Other handles of the same gradients, which an update takes.
fn copied<M: Module>(module: &M, gradients: &GradientsParams) -> GradientsParams {
    struct Copy<'a>(&'a GradientsParams, GradientsParams);
    impl ModuleVisitor for Copy<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                self.1.register::<D>(param.id, gradient);
            }
        }
    }
    let mut copy = Copy(gradients, GradientsParams::new());
    module.visit(&mut copy);
    copy.1
}

/// Σ w² and Σ Δw² of every variable.
fn changes<M: Module>(before: &M, after: &M) -> Vec<(ParamId, f64, f64)> {
    struct Values(Vec<(ParamId, Tensor<1>)>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let value = match value.device().is_autodiff() {
                true => value.inner(),
                false => value,
            };
            let count = value.shape().num_elements();
            self.0.push((param.id, value.reshape([count])));
        }
    }
    let values = |module: &M| {
        let mut values = Values(Vec::new());
        module.visit(&mut values);
        values.0
    };
    let pairs = values(before).into_iter().zip(values(after));
    pairs
        .map(|((id, before), (_, after))| {
            let change = squares(after - before.clone());
            (id, squares(before), change)
        })
        .collect()
}

fn squares(values: Tensor<1>) -> f64 {
    match sum_of_squares(values) {
        Squares::Known(sum) => sum,
        Squares::OnDevice(sum) => f64::from(sum.into_scalar::<f32>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_belong_to_layers() {
        let check = |name: &str, expected: &str| assert_eq!(layer(name), expected, "{name}");
        check(
            "bert.encoder.layer.3.output.dense.weight",
            "bert.encoder.layer.3",
        );
        check(
            "bert.encoder.layer.11.attention.self.key.bias",
            "bert.encoder.layer.11",
        );
        check("bert.embeddings.word_embeddings.weight", "bert.embeddings");
        check("bert.pooler.dense.bias", "bert.pooler");
        check("classifier.weight", "classifier");
        check("layers.0.weight", "layers.0");
        check("weight", "weight");
    }
}
