//! SC0103 `bad-argument-value`.

use crate::{ArgumentRow, Diagnostic, Place, Rule, RulePage, Severity, Stage};

/// A literal that the argument cannot take, such as 0 for a count.
#[derive(Clone, Debug)]
pub struct BadArgumentValue {
    /// Name of the call without `!`.
    pub call: String,
    /// The argument.
    pub argument: String,
    /// The value as typed.
    pub given: String,
    /// What it must be, in words: `an integer ≥ 1`.
    pub expects: String,
    /// Where the value stands.
    pub place: Place,
    /// A value that was probably meant, where one is near.
    pub replacement: Option<String>,
    /// The call's arguments; empty when told at run time.
    pub arguments: Vec<ArgumentRow>,
}

impl Rule for BadArgumentValue {
    const PAGE: RulePage = RulePage {
        code: "SC0103",
        name: "bad-argument-value",
        severity: Severity::Error,
        stage: Stage::Text,
        finds: "A count of `compile!`, `fit!` or `evaluate!` (`steps_per_execution`, \
                `gradient_accumulation_steps`, `epochs`, `batch_size`, …) that is 0, negative, a fraction \
                or a text; a number of an optimizer outside its range, such as a rate below 0. A count of 1 \
                is always accepted.",
        why: "A count of 0 has no meaning, and a fraction would have to be rounded without being asked.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 0)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), steps_per_execution = 1)?;",
        tensorflow: "`steps_per_execution = 0` counts as 1 without a word on TensorFlow 2.4 to tf_keras 2.18, \
                     and fails in `fit` on Keras 3; −1 fails in `fit`; 2.5 and '16' fail in `compile` with \
                     \"Cannot convert 2.5 to EagerTensor of dtype int64\", on Keras 3 in `fit`.",
    };

    fn diagnostic(&self) -> Diagnostic {
        let told = Self::start(format!(
            "`{} = {}`: expected {}",
            self.argument, self.given, self.expects
        ))
        .label(self.place.clone(), format!("expected {}", self.expects))
        .arguments(self.arguments.clone());
        let told = match &self.replacement {
            Some(value) => told.fix_edit(
                format!("write `{} = {value}`", self.argument),
                self.place.clone(),
                value.clone(),
            ),
            None => told.fix(format!("give `{}` {}", self.argument, self.expects)),
        };
        match self.argument.as_str() {
            "steps_per_execution" => told.tensorflow(
                "0 counts as 1 without a word on TensorFlow 2.4 to tf_keras 2.18 and fails in `fit` on \
                 Keras 3; negative, fractional and text values fail in `compile` or only in `fit`, by version",
            ),
            "batch_size" => told.tensorflow(
                "`batch_size = 0` trains anyway on TensorFlow 2.3 to 2.6 and on Keras 3; tf_keras 2.18 says \
                 \"Expected batch_size to be positive. Received is 0.\"",
            ),
            _ => told,
        }
    }
}
