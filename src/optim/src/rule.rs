//! The rules of updates with their numbers, and the tensors that each keeps beside a weight.

use serde::{Deserialize, Serialize};

/// How one element moves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum UpdateRule {
    /// Adam and AdamW.
    Adam(AdamRule),
    /// Stochastic gradient descent.
    Sgd(SgdRule),
    /// RMSprop.
    Rmsprop(RmspropRule),
    /// Lion.
    Lion(LionRule),
    /// LAMB.
    Lamb(LambRule),
    /// Adafactor.
    Adafactor(AdafactorRule),
}

impl UpdateRule {
    /// Its numbers with the names that they are written by, to be checked.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Adam(rule) => vec![
                ("beta_1", rule.beta_1),
                ("beta_2", rule.beta_2),
                ("epsilon", rule.epsilon),
                ("weight_decay", rule.weight_decay),
            ],
            Self::Sgd(rule) => vec![("momentum", rule.momentum)],
            Self::Rmsprop(rule) => vec![
                ("rho", rule.rho),
                ("momentum", rule.momentum),
                ("epsilon", rule.epsilon),
            ],
            Self::Lion(rule) => vec![
                ("beta_1", rule.beta_1),
                ("beta_2", rule.beta_2),
                ("weight_decay", rule.weight_decay),
            ],
            Self::Lamb(rule) => vec![
                ("beta_1", rule.beta_1),
                ("beta_2", rule.beta_2),
                ("epsilon", rule.epsilon),
                ("weight_decay", rule.weight_decay),
            ],
            Self::Adafactor(rule) => vec![
                ("beta_2_decay", rule.beta_2_decay),
                ("epsilon_1", rule.epsilon_1),
                ("epsilon_2", rule.epsilon_2),
                ("clip_threshold", rule.clip_threshold),
                ("weight_decay", rule.weight_decay),
            ],
        }
    }
}

/// The numbers of Adam, and of AdamW where there is a decay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamRule {
    /// How slowly the mean of the gradients moves.
    pub beta_1: f64,
    /// How slowly the mean of the squared gradients moves.
    pub beta_2: f64,
    /// Added outside the square root.
    pub epsilon: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
    /// Whether the largest second moment so far stands in for the present one.
    pub amsgrad: bool,
}

/// The numbers of gradient descent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SgdRule {
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Whether to look ahead along the momentum.
    pub nesterov: bool,
}

/// The numbers of RMSprop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RmspropRule {
    /// How slowly the mean of the squared gradients moves.
    pub rho: f64,
    /// The share of the last step that is taken again.
    pub momentum: f64,
    /// Added inside the square root.
    pub epsilon: f64,
    /// Whether the square of the mean gradient is taken from the mean square.
    pub centered: bool,
}

/// The numbers of Lion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LionRule {
    /// The share of the momentum in the direction of a step.
    pub beta_1: f64,
    /// How slowly the momentum moves.
    pub beta_2: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

/// The numbers of LAMB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LambRule {
    /// How slowly the mean of the gradients moves.
    pub beta_1: f64,
    /// How slowly the mean of the squared gradients moves.
    pub beta_2: f64,
    /// Added outside the square root.
    pub epsilon: f64,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

impl LambRule {
    /// The rule whose moments it keeps and whose direction it takes.
    pub(super) fn adam(&self) -> AdamRule {
        AdamRule {
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            amsgrad: false,
        }
    }
}

/// The numbers of Adafactor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdafactorRule {
    /// The old means have the share `1 − stepᵇ` in the new ones, with this as `b`.
    pub beta_2_decay: f64,
    /// Added to every squared gradient.
    pub epsilon_1: f64,
    /// The least size of a variable that its steps are measured by.
    pub epsilon_2: f64,
    /// The root mean square that the direction of a variable is cut to.
    pub clip_threshold: f64,
    /// Whether the rate is at most 1/√step.
    pub relative_step: bool,
    /// Decoupled: `w -= rate · decay · w`, before the step.
    pub weight_decay: f64,
}

/// A tensor that an optimizer keeps beside each trained weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The momentum of SGD and RMSprop.
    Velocity,
    /// Lion's momentum.
    Momentum,
    /// RMSprop's mean of the squared gradients.
    MeanSquare,
    /// RMSprop's mean of the gradients, where it is centered.
    MeanGradient,
    /// Adam's mean of the gradients.
    M,
    /// Adam's mean of the squared gradients.
    V,
    /// The largest second moment so far, for AMSGrad.
    LargestV,
    /// The moving average of the weight.
    Average,
    /// Adafactor's mean of the squared gradients of each row of a matrix.
    RowMeans,
    /// And of each column.
    ColumnMeans,
    /// Adafactor's mean of the squared gradients of a vector.
    VectorMeanSquare,
}

impl Slot {
    /// Its name on a placement: `Adam m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Velocity => "velocity",
            Self::Momentum => "momentum",
            Self::MeanSquare => "mean square",
            Self::MeanGradient => "mean gradient",
            Self::M => "Adam m",
            Self::V => "Adam v",
            Self::LargestV => "largest v",
            Self::Average => "average",
            Self::RowMeans => "row means",
            Self::ColumnMeans => "column means",
            Self::VectorMeanSquare => "mean square of vectors",
        }
    }

    /// How many numbers it has beside a variable of this shape.
    pub fn numbers(self, shape: &[usize]) -> usize {
        let sizes = matrices(shape);
        match (self, sizes) {
            (Self::RowMeans, Some([count, rows, _])) => count * rows,
            (Self::ColumnMeans, Some([count, _, columns])) => count * columns,
            (Self::RowMeans | Self::ColumnMeans, None) => 0,
            (Self::VectorMeanSquare, Some(_)) => 0,
            _ => shape.iter().product(),
        }
    }

    /// Whether it has fewer numbers than the variable.
    pub fn is_factored(self) -> bool {
        matches!(
            self,
            Self::RowMeans | Self::ColumnMeans | Self::VectorMeanSquare
        )
    }
}

/// The matrices that the last two axes of a variable make: how many, their rows, their columns. None for vectors.
pub(super) fn matrices(shape: &[usize]) -> Option<[usize; 3]> {
    let (&columns, rest) = shape.split_last()?;
    let (&rows, rest) = rest.split_last()?;
    Some([rest.iter().product(), rows, columns])
}
