//! SC0407 `truncated-texts`.

use crate::tensorflow;
use crate::{Diagnostic, Place, Rule, RulePage, Severity, Stage};
use stratoscope_render::text;

/// Texts that were cut at `max_length`.
#[derive(Clone, Debug)]
pub struct TruncatedTexts {
    /// How many texts were cut.
    pub texts: usize,
    /// How many there are.
    pub total: usize,
    /// Tokens that were cut off, all texts together.
    pub tokens_lost: usize,
    /// Where they were cut.
    pub max_length: usize,
    /// Name of the call without `!`: `fit`.
    pub call: String,
}

impl Rule for TruncatedTexts {
    const PAGE: RulePage = RulePage {
        code: "SC0407",
        name: "truncated-texts",
        severity: Severity::Note,
        stage: Stage::Data,
        finds: "Texts that are longer than `max_length` and were truncated.",
        why: "The model does not see the truncated part. In sentence pairs that may be the decisive part. The note \
              appears once; the tables of `evaluate!` and `predict` count the texts every time.",
        bad: "fit!(model, reviews, max_length = 8)?; // half of the reviews are longer",
        good: "fit!(model, reviews, max_length = 16)?;",
        tensorflow: tensorflow::page("SC0407"),
    };

    const GIVEN: &'static [&'static str] = &["let reviews = Dataset::from_labelled([\n\
             (\"a game of and for the library and the data of the game\", \"games\"),\n\
             (\"a font\", \"fonts\"),\n\
         ]);"];

    fn diagnostic(&self) -> Diagnostic {
        let percent = 100.0 * self.texts as f64 / self.total.max(1) as f64;
        let average = self.tokens_lost as f64 / self.texts.max(1) as f64;
        Self::start(format!(
            "{percent:.0} % of the texts were cut at {} tokens; they lost {average:.0} tokens on average",
            self.max_length
        ))
        .label(Place::call(&self.call), "texts are truncated here")
        .evidence(
            "texts cut",
            format!(
                "{} of {}",
                text::thousands(self.texts),
                text::thousands(self.total)
            ),
        )
        .fix(match self.call.as_str() {
            // They have no such argument.
            "predict" | "embed" => format!(
                "split longer texts if the part that is cut matters, or train with a larger `max_length`: `{}` reads as \
                 many tokens as the training, or all that the model takes",
                self.call
            ),
            _ => "raise `max_length` if the part that is cut matters; training time grows with it"
                .to_owned(),
        })
    }
}
