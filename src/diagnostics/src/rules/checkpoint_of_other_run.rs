//! SC0527 `checkpoint-of-other-run`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A checkpoint of a run with another model, other data or other arguments.
#[derive(Clone, Debug)]
pub struct CheckpointOfOtherRun {
    /// The checkpoint.
    pub checkpoint: String,
    /// Name, value in the checkpoint, value now.
    pub differences: Vec<(String, String, String)>,
    /// Why a strategy cannot go on with what another one has written, where that is all that differs.
    pub reason: Option<String>,
}

impl Rule for CheckpointOfOtherRun {
    const PAGE: RulePage = RulePage {
        code: "SC0527",
        name: "checkpoint-of-other-run",
        severity: Severity::Error,
        stage: Stage::Load,
        finds: "`resume_from` with a checkpoint of a run that had another model, optimizer, data or arguments, or a strategy \
                whose state another one cannot take over: replicas with `sync_every`, asynchronous parameter servers.",
        why: "The order of the examples, the dropout masks, the rates and the moments of a run follow from its data \
              and arguments. With other data or arguments, the result would be neither the old run nor a new one. Other \
              devices are no obstacle: SC0532.",
        bad: "fit!(model, train.take(64), epochs = 3, resume_from = &folder)?; // it had epochs = 1",
        good: "fit!(model, train.take(64), resume_from = &folder)?;",
        tensorflow: "",
    };

    const GIVEN: &'static [&'static str] = &[
        "compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;",
        "let folder = std::env::temp_dir().join(format!(\"run of {}\", std::process::id()));",
        "fit!(model, train.take(64), checkpoint = &folder, every = 1)?;",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let names: Vec<String> = (self.differences.iter())
            .map(|(name, ..)| format!("`{name}`"))
            .collect();
        let mut diagnostic = Self::start(format!(
            "`{}` belongs to another run: {} differ{}",
            self.checkpoint,
            names.join(", "),
            if names.len() == 1 { "s" } else { "" }
        ))
        .label(
            Place::argument("fit", "resume_from"),
            "cannot continue with these arguments",
        )
        .why(self.reason.clone().unwrap_or_else(|| {
            "a run can only continue with the model, data and arguments that it started with"
                .to_owned()
        }));
        for (name, saved, now) in self.differences.iter().take(8) {
            diagnostic = diagnostic.evidence(
                name.clone(),
                format!("{saved} in the checkpoint, {now} now"),
            );
        }
        let fix = match self.reason {
            Some(_) => "use the strategy that the checkpoint was written with",
            None => "pass the same data and arguments as before",
        };
        diagnostic.fix(fix).fix(
            "or begin a new run with the saved weights: `from_pretrained(\"folder/step-…\", …)`",
        )
    }
}
