//! The token behind a mask: the network of transformers' `BertForMaskedLM`. Checkpoint keys `bert.*` and `cls.predictions.*`;
//! the decoder's weights are the word embeddings, and only its bias is a variable of its own. Source: Devlin et al. 2019,
//! section 3.1; transformers v4.57.1 `modeling_bert.py`, `BertLMPredictionHead`.
//! Dimensions: B sequences, S positions, N tokens to predict, H = hidden_size,
//! E = embedding_width, V = vocab_size.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor};

use crate::batch::BatchTensors;
use crate::body::{Body, BodyOutput};
use crate::config::{BertConfig, Gelu};
use crate::heads::BertNetwork;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::Mode;
use crate::ops;
use crate::parameters::{Initial, Parameters};
use crate::{operation, taps};

/// The body, and the head that predicts tokens.
#[derive(Module, Debug)]
pub struct MaskedLm {
    /// The body.
    pub bert: Body,
    /// The head.
    pub cls: Cls,
}

/// What `cls` holds: the predictions.
#[derive(Module, Debug)]
pub struct Cls {
    /// The head.
    pub predictions: Predictions,
}

/// A dense layer with GELU, normalized, and a product with the word embeddings.
#[derive(Module, Debug)]
pub struct Predictions {
    /// Added to the output of each token of the vocabulary, `[V]`.
    pub bias: Param<Tensor<1>>,
    /// What comes before the product.
    pub transform: Transform,
}

/// H → E, GELU, LayerNorm. ModernBERT has it in front of other heads, too.
#[derive(Module, Debug)]
pub struct Transform {
    /// H → E.
    pub dense: Linear,
    /// Of the activation.
    pub layer_norm: LayerNorm,
    #[module(skip)]
    gelu: Gelu,
}

/// The logits and the intermediate results.
#[derive(Clone, Debug)]
pub struct MaskedLmOutput {
    /// The outputs of the body.
    pub bert: BodyOutput,
    /// Before any softmax, [N, V].
    pub logits: Tensor<2>,
}

impl MaskedLm {
    /// The logits of the tokens at `places`, numbers of positions of the whole batch: S·row + position. The others are
    /// not decoded, as V numbers for each would be most of a step's memory.
    ///
    /// # Shapes
    /// ids, mask and types [B, S], N places → logits [N, V]
    pub fn forward(&self, batch: BatchTensors, places: Tensor<1, Int>, mode: Mode) -> Tensor<2> {
        self.forward_all(batch, places, mode).logits
    }

    /// [`Self::forward`] with all intermediate results.
    pub fn forward_all(
        &self,
        batch: BatchTensors,
        places: Tensor<1, Int>,
        mode: Mode,
    ) -> MaskedLmOutput {
        let bert = self.bert.forward(batch, mode);
        let hidden = bert.last_hidden_state();
        let [rows, seq, width] = hidden.dims();
        let [count] = places.dims();
        let logits = taps::within("cls.predictions", || {
            let hidden = operation!("tokens to predict", [hidden], {
                let picked = hidden.reshape([rows * seq, width]).select(0, places);
                picked.reshape([1, count, width])
            });
            let hidden = taps::within("transform", || {
                self.cls.predictions.transform.forward(hidden, mode)
            });
            let decoder = self.bert.embeddings.word_embeddings.weight.val();
            let bias = self.cls.predictions.bias.val();
            taps::output(ops::linear(hidden, decoder, bias))
        });
        let [_, count, vocabulary] = logits.dims();
        let logits = logits.reshape([count, vocabulary]);
        MaskedLmOutput { bert, logits }
    }
}

impl Transform {
    /// Takes the parameters of the two layers; without biases in ModernBERT.
    pub(crate) fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let (inputs, width) = (config.hidden_size, config.embedding_width());
        let (eps, gelu) = (config.layer_norm_eps, config.gelu);
        let mut inside = parameters.enter("dense");
        let Some(modern) = &config.modern else {
            let dense = Linear::new(&mut inside, inputs, width);
            let layer_norm = LayerNorm::new(&mut parameters.enter("LayerNorm"), width, eps);
            return Self {
                dense,
                layer_norm,
                gelu,
            };
        };
        let initial = modern.initial(config.deviation_of_sums());
        let dense = Linear::without_bias(&mut inside, [inputs, width], initial);
        let mut inside = parameters.enter("LayerNorm");
        let layer_norm = LayerNorm::without_bias(&mut inside, width, eps);
        Self {
            dense,
            layer_norm,
            gelu,
        }
    }

    /// The one that ModernBERT has in front of a head for tokens, under `head`.
    pub(crate) fn of_head(parameters: &mut Parameters, config: &BertConfig) -> Option<Self> {
        (config.modern.as_ref()).map(|_| Self::new(&mut parameters.enter("head"), config))
    }

    /// # Shapes
    /// [B, S, H] → [B, S, E]
    pub(crate) fn forward(&self, hidden: Tensor<3>, mode: Mode) -> Tensor<3> {
        let dense = taps::within("dense", || {
            taps::output(self.dense.forward_then(hidden, self.gelu, mode))
        });
        taps::output(self.layer_norm.forward(dense))
    }
}

impl BertNetwork for MaskedLm {
    const ARCHITECTURE: &'static str = "BertForMaskedLM";

    fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let bert = Body::new(&mut parameters.enter("bert"), config);
        let mut cls = parameters.enter("cls");
        let mut inside = cls.enter("predictions");
        let bias = inside.take("bias", [config.vocab_size], Initial::Zeros);
        let transform = Transform::new(&mut inside.enter("transform"), config);
        let predictions = Predictions { bias, transform };
        Self {
            bert,
            cls: Cls { predictions },
        }
    }
}
