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

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::ops::Stop;
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::taps;
use stratoscope_bert::{Computed, Mode, Segment};
use stratoscope_data::Batch;
use stratoscope_diagnostics::Result;
use stratoscope_strategy::{
    BackendKind, LogicalDevice, PipelinePass, PipelineSchedule, PipelineStages, Replicas,
};

use super::accumulated::Accumulated;
use super::backward::Pass;
use super::failures::{failed, guarded};
use super::forward::{BatchOutputs, PartOutputs, read};
use super::timed::{PassSize, PassTimer};
use super::{StepSettings, StepState};
use stratoscope_arguments::class_weight::weighted_sum;
use stratoscope_metrics::loss::own;
use stratoscope_network::AnyNetwork;
use stratoscope_report::pipeline::{PassTime, PipelineStep, StageStep};

/// What all stages of a step know.
struct Shared {
    micro_batches: Vec<Batch>,
    passes: Vec<Pass>,
    schedule: PipelineSchedule,
    stages: usize,
    /// Examples of the whole step.
    share: usize,
    stop: Stop,
    begun: Instant,
    /// Notes when each stage computes what, while a profile is made.
    timer: Option<Arc<PassTimer>>,
}

impl Shared {
    /// Runs the passes of a stage, and notes them where a profile is made.
    fn timed<T>(&self, index: usize, run: impl FnOnce() -> T) -> T {
        match &self.timer {
            Some(timer) => timer.during(index, PassSize::of(&self.micro_batches), run),
            None => run(),
        }
    }
}

/// What a stage begins with.
struct Stage {
    segment: Segment,
    device: LogicalDevice,
    /// Whether an earlier stage has a variable that is trained: then the gradient by the input is wanted.
    returns_gradient: bool,
    accumulated: Accumulated,
    links: Links,
}

/// The ends of a stage's borders; none where it has no neighbor.
#[derive(Default)]
struct Links {
    from_before: Option<Receiver<Tensor<3>>>,
    to_next: Option<Sender<Tensor<3>>>,
    /// `None` where the output had no influence on the loss.
    from_next: Option<Receiver<Option<Tensor<3>>>>,
    to_before: Option<Sender<Option<Tensor<3>>>>,
}

impl Links {
    /// Of stages in a row.
    fn of(stages: usize) -> Vec<Self> {
        let mut links: Vec<Self> = (0..stages).map(|_| Self::default()).collect();
        for border in 1..stages {
            let (forward, output) = channel();
            let (backward, gradient) = channel();
            links[border - 1].to_next = Some(forward);
            links[border].from_before = Some(output);
            links[border].to_before = Some(backward);
            links[border - 1].from_next = Some(gradient);
        }
        links
    }
}

/// What a stage keeps of a micro-batch until its backward pass.
struct Kept {
    output: Output,
    recorded: Recorded,
    /// Where the gradient by it is wanted.
    input: Option<Tensor<3>>,
}

enum Output {
    Hidden(Tensor<3>),
    /// scale · Σ loss / examples of the step.
    Loss(Tensor<1>),
}

/// What a stage has done.
struct Done {
    accumulated: Accumulated,
    /// Of the last stage: what came out for each micro-batch.
    outputs: Vec<std::result::Result<PartOutputs, String>>,
    step: StageStep,
}

impl StepState {
    /// Runs micro-batches forward and backward through the stages and adds their gradients to those of the step; the first one's
    /// number in the run is `first`, the others follow. Returns what came out for each, or `None` where the work was given up,
    /// because an interrupt came and it took long: then nothing has changed.
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
        let numbers = first..first + micro_batches.len() as u64;
        let shared = Shared {
            micro_batches: micro_batches.to_vec(),
            passes: numbers
                .map(|number| self.coming_pass(settings, number))
                .collect(),
            schedule: self.schedule(),
            stages: stages.len(),
            share: shares.first().copied().unwrap_or(0),
            stop: stop.clone(),
            begun: Instant::now(),
            timer: self.timer.clone(),
        };
        // Where the work is given up, these are the sums of before.
        let structure = self.replicas.structure();
        let before = self.accumulated.first().map(|sum| sum.copied(structure));
        let accumulated = self.accumulated.drain(..).next().unwrap_or_default();
        let inputs = stages_with(&self.replicas, &stages, accumulated);
        let loss = settings.loss;
        let work = {
            let shared = Arc::new(shared);
            move |index: usize, network: &AnyNetwork, stage: Stage| {
                shared.timed(index, || stage.run(index, network, &shared))
            }
        };
        let computed = || self.replicas.compute_each_stage(inputs, work);
        let mut done = guarded(&stages.devices, false, computed)?;
        own::failure(loss)?;
        // From here on the batch counts, on all stages.
        if !stop.commit() {
            self.accumulated.extend(before);
            return Ok(None);
        }
        let outputs = done
            .last_mut()
            .map(|last| std::mem::take(&mut last.outputs));
        let device = &stages.devices[stages.len() - 1];
        let outputs = outputs.into_iter().flatten().zip(micro_batches);
        let outputs = outputs.map(|(outputs, batch)| {
            let outputs = outputs.map_err(|reason| failed(&device.name, &reason))?;
            Ok(vec![(batch.clone(), outputs)])
        });
        let outputs = outputs.collect::<Result<Vec<BatchOutputs>>>()?;
        let mut sum = Accumulated::default();
        let mut steps = Vec::with_capacity(done.len());
        for (stage, network) in done.into_iter().zip(self.replicas.modules()) {
            let Done {
                mut accumulated,
                step,
                ..
            } = stage;
            sum.add(network, accumulated.take());
            steps.push(step);
        }
        self.accumulated.push(sum);
        self.pipeline = Some(PipelineStep {
            micro_batches: micro_batches.len(),
            stages: steps,
        });
        Ok(Some(outputs))
    }

    fn schedule(&self) -> PipelineSchedule {
        let settings = self.replicas.strategy().and_then(|it| it.pipeline());
        settings.map(|it| it.schedule).unwrap_or_default()
    }
}

/// The stages before a step. Each gets what was accumulated for its variables.
fn stages_with(
    replicas: &Replicas<AnyNetwork>,
    stages: &PipelineStages,
    mut accumulated: Accumulated,
) -> Vec<Stage> {
    let last = stages.len() - 1;
    let trained = replicas.records().iter().filter(|record| record.trainable);
    let lowest = trained.map(|record| stages.stage_of(record.param)).min();
    let sums = replicas.scatter(0, accumulated.take());
    let links = Links::of(stages.len());
    let each = stages
        .devices
        .iter()
        .zip(&stages.layers)
        .zip(sums)
        .zip(links);
    each.enumerate()
        .map(|(index, (((device, layers), sums), links))| Stage {
            segment: Segment {
                layers: layers.clone(),
                has_head: index == last,
            },
            device: device.clone(),
            returns_gradient: lowest.is_some_and(|lowest| lowest < index),
            accumulated: Accumulated::of(sums),
            links,
        })
        .collect()
}

impl Stage {
    /// The passes of a stage, until all are done or the step is given up. A neighbor that is gone has ended with a panic or
    /// was given up.
    fn run(mut self, index: usize, network: &AnyNetwork, shared: &Shared) -> Done {
        let mut kept: VecDeque<Kept> = VecDeque::new();
        let mut done = Done {
            accumulated: std::mem::take(&mut self.accumulated),
            outputs: Vec::new(),
            step: StageStep::default(),
        };
        let count = shared.micro_batches.len();
        for pass in shared.schedule.passes(index, shared.stages, count) {
            let went_on = match pass {
                PipelinePass::Forward(number) => {
                    let one = self.forward(number, network, shared, &mut done);
                    one.map(|one| kept.push_back(one))
                }
                PipelinePass::Backward(number) => kept
                    .pop_front()
                    .and_then(|one| self.backward(one, number, network, shared, &mut done)),
            };
            if went_on.is_none() || shared.stop.is_given_up() {
                break;
            }
            done.step.kept = done.step.kept.max(kept.len());
        }
        done
    }

    /// `None` where the stage before is gone.
    fn forward(
        &self,
        number: usize,
        network: &AnyNetwork,
        shared: &Shared,
        done: &mut Done,
    ) -> Option<Kept> {
        taps::stage("wait");
        let before = match &self.links.from_before {
            Some(before) => Some(before.recv().ok()?),
            None => None,
        };
        taps::stage("forward");
        let start = shared.begun.elapsed();
        let device = self.device.training();
        let before = before.map(|output| {
            let here = Tensor::from_inner(output.to_device(&self.device.burn));
            here.set_require_grad(self.returns_gradient)
        });
        let (batch, pass) = (&shared.micro_batches[number], &shared.passes[number]);
        let computed = || {
            let mode = pass.dropout.mode(0);
            network.segment(&self.segment, before.clone(), batch, mode, &device)
        };
        let computed = || Recorded::gathering(pass.recompute, None, computed);
        let computed = || (shared.stop).during(|| pass.precision.during(computed));
        let (computed, recorded) = pass.around(batch, computed);
        let input = before.filter(|_| self.returns_gradient);
        let (output, sent) = match computed? {
            Computed::Hidden(hidden) => {
                let sent = hidden.clone().inner();
                (Output::Hidden(hidden), Some(sent))
            }
            Computed::Outputs(logits) => {
                taps::stage("loss");
                let loss = (pass.loss, pass.class_weights.as_ref());
                let weights = batch.weights.as_deref();
                let sum = weighted_sum(loss, logits.clone(), &batch.labels, weights);
                let mean = sum.clone().div_scalar(shared.share as f64 / pass.scale);
                taps::stage("read");
                let outputs = read(Some(sum.inner()), logits.inner(), Vec::new());
                done.outputs.push(outputs);
                (Output::Loss(mean), None)
            }
        };
        self.ends(number, true, start.as_secs_f64(), shared, done);
        if let (Some(sent), Some(next)) = (sent, &self.links.to_next) {
            done.step.sent_bytes += bytes(&sent);
            next.send(sent).ok()?;
        }
        Some(Kept {
            output,
            recorded,
            input,
        })
    }

    /// `None` where the stage after is gone.
    fn backward(
        &self,
        kept: Kept,
        number: usize,
        network: &AnyNetwork,
        shared: &Shared,
        done: &mut Done,
    ) -> Option<()> {
        taps::stage("wait");
        let gradient = match &self.links.from_next {
            Some(next) => next.recv().ok()?,
            None => None,
        };
        taps::stage("backward");
        let start = shared.begun.elapsed();
        let (batch, pass) = (&shared.micro_batches[number], &shared.passes[number]);
        let Kept {
            output,
            recorded,
            input,
        } = kept;
        let (gradients, of_input) = pass.around(batch, || match (output, gradient) {
            (Output::Loss(loss), _) => {
                let backward = || recorded.backward_to(&loss, network, input.as_ref());
                (shared.stop).during(|| pass.precision.during(backward))
            }
            (Output::Hidden(output), Some(gradient)) => {
                let gradient = gradient.to_device(&self.device.burn);
                let input = input.as_ref();
                let backward = || Segment::backward(recorded, network, output, gradient, input);
                (shared.stop).during(|| pass.precision.during(backward))
            }
            (Output::Hidden(_), None) => (GradientsParams::new(), None),
        });
        taps::stage("accumulate");
        done.accumulated.add(network, gradients);
        self.ends(number, false, start.as_secs_f64(), shared, done);
        if let Some(before) = &self.links.to_before {
            done.step.sent_bytes += of_input.as_ref().map_or(0, bytes);
            before.send(of_input).ok()?;
        }
        Some(())
    }

    /// A pass is done. A GPU is waited for, so that the time is that of its work.
    fn ends(&self, number: usize, is_forward: bool, start: f64, shared: &Shared, done: &mut Done) {
        if self.device.backend != BackendKind::Flex {
            taps::stage("read");
            // What has failed shows when the outputs are read.
            let _ = self.device.burn.sync();
        }
        done.step.passes.push(PassTime {
            micro_batch: number,
            is_forward,
            start,
            end: shared.begun.elapsed().as_secs_f64(),
        });
    }
}

fn bytes(tensor: &Tensor<3>) -> u64 {
    (tensor.shape().num_elements() * tensor.dtype().size()) as u64
}

/// The outputs of a batch, computed stage by stage without gradients and without dropout.
///
/// # Shapes
/// B rows of S tokens → [B, C]
pub(super) fn outputs(
    modules: &[AnyNetwork],
    stages: &PipelineStages,
    batch: &Batch,
) -> Option<Tensor<2>> {
    let last = stages.len() - 1;
    let mut before: Option<Tensor<3>> = None;
    for (index, module) in modules.iter().enumerate() {
        let device: &Device = &stages.devices[index].burn;
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
