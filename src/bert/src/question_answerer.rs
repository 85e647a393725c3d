//! Where in a text the answer begins and ends: the network of transformers' `BertForQuestionAnswering`. Checkpoint keys
//! `bert.*` and `qa_outputs`. Source: Devlin et al. 2019, section 4.2; transformers v4.57.1 `modeling_bert.py`,
//! `BertForQuestionAnswering`. Dimensions: B sequences, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::body::Body;
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::linear::Linear;
use crate::masked_lm::Transform;
use crate::mode::{DropoutSite, Mode};
use crate::ops;
use crate::parameters::Parameters;
use crate::taps;

/// The body, and a dense layer that gives each token two numbers.
#[derive(Module, Debug)]
pub struct QuestionAnswerer {
    /// The body.
    pub bert: Body,
    /// H → H, GELU, LayerNorm, then dropout; ModernBERT's.
    pub head: Option<Transform>,
    /// H → 2.
    pub qa_outputs: Linear,
    #[module(skip)]
    classifier_dropout: f64,
}

impl QuestionAnswerer {
    /// How well the answer begins at each position, then how well it ends there.
    ///
    /// # Shapes
    /// ids, mask and types [B, S] → logits [B, 2, S]
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> Tensor<3> {
        self.of_hidden(self.bert.forward(batch, mode).last_hidden_state(), mode)
    }

    /// What follows the last encoder layer.
    ///
    /// # Shapes
    /// hidden [B, S, H] → logits [B, 2, S]
    pub fn of_hidden(&self, hidden: Tensor<3>, mode: Mode) -> Tensor<3> {
        let hidden = match &self.head {
            Some(head) => {
                let hidden = taps::within("head", || head.forward(hidden, mode));
                match mode.dropout(self.classifier_dropout, DropoutSite::Head) {
                    Some((rate, key)) => ops::dropout(hidden, rate, key),
                    None => hidden,
                }
            }
            None => hidden,
        };
        let logits = taps::within("qa_outputs", || {
            taps::output(self.qa_outputs.forward(hidden, mode))
        });
        logits.swap_dims(1, 2)
    }
}

impl BertNetwork for QuestionAnswerer {
    const ARCHITECTURE: &'static str = "BertForQuestionAnswering";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let bert = Body::new(&mut parameters.enter("bert"), config);
        let head = Transform::of_head(parameters, config);
        let mut inside = parameters.enter("qa_outputs");
        Self {
            bert,
            head,
            qa_outputs: Linear::of_head(&mut inside, config, 2),
            classifier_dropout: config.classifier_dropout(),
        }
    }
}
