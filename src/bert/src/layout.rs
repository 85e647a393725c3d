//! How the tensors of a network are kept in a file: their names there, and rows of tables that the network does not use.

use std::sync::Arc;

use burn::tensor::TensorData;

use crate::config::BertConfig;
use crate::family::Family;
use crate::heads::BertNetwork;

/// The layout of a model's file.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) family: Family,
    architecture: &'static str,
    first_position: usize,
    /// The values of the unused rows, where they were read.
    unused_positions: Arc<[f32]>,
}

impl Layout {
    pub(crate) fn of<N: BertNetwork>(config: &BertConfig) -> Self {
        Self {
            family: config.family,
            architecture: N::ARCHITECTURE,
            first_position: config.family.first_position(config.pad_token_id),
            unused_positions: Arc::clone(&config.unused_positions),
        }
    }

    /// The name of a parameter in the file; `None` where it is not in it.
    pub(crate) fn name(&self, parameter: &str) -> Option<String> {
        self.family.tensor(parameter, self.architecture)
    }

    /// The rows at the beginning of a parameter's tensor in the file that the parameter does not have.
    pub(crate) fn unused_rows(&self, parameter: &str) -> usize {
        match parameter.ends_with("embeddings.position_embeddings.weight") {
            true => self.first_position,
            false => 0,
        }
    }

    /// The values as the file has them: unused rows are as they were read, else zero.
    pub(crate) fn as_in_file(&self, parameter: &str, values: TensorData) -> TensorData {
        let unused = self.unused_rows(parameter);
        if unused == 0 {
            return values;
        }
        let mut shape = values.shape().to_vec();
        let width: usize = shape[1..].iter().product();
        let mut rows = self.unused_positions.to_vec();
        rows.resize(unused * width, 0.0);
        rows.extend(values.iter::<f32>());
        shape[0] += unused;
        TensorData::new(rows, shape)
    }
}
