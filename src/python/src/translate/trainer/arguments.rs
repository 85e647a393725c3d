//! The arguments of `TrainingArguments`, of transformers 4.57 and 5: what becomes of each. The names and defaults are those of
//! `training_args.py`.

use crate::model::{Kind, Value};

/// What becomes of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Becomes {
    /// It is an argument of `compile!` or `fit!`.
    Read,
    /// It sets nothing here: why.
    Nothing(&'static str),
    /// It has no counterpart: why. With its default value, written as here, it sets nothing.
    Left(&'static str, &'static str),
}

use Becomes::{Left, Nothing, Read};

const SPEED: &str = "`fit!` computes as fast as the device allows without it";
const READS: &str = "`fit!` reads ahead by itself";
const COLUMNS: &str = "`fit!` takes the texts and labels of the data set";
const LOGS: &str = "the table of `fit!` shows every execution";
const MODE: &str = "`fit!` and `evaluate!` stand where they are to run";
const DISTRIBUTED: &str =
    "devices and processes are those of a strategy, such as `MirroredStrategy::new()?`";
const SHARDED: &str = "devices and what each of them stores are those of a strategy, such as `MirroredStrategy::new()?`";
const HUB: &str = "nothing is uploaded; `save_pretrained` writes the files that the hub takes";
const EVALUATION: &str = "validation computes the loss and the metrics over the whole split";
const GENERATION: &str = "the models here write no text, so nothing is generated";
const OLD: &str = "transformers 5 has no such argument either";

/// The arguments by their names.
pub(crate) const ARGUMENTS: &[(&[&str], Becomes)] = &[
    (
        &[
            "output_dir",
            "per_device_train_batch_size",
            "per_gpu_train_batch_size",
            "per_device_eval_batch_size",
            "per_gpu_eval_batch_size",
            "gradient_accumulation_steps",
            "learning_rate",
            "weight_decay",
            "adam_beta1",
            "adam_beta2",
            "adam_epsilon",
            "max_grad_norm",
            "num_train_epochs",
            "max_steps",
            "lr_scheduler_type",
            "warmup_ratio",
            "warmup_steps",
            "save_strategy",
            "save_steps",
            "save_total_limit",
            "eval_strategy",
            "evaluation_strategy",
            "eval_steps",
            "seed",
            "fp16",
            "bf16",
            "load_best_model_at_end",
            "metric_for_best_model",
            "greater_is_better",
            "label_smoothing_factor",
            "optim",
            "adafactor",
            "group_by_length",
            "train_sampling_strategy",
            "report_to",
            "logging_dir",
            "auto_find_batch_size",
            "gradient_checkpointing",
            "resume_from_checkpoint",
            "disable_tqdm",
        ],
        Read,
    ),
    (&["do_train", "do_eval", "do_predict"], Nothing(MODE)),
    (
        &["overwrite_output_dir"],
        Nothing("a run writes into the folder that it is given"),
    ),
    (
        &[
            "logging_steps",
            "logging_strategy",
            "logging_first_step",
            "logging_nan_inf_filter",
            "log_level",
            "log_level_replica",
            "log_on_each_node",
            "run_name",
            "project",
            "trackio_space_id",
            "trackio_bucket_id",
            "trackio_static_space_id",
            "include_num_input_tokens_seen",
            "include_tokens_per_second",
            "skip_memory_metrics",
        ],
        Nothing(LOGS),
    ),
    (
        &[
            "dataloader_num_workers",
            "dataloader_pin_memory",
            "dataloader_persistent_workers",
            "dataloader_prefetch_factor",
            "dataloader_multiprocessing_context",
            "dataloader_in_order",
        ],
        Nothing(READS),
    ),
    (
        &[
            "remove_unused_columns",
            "label_names",
            "length_column_name",
            "past_index",
        ],
        Nothing(COLUMNS),
    ),
    (
        &[
            "eval_accumulation_steps",
            "eval_do_concat_batches",
            "eval_use_gather_object",
            "batch_eval_metrics",
            "bf16_full_eval",
            "fp16_full_eval",
            "average_tokens_across_devices",
        ],
        Nothing(EVALUATION),
    ),
    (
        &[
            "tf32",
            "torch_compile",
            "torch_compile_backend",
            "torch_compile_mode",
            "torchdynamo",
            "jit_mode_eval",
            "use_liger_kernel",
            "liger_kernel_config",
            "torch_empty_cache_steps",
            "half_precision_backend",
            "fp16_backend",
            "fp16_opt_level",
            "use_ipex",
            "use_cache",
            "gradient_checkpointing_kwargs",
        ],
        Nothing(SPEED),
    ),
    (
        &[
            "local_rank",
            "ddp_backend",
            "ddp_find_unused_parameters",
            "ddp_bucket_cap_mb",
            "ddp_broadcast_buffers",
            "ddp_static_graph",
            "ddp_timeout",
            "tpu_num_cores",
            "tpu_metrics_debug",
            "no_cuda",
            "use_cpu",
            "use_mps_device",
            "_n_gpu",
            "mp_parameters",
            "ray_scope",
        ],
        Nothing(DISTRIBUTED),
    ),
    (
        &["save_safetensors"],
        Nothing("weights are written as safetensors"),
    ),
    (
        &["save_on_each_node", "enable_jit_checkpoint"],
        Nothing("the process of the notebook writes the checkpoints"),
    ),
    (
        &["full_determinism"],
        Nothing("training on the CPU is reproducible bit for bit"),
    ),
    (
        &["debug", "prediction_loss_only"],
        Nothing("it changes no step"),
    ),
    (
        &["data_seed"],
        Left(
            "None",
            "`seed` of `fit!` decides the order of the data and the dropout",
        ),
    ),
    (
        &[
            "fsdp",
            "fsdp_config",
            "fsdp_min_num_params",
            "fsdp_transformer_layer_cls_to_wrap",
            "deepspeed",
        ],
        Left("None", SHARDED),
    ),
    (
        &["accelerator_config", "parallelism_config"],
        Left("None", DISTRIBUTED),
    ),
    (
        &["push_to_hub", "hub_always_push", "hub_private_repo"],
        Left("False", HUB),
    ),
    (
        &[
            "hub_model_id",
            "hub_token",
            "hub_strategy",
            "hub_revision",
            "push_to_hub_model_id",
            "push_to_hub_organization",
            "push_to_hub_token",
        ],
        Nothing(HUB),
    ),
    (
        &["dataloader_drop_last"],
        Left(
            "False",
            "a short last batch is not dropped here: it counts by its examples",
        ),
    ),
    (
        &["eval_delay"],
        Left(
            "0",
            "the first validation follows the first epoch; `validation_freq = [2, 3]` names the epochs",
        ),
    ),
    (
        &["eval_on_start"],
        Left("False", "`evaluate!` before `fit!` does it"),
    ),
    (
        &["lr_scheduler_kwargs"],
        Left(
            "{}",
            "the schedules here have the settings of transformers' defaults",
        ),
    ),
    (
        &["optim_args", "optim_target_modules"],
        Left(
            "None",
            "the optimizer has its settings as methods, such as `.beta_2(0.98)`",
        ),
    ),
    (
        &["neftune_noise_alpha"],
        Left("None", "nothing adds noise to the embeddings here"),
    ),
    (
        &["include_inputs_for_metrics", "include_for_metrics"],
        Left("False", "metrics here see outputs and labels"),
    ),
    (
        &["ignore_data_skip"],
        Left("False", "a run goes on at the batch where it ended"),
    ),
    (
        &["restore_callback_states_from_checkpoint"],
        Left("False", "callbacks start with the run"),
    ),
    (
        &["save_only_model"],
        Left(
            "False",
            "`checkpoint` without `every` saves the weights only, after each epoch",
        ),
    ),
    (
        &[
            "activation_checkpointing",
            "activation_checkpointing_kwargs",
        ],
        Left(
            "None",
            "`recompute = true` of `fit!` computes the layers once more",
        ),
    ),
    (
        &[
            "predict_with_generate",
            "generation_max_length",
            "generation_num_beams",
            "generation_config",
            "sortish_sampler",
        ],
        Left("False", GENERATION),
    ),
    (
        &["use_legacy_prediction_loop", "logging_nan_filter"],
        Nothing(OLD),
    ),
];

/// What becomes of an argument; `None` for one that does not exist.
pub(crate) fn becomes(name: &str) -> Option<Becomes> {
    let row = ARGUMENTS.iter().find(|(names, _)| names.contains(&name));
    row.map(|(_, becomes)| *becomes)
}

/// All names, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ARGUMENTS
        .iter()
        .flat_map(|(names, _)| names.iter().copied())
}

/// Whether a value is what is written here as a default.
pub(crate) fn is_default(value: &Value, default: &str) -> bool {
    match &value.kind {
        Kind::None => true,
        Kind::Bool(it) => default == if *it { "True" } else { "False" },
        Kind::Int(it) => it == default,
        Kind::Text(it) => it.is_empty(),
        Kind::Dict(items) => items.is_empty(),
        Kind::List(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_argument_has_one_row() {
        let mut seen = BTreeSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} has two rows");
        }
        assert!(becomes("learning_rte").is_none());
    }
}
