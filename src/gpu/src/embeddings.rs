//! The embeddings of a BERT, with gradients: three vectors a token, added up, normalized and dropped out.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Cube, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Int, Tensor};

use crate::kernels::embeddings::{self, Tables};
use crate::kernels::mask::Dropped;
use crate::kernels::norm::{self, Normalized, Place};

/// Buffers that the launch binds: ten tensors, and one for scalars and shapes.
const BINDINGS: u32 = 11;

/// What is looked up, and where. Words and segments may have an entry without a gradient.
pub struct Lookup {
    /// Token ids, [B, S]
    pub ids: Tensor<2, Int>,
    /// The segment of each token, [B, S]
    pub type_ids: Tensor<2, Int>,
    /// [V, H], and the word that is not trained
    pub words: (Tensor<2>, Option<usize>),
    /// [T, H], and the segment that is not trained
    pub types: (Tensor<2>, Option<usize>),
    /// [P, H], P at least S
    pub positions: Tensor<2>,
}

/// Whether [`embed`] takes these: kernels are used, indices have 32 bits, rows fit, and the adapter binds as many buffers.
pub fn takes_embeddings(lookup: &Lookup) -> bool {
    let [words, types, positions] = [&lookup.words.0, &lookup.types.0, &lookup.positions];
    let tables = [words, types, positions];
    let indices = [&lookup.ids, &lookup.type_ids];
    let [batch, sequence] = lookup.ids.dims();
    let [_, columns] = words.dims();
    tables.into_iter().all(crate::takes)
        && indices.iter().all(|indices| indices.dtype() == DType::I32)
        && batch * sequence > 0
        && lookup.type_ids.dims() == [batch, sequence]
        && tables.iter().all(|table| table.dims()[1] == columns)
        && sequence <= positions.dims()[0]
        && crate::fits_a_row(columns)
        && crate::bindings(&words.device()) >= BINDINGS
}

/// `dropout(LayerNorm(words[ids] + types[type_ids] + positions))`, of what [`takes_embeddings`]; element i of the mask is
/// that of the flat index i. Scale and shift are `gamma` and `beta`.
///
/// # Shapes
/// gamma and beta `[H]` → [B, S, H]
pub fn embed(
    lookup: Lookup,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    eps: f64,
    dropped: Option<Dropped>,
) -> Tensor<3> {
    let (words, types) = (lookup.words, lookup.types);
    Tensor::from_dispatch(Dispatch::gpu_embed(
        words.0.into_dispatch(),
        types.0.into_dispatch(),
        lookup.positions.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        lookup.ids.into_dispatch(),
        lookup.type_ids.into_dispatch(),
        eps as f32,
        [words.1, types.1],
        dropped,
    ))
}

/// The shapes and meanings are those of the function above; `untrained`: a word and a segment.
#[backend_extension(Cube, Autodiff)]
trait Embed: Backend {
    #[allow(clippy::too_many_arguments)]
    fn gpu_embed(
        words: FloatTensor<Self>,
        types: FloatTensor<Self>,
        positions: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        ids: IntTensor<Self>,
        type_ids: IntTensor<Self>,
        eps: f32,
        untrained: [Option<usize>; 2],
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self>;
}

impl Embed for Cube {
    fn gpu_embed(
        words: FloatTensor<Self>,
        types: FloatTensor<Self>,
        positions: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        ids: IntTensor<Self>,
        type_ids: IntTensor<Self>,
        eps: f32,
        _untrained: [Option<usize>; 2],
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self> {
        let tables = Tables {
            words,
            types,
            positions,
        };
        embeddings::forward(tables, ids, type_ids, gamma, beta, eps, dropped).output
    }
}

impl<C: CheckpointStrategy> Embed for Autodiff<Cube, C> {
    fn gpu_embed(
        words: FloatTensor<Self>,
        types: FloatTensor<Self>,
        positions: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        ids: IntTensor<Self>,
        type_ids: IntTensor<Self>,
        eps: f32,
        untrained: [Option<usize>; 2],
        dropped: Option<Dropped>,
    ) -> FloatTensor<Self> {
        let floats = [words, types, positions, gamma, beta];
        let nodes = floats.each_ref().map(|tensor| tensor.node());
        let [words, types, positions, gamma, beta] = floats.map(|tensor| tensor.into_primitive());
        let entries = [&words, &types, &positions].map(|table| table.shape()[0]);
        let Normalized {
            output,
            normalized,
            inverse,
        } = embeddings::forward(
            Tables {
                words,
                types,
                positions,
            },
            ids.clone(),
            type_ids.clone(),
            gamma.clone(),
            beta,
            eps,
            dropped,
        );
        let prepared = EmbedBackward.prepare::<C>(nodes).compute_bound().stateful();
        match prepared {
            OpsKind::Tracked(prep) => {
                let state = EmbedState {
                    normalized,
                    inverse,
                    gamma,
                    ids,
                    type_ids,
                    entries,
                    untrained,
                    dropped,
                };
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}

/// A tensor of the backend under autodiff.
type Primitive = FloatTensor<Cube>;

/// With the parents words, types, positions, gamma and beta. The tables themselves are not kept.
#[derive(Debug)]
struct EmbedBackward;

#[derive(Clone, Debug)]
struct EmbedState {
    normalized: Primitive,
    inverse: Primitive,
    gamma: Primitive,
    ids: IntTensor<Cube>,
    type_ids: IntTensor<Cube>,
    /// Of words, types and positions.
    entries: [usize; 3],
    untrained: [Option<usize>; 2],
    dropped: Option<Dropped>,
}

impl Backward<Cube, 5> for EmbedBackward {
    type State = EmbedState;

    fn backward(
        self,
        ops: Ops<Self::State, 5>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Cube>(&ops.node);
        let EmbedState {
            normalized,
            inverse,
            gamma,
            ids,
            type_ids,
            entries,
            untrained,
            dropped,
        } = ops.state;
        let made = norm::backward(gradient, normalized, inverse, gamma, Place::Output(dropped));
        let of_sum = made.sum;
        let [words, types, positions, gamma, beta] =
            ops.parents.map(|parent| parent.map(|node| node.id));
        // Frozen tables have no gradient, which would be as large as they are.
        let mut of_words = None;
        let mut of_positions = None;
        if words.is_some() || positions.is_some() {
            let (first, second) = embeddings::words_and_positions(
                of_sum.clone(),
                ids,
                [entries[0], entries[2]],
                untrained[0],
            );
            (of_words, of_positions) = (Some(first), Some(second));
        }
        let of_types = types
            .is_some()
            .then(|| embeddings::types(of_sum, type_ids, entries[1], untrained[1]));
        let found = [
            (words, of_words),
            (types, of_types),
            (positions, of_positions),
            (gamma, Some(made.gamma)),
            (beta, Some(made.beta)),
        ];
        for (parent, gradient) in found {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Cube>(parent, gradient);
            }
        }
    }
}
