//! The cross-entropy of classes from logits, with a gradient.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Cube, Dispatch, backend_extension};
use burn::tensor::{Device, Tensor, TensorData};

use crate::kernels::cross_entropy;

/// The class of each row, or none, and what the row counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets(Vec<f32>);

impl Targets {
    /// Of rows with a class, and rows without one, which have no part in the sum and no gradient. A class is below the
    /// number of columns, and below 2²⁴.
    pub fn new(rows: impl IntoIterator<Item = (Option<usize>, f32)>) -> Self {
        let numbers = |(class, weight): (Option<usize>, f32)| {
            [class.map_or(-1.0, |class| class as f32), weight]
        };
        Self(rows.into_iter().flat_map(numbers).collect())
    }

    fn on(self, device: &Device) -> Tensor<2> {
        let rows = self.0.len() / 2;
        Tensor::from_data(TensorData::new(self.0, [rows, 2]), &device.clone().inner())
    }
}

/// `Σ weight · −log softmax(logits)[class]` over the rows. With a `smoothing` s the class counts 1 − s, and each of the C
/// classes s / C more.
///
/// # Shapes
/// logits [B, C], B at least 1; B targets → `[1]`
pub fn cross_entropy(logits: Tensor<2>, targets: Targets, smoothing: f64) -> Tensor<1> {
    let targets = targets.on(&logits.device());
    Tensor::from_dispatch(Dispatch::gpu_cross_entropy(
        logits.into_dispatch(),
        targets.into_dispatch(),
        smoothing as f32,
    ))
}

/// The shape and meaning are those of the function above; targets [B, 2].
#[backend_extension(Cube, Autodiff)]
trait OfClasses: Backend {
    fn gpu_cross_entropy(
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        smoothing: f32,
    ) -> FloatTensor<Self>;
}

impl OfClasses for Cube {
    fn gpu_cross_entropy(
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        smoothing: f32,
    ) -> FloatTensor<Self> {
        cross_entropy::forward(logits, targets, smoothing).0
    }
}

impl<C: CheckpointStrategy> OfClasses for Autodiff<Cube, C> {
    fn gpu_cross_entropy(
        logits: FloatTensor<Self>,
        targets: FloatTensor<Self>,
        smoothing: f32,
    ) -> FloatTensor<Self> {
        let nodes = [logits.node()];
        let [logits, targets] = [logits, targets].map(|tensor| tensor.into_primitive());
        let (sum, kept) = cross_entropy::forward(logits.clone(), targets.clone(), smoothing);
        let prepared = CrossEntropyBackward
            .prepare::<C>(nodes)
            .compute_bound()
            .stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = CrossEntropyState {
                    logits,
                    targets,
                    kept,
                    smoothing,
                };
                prep.finish(state, sum)
            }
            OpsKind::UnTracked(prep) => prep.finish(sum),
        }
    }
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

/// Keeps the logits and two numbers a row; probabilities are computed again.
#[derive(Debug)]
struct CrossEntropyBackward;

#[derive(Clone, Debug)]
struct CrossEntropyState {
    logits: Primitive,
    targets: Primitive,
    kept: Primitive,
    smoothing: f32,
}

impl Backward<Cube, 1> for CrossEntropyBackward {
    type State = CrossEntropyState;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        if let [Some(parent)] = ops.parents {
            let CrossEntropyState {
                logits,
                targets,
                kept,
                smoothing,
            } = ops.state;
            let result = cross_entropy::backward(gradient, logits, targets, kept, smoothing);
            grads.register::<Cube>(parent.id, result);
        }
    }
}
