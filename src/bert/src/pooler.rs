//! One vector for a whole sequence. Checkpoint keys `bert.pooler.dense`.
//! Source: Devlin et al. 2019, section 3 (the vector C); google-research/bert@eedf571 `modeling.py`,
//! scope `pooler`. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::config::BertConfig;
use crate::family::Family;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::operation;
use crate::ops;
use crate::parameters::Parameters;
use crate::taps;

/// The first token's vector through a dense layer and tanh (DistilBERT: ReLU; ELECTRA: GELU).
#[derive(Module, Debug)]
pub struct Pooler {
    /// H → H.
    pub dense: Linear,
    #[module(skip)]
    family: Family,
}

impl Pooler {
    /// Takes the parameters under `pooler`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let mut inside = parameters.enter("dense");
        Self {
            dense: Linear::new(&mut inside, config.hidden_size, config.hidden_size),
            family: config.family,
        }
    }

    /// # Shapes
    /// [B, S, H] → [B, H]
    pub fn forward(&self, hidden_states: Tensor<3>, mode: Mode) -> Tensor<2> {
        let [batch, _, hidden_size] = hidden_states.dims();
        let first_token = hidden_states.slice([0..batch, 0..1]); // [B, 1, H]
        let dense = taps::within("dense", || self.dense.forward(first_token, mode));
        let pooled = operation!("activation", [dense], self.family.pooled(dense));
        let pooled = ops::rounded(pooled);
        taps::output(pooled.reshape([batch, hidden_size]))
    }
}
