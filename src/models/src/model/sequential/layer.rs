//! A layer as it is written: no variables yet, only what they will be made from.

// Keras's names: a cell reads as the article that it was taken from.
#![allow(
    non_snake_case,
    reason = "layers are written with Keras's names, `Dense(10)`"
)]

use serde::{Deserialize, Serialize};
use stratoscope_diagnostics::rules::InvalidSize;
use stratoscope_diagnostics::{Diagnostic, Place, Result, Rule};

use crate::model::build::{InputShape, IntoInputShape};
use stratoscope_arguments::IntoCount;
use stratoscope_network::{Activation, IntoActivation};

/// A layer of a [`Sequential`](super::Sequential()), made by [`Dense`], [`Dropout`], [`Embedding`],
/// [`GlobalAveragePooling1D`] or [`Flatten`].
#[derive(Clone, Debug)]
pub struct Layer {
    pub(in crate::model) kind: Kind,
    pub(in crate::model) activation: Activation,
    pub(super) input_shape: Option<InputShape>,
    pub(super) seed: u64,
    /// What is wrong with it; reported when the model is made.
    pub(super) problem: Option<Box<Diagnostic>>,
}

/// What a layer does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::model) enum Kind {
    Dense { units: usize },
    Dropout { rate: f64 },
    Embedding { entries: usize, width: usize },
    GlobalAveragePooling1D,
    Flatten,
}

/// A layer in which every output is a weighted sum of all inputs: `y = activation(x · weightᵀ + bias)`.
///
/// Weights begin uniformly distributed with Glorot's limit, biases with 0, as in Keras.
pub fn Dense(units: impl IntoCount) -> Layer {
    let mut problem = None;
    let units = at_least_one("Dense", "units", units, &mut problem);
    Layer {
        problem,
        ..Layer::new(Kind::Dense { units })
    }
}

/// A layer that, in training, sets this share of its inputs to 0 and scales the others up.
pub fn Dropout(rate: f64) -> Layer {
    let fault = || {
        let rule = InvalidSize {
            what: "rate".to_owned(),
            given: rate.to_string(),
            expects: "from 0, below 1".to_owned(),
            place: Some(Place::call("Dropout")),
        };
        rule.error()
    };
    Layer {
        problem: (!(0.0..1.0).contains(&rate)).then(fault),
        ..Layer::new(Kind::Dropout { rate })
    }
}

/// A layer that looks up a vector of `output_dim` numbers for each input, which must be whole numbers
/// from 0, below `input_dim`. Only as the first layer.
///
/// Vectors begin uniformly distributed in [−0.05, 0.05], as in Keras.
pub fn Embedding(input_dim: impl IntoCount, output_dim: impl IntoCount) -> Layer {
    let mut problem = None;
    let entries = at_least_one("Embedding", "input_dim", input_dim, &mut problem);
    let width = at_least_one("Embedding", "output_dim", output_dim, &mut problem);
    Layer {
        problem,
        ..Layer::new(Kind::Embedding { entries, width })
    }
}

/// A layer that takes the mean over the positions of a sequence: what follows an [`Embedding`].
pub fn GlobalAveragePooling1D() -> Layer {
    Layer::new(Kind::GlobalAveragePooling1D)
}

/// A layer that writes the positions of a sequence one after the other.
pub fn Flatten() -> Layer {
    Layer::new(Kind::Flatten)
}

impl Layer {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            activation: Activation::Linear,
            input_shape: None,
            seed: 0,
            problem: None,
        }
    }

    /// Its description, for another process.
    pub(super) fn written(&self) -> (Kind, Activation, u64) {
        (self.kind, self.activation, self.seed)
    }

    /// From [`Self::written`].
    pub(super) fn read((kind, activation, seed): (Kind, Activation, u64)) -> Self {
        Self {
            activation,
            seed,
            ..Self::new(kind)
        }
    }

    /// From [`Self::written`] that a file has: sizes and rates are checked.
    pub(super) fn checked((kind, activation, seed): (Kind, Activation, u64)) -> Self {
        let layer = match kind {
            Kind::Dense { units } => Dense(units),
            Kind::Dropout { rate } => Dropout(rate),
            Kind::Embedding { entries, width } => Embedding(entries, width),
            kind => Self::new(kind),
        };
        Self {
            activation,
            seed,
            ..layer
        }
    }

    /// What is done to each output: `"relu"`, `"gelu"`, `"sigmoid"`, `"softmax"`, `"tanh"` and others of [`Activation`]. Default:
    /// nothing.
    #[must_use]
    pub fn activation(mut self, activation: impl IntoActivation) -> Self {
        match activation.into_activation() {
            Ok(activation) => self.activation = activation,
            Err(problem) => self.problem = self.problem.or(Some(problem)),
        }
        self
    }

    /// The numbers of a row, in the first layer: `5` or `(5,)`. The model is then built when it is
    /// written; without, it waits for `build`, or for the first data.
    #[must_use]
    pub fn input_shape(mut self, shape: impl IntoInputShape) -> Self {
        self.input_shape = Some(shape.into_input_shape());
        self
    }

    /// Fixes the values that the variables begin with, together with the layer's place. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Its name in Keras, as a class: `Dense`.
    pub(super) fn class(&self) -> &'static str {
        match self.kind {
            Kind::Dense { .. } => "Dense",
            Kind::Dropout { .. } => "Dropout",
            Kind::Embedding { .. } => "Embedding",
            Kind::GlobalAveragePooling1D => "GlobalAveragePooling1D",
            Kind::Flatten => "Flatten",
        }
    }

    /// Its name in Keras, as a variable.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Dense { .. } => "dense",
            Kind::Dropout { .. } => "dropout",
            Kind::Embedding { .. } => "embedding",
            Kind::GlobalAveragePooling1D => "global_average_pooling1d",
            Kind::Flatten => "flatten",
        }
    }

    /// Whether it can come at this place, after rows (false) or sequences of rows (true).
    pub(super) fn check(&self, index: usize, sequences: bool) -> Result<()> {
        let refuse = |what: &str, given: &str, expects: &str| {
            let rule = InvalidSize {
                what: what.to_owned(),
                given: given.to_owned(),
                expects: expects.to_owned(),
                place: Some(Place::call(self.class())),
            };
            Err(rule.error())
        };
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        match self.kind {
            _ if index > 0 && self.input_shape.is_some() => refuse(
                "input_shape",
                &format!("in layer {index}"),
                "in the first layer, which is layer 0",
            ),
            Kind::Embedding { .. } if index > 0 => refuse(
                "Embedding",
                &format!("layer {index}"),
                "the first layer, since it looks up what the data holds",
            ),
            Kind::GlobalAveragePooling1D | Kind::Flatten if !sequences => refuse(
                self.class(),
                "after a row of numbers",
                "after a sequence, such as an `Embedding` makes",
            ),
            _ => Ok(()),
        }
    }
}

fn at_least_one(
    call: &str,
    name: &str,
    given: impl IntoCount,
    problem: &mut Option<Box<Diagnostic>>,
) -> usize {
    let given = given.into_count();
    let found = given.value().and_then(|count| usize::try_from(count).ok());
    found.filter(|&count| count > 0).unwrap_or_else(|| {
        let given = given.to_string();
        let is_small = given == "0" || given.starts_with('-');
        let expects = if is_small {
            "at least 1"
        } else {
            "far smaller"
        };
        let rule = InvalidSize {
            what: name.to_owned(),
            given,
            expects: expects.to_owned(),
            place: Some(Place::call(call)),
        };
        problem.get_or_insert_with(|| rule.error());
        1
    })
}
