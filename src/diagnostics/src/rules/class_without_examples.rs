//! SC0524 `class-without-examples`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A class of which all examples are dropped from a run.
#[derive(Clone, Debug)]
pub struct ClassWithoutExamples {
    /// Their names.
    pub classes: Vec<String>,
    /// Examples that are dropped.
    pub dropped: usize,
}

impl Rule for ClassWithoutExamples {
    const PAGE: RulePage = RulePage {
        code: "SC0524",
        name: "class-without-examples",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "`run.drop_examples([…])` that leaves a class without any example to train on.",
        why: "The rest of the run teaches the model never to predict this class.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let run = start!(model, train.take(32))?;\n\
              run.drop_examples(1..32)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let run = start!(model, train)?;\n\
               run.drop_examples([3])?;\n\
               drop(run);",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let (verb, noun) = match self.classes.len() {
            1 => ("has", "class"),
            _ => ("have", "classes"),
        };
        Self::start(format!(
            "{} {verb} no example left to train on",
            text::names(&self.classes, 3)
        ))
        .label(
            Place::call("drop_examples"),
            format!("drops the last examples of the {noun}"),
        )
        .why("the remaining steps teach the model never to predict it")
        .evidence("dropped", text::count(self.dropped, "example"))
        .fix("`run.rewind(…)?` to this step undoes it; drop fewer examples, or correct their labels in the data")
    }
}
