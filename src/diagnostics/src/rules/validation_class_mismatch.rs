//! SC0702 `validation-class-mismatch`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Validation data that holds one class, or classes that training never shows.
#[derive(Clone, Debug)]
pub struct ValidationClassMismatch {
    /// The names of the classes in the validation data.
    pub validation: Vec<String>,
    /// Of these, the ones that no training example has.
    pub unseen: Vec<String>,
    /// Classes in the training data.
    pub training: usize,
    /// Examples of the validation data.
    pub examples: usize,
    /// Whether the validation data is the end of the training data: `validation_split`.
    pub is_tail: bool,
}

impl Rule for ValidationClassMismatch {
    const PAGE: RulePage = RulePage {
        code: "SC0702",
        name: "validation-class-mismatch",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Validation data with a single class, although the model has several, or mostly with classes that \
                do not occur in training. `validation_split` takes the end of the data before it is shuffled: \
                for sorted data, the last classes.",
        why: "The validation loss then does not measure the training, and accuracy is 0 or 1 because of the order of \
              the file.",
        bad: "compile!(model, optimizer = AdamW::new(5e-5), \
              loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
              let mut sorted = train.take(200);\n\
              sorted.examples.sort_by_key(|example| example.class());\n\
              fit!(model, sorted, validation_split = 0.1)?;",
        good: "compile!(model, optimizer = AdamW::new(5e-5), \
               loss = SparseCategoricalCrossentropy { from_logits: true })?;\n\
               let mut sorted = train.take(200);\n\
               sorted.examples.sort_by_key(|example| example.class());\n\
               let (train, dev) = sorted.stratified_split(0.1, 0)?;\n\
               fit!(model, train, validation_data = dev)?;",
        tensorflow: tensorflow::page("SC0702"),
    };

    fn diagnostic(&self) -> Diagnostic {
        let message = match self.validation.as_slice() {
            [only] => format!(
                "the validation data has only one class: `{}`",
                text::excerpt(only, 40)
            ),
            classes if self.unseen.len() == classes.len() => {
                "the validation data has only classes that do not occur in training".to_owned()
            }
            _ => {
                "the validation data is mostly of classes that do not occur in training".to_owned()
            }
        };
        let mut diagnostic = Self::start(message)
            .label(Place::call("fit"), "the validation data does not match the training data")
            .why(match self.is_tail {
                true => "`validation_split` is the end of the data, before shuffling: the data seems to be sorted",
                false => "results on it say nothing about the other classes",
            })
            .evidence("classes in validation", text::names(&self.validation, 5))
            .evidence("classes in training", text::thousands(self.training))
            .evidence("validation examples", text::thousands(self.examples));
        if !self.unseen.is_empty() {
            diagnostic = diagnostic.evidence("not in training", text::names(&self.unseen, 5));
        }
        diagnostic
            .fix("split each class in the same proportion: `let (train, dev) = data.stratified_split(0.1, 0)?;`")
            .fix("or shuffle before: `fit!(model, data.shuffled(0), validation_split = 0.1)?`")
            .tensorflow(Quote::of("SC0702"))
    }
}
