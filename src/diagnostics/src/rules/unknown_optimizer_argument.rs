//! SC0504 `unknown-optimizer-argument`.

use crate::{Answer, Diagnostic, Fix, Place, Profile, Rule, RulePage, Severity, Stage, words};

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
        told = told
            .tensorflow(match self.given.as_str() {
                "lr" => "takes it as an old name, ignores it or refuses it, by version",
                _ => "raises when the optimizer is made",
            })
            .answers(|profile| answer(profile, &self.given));
        told.fixes = self.fixes.clone();
        told
    }
}

/// keras-semantics §1.3.
fn answer(profile: Profile, given: &str) -> Answer {
    let does = "raises when the optimizer is made";
    match (profile, given) {
        (Profile::Tf23 | Profile::Tf24, "lr") => {
            Answer::does(profile, "takes it as the learning rate, an old name")
        }
        (Profile::TfKeras218, "lr") => Answer::says(
            profile,
            "ignores it and trains at the default rate; only a log line tells",
            "`lr` is deprecated in TF-Keras optimizer, please use `learning_rate` or use the legacy \
             optimizer, e.g.,tf.keras.optimizers.legacy.Adam.",
        ),
        (Profile::Tf23 | Profile::Tf24, _) => Answer::says(
            profile,
            does,
            format!("TypeError: Unexpected keyword argument passed to optimizer: {given}"),
        ),
        (Profile::TfKeras218, _) => Answer::says(
            profile,
            does,
            // Two spaces, as it prints them.
            format!(
                "TypeError: {given} is not a valid argument, kwargs should be empty  for \
                 `optimizer_experimental.Optimizer`."
            ),
        ),
        (Profile::Keras3, _) => Answer::says(
            profile,
            does,
            format!("ValueError: Argument(s) not recognized: {{'{given}': …}}"),
        ),
    }
}
