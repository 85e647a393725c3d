//! The parameters of `Trainer` and `SentenceTransformerTrainer`, and those that have no counterpart.

use super::super::Translator;
use crate::model::Call;

/// The parameters of `Trainer` in their order.
const PARAMETERS: &[&str] = &[
    "model",
    "args",
    "data_collator",
    "train_dataset",
    "eval_dataset",
    "processing_class",
    "model_init",
    "compute_loss_func",
    "compute_metrics",
    "callbacks",
    "optimizers",
];

/// The parameters of `SentenceTransformerTrainer`.
pub(super) const OF_SENTENCES: &[&str] = &[
    "model",
    "args",
    "train_dataset",
    "eval_dataset",
    "loss",
    "evaluator",
    "data_collator",
    "tokenizer",
    "model_init",
    "compute_metrics",
    "callbacks",
    "optimizers",
];

/// Arguments of `Trainer` without a counterpart.
const LEFT: &[(&str, &str)] = &[
    (
        "compute_loss_func",
        "a custom loss is `Loss::of_classes(\"name\", |outputs, classes| …)`, the `loss` of `compile!`",
    ),
    (
        "optimizers",
        "the optimizer and its schedule are the `optimizer` of `compile!`",
    ),
    (
        "optimizer_cls_and_kwargs",
        "the optimizer is the `optimizer` of `compile!`",
    ),
    (
        "preprocess_logits_for_metrics",
        "metrics here see the outputs as they are",
    ),
];

/// The parameters of a class.
pub(super) fn parameters_of(full: &str) -> &'static [&'static str] {
    if full.starts_with("sentence_transformers.") {
        OF_SENTENCES
    } else {
        PARAMETERS
    }
}

impl Translator<'_> {
    /// Names the arguments of a `Trainer` that no other call has.
    pub(super) fn others_of_trainer(&mut self, call: &Call, parameters: &[&str]) {
        for keyword in &call.keywords {
            let why = LEFT
                .iter()
                .find(|(name, _)| *name == keyword.name)
                .map(|(_, why)| *why);
            match keyword.name.as_str() {
                "tokenizer" | "processing_class" => {
                    self.idle(
                        keyword.span,
                        "a model brings the tokenizer of its checkpoint",
                    );
                }
                _ if why.is_some() => {
                    self.leave_argument(keyword, why.unwrap_or_default().to_owned());
                }
                "evaluator" if parameters == OF_SENTENCES => self.leave_argument(
                    keyword,
                    "`metrics` of `compile!` and `validation_data` of `fit!` measure a model after each epoch".to_owned(),
                ),
                name if parameters.contains(&name) => {}
                name => self.leave_argument(keyword, format!("`Trainer` has no `{name}` here")),
            }
        }
    }
}
