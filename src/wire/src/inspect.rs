//! Questions about the values of the variables, for a debugger: what a value is in one line, what it consists of, and what
//! a cell would display of it. They are answered at any time. While a cell runs, only what is safe to read from another
//! thread is read.

use serde::{Deserialize, Serialize};

use crate::MimeBundle;

/// A value in a variable: the variable, and positions among the children of each value on the way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuePath {
    /// The variable.
    pub name: String,
    /// Positions, counted from 0. Named children come before indexed ones.
    pub steps: Vec<usize>,
}

impl ValuePath {
    /// The value of a variable.
    pub fn of(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            steps: Vec::new(),
        }
    }

    /// The child at a position.
    #[must_use]
    pub fn child(&self, position: usize) -> Self {
        let mut child = self.clone();
        child.steps.push(position);
        child
    }
}

/// A part of a list.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The first position, counted from 0.
    pub start: usize,
    /// How many at most.
    pub count: usize,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case", deny_unknown_fields)]
pub enum InspectQuestion {
    /// All variables.
    Variables,
    /// What a value consists of.
    Children {
        /// The value.
        path: ValuePath,
        /// Which of its named children, such as fields.
        named: Window,
        /// Which of its indexed children, such as the elements of a list.
        indexed: Window,
    },
    /// The value that an expression names: a variable, and names of children, `model.classifier.bias` or `list[3].name`.
    Find {
        /// The expression.
        expression: String,
    },
    /// What a cell would display of a value.
    Rich {
        /// The value.
        path: ValuePath,
    },
    /// The runs of `start!` in the variables that have steps left.
    Runs,
}

/// A value in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectedValue {
    /// The name of the variable or of the child: `weights`, `[3]`.
    pub name: String,
    /// The value; `None` while a cell has it, or while it must not be read.
    pub value: Option<String>,
    /// Its type; may be empty.
    pub type_name: String,
    /// How many named children it has.
    pub named: usize,
    /// How many indexed ones.
    pub indexed: usize,
}

/// A run of `start!` in a variable: where it stands between two cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandingRun {
    /// The variable.
    pub name: String,
    /// The optimizer steps that are made.
    pub made: u64,
    /// What is under way, from the run to the coming step, or to the layer of it at which the run stands.
    pub frames: Vec<RunFrame>,
    /// Whether it stands within the coming step, at one of its layers.
    pub is_in_step: bool,
    /// Within a step: what a run does, layer by layer, as lines of a text in which the frames have their places.
    pub listing: Vec<String>,
    /// Where and why the latest call left it; empty before the first one.
    pub stop: String,
    /// The condition that stopped it, as written: `spike(4.0)`.
    pub breakpoint: Option<String>,
    /// It was interrupted.
    pub is_interrupted: bool,
}

/// A frame of the stack of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFrame {
    /// `run of Sequential`, `epoch 2 of 3`, `step 14 of 30`, `forward: classifier (9 of 19)`.
    pub name: String,
    /// Its line of the listing, counted from 1.
    pub line: usize,
    /// What the frame shows beside the run: one of the run's named children, by its name and its position.
    pub part: Option<(String, usize)>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum InspectAnswer {
    /// To [`InspectQuestion::Variables`] and [`InspectQuestion::Children`]: those in the windows, named ones first.
    Values {
        /// In order.
        values: Vec<InspectedValue>,
        /// How many of them are named.
        named: usize,
        /// How many named children there are in all.
        all_named: usize,
        /// How many indexed children there are in all.
        all_indexed: usize,
    },
    /// To [`InspectQuestion::Find`].
    Found {
        /// Where it is.
        path: ValuePath,
        /// The value.
        value: InspectedValue,
    },
    /// To [`InspectQuestion::Rich`].
    Rich {
        /// By MIME type; `text/plain` is one of them.
        data: MimeBundle,
    },
    /// To [`InspectQuestion::Runs`].
    Runs {
        /// By name.
        runs: Vec<StandingRun>,
    },
    /// There is no such value, or it cannot be read now.
    Missing {
        /// Why, as a sentence without a full stop.
        reason: String,
    },
}

impl InspectAnswer {
    /// There is no answer, for this reason.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self::Missing {
            reason: reason.into(),
        }
    }
}
