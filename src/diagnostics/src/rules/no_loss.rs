//! SC0113 `no-loss`.

use crate::tensorflow::{self, Quote};
use crate::{Answer, Diagnostic, Place, Profile, Rule, RulePage, Severity, Stage};

/// `fit!` on a model that was compiled without a loss.
#[derive(Clone, Debug)]
pub struct NoLoss;

impl Rule for NoLoss {
    const PAGE: RulePage = RulePage {
        code: "SC0113",
        name: "no-loss",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`fit!` on a model that was compiled without `loss`.",
        why: "There is nothing to minimize. A model that is only used to predict needs no loss, so `compile!` \
              accepts its absence.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5))?;\nfit!(model, train)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\nfit!(model, train)?;",
        tensorflow: tensorflow::page("SC0113"),
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the model was compiled without a loss: there is nothing to minimize")
            .label(Place::model("fit"), "compiled without `loss`")
            .fix(
                "compile it with one: `loss = SparseCategoricalCrossentropy { from_logits: true }` for \
                 classes, `loss = MeanSquaredError` for a score",
            )
            .tensorflow(Quote::of("SC0113"))
            .with_answers(answer)
    }
}

/// docs/keras-semantics.md E20.
fn answer(profile: Profile) -> Answer {
    let says = match profile {
        Profile::Tf23 | Profile::Tf24 => "ValueError: No gradients provided for any variable: […].",
        Profile::TfKeras218 => {
            "ValueError: No loss found. You may have forgotten to provide a `loss` argument in the \
             `compile()` method."
        }
        Profile::Keras3 => {
            "ValueError: No loss to compute. Provide a `loss` argument in `compile()`."
        }
    };
    Answer::says(profile, "compiles; `fit` fails", says)
}
