//! The micro-batches of a batch forward and backward through the stages of a pipeline.
//!
//! Each stage has a thread and a device of its own, and computes its passes in the order that the schedule gives
//! ([`PipelineSchedule`]). A forward pass begins when the stage before has sent the output of its last layer, a backward pass when
//! the stage after has sent the gradient by it. What crosses a border has no graph: the receiver takes it for a leaf, and a
//! stage keeps the graph of its own layers until the backward pass of the micro-batch.
//!
//! Every stage adds the gradients of its variables micro-batch by micro-batch, in their order, to what it has accumulated. These
//! are the operations of a device that accumulates gradients over batches of this size, in the same order for each variable, so
//! that the sums have the same bits. From there on a step goes on as without stages: the sums of all stages are those of one
//! replica ([`Accumulated`]), and their norm is added up over the variables in the order of the network's fields.
//!
//! Several replicas, the rows of a mesh, divide each micro-batch as they divide a batch without stages, and compute at the same
//! time. A row has its own links and schedule, and waits for no other row.

mod stage;

use std::sync::Arc;
use std::time::Instant;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::ops::Stop;
use stratoscope_bert::{Computed, Mode, Segment};
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{PipelineSchedule, PipelineStages, Replicas};

use self::stage::{Done, Links, Stage};
use super::accumulated::Accumulated;
use super::backward::Pass;
use super::failures::{failed, guarded};
use super::forward::BatchOutputs;
use super::timed::{PassSize, PassTimer};
use super::{StepSettings, StepState};
use stratoscope_metrics::loss::own;
use stratoscope_network::AnyNetwork;
use stratoscope_report::pipeline::PipelineStep;

/// What all stages of a replica know in a step.
struct Shared {
    /// The number of the replica: dropout masks depend on it.
    replica: usize,
    /// Its parts of the micro-batches. The last one may leave it without an example; then it has no part of that.
    micro_batches: Vec<Batch>,
    passes: Vec<Pass>,
    schedule: PipelineSchedule,
    stages: usize,
    /// Examples of the whole step, on this replica.
    share: usize,
    stop: Stop,
    begun: Instant,
    /// Notes when each stage computes what, while a profile is made.
    timer: Option<Arc<PassTimer>>,
}

impl Shared {
    /// The work of a stage. It is noted where a profile is made.
    fn run(&self, index: usize, network: &AnyNetwork, stage: Stage) -> Done {
        let run = || stage.run(index, network, self);
        match &self.timer {
            Some(timer) => {
                let place = self.replica * self.stages + index;
                timer.during(place, PassSize::of(&self.micro_batches), run)
            }
            None => run(),
        }
    }
}

impl StepState {
    /// Runs micro-batches forward and backward through the stages of all replicas, which divide each of them, and adds the
    /// gradients to those of the step; the first one's number in the run is `first`, the others follow. `shares` are the
    /// examples that each replica sees in the whole step. Returns what came out for each micro-batch, or `None` where the work
    /// was given up, because an interrupt came and it took long: then nothing has changed.
    ///
    /// # Errors
    /// SC0607, SC0709, SC0710 or SC0907 if a device fails.
    pub fn accumulate_in_stages(
        &mut self,
        settings: &StepSettings,
        (first, micro_batches): (u64, &[Batch]),
        shares: &[usize],
        stop: &Stop,
    ) -> Result<Option<Vec<BatchOutputs>>> {
        let Some(stages) = self.replicas.stages().cloned() else {
            return Ok(None);
        };
        let is_first = self.accumulated.is_empty();
        if is_first {
            self.replicas.begin_step();
        }
        self.squares = None;
        self.recomputed = settings.recompute;
        let rows = Arc::new(self.rows(settings, (first, micro_batches), shares, stop));
        // Where the work is given up, these are the sums of before.
        let structure = self.replicas.structure();
        let before = self.accumulated.iter().map(|sum| sum.copied(structure));
        let before: Vec<Accumulated> = before.collect();
        let mut accumulated = std::mem::take(&mut self.accumulated);
        accumulated.resize_with(rows.len(), Accumulated::default);
        let inputs = stages_with(&self.replicas, &stages, accumulated);
        let loss = settings.loss;
        let work = {
            let (rows, each) = (Arc::clone(&rows), stages.len());
            move |place: usize, network: &AnyNetwork, stage: Stage| {
                rows[place / each].run(place % each, network, stage)
            }
        };
        let computed = || self.replicas.compute_each_stage(inputs, work);
        let mut done = guarded(&stages.devices, false, computed)?;
        own::failure(loss)?;
        // From here on the batch counts, on all stages.
        if !stop.commit() {
            self.accumulated = before;
            return Ok(None);
        }
        let outputs = outputs_of(&mut done, &rows, (micro_batches, &stages))?;
        let of_replica = done.chunks_mut(stages.len());
        let of_replica = of_replica.zip(self.replicas.modules().chunks(stages.len()));
        for (stages, networks) in of_replica {
            let mut sum = Accumulated::default();
            for (stage, network) in stages.iter_mut().zip(networks) {
                sum.add(network, stage.accumulated.take());
            }
            self.accumulated.push(sum);
        }
        self.pipeline = Some(PipelineStep {
            micro_batches: micro_batches.len(),
            stages: done.into_iter().map(|stage| stage.step).collect(),
        });
        Ok(Some(outputs))
    }

    /// What each replica does: its part of each micro-batch.
    fn rows(
        &self,
        settings: &StepSettings,
        (first, micro_batches): (u64, &[Batch]),
        shares: &[usize],
        stop: &Stop,
    ) -> Vec<Shared> {
        let (replicas, begun) = (self.replicas.len(), Instant::now());
        let row = |replica| Shared {
            replica,
            micro_batches: Vec::new(),
            passes: Vec::new(),
            schedule: self.schedule(),
            stages: self.replicas.devices_of_a_replica(),
            share: shares.get(replica).copied().unwrap_or(0),
            stop: stop.clone(),
            begun,
            timer: self.timer.clone(),
        };
        let mut rows: Vec<Shared> = (0..replicas).map(row).collect();
        for (number, batch) in (first..).zip(micro_batches) {
            for (row, part) in rows.iter_mut().zip(batch.split(replicas)) {
                let Some(part) = part else { continue };
                row.micro_batches.push(part);
                row.passes.push(self.coming_pass(settings, number));
            }
        }
        rows
    }

    fn schedule(&self) -> PipelineSchedule {
        let settings = self.replicas.strategy().and_then(|it| it.pipeline());
        settings.map(|it| it.schedule).unwrap_or_default()
    }
}

/// What came out of the last stages: for each micro-batch the parts of the replicas.
fn outputs_of(
    done: &mut [Done],
    rows: &[Shared],
    (micro_batches, stages): (&[Batch], &PipelineStages),
) -> Result<Vec<BatchOutputs>> {
    let lasts = done.iter_mut().skip(stages.len() - 1).step_by(stages.len());
    let each = lasts.zip(rows).map(|(last, row)| {
        let outputs = std::mem::take(&mut last.outputs);
        row.micro_batches.iter().zip(outputs)
    });
    let mut each: Vec<_> = each.collect();
    let mut all = Vec::with_capacity(micro_batches.len());
    for batch in micro_batches {
        let shares = batch.shares(rows.len()).into_iter();
        let with_part = each.iter_mut().zip(shares).filter(|(_, share)| *share > 0);
        let parts = with_part.enumerate().map(|(replica, (own, _))| {
            let (part, outputs) = own.next()?;
            let device = stages.of_replica(replica).last()?;
            Some(match outputs {
                Ok(outputs) => Ok((part.clone(), outputs)),
                Err(reason) => Err(failed(&device.name, &reason)),
            })
        });
        all.push(parts.flatten().collect::<Result<BatchOutputs>>()?);
    }
    Ok(all)
}

/// The stages before a step, those of one replica after the other. Each gets what its replica has accumulated for its variables.
fn stages_with(
    replicas: &Replicas<AnyNetwork>,
    stages: &PipelineStages,
    accumulated: Vec<Accumulated>,
) -> Vec<Stage> {
    let last = stages.len() - 1;
    let trained = replicas.records().iter().filter(|record| record.trainable);
    let lowest = trained.map(|record| stages.stage_of(record.param)).min();
    let row = |(replica, mut accumulated): (usize, Accumulated)| {
        let sums = replicas.scatter(replica, accumulated.take());
        let each = stages.of_replica(replica).iter().zip(&stages.layers);
        let each = each.zip(sums).zip(Links::of(stages.len())).enumerate();
        let each = each.map(|(index, (((device, layers), sums), links))| Stage {
            segment: Segment {
                layers: layers.clone(),
                has_head: index == last,
            },
            device: device.clone(),
            returns_gradient: lowest.is_some_and(|lowest| lowest < index),
            accumulated: Accumulated::of(sums),
            links,
        });
        each.collect::<Vec<Stage>>()
    };
    accumulated.into_iter().enumerate().flat_map(row).collect()
}

/// The outputs of a batch, computed stage by stage without gradients and without dropout, by the modules of a replica on its
/// devices.
///
/// # Shapes
/// B rows of S tokens → [B, C]
pub(super) fn outputs(
    modules: &[AnyNetwork],
    (stages, replica): (&PipelineStages, usize),
    batch: &Batch,
) -> Option<Tensor<2>> {
    let last = stages.len() - 1;
    let mut before: Option<Tensor<3>> = None;
    let devices = stages.of_replica(replica).iter();
    for (index, (module, device)) in modules.iter().zip(devices).enumerate() {
        let device: &Device = &device.burn;
        let segment = Segment {
            layers: stages.layers[index].clone(),
            has_head: index == last,
        };
        let here = before.take().map(|output| output.to_device(device));
        let computed = module
            .valid()
            .segment(&segment, here, batch, Mode::Eval, device)?;
        match computed {
            Computed::Hidden(hidden) => before = Some(hidden),
            Computed::Outputs(logits) => return Some(logits),
        }
    }
    None
}
