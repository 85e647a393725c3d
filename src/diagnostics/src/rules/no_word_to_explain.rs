//! SC0724 `no-word-to-explain`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// A text without a word that a prediction could be explained by.
#[derive(Clone, Debug)]
pub struct NoWordToExplain {
    /// The call: `explain`.
    pub call: String,
    /// The text as given.
    pub text: String,
}

impl Rule for NoWordToExplain {
    const PAGE: RulePage = RulePage {
        code: "SC0724",
        name: "no-word-to-explain",
        severity: Severity::Error,
        stage: Stage::Data,
        finds: "`model.explain(…)` or `model.counterfactual(…)` with a text that has no word.",
        why: "An explanation gives a number to each word, and an empty text has none.",
        bad: "model.explain(\"   \")?",
        good: "model.explain(\"a chess game for two players\")?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        Self::start(format!(
            "the text {:?} has no word",
            text::excerpt(&self.text, 40)
        ))
        .label(Place::call(&self.call), "there is nothing to explain")
        .why("an explanation gives a number to each word")
        .fix("give a text, or a pair: `model.explain((\"first\", \"second\"))?`")
    }
}
