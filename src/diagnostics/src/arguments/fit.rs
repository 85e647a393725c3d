//! Arguments of `fit!`, after `Model.fit` of Keras and the Hugging Face trainer; departures say so.

use super::{Accepts, Argument, Kind};

/// What `fit!(model, data, …)` accepts.
pub const FIT: &[Argument] = &[
    EPOCHS,
    BATCH_SIZE,
    VALIDATION_DATA,
    VALIDATION_SPLIT,
    VALIDATION_STEPS,
    VALIDATION_FREQ,
    SHUFFLE,
    GROUP_BY_LENGTH,
    SEED,
    MAX_LENGTH,
    CLASS_WEIGHT,
    INITIAL_EPOCH,
    STEPS_PER_EPOCH,
    CALLBACKS,
    EARLY_STOPPING,
    CHECKPOINT,
    EVERY,
    KEEP_LAST,
    RESUME,
    RESUME_FROM,
    RECOMPUTE,
    VERBOSE,
];

const RESUME_CONFLICT: &str =
    "`resume` goes on with the run that this process holds, `resume_from` with one on disk";
const SPLIT_CONFLICT: &str = "both select the validation data, and one of them would be ignored";

const EPOCHS: Argument = Argument::new(
    "epochs",
    "integer ≥ 1",
    "1",
    "Keras",
    Accepts::Integer(1),
    "The number of the last epoch: the number of passes over the data if training starts at epoch 0. A schedule \
     that is defined as a share of the run spans all of them.",
);

const BATCH_SIZE: Argument = Argument::new(
    "batch_size",
    "integer ≥ 1",
    "32",
    "Keras",
    Accepts::Integer(1),
    "Examples per batch over all replicas together, so that 32 over 2 replicas are 16 each. The last batch \
     may be shorter; it is kept and weighted by its examples. `auto(32)` computes each batch of 32 in the \
     largest parts that fit into memory, `auto` chooses the largest power of two that fits.",
);

const VALIDATION_DATA: Argument = Argument::new(
    "validation_data",
    "dataset",
    "none",
    "Keras",
    Accepts::Value(Some(Kind::Dataset)),
    "What is evaluated after each epoch, without dropout. Its labels must be the training data's.",
)
.excludes(&[("validation_split", SPLIT_CONFLICT)]);

const VALIDATION_SPLIT: Argument = Argument::new(
    "validation_split",
    "number above 0, below 1",
    "none",
    "Keras",
    Accepts::Share(0.0, 1.0),
    "The last part of the data, cut off before shuffling, is kept for validation. With sorted data it holds \
     the last classes only.",
)
.excludes(&[("validation_data", SPLIT_CONFLICT)]);

const VALIDATION_STEPS: Argument = Argument::new(
    "validation_steps",
    "integer ≥ 1",
    "all",
    "Keras",
    Accepts::Integer(1),
    "Validates on only this number of batches from the start. It needs validation data; the data is the upper limit.",
);

const VALIDATION_FREQ: Argument = Argument::new(
    "validation_freq",
    "integer ≥ 1, or a list of epochs",
    "1",
    "Keras",
    Accepts::Integer(1),
    "Validates every this many epochs, or after the epochs of a list, counted from 1: `[1, 3]`. It needs \
     validation data; an epoch that is not validated cannot be the best one.",
);

const SHUFFLE: Argument = Argument::new(
    "shuffle",
    "bool",
    "true",
    "Keras",
    Accepts::Flag,
    "Uses a new order every epoch, computed from `seed` and the epoch. `false` keeps the order of the file.",
);

const GROUP_BY_LENGTH: Argument = Argument::new(
    "group_by_length",
    "bool",
    "false",
    "Hugging Face's `group_by_length`",
    Accepts::Flag,
    "Puts examples of similar length into a batch, so that less is padding (SC0410). The order of an epoch is still random, \
     fixed by `seed` and the epoch, has each example once and begins with a batch that has a longest one; it needs \
     `shuffle` and texts.",
);

const SEED: Argument = Argument::new(
    "seed",
    "integer ≥ 0",
    "0",
    "ours",
    Accepts::Integer(0),
    "Fixes the order of the examples and the dropout masks. The same seed on the same device gives the same \
     numbers, bit for bit on the CPU.",
);

const MAX_LENGTH: Argument = Argument::new(
    "max_length",
    "integer ≥ 1",
    "64",
    "ours: the recipe of the notebook",
    Accepts::Integer(1),
    "Tokens per example, special ones included; longer texts are truncated and reported (SC0407). Above the \
     model's positions it is SC0401.",
);

const CLASS_WEIGHT: Argument = Argument::new(
    "class_weight",
    "a weight for each class, or `\"balanced\"`",
    "1 each",
    "Keras; `\"balanced\"` is scikit-learn's",
    Accepts::Value(None),
    "What each example counts in the training loss, by its class: `{0: 1.0, 1: 3.0}`, \
     `{\"games\": 3.0, …}`, `[1.0, 3.0]` or `[(0, 1.0), …]`; every class needs one. The sum is divided by the number of examples, as in Keras; validation is \
     not weighted.",
);

const INITIAL_EPOCH: Argument = Argument::new(
    "initial_epoch",
    "integer ≥ 0",
    "0",
    "Keras",
    Accepts::Integer(0),
    "The epoch to start with, counted from 0: `epochs - initial_epoch` epochs are trained. Order, dropout and a \
     schedule over the run continue where a run of that many epochs ended; it must be below `epochs`.",
);

const STEPS_PER_EPOCH: Argument = Argument::new(
    "steps_per_epoch",
    "integer ≥ 1",
    "all",
    "Keras",
    Accepts::Integer(1),
    "Batches per epoch: the first ones of its order. Examples that no epoch reaches are reported (SC0707); the \
     data is the upper limit.",
);

const CALLBACKS: Argument = Argument::new(
    "callbacks",
    "list of callbacks",
    "none",
    "Keras",
    Accepts::Value(None),
    "Called while the model trains: `on_epoch_end(|epoch| …)`, `on_batch_end(|batches| …)`, `on_train_begin(…)`, \
     `on_train_end(…)`, `EarlyStopping::new()`, `GradualUnfreezing::new()`, `LearningRateLogger::new()`, `CsvLogger::new(path)?`, `TensorBoard::new(folder)?` or a custom type. Batch callbacks \
     run once per execution (SC0108); they must not use the model that is being trained.",
);

const EARLY_STOPPING: Argument = Argument::new(
    "early_stopping",
    "integer ≥ 1, or `EarlyStopping`",
    "none",
    "Keras's `EarlyStopping(patience)`",
    Accepts::Integer(1),
    "Stops after this many epochs without a better validation loss and restores the weights of the best epoch. \
     It needs validation data; `EarlyStopping::new().monitor(\"val_accuracy\").patience(2)` monitors another \
     value.",
);

const CHECKPOINT: Argument = Argument::new(
    "checkpoint",
    "a folder",
    "none",
    "Keras's `ModelCheckpoint`",
    Accepts::Value(None),
    "Saves the weights after every epoch in the folder's `last`, and in `best` when the validation is the best so far, \
     as Hugging Face files. `from_pretrained(\"folder/best\", …)` loads them. With `every` it also holds complete \
     checkpoints, from which `resume_from` goes on.",
);

const EVERY: Argument = Argument::new(
    "every",
    "integer ≥ 1",
    "none",
    "Hugging Face's `save_steps`",
    Accepts::Integer(1),
    "Writes a complete checkpoint after every this many optimizer steps, and at the end, to `step-…` in the folder of \
     `checkpoint`: weights, optimizer, counts of metrics and the place in the data. A process that is killed while it \
     writes leaves the older ones. A disk that is full ends the writing (SC0525), not the training.",
);

const KEEP_LAST: Argument = Argument::new(
    "keep_last",
    "integer ≥ 1",
    "3",
    "Hugging Face's `save_total_limit`",
    Accepts::Integer(1),
    "How many of the run's complete checkpoints are kept, the newest ones. An older one is removed after the next is \
     complete.",
);

const RESUME_FROM: Argument = Argument::new(
    "resume_from",
    "a folder",
    "none",
    "Hugging Face's `resume_from_checkpoint`",
    Accepts::Value(None),
    "Goes on from the newest complete checkpoint of a folder, or from one `step-…` of it, also in another process: on \
     the CPU with the same bits as if the run had not ended. Data and arguments must be the same (SC0527), the strategy \
     may be another one (SC0532).",
)
.excludes(&[("resume", RESUME_CONFLICT)]);

const RESUME: Argument = Argument::new(
    "resume",
    "bool",
    "false",
    "ours",
    Accepts::Flag,
    "Continues an interrupted run at the batch where it stopped. Without such a run, training starts from the \
     beginning.",
)
.excludes(&[("resume_from", RESUME_CONFLICT)]);

const RECOMPUTE: Argument = Argument::new(
    "recompute",
    "bool",
    "false",
    "Hugging Face's `gradient_checkpointing`, Keras's `RematScope`",
    Accepts::Flag,
    "Keeps only the input of each encoder layer and computes the layer once more in the backward pass: less memory, about \
     a third more time, the same gradients, bit for bit on the CPU. `memory_plan` shows what it saves. A network of other \
     layers cannot (SC0605).",
);

const VERBOSE: Argument = Argument::new(
    "verbose",
    "bool",
    "true",
    "Keras",
    Accepts::Flag,
    "Shows the table of progress. `false` shows nothing; the `History` is the same.",
);
