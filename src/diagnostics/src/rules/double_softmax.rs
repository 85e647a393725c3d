//! SC0303 `softmax-twice`.

use std::f64::consts::E;

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Outputs that are probabilities already, under a loss that takes logits.
#[derive(Clone, Debug)]
pub struct SoftmaxTwice {
    /// The loss: `SparseCategoricalCrossentropy`.
    pub loss: String,
    /// Outputs of the head.
    pub classes: usize,
    /// How it is known that they are probabilities.
    pub outputs: Probabilities,
}

/// How outputs are known to be probabilities.
#[derive(Clone, Debug)]
pub enum Probabilities {
    /// The last layer has this activation: `softmax`, `sigmoid`.
    Activation(String),
    /// Each example of the first batch adds up to 1.
    Seen {
        /// The outputs for the first example.
        first: Vec<f32>,
        /// Examples of the batch.
        examples: usize,
    },
}

impl SoftmaxTwice {
    /// What the loss applies.
    fn applied(&self) -> &'static str {
        match self.classes {
            1 => "sigmoid",
            _ => "softmax",
        }
    }

    fn bound(&self) -> String {
        match self.classes {
            1 => format!(
                "`{}` with `from_logits: true` applies sigmoid itself; the sigmoid of a number from 0 to 1 lies \
                 between 0.50 and {:.2}, and class 0 can never be the likely one",
                self.loss,
                E / (E + 1.0)
            ),
            classes => format!(
                "`{}` with `from_logits: true` applies softmax itself; of numbers from 0 to 1 it gives no class \
                 more than {:.2}",
                self.loss,
                E / (E + classes as f64 - 1.0)
            ),
        }
    }
}

impl Rule for SoftmaxTwice {
    const PAGE: RulePage = RulePage {
        code: "SC0303",
        name: "softmax-twice",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A network whose outputs are probabilities, trained with `from_logits: true`. `compile!` knows it by \
                the activation of the last layer. Of a network of one's own nothing is known; `fit!` then \
                looks whether the outputs of the first batch are not negative and each row adds up to 1.",
        why: "The loss applies softmax, or sigmoid for one output, once more. The outputs lie in [0, 1], so after \
              it no class can get more than e/(e + C − 1): with two classes 0.73. Gradients shrink and the loss \
              never comes near 0. BERT's own heads put out logits; this happens with a network of one's own.",
        bad: "let data = make_classification(200, 8, 3, 0)?;\n\
              let model = Sequential([Dense(16).activation(\"relu\"), Dense(3).activation(\"softmax\")])?;\n\
              compile!(model, optimizer = Adam::new(0.01), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, data, epochs = 5)?;",
        good: "let data = make_classification(200, 8, 3, 0)?;\n\
               let model = Sequential([Dense(16).activation(\"relu\"), Dense(3)])?;\n\
               compile!(model, optimizer = Adam::new(0.01), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, data, epochs = 5)?;",
        tensorflow: tensorflow::page("SC0303"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let applied = self.applied();
        let told = match &self.outputs {
            Probabilities::Activation(own) => {
                let message = match own == applied {
                    true => {
                        format!("{applied} is applied twice: the outputs are probabilities already")
                    }
                    false => format!(
                        "{applied} is applied to the outputs of `{own}`, which are probabilities already"
                    ),
                };
                let place = Place::field("compile", "loss", "from_logits");
                Self::start(message)
                    .label(place.clone(), format!("the head ends in `{own}`"))
                    .why(self.bound())
                    .fix_edit("write `from_logits: false`", place, "false")
                    .fix(format!(
                        "or drop `.activation(\"{own}\")` from the last layer"
                    ))
            }
            Probabilities::Seen { first, examples } => {
                let shown: Vec<String> = first
                    .iter()
                    .take(4)
                    .map(|output| format!("{output:.3}"))
                    .collect();
                let more = if first.len() > 4 { ", …" } else { "" };
                let sum: f64 = first.iter().copied().map(f64::from).sum();
                Self::start("softmax is applied twice: the outputs are probabilities already")
                    .label(Place::call("fit"), "seen in the first batch")
                    .why(self.bound())
                    .evidence(
                        "first example",
                        format!("{}{more}; sum {sum:.4}", shown.join(", ")),
                    )
                    .evidence("examples looked at", examples.to_string())
                    .fix("drop the softmax at the end of the network")
                    .fix(format!(
                        "or write `loss = {} {{ from_logits: false }}`",
                        self.loss
                    ))
            }
        };
        let case = match &self.outputs {
            Probabilities::Activation(own) if own == "sigmoid" => "sigmoid",
            _ => "",
        };
        told.tensorflow(Quote::case("SC0303", case))
    }
}
