//! What each version does with an argument: `Model.compile`, `Model.fit`, `Model.evaluate`, the optimizers.

use super::{column, does, versions};
use crate::arguments::same_arguments;
use crate::{Answer, Profile};

/// What a version does with an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Takes it.
    Accepts,
    /// Takes it, and does nothing with it.
    Ignores,
    /// Takes it and logs that the name is an old one.
    Deprecates,
    /// Logs that it does nothing with it; the text, where it is known.
    IgnoresAndLogs(&'static str),
    /// Raises with a text of its own. `{name}` stands for the argument.
    Raises(&'static str),
    /// Has no such optimizer, and raises this text.
    Missing(&'static str),
    /// Does not know the name: a TypeError (a ValueError of Keras 3's optimizers).
    Unknown,
    /// Not verified: nothing is claimed.
    Unverified,
}

use Treatment::{
    Accepts, Deprecates, Ignores, IgnoresAndLogs, Missing, Raises, Unknown, Unverified,
};

/// A row: an argument of a call, and what the versions of [`Profile::ALL`] do with it, in that order.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentOf {
    /// `compile`, `fit`, `evaluate`, `Adam`, `AdamW`, `SGD`, `RMSprop`.
    pub call: &'static str,
    /// The argument's name.
    pub name: &'static str,
    /// TensorFlow 2.3, 2.4 to 2.6, tf_keras 2.18, Keras 3.
    pub versions: [Treatment; 4],
}

const EVERY: [Treatment; 4] = [Accepts; 4];
const KERAS_2: [Treatment; 4] = [Accepts, Accepts, Accepts, Unknown];
const SINCE_2_4: [Treatment; 4] = [Unknown, Accepts, Accepts, Accepts];
const SINCE_TF_KERAS: [Treatment; 4] = [Unknown, Unknown, Accepts, Accepts];
const KERAS_3: [Treatment; 4] = [Unknown, Unknown, Unknown, Accepts];
const LEGACY: [Treatment; 4] = [Ignores, Ignores, Ignores, Unknown];

const OLD_DISTRIBUTE: Treatment = Raises(
    "ValueError: Distribute argument in compile is not available in TF 2.0 please create the model under the \
     distribution strategy scope.",
);
const OLD_TARGETS: Treatment =
    Raises("ValueError: target_tensors argument is not supported when executing eagerly.");
const LR: [Treatment; 4] = [
    Deprecates,
    Deprecates,
    IgnoresAndLogs(
        "`lr` is deprecated in TF-Keras optimizer, please use `learning_rate` or use the legacy optimizer, …",
    ),
    Unknown,
];
const DECAY: [Treatment; 4] = [
    Accepts,
    Accepts,
    Raises(
        "ValueError: decay is deprecated in the new TF-Keras optimizer, please check the docstring for valid \
         arguments, or use the legacy optimizer, …",
    ),
    IgnoresAndLogs("Argument `decay` is no longer supported and will be ignored."),
];

const fn row(call: &'static str, name: &'static str, versions: [Treatment; 4]) -> ArgumentOf {
    ArgumentOf {
        call,
        name,
        versions,
    }
}

/// Every argument whose treatment is known. Another name is unknown to every version, of a call that has rows.
pub const ARGUMENTS: &[ArgumentOf] = &[
    row("compile", "optimizer", EVERY),
    row("compile", "loss", EVERY),
    row("compile", "metrics", EVERY),
    row("compile", "loss_weights", EVERY),
    row("compile", "weighted_metrics", EVERY),
    row("compile", "run_eagerly", EVERY),
    row("compile", "steps_per_execution", SINCE_2_4),
    row(
        "compile",
        "experimental_steps_per_execution",
        [Accepts, Deprecates, Deprecates, Unknown],
    ),
    // XLA's switch came with Keras 2.8.
    row("compile", "jit_compile", SINCE_TF_KERAS),
    // Since Keras 2.13, and gone in Keras 3.
    row(
        "compile",
        "pss_evaluation_shards",
        [Unknown, Unknown, Accepts, Unknown],
    ),
    row("compile", "auto_scale_loss", KERAS_3),
    row("compile", "sample_weight_mode", LEGACY),
    row("compile", "cloning", LEGACY),
    row("compile", "experimental_run_tf_function", LEGACY),
    row(
        "compile",
        "distribute",
        [
            OLD_DISTRIBUTE,
            OLD_DISTRIBUTE,
            Raises(
                "ValueError: `distribute` argument in compile is not available in TF 2.0. Please create the model \
                 under the `strategy.scope()`. Received: …",
            ),
            Unknown,
        ],
    ),
    row(
        "compile",
        "target_tensors",
        [
            OLD_TARGETS,
            OLD_TARGETS,
            Raises(
                "ValueError: `target_tensors` argument is not supported when executing eagerly. Received: …",
            ),
            Unknown,
        ],
    ),
    // 2.6 accepts it; 2.4 was not tried.
    row(
        "compile",
        "from_serialized",
        [Unknown, Unverified, Accepts, Unknown],
    ),
    row("fit", "x", EVERY),
    row("fit", "y", EVERY),
    row("fit", "batch_size", EVERY),
    row("fit", "epochs", EVERY),
    row("fit", "verbose", EVERY),
    row("fit", "callbacks", EVERY),
    row("fit", "validation_split", EVERY),
    row("fit", "validation_data", EVERY),
    row("fit", "shuffle", EVERY),
    row("fit", "class_weight", EVERY),
    row("fit", "sample_weight", EVERY),
    row("fit", "initial_epoch", EVERY),
    row("fit", "steps_per_epoch", EVERY),
    row("fit", "validation_steps", EVERY),
    row("fit", "validation_batch_size", EVERY),
    row("fit", "validation_freq", EVERY),
    row("fit", "max_queue_size", KERAS_2),
    row("fit", "workers", KERAS_2),
    row("fit", "use_multiprocessing", KERAS_2),
    // By the signatures of `Model.evaluate`.
    row("evaluate", "x", EVERY),
    row("evaluate", "y", EVERY),
    row("evaluate", "batch_size", EVERY),
    row("evaluate", "verbose", EVERY),
    row("evaluate", "sample_weight", EVERY),
    row("evaluate", "steps", EVERY),
    row("evaluate", "callbacks", EVERY),
    row("evaluate", "return_dict", EVERY),
    row("evaluate", "max_queue_size", KERAS_2),
    row("evaluate", "workers", KERAS_2),
    row("evaluate", "use_multiprocessing", KERAS_2),
    row("Adam", "learning_rate", EVERY),
    row("Adam", "beta_1", EVERY),
    row("Adam", "beta_2", EVERY),
    row("Adam", "epsilon", EVERY),
    row("Adam", "amsgrad", EVERY),
    row("Adam", "clipnorm", EVERY),
    row("Adam", "clipvalue", EVERY),
    row("Adam", "global_clipnorm", GLOBAL),
    row("Adam", "weight_decay", SINCE_TF_KERAS),
    row("Adam", "use_ema", SINCE_TF_KERAS),
    row("Adam", "ema_momentum", SINCE_TF_KERAS),
    row("Adam", "ema_overwrite_frequency", SINCE_TF_KERAS),
    row("Adam", "loss_scale_factor", KERAS_3),
    row("Adam", "gradient_accumulation_steps", KERAS_3),
    row("Adam", "lr", LR),
    row("Adam", "decay", DECAY),
    row("SGD", "learning_rate", EVERY),
    row("SGD", "momentum", EVERY),
    row("SGD", "nesterov", EVERY),
    row("SGD", "clipnorm", EVERY),
    row("SGD", "clipvalue", EVERY),
    row("SGD", "global_clipnorm", GLOBAL),
    row("SGD", "weight_decay", SINCE_TF_KERAS),
    row("SGD", "use_ema", SINCE_TF_KERAS),
    row("SGD", "ema_momentum", SINCE_TF_KERAS),
    row("SGD", "ema_overwrite_frequency", SINCE_TF_KERAS),
    row("SGD", "loss_scale_factor", KERAS_3),
    row("SGD", "gradient_accumulation_steps", KERAS_3),
    row("SGD", "lr", LR),
    row("SGD", "decay", DECAY),
    row("RMSprop", "learning_rate", EVERY),
    row("RMSprop", "rho", EVERY),
    row("RMSprop", "momentum", EVERY),
    row("RMSprop", "epsilon", EVERY),
    row("RMSprop", "centered", EVERY),
    row("RMSprop", "clipnorm", EVERY),
    row("RMSprop", "clipvalue", EVERY),
    row("RMSprop", "global_clipnorm", GLOBAL),
    row("RMSprop", "weight_decay", SINCE_TF_KERAS),
    row("RMSprop", "use_ema", SINCE_TF_KERAS),
    row("RMSprop", "ema_momentum", SINCE_TF_KERAS),
    row("RMSprop", "ema_overwrite_frequency", SINCE_TF_KERAS),
    row("RMSprop", "loss_scale_factor", KERAS_3),
    row("RMSprop", "gradient_accumulation_steps", KERAS_3),
    row("RMSprop", "lr", LR),
    row("RMSprop", "decay", DECAY),
    // `keras.optimizers.AdamW` came with Keras 2.12: an older TensorFlow has no such optimizer to give
    // an argument to.
    row("AdamW", "learning_rate", ADAMW),
    row("AdamW", "beta_1", ADAMW),
    row("AdamW", "beta_2", ADAMW),
    row("AdamW", "epsilon", ADAMW),
    row("AdamW", "amsgrad", ADAMW),
    row("AdamW", "weight_decay", ADAMW),
    row("AdamW", "clipnorm", ADAMW),
    row("AdamW", "clipvalue", ADAMW),
    row("AdamW", "global_clipnorm", ADAMW),
    row("AdamW", "use_ema", ADAMW),
    row("AdamW", "ema_momentum", ADAMW),
    row("AdamW", "ema_overwrite_frequency", ADAMW),
    row(
        "AdamW",
        "loss_scale_factor",
        [NO_ADAMW, NO_ADAMW, Unknown, Accepts],
    ),
    row(
        "AdamW",
        "gradient_accumulation_steps",
        [NO_ADAMW, NO_ADAMW, Unknown, Accepts],
    ),
    row("AdamW", "lr", [NO_ADAMW, NO_ADAMW, LR[2], LR[3]]),
    row("AdamW", "decay", [NO_ADAMW, NO_ADAMW, DECAY[2], DECAY[3]]),
];

/// Whether 2.3 has it was not tried.
const GLOBAL: [Treatment; 4] = [Unverified, Accepts, Accepts, Accepts];
const NO_ADAMW: Treatment =
    Missing("AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'AdamW'");
const ADAMW: [Treatment; 4] = [NO_ADAMW, NO_ADAMW, Accepts, Accepts];

/// An optimizer that TensorFlow 2.3 to 2.6 lack. What later versions do with its arguments was not tried.
const fn came_later(missing: &'static str) -> [Treatment; 4] {
    [Missing(missing), Missing(missing), Unverified, Unverified]
}

/// What the versions do with an argument of a call.
pub fn treatment(call: &str, name: &str) -> [Treatment; 4] {
    let call = same_arguments(call);
    let mut rows = ARGUMENTS.iter();
    let row = rows.find(|row| row.call == call && row.name == name);
    match (row, call) {
        (Some(row), _) => row.versions,
        (None, "AdamW") => [NO_ADAMW, NO_ADAMW, Unknown, Unknown],
        (None, "Lion") => came_later(
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'Lion'",
        ),
        (None, "Lamb") => came_later(
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'Lamb'",
        ),
        (None, "Adafactor") => came_later(
            "AttributeError: module 'tensorflow.keras.optimizers' has no attribute 'Adafactor'",
        ),
        (None, _) => [Unknown; 4],
    }
}

/// Whether a call is the construction of an optimizer.
fn is_optimizer(call: &str) -> bool {
    call.starts_with(char::is_uppercase)
}

/// What a version does with an argument, with its own words.
pub fn answer(call: &str, name: &str, profile: Profile) -> Answer {
    let call = same_arguments(call);
    let when = match is_optimizer(call) {
        true => "raises when the optimizer is made".to_owned(),
        false => format!("raises in `{call}`"),
    };
    match treatment(call, name)[column(profile)] {
        Accepts => does(profile, "accepts this argument"),
        Ignores => does(profile, "accepts the name, which sets nothing any more"),
        Deprecates => does(profile, "accepts it and logs that the name is an old one"),
        IgnoresAndLogs(text) => Answer::says(profile, "ignores it and logs", text),
        Raises(text) | Missing(text) => Answer::says(profile, when, text.replace("{name}", name)),
        Unknown => Answer::says(profile, when, unknown(call, name, profile)),
        Unverified => does(profile, "was not tried with this argument"),
    }
}

/// What a version does with a name that it refuses here, though it may know it elsewhere.
pub fn refusal(call: &str, name: &str, profile: Profile) -> Answer {
    let call = same_arguments(call);
    Answer::says(
        profile,
        format!("raises in `{call}`"),
        unknown(call, name, profile),
    )
}

/// What a version says of a name that it does not know.
fn unknown(call: &str, name: &str, profile: Profile) -> String {
    match (call, profile) {
        ("compile", Profile::Tf23 | Profile::Tf24) => {
            format!("TypeError: Invalid keyword argument(s) in `compile`: {{'{name}'}}")
        }
        ("compile", Profile::TfKeras218) => format!(
            "TypeError: Invalid keyword argument(s) in `compile()`: ({{'{name}'}},). Valid keyword arguments \
             include \"cloning\", \"experimental_run_tf_function\", \"distribute\", \"target_tensors\", or \
             \"sample_weight_mode\"."
        ),
        ("compile", Profile::Keras3) => {
            format!("TypeError: Trainer.compile() got an unexpected keyword argument '{name}'")
        }
        (optimizer, _) if is_optimizer(optimizer) => match profile {
            Profile::Tf23 | Profile::Tf24 => {
                format!("TypeError: Unexpected keyword argument passed to optimizer: {name}")
            }
            // Two spaces, as it says it.
            Profile::TfKeras218 => format!(
                "TypeError: {name} is not a valid argument, kwargs should be empty  for \
                 `optimizer_experimental.Optimizer`."
            ),
            Profile::Keras3 => format!("ValueError: Argument(s) not recognized: {{'{name}': …}}"),
        },
        (method, _) => {
            let owner = match profile {
                Profile::Tf23 | Profile::Tf24 => "",
                Profile::TfKeras218 => "Model.",
                Profile::Keras3 => "TensorFlowTrainer.",
            };
            format!("TypeError: {owner}{method}() got an unexpected keyword argument '{name}'")
        }
    }
}

/// Whether two versions do the same; their texts may differ.
fn is_alike(a: Treatment, b: Treatment) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
}

/// The row of an argument as a sentence: versions that do the same are named together.
pub(super) fn sentence(call: &str, name: &str) -> String {
    let call = same_arguments(call);
    let row = treatment(call, name);
    let mut groups: Vec<(Treatment, Vec<usize>)> = Vec::new();
    for (column, treatment) in row.into_iter().enumerate() {
        match groups.last_mut() {
            Some((last, columns)) if is_alike(*last, treatment) => columns.push(column),
            _ => groups.push((treatment, vec![column])),
        }
    }
    let is_known = |(treatment, _): &&(Treatment, Vec<usize>)| *treatment != Unverified;
    let error = if is_optimizer(call) {
        "an error"
    } else {
        "a TypeError"
    };
    let parts = groups.iter().filter(is_known).map(|(treatment, columns)| {
        let who = versions(columns);
        // A single version, and "every version", are one subject.
        let one = columns.len() == 1 || columns.len() == 4 || columns.as_slice() == [0, 1, 2];
        let verb = |one_form: &str, many: &str| {
            if one {
                one_form.to_owned()
            } else {
                many.to_owned()
            }
        };
        let does = match treatment {
            Accepts => verb("accepts it", "accept it"),
            Ignores => verb(
                "accepts the name, which sets nothing",
                "accept the name, which sets nothing",
            ),
            Deprecates => verb("accepts it as an old name", "accept it as an old name"),
            IgnoresAndLogs(_) => verb("ignores it and logs a line", "ignore it and log a line"),
            Missing(_) => {
                format!("{} no `{call}`", verb("has", "have"))
            }
            Raises(_) => verb("raises a ValueError", "raise a ValueError"),
            Unknown => format!("{} {error}", verb("raises", "raise")),
            Unverified => String::new(),
        };
        format!("{who} {does}")
    });
    let sentence = parts.collect::<Vec<_>>().join("; ");
    match groups.as_slice() {
        [(Unknown, _)] if !is_optimizer(call) => {
            "raises a TypeError when the line runs, not before".to_owned()
        }
        [(Unknown, _)] => "raises an error when the optimizer is made".to_owned(),
        [(Accepts, _)] => "accepts this argument".to_owned(),
        _ => sentence,
    }
}
