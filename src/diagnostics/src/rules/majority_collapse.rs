//! SC0517 `majority-collapse`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

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
    /// Optimizer steps so far.
    pub steps: u64,
    /// The optimizer's type: `AdamW`.
    pub optimizer: String,
    /// Whether the weights came from a checkpoint.
    pub pretrained: bool,
}

impl MajorityCollapse {
    /// Examples of a split below which a single predicted class is chance.
    const ENOUGH: u64 = 20;

    /// From this rate on pretrained weights are usually lost.
    const HIGH: f64 = 2e-4;
    /// A new head predicts one class for about this many steps.
    const FEW: u64 = 50;

    /// What to do about the rate, where it may be the cause.
    fn about_the_rate(&self, diagnostic: Diagnostic) -> Diagnostic {
        let optimizer = &self.optimizer;
        if self.steps < Self::FEW && (!self.pretrained || self.rate < Self::HIGH) {
            return diagnostic.fix(format!(
                "train longer: {} is little for a randomly initialized head",
                text::count(
                    usize::try_from(self.steps).unwrap_or(usize::MAX),
                    "optimizer step"
                )
            ));
        }
        if !self.pretrained {
            return diagnostic.fix(format!(
                "try a lower rate, such as `{optimizer}::new({:e})`: a tenth of this one",
                self.rate / 10.0
            ));
        }
        let diagnostic = match self.rate >= Self::HIGH {
            true => diagnostic.fix(format!(
                "lower the rate, which is {:.0} times 5e-5, and load the model again: these weights are no \
                 longer pretrained",
                self.rate / 5e-5
            )),
            false => diagnostic,
        };
        diagnostic.fix(format!(
            "warm up and clip: `{optimizer}::new(warmup_linear(5e-5, 0.1)).global_clipnorm(1.0)`"
        ))
    }
}

impl Rule for MajorityCollapse {
    const PAGE: RulePage = RulePage {
        code: "SC0517",
        name: "majority-collapse",
        severity: Severity::Warning,
        stage: Stage::Training,
        finds: "After an epoch, all predictions for the validation data are the same class, although its labels have \
                several classes. Without validation data, the training data is checked.",
        why: "The model ignores its input. Usual causes: a learning rate that is too high (SC0501), no warm-up, \
              outputs that are probabilities under `from_logits: true` (SC0303), labels that are shuffled \
              relative to the texts, preprocessing that makes all inputs equal, or one class that is nearly all \
              of the data. Accuracy then equals the share of that class and looks better than chance.",
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
        tensorflow: tensorflow::page("SC0517"),
    };

    fn applies(&self) -> bool {
        self.examples >= Self::ENOUGH && self.classes >= 2
    }

    fn diagnostic(&self) -> Diagnostic {
        let share = 100.0 * self.of_this_class as f64 / self.examples.max(1) as f64;
        let diagnostic = Self::start(format!(
            "all {} {} predictions are `{}` after epoch {}",
            self.examples,
            self.split,
            self.class,
            self.epoch + 1
        ))
        .label(Place::call("fit"), "the predictions do not depend on the input")
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
        self.about_the_rate(diagnostic)
            .fix("check the class counts and a few labeled examples after your own preprocessing")
            .tensorflow(Quote::of("SC0517"))
    }
}
