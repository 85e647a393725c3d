//! SC0408 `texts-are-values`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A tokenizer in a compiled map, where texts are symbolic elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct TextsAreValues;

impl Rule for TextsAreValues {
    const PAGE: RulePage = RulePage {
        code: "SC0408",
        name: "texts-are-values",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "The error of calling a tokenizer inside `dataset.map`. Here a data set holds its texts, and a \
                closure gets each of them as it is.",
        why: "TensorFlow traces the function of a map once, with symbolic tensors: there is no text yet that a \
              Python tokenizer could read.",
        bad: "// dataset.map(lambda text: tokenizer(text)) fails in TensorFlow\nlet upper = train.map(|mut \
              example| { example.text = example.text.to_uppercase(); example });",
        good: "let clean = train.map(|mut example| { example.text = example.text.trim().to_owned(); example });",
        tensorflow: tensorflow::page("SC0408"),
    };

    const NOT_RUN: Option<&'static str> = Some("both are valid: no program here shows it");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the texts of a data set are values, in a map too")
            .why("nothing is traced: a closure sees each example, and the model's tokenizer runs when `fit!` begins")
            .fix("write the map on texts; tokenizing is `fit!`'s")
    }
}
