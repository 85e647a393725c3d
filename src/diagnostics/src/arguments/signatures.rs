//! How Keras, scikit-learn and PyTorch name the values of a call, and where each of them goes here.

use To::{Absent, Field, Ignored, Method, Operand};

use super::{
    signatures_of_layers as layers, signatures_of_metrics as metrics,
    signatures_of_optimizers as optimizers,
};

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// To this place between the brackets.
    Operand(usize),
    /// To a method of this name.
    Method(&'static str),
    /// To a field between the braces.
    Field(&'static str),
    /// The two parts of it to two methods.
    Pair(&'static str, &'static str),
    /// Nowhere, so that the call would mean something else without it: the reason.
    Absent(&'static str),
    /// Nowhere, and no result changes: the reason.
    Ignored(&'static str),
}

/// What a number is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A whole one.
    Integer,
    /// A float.
    Float,
    /// It may be either, or is no number.
    Any,
}

/// A value by its name.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name there, or the one here.
    pub name: &'static str,
    /// Where it goes.
    pub to: To,
    /// What a number is there.
    pub number: Number,
}

/// How a call is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `Name::new(…)`.
    New,
    /// `Name::new(…)?`.
    NewOrError,
    /// `Name(…)`.
    Function,
    /// `Name { field: … }`.
    Braces,
}

/// A value between the brackets or the braces.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// What stands there if the call does not give it.
    pub value: &'static str,
    /// Whether that is what the other library takes then. If not, the value is missing.
    pub is_default: bool,
}

/// A constructor or a function.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Its name there.
    pub name: &'static str,
    /// Its name here.
    pub written: &'static str,
    /// How it is called here.
    pub form: Form,
    /// The values between its brackets.
    pub places: &'static [Place],
    /// Its values, in their order there.
    pub parameters: &'static [Parameter],
    /// Other names of values.
    pub also: &'static [Parameter],
}

impl Signature {
    /// The value of a name.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        let mut all = self.parameters.iter().chain(self.also);
        all.find(|it| it.name == name)
    }
}

/// The signature of a name.
pub fn signature(name: &str) -> Option<&'static Signature> {
    signatures().find(|it| it.name == name)
}

/// All signatures.
pub fn signatures() -> impl Iterator<Item = &'static Signature> {
    let tables = [SCHEDULES, LOSSES, metrics::METRICS, metrics::CALLBACKS];
    let others = [
        layers::LAYERS,
        layers::FUNCTIONS,
        optimizers::OPTIMIZERS,
        optimizers::ADAMW,
    ];
    tables.into_iter().chain(others).flatten()
}

pub(super) const fn float(name: &'static str, to: To) -> Parameter {
    let number = Number::Float;
    Parameter { name, to, number }
}

pub(super) const fn integer(name: &'static str, to: To) -> Parameter {
    let number = Number::Integer;
    Parameter { name, to, number }
}

pub(super) const fn any(name: &'static str, to: To) -> Parameter {
    let number = Number::Any;
    Parameter { name, to, number }
}

pub(super) const fn missing(value: &'static str) -> Place {
    Place {
        value,
        is_default: false,
    }
}

pub(super) const fn default(value: &'static str) -> Place {
    Place {
        value,
        is_default: true,
    }
}

pub(super) const NAME: Parameter = any("name", Ignored("it only names the value"));
pub(super) const DTYPE: Parameter = any(
    "dtype",
    Absent(
        "the policy decides the precision of all layers: `set_global_policy(\"mixed_float16\")?`",
    ),
);

const SPANS: &str = "the schedule spans the run: `fit!` knows how many steps that has";
const NO_WARM_UP_TARGET: &str = "the warm-up begins at 0 and ends at the first value, the rate that the decay begins with; so give \
     that rate first, and leave `warmup_target` out";
const SHARE: &str = "the second value is the share of the run, from 0 to 1: divide the steps of the warm-up by all steps of the run";

const WARM_UP: &[Parameter] = &[float("peak", Operand(0)), float("warmup", Operand(1))];
const WARM_UP_TOO: &[Parameter] = &[
    float("learning_rate", Operand(0)),
    float("lr", Operand(0)),
    float("rate", Operand(0)),
    float("init_lr", Operand(0)),
    float("warmup_ratio", Operand(1)),
    float("warmup_share", Operand(1)),
    float("share", Operand(1)),
    float("warmup_proportion", Operand(1)),
    integer("warmup_steps", Absent(SHARE)),
    integer("num_warmup_steps", Absent(SHARE)),
    integer("total_steps", Ignored(SPANS)),
    integer("num_training_steps", Ignored(SPANS)),
    integer("num_train_steps", Ignored(SPANS)),
];
const RATES: &[Parameter] = &[
    float("learning_rate", Operand(0)),
    float("lr", Operand(0)),
    float("initial", Operand(0)),
    float("rate", Operand(0)),
    integer("steps", Operand(1)),
];

/// Schedules of the rate.
const SCHEDULES: &[Signature] = &[
    Signature {
        name: "CosineDecay",
        written: "CosineDecay",
        form: Form::New,
        places: &[missing("1e-3"), missing("1000")],
        parameters: &[
            float("initial_learning_rate", Operand(0)),
            integer("decay_steps", Operand(1)),
            float("alpha", Method("alpha")),
            NAME,
            float("warmup_target", Absent(NO_WARM_UP_TARGET)),
            integer("warmup_steps", Method("warmup_steps")),
        ],
        also: RATES,
    },
    Signature {
        name: "ExponentialDecay",
        written: "ExponentialDecay",
        form: Form::New,
        places: &[missing("1e-3"), missing("1000"), missing("0.9")],
        parameters: &[
            float("initial_learning_rate", Operand(0)),
            integer("decay_steps", Operand(1)),
            float("decay_rate", Operand(2)),
            any("staircase", Method("staircase")),
            NAME,
        ],
        also: RATES,
    },
    Signature {
        name: "PolynomialDecay",
        written: "PolynomialDecay",
        form: Form::New,
        places: &[missing("1e-3"), missing("1000")],
        parameters: &[
            float("initial_learning_rate", Operand(0)),
            integer("decay_steps", Operand(1)),
            float("end_learning_rate", Method("end_learning_rate")),
            float("power", Method("power")),
            any("cycle", Method("cycle")),
            NAME,
        ],
        also: RATES,
    },
    Signature {
        name: "warmup_linear",
        written: "warmup_linear",
        form: Form::Function,
        places: &[missing("5e-5"), missing("0.1")],
        parameters: WARM_UP,
        also: WARM_UP_TOO,
    },
    Signature {
        name: "bert_warmup",
        written: "bert_warmup",
        form: Form::Function,
        places: &[missing("5e-5"), missing("0.1")],
        parameters: WARM_UP,
        also: WARM_UP_TOO,
    },
    Signature {
        name: "constant",
        written: "constant",
        form: Form::Function,
        places: &[missing("1e-3")],
        parameters: &[float("rate", Operand(0))],
        also: &[float("learning_rate", Operand(0)), float("lr", Operand(0))],
    },
];

const LOGITS: Place = default("true");
const FROM_LOGITS: Parameter = any("from_logits", Field("from_logits"));
const SMOOTHING: Parameter = float("label_smoothing", Method("label_smoothing"));
const REDUCTION: Parameter = any(
    "reduction",
    Absent("the loss is the mean over the examples; `reduction` cannot be chosen"),
);
const AXIS: Parameter = any("axis", Ignored("the classes are the last dimension"));
const IGNORE: Parameter = any(
    "ignore_class",
    Absent(
        "no class is left out of a loss: leave its examples out of the data with `data.filter(…)`",
    ),
);

/// A loss of classes.
const fn of_classes(name: &'static str, parameters: &'static [Parameter]) -> Signature {
    Signature {
        name,
        written: name,
        form: Form::Braces,
        places: &[LOGITS],
        parameters,
        also: &[SMOOTHING],
    }
}

/// A loss of numbers without settings.
const fn of_numbers(name: &'static str, written: &'static str) -> Signature {
    Signature {
        name,
        written,
        form: Form::Braces,
        places: &[],
        parameters: &[REDUCTION, NAME, DTYPE],
        also: &[AXIS],
    }
}

/// Losses: values, with fields in braces.
const LOSSES: &[Signature] = &[
    of_classes(
        "SparseCategoricalCrossentropy",
        &[FROM_LOGITS, IGNORE, REDUCTION, AXIS, NAME, DTYPE],
    ),
    of_classes(
        "CategoricalCrossentropy",
        &[FROM_LOGITS, SMOOTHING, AXIS, REDUCTION, NAME, DTYPE],
    ),
    of_classes(
        "BinaryCrossentropy",
        &[FROM_LOGITS, SMOOTHING, AXIS, REDUCTION, NAME, DTYPE],
    ),
    of_numbers("MeanSquaredError", "MeanSquaredError"),
    of_numbers("MeanAbsoluteError", "MeanAbsoluteError"),
    of_numbers("LogCosh", "LogCosh"),
    of_numbers("Hinge", "Hinge"),
    of_numbers("SquaredHinge", "SquaredHinge"),
    Signature {
        name: "Huber",
        written: "Huber",
        form: Form::Braces,
        places: &[default("1.0")],
        parameters: &[float("delta", Field("delta")), REDUCTION, NAME, DTYPE],
        also: &[],
    },
    Signature {
        name: "TripletMargin",
        written: "TripletMargin",
        form: Form::Braces,
        places: &[default("5.0")],
        parameters: &[float("margin", Field("margin")), NAME],
        also: &[float("triplet_margin", Field("margin"))],
    },
    Signature {
        name: "MultipleNegativesRanking",
        written: "MultipleNegativesRanking",
        form: Form::Braces,
        places: &[default("20.0")],
        parameters: &[float("scale", Field("scale")), NAME],
        also: &[],
    },
];
