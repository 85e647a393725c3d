//! SC0302 `loss-without-logits`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// `from_logits: false` on a head whose outputs are no probabilities.
#[derive(Clone, Debug)]
pub struct LossWithoutLogits {
    /// The loss: `SparseCategoricalCrossentropy`.
    pub loss: String,
    /// Whether the loss is one of a single output.
    pub binary: bool,
    /// How it is known what the outputs are.
    pub outputs: NoProbabilities,
}

/// How outputs are known to be no probabilities.
#[derive(Clone, Debug)]
pub enum NoProbabilities {
    /// The last layer has this activation: `linear`, `relu`, `tanh`.
    Activation(String),
    /// The first batch has outputs below 0 or above 1.
    Seen {
        /// The lowest.
        lowest: f32,
        /// The highest.
        highest: f32,
        /// Examples of the batch.
        examples: usize,
    },
}

impl LossWithoutLogits {
    /// The activation that makes probabilities of the outputs.
    fn activation(&self) -> &'static str {
        match self.binary {
            true => "sigmoid",
            false => "softmax",
        }
    }

    /// The fixes, best first.
    fn fixes(&self, diagnostic: Diagnostic) -> Diagnostic {
        let activation = self.activation();
        let place = Place::field("compile", "loss", "from_logits");
        match &self.outputs {
            NoProbabilities::Activation(own) if own == "linear" => diagnostic
                .fix_edit("write `from_logits: true`", place, "true")
                .fix(format!(
                    "or convert the outputs to probabilities: `.activation(\"{activation}\")` on the last layer"
                )),
            // A logit that is never negative can never speak for class 0.
            NoProbabilities::Activation(own) => diagnostic.fix(format!(
                "write `.activation(\"{activation}\")` on the last layer instead of `.activation(\"{own}\")`"
            )),
            NoProbabilities::Seen { .. } => diagnostic.fix(format!(
                "if the outputs are logits: `loss = {} {{ from_logits: true }}`",
                self.loss
            )),
        }
    }
}

impl Rule for LossWithoutLogits {
    const PAGE: RulePage = RulePage {
        code: "SC0302",
        name: "loss-without-logits",
        severity: Severity::Warning,
        stage: Stage::Compile,
        finds: "A cross-entropy with `from_logits: false` on a head whose outputs are not probabilities: BERT's \
                heads, and networks that do not end in softmax or sigmoid. For a custom network the activation \
                is not known at `compile!`; `fit!` then checks the outputs of the first batch.",
        why: "The outputs are clamped to [0, 1] as if they were probabilities: most gradients vanish, and the \
              loss starts far from ln(classes). There is no error, but the model does not learn.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: false })?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: tensorflow::page("SC0302"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let message = match &self.outputs {
            NoProbabilities::Activation(own) if own == "linear" => {
                "the head outputs logits; `from_logits` is false".to_owned()
            }
            NoProbabilities::Activation(own) => format!(
                "the head ends in `{own}`, whose outputs are not probabilities; `from_logits` is false"
            ),
            NoProbabilities::Seen {
                lowest, highest, ..
            } => format!(
                "outputs from {lowest:.3} to {highest:.3} are not probabilities; `from_logits` is false"
            ),
        };
        let diagnostic = Self::start(message);
        let diagnostic = match &self.outputs {
            NoProbabilities::Activation(_) => diagnostic.label(
                Place::field("compile", "loss", "from_logits"),
                "the outputs would be used as probabilities",
            ),
            NoProbabilities::Seen { examples, .. } => diagnostic
                .label(Place::call("fit"), "seen in the first batch")
                .evidence("examples checked", examples.to_string()),
        };
        let diagnostic =
            diagnostic.why("a probability is clamped to [0, 1]: outside of it every gradient is 0");
        self.fixes(diagnostic).tensorflow(Quote::of("SC0302"))
    }
}
