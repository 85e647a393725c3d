//! What ALBERT calls the tensors of our layers. Source: transformers v5.24.0, `modeling_albert.py`.

use super::renamed;

/// The layer that stands for all layers: our path below it, and ALBERT's.
const LAYER: [(&str, &str); 8] = [
    ("attention.self.query.", "attention.query."),
    ("attention.self.key.", "attention.key."),
    ("attention.self.value.", "attention.value."),
    ("attention.output.dense.", "attention.dense."),
    ("attention.output.LayerNorm.", "attention.LayerNorm."),
    ("intermediate.dense.", "ffn."),
    ("output.dense.", "ffn_output."),
    ("output.LayerNorm.", "full_layer_layer_norm."),
];

/// Names of the body outside of the layer.
const BODY: [(&str, &str); 2] = [
    ("pooler.dense.", "pooler."),
    (
        "embeddings_project.",
        "encoder.embedding_hidden_mapping_in.",
    ),
];

/// Names of the head of a masked language model.
const HEAD: [(&str, &str); 2] = [
    ("cls.predictions.transform.", "predictions."),
    ("cls.predictions.", "predictions."),
];

/// ALBERT's name of one of our tensors; `None` for a layer after the first, of which a file has none.
pub(super) fn tensor(ours: &str) -> Option<String> {
    let Some(body) = ours.strip_prefix("bert.") else {
        return renamed(ours, &HEAD).or_else(|| Some(ours.to_owned()));
    };
    let own = match body.strip_prefix("encoder.layer.") {
        Some(layers) => {
            let path = renamed(layers.strip_prefix("0.")?, &LAYER)?;
            format!("encoder.albert_layer_groups.0.albert_layers.0.{path}")
        }
        None => renamed(body, &BODY).unwrap_or_else(|| body.to_owned()),
    };
    Some(format!("albert.{own}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tensors() {
        let layer = "albert.encoder.albert_layer_groups.0.albert_layers.0.";
        for (ours, own) in LAYER {
            let found = tensor(&format!("bert.encoder.layer.0.{ours}weight"));
            assert_eq!(found, Some(format!("{layer}{own}weight")));
        }
        assert_eq!(tensor("bert.encoder.layer.1.output.dense.bias"), None);
        for (ours, own) in [
            ("bert.pooler.dense.bias", "albert.pooler.bias"),
            (
                "bert.embeddings_project.weight",
                "albert.encoder.embedding_hidden_mapping_in.weight",
            ),
            (
                "bert.embeddings.LayerNorm.bias",
                "albert.embeddings.LayerNorm.bias",
            ),
            (
                "cls.predictions.transform.dense.bias",
                "predictions.dense.bias",
            ),
            ("cls.predictions.bias", "predictions.bias"),
            ("classifier.weight", "classifier.weight"),
        ] {
            assert_eq!(tensor(ours).as_deref(), Some(own));
        }
    }
}
