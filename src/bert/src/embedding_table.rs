//! A table of vectors that is looked up by index. Checkpoint key `….weight`.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use crate::ops;
use crate::parameters::{Initial, Parameters};

/// One vector of H numbers for each of V indices.
#[derive(Module, Debug)]
pub struct EmbeddingTable {
    /// [V, H].
    pub weight: Param<Tensor<2>>,
    #[module(skip)]
    padding_index: Option<usize>,
}

impl EmbeddingTable {
    /// Takes the table. The vector of `padding_index` is looked up like the others but gets no
    /// gradient, like PyTorch's `padding_idx`.
    pub fn new(
        parameters: &mut Parameters,
        entries: usize,
        hidden_size: usize,
        padding_index: Option<usize>,
    ) -> Self {
        let initial = Initial::NormalExcept(padding_index);
        let weight = parameters.take("weight", [entries, hidden_size], initial);
        Self {
            weight,
            padding_index,
        }
    }

    /// # Shapes
    /// indices [B, S] → [B, S, H]
    pub fn forward(&self, indices: Tensor<2, Int>) -> Tensor<3> {
        ops::embedding(self.weight.val(), indices, self.padding_index)
    }

    /// The whole table, and the index whose vector gets no gradient.
    pub(crate) fn whole(&self) -> (Tensor<2>, Option<usize>) {
        (self.weight.val(), self.padding_index)
    }

    /// The vectors of the indices 0 to `count` − 1.
    ///
    /// # Shapes
    /// → [count, H]
    pub fn first(&self, count: usize) -> Tensor<2> {
        self.weight.val().narrow(0, 0, count)
    }
}
