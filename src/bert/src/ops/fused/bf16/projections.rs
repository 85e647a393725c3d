//! `attention` of three projections that lie by themselves, as those of layers with an adapter: they are rounded side by
//! side, and from there on it is [`self_attention`](super::self_attention).

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn_flex::{Flex, FlexTensor};

use super::super::flex::{dimensions, floats, rows, shape, tensor};
use super::Tracked;
use crate::ops::cpu::Unwritten;
use crate::ops::cpu::attention::Dimensions;
use crate::ops::cpu::bf16::Rows;
use crate::ops::cpu::bf16::attention::{self, Inputs};
use crate::ops::cpu::product::MatrixMut;
use crate::ops::key::Mask;

/// Three matrices [T, H] → [T, 3·H], rounded.
fn beside(projections: [&FlexTensor; 3]) -> Rows {
    let (rows, hidden) = (rows(projections[0]), shape(projections[0])[2]);
    let parts = projections.map(floats);
    let mut whole = Vec::with_capacity(3 * rows * hidden);
    for row in 0..rows {
        for part in &parts {
            whole.extend_from_slice(&part[row * hidden..(row + 1) * hidden]);
        }
    }
    Rows::encode(&whole, rows, 3 * hidden)
}

/// The heads' output, the rounded projections and the statistics of the softmax.
fn attend(
    projections: [&FlexTensor; 3],
    mask: &FlexTensor,
    d: Dimensions,
    dropped: Option<Mask>,
) -> (FlexTensor, Rows, Vec<f32>) {
    let projected = beside(projections);
    let inputs = Inputs {
        projected: &projected,
        mask: &floats(mask),
        dropped,
    };
    let (y, statistics) = attention::forward(inputs, d);
    (tensor(y, shape(projections[0])), projected, statistics)
}

fn sizes(query: &FlexTensor, heads: usize) -> Dimensions {
    dimensions(query, shape(query)[2], heads)
}

/// `attention` without gradients.
pub(in crate::ops) fn attention(
    projections: [&FlexTensor; 3],
    mask: &FlexTensor,
    heads: usize,
    dropped: Option<Mask>,
) -> FlexTensor {
    let d = sizes(projections[0], heads);
    attend(projections, mask, d, dropped).0
}

/// [`attention`] with gradients.
pub(in crate::ops) fn tracked_attention<C: CheckpointStrategy>(
    projections: [Tracked<C>; 3],
    mask: FlexTensor,
    heads: usize,
    dropped: Option<Mask>,
) -> Tracked<C> {
    let nodes = projections.each_ref().map(|tensor| tensor.node());
    let projections = projections.map(|tensor| tensor.into_primitive());
    let dimensions = sizes(&projections[0], heads);
    let (y, projected, statistics) = attend(projections.each_ref(), &mask, dimensions, dropped);
    match AttentionBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => {
            let state = State {
                projected: Arc::new(projected),
                mask,
                statistics: Arc::new(statistics),
                dimensions,
                dropped,
            };
            prep.finish(state, y)
        }
        OpsKind::UnTracked(prep) => prep.finish(y),
    }
}

/// `attention`: parents query, key and value.
#[derive(Debug)]
struct AttentionBackward;

#[derive(Clone, Debug)]
struct State {
    /// [T, 3·H]
    projected: Arc<Rows>,
    mask: FlexTensor,
    statistics: Arc<Vec<f32>>,
    dimensions: Dimensions,
    dropped: Option<Mask>,
}

impl Backward<Flex, 3> for AttentionBackward {
    type State = State;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let (state, d) = (&ops.state, ops.state.dimensions);
        let (rows, hidden) = (d.rows(), d.hidden());
        let mut results = [(); 3].map(|()| Unwritten::new(rows * hidden));
        let into = results
            .each_mut()
            .map(|result| MatrixMut::new(result.elements(), rows, hidden));
        let inputs = Inputs {
            projected: &state.projected,
            mask: &floats(&state.mask),
            dropped: state.dropped,
        };
        attention::backward(&floats(&gradient), inputs, &state.statistics, d, into);
        // SAFETY: `backward` writes every element of the three matrices, which have all elements of the results.
        let results = results.map(|result| unsafe { result.written() });
        let shape = shape(&gradient);
        for (parent, data) in ops.parents.into_iter().zip(results) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, tensor(data, shape.clone()));
            }
        }
    }
}
