//! Arguments of `fit!`, after `Model.fit` of Keras and the Hugging Face trainer; departures say so.

use super::{Accepts, Argument};

/// What `fit!(model, data, …)` accepts.
pub const FIT: &[Argument] = &[
    EPOCHS,
    BATCH_SIZE,
    VALIDATION_DATA,
    VALIDATION_SPLIT,
    SHUFFLE,
    SEED,
    MAX_LENGTH,
    EARLY_STOPPING,
    RESUME,
    VERBOSE,
];

const SPLIT_CONFLICT: &str = "both say what to validate on, and one of them would be ignored";

const EPOCHS: Argument = Argument::new(
    "epochs",
    "integer ≥ 1",
    "1",
    "Keras",
    Accepts::Integer(1),
    "How often the data is gone through. A schedule that is written as a share of the run spans all of them.",
);

const BATCH_SIZE: Argument = Argument::new(
    "batch_size",
    "integer ≥ 1",
    "32",
    "Keras",
    Accepts::Integer(1),
    "Examples per batch over all replicas together, so that 32 over 2 replicas are 16 each. The last batch \
     may be shorter; it is kept and weighted by its examples.",
);

const VALIDATION_DATA: Argument = Argument::new(
    "validation_data",
    "data set",
    "none",
    "Keras",
    Accepts::Value,
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

const SHUFFLE: Argument = Argument::new(
    "shuffle",
    "bool",
    "true",
    "Keras",
    Accepts::Flag,
    "Draws a new order every epoch from `seed` and the number of the epoch. `false` keeps the order of the \
     file.",
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
    "Tokens per example, special ones included; longer texts are cut and reported (SC0407). Above the \
     model's positions it is SC0401.",
);

const EARLY_STOPPING: Argument = Argument::new(
    "early_stopping",
    "integer ≥ 1",
    "none",
    "Keras's `EarlyStopping(patience)`",
    Accepts::Integer(1),
    "Stops after this many epochs without a better validation loss and goes back to the best epoch's weights. \
     It needs validation data.",
);

const RESUME: Argument = Argument::new(
    "resume",
    "bool",
    "false",
    "ours",
    Accepts::Flag,
    "Goes on with a run that was interrupted, at the batch where it stopped. Without such a run it starts \
     from the beginning.",
);

const VERBOSE: Argument = Argument::new(
    "verbose",
    "bool",
    "true",
    "Keras",
    Accepts::Flag,
    "Shows the table of progress. `false` shows nothing; the `History` is the same.",
);
