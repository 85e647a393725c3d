//! TracIn: how much the steps along a training row have lowered the loss of a text, estimated at snapshots of the run.
//!
//! ```text
//! score(row) = Σ over snapshots of rates · ∇loss(row) · ∇loss(text)
//! ```
//!
//! `rates` are the learning rates of the steps from a snapshot to the next, added up. Source: Pruthi et al. 2020, "Estimating training data
//! influence by tracing gradient descent", equation 2 (TracInCP). All trained parameters count.
//!
//! The product of two gradients is the slope of the row's loss along the gradient of the text, g:
//!
//! ```text
//! ∇loss(row) · g = (loss(row; w + ε·g) − loss(row; w − ε·g)) / (2·ε) + O(ε²)
//! ```
//!
//! So one gradient and two forward passes over the data give all products, and no gradient of a row is needed. ε is the largest of some
//! sizes for which the slope of the text's own loss is ‖g‖² within [`TOLERANCE`], or the one that comes nearest to it. Losses are without dropout, with the weights of classes
//! and examples that training gives them.

use std::collections::BTreeSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use stratoscope_bert::Mode;
use stratoscope_bert::recompute::Recorded;
use stratoscope_data::{Batch, Encoded};
use stratoscope_diagnostics::Result;
use stratoscope_diagnostics::work::{Unit, Work};

use super::Question;
use crate::hindsight::{Aside, begin_at};
use stratoscope_arguments::class_weight::{ClassWeights, weighted_sum};
use stratoscope_network::AnyNetwork;
use stratoscope_optim::global_norm;
use stratoscope_step::changed::StepChange;
use stratoscope_step::head::losses;
use stratoscope_train::lease::Lease;
use stratoscope_train::run_state::RunState;
use stratoscope_train::snapshot::Snapshot;
use stratoscope_train::state::ModelState;

/// Rows that have scores; of more, a random sample.
const MAX_ROWS: usize = 4096;
/// The order of the sample: a seed that no epoch has.
const SAMPLE: u64 = u64::MAX;
/// The snapshots that are read, evenly from the first to the last.
const MAX_SNAPSHOTS: usize = 8;
/// How far ε·g goes, as shares of the norm of the weights, the largest first.
const SIZES: [f64; 4] = [3e-3, 1e-3, 3e-4, 1e-4];
/// By how much the slope of the text's own loss may differ from ‖g‖².
const TOLERANCE: f64 = 0.02;

/// The scores of rows.
pub(super) struct Scores {
    /// Row and score, the largest absolute score first.
    pub rows: Vec<(usize, f64)>,
    /// The snapshots, by their steps.
    pub snapshots: Vec<u64>,
    /// How many rows have one, and how many there are.
    pub sampled: usize,
    pub total: usize,
}

/// The scores of the rows that are not left out. The run is left at a snapshot.
pub(super) fn scores(
    lease: &mut Lease<'_>,
    run: &mut RunState<'static>,
    snapshots: &[Snapshot],
    aside: &Aside,
    question: &Question,
    (data, left_out): (&Encoded, &BTreeSet<usize>),
) -> Result<Scores> {
    let total = data.len() - left_out.len();
    let order = match total > MAX_ROWS {
        true => data.shuffle(SAMPLE, 0),
        false => data.clone(),
    };
    let sampled = order.part(0, MAX_ROWS, left_out);
    let chosen = spread(snapshots.len());
    let mut sums: Vec<f64> = vec![0.0; sampled.len()];
    let mut work = Work::begin(
        ("scoring rows at snapshots", "scored"),
        chosen.len(),
        Unit::Things("snapshot"),
    );
    for (done, &index) in chosen.iter().enumerate() {
        work.reached(done)?;
        let snapshot = &snapshots[index];
        let from = snapshot.state.steps;
        let until = chosen
            .get(done + 1)
            .map_or(u64::MAX, |&next| snapshots[next].state.steps);
        let steps = aside.at.progress.history.steps.iter();
        let steps = steps.filter(|it| it.step > from && it.step <= until);
        let rates: f64 = steps.map(|it| it.learning_rate).sum();
        begin_at(lease, run, snapshot, aside)?;
        let slopes = slopes(lease, run, question, &sampled)?;
        for (sum, slope) in sums.iter_mut().zip(slopes) {
            *sum += rates * slope;
        }
    }
    work.finished();
    let rows = (0..sampled.len()).filter_map(|at| Some(sampled.get(at)?.index));
    let mut rows: Vec<(usize, f64)> = rows.zip(sums).collect();
    // A score that is not a number comes last.
    let size = |score: f64| if score.is_nan() { -1.0 } else { score.abs() };
    rows.sort_by(|a, b| size(b.1).total_cmp(&size(a.1)).then(a.0.cmp(&b.0)));
    Ok(Scores {
        rows,
        snapshots: chosen.iter().map(|&it| snapshots[it].state.steps).collect(),
        sampled: sampled.len(),
        total,
    })
}

/// At most [`MAX_SNAPSHOTS`] of this number of snapshots, the first among them, evenly.
fn spread(count: usize) -> Vec<usize> {
    let shown = count.min(MAX_SNAPSHOTS);
    (0..shown).map(|at| at * count / shown.max(1)).collect()
}

/// ∇loss(row) · ∇loss(text) for each row, with the weights that the model has now.
fn slopes(
    state: &ModelState,
    run: &RunState<'static>,
    question: &Question,
    data: &Encoded,
) -> Result<Vec<f64>> {
    let replicas = state.settled()?;
    let network = replicas.first();
    let place = &replicas.storage_devices()[0];
    let gradient = gradient(state, run, question, (network, &place.training()));
    let squared = global_norm(network, &gradient).powi(2);
    if squared == 0.0 || !squared.is_finite() {
        return Ok(vec![0.0; data.len()]);
    }
    let network = network.valid();
    let pass = EvalPass {
        state,
        run,
        device: &place.burn,
    };
    let norm = Norm::of(&network);
    let along = |epsilon: f64| network.clone().map(&mut Along(&gradient, epsilon as f32));
    let slope = |epsilon: f64| {
        let ends = [epsilon, -epsilon].map(|it| pass.losses(&along(it), &question.batch, None));
        (ends[0][0] - ends[1][0]) / (2.0 * epsilon)
    };
    let sizes = SIZES.map(|size| size * norm / squared.sqrt());
    let (mut epsilon, mut best) = (sizes[0], f64::INFINITY);
    for size in sizes {
        let off = (slope(size) / squared - 1.0).abs();
        if off < best {
            (epsilon, best) = (size, off);
        }
        if off <= TOLERANCE {
            break;
        }
    }
    let (above, below) = (along(epsilon), along(-epsilon));
    let classes = run.settings.class_weights.as_ref();
    let mut slopes = Vec::with_capacity(data.len());
    for batch in data.batch(run.part_size())? {
        // With the labels and weights that the run has given them.
        let changed = StepChange::batch_by_all(&run.row_changes, &batch);
        let batch = changed.unwrap_or(batch);
        let ends = [&above, &below].map(|network| pass.losses(network, &batch, classes));
        let own = ends[0].iter().zip(&ends[1]);
        slopes.extend(own.map(|(above, below)| (above - below) / (2.0 * epsilon)));
    }
    Ok(slopes)
}

/// The gradient of the text's loss, without dropout.
fn gradient(
    state: &ModelState,
    run: &RunState<'static>,
    question: &Question,
    (network, device): (&AnyNetwork, &Device),
) -> GradientsParams {
    let batch = &question.batch;
    state.step.policy.precision().during(|| {
        let pass = || network.logits(batch, Mode::Eval, device);
        let (logits, recorded) = Recorded::during(false, pass);
        let loss = weighted_sum((run.settings.loss, None), logits, &batch.labels, None);
        recorded.backward(&loss, network)
    })
}

/// Forward passes without gradients or dropout.
struct EvalPass<'a> {
    state: &'a ModelState,
    run: &'a RunState<'static>,
    device: &'a Device,
}

impl EvalPass<'_> {
    /// The loss of each example of a batch. NaN for all where the device fails: then the run itself says so.
    fn losses(
        &self,
        network: &AnyNetwork,
        batch: &Batch,
        classes: Option<&ClassWeights>,
    ) -> Vec<f64> {
        let precision = self.state.step.policy.precision();
        let logits = precision.during(|| network.logits(batch, Mode::Eval, self.device));
        let outputs = logits
            .try_into_data()
            .map(|data| data.iter::<f32>().collect());
        let outputs: Vec<f32> = outputs.unwrap_or_default();
        let weights = (classes, batch.weights.as_deref());
        losses(self.run.settings.loss, weights, &outputs, &batch.labels)
    }
}

/// The parameters, each with a multiple of its gradient added.
struct Along<'g>(&'g GradientsParams, f32);

impl ModuleMapper for Along<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.0.get::<D>(param.id) else {
            return param;
        };
        let (id, value, mapper) = param.consume();
        let gradient = gradient.to_device(&value.device());
        Param::from_mapped_value(id, value + gradient.mul_scalar(self.1), mapper)
    }
}

/// √ of the sum of squares of all parameters.
#[derive(Default)]
struct Norm(f64);

impl Norm {
    fn of(network: &AnyNetwork) -> f64 {
        let mut norm = Self::default();
        network.visit(&mut norm);
        norm.0.sqrt()
    }
}

impl ModuleVisitor for Norm {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let squares = param.val().square().sum();
        self.0 += f64::from(squares.into_scalar::<f32>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_are_spread_from_the_first_on() {
        assert_eq!(spread(3), [0, 1, 2]);
        assert_eq!(spread(16), [0, 2, 4, 6, 8, 10, 12, 14]);
        assert_eq!(spread(9).len(), MAX_SNAPSHOTS);
        assert!(spread(0).is_empty());
    }
}
