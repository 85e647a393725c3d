//! SC0109 `argument-added-by-library`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A combination of library versions in which one passes an argument that the other does not know. It
/// concerns Python programs only, so that nothing here can find it.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentAddedByLibrary;

impl Rule for ArgumentAddedByLibrary {
    const PAGE: RulePage = RulePage {
        code: "SC0109",
        name: "argument-added-by-library",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A Python program in which a library passes an argument that the user did not write: transformers \
                4.11.3 to 4.17.0 pass `steps_per_execution` to Keras in every `compile`, and TensorFlow 2.3 has \
                no such argument.",
        why: "The error names an argument that does not occur in the program, so users search in the wrong \
              place: the strategy or the number of devices. Neither is the cause.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = \"sparse_categorical_crossentropy\")?; // fails in Python on TensorFlow 2.3",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = \"sparse_categorical_crossentropy\", metrics = [\"accuracy\"])?; // runs on 2.4 and later",
        tensorflow: tensorflow::page("SC0109"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid here; only a combination of Python libraries fails");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("this combination of libraries passes an argument that you did not write")
            .why("transformers 4.11.3 to 4.17.0 always pass `steps_per_execution`; TensorFlow 2.3 has no such name")
            .fix("use TensorFlow 2.4 or later, or transformers 4.10 or earlier")
    }
}
