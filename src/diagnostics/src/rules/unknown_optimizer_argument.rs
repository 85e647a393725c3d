//! SC0504 `unknown-optimizer-argument`.

use crate::{Diagnostic, Fix, Place, Rule, RulePage, Severity, Stage, words};

/// A misspelt or misplaced argument of an optimizer.
#[derive(Clone, Debug)]
pub struct UnknownOptimizerArgument {
    /// The optimizer's type: `AdamW`.
    pub optimizer: String,
    /// The name as typed.
    pub given: String,
    /// Where the name stands.
    pub place: Place,
    /// What stands there instead, best first, each as a title and an edit.
    pub fixes: Vec<Fix>,
    /// What the optimizer accepts.
    pub known: Vec<String>,
}

impl Rule for UnknownOptimizerArgument {
    const PAGE: RulePage = RulePage {
        code: "SC0504",
        name: "unknown-optimizer-argument",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A misspelt argument of an optimizer, or one written the Python way: \
                `AdamW::new(lr = 5e-5)`.",
        why: "The learning rate and the decay decide the run; one that is not understood must not be \
              dropped.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5).weight_decy(0.01))?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5).weight_decay(0.01))?;",
        tensorflow: "TensorFlow 2.3–2.6 take `lr` with a log line; tf_keras 2.18 ignores it and trains at the \
                     default rate, with a log line; Keras 3: \"Argument(s) not recognized: {'lr': 0.001}\".",
    };

    fn diagnostic(&self) -> Diagnostic {
        let mut told = Self::start(format!("unknown optimizer argument `{}`", self.given))
            .label(
                self.place.clone(),
                format!("not an argument of `{}`", self.optimizer),
            )
            .why(format!(
                "the rate is the argument of `{}::new`, everything else a method: {}",
                self.optimizer,
                words::names(&self.known, 16)
            ));
        told = match self.given.as_str() {
            "lr" => told.tensorflow(
                "tf_keras 2.18 ignores `lr` and trains at the default rate, with a log line; \
                 Keras 3: ValueError: Argument(s) not recognized: {'lr': …}",
            ),
            given => told.tensorflow(format!(
                "2.3 to 2.6: TypeError: Unexpected keyword argument passed to optimizer: {given}; \
                 Keras 3: ValueError: Argument(s) not recognized: {{'{given}': …}}"
            )),
        };
        told.fixes = self.fixes.clone();
        told
    }
}
