//! SC0509 `dropout-off`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Training without dropout.
#[derive(Clone, Debug)]
pub enum DropoutOff {
    /// The checkpoint's configuration has probability 0 everywhere.
    Configuration {
        /// Parameters that are trained.
        parameters: usize,
        /// Examples to train on.
        examples: usize,
    },
    /// A gradient was computed with `training(false)`.
    Mode,
}

impl Rule for DropoutOff {
    const PAGE: RulePage = RulePage {
        code: "SC0509",
        name: "dropout-off",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "`fit!` on a network whose dropout probabilities are all 0, or a custom training loop that computes \
                its gradients in evaluation mode.",
        why: "BERT is fine-tuned with dropout 0.1. Without it a small dataset is overfitted: the training loss \
              falls faster, and the validation loss rises earlier.",
        bad: "let gradients = model.evaluation_gradients(&batch)?; // no dropout\nmodel.apply(gradients)?;",
        good: "let gradients = model.gradients(&batch)?;\nmodel.apply(gradients)?;",
        tensorflow: tensorflow::page("SC0509"),
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        "let batch = train.take(8);",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let diagnostic = match self {
            Self::Configuration {
                parameters,
                examples,
            } => Self::start(
                "dropout is off in training: all dropout probabilities of the checkpoint are 0",
            )
            .label(Place::model("fit"), "its configuration has no dropout")
            .why("BERT is fine-tuned with 0.1; without it a small dataset is overfitted")
            .evidence(
                "parameters per example",
                (parameters / (*examples).max(1)).to_string(),
            )
            .fix(
                "set `hidden_dropout_prob` and `attention_probs_dropout_prob` in its config.json, \
                     usually to 0.1",
            ),
            Self::Mode => Self::start("the training flag is false in the training step")
                .label(
                    Place::call("apply"),
                    "gradients without dropout are applied",
                )
                .why("these gradients were computed in evaluation mode, with dropout off")
                .fix("compute them with `model.gradients(…)`")
                .fix("or use `fit!`, which sets the mode"),
        };
        diagnostic.tensorflow(Quote::of("SC0509"))
    }
}
