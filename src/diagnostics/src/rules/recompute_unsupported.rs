//! SC0605 `recompute-unsupported`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A network whose layers cannot be computed once more in the backward pass.
#[derive(Clone, Debug)]
pub struct RecomputeUnsupported {
    /// What users call the model.
    pub model: String,
}

impl Rule for RecomputeUnsupported {
    const PAGE: RulePage = RulePage {
        code: "SC0605",
        name: "recompute-unsupported",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`recompute = true` for a network that is not made of encoder layers: a `Sequential`, or a custom module.",
        why: "An encoder layer of BERT keeps about sixteen times as much as its input for the backward pass, so it pays to \
              keep the input only and to compute the rest again. A dense layer keeps little more than its input: there \
              would be nothing to save.",
        bad: "let dense = Sequential([Dense(8), Dense(1)])?;\ncompile!(dense, optimizer = AdamW::new(1e-3), loss = \
              MeanSquaredError)?;\nfit!(dense, make_regression(64, 5, 1)?, recompute = true)?;",
        good: "fit!(model, train.take(64), recompute = true)?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "`{}` has no layers that could be computed again",
            self.model
        ))
        .label(
            Place::argument("fit", "recompute"),
            "it would save no memory here",
        )
        .why("recomputing is worth its time where a layer keeps much more than its input, as BERT's encoder layers do")
        .fix("leave `recompute` out")
        .fix(
            "for less memory make `batch_size` smaller, and set `gradient_accumulation_steps` in `compile!` for the same \
             step",
        )
    }
}
