//! SC0532 `resumed-on-other-devices`.

use super::CheckpointOfOtherRun;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A run that goes on under another strategy, which computes in another way.
#[derive(Clone, Debug)]
pub struct ResumedOnOtherDevices {
    /// Optimizer steps that were made before.
    pub step: u64,
    /// The strategy that has written the checkpoint, and its devices.
    pub then: String,
    /// The strategy of the model.
    pub now: String,
    /// Examples of a batch of all replicas.
    pub batch_size: usize,
    /// What is computed in another way, then and now. Empty: every step has the same bits.
    pub differences: Vec<(String, String, String)>,
}

impl Rule for ResumedOnOtherDevices {
    const PAGE: RulePage = RulePage {
        code: "SC0532",
        name: "resumed-on-other-devices",
        severity: Severity::Note,
        stage: Stage::Load,
        finds: "`resume_from` with a checkpoint that another strategy has written, if the numbers from here on differ from \
                those of the uninterrupted run.",
        why: "Weights, optimizer state, counters, the order of the examples and the size of a batch stay the same. Dropout \
              masks are numbered by replica and by part of a batch, so other replicas or micro-batches have other masks. \
              Sums in another order, such as those of sliced layers, differ by rounding.",
        bad: "let two = MirroredStrategy::logical(2)?;\n\
              scope!(two, {\n    \
                  let divided = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    \
                  compile!(divided, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              });\n\
              fit!(divided, train.take(64), resume_from = &folder)?; // it was on one device",
        good: "fit!(model, train.take(64), resume_from = &folder)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = CheckpointOfOtherRun::GIVEN;

    const ONCE: bool = false;

    fn applies(&self) -> bool {
        !self.differences.is_empty()
    }

    fn diagnostic(&self) -> Diagnostic {
        let Self {
            step,
            then,
            now,
            batch_size,
            differences,
        } = self;
        let mut diagnostic = Self::start(format!(
            "the run continues after step {step} under another strategy; losses differ from those of \
             an uninterrupted run"
        ))
        .label(
            Place::argument("fit", "resume_from"),
            "written under another strategy",
        )
        .why(format!(
            "weights, optimizer state and the place in the data are the same, and a batch still has {batch_size} examples; \
             dropout masks or the order of sums are not"
        ))
        .evidence("strategy", format!("{then} in the checkpoint, {now} now"));
        for (name, then, now) in differences {
            diagnostic =
                diagnostic.evidence(name.clone(), format!("{then} in the checkpoint, {now} now"));
        }
        diagnostic.fix("for the same numbers, resume under the strategy of the checkpoint")
    }
}
