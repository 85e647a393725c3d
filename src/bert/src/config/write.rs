//! Writing `config.json`.

use serde_json::{Map, Value, json};

use super::BertConfig;

impl BertConfig {
    /// The text of `config.json` for a model of `architecture`: every field that was read, with the
    /// values now in force.
    pub fn to_json(&self, architecture: &str) -> String {
        let mut file = self.file.clone();
        file.remove("trained_length");
        let family = self.family;
        let mut set = |name: &str, value: Value| {
            if let Some(name) = family.field(name) {
                file.insert(name.to_owned(), value);
            }
        };
        set("architectures", json!([family.class(architecture)]));
        set("model_type", json!(family.model_type()));
        set("vocab_size", json!(self.vocab_size));
        set("embedding_size", json!(self.embedding_width()));
        set("hidden_size", json!(self.hidden_size));
        set("num_hidden_layers", json!(self.num_hidden_layers));
        set("num_attention_heads", json!(self.num_attention_heads));
        set("intermediate_size", json!(self.intermediate_size));
        set("hidden_act", json!(self.gelu.name()));
        set("hidden_dropout_prob", json!(self.hidden_dropout_prob));
        set(
            "attention_probs_dropout_prob",
            json!(self.attention_probs_dropout_prob),
        );
        set(
            "max_position_embeddings",
            json!(self.max_position_embeddings + family.first_position(self.pad_token_id)),
        );
        set("type_vocab_size", json!(self.type_vocab_size));
        set("initializer_range", json!(self.initializer_range));
        set("layer_norm_eps", json!(self.layer_norm_eps));
        set("pad_token_id", json!(self.pad_token_id));
        set("classifier_dropout", json!(self.classifier_dropout));
        let by_index = self.labels.iter().enumerate();
        let id2label: Map<String, Value> = by_index
            .clone()
            .map(|(index, name)| (index.to_string(), json!(name)))
            .collect();
        let label2id: Map<String, Value> = by_index
            .map(|(index, name)| (name.clone(), json!(index)))
            .collect();
        if let Some(modern) = &self.modern {
            set("mlp_dropout", json!(modern.mlp_dropout_prob));
        }
        if family.default_classifier_dropout().is_some() {
            // It takes no `null`.
            set("classifier_dropout", json!(self.classifier_dropout()));
        }
        set("id2label", Value::Object(id2label));
        set("label2id", Value::Object(label2id));
        // What transformers would otherwise guess from the labels' type at the first batch.
        let binary = self
            .binary_labels
            .as_ref()
            .filter(|_| self.num_labels() == 1 && !self.multi_label);
        let problem_type = match (self.num_labels(), binary) {
            _ if self.multi_label => "multi_label_classification",
            (1, Some(_)) => "multi_label_classification",
            (1, None) => "regression",
            _ => "single_label_classification",
        };
        // Only that class has one.
        if architecture == "BertForSequenceClassification" {
            set("problem_type", json!(problem_type));
        }
        if let Some(length) = self.trained_length {
            set("trained_length", json!(length));
        }
        match binary {
            Some(names) => set("binary_labels", json!(names)),
            // One output of this type is otherwise one that decides between two classes.
            None if self.multi_label && self.num_labels() == 1 => set("binary_labels", json!([])),
            None => drop(file.remove("binary_labels")),
        }
        // The weights are written as float32, whatever the file said before.
        let is_old = file.contains_key("torch_dtype");
        let dtype = if is_old { "torch_dtype" } else { "dtype" };
        file.insert(dtype.to_owned(), json!("float32"));
        format!("{:#}\n", Value::Object(file))
    }
}
