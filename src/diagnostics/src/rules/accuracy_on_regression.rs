//! SC0310 `accuracy-on-regression`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A metric of classes on a model that predicts a number.
#[derive(Clone, Debug)]
pub struct AccuracyOnRegression {
    /// The metric: `accuracy`.
    pub metric: String,
    /// The loss, where there is one: `MeanSquaredError`.
    pub loss: Option<String>,
}

impl Rule for AccuracyOnRegression {
    const PAGE: RulePage = RulePage {
        code: "SC0310",
        name: "accuracy-on-regression",
        severity: Severity::Error,
        stage: Stage::Compile,
        finds: "A classification metric (`accuracy`, `f1`, `macro_f1`, `mcc`, `precision`, `recall`, `auc`, \
                top-k) on a regression model.",
        why: "A prediction of 2.9 never equals the label 3, so accuracy stays at 0 or is meaningless. Accuracy is \
              correct for one logit under `BinaryCrossentropy`: its threshold is 0 for logits and 0.5 for \
              probabilities.",
        bad: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
              compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, metrics = [accuracy()])?;",
        good: "let model = BertForSequenceClassification::from_pretrained(\"all-MiniLM-L6-v2\", 1)?;\n\
               compile!(model, optimizer = AdamW::new(5e-5), loss = MeanSquaredError, metrics = [pearson()])?;",
        tensorflow: tensorflow::page("SC0310"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let metric = &self.metric;
        let why = match &self.loss {
            Some(loss) => {
                format!("`{loss}` on one output trains a regression: there is no class to count")
            }
            None => "the one output is a number: there is no class to count".to_owned(),
        };
        Self::start(format!(
            "`{metric}` is a classification metric; the model is a regression"
        ))
        .label(
            Place::argument("compile", "metrics"),
            "use a regression metric: `mae()`, `rmse()`, `pearson()`",
        )
        .why(why)
        .fix("write `metrics = [mae(), pearson()]`")
        .fix("for two classes with one logit: `loss = BinaryCrossentropy { from_logits: true }`")
        .tensorflow(Quote::of("SC0310"))
    }
}
