//! SC0303 `softmax-twice`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// Outputs that are probabilities already, under a loss that takes logits.
#[derive(Clone, Debug)]
pub struct SoftmaxTwice {
    /// The loss: `SparseCategoricalCrossentropy`.
    pub loss: String,
    /// The outputs for the first example of the first batch.
    pub outputs: Vec<f32>,
    /// Examples of the first batch; the outputs of each were looked at.
    pub examples: usize,
}

impl Rule for SoftmaxTwice {
    const PAGE: RulePage = RulePage {
        code: "SC0303",
        name: "softmax-twice",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "A network whose outputs are probabilities (none negative, each row adding up to 1), trained \
                with `from_logits: true`.",
        why: "The loss applies softmax once more. The outputs lie in [0, 1], so after it no class can get more \
              than e/(e + C − 1): with two classes 0.73. Gradients shrink and the loss never comes near 0. \
              BERT's own heads put out logits; this happens with a network of one's own.",
        bad: "let data = make_classification(200, 8, 3, 0)?;\n\
              let model = Sequential([Dense(16).activation(\"relu\"), Dense(3).activation(\"softmax\")])?;\n\
              compile!(model, optimizer = Adam::new(0.01), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, data, epochs = 5)?;",
        good: "let data = make_classification(200, 8, 3, 0)?;\n\
               let model = Sequential([Dense(16).activation(\"relu\"), Dense(3)])?;\n\
               compile!(model, optimizer = Adam::new(0.01), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, data, epochs = 5)?;",
        tensorflow: "TensorFlow 2.3 and 2.4 say nothing; from 2.6 on a warning: \"`sparse_categorical_crossentropy` \
                     received `from_logits=True`, but the `output` argument was produced by a sigmoid or softmax \
                     activation and thus does not represent logits. Was this intended?\"",
    };

    fn diagnostic(&self) -> Diagnostic {
        let classes = self.outputs.len();
        let bound = std::f64::consts::E / (std::f64::consts::E + classes as f64 - 1.0);
        let shown: Vec<String> = self
            .outputs
            .iter()
            .take(4)
            .map(|output| format!("{output:.3}"))
            .collect();
        let more = if classes > 4 { ", …" } else { "" };
        let sum: f64 = self.outputs.iter().copied().map(f64::from).sum();
        Self::start("softmax is applied twice: the outputs are probabilities already")
            .label(Place::call("fit"), "seen in the first batch")
            .why(format!(
                "`{}` with `from_logits: true` applies softmax itself; after a second one no class can \
                 get more than {bound:.2}",
                self.loss
            ))
            .evidence(
                "first example",
                format!("{}{more}; sum {sum:.4}", shown.join(", ")),
            )
            .evidence("examples looked at", self.examples.to_string())
            .fix("drop the softmax at the end of the network")
            .fix(format!("or write `loss = {} {{ from_logits: false }}`", self.loss))
            .tensorflow("2.3 and 2.4 say nothing; later versions warn where a softmax layer is the last one")
    }
}
