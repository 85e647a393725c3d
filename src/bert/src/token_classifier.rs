//! A class for each token: the network of transformers' `BertForTokenClassification`. Checkpoint keys `bert.*` and
//! `classifier`. Source: Devlin et al. 2019, section 5.3 (named entities); transformers v4.57.1 `modeling_bert.py`,
//! `BertForTokenClassification`. Dimensions: B sequences, S positions, H = hidden_size, C = num_labels.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::body::{Body, BodyOutput};
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::linear::Linear;
use crate::masked_lm::Transform;
use crate::mode::{DropoutSite, Mode};
use crate::ops;
use crate::parameters::Parameters;
use crate::taps;

/// The body, and a dense layer on each of its outputs.
#[derive(Module, Debug)]
pub struct TokenClassifier {
    /// The body.
    pub bert: Body,
    /// H → H, GELU, LayerNorm; ModernBERT's.
    pub head: Option<Transform>,
    /// H → C.
    pub classifier: Linear,
    #[module(skip)]
    classifier_dropout: f64,
}

/// The logits and the intermediate results.
#[derive(Clone, Debug)]
pub struct TokenClassifierOutput {
    /// The outputs of the body.
    pub bert: BodyOutput,
    /// Before any softmax, [B, S, C].
    pub logits: Tensor<3>,
}

impl TokenClassifier {
    /// # Shapes
    /// ids, mask and types [B, S] → logits [B, S, C]
    pub fn forward(&self, batch: BatchTensors, mode: Mode) -> Tensor<3> {
        self.forward_all(batch, mode).logits
    }

    /// [`Self::forward`] with all intermediate results.
    pub fn forward_all(&self, batch: BatchTensors, mode: Mode) -> TokenClassifierOutput {
        let bert = self.bert.forward(batch, mode);
        let logits = self.of_hidden(bert.last_hidden_state(), mode);
        TokenClassifierOutput { bert, logits }
    }

    /// What follows the last encoder layer.
    ///
    /// # Shapes
    /// hidden [B, S, H] → logits [B, S, C]
    pub fn of_hidden(&self, hidden: Tensor<3>, mode: Mode) -> Tensor<3> {
        let hidden = match &self.head {
            Some(head) => taps::within("head", || head.forward(hidden, mode)),
            None => hidden,
        };
        taps::within("classifier", || {
            let hidden = match mode.dropout(self.classifier_dropout, DropoutSite::Head) {
                Some((rate, key)) => ops::dropout(hidden, rate, key),
                None => hidden,
            };
            taps::output(self.classifier.forward(hidden, mode))
        })
    }
}

impl BertNetwork for TokenClassifier {
    const ARCHITECTURE: &'static str = "BertForTokenClassification";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let bert = Body::new(&mut parameters.enter("bert"), config);
        let head = Transform::of_head(parameters, config);
        let mut inside = parameters.enter("classifier");
        Self {
            bert,
            head,
            classifier: Linear::of_head(&mut inside, config, config.num_labels()),
            classifier_dropout: config.classifier_dropout(),
        }
    }
}
