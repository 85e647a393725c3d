//! A batch of the coming step forward and backward as training will run it, watched: what `run.why()` and
//! `run.hindsight()` look at. The state is only read, and the gradients are dropped.

use std::collections::HashMap;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::{Device, Tensor};
use stratoscope_bert::ops::Stop;
use stratoscope_bert::taps::{self, Taps};
use stratoscope_data::{Batch, Labels};
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{ReplicaId, Replicas};

use super::across::{self, Share};
use super::forward::{BatchOutputs, PartOutputs, named_by_device, read};
use super::{NumberedBatch, StepSettings, StepState};
use stratoscope_arguments::class_weight::weighted_sum;
use stratoscope_metrics::loss::{Loss, own};
use stratoscope_network::AnyNetwork;

/// The name under which what a network puts out is seen.
pub const OUTPUTS: &str = "outputs";

impl StepState {
    /// Runs a batch of the coming step forward and backward; `shares` are the examples that each replica has in the whole
    /// step. `taps`, one for each replica, see all outputs of layers, the loss, and the gradients by them and by the
    /// parameters. Where a label has no output there is no loss: it is NaN. `None` where the work was given up.
    ///
    /// # Errors
    /// SC0907, naming the device that failed.
    pub fn coming_traced(
        &self,
        settings: &StepSettings,
        NumberedBatch { number, batch }: NumberedBatch<'_>,
        shares: &[usize],
        taps: &[Taps],
        stop: &Stop,
    ) -> Result<Option<BatchOutputs>> {
        let pass = self.coming_pass(settings, number);
        let replicas: &Replicas<AnyNetwork> = &self.replicas;
        let parts = batch.split(replicas.len());
        let collectives = replicas.collectives();
        let compared = collectives.unlogged(|| across::shares(replicas, &parts, &pass, stop))?;
        let Some(compared) = compared else {
            return Ok(None);
        };
        let devices = replicas.devices().iter();
        let devices: Vec<Device> = devices.map(|device| device.training()).collect();
        let known = replicas.records().iter();
        let names: HashMap<ParamId, String> = known
            .map(|record| (record.param, record.name.clone()))
            .collect();
        let names = Arc::new(names);
        let (shares, taps) = (shares.to_vec(), taps.to_vec());
        let (given_up, stop) = (stop, stop.clone());
        let pass_loss = pass.loss;
        let work = move |ReplicaId(index): ReplicaId, network: &AnyNetwork, (part, compared)| {
            let (part, compared): (Option<Batch>, Option<Arc<Share>>) = (part, compared);
            let part = part?;
            let run = || {
                let network = network.clone().map(&mut Watched(&names));
                let forward = || network.logits(&part, pass.dropout.mode(index), &devices[index]);
                let logits = stop.during(|| pass.precision.during(forward));
                if stop.is_given_up() {
                    return None;
                }
                let logits = taps::tap(OUTPUTS, logits);
                if outside(pass.loss, &part.labels, logits.dims()[1]).is_some() {
                    let outputs = read(None, logits.inner(), Vec::new());
                    return Some(outputs.map(|outputs| PartOutputs {
                        loss: f64::NAN,
                        ..outputs
                    }));
                }
                let loss = (pass.loss, pass.class_weights.as_ref());
                let weights = part.weights.as_deref();
                let sum = taps::within("loss", || match &compared {
                    Some(share) => share.stand_in(logits.clone()),
                    None => weighted_sum(loss, logits.clone(), &part.labels, weights),
                });
                let scaled = sum.clone().div_scalar(shares[index] as f64 / pass.scale);
                if scaled.is_tracked() {
                    // What is seen of the gradients is all that is wanted of them.
                    drop(stop.during(|| scaled.backward()));
                }
                let outputs = read(Some(sum.inner()), logits.inner(), Vec::new());
                Some(outputs.map(|outputs| match &compared {
                    Some(share) => share.in_place(outputs),
                    None => outputs,
                }))
            };
            let outputs = pass.around(&part, || match taps.get(index) {
                Some(taps) => taps.during(run),
                None => run(),
            });
            outputs.map(|outputs| outputs.map(|outputs| (part, outputs)))
        };
        let inputs = parts.into_iter().zip(compared).collect();
        let done = collectives.unlogged(|| replicas.compute_each_replica(inputs, work))?;
        own::failure(pass_loss)?;
        if given_up.is_given_up() {
            return Ok(None);
        }
        named_by_device(done, replicas.devices()).map(Some)
    }
}

/// The row of the first label that is a class without an output, and the class.
pub fn outside(loss: Loss, labels: &Labels, outputs: usize) -> Option<(usize, i64)> {
    let (Labels::Classes(classes), false) = (labels, loss.is_binary() || loss.is_regression())
    else {
        return None;
    };
    let has_none = |&class: &i32| usize::try_from(class).map_or(true, |class| class >= outputs);
    let row = classes.iter().position(has_none)?;
    Some((row, i64::from(classes[row])))
}

/// Parameters whose gradients are seen.
struct Watched<'a>(&'a HashMap<ParamId, String>);

impl ModuleMapper for Watched<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.0.get(&param.id) {
            Some(name) => param.map(|value| taps::gradient_of(name, value)),
            None => param,
        }
    }
}
