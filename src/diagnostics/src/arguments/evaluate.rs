//! Arguments of `evaluate!`, after `Model.evaluate` of Keras.

use super::{Accepts, Argument};

/// What `evaluate!(model, data, …)` accepts.
pub const EVALUATE: &[Argument] = &[BATCH_SIZE, STEPS, MAX_LENGTH, VERBOSE];

const BATCH_SIZE: Argument = Argument::new(
    "batch_size",
    "integer ≥ 1",
    "32",
    "Keras",
    Accepts::Integer(1),
    "Examples per batch over all replicas together. It changes the time, not the result.",
);

const STEPS: Argument = Argument::new(
    "steps",
    "integer ≥ 1",
    "all",
    "Keras",
    Accepts::Integer(1),
    "Evaluates only this number of batches from the start. The result is then that of these examples.",
);

const MAX_LENGTH: Argument = Argument::new(
    "max_length",
    "integer ≥ 1",
    "that of the training, else 64",
    "ours: the recipe of the notebook",
    Accepts::Integer(1),
    "Tokens per example, special ones included; longer texts are truncated and reported (SC0407). Where it is not \
     that of the training, the result names both.",
);

const VERBOSE: Argument = Argument::new(
    "verbose",
    "bool",
    "true",
    "Keras",
    Accepts::Flag,
    "Shows the progress. `false` shows nothing; the result is the same.",
);
