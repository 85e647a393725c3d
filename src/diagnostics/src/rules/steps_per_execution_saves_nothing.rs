//! SC0107 `steps-per-execution-saves-nothing`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// `steps_per_execution` taken for accumulation or for local SGD. What was meant is in no text: SC0102 says
/// it where it applies, this page says it at length.
#[derive(Clone, Copy, Debug)]
pub struct StepsPerExecutionSavesNothing;

impl Rule for StepsPerExecutionSavesNothing {
    const PAGE: RulePage = RulePage {
        code: "SC0107",
        name: "steps-per-execution-saves-nothing",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "`steps_per_execution = 16` used to get fewer optimizer steps, fewer all-reduces or less memory. \
                8 batches are 8 optimizer steps and 8 all-reduces for every value; a value of 4 runs them in 2 \
                executions.",
        why: "It sets how many batches run before control returns to the host. Callbacks run less often; nothing else changes. `gradient_accumulation_steps` makes one optimizer step from several batches; \
              `sync_every` lets the replicas train independently for several steps.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              steps_per_execution = 4)?; // one step out of four batches?",
        good: "compile!(model, optimizer = AdamW::new(5e-5), gradient_accumulation_steps = 4)?;",
        tensorflow: tensorflow::page("SC0107"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("the first cell is valid too; the intention behind it is not visible in its text");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("16 batches are still 16 optimizer steps and 16 all-reduces")
            .why("`steps_per_execution` sets how many batches run before control returns to the host")
            .fix("one optimizer step from several batches: `gradient_accumulation_steps`")
            .fix("fewer synchronizations: `sync_every`")
    }
}
