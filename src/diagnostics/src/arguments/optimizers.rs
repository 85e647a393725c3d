//! Arguments of the optimizers: the rate is the constructor's, all others are methods.

use super::{Accepts, Argument, Interval};

/// An optimizer and its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Optimizer {
    /// The type's name.
    pub name: &'static str,
    /// Its methods, one argument each.
    pub arguments: &'static [Argument],
    /// The rate that it is usually given here, as code: of AdamW and Lion one for BERT, of the others Keras's default.
    pub usual_rate: &'static str,
    /// The rate that its text stands for, as code: Keras's default.
    pub named_rate: &'static str,
}

/// The optimizers that exist.
pub const OPTIMIZERS: &[Optimizer] = &[
    Optimizer {
        name: "AdamW",
        arguments: ADAMW,
        usual_rate: "5e-5",
        named_rate: "1e-3",
    },
    Optimizer {
        name: "Adam",
        arguments: ADAM,
        usual_rate: "1e-3",
        named_rate: "1e-3",
    },
    Optimizer {
        name: "SGD",
        arguments: SGD,
        usual_rate: "0.01",
        named_rate: "0.01",
    },
    Optimizer {
        name: "RMSprop",
        arguments: RMSPROP,
        usual_rate: "1e-3",
        named_rate: "1e-3",
    },
    Optimizer {
        name: "Lion",
        arguments: LION,
        usual_rate: "1e-5",
        named_rate: "1e-4",
    },
    Optimizer {
        name: "Lamb",
        arguments: LAMB,
        usual_rate: "1e-3",
        named_rate: "1e-3",
    },
    Optimizer {
        name: "Adafactor",
        arguments: ADAFACTOR,
        usual_rate: "1e-3",
        named_rate: "1e-3",
    },
];

/// An optimizer by its type's name.
pub fn optimizer(name: &str) -> Option<&'static Optimizer> {
    OPTIMIZERS.iter().find(|optimizer| optimizer.name == name)
}

/// The methods of an optimizer: its own, then those that every one has.
macro_rules! methods {
    [$($own:expr),* $(,)?] => {
        &[
            $($own,)*
            CLIPNORM,
            GLOBAL_CLIPNORM,
            CLIPVALUE,
            USE_EMA,
            EMA_MOMENTUM,
            EMA_OVERWRITE_FREQUENCY,
            LAYER_DECAY,
            RATE_FOR,
        ]
    };
}

/// Methods of `AdamW::new(rate)`.
pub const ADAMW: &[Argument] = methods![
    WEIGHT_DECAY,
    DECAY_ALL,
    EXCLUDE,
    BETA_1,
    BETA_2,
    EPSILON,
    AMSGRAD,
];

/// Methods of `Adam::new(rate)`.
pub const ADAM: &[Argument] = methods![BETA_1, BETA_2, EPSILON, AMSGRAD,];

/// Methods of `SGD::new(rate)`.
pub const SGD: &[Argument] = methods![MOMENTUM, NESTEROV,];

/// Methods of `RMSprop::new(rate)`.
pub const RMSPROP: &[Argument] = methods![RHO, MOMENTUM, EPSILON_INSIDE, CENTERED,];

/// Methods of `Lion::new(rate)`.
pub const LION: &[Argument] = methods![
    BETA_1_OF_LION,
    BETA_2_OF_LION,
    DECAY_OF_LION,
    DECAY_ALL,
    EXCLUDE,
];

/// Methods of `Lamb::new(rate)`.
pub const LAMB: &[Argument] = methods![
    DECAY_OF_LAMB,
    DECAY_ALL,
    EXCLUDE,
    BETA_1,
    BETA_2,
    EPSILON_OF_LAMB,
];

/// Methods of `Adafactor::new(rate)`.
pub const ADAFACTOR: &[Argument] = methods![
    BETA_2_DECAY,
    EPSILON_1,
    EPSILON_2,
    CLIP_THRESHOLD,
    RELATIVE_STEP,
    DECAY_OF_ADAFACTOR,
    DECAY_ALL,
    EXCLUDE,
];

const RHO: Argument = Argument::new(
    "rho",
    "number from 0, below 1",
    "0.9",
    "Keras; PyTorch has 0.99",
    Accepts::Number(Interval::BelowOne),
    "The decay rate of the mean of the squared gradients. 0 uses the last gradient alone.",
);

const EPSILON_INSIDE: Argument = Argument::new(
    "epsilon",
    "number > 0",
    "1e-7",
    "Keras; PyTorch adds 1e-8 outside the root",
    Accepts::Number(Interval::Positive),
    "Added inside the square root. It affects the step only where gradients are tiny.",
);

const CENTERED: Argument = Argument::new(
    "centered",
    "bool",
    "false",
    "Keras, PyTorch",
    Accepts::Flag,
    "Divides by the root of the variance of the gradients instead of their mean square. It stores one more number per \
     weight.",
);

const BETA_1_OF_LION: Argument = Argument::new(
    "beta_1",
    "number from 0, below 1",
    "0.9",
    "Keras; Chen et al. 2023",
    Accepts::Number(Interval::BelowOne),
    "The share of the momentum in the direction of a step. The rest is the gradient's.",
);

const BETA_2_OF_LION: Argument = Argument::new(
    "beta_2",
    "number from 0, below 1",
    "0.99",
    "Keras; Chen et al. 2023",
    Accepts::Number(Interval::BelowOne),
    "The decay rate of the momentum. 0 keeps the last gradient alone.",
);

const DECAY_OF_LION: Argument = Argument::new(
    "weight_decay",
    "number ≥ 0",
    "0",
    "Keras",
    Accepts::Number(Interval::NotNegative),
    "Decoupled: `w -= rate · decay · w` before the step. As Lion's rate is 3 to 10 times smaller than AdamW's, the decay is that \
     much larger. Biases and LayerNorm are excluded unless `decay_all_parameters(true)` is given.",
);

const EPSILON_OF_LAMB: Argument = Argument::new(
    "epsilon",
    "number > 0",
    "1e-7",
    "Keras; You et al. 2020 have 1e-6",
    Accepts::Number(Interval::Positive),
    "Added outside the square root. It affects the direction only where gradients are tiny.",
);

const DECAY_OF_LAMB: Argument = Argument::new(
    "weight_decay",
    "number ≥ 0",
    "0",
    "Keras; You et al. 2020 have 0.01",
    Accepts::Number(Interval::NotNegative),
    "Decoupled, as in Keras: `w -= rate · decay · w` before the step. The paper adds `decay · w` to the direction instead, whose \
     length is then that of the weights. Biases and LayerNorm are excluded unless `decay_all_parameters(true)` is given.",
);

const BETA_2_DECAY: Argument = Argument::new(
    "beta_2_decay",
    "number from -1, below 0",
    "-0.8",
    "Keras; Shazeer and Stern 2018",
    Accepts::Number(Interval::NegativeUpToOne),
    "The old means of the squared gradients have the share `1 − stepᵇ` in the new ones, with this number as `b`. It is 0 at the \
     first step and close to 1 later.",
);

const EPSILON_1: Argument = Argument::new(
    "epsilon_1",
    "number > 0",
    "1e-30",
    "Keras; Shazeer and Stern 2018",
    Accepts::Number(Interval::Positive),
    "Added to every squared gradient. So nothing is divided by 0.",
);

const EPSILON_2: Argument = Argument::new(
    "epsilon_2",
    "number ≥ 0",
    "1e-3",
    "Keras; Shazeer and Stern 2018",
    Accepts::Number(Interval::NotNegative),
    "A step of a variable is the rate times its root mean square, or times this number where that is larger. So variables \
     that begin with zeros move too.",
);

const CLIP_THRESHOLD: Argument = Argument::new(
    "clip_threshold",
    "number ≥ 1",
    "1",
    "Keras; Shazeer and Stern 2018",
    Accepts::Number(Interval::FromOne),
    "The direction of a variable is shortened to this root mean square where it is longer. So a sudden large gradient does not \
     make a large step.",
);

const RELATIVE_STEP: Argument = Argument::new(
    "relative_step",
    "bool",
    "true",
    "Keras, which holds the rate so with `False` too",
    Accepts::Flag,
    "Holds the rate at 1/√step or below. With `false` it is the rate as given.",
);

const DECAY_OF_ADAFACTOR: Argument = Argument::new(
    "weight_decay",
    "number ≥ 0",
    "0",
    "Keras",
    Accepts::Number(Interval::NotNegative),
    "Decoupled: `w -= rate · decay · w` before the step. Biases and LayerNorm are excluded unless \
     `decay_all_parameters(true)` is given.",
);

const ONE_CLIP: &str =
    "gradients are clipped in one way; with two, the result would depend on their order";

const ONE_LIST: &str = "one decays every variable, the other excludes some";

const WEIGHT_DECAY: Argument = Argument::new(
    "weight_decay",
    "number ≥ 0",
    "0.01",
    "BERT and PyTorch; Keras has 0.004",
    Accepts::Number(Interval::NotNegative),
    "Decoupled: `w -= rate · decay · w` before the step. Biases and LayerNorm are excluded unless \
     `decay_all_parameters(true)` is given.",
);

const DECAY_ALL: Argument = Argument::new(
    "decay_all_parameters",
    "bool",
    "false",
    "BERT; Keras decays every variable",
    Accepts::Flag,
    "Decays biases and LayerNorm too. Keras does so unless variables are excluded by name.",
)
.excludes(&[("exclude_from_weight_decay", ONE_LIST)]);

const EXCLUDE: Argument = Argument::new(
    "exclude_from_weight_decay",
    "list of texts",
    "[\"bias\", \"LayerNorm\"]",
    "BERT; Keras excludes nothing",
    Accepts::Value(None),
    "Variables whose name contains one of these do not decay. It replaces the default list, so name biases \
     and LayerNorm too.",
)
.excludes(&[("decay_all_parameters", ONE_LIST)]);

const BETA_1: Argument = Argument::new(
    "beta_1",
    "number from 0, below 1",
    "0.9",
    "Keras, PyTorch",
    Accepts::Number(Interval::BelowOne),
    "The decay rate of the first moment, the mean of the gradients. 0 uses the last gradient alone.",
);

const BETA_2: Argument = Argument::new(
    "beta_2",
    "number from 0, below 1",
    "0.999",
    "Keras, PyTorch",
    Accepts::Number(Interval::BelowOne),
    "The decay rate of the second moment, the mean of the squared gradients. Both moments are bias-corrected.",
);

const EPSILON: Argument = Argument::new(
    "epsilon",
    "number > 0",
    "1e-8",
    "PyTorch and Hugging Face; Keras has 1e-7, BERT 1e-6",
    Accepts::Number(Interval::Positive),
    "Added outside the square root. It affects the step only where gradients are tiny.",
);

const AMSGRAD: Argument = Argument::new(
    "amsgrad",
    "bool",
    "false",
    "Keras, PyTorch",
    Accepts::Flag,
    "Divides by the root of the largest second moment so far instead of the current one, so steps do not grow \
     when gradients become small. It stores one more number per weight.",
);

const CLIPNORM: Argument = Argument::new(
    "clipnorm",
    "number > 0",
    "none",
    "Keras",
    Accepts::Number(Interval::Positive),
    "Clips the norm of each tensor's gradient separately. BERT's recipe is `global_clipnorm(1.0)`.",
)
.excludes(&[("global_clipnorm", ONE_CLIP), ("clipvalue", ONE_CLIP)]);

const GLOBAL_CLIPNORM: Argument = Argument::new(
    "global_clipnorm",
    "number > 0",
    "none",
    "Keras; BERT uses 1.0",
    Accepts::Number(Interval::Positive),
    "Clips the norm over all gradients together: the factor is `max / (norm + 1e-6)`, at most 1. It is computed \
     after the all-reduce, so it does not depend on the number of replicas.",
)
.excludes(&[("clipnorm", ONE_CLIP), ("clipvalue", ONE_CLIP)]);

const CLIPVALUE: Argument = Argument::new(
    "clipvalue",
    "number > 0",
    "none",
    "Keras",
    Accepts::Number(Interval::Positive),
    "Clips each element of each gradient to ± this value. The direction of the step changes with it.",
)
.excludes(&[("clipnorm", ONE_CLIP), ("global_clipnorm", ONE_CLIP)]);

const MOMENTUM: Argument = Argument::new(
    "momentum",
    "number from 0, below 1",
    "0",
    "Keras, PyTorch",
    Accepts::Number(Interval::BelowOne),
    "The share of the previous step that is added to the current one. 0 stores no state.",
);

const NESTEROV: Argument = Argument::new(
    "nesterov",
    "bool",
    "false",
    "Keras, PyTorch",
    Accepts::Flag,
    "Nesterov momentum: the gradient step is applied after the momentum step. Without momentum it has no effect.",
);

const USE_EMA: Argument = Argument::new(
    "use_ema",
    "bool",
    "false",
    "Keras",
    Accepts::Flag,
    "Keeps a moving average of every trained variable; when `fit!` ends the model gets the averages. Training and \
     validation during the run use the variables themselves.",
);

const EMA_MOMENTUM: Argument = Argument::new(
    "ema_momentum",
    "number from 0 to 1",
    "0.99",
    "Keras",
    Accepts::Number(Interval::UpToOne),
    "The share of the old average in the new one: after each step `average = momentum · average + (1 − momentum) \
     · weight`. Without `use_ema(true)` it has no effect.",
);

const EMA_OVERWRITE_FREQUENCY: Argument = Argument::new(
    "ema_overwrite_frequency",
    "integer ≥ 1",
    "none",
    "Keras",
    Accepts::Integer(1),
    "The number of optimizer steps after which the variables are overwritten by their averages, repeatedly. By \
     default this happens only at the end of `fit!`.",
);

const LAYER_DECAY: Argument = Argument::new(
    "layer_decay",
    "number from 0 to 1",
    "none",
    "ours; ELECTRA uses 0.8 to 0.9",
    Accepts::Number(Interval::UpToOne),
    "The learning rate of each encoder layer is that of the layer above times this number. The head has the whole rate, \
     the top layer the rate times this number, the embeddings the least. The receipt of `compile!` lists the groups.",
);

const RATE_FOR: Argument = Argument::new(
    "rate_for",
    "pattern, number ≥ 0",
    "none",
    "ours; PyTorch has groups of parameters",
    Accepts::Value(None),
    "`.rate_for(\"embeddings.*\", 0.1)`: the learning rate of the variables whose names match is multiplied with the number. It \
     may be called several times; the last pattern that matches a variable holds. Factors of `layer_decay` multiply with it. \
     The receipt of `compile!` lists the groups.",
);
