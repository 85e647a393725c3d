//! What a transformer costs: its parameters, its operations, and the memory of its activations.

use stratoscope_diagnostics::Result;

use crate::problem::bad_size;

/// The sizes of a transformer, for a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkSize {
    name: String,
    layers: usize,
    hidden: usize,
    feed_forward: usize,
    heads: usize,
    /// Parameters outside of the layers: tables of embeddings, a pooler.
    others: f64,
    /// Tokens of a sequence.
    length: usize,
}

impl NetworkSize {
    /// BERT-base: 12 layers, 109 million parameters, sequences of 128 tokens. Source: Devlin et al. 2018, section 3.
    pub fn bert_base() -> Self {
        Self::bert("BERT-base", 12, 768, 12)
    }

    /// BERT-large: 24 layers, 335 million parameters, sequences of 128 tokens. Source: Devlin et al. 2018, section 3.
    pub fn bert_large() -> Self {
        Self::bert("BERT-large", 24, 1024, 16)
    }

    /// A model of 6.7 billion parameters, with sequences of 2048 tokens, as MPT-7B has: 32 layers of 4096 numbers.
    pub fn seven_billion() -> Self {
        let (hidden, vocabulary, length) = (4096.0, 50_368.0, 2048);
        Self {
            name: "7 billion".to_owned(),
            layers: 32,
            hidden: 4096,
            feed_forward: 16_384,
            heads: 32,
            others: (vocabulary + f64::from(length)) * hidden,
            length: 2048,
        }
    }

    /// Another one, without embeddings, whose feed-forward part has 4 times the numbers of a layer.
    ///
    /// # Errors
    /// SC0915 for a size of 0, or a number of heads that does not divide `hidden`.
    pub fn new(name: &str, layers: usize, hidden: usize, heads: usize) -> Result<Self> {
        for (what, size) in [("layers", layers), ("hidden", hidden), ("heads", heads)] {
            if !(1..=1 << 20).contains(&size) {
                return Err(bad_size(what, size, "from 1 to 1048576"));
            }
        }
        if !hidden.is_multiple_of(heads) {
            return Err(bad_size("heads", heads, "a divisor of `hidden`"));
        }
        Ok(Self {
            name: name.to_owned(),
            layers,
            hidden,
            feed_forward: 4 * hidden,
            heads,
            others: 0.0,
            length: 128,
        })
    }

    /// The same with sequences of so many tokens.
    ///
    /// # Errors
    /// SC0915 for 0, or more than 1048576.
    pub fn with_length(mut self, tokens: usize) -> Result<Self> {
        if !(1..=1 << 20).contains(&tokens) {
            return Err(bad_size("length", tokens, "from 1 to 1048576"));
        }
        self.length = tokens;
        Ok(self)
    }

    fn bert(name: &str, layers: usize, hidden: usize, heads: usize) -> Self {
        let size = hidden as f64;
        // Words, positions, two segments, LayerNorm; the pooler.
        let embeddings = (30_522.0 + 512.0 + 2.0) * size + 2.0 * size;
        Self {
            name: name.to_owned(),
            layers,
            hidden,
            feed_forward: 4 * hidden,
            heads,
            others: embeddings + size * size + size,
            length: 128,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its encoder layers.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Its attention heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// Tokens of a sequence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All parameters.
    pub fn parameters(&self) -> f64 {
        self.layers as f64 * self.of_layer() + self.others
    }

    /// Those outside of the layers.
    pub(super) fn others(&self) -> f64 {
        self.others
    }

    /// The parameters of a layer: 4 H² + 2 H F in matrices; 9 H + F in biases and two LayerNorms.
    pub(super) fn of_layer(&self) -> f64 {
        let (hidden, wide) = (self.hidden as f64, self.feed_forward as f64);
        4.0 * hidden * hidden + 2.0 * hidden * wide + 9.0 * hidden + wide
    }

    /// Floating-point operations of a sequence, forward and backward, without recomputation: each weight of a layer is multiplied
    /// and added once for each token, and again twice in the backward pass; two products of attention have S · H numbers for
    /// each token. For F = 4 H these are 72 S H² (1 + S / 6 H) of a layer: Narayanan et al. 2021, "Efficient Large-Scale
    /// Language Model Training on GPU Clusters Using Megatron-LM", appendix, without the vocabulary.
    pub(super) fn operations(&self) -> f64 {
        let (hidden, wide) = (self.hidden as f64, self.feed_forward as f64);
        let length = self.length as f64;
        let products = 4.0 * hidden * hidden + 2.0 * hidden * wide + 2.0 * length * hidden;
        3.0 * 2.0 * products * length * self.layers as f64
    }

    /// Numbers between two layers, for a sequence: S · H.
    pub(super) fn between(&self) -> f64 {
        (self.length * self.hidden) as f64
    }

    /// Bytes of the activations of a layer that the backward pass needs, in 16 bits, for a sequence on one of t devices that share
    /// the layer: S · H · (10 + 24 / t + 5 · heads · S / (H · t)). Source: Korthikanti et al. 2022, "Reducing Activation
    /// Recomputation in Large Transformer Models", equation 2.
    pub(super) fn activations(&self, tensor: f64) -> f64 {
        let scores = 5.0 * self.heads as f64 * self.length as f64 / self.hidden as f64;
        self.between() * (10.0 + (24.0 + scores) / tensor)
    }
}
