//! SC0303 `double-softmax`.

use std::f64::consts::E;

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Outputs that are probabilities already, under a loss that takes logits.
#[derive(Clone, Debug)]
pub struct DoubleSoftmax {
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

impl DoubleSoftmax {
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
                "`{}` with `from_logits: true` applies sigmoid itself; the sigmoid of a number from 0 to 1 is \
                 between 0.50 and {:.2}, so class 0 is never predicted",
                self.loss,
                E / (E + 1.0)
            ),
            classes => format!(
                "`{}` with `from_logits: true` applies softmax itself; for inputs from 0 to 1 no class gets a \
                 probability above {:.2}",
                self.loss,
                E / (E + classes as f64 - 1.0)
            ),
        }
    }
}

impl Rule for DoubleSoftmax {
    const PAGE: RulePage = RulePage {
        code: "SC0303",
        name: "double-softmax",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A network whose outputs are probabilities, trained with `from_logits: true`. `compile!` reads the \
                activation of the last layer. For a custom network the activation is not known; `fit!` then checks \
                whether the outputs of the first batch are not negative and whether each row sums to 1.",
        why: "The loss applies softmax (sigmoid for one output) a second time. Its inputs are in [0, 1], so no \
              class gets a probability above e/(e + C − 1): 0.73 for two classes. Gradients shrink and the loss \
              never approaches 0. BERT's own heads output logits; this happens with custom networks.",
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
        let diagnostic = match &self.outputs {
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
                        "or remove `.activation(\"{own}\")` from the last layer"
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
                    .evidence("examples checked", examples.to_string())
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
        diagnostic.tensorflow(Quote::case("SC0303", case))
    }
}
