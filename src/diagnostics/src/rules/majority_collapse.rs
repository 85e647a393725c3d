//! SC0517 `majority-collapse`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// All predictions of a split are of one class, the labels are not.
#[derive(Clone, Debug)]
pub struct MajorityCollapse {
    /// The class, by name.
    pub class: String,
    /// Examples of the split.
    pub examples: u64,
    /// Examples of the split that have this class.
    pub of_this_class: u64,
    /// Classes that occur among the labels.
    pub classes: usize,
    /// `training` or `validation`.
    pub split: String,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// The highest rate of the run so far.
    pub rate: f64,
    /// The mean loss of the split.
    pub loss: f64,
}

impl Rule for MajorityCollapse {
    const PAGE: RulePage = RulePage {
        code: "SC0517",
        name: "majority-collapse",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "An epoch after which every prediction of the validation data (without any: of the training data) \
                is the same class, while the labels are of several.",
        why: "The model answers without looking at the text. Usual causes: a rate that is too high (SC0501), no \
              warm-up, outputs that are probabilities under `from_logits: true` (SC0303), labels that are \
              shuffled against the texts, a step of the preparation that makes all inputs alike, or one class that is nearly all of the data. Accuracy then equals \
              the share of that class and looks better than chance.",
        bad: "let scaled = make_classification(400, 8, 4, 0)?.map(|mut example| {\n    \
                  // Integers are divided without a rest: every number becomes 0.\n    \
                  example.features = example.features.iter().map(|&x| (x as i32 / 255) as f32).collect();\n    \
                  example\n\
              });\n\
              let model = Sequential([Dense(16).activation(\"relu\"), Dense(4)])?;\n\
              compile!(model, optimizer = Adam::new(0.01), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              fit!(model, scaled, epochs = 5, validation_split = 0.25)?;",
        good: "let data = make_classification(400, 8, 4, 0)?;\n\
               let model = Sequential([Dense(16).activation(\"relu\"), Dense(4)])?;\n\
               compile!(model, optimizer = Adam::new(0.01), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               fit!(model, data, epochs = 5, validation_split = 0.25)?;",
        tensorflow: "Nothing is said; the loss stays near ln(classes) and the accuracy at the share of one class.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let share = 100.0 * self.of_this_class as f64 / self.examples.max(1) as f64;
        let mut told = Self::start(format!(
            "all {} {} predictions are `{}` after epoch {}",
            self.examples,
            self.split,
            self.class,
            self.epoch + 1
        ))
        .label(Place::call("fit"), "the inputs do not matter to it")
        .why(format!(
            "{} classes occur among the labels; `{}` is {share:.1} % of them, and that is the accuracy",
            self.classes, self.class
        ))
        .evidence(
            "labels of this class",
            format!("{} of {}", self.of_this_class, self.examples),
        )
        .evidence(
            "loss",
            format!(
                "{:.4}; guessing costs ln({}) = {:.4}",
                self.loss,
                self.classes,
                (self.classes as f64).ln()
            ),
        )
        .evidence("highest rate so far", format!("{:.3e}", self.rate));
        if self.rate >= 2e-4 {
            told = told.fix(format!(
                "of a pretrained model: lower the rate, which is {:.0} times 5e-5, and build it anew, since these \
                 weights are spoilt",
                self.rate / 5e-5
            ));
        }
        told.fix("warm up and clip: `AdamW::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0)`")
            .fix("look at the class counts and at a few labelled examples as they are after your own preparation")
            .tensorflow("says nothing")
    }
}
