//! SC0732 `step-has-passed`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Changes that are to be committed to a step that is not the coming one any more.
#[derive(Clone, Debug)]
pub struct StepHasPassed {
    /// The step for which they were computed, counted from 1.
    pub step: u64,
    /// The step that comes now; `None`: the run is gone.
    pub coming: Option<u64>,
}

impl Rule for StepHasPassed {
    const PAGE: RulePage = RulePage {
        code: "SC0732",
        name: "step-has-passed",
        severity: Severity::Error,
        stage: Stage::Training,
        finds: "`commit()` of a `run.what_if(…)` whose run is at another step, was changed, or does not exist any more.",
        why: "What was shown holds for one step, with its batch and the weights before it. At another step the same change has \
              another effect.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32), batch_size = 8)?;\n\
              let ablated = run.what_if(|it| it.head(0, 0).scale(0.0))?;\n\
              run.step(1)?;\n\
              ablated.commit()?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32), batch_size = 8)?;\n\
               let ablated = run.what_if(|it| it.head(0, 0).scale(0.0))?;\n\
               ablated.commit()?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let step = self.step;
        let diagnostic = Self::start(match self.coming {
            Some(coming) if coming == step => {
                format!("the run was changed since this was computed for step {step}")
            }
            Some(coming) => {
                format!(
                    "this was computed for step {step}, and the run stands before step {coming}"
                )
            }
            None => {
                format!("this was computed for step {step} of a run that does not exist any more")
            }
        });
        let diagnostic = diagnostic
            .label(Place::call("commit"), "nothing is changed")
            .why("what was shown holds for one step, with its batch and the weights before it");
        match self.coming {
            Some(_) => diagnostic
                .fix("compute it again for the coming step: `run.what_if(|it| …)?.commit()?`")
                .fix(format!(
                    "turn the run back: `run.rewind({})?`",
                    step.saturating_sub(1)
                )),
            None => diagnostic.fix("start a run: `let run = start!(model, train)?;`"),
        }
    }
}
