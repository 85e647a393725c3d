//! Names that mean something, but not here: arguments of other calls, names of other libraries,
//! and arguments that Keras has and this product has not.

use super::{Argument, COMPILE, EVALUATE, FIT, find, same_arguments};
use crate::arguments;

/// Where an argument belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// To follow "belongs to": `the optimizer`, `` `fit!` ``.
    pub owner: &'static str,
    /// How it is written there, `{}` standing for the value.
    pub written: &'static str,
}

/// Where a name that `call!` does not know belongs, if it is an argument of something else.
pub fn belongs_elsewhere(call: &str, name: &str) -> Option<Elsewhere> {
    let at = |owner, written| Some(Elsewhere { owner, written });
    let known = |arguments: &[Argument]| find(arguments, name).is_some();
    if arguments::call(call).is_some_and(|call| known(call.arguments)) {
        return None;
    }
    match name {
        "learning_rate" | "lr" => at("the optimizer", "optimizer = AdamW::new({})"),
        "weight_decay" => at(
            "the optimizer",
            "optimizer = AdamW::new(5e-5).weight_decay({})",
        ),
        "beta_1" => at("the optimizer", "optimizer = AdamW::new(5e-5).beta_1({})"),
        "beta_2" => at("the optimizer", "optimizer = AdamW::new(5e-5).beta_2({})"),
        "epsilon" => at("the optimizer", "optimizer = AdamW::new(5e-5).epsilon({})"),
        "clipnorm" => at("the optimizer", "optimizer = AdamW::new(5e-5).clipnorm({})"),
        "global_clipnorm" | "clip_norm" | "max_grad_norm" => at(
            "the optimizer",
            "optimizer = AdamW::new(5e-5).global_clipnorm({})",
        ),
        "clipvalue" => at(
            "the optimizer",
            "optimizer = AdamW::new(5e-5).clipvalue({})",
        ),
        "decay" => at(
            "a schedule",
            "optimizer = AdamW::new(warmup_linear(5e-5, 0.1))",
        ),
        "amsgrad" => at("the optimizer", "optimizer = AdamW::new(5e-5).amsgrad({})"),
        "use_ema" => at("the optimizer", "optimizer = AdamW::new(5e-5).use_ema({})"),
        "ema_momentum" => at(
            "the optimizer",
            "optimizer = AdamW::new(5e-5).use_ema(true).ema_momentum({})",
        ),
        "ema_overwrite_frequency" => at(
            "the optimizer",
            "optimizer = AdamW::new(5e-5).use_ema(true).ema_overwrite_frequency({})",
        ),
        "momentum" => at("the optimizer", "optimizer = SGD::new(0.01).momentum({})"),
        "nesterov" => at("the optimizer", "optimizer = SGD::new(0.01).nesterov({})"),
        "from_logits" => at(
            "the loss",
            "loss = SparseCategoricalCrossentropy { from_logits: {} }",
        ),
        _ if known(COMPILE) => at("`compile!`", "compile!(model, …)"),
        _ if known(FIT) => at("`fit!`", "fit!(model, data, …)"),
        _ if known(EVALUATE) => at("`evaluate!`", "evaluate!(model, data, …)"),
        _ => None,
    }
}

/// The argument of `call!` that a name of another library, or a common slip, stands for.
pub fn translated(call: &str, name: &str) -> Option<&'static str> {
    let folded = name.to_ascii_lowercase();
    Some(match (same_arguments(call), folded.as_str()) {
        ("compile", "optimiser" | "optim" | "opt") => "optimizer",
        ("compile", "losses" | "loss_fn" | "loss_function" | "criterion" | "objective") => "loss",
        ("compile", "metric" | "compute_metrics") => "metrics",
        ("compile", "experimental_steps_per_execution" | "steps_per_call" | "steps_per_run") => {
            "steps_per_execution"
        }
        (
            "compile",
            "accumulate"
            | "accumulation_steps"
            | "accumulation"
            | "gradient_accumulation"
            | "accumulate_grad_batches"
            | "grad_accumulation_steps",
        ) => "gradient_accumulation_steps",
        ("fit", "num_epochs" | "n_epochs" | "num_train_epochs" | "nb_epoch") => "epochs",
        ("fit" | "evaluate", "bs" | "batch" | "per_device_train_batch_size") => "batch_size",
        ("fit", "val_data" | "eval_dataset" | "validation" | "valid_data") => "validation_data",
        ("fit", "val_split") => "validation_split",
        ("fit", "random_state" | "random_seed") => "seed",
        (
            "fit" | "evaluate",
            "max_len" | "maxlen" | "max_seq_length" | "max_seq_len" | "seq_length",
        ) => "max_length",
        ("fit", "bucket_by_sequence_length" | "bucket_by_length" | "sort_by_length") => {
            "group_by_length"
        }
        ("fit", "patience") => "early_stopping",
        ("fit", "callback") => "callbacks",
        ("fit", "class_weights") => "class_weight",
        ("fit", "start_epoch") => "initial_epoch",
        ("fit", "max_steps_per_epoch" | "limit_train_batches") => "steps_per_epoch",
        ("fit", "limit_val_batches") => "validation_steps",
        ("fit", "check_val_every_n_epoch" | "validation_frequency") => "validation_freq",
        ("fit", "output_dir" | "model_checkpoint" | "save_dir") => "checkpoint",
        ("evaluate", "num_steps") => "steps",
        ("fit", "resume_from_checkpoint") => "resume_from",
        _ => return None,
    })
}

/// The explanation for a name that Keras has and stratoscope does not.
pub fn explained(call: &str, name: &str) -> Option<&'static str> {
    Some(match (same_arguments(call), name) {
        ("compile", "jit_compile") => {
            "Keras's `jit_compile` requests XLA; there is no such switch here: the backend compiles \
             the kernels"
        }
        ("compile", "run_eagerly") => {
            "Keras's `run_eagerly` turns its compiled graph off for debugging; there is no such graph here. To look \
             at a single step, use `model.gradients(…)` and `model.apply(…)`"
        }
        ("compile", "loss_weights") => {
            "Keras's `loss_weights` weights the outputs of a model; models here have one output"
        }
        ("compile", "weighted_metrics") => {
            "Keras's `weighted_metrics` are metrics with sample weights; metrics here count all examples alike. The weights \
             of examples (`data.with_weights(…)`) act on the loss"
        }
        ("compile", "distribute" | "distribution" | "distribution_strategy") => {
            "a strategy is not an argument: build and compile the model inside `scope!(strategy, { … })`"
        }
        ("compile", "label_smoothing") => {
            "it belongs to the loss: `loss = CategoricalCrossentropy { from_logits: true }.label_smoothing(0.1)`"
        }
        ("compile", "reduction" | "ignore_class") => {
            "in Keras this is an argument of the loss; the losses here average over the examples and have no \
             such setting"
        }
        ("compile", "loss_scale_factor" | "loss_scale" | "fp16" | "bf16" | "mixed_precision") => {
            "the policy scales the loss: `set_global_policy(\"mixed_float16\")?` before the model is built"
        }
        (
            "compile",
            "target_tensors"
            | "sample_weight_mode"
            | "cloning"
            | "experimental_run_tf_function"
            | "from_serialized"
            | "pss_evaluation_shards",
        ) => "Keras accepts this name for old programs or for its own use; it sets nothing here",
        ("compile", "auto_scale_loss") => {
            "under `mixed_float16` the loss is always scaled, under the other policies never"
        }
        ("fit" | "evaluate", "sample_weight") => {
            "weights of examples are a part of the data: `data.with_weights(weights)?`, or of a column \
             `Columns::new().weight(\"weight\")`; `class_weight` of `fit!` weights classes"
        }
        ("fit", "validation_batch_size") => {
            "validation takes batches of `batch_size` too: the size changes the time, not the result"
        }
        ("fit", "drop_remainder" | "drop_last") => {
            "a short last batch is never dropped: it is weighted by its examples"
        }
        ("fit", "save_best_only" | "save_weights_only") => {
            "`checkpoint` names a folder: the best and the last weights are saved there"
        }
        ("evaluate", "return_dict") => {
            "what `evaluate!` returns has its loss and its metrics by name"
        }
        (_, "workers" | "use_multiprocessing" | "max_queue_size") => {
            "batches are always prepared on a separate thread"
        }
        ("fit" | "evaluate", "x" | "y") => {
            "the dataset has texts and labels and is the second operand: `fit!(model, data, …)`"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;

    #[test]
    fn translations_lead_to_arguments_that_exist() {
        for call in arguments::CALLS {
            for name in [
                "optimiser",
                "metric",
                "losses",
                "accumulate",
                "num_epochs",
                "bs",
                "maxlen",
                "patience",
            ] {
                if let Some(target) = translated(call.name, name) {
                    assert!(
                        arguments::find(call.arguments, target).is_some(),
                        "{name} → {target}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_optimizers_arguments_are_not_compiles() {
        for name in [
            "learning_rate",
            "lr",
            "weight_decay",
            "clipnorm",
            "global_clipnorm",
            "clip_norm",
            "use_ema",
        ] {
            let place = belongs_elsewhere("compile", name);
            assert_eq!(
                place.map(|place| place.owner),
                Some("the optimizer"),
                "{name}"
            );
        }
        for name in ["epochs", "batch_size", "validation_data"] {
            assert_eq!(
                belongs_elsewhere("compile", name).map(|place| place.owner),
                Some("`fit!`")
            );
        }
        assert_eq!(
            belongs_elsewhere("fit", "optimizer").map(|place| place.owner),
            Some("`compile!`")
        );
    }
}
