//! SC0530 `fork-has-less`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A fork of a run that has callbacks or writes checkpoints.
#[derive(Clone, Debug)]
pub struct ForkHasLess {
    /// Callbacks of the run.
    pub callbacks: usize,
    /// The folder of its checkpoints.
    pub folder: Option<String>,
}

impl Rule for ForkHasLess {
    const PAGE: RulePage = RulePage {
        code: "SC0530",
        name: "fork-has-less",
        severity: Severity::Note,
        stage: Stage::Training,
        finds: "`run.fork()` of a run that has callbacks or writes checkpoints. The fork has neither.",
        why: "A callback is a value that changes and cannot be copied, and two runs that write to one folder would remove \
              each other's checkpoints.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32), callbacks = on_epoch_end(|epoch| println!(\"{}\", epoch.loss)))?;\n\
              let other = run.fork()?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train.take(32))?;\n\
               let other = run.fork()?;",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut lacks = Vec::new();
        if self.callbacks > 0 {
            lacks.push(format!(
                "the {}",
                match self.callbacks {
                    1 => "callback".to_owned(),
                    several => text::count(several, "callback"),
                }
            ));
        }
        if let Some(folder) = &self.folder {
            lacks.push(format!("the checkpoints in `{folder}`"));
        }
        Self::start(format!(
            "the fork goes on without {} of the run",
            lacks.join(" and ")
        ))
        .label(Place::call("fork"), "the run itself keeps them")
        .why("callbacks cannot be copied, and two runs do not write to one folder")
        .fix("read `run.history()?` of the fork between two calls; keep its weights with `fork.model().save_pretrained(\"folder\")?`")
    }
}
