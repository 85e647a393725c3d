//! SC0510 `untrained-head`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Predictions of a head that was never trained.
#[derive(Clone, Debug)]
pub struct UntrainedHead {
    /// Name of the call without `!`: `predict`.
    pub call: String,
    /// The variables that the checkpoint did not have.
    pub variables: Vec<String>,
    /// The shape of the head: outputs × inputs.
    pub shape: Vec<usize>,
    /// How many classes there are, if the head is of classes.
    pub classes: Option<usize>,
}

impl Rule for UntrainedHead {
    const PAGE: RulePage = RulePage {
        code: "SC0510",
        name: "untrained-head",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "`predict` or `evaluate!` before the first `fit!` of a model whose head is not in the checkpoint.",
        why: "The head is randomly initialized: predictions are no better than chance, even with a high probability.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
              model.predict([\"simple DNS server\"])?",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n\
               compile!(model, optimizer = AdamW::new(warmup_linear(5e-5, 0.1)), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, train)?;\n\
               model.predict([\"simple DNS server\"])?",
        tensorflow: tensorflow::page("SC0510"),
    };

    const GIVEN: &'static [&'static str] = &["let train = train.take(48);"];

    fn diagnostic(&self) -> Diagnostic {
        let head = match self.shape.as_slice() {
            [outputs, inputs] => format!("the head ({outputs} × {inputs})"),
            _ => "the head".to_owned(),
        };
        let mut diagnostic = Self::start(format!(
            "{head} is new: predictions are random until `fit!`"
        ))
        .label(Place::call(&self.call), "called before any training")
        .why("the checkpoint has no such variables, so they were initialized randomly")
        .evidence("new", text::names(&self.variables, 4));
        if let Some(classes) = self.classes.filter(|&classes| classes > 1) {
            diagnostic = diagnostic.evidence(
                "accuracy by chance",
                format!("about {:.1} %", 100.0 / classes as f64),
            );
        }
        diagnostic
            .fix("train it first: `fit!(model, train, epochs = 3)?`")
            .fix("or load a checkpoint that was trained for this task")
            .tensorflow(Quote::of("SC0510"))
    }
}
