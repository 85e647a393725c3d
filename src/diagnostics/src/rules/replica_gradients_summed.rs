//! SC0514 `replica-gradients-summed`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// One gradient for each replica, added up and not divided by their number.
#[derive(Clone, Debug)]
pub struct ReplicaGradientsSummed {
    /// Replicas of the model, and gradients in the sum.
    pub replicas: usize,
    /// The norm of what is applied.
    pub norm: f64,
}

impl Rule for ReplicaGradientsSummed {
    const PAGE: RulePage = RulePage {
        code: "SC0514",
        name: "replica-gradients-summed",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "`model.apply(…)` with a sum of as many gradients as the model has replicas, not divided by their \
                number.",
        why: "Each gradient is the mean over its own examples. The gradient of the global batch is their mean; a \
              step with their sum grows with the number of replicas, so a recipe that works on one device diverges \
              on four.",
        bad: "let mut sum = Gradients::zeros();\nfor index in 0..2 {\n    sum += model.gradients(&train.skip(8 * index).take(8))?; // the part of one replica\n}\nprintln!(\"{}\", model.apply(sum)?);",
        good: "// The global batch at once: each replica gets its part, and their gradients are averaged.\nprintln!(\"{}\", model.apply(model.gradients(&train.take(16))?)?);",
        tensorflow: tensorflow::page("SC0514"),
    };

    const GIVEN: &'static [&'static str] = &[
        "let strategy = MirroredStrategy::logical(2)?;",
        "scope!(strategy, {\n    let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 8)?;\n    compile!(model, optimizer = AdamW::new(5e-5), loss = SparseCategoricalCrossentropy { from_logits: true })?;\n});",
    ];

    fn diagnostic(&self) -> Diagnostic {
        let replicas = self.replicas;
        Self::start(format!(
            "gradients are summed over {replicas} replicas and not divided: the step is {replicas} times too \
             large"
        ))
        .label(
            Place::call("apply"),
            "the step uses these gradients",
        )
        .why("each is the mean over the examples of one part; the global batch needs the mean of the parts")
        .evidence("replicas", replicas.to_string())
        .evidence("norm of the step's gradient", format!("{:.4e}", self.norm))
        .fix("pass the global batch to `model.gradients`: it splits the batch and averages")
        .fix(format!("or divide the sum: `sum / {replicas}.0`"))
        .tensorflow(Quote::of("SC0514"))
    }
}
