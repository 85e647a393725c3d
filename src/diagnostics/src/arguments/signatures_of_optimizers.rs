//! How Keras and PyTorch name the values of their optimizers.

use super::signatures::To::{Absent, Ignored, Method, Operand, Pair};
use super::signatures::{Form, NAME, Parameter, Place, Signature, any, default, float, integer};

const RATE: Parameter = float("learning_rate", Operand(0));
const BETA_1: Parameter = float("beta_1", Method("beta_1"));
const BETA_2: Parameter = float("beta_2", Method("beta_2"));
const EPSILON: Parameter = float("epsilon", Method("epsilon"));
const MOMENTUM: Parameter = float("momentum", Method("momentum"));
const AMSGRAD: Parameter = any("amsgrad", Method("amsgrad"));
const DECAY: Parameter = float("weight_decay", Method("weight_decay"));
const NO_DECAY: Parameter = float(
    "weight_decay",
    Absent(
        "this optimizer decays no weights: `AdamW`, `Lamb`, `Lion` and `Adafactor` have `.weight_decay(0.01)`",
    ),
);
const CLIPNORM: Parameter = float("clipnorm", Method("clipnorm"));
const CLIPVALUE: Parameter = float("clipvalue", Method("clipvalue"));
const GLOBAL_CLIPNORM: Parameter = float("global_clipnorm", Method("global_clipnorm"));
const USE_EMA: Parameter = any("use_ema", Method("use_ema"));
const EMA_MOMENTUM: Parameter = float("ema_momentum", Method("ema_momentum"));
const EMA_FREQUENCY: Parameter =
    integer("ema_overwrite_frequency", Method("ema_overwrite_frequency"));
const SCALE: Parameter = float(
    "loss_scale_factor",
    Absent(
        "the policy scales the loss: `set_global_policy(\"mixed_float16\")?` before the model is built",
    ),
);
const ACCUMULATION: Parameter = integer(
    "gradient_accumulation_steps",
    Absent("it is an argument of `compile!`: `gradient_accumulation_steps = 4`"),
);
/// Names that older versions of Keras, PyTorch and the builders here have.
const ALSO: &[Parameter] = &[
    float("lr", Operand(0)),
    float("rate", Operand(0)),
    float("eps", Method("epsilon")),
    float("epsilon", Method("epsilon")),
    any("betas", Pair("beta_1", "beta_2")),
    float("rho", Method("rho")),
    float("momentum", Method("momentum")),
    float("beta_1", Method("beta_1")),
    float("beta_2", Method("beta_2")),
    float("clip_norm", Method("global_clipnorm")),
    float("max_grad_norm", Method("global_clipnorm")),
    any("decay_all_parameters", Method("decay_all_parameters")),
    any(
        "exclude_from_weight_decay",
        Method("exclude_from_weight_decay"),
    ),
    float("layer_decay", Method("layer_decay")),
    float(
        "decay",
        Absent(
            "a rate that falls is a schedule in place of the rate: `ExponentialDecay::new(1e-3, 1000, 0.9)`",
        ),
    ),
    any("jit_compile", Ignored("the backend compiles the kernels")),
    any(
        "fused",
        Ignored("the backend decides how an update is computed"),
    ),
    any(
        "foreach",
        Ignored("the backend decides how an update is computed"),
    ),
    any("maximize", Absent("a loss is always made smaller")),
    float("dampening", Absent("there is no dampening of the momentum")),
];

macro_rules! signatures {
    ($($name:literal, $rate:literal, [$($own:expr),*], $decay:expr;)*) => {
        &[$(Signature {
            name: $name,
            written: $name,
            form: Form::New,
            places: &[default($rate)],
            parameters: &[
                RATE, $($own,)* $decay, CLIPNORM, CLIPVALUE, GLOBAL_CLIPNORM, USE_EMA, EMA_MOMENTUM, EMA_FREQUENCY, SCALE,
                ACCUMULATION, NAME,
            ],
            also: ALSO,
        }),*]
    };
}

/// Optimizers: the rate, then methods. The order is that of Keras.
pub(super) const OPTIMIZERS: &[Signature] = signatures! {
    "Adam", "1e-3", [BETA_1, BETA_2, EPSILON, AMSGRAD], NO_DECAY;
    "SGD", "0.01", [MOMENTUM, any("nesterov", Method("nesterov"))], NO_DECAY;
    "RMSprop", "1e-3", [float("rho", Method("rho")), MOMENTUM, EPSILON, any("centered", Method("centered"))], NO_DECAY;
    "Lion", "1e-3", [BETA_1, BETA_2], DECAY;
    "Lamb", "1e-3", [BETA_1, BETA_2, EPSILON], DECAY;
    "Adafactor", "1e-3", [
        float("beta_2_decay", Method("beta_2_decay")), float("epsilon_1", Method("epsilon_1")),
        float("epsilon_2", Method("epsilon_2")), float("clip_threshold", Method("clip_threshold")),
        any("relative_step", Method("relative_step"))
    ], DECAY;
};

/// AdamW, whose decay stands second.
pub(super) const ADAMW: &[Signature] = &[Signature {
    name: "AdamW",
    written: "AdamW",
    form: Form::New,
    places: &[Place {
        value: "1e-3",
        is_default: true,
    }],
    parameters: &[
        RATE,
        DECAY,
        BETA_1,
        BETA_2,
        EPSILON,
        AMSGRAD,
        CLIPNORM,
        CLIPVALUE,
        GLOBAL_CLIPNORM,
        USE_EMA,
        EMA_MOMENTUM,
        EMA_FREQUENCY,
        SCALE,
        ACCUMULATION,
        NAME,
    ],
    also: ALSO,
}];
