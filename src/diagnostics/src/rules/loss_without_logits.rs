//! SC0302 `loss-without-logits`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// `from_logits: false` on a head that puts out logits.
#[derive(Clone, Debug)]
pub struct LossWithoutLogits {
    /// The loss as typed: `SparseCategoricalCrossentropy`.
    pub loss: String,
    /// Where `false` stands; `None` when told at run time.
    pub place: Option<Place>,
}

impl Rule for LossWithoutLogits {
    const PAGE: RulePage = RulePage {
        code: "SC0302",
        name: "loss-without-logits",
        severity: Severity::Warning,
        stage: Stage::Text,
        finds: "A cross-entropy with `from_logits: false`. BERT's heads put out logits, not probabilities.",
        why: "Logits taken for probabilities are clamped to [0, 1]: most gradients vanish, and the loss \
              starts far from ln(classes). Nothing fails, the model just does not learn.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: false })?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        tensorflow: "Trains without a word: on a fresh 2-class BERT the loss was 2.65 instead of 0.69. There \
                     `from_logits` is false by default, in the text form `'sparse_categorical_crossentropy'` \
                     too; here that text means `from_logits: true`.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start("the head outputs logits; `from_logits` is false");
        let told = match &self.place {
            Some(place) => told
                .label(place.clone(), "logits would be taken for probabilities")
                .fix_edit("write `from_logits: true`", place.clone(), "true"),
            None => told
                .label(
                    Place::argument("compile", "loss"),
                    "logits would be taken for probabilities",
                )
                .fix(format!(
                    "write `loss = {} {{ from_logits: true }}`",
                    self.loss
                )),
        };
        told.why("logits are clamped to [0, 1] when they are taken for probabilities: most gradients vanish")
            .tensorflow("trains without a word (loss 2.65 instead of 0.69 on a fresh 2-class BERT)")
    }
}
