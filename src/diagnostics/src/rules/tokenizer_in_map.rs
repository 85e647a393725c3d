//! SC0408 `tokenizer-in-map`.

use crate::tensorflow;
use crate::{Diagnostic, Rule, RulePage, Severity, Stage};

/// A tokenizer in a compiled map, where texts are symbolic elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct TokenizerInMap;

impl Rule for TokenizerInMap {
    const PAGE: RulePage = RulePage {
        code: "SC0408",
        name: "tokenizer-in-map",
        severity: Severity::Note,
        stage: Stage::Page,
        finds: "A mistake that is possible in TensorFlow only: a tokenizer called inside `dataset.map`. Here a \
                dataset has its texts as values, and a closure gets each of them.",
        why: "TensorFlow traces the function of a map once, with symbolic tensors: there is no text that a \
              Python tokenizer could read.",
        bad: "// dataset.map(lambda text: tokenizer(text)) fails in TensorFlow\nlet upper = train.map(|mut \
              example| { example.text = example.text.to_uppercase(); example });",
        good: "let clean = train.map(|mut example| { example.text = example.text.trim().to_owned(); example });",
        tensorflow: tensorflow::page("SC0408"),
    };

    const NOT_RUN: Option<&'static str> =
        Some("both cells are valid: the mistake is not possible here");

    fn diagnostic(&self) -> Diagnostic {
        Self::start("the texts of a dataset are values, inside a map too")
            .why("nothing is traced: a closure gets each example, and the model's tokenizer runs when `fit!` begins")
            .fix("map the texts; `fit!` tokenizes them")
    }
}
