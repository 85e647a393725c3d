//! The sum of word, position and segment vectors, normalized. Checkpoint keys `bert.embeddings.*`.
//! Source: Devlin et al. 2019, section 3 and figure 2; google-research/bert@eedf571 `modeling.py`,
//! `embedding_lookup` and `embedding_postprocessor`.
//! ModernBERT and DeBERTa have a vector for the word only: positions are in their attention.
//! Dimensions: B sequences, S positions, E = embedding_width, which is H = hidden_size but for ALBERT and
//! ELECTRA's small models.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::batch::BatchTensors;
use crate::config::BertConfig;
use crate::embedding_table::EmbeddingTable;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mode::{DropoutSite, Mode};
use crate::operation;
use crate::ops::{self, Lookup};
use crate::parameters::Parameters;
use crate::taps;

/// Tokens → vectors: the sum of a vector for the word, one for the position and one for the segment.
#[derive(Module, Debug)]
pub struct Embeddings {
    /// [vocab_size, E]; the padding token's vector is not trained through the lookup.
    pub word_embeddings: EmbeddingTable,
    /// [max_position_embeddings, E]; positions are learned, not computed. None in ModernBERT and DeBERTa.
    pub position_embeddings: Option<EmbeddingTable>,
    /// [type_vocab_size, E]. None in ModernBERT and DeBERTa.
    pub token_type_embeddings: Option<EmbeddingTable>,
    /// Over E; key `LayerNorm`.
    pub layer_norm: LayerNorm,
    #[module(skip)]
    hidden_dropout_prob: f64,
}

impl Embeddings {
    /// Takes the parameters under `embeddings`.
    pub fn new(parameters: &mut Parameters, config: &BertConfig) -> Self {
        let width = config.embedding_width();
        let mut table = |name: &str, entries: usize, padding_index: Option<usize>| {
            let mut inside = parameters.enter(name);
            EmbeddingTable::new(&mut inside, entries, width, padding_index)
        };
        let word_embeddings = table("word_embeddings", config.vocab_size, config.pad_token_id);
        if !config.has_positions() {
            let mut inside = parameters.enter("LayerNorm");
            let eps = config.layer_norm_eps;
            return Self {
                word_embeddings,
                position_embeddings: None,
                token_type_embeddings: None,
                layer_norm: match config.modern {
                    Some(_) => LayerNorm::without_bias(&mut inside, width, eps),
                    None => LayerNorm::new(&mut inside, width, eps),
                },
                hidden_dropout_prob: config.hidden_dropout_prob,
            };
        }
        let position_embeddings =
            table("position_embeddings", config.max_position_embeddings, None);
        // A model without segments has one type, whose vector is zero and gets no gradient.
        let untrained = (!config.family.has_types()).then_some(0);
        let token_type_embeddings =
            table("token_type_embeddings", config.type_vocab_size, untrained);
        Self {
            word_embeddings,
            position_embeddings: Some(position_embeddings),
            token_type_embeddings: Some(token_type_embeddings),
            layer_norm: LayerNorm::new(
                &mut parameters.enter("LayerNorm"),
                width,
                config.layer_norm_eps,
            ),
            hidden_dropout_prob: config.hidden_dropout_prob,
        }
    }

    /// # Shapes
    /// ids and types [B, S], S at most `max_position_embeddings` → [B, S, E]
    pub fn forward(&self, batch: &BatchTensors, mode: Mode) -> Tensor<3> {
        let dropout = mode.dropout(self.hidden_dropout_prob, DropoutSite::Embeddings);
        if let Some(lookup) = self.lookup(batch)
            && ops::embeds(&lookup)
        {
            taps::inside("sum", || self.sum(batch));
            return taps::output(self.layer_norm.forward_embedded(lookup, dropout));
        }
        let sum = self.sum(batch);
        taps::inside("sum", || sum.clone());
        let normalized = self.layer_norm.forward(sum);
        taps::output(match dropout {
            Some((rate, key)) => ops::dropout(normalized, rate, key),
            None => normalized,
        })
    }

    /// What is added up, where it is three vectors.
    fn lookup(&self, batch: &BatchTensors) -> Option<Lookup> {
        Some(Lookup {
            ids: batch.input_ids.clone(),
            type_ids: batch.token_type_ids.clone(),
            words: self.word_embeddings.whole(),
            types: self.token_type_embeddings.as_ref()?.whole(),
            positions: self.position_embeddings.as_ref()?.whole().0,
        })
    }

    /// The vectors of each token, added up.
    fn sum(&self, batch: &BatchTensors) -> Tensor<3> {
        let [_, sequence] = batch.input_ids.dims();
        let words = taps::within("word_embeddings", || {
            self.word_embeddings.forward(batch.input_ids.clone())
        });
        let (Some(of_types), Some(of_positions)) =
            (&self.token_type_embeddings, &self.position_embeddings)
        else {
            return words;
        };
        let types = taps::within("token_type_embeddings", || {
            of_types.forward(batch.token_type_ids.clone())
        });
        let positions = of_positions.first(sequence).unsqueeze_dim::<3>(0); // [1, S, E]
        // The reference's order of summation: words + types, then positions.
        let sum = operation!("sum", [words, types, positions], words + types + positions);
        ops::rounded(sum)
    }
}

/// The layer after the embeddings that makes H numbers of E, where there is a difference, and in ALBERT. Its key
/// `embeddings_project` is beside that of the embeddings. Source: transformers v4.57.1 `modeling_electra.py`, `ElectraModel`;
/// v5.24.0 `modeling_albert.py`, `AlbertTransformer`.
pub(crate) fn projection(parameters: &mut Parameters, config: &BertConfig) -> Option<Linear> {
    let width = config.embedding_size?;
    let mut inside = parameters.enter("embeddings_project");
    Some(Linear::new(&mut inside, width, config.hidden_size))
}

/// The embeddings as the encoder takes them.
///
/// # Shapes
/// [B, S, E] → [B, S, H]
pub(crate) fn projected(layer: Option<&Linear>, embedded: Tensor<3>, mode: Mode) -> Tensor<3> {
    match layer {
        Some(layer) => taps::within("embeddings_project", || {
            taps::output(layer.forward(embedded, mode))
        }),
        None => embedded,
    }
}
