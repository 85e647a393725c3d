//! Which of several texts goes with a prompt: the network of transformers' `BertForMultipleChoice`. Checkpoint keys `bert.*`
//! and `classifier`. Every choice is a sequence of its own, the prompt before it, and gets one number; the softmax is over
//! the choices of a prompt, so that the network is the same for any number of them. Source: Devlin et al. 2019, section 4.4;
//! transformers v4.57.1 `modeling_bert.py`, `BertForMultipleChoice`.
//! Dimensions: B prompts of N choices, S positions, H = hidden_size.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::bert::Bert;
use crate::config::BertConfig;
use crate::heads::BertNetwork;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::ops;
use crate::parameters::Parameters;
use crate::taps;

/// The body, and a dense layer that makes one number of its pooled output.
#[derive(Module, Debug)]
pub struct MultipleChoice {
    /// The body.
    pub bert: Bert,
    /// H → 1.
    pub classifier: Linear,
    #[module(skip)]
    classifier_dropout: f64,
}

impl MultipleChoice {
    /// How well each choice goes with its prompt, before the softmax over the choices of a prompt.
    ///
    /// # Shapes
    /// ids, mask and types [B·N, S], the choices of a prompt one after the other → logits [B, N]
    pub fn forward(&self, batch: BatchTensors, choices: usize, mode: Mode) -> Tensor<2> {
        let pooled = taps::within("bert", || self.bert.pooled(batch, mode));
        self.head(pooled, choices, mode)
    }

    /// What follows the last encoder layer.
    ///
    /// # Shapes
    /// hidden [B·N, S, H], mask [B·N, S] with 1 = token → logits [B, N]
    pub fn of_hidden(
        &self,
        hidden: Tensor<3>,
        mask: Tensor<2>,
        choices: usize,
        mode: Mode,
    ) -> Tensor<2> {
        let pooled = || self.bert.pooler.forward(hidden, mask, mode);
        let pooled = taps::within("bert", || taps::within("pooler", pooled));
        self.head(pooled, choices, mode)
    }

    /// pooled [B·N, H] → logits [B, N]
    fn head(&self, pooled: Tensor<2>, choices: usize, mode: Mode) -> Tensor<2> {
        let [sequences, hidden_size] = pooled.dims();
        let pooled = pooled.reshape([sequences, 1, hidden_size]);
        taps::within("classifier", || {
            let pooled = match mode.dropout(self.classifier_dropout, DropoutSite::Head) {
                Some((rate, key)) => ops::dropout(pooled, rate, key),
                None => pooled,
            };
            let logits = self.classifier.forward(pooled, mode); // [B·N, 1, 1]
            taps::output(logits.reshape([sequences / choices, choices]))
        })
    }
}

impl BertNetwork for MultipleChoice {
    const ARCHITECTURE: &'static str = "BertForMultipleChoice";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let bert = Bert::new(&mut parameters.enter("bert"), config);
        let mut inside = parameters.enter("classifier");
        Self {
            bert,
            classifier: Linear::of_head(&mut inside, config, 1),
            classifier_dropout: config.classifier_dropout(),
        }
    }
}
