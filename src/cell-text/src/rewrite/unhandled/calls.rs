//! Names of what returns a result of ours.

use std::collections::BTreeSet;

use syn::{Expr, Path};

/// The calls of the DSL.
pub const DSL: [&str; 5] = ["compile", "fit", "start", "evaluate", "sweep"];

/// Methods of the facade that return a result. Whether a method of this name is one of them is decided by its type, in the
/// compiled cell. `tests/fallible_methods.rs` compares this list and [`SEARCHES`] with the sources.
pub const METHODS: &[&str] = &[
    "activation_patching",
    "activations",
    "add_lora",
    "all_reduce",
    "answer",
    "apply",
    "assess",
    "attention",
    "attribution_patching",
    "audit",
    "audit_with",
    "average",
    "averaged",
    "batch",
    "best",
    "best_threshold",
    "bins",
    "break_for_panel",
    "break_when",
    "broadcast",
    "build",
    "check",
    "checksums",
    "choose",
    "clear_breakpoints",
    "commit",
    "communication",
    "compile",
    "compute_each_replica",
    "compute_each_stage",
    "compute_in_parts",
    "compute_in_slices",
    "concatenate",
    "confusion_matrix",
    "counterfactual",
    "cut",
    "data_map",
    "difference",
    "drop_examples",
    "embed",
    "epoch",
    "equalize",
    "evaluate",
    "evaluation_gradients",
    "explain",
    "explain_with",
    "export_onnx",
    "export_onnx_int8",
    "fetch",
    "fill",
    "find_learning_rate",
    "find_learning_rate_with",
    "finish",
    "fit",
    "for_each_replica",
    "for_each_row",
    "fork",
    "forked",
    "freeze",
    "gradient_dtype",
    "gradients",
    "head",
    "hindsight",
    "history",
    "ids",
    "influence",
    "keep_snapshots",
    "line",
    "load",
    "measure_updates",
    "merge_lora",
    "micro_batch",
    "micro_batches",
    "moments",
    "nearest",
    "next_layer",
    "output",
    "packed",
    "pieces",
    "pipeline",
    "placement",
    "points",
    "predict",
    "predict_scaling",
    "predict_with",
    "previous_layer",
    "process",
    "profile",
    "read",
    "relabel",
    "rename_labels",
    "replica_update",
    "report",
    "resolve",
    "restore_values",
    "rewind",
    "rows",
    "save",
    "save_pretrained",
    "set_accumulation",
    "set_batch_size",
    "set_clipping",
    "set_dropout",
    "set_example_weights",
    "set_learning_rate",
    "set_masking",
    "set_stride",
    "set_tokenizer",
    "set_weight_decay",
    "shard",
    "shares",
    "shuffle",
    "similarity",
    "skip_batch",
    "stages",
    "start",
    "step",
    "stop",
    "stratified_split",
    "tokenize",
    "tokenize_apart",
    "tokenize_blanks",
    "tokenize_choices",
    "tokenize_masked",
    "tokenize_questions",
    "tokenize_words",
    "unfreeze",
    "until",
    "update_each_replica",
    "update_ratios",
    "updates",
    "variable",
    "variable_partitioner",
    "weights",
    "what_if",
    "why",
    "with_begin_tags",
    "with_label_names",
    "with_labels_of",
    "with_length",
    "with_num_labels",
    "with_weights",
    "worst",
];

/// Methods of the facade that return a result, and are not looked at: a method of the standard library with this name has
/// a warning of its own where its value is dropped, which looking at it would silence. They change nothing.
pub const SEARCHES: [&str; 6] = ["find", "first", "repeat", "replace", "split", "values"];

/// Functions whose value is dropped often, and is never a result of ours.
const SILENT: [&str; 16] = [
    "abort",
    "black_box",
    "clear_output",
    "display",
    "display_as",
    "display_html",
    "display_update",
    "drop",
    "exit",
    "forget",
    "panic_any",
    "resume_unwind",
    "sleep",
    "spawn",
    "swap",
    "warn",
];

/// Whether `path!` is a call of the DSL; `shadowed`: macros that the notebook defines.
pub fn is_ours(path: &Path, shadowed: &BTreeSet<String>) -> bool {
    let names: Vec<String> = path
        .segments
        .iter()
        .map(|it| it.ident.to_string())
        .collect();
    match names.as_slice() {
        [name] => DSL.contains(&name.as_str()) && !shadowed.contains(name),
        [.., library, name] => library == "stratoscope" && DSL.contains(&name.as_str()),
        [] => false,
    }
}

/// Whether a method of this name may return a result of ours.
pub fn is_fallible_method(name: &str) -> bool {
    METHODS.binary_search(&name).is_ok()
}

/// Whether a function may return a result of ours: any function may but those that are known, and constructors of values.
pub fn is_fallible_function(function: &Expr) -> bool {
    let Expr::Path(path) = function else {
        return false;
    };
    let Some(last) = path.path.segments.last() else {
        return false;
    };
    let name = last.ident.to_string();
    !name.starts_with(char::is_uppercase) && !SILENT.contains(&name.as_str())
}
