//! SC0702 `validation-of-other-classes`.

use crate::tensorflow::{self, Quote};
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Validation data that holds one class, or classes that training never shows.
#[derive(Clone, Debug)]
pub struct ValidationOfOtherClasses {
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

impl Rule for ValidationOfOtherClasses {
    const PAGE: RulePage = RulePage {
        code: "SC0702",
        name: "validation-of-other-classes",
        severity: Severity::Warning,
        stage: Stage::Data,
        finds: "Validation data of a single class, where the model has several, or mostly of classes that training \
                never shows. `validation_split` takes the end of the data before it is shuffled: of sorted data, the \
                last classes.",
        why: "The validation loss then measures something else than training, and accuracy is 0 or 1 for reasons of \
              the file's order.",
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
                "validation holds one class only: `{}`",
                text::excerpt(only, 40)
            ),
            classes if self.unseen.len() == classes.len() => {
                "validation holds only classes that training never shows".to_owned()
            }
            _ => "validation is mostly of classes that training never shows".to_owned(),
        };
        let mut told = Self::start(message)
            .label(Place::call("fit"), "the validation data does not look like the training data")
            .why(match self.is_tail {
                true => "`validation_split` is the end of the data, before shuffling: the data seems to be sorted",
                false => "what is measured on it says nothing about the other classes",
            })
            .evidence("classes in validation", text::names(&self.validation, 5))
            .evidence("classes in training", text::thousands(self.training))
            .evidence("validation examples", text::thousands(self.examples));
        if !self.unseen.is_empty() {
            told = told.evidence("never in training", text::names(&self.unseen, 5));
        }
        told.fix("divide each class alike: `let (train, dev) = data.stratified_split(0.1, 0)?;`")
            .fix("or shuffle before: `fit!(model, data.shuffled(0), validation_split = 0.1)?`")
            .tensorflow(Quote::of("SC0702"))
    }
}
