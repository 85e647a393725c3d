//! What whoever runs the file has to know beside the graph: texts by a name, lists as JSON.

use std::any::Any;

use serde_json::json;

use super::layers::Weights;
use crate::model::bert::BertFiles;
use stratoscope_network::{AnyNetwork, Files, Task};

/// The entries. `length` is how many tokens of a text `predict` reads.
pub(super) fn of(
    network: &AnyNetwork,
    files: &dyn Files,
    length: usize,
    weights: Weights,
) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut add = |key: &str, value: String| entries.push((key.to_owned(), value));
    add("model", files.model_name().to_owned());
    let weights = match weights {
        Weights::Float32 => "float32",
        Weights::Int8 => "int8",
    };
    add("weights", weights.to_owned());
    let has_labels = matches!(files.task(), Task::Example | Task::Set | Task::Words);
    if has_labels && files.classes().is_some() {
        add("labels", json!(files.label_names()).to_string());
    }
    if let Some(names) = files.binary_labels() {
        add("binary_labels", json!(names).to_string());
    }
    if let Some(activation) = network.output_activation() {
        add("activation", activation.name().to_owned());
    }
    if let Some(files) = (files as &dyn Any).downcast_ref::<BertFiles>() {
        let config = &files.config;
        add("task", task(files.task()).to_owned());
        add("model_type", config.family.model_type().to_owned());
        if files.task() == Task::Example {
            let problem = match (config.num_labels(), &config.binary_labels) {
                (1, Some(_)) => "binary_classification",
                (1, None) => "regression",
                _ => "single_label_classification",
            };
            add("problem_type", problem.to_owned());
        }
        if files.task() == Task::Set {
            add("problem_type", "multi_label_classification".to_owned());
        }
        if let Some(pad) = config.pad_token_id {
            add("pad_token_id", pad.to_string());
        }
        add("max_length", length.to_string());
        add(
            "max_position_embeddings",
            config.max_position_embeddings.to_string(),
        );
    }
    entries
}

/// What optimum calls it.
fn task(task: Task) -> &'static str {
    match task {
        Task::Example | Task::Set => "text-classification",
        Task::Words => "token-classification",
        Task::Span => "question-answering",
        Task::Embedding => "sentence-similarity",
        Task::Masked => "fill-mask",
        Task::Choice => "multiple-choice",
    }
}
