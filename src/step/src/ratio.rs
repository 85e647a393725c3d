//! How much the update of a step changes each layer: the norm of the change as a share of the norm of the weights. Around
//! 1e-3 is usual; near 1 a layer is overwritten (Karpathy's rule of thumb, and the trust ratio of You et al. 2017,
//! "Large batch training of convolutional networks").
//!
//! On the CPU the update measures it while it is made (`optimizer::change`), so that every step records it. Before the
//! update, for a condition or the card of a stop, it is rehearsed; on a GPU it is computed from copies of the weights.

use std::collections::HashMap;

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use super::{Proposal, StepSettings, StepState};

use stratoscope_optim::{Change, Changes, Squares, Update, apply, rehearse, sum_of_squares};
use stratoscope_report::inspection::layer_of;
use stratoscope_report::run_report::LayerRatio;

impl StepState {
    /// `‖Δw‖/‖w‖` of each layer for a step that was proposed, in the order of the network; layers that do not train are
    /// left out. Where replicas step alone it is the update of the first. Nothing changes.
    pub fn update_ratios(&self, proposal: &Proposal, settings: &StepSettings) -> Vec<LayerRatio> {
        let exchanged = &proposal.exchanged;
        let (Some(gradients), Some(&norm)) = (exchanged.gradients.first(), exchanged.norms.first())
        else {
            return Vec::new();
        };
        let gradients = copied(self.replicas.structure(), gradients);
        let (inputs, update) = self.planned(vec![Some((gradients, norm))], proposal.rate, settings);
        let stored = self.replicas.modules().iter().zip(&self.moments);
        let mut changes = Vec::new();
        for ((module, moments), input) in stored.zip(inputs) {
            let Some((gradients, norm)) = input else {
                continue;
            };
            let update = Update {
                factor: update.clipping.global_factor(norm),
                ..update.clone()
            };
            let own = rehearse(module, &gradients, moments, &update).unwrap_or_else(|| {
                let (mut after, mut moments) = (module.clone(), moments.clone());
                apply(&mut after, gradients, &mut moments, &update);
                compared(module, &after)
            });
            changes.extend(own);
        }
        self.by_layer(changes)
    }

    /// The layers of the network, in their order.
    pub fn layers(&self) -> Vec<&str> {
        let mut layers: Vec<&str> = Vec::new();
        for record in self.replicas.records() {
            let layer = layer_of(&record.name);
            if !layers.contains(&layer) {
                layers.push(layer);
            }
        }
        layers
    }

    /// `‖Δw‖/‖w‖` of each layer from the changes of its variables, in their order; layers that have not changed are left out.
    pub(super) fn by_layer(&self, changes: Changes) -> Vec<LayerRatio> {
        let names: HashMap<ParamId, &str> = (self.replicas.records().iter())
            .map(|record| (record.param, layer_of(&record.name)))
            .collect();
        let mut sums: Vec<(&str, Change)> = Vec::new();
        for (id, change) in changes {
            let Some(&layer) = names.get(&id) else {
                continue;
            };
            match sums.iter_mut().find(|(name, _)| *name == layer) {
                Some((_, sum)) => sum.add(change),
                None => sums.push((layer, change)),
            }
        }
        let is_changed = |sum: &Change| sum.change > 0.0 || sum.change.is_nan();
        let changed = sums.into_iter().filter(|(_, sum)| is_changed(sum));
        let ratio = |(layer, sum): (&str, Change)| LayerRatio {
            layer: layer.to_owned(),
            ratio: sum.ratio(),
        };
        changed.map(ratio).collect()
    }
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

/// The change of every variable.
fn compared<M: Module>(before: &M, after: &M) -> Changes {
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
            let change = Change {
                change: squares(after - before.clone()),
                weights: squares(before),
            };
            (id, change)
        })
        .collect()
}

fn squares(values: Tensor<1>) -> f64 {
    match sum_of_squares(values) {
        Squares::Known(sum) => sum,
        Squares::OnDevice(sum) => f64::from(sum.into_scalar::<f32>()),
    }
}
