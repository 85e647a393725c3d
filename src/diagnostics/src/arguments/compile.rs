//! Arguments of `compile!`, after `Model.compile` of Keras; the departures say so.

use super::{Accepts, Argument, IdentifierKind, Kind, REQUIRED};

/// What `compile!(model, …)` accepts.
pub const COMPILE: &[Argument] = &[
    OPTIMIZER,
    LOSS,
    METRICS,
    STEPS_PER_EXECUTION,
    ACCUMULATION,
    SYNC_EVERY,
    DROP,
    STRATEGY,
];

const OPTIMIZER: Argument = Argument::new(
    "optimizer",
    "optimizer",
    REQUIRED,
    "ours; Keras uses RMSprop at 0.001",
    Accepts::Identifier(IdentifierKind::Optimizer),
    "The optimizer: `AdamW::new(rate)`, `Adam`, `SGD`, `RMSprop`, `Lion`, `Lamb` or `Adafactor` with their methods. A string such as \
     \"adamw\" selects the type with Keras's default rate, which is too high for BERT.",
);

const LOSS: Argument = Argument::new(
    "loss",
    "loss",
    "none",
    "Keras",
    Accepts::Identifier(IdentifierKind::Loss),
    "What is minimized, as a mean over the examples of the global batch. A string is resolved to a type; a \
     cross-entropy given as a string takes logits, unlike Keras's.",
);

const METRICS: Argument = Argument::new(
    "metrics",
    "list of metrics",
    "[]",
    "Keras",
    Accepts::Identifier(IdentifierKind::Metric),
    "What is measured in addition to the loss, over the whole split and not as an average of batches. A metric \
     with an empty denominator is shown as undefined, not as NaN.",
);

const STEPS_PER_EXECUTION: Argument = Argument::new(
    "steps_per_execution",
    "integer ≥ 1",
    "1",
    "Keras",
    Accepts::Integer(1),
    "How many batches run before control returns to the host. It changes no step and no all-reduce. \
     A value above 1 needs an active scope (SC0102); the epoch is the upper limit.",
);

const ACCUMULATION: Argument = Argument::new(
    "gradient_accumulation_steps",
    "integer ≥ 1",
    "1",
    "ours; an argument of the optimizer in Keras 3",
    Accepts::Integer(1),
    "Batches whose gradients are averaged, by example, into one optimizer step and one all-reduce. A shorter \
     last group of an epoch is its own step, divided by its own length.",
);

const SYNC_EVERY: Argument = Argument::new(
    "sync_every",
    "integer ≥ 1",
    "1",
    "ours; Keras has no such argument",
    Accepts::Integer(1),
    "Above 1, local SGD: each replica makes this many optimizer steps independently, with its own moments, then \
     the parameters are averaged; `fit!` ends with an average. 1 averages gradients at every step, which is not \
     the same for Adam. It needs a strategy that copies variables to its replicas.",
);

const DROP: Argument = Argument::new(
    "drop_unsupported",
    "bool",
    "false",
    "ours",
    Accepts::Flag,
    "Turns SC0102 into a warning and continues with `steps_per_execution = 1`. It drops nothing else: an unknown \
     argument stays an error.",
);

const STRATEGY: Argument = Argument::new(
    "strategy",
    "`none` or a strategy",
    "the scope's",
    "ours",
    Accepts::Value(Some(Kind::Strategy)),
    "`none` trains on one device on purpose although the notebook has a strategy, which SC0201 would otherwise \
     report. A strategy must be the one the model was built under.",
);
