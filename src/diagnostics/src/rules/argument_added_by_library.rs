//! SC0109 `argument-nobody-wrote`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A combination of library versions in which one passes an argument that the other does not know. It
/// concerns Python programs only, so that nothing here can find it.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentNobodyWrote;

impl Rule for ArgumentNobodyWrote {
    const PAGE: RulePage = RulePage {
        code: "SC0109",
        name: "argument-nobody-wrote",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A Python program in which a library passes an argument that the user did not write: \
                transformers 4.11.3 to 4.17.0 hand `steps_per_execution` to Keras in every `compile`, and \
                TensorFlow 2.3 does not know it.",
        why: "The error names an argument that is nowhere in the program, so it is looked for in the wrong \
              place: in the strategy, or in the number of devices. Neither has to do with it.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = \"sparse_categorical_crossentropy\")?; // fails in Python on TensorFlow 2.3",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = \"sparse_categorical_crossentropy\", metrics = [\"accuracy\"])?; // runs on 2.4 and later",
        tensorflow: tensorflow::page("SC0109"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both are valid here; what fails is a combination of Python libraries");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("this combination of libraries passes an argument that you did not write")
            .why("transformers 4.11.3 to 4.17.0 always pass `steps_per_execution`; TensorFlow 2.3 has no such name")
            .fix("take TensorFlow 2.4 or later, or transformers 4.10 or earlier")
    }
}
