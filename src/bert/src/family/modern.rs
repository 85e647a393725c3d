//! What ModernBERT calls the tensors of our layers. Source: transformers v4.57.1, `modeling_modernbert.py`.

use super::{Family, renamed};

/// The layers of ModernBERT: our path below a layer, and its own.
pub(super) const LAYER: [(&str, &str); 6] = [
    ("attention.LayerNorm.", "attn_norm."),
    ("attention.self.qkv.", "attn.Wqkv."),
    ("attention.output.dense.", "attn.Wo."),
    ("intermediate.LayerNorm.", "mlp_norm."),
    ("intermediate.dense.", "mlp.Wi."),
    ("output.dense.", "mlp.Wo."),
];

/// ModernBERT's name of one of our tensors.
pub(super) fn tensor(ours: &str) -> Option<String> {
    let Some(body) = ours.strip_prefix("bert.") else {
        let names = [
            ("head.LayerNorm.", "head.norm."),
            ("qa_outputs.", "classifier."),
        ];
        let head = renamed(ours, &names);
        let own = head.or_else(|| Family::ModernBert.predictions(ours));
        return own.or_else(|| Some(ours.to_owned()));
    };
    if let Some(layers) = body.strip_prefix("encoder.layer.") {
        let (layer, path) = layers.split_once('.')?;
        if let Some(part) = path.strip_prefix("output.LayerNorm.") {
            return Some(format!("model.final_norm.{part}"));
        }
        let path = renamed(path, &LAYER)?;
        return Some(format!("model.layers.{layer}.{path}"));
    }
    let names = [
        ("pooler.dense.", "head.dense."),
        ("pooler.LayerNorm.", "head.norm."),
        (
            "embeddings.word_embeddings.",
            "model.embeddings.tok_embeddings.",
        ),
        ("embeddings.LayerNorm.", "model.embeddings.norm."),
    ];
    renamed(body, &names)
}
