//! SC0734 `texts-not-aligned`.

use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Two texts whose activations cannot be compared position by position.
#[derive(Clone, Debug)]
pub struct TextsNotAligned {
    /// The call: `attribution_patching`.
    pub call: String,
    /// Tokens of the clean and of the corrupted text.
    pub tokens: (usize, usize),
    /// The clean and the corrupted text.
    pub texts: (String, String),
}

impl Rule for TextsNotAligned {
    const PAGE: RulePage = RulePage {
        code: "SC0734",
        name: "texts-not-aligned",
        severity: Severity::Error,
        stage: Stage::Comparison,
        finds: "`model.attribution_patching(clean, corrupted)` or `activation_patching` of two texts with different numbers of \
                tokens.",
        why: "The activations of one text take the place of those of the other at the same positions. With different lengths a \
              position stands for another word in each.",
        bad: "model.attribution_patching(\"a game client\", \"a very small music server\")?",
        good: "model.attribution_patching(\"a game client\", \"a music server\")?",
        tensorflow: "",
    };

    fn diagnostic(&self) -> Diagnostic {
        let (clean, corrupted) = self.tokens;
        Self::start(format!(
            "the texts have {clean} and {corrupted} tokens: their positions do not match"
        ))
        .label(
            Place::call(&self.call),
            "needs two texts with the same number of tokens",
        )
        .evidence("clean", text::excerpt(&self.texts.0, 60))
        .evidence("corrupted", text::excerpt(&self.texts.1, 60))
        .why("activations are exchanged position by position")
        .fix("replace words by words with as many tokens, without adding or removing any")
    }
}
