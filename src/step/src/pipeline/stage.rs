//! A stage of a pipeline: its passes in the order of the schedule, and what it sends to its neighbors.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};

use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use stratoscope_bert::recompute::Recorded;
use stratoscope_bert::taps;
use stratoscope_bert::{Computed, Segment};
use stratoscope_strategy::{BackendKind, LogicalDevice, PipelinePass};

use super::Shared;
use crate::accumulated::Accumulated;
use crate::forward::{PartOutputs, read};
use stratoscope_arguments::class_weight::weighted_sum;
use stratoscope_network::AnyNetwork;
use stratoscope_report::pipeline::{PassTime, StageStep};

/// What a stage begins with.
pub(super) struct Stage {
    pub(super) segment: Segment,
    pub(super) device: LogicalDevice,
    /// Whether an earlier stage has a variable that is trained: then the gradient by the input is wanted.
    pub(super) returns_gradient: bool,
    pub(super) accumulated: Accumulated,
    pub(super) links: Links,
}

/// The ends of a stage's borders; none where it has no neighbor.
#[derive(Default)]
pub(super) struct Links {
    from_before: Option<Receiver<Tensor<3>>>,
    to_next: Option<Sender<Tensor<3>>>,
    /// `None` where the output had no influence on the loss.
    from_next: Option<Receiver<Option<Tensor<3>>>>,
    to_before: Option<Sender<Option<Tensor<3>>>>,
}

impl Links {
    /// Of stages in a row.
    pub(super) fn of(stages: usize) -> Vec<Self> {
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
pub(super) struct Done {
    pub(super) accumulated: Accumulated,
    /// Of the last stage: what came out for each micro-batch.
    pub(super) outputs: Vec<std::result::Result<PartOutputs, String>>,
    pub(super) step: StageStep,
}

impl Stage {
    /// The passes of a stage, until all are done or the step is given up. A neighbor that is gone has ended with a panic or
    /// was given up.
    pub(super) fn run(mut self, index: usize, network: &AnyNetwork, shared: &Shared) -> Done {
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
            let mode = pass.dropout.mode(shared.replica);
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
