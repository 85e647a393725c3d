//! Models whose weights BERT's layers can hold: what they call BERT's fields and tensors, and where they differ. Source:
//! transformers v4.57.1, `modeling_distilbert.py`, `modeling_roberta.py`, `modeling_electra.py`, `modeling_modernbert.py`, v5.24.0,
//! `modeling_mpnet.py`, `modeling_deberta_v2.py`, `modeling_albert.py`, and the configurations beside them.

use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

use crate::config::Gelu;
use crate::ops;

mod albert;
mod modern;

/// A kind of model. A checkpoint is saved as what it was read as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    /// BERT itself.
    #[default]
    Bert,
    /// Sanh et al. 2019: no segments; the first token's vector goes through a dense layer and ReLU.
    DistilBert,
    /// Liu et al. 2019: positions are counted from the number after the padding token's; no segments.
    Roberta,
    /// Conneau et al. 2020: RoBERTa of many languages.
    XlmRoberta,
    /// Martin et al. 2020: RoBERTa of French.
    Camembert,
    /// Clark et al. 2020: its discriminator, whose tables may hold shorter vectors than the layers; the first token's
    /// vector goes through a dense layer and GELU.
    Electra,
    /// Warner et al. 2024: rotated positions, local and global attention, no biases, no segments
    /// ([`PreNormLayer`](crate::pre_norm::PreNormLayer)). The Ettin encoders are such models.
    ModernBert,
    /// Song et al. 2020: RoBERTa's positions and heads, and numbers for distances in the scores of attention.
    MpNet,
    /// He et al. 2021: DeBERTa-v2 and -v3: no vectors for positions, but for distances
    /// ([`RelativePositions`](crate::relative::RelativePositions)); no segments; the first token's vector goes through a dense
    /// layer and GELU.
    Deberta,
    /// Lan et al. 2020: all layers are one layer, which is computed several times
    /// ([`Encoder`](crate::encoder::Encoder)); tables of shorter vectors than the layers take.
    Albert,
}

/// The layers of DistilBERT: BERT's path below a layer, and its own.
const DISTILBERT_LAYER: [(&str, &str); 8] = [
    ("attention.self.query.", "attention.q_lin."),
    ("attention.self.key.", "attention.k_lin."),
    ("attention.self.value.", "attention.v_lin."),
    ("attention.output.dense.", "attention.out_lin."),
    ("attention.output.LayerNorm.", "sa_layer_norm."),
    ("intermediate.dense.", "ffn.lin1."),
    ("output.dense.", "ffn.lin2."),
    ("output.LayerNorm.", "output_layer_norm."),
];

/// The attention of MPNet: BERT's path below a layer, and its own. The rest of a layer is called as BERT's.
const MPNET_LAYER: [(&str, &str); 5] = [
    ("attention.self.query.", "attention.attn.q."),
    ("attention.self.key.", "attention.attn.k."),
    ("attention.self.value.", "attention.attn.v."),
    ("attention.output.dense.", "attention.attn.o."),
    ("attention.output.LayerNorm.", "attention.LayerNorm."),
];

/// The attention of DeBERTa, as that of MPNet.
const DEBERTA_LAYER: [(&str, &str); 3] = [
    ("attention.self.query.", "attention.self.query_proj."),
    ("attention.self.key.", "attention.self.key_proj."),
    ("attention.self.value.", "attention.self.value_proj."),
];

/// The path with its beginning in the words of the family; `None` where none of the names begins it.
fn renamed(path: &str, names: &[(&str, &str)]) -> Option<String> {
    let mut names = names.iter();
    names.find_map(|(ours, own)| path.strip_prefix(ours).map(|part| format!("{own}{part}")))
}

/// The head of a masked language model: BERT's path, DistilBERT's, RoBERTa's, that of ELECTRA's generator, ModernBERT's.
const PREDICTIONS: [[&str; 5]; 3] = [
    [
        "cls.predictions.transform.dense.",
        "vocab_transform.",
        "lm_head.dense.",
        "generator_predictions.dense.",
        "head.dense.",
    ],
    [
        "cls.predictions.transform.LayerNorm.",
        "vocab_layer_norm.",
        "lm_head.layer_norm.",
        "generator_predictions.LayerNorm.",
        "head.norm.",
    ],
    [
        "cls.predictions.",
        "vocab_projector.",
        "lm_head.",
        "generator_lm_head.",
        "decoder.",
    ],
];

impl Family {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Bert,
        Self::DistilBert,
        Self::Roberta,
        Self::XlmRoberta,
        Self::Camembert,
        Self::Electra,
        Self::ModernBert,
        Self::MpNet,
        Self::Deberta,
        Self::Albert,
    ];

    /// What `model_type` says in `config.json`.
    pub fn model_type(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::DistilBert => "distilbert",
            Self::Roberta => "roberta",
            Self::XlmRoberta => "xlm-roberta",
            Self::Camembert => "camembert",
            Self::Electra => "electra",
            Self::ModernBert => "modernbert",
            Self::MpNet => "mpnet",
            Self::Deberta => "deberta-v2",
            Self::Albert => "albert",
        }
    }

    /// What the names of its classes begin with.
    pub(crate) fn class_prefix(self) -> &'static str {
        match self {
            Self::Bert => "Bert",
            Self::DistilBert => "DistilBert",
            Self::Roberta => "Roberta",
            Self::XlmRoberta => "XLMRoberta",
            Self::Camembert => "Camembert",
            Self::Electra => "Electra",
            Self::ModernBert => "ModernBert",
            Self::MpNet => "MPNet",
            Self::Deberta => "DebertaV2",
            Self::Albert => "Albert",
        }
    }

    /// The name of its class for a class of BERT: `BertForTokenClassification` → `RobertaForTokenClassification`.
    pub(crate) fn class(self, of_bert: &str) -> String {
        let task = of_bert.strip_prefix("Bert").unwrap_or(of_bert);
        format!("{}{task}", self.class_prefix())
    }

    /// Whether positions are counted and heads are made as in RoBERTa, which is so in any language and in MPNet.
    fn is_like_roberta(self) -> bool {
        matches!(
            self,
            Self::Roberta | Self::XlmRoberta | Self::Camembert | Self::MpNet
        )
    }

    /// The name of a tensor of a masked language model's head.
    fn predictions(self, of_bert: &str) -> Option<String> {
        PREDICTIONS
            .iter()
            .find_map(|[bert, distilbert, roberta, electra, modernbert]| {
                let part = of_bert.strip_prefix(bert)?;
                let own = match self {
                    Self::Bert | Self::Deberta | Self::Albert => bert,
                    Self::DistilBert => distilbert,
                    Self::Roberta | Self::XlmRoberta | Self::Camembert | Self::MpNet => roberta,
                    Self::Electra => electra,
                    Self::ModernBert => modernbert,
                };
                Some(format!("{own}{part}"))
            })
    }

    /// What its `config.json` calls a field of BERT's; `None` where it has no such field.
    pub(crate) fn field(self, of_bert: &str) -> Option<&str> {
        match (self, of_bert) {
            (Self::DistilBert, "hidden_size") => Some("dim"),
            (Self::DistilBert, "num_hidden_layers") => Some("n_layers"),
            (Self::DistilBert, "num_attention_heads") => Some("n_heads"),
            (Self::DistilBert, "intermediate_size") => Some("hidden_dim"),
            (Self::DistilBert, "hidden_act") => Some("activation"),
            (Self::DistilBert, "hidden_dropout_prob") => Some("dropout"),
            (Self::DistilBert, "attention_probs_dropout_prob") => Some("attention_dropout"),
            (Self::DistilBert, "classifier_dropout") => Some("seq_classif_dropout"),
            (Self::DistilBert, "type_vocab_size" | "layer_norm_eps") => None,
            (Self::ModernBert, "hidden_act") => Some("hidden_activation"),
            (Self::ModernBert, "hidden_dropout_prob") => Some("embedding_dropout"),
            (Self::ModernBert, "attention_probs_dropout_prob") => Some("attention_dropout"),
            (Self::ModernBert, "layer_norm_eps") => Some("norm_eps"),
            (Self::ModernBert, "type_vocab_size") => None,
            (Self::MpNet | Self::Deberta, "type_vocab_size") => None,
            (Self::Deberta, "classifier_dropout") => Some("cls_dropout"),
            (Self::Albert, "classifier_dropout") => Some("classifier_dropout_prob"),
            (Self::Electra | Self::Albert, "embedding_size") => Some("embedding_size"),
            (_, "embedding_size") => None,
            _ => Some(of_bert),
        }
    }

    /// A size by its name in BERT, where the file does not say.
    pub(crate) fn default_size(self, of_bert: &str) -> usize {
        match (self, of_bert) {
            (Self::DistilBert, "num_hidden_layers") => 6,
            (Self::DistilBert, "type_vocab_size") => 1,
            (Self::Electra, "embedding_size") => 128,
            (Self::Electra, "hidden_size") => 256,
            (Self::Electra, "num_attention_heads") => 4,
            (Self::Electra, "intermediate_size") => 1024,
            (Self::ModernBert, "vocab_size") => 50_368,
            (Self::ModernBert, "num_hidden_layers") => 22,
            (Self::ModernBert, "intermediate_size") => 1152,
            (Self::ModernBert, "max_position_embeddings") => 8192,
            (Self::ModernBert, "type_vocab_size") => 1,
            (Self::MpNet, "vocab_size") => 30_527,
            (Self::Deberta, "vocab_size") => 128_100,
            (Self::Deberta, "hidden_size") => 1536,
            (Self::Deberta, "num_hidden_layers" | "num_attention_heads") => 24,
            (Self::Deberta, "intermediate_size") => 6144,
            (Self::MpNet | Self::Deberta, "type_vocab_size") => 1,
            (Self::Albert, "vocab_size") => 30_000,
            (Self::Albert, "embedding_size") => 128,
            (Self::Albert, "hidden_size") => 4096,
            (Self::Albert, "num_attention_heads") => 64,
            (Self::Albert, "intermediate_size") => 16_384,
            (_, "vocab_size") => 30_522,
            (_, "num_hidden_layers" | "num_attention_heads") => 12,
            (_, "intermediate_size") => 3072,
            (_, "max_position_embeddings") => 512,
            (_, "type_vocab_size" | "num_labels") => 2,
            // `hidden_size` and `embedding_size`
            _ => 768,
        }
    }

    /// The padding token where the file does not say.
    pub(crate) fn default_pad(self) -> usize {
        match self {
            Self::ModernBert => 50_283,
            family => usize::from(family.is_like_roberta()),
        }
    }

    /// The rates of dropout where the file does not say.
    pub(crate) fn default_dropout(self) -> f64 {
        match self {
            Self::ModernBert | Self::Albert => 0.0,
            _ => 0.1,
        }
    }

    /// The rate of dropout before the classifier where the file does not say; `None`: that of the layers.
    pub(crate) fn default_classifier_dropout(self) -> Option<f64> {
        match self {
            // Its dropouts have nothing to do with each other.
            Self::ModernBert => Some(0.0),
            Self::Albert => Some(0.1),
            _ => None,
        }
    }

    /// The activations of its feed-forward parts that are computed. The first is that of a file that does not say.
    pub(crate) fn activations(self) -> &'static [Gelu] {
        match self {
            // The first version of the published models has the exact one.
            Self::Albert => &[Gelu::Tanh, Gelu::Exact],
            _ => &[Gelu::Exact],
        }
    }

    /// Whether all encoder layers are one layer, which is computed several times.
    pub fn shares_layers(self) -> bool {
        self == Self::Albert
    }

    /// Whether a dense layer follows the embeddings even if it maps their vectors to others of the same length.
    pub(crate) fn always_projects(self) -> bool {
        self == Self::Albert
    }

    /// Whether the feed-forward part has a dropout before its residual connection.
    pub(crate) fn drops_feed_forward(self) -> bool {
        // transformers makes one for ALBERT and does not use it.
        self != Self::Albert
    }

    /// What LayerNorm adds to the variance where the file does not say.
    pub(crate) fn default_eps(self) -> f64 {
        match self {
            Self::ModernBert => 1e-5,
            Self::Deberta => 1e-7,
            _ => 1e-12,
        }
    }

    /// The number of the first position: the entries of the table before it are not used.
    pub(crate) fn first_position(self, pad: Option<usize>) -> usize {
        match self.is_like_roberta() {
            true => pad.unwrap_or(1) + 1,
            false => 0,
        }
    }

    /// Whether segment types are learned; else their vectors are zero and stay so.
    pub(crate) fn has_types(self) -> bool {
        !matches!(self, Self::DistilBert | Self::MpNet)
    }

    /// What the names of the body's tensors begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Bert => "bert.",
            Self::DistilBert => "distilbert.",
            Self::Roberta | Self::XlmRoberta | Self::Camembert => "roberta.",
            Self::Electra => "electra.",
            Self::ModernBert => "model.",
            Self::MpNet => "mpnet.",
            Self::Deberta => "deberta.",
            Self::Albert => "albert.",
        }
    }

    /// Whether a tensor of the file is of the layer that all heads of its family have: a checkpoint for another task has it, too.
    pub(crate) fn is_of_all_heads(self, in_file: &str) -> bool {
        self == Self::ModernBert && in_file.starts_with("head.")
    }

    /// Its name of a tensor of `architecture`, a class of BERT; `None` where it has no such tensor.
    pub(crate) fn tensor(self, of_bert: &str, architecture: &str) -> Option<String> {
        let body = of_bert.strip_prefix("bert.");
        match self {
            Self::Bert => Some(of_bert.to_owned()),
            Self::DistilBert => {
                let Some(body) = body else {
                    let own = self.predictions(of_bert);
                    return own.or_else(|| Some(of_bert.to_owned()));
                };
                if let Some(part) = body.strip_prefix("pooler.dense.") {
                    return Some(format!("pre_classifier.{part}"));
                }
                if body.starts_with("embeddings.token_type_embeddings.") {
                    return None;
                }
                let Some(layers) = body.strip_prefix("encoder.layer.") else {
                    return Some(format!("distilbert.{body}"));
                };
                let (layer, path) = layers.split_once('.')?;
                let path = renamed(path, &DISTILBERT_LAYER)?;
                Some(format!("distilbert.transformer.layer.{layer}.{path}"))
            }
            Self::ModernBert => modern::tensor(of_bert),
            Self::Deberta => self.of_deberta(of_bert),
            Self::Albert => albert::tensor(of_bert),
            _ => {
                // The head is two layers; BERT's pooler does what the first does.
                let is_classifier = architecture == "BertForSequenceClassification";
                let head = |prefix: &str, layer: &str| {
                    let part = of_bert.strip_prefix(prefix)?;
                    Some(format!("classifier.{layer}.{part}"))
                };
                match body {
                    Some(_) if is_classifier && of_bert.starts_with("bert.pooler.dense.") => {
                        head("bert.pooler.dense.", "dense")
                    }
                    // ELECTRA's body has no pooler; this head has one of its own.
                    Some(body) if self == Self::Electra && body.starts_with("pooler.dense.") => {
                        let part = body.strip_prefix("pooler.dense.")?;
                        Some(format!("sequence_summary.summary.{part}"))
                    }
                    Some(body) => self.of_body(body),
                    None if is_classifier => {
                        head("classifier.", "out_proj").or_else(|| Some(of_bert.to_owned()))
                    }
                    None => (self.predictions(of_bert)).or_else(|| Some(of_bert.to_owned())),
                }
            }
        }
    }

    /// Its name of a tensor of the body, of a family whose body is made as BERT's.
    fn of_body(self, body: &str) -> Option<String> {
        let prefix = self.prefix();
        let (layer, relative): (&[_], &[_]) = match self {
            Self::MpNet => {
                let table = (
                    "encoder.relative.table.",
                    "encoder.relative_attention_bias.",
                );
                (&MPNET_LAYER, &[table])
            }
            Self::Deberta => {
                let table = ("encoder.relative.table.", "encoder.rel_embeddings.");
                let norm = ("encoder.relative.LayerNorm.", "encoder.LayerNorm.");
                (&DEBERTA_LAYER, &[table, norm])
            }
            _ => (&[], &[]),
        };
        if !self.has_types() && body.starts_with("embeddings.token_type_embeddings.") {
            return None;
        }
        if let Some((number, path)) = body
            .strip_prefix("encoder.layer.")
            .and_then(|layers| layers.split_once('.'))
        {
            let path = renamed(path, layer).unwrap_or_else(|| path.to_owned());
            return Some(format!("{prefix}encoder.layer.{number}.{path}"));
        }
        let body = renamed(body, relative).unwrap_or_else(|| body.to_owned());
        Some(format!("{prefix}{body}"))
    }

    /// DeBERTa's name of one of our tensors. Its pooler is no part of the body.
    fn of_deberta(self, ours: &str) -> Option<String> {
        let Some(body) = ours.strip_prefix("bert.") else {
            return Some(ours.to_owned());
        };
        if body.starts_with("pooler.") {
            return Some(body.to_owned());
        }
        self.of_body(body)
    }

    /// What follows the dense layer on the first token's vector.
    pub(crate) fn pooled(self, dense: Tensor<3>) -> Tensor<3> {
        match self {
            Self::DistilBert => activation::relu(dense),
            // burn's own GELU has the gradient of its tanh approximation on GPUs.
            Self::Electra | Self::ModernBert | Self::Deberta => ops::gelu(dense),
            _ => activation::tanh(dense),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tensors() {
        let classifier = "BertForSequenceClassification";
        let tagger = "BertForTokenClassification";
        let layer = "bert.encoder.layer.3.";
        let cases = [
            (
                Family::Bert,
                classifier,
                "bert.pooler.dense.bias",
                Some("bert.pooler.dense.bias"),
            ),
            (
                Family::DistilBert,
                classifier,
                "classifier.bias",
                Some("classifier.bias"),
            ),
            (
                Family::DistilBert,
                classifier,
                "bert.pooler.dense.bias",
                Some("pre_classifier.bias"),
            ),
            (
                Family::DistilBert,
                tagger,
                "bert.embeddings.LayerNorm.bias",
                Some("distilbert.embeddings.LayerNorm.bias"),
            ),
            (
                Family::DistilBert,
                tagger,
                "bert.embeddings.token_type_embeddings.weight",
                None,
            ),
            (
                Family::Roberta,
                classifier,
                "classifier.bias",
                Some("classifier.out_proj.bias"),
            ),
            (
                Family::Roberta,
                classifier,
                "bert.pooler.dense.bias",
                Some("classifier.dense.bias"),
            ),
            (
                Family::Camembert,
                tagger,
                "classifier.bias",
                Some("classifier.bias"),
            ),
            (
                Family::XlmRoberta,
                tagger,
                "bert.pooler.dense.bias",
                Some("roberta.pooler.dense.bias"),
            ),
            (
                Family::Electra,
                classifier,
                "bert.pooler.dense.bias",
                Some("classifier.dense.bias"),
            ),
            (
                Family::Electra,
                "BertForMultipleChoice",
                "bert.pooler.dense.bias",
                Some("sequence_summary.summary.bias"),
            ),
            (
                Family::Electra,
                tagger,
                "bert.embeddings_project.weight",
                Some("electra.embeddings_project.weight"),
            ),
            (
                Family::ModernBert,
                classifier,
                "bert.pooler.LayerNorm.weight",
                Some("head.norm.weight"),
            ),
            (
                Family::ModernBert,
                tagger,
                "head.dense.weight",
                Some("head.dense.weight"),
            ),
            (
                Family::MpNet,
                classifier,
                "bert.pooler.dense.weight",
                Some("classifier.dense.weight"),
            ),
            (
                Family::MpNet,
                tagger,
                "bert.encoder.relative.table.weight",
                Some("mpnet.encoder.relative_attention_bias.weight"),
            ),
            (
                Family::MpNet,
                tagger,
                "bert.encoder.layer.1.attention.output.LayerNorm.bias",
                Some("mpnet.encoder.layer.1.attention.LayerNorm.bias"),
            ),
            (
                Family::Deberta,
                classifier,
                "bert.pooler.dense.weight",
                Some("pooler.dense.weight"),
            ),
            (
                Family::Deberta,
                tagger,
                "bert.encoder.relative.LayerNorm.bias",
                Some("deberta.encoder.LayerNorm.bias"),
            ),
            (
                Family::Deberta,
                tagger,
                "bert.encoder.layer.1.attention.self.key.bias",
                Some("deberta.encoder.layer.1.attention.self.key_proj.bias"),
            ),
            (
                Family::ModernBert,
                tagger,
                "bert.embeddings.word_embeddings.weight",
                Some("model.embeddings.tok_embeddings.weight"),
            ),
        ];
        for (family, architecture, of_bert, expected) in cases {
            let found = family.tensor(of_bert, architecture);
            assert_eq!(found.as_deref(), expected, "{family:?} {of_bert}");
        }
        let head = "cls.predictions.transform.LayerNorm.bias";
        for (family, bias, norm) in [
            (Family::Bert, "cls.predictions.bias", head),
            (
                Family::DistilBert,
                "vocab_projector.bias",
                "vocab_layer_norm.bias",
            ),
            (Family::Roberta, "lm_head.bias", "lm_head.layer_norm.bias"),
            (
                Family::Electra,
                "generator_lm_head.bias",
                "generator_predictions.LayerNorm.bias",
            ),
            (Family::ModernBert, "decoder.bias", "head.norm.bias"),
        ] {
            let name = |of_bert: &str| family.tensor(of_bert, "BertForMaskedLM");
            assert_eq!(name("cls.predictions.bias").as_deref(), Some(bias));
            assert_eq!(name(head).as_deref(), Some(norm));
        }
        let of_layer =
            |family: Family, path: &str| family.tensor(&format!("{layer}{path}"), tagger);
        for (bert, own) in DISTILBERT_LAYER {
            let expected = format!("distilbert.transformer.layer.3.{own}weight");
            assert_eq!(
                of_layer(Family::DistilBert, &format!("{bert}weight")),
                Some(expected)
            );
        }
        for (ours, own) in modern::LAYER {
            let expected = format!("model.layers.3.{own}weight");
            assert_eq!(
                of_layer(Family::ModernBert, &format!("{ours}weight")),
                Some(expected)
            );
        }
        let last = of_layer(Family::ModernBert, "output.LayerNorm.weight");
        assert_eq!(last.as_deref(), Some("model.final_norm.weight"));
        let query = of_layer(Family::Roberta, "attention.self.query.bias");
        assert_eq!(
            query.as_deref(),
            Some("roberta.encoder.layer.3.attention.self.query.bias")
        );
    }
}
